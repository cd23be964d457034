"""The manifests of deploy/kubernetes: what they become, and what that allows; no cluster is asked."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from support.installation import OVERLAYS, cluster, complaints, everything, find, release
from support.kustomize import render
from support.manifests import Peer, allows, kinds, pods

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Object = dict[str, Any]


@pytest.fixture(scope="module")
def folder(repository: Path) -> Path:
    return repository / "deploy/kubernetes"


@pytest.fixture(scope="module")
def rendered(folder: Path) -> dict[str, list[Object]]:
    return {name: render(folder / "overlays" / name) for name in OVERLAYS}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_valid_restricted_and_reaches_no_more_than_it_needs(
    folder: Path, rendered: dict[str, list[Object]], overlay: str
) -> None:
    objects = everything(folder, rendered[overlay], overlay)
    assert complaints(objects) == []
    assert all(item["metadata"]["namespace"] == "suffice" for item in objects if item["kind"] != "Namespace")
    assert not [item for item in objects if item["kind"] == "Secret"], "secrets are named, never held"
    components = {labels["app.kubernetes.io/component"] for item in objects for labels, _ in pods(item)}
    assert {"release", "recover", "audit", "metrics"} <= components


def test_every_schema_is_used(folder: Path, rendered: dict[str, list[Object]]) -> None:
    used = {
        f"{item['apiVersion']}/{item['kind']}"
        for name in OVERLAYS
        for item in everything(folder, rendered[name], name)
    }
    assert used == kinds()


def changed(path: str, *, to: Any) -> Callable[[list[Object]], None]:
    """Return what sets a field of the release's pod."""

    def change(objects: list[Object]) -> None:
        place = release(objects)
        *words, last = path.split(".")
        for word in words:
            place = place[int(word)] if word.isdigit() else place.setdefault(word, {})
        if isinstance(place, list):
            place.append(to)
        else:
            place[last] = to

    return change


def without(kind: str, name: str) -> Callable[[list[Object]], None]:
    return lambda objects: objects.remove(find(objects, kind, name))


def opened(objects: list[Object]) -> None:
    everywhere = {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}
    find(objects, "NetworkPolicy", "names")["spec"]["egress"].append(everywhere)


def unlabelled(objects: list[Object]) -> None:
    labels = find(objects, "Namespace", "suffice")["metadata"]["labels"]
    labels["pod-security.kubernetes.io/enforce"] = "baseline"


def nameless(objects: list[Object]) -> None:
    del release(objects)["spec"]["containers"][0]["name"]


def of_another_kind(objects: list[Object]) -> None:
    find(objects, "Service", "metrics")["kind"] = "Ingress"


def ledger_for_all(objects: list[Object]) -> None:
    find(objects, "NetworkPolicy", "ledger")["spec"]["podSelector"] = {}


def rows_for_recovery(objects: list[Object]) -> None:
    template = find(objects, "CronJob", "recover")["spec"]["jobTemplate"]["spec"]["template"]
    template["metadata"]["labels"]["suffice/rows"] = "read"


def ledger_for_no_release(objects: list[Object]) -> None:
    del release(objects)["metadata"]["labels"]["suffice/ledger"]


