"""Has the Dask operator make the cluster of one run, and removes it when the run is over.

It runs beside the release, in a container of its own that alone holds a token of Kubernetes. It asks for the
DaskCluster in `cluster.json`, waits until its scheduler listens, writes the file that lets the release start,
and deletes the cluster at SIGTERM, which Kubernetes sends when the release has ended. The cluster belongs to
the pod, so that Kubernetes removes it with a pod that died. There is one at a time: a second run waits until
the first one's is gone. Only what Python comes with is imported.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

SECONDS = 5
TIMEOUT = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Kubernetes' interface for the DaskClusters of one namespace."""

    url: str
    credentials: Path

    def ask(self, method: str, name: str = "", body: object = None) -> tuple[int, dict[str, Any]]:
        """Return the status and the document of an answer; status 0 where none came."""
        token = (self.credentials / "token").read_text(encoding="ascii").strip()  # it is renewed now and then
        request = urllib.request.Request(  # noqa: S310 - https, but for tests
            f"{self.url}/{name}" if name else self.url,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        authority = self.credentials / "ca.crt"
        context = ssl.create_default_context(cafile=str(authority)) if authority.exists() else None
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, {}
        except (OSError, ValueError):
            return 0, {}


def owned(cluster: dict[str, Any], *, image: str, workers: int, pod: str, uid: str) -> dict[str, Any]:
    """Return the cluster with this image and number of workers, as a pod's own."""
    reference = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}
    metadata = {**cluster["metadata"], "ownerReferences": [reference]}
    spec = json.loads(json.dumps(cluster["spec"]))
    spec["worker"]["replicas"] = workers
    for role in ("scheduler", "worker"):
        for container in spec[role]["spec"]["containers"]:
            container["image"] = image
    return {**cluster, "metadata": metadata, "spec": spec}


def make(api: Api, cluster: dict[str, Any], stopped: threading.Event) -> bool:
    """Ask for the cluster until it is there, and ours; False where we were stopped before."""
    name, mine = cluster["metadata"]["name"], cluster["metadata"]["ownerReferences"][0]["uid"]
    said = ""
    while not stopped.is_set():
        status, _ = api.ask("POST", body=cluster)
        if status == HTTPStatus.CREATED:
            return True
        if status == HTTPStatus.CONFLICT:
            _, there = api.ask("GET", name)
            if any(
                owner.get("uid") == mine for owner in there.get("metadata", {}).get("ownerReferences", [])
            ):
                return True  # this container was started anew
        text = "waiting for another run's cluster" if status == HTTPStatus.CONFLICT else f"status {status}"
        if text != said:
            say(f"cannot make the cluster yet: {text}")
            said = text
        stopped.wait(SECONDS)
    return False


def listens(host: str, port: int) -> bool:
    """Tell whether somebody accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=SECONDS):
            return True
    except OSError:
        return False


def say(text: str) -> None:
    """Write a line to the container's log."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def run(
    api: Api, cluster: dict[str, Any], address: tuple[str, int], ready: Path, stopped: threading.Event
) -> int:
    """Keep the cluster from now until we are stopped; return the exit status."""
    if not make(api, cluster, stopped):
        return 0
    say("the cluster was asked for")
    while not stopped.is_set() and not listens(*address):
        stopped.wait(SECONDS)
    if not stopped.is_set():
        ready.touch()
        say("the scheduler listens")
        stopped.wait()
    ready.unlink(missing_ok=True)
    status, _ = api.ask("DELETE", cluster["metadata"]["name"])
    if status in {HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND}:
        say("the cluster was removed")
        return 0
    say(f"the cluster could not be removed: status {status}; it goes with this pod")
    return 1


def main() -> int:
    """Do it with what the pod states."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    cluster = json.loads((Path(__file__).parent / "cluster.json").read_text(encoding="utf-8"))
    mine = owned(
        cluster,
        image=os.environ["IMAGE"],
        workers=int(os.environ["WORKERS"]),
        pod=os.environ["POD_NAME"],
        uid=os.environ["POD_UID"],
    )
    host = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")
    namespace = os.environ["NAMESPACE"]
    api = Api(
        url=f"{host}/apis/kubernetes.dask.org/v1/namespaces/{namespace}/daskclusters",
        credentials=Path(os.environ.get("KUBERNETES_CREDENTIALS", "/run/secrets/kubernetes")),
    )
    service = os.environ.get("SCHEDULER", f"{cluster['metadata']['name']}-scheduler:8786")
    name, _, port = service.rpartition(":")
    ready = Path(os.environ.get("READY", "/run/dask/ready"))
    return run(api, mine, (name, int(port)), ready, stopped)


if __name__ == "__main__":
    sys.exit(main())
