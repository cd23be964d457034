"""What an overlay of deploy/kubernetes leads to in all, and what is wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.manifests import Peer, allows, pod_complaints, pods, schema_complaints

if TYPE_CHECKING:
    from pathlib import Path

    Object = dict[str, Any]

OVERLAYS = ("cron", "cron-dask", "prefect", "prefect-dask")
TOKENS = {"prefect-worker": ("prefect-worker",), "release": ("dask",)}
"""The containers that may talk to Kubernetes, by the component of their pods."""
PLACES = {
    "rows": Peer("192.0.2.1"),
    "ledger": Peer("192.0.2.2"),
    "store": Peer("192.0.2.3"),
    "kubernetes": Peer("192.0.2.4"),
    "prefect": Peer(labels={}, namespace="prefect"),
    "elsewhere": Peer("198.51.100.7"),
}
PORTS = {"rows": 443, "ledger": 5432, "store": 443, "kubernetes": 6443, "prefect": 4200, "elsewhere": 443}
REACHES = {
    "release": {"rows", "ledger", "store"},
    "recover": {"ledger", "store"},
    "audit": {"ledger", "store"},
    "metrics": {"ledger", "store"},
    "prefect-worker": {"kubernetes", "prefect"},
    "dask-scheduler": set(),
    "dask-worker": {"rows"},
}
"""What each component's pods may send to."""


def everything(folder: Path, objects: list[Object], overlay: str) -> list[Object]:
    """Return an overlay's objects, with what its pool's runs and its sidecar make."""
    all_objects = list(objects)
    if overlay.startswith("prefect"):
        name = "kubernetes-dask-pool.json" if overlay == "prefect-dask" else "kubernetes-pool.json"
        all_objects.append(job_of(folder.parent / "prefect" / name))
    if overlay.endswith("dask"):
        all_objects.append(cluster(folder))
    return all_objects


def job_of(path: Path) -> Object:
    """Return the job that a pool starts, as Kubernetes takes it."""
    text = path.read_text(encoding="utf-8").replace("{{ name }}", "run")
    job: Object = json.loads(text)["job_configuration"]["job_manifest"]
    # Prefect demands these two at a place where Kubernetes has none, and passes over them.
    assert [job["spec"]["template"]["spec"].pop(name) for name in ("parallelism", "completions")] == [1, 1]
    return job


def cluster(folder: Path) -> Object:
    """Return the DaskCluster that the sidecar asks for."""
    definition: Object = json.loads((folder / "components/dask/cluster.json").read_text(encoding="utf-8"))
    return definition


def complaints(objects: list[Object]) -> list[str]:
    """Say all that is wrong with objects."""
    said_of_all = [said for kubernetes_object in objects for said in schema_complaints(kubernetes_object)]
    for kubernetes_object in objects:
        for labels, spec in pods(kubernetes_object):
            component = labels.get("app.kubernetes.io/component", "")
            allowed = TOKENS.get(component, ())
            said_of_all += [f"{component}: {said}" for said in pod_complaints(spec, may_use_token=allowed)]
    policies = [policy for policy in objects if policy["kind"] == "NetworkPolicy"]
    for kubernetes_object in objects:
        for labels, _ in pods(kubernetes_object):
            said_of_all += reach_complaints(policies, labels)
    if not any(
        kubernetes_object["kind"] == "Namespace" and is_restricted(kubernetes_object)
        for kubernetes_object in objects
    ):
        said_of_all.append("the namespace is open")
    return said_of_all


def is_restricted(namespace: Object) -> bool:
    """Tell whether the cluster refuses pods in a namespace that are not "restricted"."""
    return bool(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted")


def reach_complaints(policies: list[Object], labels: dict[str, str]) -> list[str]:
    """Say which places a pod reaches that it may not, and the other way round."""
    component = labels["app.kubernetes.io/component"]
    expected = set(REACHES[component])
    if labels.get("suffice/dask") == "client":
        expected.add("kubernetes")
    if labels.get("suffice/prefect") == "client":
        expected.add("prefect")
    reached = {name for name, peer in PLACES.items() if allows(policies, "egress", labels, peer, PORTS[name])}
    strangers = (Peer("198.51.100.7"), Peer(labels={}), Peer(labels={}, namespace="elsewhere"))
    ports = (22, 443, 8080, 8786, 8787, 9100)
    open_to = any(
        allows(policies, "ingress", labels, stranger, port) for stranger in strangers for port in ports
    )
    return (
        [f"{component}: strangers may connect"] * open_to
        + [f"{component}: reaches {name}" for name in reached - expected]
        + [f"{component}: does not reach {name}" for name in expected - reached]
    )


def find(objects: list[Object], kind: str, name: str) -> Any:
    """Return the one object of a kind and name."""
    (match,) = (
        candidate
        for candidate in objects
        if candidate["kind"] == kind and candidate["metadata"]["name"] == name
    )
    return match


def release(objects: list[Object]) -> Any:
    """Return the template of the pod of the CronJob that releases."""
    return find(objects, "CronJob", "release")["spec"]["jobTemplate"]["spec"]["template"]
