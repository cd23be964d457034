"""Clusters that somebody else started: a scheduler to connect to, and its workers."""

from __future__ import annotations

from typing import Any

import distributed

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
