"""A real Prefect server for a whole test run, spoken to over its API, and what tests put around it.

Nothing here imports Prefect: that would start its machinery in the test run.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeVar

from suffice.flows.embedded import embedded_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Self

Found = TypeVar("Found")

FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
PATIENCE_S = 240.0
PLACE = "HELD_FLOW_PLACE"
"""The variable that names a held flow's folder: it makes the file ``drawn``, and waits for ``go``."""
REPORTING = "HELD_FLOW_REPORTING"
"""The variable that gives a held flow other seconds to report its end in."""
WAITING = "HELD_FLOW_WAITING"
"""The variable that gives a held flow other seconds in which it waits for its dataset."""
BUSY = 503
"""What the server answers while another of its writers holds its SQLite file."""

_SOONER = {
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
    "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_SCHEDULER_MIN_RUNS": "2",
    "PREFECT_SERVER_SERVICES_SCHEDULER_MAX_RUNS": "3",
}
"""So that a test need not wait a minute for what a server does by itself."""


@dataclass(frozen=True)
class PrefectServer:
    """A running server.

    Attributes
    ----------
    url : str
        Of its API.
    home : Path
        Where its database and its log are.
    """

    url: str
    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a process that uses this server."""
        return {
            **embedded_environment(self.home),
            "PREFECT_API_URL": self.url,
            "PYTHONPATH": os.pathsep.join(sys.path),
            **more,
        }

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        """Post a document, and return the answer."""
        return self._answer(path, json.dumps(document).encode())

    def get(self, path: str) -> Any:
        """Return what stands at a path."""
        return self._answer(path, None)

    def new_run(self, flow: str, parameters: Mapping[str, Any]) -> str:
        """Make a run of a flow that no worker will start, and return its id."""
        flow_id = self.post("/flows/", {"name": flow})["id"]
        asked = {"flow_id": flow_id, "parameters": dict(parameters), "state": {"type": "PENDING"}}
        return str(self.post("/flow_runs/", asked)["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """Return a run as the server has it."""
        document: dict[str, Any] = self.get(f"/flow_runs/{run_id}")
        return document

    def ended(
        self, run_id: str, *, names: set[str] | None = None, seconds: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Wait until a run is in a final state, or in one of these names, and return that state."""

        def state() -> dict[str, Any] | None:
            document: dict[str, Any] = self.run(run_id)["state"]
            return document if (document["name"] in names if names else document["type"] in FINAL) else None

        return waited_for(state, f"the end of run {run_id}", seconds)

    def events(self, prefix: str, is_all: Callable[[list[dict[str, Any]]], Any]) -> list[dict[str, Any]]:
        """Return the events of this session whose names begin so, newest first, once they are all there.

        A server writes events down some seconds after it was told of them.
        """
        asked = {"filter": {"event": {"prefix": [prefix]}}, "limit": 50}

        def matching() -> list[dict[str, Any]] | None:
            events: list[dict[str, Any]] = self.post("/events/filter", asked)["events"]
            return events if is_all(events) else None

        return waited_for(matching, f"the events {prefix}")

    def _answer(self, path: str, body: bytes | None) -> Any:
        headers = {"content-type": "application/json"}
        asked = urllib.request.Request(f"{self.url}{path}", data=body, headers=headers)  # noqa: S310 - our own server
        for pause in (1, 2, 4, 8, 0):
            try:
                with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:  # noqa: S310
                    content = answer.read()
                return json.loads(content) if content else None
            except urllib.error.HTTPError as error:
                if error.code != BUSY or not pause:
                    raise
            time.sleep(pause)
        raise AssertionError


def waited_for(look: Callable[[], Found | None], what: str, seconds: float = PATIENCE_S) -> Found:
    """Look until there is something, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (seen := look()) is not None:
            return seen
        time.sleep(0.25)
    message = f"waited {seconds:.0f} s for {what}"
    raise AssertionError(message)


@contextmanager
def running_server(home: Path) -> Iterator[PrefectServer]:
    """Start a server of the tests' own, with its pages, for as long as the block lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = PrefectServer(url=f"http://127.0.0.1:{port}/api", home=home)
    words = ["server", "start", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**embedded_environment(home), **_SOONER, "PREFECT_UI_API_URL": server.url}
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *words], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            waited_for(lambda: True if _is_healthy(server) else None, "the server")
            yield server
        finally:
            process.terminate()
            process.wait(30)


def _is_healthy(server: PrefectServer) -> bool:
    with suppress(OSError):
        return bool(server.get("/health"))
    return False


@contextmanager
def running_worker(server: PrefectServer, pool: str, log: Path, **more: str) -> Iterator[None]:
    """Run a worker of a pool for as long as the block lasts."""
    words = ["worker", "start", "--pool", pool, "--name", pool]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *words],
            env=server.environment(PREFECT_WORKER_QUERY_SECONDS="1", **more),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


class Webhook:
    """An HTTP server that keeps the documents posted to it.

    Attributes
    ----------
    url : str
    posted : list of dict
    """

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        posted = self.posted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Gate:
    """A TCP proxy before the server, which can be shut: then the server has vanished.

    Attributes
    ----------
    url : str
        The server's API through the gate.
    """

    def __init__(self, server: PrefectServer) -> None:
        host, port = server.url.removeprefix("http://").removesuffix("/api").split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/api"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Cut every connection, and refuse new ones from now on."""
        for end in (self._listener, *self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
