"""The sidecar that has a run's Dask cluster made: against a server that keeps objects as Kubernetes does.

The server is ours, and stands for Kubernetes and the operator of dask-kubernetes, which cannot be run here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from support.manifests import pod_complaints, pods, schema_complaints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PREFIX = "/apis/kubernetes.dask.org/v1/namespaces/suffice/daskclusters"


class Kubernetes(ThreadingHTTPServer):
    """Keeps one namespace's DaskClusters, for whoever has the token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.clusters: dict[str, Any] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Kubernetes

    def answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.server.asked.append(f"{self.command} {status}")
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def is_known(self) -> bool:
        return self.headers["Authorization"] == "Bearer telling" and self.path.startswith(PREFIX)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body["metadata"]["name"]
        if not self.is_known() or self.path != PREFIX:
            self.answer(403, {})
        elif name in self.server.clusters:
            self.answer(409, {})
        else:
            self.server.clusters[name] = body
            self.answer(201, body)

    def do_GET(self) -> None:
        cluster = self.server.clusters.get(self.path.removeprefix(PREFIX + "/"))
        self.answer(200 if cluster and self.is_known() else 404, cluster or {})

    def do_DELETE(self) -> None:
        cluster = (
            self.server.clusters.pop(self.path.removeprefix(PREFIX + "/"), None) if self.is_known() else None
        )
        self.answer(200 if cluster else 404, {})

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def kubernetes() -> Iterator[Kubernetes]:
    with Kubernetes() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def scheduler() -> Iterator[str]:
    """Return an address where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def started(
    kubernetes: Kubernetes, scheduler: str, repository: Path, tmp_path: Path
) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Return what starts the sidecar of a pod; its ready file is named after the pod."""
    (tmp_path / "token").write_text("telling\n", encoding="ascii")
    running: list[subprocess.Popen[bytes]] = []

    def start(pod: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "IMAGE": "registry.example.org/other:2",
            "WORKERS": "7",
            "POD_NAME": pod,
            "POD_UID": f"uid-of-{pod}",
            "NAMESPACE": "suffice",
            "KUBERNETES_API": kubernetes.url,
            "KUBERNETES_CREDENTIALS": str(tmp_path),
            "SCHEDULER": scheduler,
            "READY": str(tmp_path / pod),
        }
        script = repository / "deploy/kubernetes/components/dask/run_cluster.py"
        made = subprocess.Popen([sys.executable, "-S", str(script)], env=environment, stderr=subprocess.PIPE)
        running.append(made)
        return made

    yield start
    for cluster in running:
        cluster.kill()
        cluster.communicate()


def waited_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_cluster_lives_as_long_as_its_run(
    kubernetes: Kubernetes, started: Callable[[str], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    sidecar = started("release-1")
    waited_until((tmp_path / "release-1").exists)
    (made,) = kubernetes.clusters.values()
    assert schema_complaints(made) == []
    assert made["spec"]["worker"]["replicas"] == 7
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "release-1", "uid": "uid-of-release-1"}
    assert made["metadata"]["ownerReferences"] == [owner]
    for _, spec in pods(made):
        assert pod_complaints(spec) == []
        assert [container["image"] for container in spec["containers"]] == ["registry.example.org/other:2"]
    sidecar.send_signal(signal.SIGTERM)
    assert sidecar.wait(30) == 0
    assert kubernetes.clusters == {}
    assert not (tmp_path / "release-1").exists()


def test_a_second_run_waits_and_takes_no_cluster_but_its_own(
    kubernetes: Kubernetes, started: Callable[[str], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    kubernetes.clusters["suffice"] = {"metadata": {"ownerReferences": [{"uid": "uid-of-another"}]}}
    waiting = started("release-2")
    waited_until(lambda: "GET 200" in kubernetes.asked)
    assert not (tmp_path / "release-2").exists()
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(30) == 0
    assert "suffice" in kubernetes.clusters, "the other run's stays"
    assert not any(request.startswith("DELETE") for request in kubernetes.asked)
    # A sidecar that was started anew finds its own.
    kubernetes.clusters["suffice"] = {"metadata": {"ownerReferences": [{"uid": "uid-of-release-3"}]}}
    started("release-3")
    waited_until((tmp_path / "release-3").exists)


def test_the_release_does_not_start_before_the_scheduler_listens(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repository / "deploy/kubernetes/components/dask/run_cluster.py"
    specification = importlib.util.spec_from_file_location("run_cluster", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["run_cluster"] = module
    specification.loader.exec_module(module)
    monkeypatch.setattr(module, "SECONDS", 0.05)
    cluster = {"metadata": {"name": "suffice", "ownerReferences": [{"uid": "a"}]}}
    asked: list[str] = []

    class Api:
        def ask(self, method: str, name: str = "", body: object = None) -> tuple[int, dict[str, Any]]:
            asked.append(f"{method} {name}{'' if body is None else 'suffice'}")
            return (201 if method == "POST" else 200), {}

    stopped, ready = threading.Event(), tmp_path / "ready"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = threading.Thread(target=module.run, args=(Api(), cluster, ("127.0.0.1", port), ready, stopped))
    running.start()
    time.sleep(0.3)
    assert asked == ["POST suffice"]
    assert not ready.exists()
    with socket.create_server(("127.0.0.1", port)):
        waited_until(ready.exists)
        stopped.set()
        running.join(30)
    assert asked == ["POST suffice", "DELETE suffice"]