MUTANTS: dict[str, tuple[Callable[[list[Object]], None], str]] = {
    "unknown field": (changed("spec.nodeSelectors", to={}), "nodeSelectors"),
    "wrong type": (changed("spec.terminationGracePeriodSeconds", to="long"), "terminationGracePeriodSeconds"),
    "unknown policy": (changed("spec.restartPolicy", to=3), "restartPolicy"),
    "unknown volume": (changed("spec.volumes.0.emptyDirs", to={}), "emptyDirs"),
    "container without a name": (nameless, "'name' is a required"),
    "kind without a schema": (of_another_kind, "no schema"),
    "root": (changed("spec.securityContext.runAsUser", to=0), "may run as root"),
    "perhaps root": (changed("spec.securityContext.runAsNonRoot", to=False), "may run as root"),
    "container as root": (changed("spec.containers.0.securityContext.runAsUser", to=0), "may run as root"),
    "seccomp": (changed("spec.securityContext.seccompProfile", to={"type": "Unconfined"}), "seccomp"),
    "writable root": (
        changed("spec.containers.0.securityContext.readOnlyRootFilesystem", to=False),
        "may write",
    ),
    "privileged": (changed("spec.containers.0.securityContext.privileged", to=True), "privileges"),
    "capability": (
        changed("spec.containers.0.securityContext.capabilities", to={"drop": ["ALL"], "add": ["NET_ADMIN"]}),
        "capabilities",
    ),
    "folder of the node": (
        changed("spec.volumes.+", to={"name": "node", "hostPath": {"path": "/"}}),
        "volume hostPath",
    ),
    "working files on disk": (changed("spec.volumes.0.emptyDir", to={}), "lies on the node's disk"),
    "network of the node": (changed("spec.hostNetwork", to=True), "hostNetwork"),
    "token": (changed("spec.automountServiceAccountToken", to=True), "token"),
    "spool open to its group": (
        changed("spec.securityContext.fsGroupChangePolicy", to="Always"),
        "its group",
    ),
    "no limit": (changed("spec.containers.0.resources.limits", to={}), "limit of memory"),
    "moving image": (changed("spec.containers.0.image", to="suffice-pipeline:latest"), "version"),
    "password": (changed("spec.containers.0.env.+", to={"name": "PGPASSWORD", "value": "hunter2"}), "secret"),
    "password in a URL": (
        changed(
            "spec.containers.0.env.+", to={"name": "SUFFICE_LEDGER", "value": "postgresql://a:b@db/ledger"}
        ),
        "secret in SUFFICE_LEDGER",
    ),
    "open namespace": (unlabelled, "the namespace is open"),
    "nothing denied": (without("NetworkPolicy", "nothing-by-default"), "strangers may connect"),
    "everything allowed": (opened, "reaches elsewhere"),
    "ledger for all": (ledger_for_all, "dask-worker: reaches ledger"),
    "recovery labelled as a reader": (rows_for_recovery, "recover: reaches rows"),
    "release without its ledger": (ledger_for_no_release, "release: does not reach ledger"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(folder: Path, rendered: dict[str, list[Object]], name: str) -> None:
    objects = [*copy.deepcopy(rendered["cron-dask"]), cluster(folder)]
    change, said = MUTANTS[name]
    change(objects)
    told = complaints(objects)
    assert any(said in text for text in told), told


def test_only_the_sidecar_has_a_token_beside_a_release(rendered: dict[str, list[Object]]) -> None:
    objects = copy.deepcopy(rendered["cron-dask"])
    mount = {"name": "kubernetes", "mountPath": "/run/secrets/kubernetes"}
    release(objects)["spec"]["containers"][0]["volumeMounts"].append(mount)
    assert complaints(objects) == ["release: release: token"]


def test_links_of_a_dask_cluster_are_its_own(folder: Path, rendered: dict[str, list[Object]]) -> None:
    policies = [item for item in rendered["cron-dask"] if item["kind"] == "NetworkPolicy"]
    labels = {pod["app.kubernetes.io/component"]: pod for pod, _ in pods(cluster(folder))}
    for policy in rendered["cron-dask"]:
        labels |= {pod["app.kubernetes.io/component"]: pod for pod, _ in pods(policy)}

    def linked(sender: str, receiver: str, port: int) -> bool:
        return allows(policies, "egress", labels[sender], Peer(labels=labels[receiver]), port) and allows(
            policies, "ingress", labels[receiver], Peer(labels=labels[sender]), port
        )

    names = sorted(labels)
    pairs = {(name, other) for name in names for other in names if linked(name, other, 8786)}
    scheduler, worker = "dask-scheduler", "dask-worker"
    assert pairs == {("release", scheduler), (worker, scheduler), (scheduler, worker), (worker, worker)}
    assert not any(linked(name, scheduler, 8787) for name in names), "nobody reaches its HTTP server"
    operator = Peer(labels={"app.kubernetes.io/name": "dask-kubernetes-operator"}, namespace="dask-operator")
    assert not allows(policies, "ingress", labels[scheduler], operator, 8786)
    prometheus = Peer(labels={}, namespace="monitoring")
    reached = {name for name in names if allows(policies, "ingress", labels[name], prometheus, 9100)}
    assert reached == {"metrics"}


def test_the_sidecars_rights_are_over_one_cluster(rendered: dict[str, list[Object]]) -> None:
    role = find(rendered["cron-dask"], "Role", "suffice-dask")
    assert {tuple(rule["resources"]) for rule in role["rules"]} == {("daskclusters",)}
    verbs = {tuple(rule.get("resourceNames", [])): rule["verbs"] for rule in role["rules"]}
    assert verbs == {(): ["create"], ("suffice",): ["get", "delete"]}
    worker = find(rendered["prefect"], "Role", "suffice-prefect-worker")
    resources = {name for rule in worker["rules"] for name in rule["resources"]}
    assert resources == {"jobs", "pods", "pods/log", "pods/status", "events"}
    assert all("*" not in rule["verbs"] + rule["apiGroups"] for rule in worker["rules"] + role["rules"])


def test_pods_that_share_a_disk_share_a_node(rendered: dict[str, list[Object]]) -> None:
    sharing = [
        (labels, spec)
        for item in rendered["cron"]
        for labels, spec in pods(item)
        if any("persistentVolumeClaim" in volume for volume in spec["volumes"])
    ]
    assert len(sharing) == 4
    for labels, spec in sharing:
        (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"]["matchLabels"].items() <= labels.items()
