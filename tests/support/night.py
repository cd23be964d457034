"""Everything that a nightly release needs, as processes that a test may kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from distributed import Security

from support.held_reading import PLACE as READING_PLACE
from support.prefect_server import PLACE as DRAWN_PLACE
from support.prefect_server import PrefectServer, waited_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

POOL = "nightly"
_UNSPILLED = {
    f"DASK_DISTRIBUTED__WORKER__MEMORY__{name}": "False" for name in ("TARGET", "SPILL", "PAUSE", "TERMINATE")
}
_LOUD = {
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
    "PREFECT_LOGGING_LOG_PRINTS": "true",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "suffice,dask,distributed",
    "PREFECT_LOGGING_LEVEL": "INFO",
    "DASK_LOGGING__DISTRIBUTED": "debug",
}
"""Results persisted, prints and other loggers logged, and the cluster at its loudest."""


def free_port() -> int:
    """Return a port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(kw_only=True)
class Service:
    """A program that is started, killed and started again; its output goes to one file."""

    words: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what it wrote before stays."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *self.words],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it, as a machine that loses power does: it does nothing more. What it started lives on."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)

    def end(self) -> None:
        """End it with all that it started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)


@dataclass(kw_only=True)
class Night:
    """A place with a server, a worker, and a cluster of a scheduler and one process that reads.

    Attributes
    ----------
    directory : Path
        Of all logs, of Prefect's database, of the spool.
    variables : mapping of str to str
        For the worker and for who reads: ledger, store, logins.
    server_settings : Path
        The settings of a server that are shipped, as lines of ``NAME=VALUE``.
    """

    directory: Path
    variables: Mapping[str, str]
    server_settings: Path
    prefect_server: PrefectServer = field(init=False)
    server: Service = field(init=False)
    worker: Service = field(init=False)
    scheduler: Service = field(init=False)
    reader: Service = field(init=False)

    def __post_init__(self) -> None:
        """Lay out the processes; start none."""
        home = self.directory / "prefect"
        home.mkdir()
        port, scheduler_port = free_port(), free_port()
        self.prefect_server = PrefectServer(url=f"http://127.0.0.1:{port}/api", home=home)
        self.cluster = f"tls://127.0.0.1:{scheduler_port}"
        base = {**os.environ, **_LOUD, **_UNSPILLED, **self._certificates()}
        serving = {
            **_shipped_settings(self.server_settings),
            "PREFECT_SERVER_DATABASE_TIMEOUT": "60",  # its SQLite has one writer at a time
            "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
            "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "1",
            "PREFECT_SERVER_SERVICES_SCHEDULER_MIN_RUNS": "2",
            "PREFECT_SERVER_SERVICES_SCHEDULER_MAX_RUNS": "3",
        }
        environment = self.prefect_server.environment()
        self.server = self._service(
            "server",
            ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            {key: text for key, text in environment.items() if key != "PREFECT_API_URL"} | serving,
        )
        self.worker = self._service(
            "worker",
            ["prefect", "worker", "start", "--pool", POOL, "--name", POOL],
            {
                **base,
                **environment,
                **_LOUD,
                **self.variables,
                "SUFFICE_CLUSTER": self.cluster,
                "SUFFICE_SPOOL": str(self.directory / "spool"),
                "PREFECT_WORKER_QUERY_SECONDS": "1",
                DRAWN_PLACE: str(self.directory),
            },
        )
        listening = ["--protocol", "tls", "--host", "127.0.0.1", "--no-dashboard"]
        paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.scheduler = self._service(
            "scheduler",
            ["distributed.cli.dask_scheduler", *listening, "--port", str(scheduler_port)],
            {**base, **paths},
        )
        self.reader = self._service(
            "reader",
            [
                "distributed.cli.dask_worker",
                self.cluster,
                *listening,
                "--no-nanny",
                "--nthreads",
                "2",
                "--preload",
                "support.held_reading",
                "--local-directory",
                str(self.directory / "scratch"),
            ],
            {**base, **paths, **self.variables, READING_PLACE: str(self.directory)},
        )

    def start(self) -> None:
        """Start everything, and wait until the server and the worker are there."""
        for service in (self.server, self.scheduler, self.reader):
            service.start()
        self.wait_for_server()
        self.prefect_server.post("/work_pools/", {"name": POOL, "type": "process"})
        self.worker.start()

    def wait_for_server(self) -> None:
        """Wait until the server answers."""

        def healthy() -> bool | None:
            with suppress(OSError):
                return bool(self.prefect_server.get("/health")) or None
            return None

        waited_for(healthy, "the server")

    def end(self) -> None:
        """End everything."""
        for service in (self.worker, self.reader, self.scheduler, self.server):
            service.end()

    def deploy(self, entrypoint: str, parameters: dict[str, Any], **more: Any) -> str:
        """Make a deployment, and return its id."""
        flow = self.prefect_server.post("/flows/", {"name": entrypoint.rpartition(".")[2].replace("_", "-")})
        asked = {
            "name": f"test-{time.monotonic_ns()}",
            "flow_id": flow["id"],
            "work_pool_name": POOL,
            "entrypoint": entrypoint,
            "path": ".",
            "parameters": parameters,
            **more,
        }
        return str(self.prefect_server.post("/deployments/", asked)["id"])

    def taken_slots(self, dataset: str) -> int:
        """Return how many runs hold a dataset, as the server sees it; a limit that nobody made has none."""
        limits = self.prefect_server.post("/v2/concurrency_limits/filter", {})
        return sum(limit["active_slots"] for limit in limits if limit["name"] == f"suffice-{dataset}")

    def run(self, deployment: str) -> str:
        """Have a run of a deployment started now, and return its id."""
        asked = {"state": {"type": "SCHEDULED"}}
        return str(self.prefect_server.post(f"/deployments/{deployment}/create_flow_run", asked)["id"])

    def runs_of(self, deployment: str) -> list[dict[str, Any]]:
        """Return the runs of a deployment."""
        asked = {"deployments": {"id": {"any_": [deployment]}}}
        runs: list[dict[str, Any]] = self.prefect_server.post("/flow_runs/filter", asked)
        return runs

    def _service(self, name: str, words: list[str], environment: dict[str, str]) -> Service:
        return Service(words=words, environment=environment, log=self.directory / f"{name}.log")

    def _certificates(self) -> dict[str, str]:
        """Write one certificate for all, and return what leads Dask to it."""
        made = Security.temporary()  # type: ignore[no-untyped-call]
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        certificate.write_text(made.tls_scheduler_cert)
        key.write_text(made.tls_scheduler_key)
        key.chmod(0o600)
        named = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(certificate)}
        for role in ("CLIENT", "SCHEDULER", "WORKER"):
            named[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(certificate)
            named[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(key)
        return named


def _shipped_settings(path: Path) -> dict[str, str]:
    """Read the lines of a file for an environment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
