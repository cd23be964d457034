"""Kubernetes objects held against their schemas, against "restricted", and against what pods may reach."""

from __future__ import annotations

import functools
import ipaddress
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Object = dict[str, Any]

SCHEMAS = Path(__file__).parents[1] / "deploy/schemas"
_SCHEMA_FILES = ("dask-kubernetes-2026.3.json", "kubernetes-1.32.json")
_VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
_SHARED_WITH_THE_NODE = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace")
_SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL|ACCESS_KEY", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/?#\s]*:[^/?#\s]*@|BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[A-Z0-9]{12}")
_TAG = re.compile(r"@sha256:[0-9a-f]{64}$|:(?!latest$)[\w.-]+$", re.ASCII)


@functools.cache
def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = {"kinds": {}, "$defs": {}}
    for name in _SCHEMA_FILES:
        content = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
        for part in schemas:
            schemas[part] |= content[part]
    return schemas


def kinds() -> set[str]:
    """Return the kinds that have a schema here, as ``apps/v1/Deployment``."""
    return set(_schemas()["kinds"])


@functools.cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    schemas = _schemas()
    reference = f"#/$defs/{schemas['kinds'][kind]}"
    return jsonschema.Draft202012Validator({"$defs": schemas["$defs"], "$ref": reference})


def schema_complaints(manifest: Object) -> list[str]:
    """Say what an object's schema refuses."""
    kind = f"{manifest.get('apiVersion')}/{manifest.get('kind')}"
    if kind not in kinds():
        return [f"{kind}: no schema"]
    errors = _validator(kind).iter_errors(manifest)
    return [f"{kind} {error.json_path}: {error.message[:200]}" for error in errors]


def pods(manifest: Object) -> Iterator[tuple[dict[str, str], Object]]:
    """Yield the labels and the description of each kind of pod that an object leads to."""
    spec = manifest.get("spec", {})
    if manifest["kind"] == "CronJob":
        template = spec["jobTemplate"]["spec"]["template"]
    elif manifest["kind"] in {"Deployment", "Job"}:
        template = spec["template"]
    elif manifest["kind"] == "DaskCluster":
        for role in ("scheduler", "worker"):
            yield spec[role]["metadata"]["labels"], spec[role]["spec"]
        return
    else:
        return
    yield template["metadata"].get("labels", {}), template["spec"]


def pod_complaints(spec: Object, *, may_use_token: Iterable[str] = ()) -> list[str]:
    """Say what of "restricted", and of what is stricter here, a pod breaks.

    Parameters
    ----------
    spec : dict
    may_use_token : iterable of str
        The containers that may hold a token of Kubernetes.
    """
    complaints = [name for name in _SHARED_WITH_THE_NODE if spec.get(name)]
    security = spec.get("securityContext", {})
    if security.get("runAsNonRoot") is not True or not security.get("runAsUser"):
        complaints.append("may run as root")
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        complaints.append("seccomp")
    if security.get("fsGroupChangePolicy") != "OnRootMismatch":
        complaints.append("the spool would be opened to its group")
    if spec.get("enableServiceLinks") is not False:
        complaints.append("other services' addresses stand in the environment")
    for volume in spec.get("volumes", []):
        complaints += [f"volume {kind}" for kind in volume.keys() - _VOLUMES - {"name"}]
        if volume.get("emptyDir", {"medium": "Memory"}).get("medium") != "Memory":
            complaints.append(f"volume {volume['name']} lies on the node's disk")
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    complaints += [f"{name}: token" for name in _with_tokens(spec, containers) if name not in may_use_token]
    for container in containers:
        complaints += [f"{container.get('name')}: {said}" for said in _container_complaints(container)]
    return complaints


def _with_tokens(spec: Object, containers: list[Object]) -> Iterator[str]:
    """Yield the names of the containers that hold a token of Kubernetes."""
    tokens = {
        volume["name"]
        for volume in spec.get("volumes", [])
        if any("serviceAccountToken" in source for source in volume.get("projected", {}).get("sources", []))
    }
    for container in containers:
        mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
        if spec.get("automountServiceAccountToken") is not False or mounted & tokens:
            yield container["name"]


def _container_complaints(container: Object) -> Iterator[str]:
    yield from _security_complaints(container.get("securityContext", {}))
    if any("hostPort" in port for port in container.get("ports", [])):
        yield "port of the node"
    if "memory" not in container.get("resources", {}).get("limits", {}):
        yield "no limit of memory"
    if not _TAG.search(container["image"]):
        yield "image without a version"
    for variable in container.get("env", []):
        value = variable.get("value", "")
        if (_SECRET_NAME.search(variable["name"]) and value) or _SECRET_VALUE.search(value):
            yield f"secret in {variable['name']}"
    if any(
        _SECRET_VALUE.search(text) for text in (*container.get("command", []), *container.get("args", []))
    ):
        yield "secret in the command"


def _security_complaints(security: Object) -> Iterator[str]:
    if security.get("allowPrivilegeEscalation") is not False or security.get("privileged"):
        yield "privileges"
    if security.get("readOnlyRootFilesystem") is not True:
        yield "may write to its root"
    if security.get("capabilities") != {"drop": ["ALL"]}:
        yield "capabilities"
    if security.get("runAsUser") == 0 or security.get("runAsNonRoot") is False:
        yield "may run as root"
    if "seccompProfile" in security:
        yield "seccomp"


def allows(policies: Iterable[Object], direction: str, labels: dict[str, str], peer: Peer, port: int) -> bool:
    """Tell whether a pod with these labels may send to (``egress``), or be sent to by (``ingress``), a peer.

    As Kubernetes decides: a pod that no policy selects may do anything; for others something must allow it.
    """
    selected = [
        policy["spec"]
        for policy in policies
        if direction.capitalize() in policy["spec"]["policyTypes"]
        and _matches(policy["spec"]["podSelector"], labels)
    ]
    side = "to" if direction == "egress" else "from"
    return not selected or any(
        any(peer.fits(peer_of_rule) for peer_of_rule in rule[side]) and _has_port(rule, port)
        for spec in selected
        for rule in spec.get(direction, [])
    )


class Peer:
    """The other end: an address outside of the cluster, or a pod.

    Parameters
    ----------
    address : str, optional
    labels : dict, optional
    namespace : str
        That of the pod.
    """

    def __init__(
        self, address: str | None = None, labels: dict[str, str] | None = None, namespace: str = "suffice"
    ) -> None:
        self._address = address
        self._labels = labels or {}
        self._namespace = namespace

    def fits(self, rule: Object) -> bool:
        """Tell whether one entry of a policy's ``to`` or ``from`` is about this."""
        if "ipBlock" in rule:
            assert rule["ipBlock"].keys() == {"cidr"}
            block = ipaddress.ip_network(rule["ipBlock"]["cidr"])
            return self._address is not None and ipaddress.ip_address(self._address) in block
        namespace = {"kubernetes.io/metadata.name": self._namespace}
        at_home = self._namespace == "suffice"
        there = _matches(rule["namespaceSelector"], namespace) if "namespaceSelector" in rule else at_home
        return self._address is None and there and _matches(rule.get("podSelector", {}), self._labels)


def _has_port(rule: Object, port: int) -> bool:
    return "ports" not in rule or any(allowed["port"] == port for allowed in rule["ports"])


def _matches(selector: Object, labels: dict[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    expressions = selector.get("matchExpressions", [])
    assert all(expression["operator"] == "In" for expression in expressions)
    return exact and all(labels.get(expression["key"]) in expression["values"] for expression in expressions)
