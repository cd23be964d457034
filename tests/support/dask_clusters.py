"""Clusters that somebody else started: a scheduler to connect to, and its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import distributed

from support.night import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.black_hole import BlackHole

NO_SPILLING = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}


def by_address(n_workers: int = 1) -> Any:
    """Start a scheduler on the loopback, with workers in processes of their own."""
    return distributed.LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        protocol="tcp://",
        dashboard_address="127.0.0.1:0",
    )


@contextmanager
def in_processes(
    directory: Path, *, preload: str | None = None, behind: BlackHole | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler that can be killed, and one worker; yield its address and its process.

    The worker may be given a module to import before it does anything. A second one may be behind a black
    hole: whatever it sends and gets comes through that.
    """
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    settings = {f"DASK_{name.upper().replace('.', '__')}": str(value) for name, value in NO_SPILLING.items()}
    here = ["--host", "127.0.0.1"]
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", program, *words, "--no-dashboard"],
                env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join(sys.path)},
                stderr=subprocess.DEVNULL,
            )
        )
        return started[-1]

    try:
        scheduler = start("distributed.cli.dask_scheduler", *here, "--port", str(port))
        worker = ["--no-nanny", "--nthreads", "1", "--local-directory", str(directory)]
        held = ["--preload", preload] if preload else []
        start("distributed.cli.dask_worker", address, *here, *worker, *held)
        if behind is not None:
            own_port = free_port()
            listens = ["--listen-address", f"tcp://127.0.0.1:{own_port}"]
            seen = ["--contact-address", f"tcp://127.0.0.1:{behind.lead_to(own_port)}"]
            through = f"tcp://127.0.0.1:{behind.lead_to(port)}"
            start("distributed.cli.dask_worker", through, *worker, *listens, *seen)
        yield address, scheduler
    finally:
        for process in started:
            process.kill()
            process.wait()
