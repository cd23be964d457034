"""What a worker must be to hold exact sums: behind encrypted links, without a disk, of the same version.

A scheduler imports it too: there it keeps out an unfit worker that joins while a run lasts.
"""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from distributed import WorkerPlugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Worker


class Admission(WorkerPlugin):
    """Closes a worker that could not have been there when the run began; readies all others.

    Dask sets plugins up before a worker hears of its first task, so it gets no data. A worker that lacks
    suffice cannot read this plugin, and does not start either.

    Parameters
    ----------
    caller : str
        The version of suffice that the run has.
    prepare : callable or None
        Called on every worker that is let in: a function that can be imported there.
    """

    def __init__(self, caller: str, prepare: Callable[[], None] | None = None) -> None:
        self._caller = caller
        self._prepare = prepare

    async def setup(self, worker: Worker) -> None:
        """Close the worker unless it is fit, and its log says why; else prepare it.

        It may get results of others before it runs a task.
        """
        reason = objection(worker, self._caller)
        if reason is not None:
            await worker.close(executor_wait=False, reason=f"refused by a run of suffice: {reason}")
            return
        if self._prepare is not None:
            self._prepare()


class Objection(StrEnum):
    """Why a worker may not take part."""

    OPEN_LINK = "a link beyond this machine is not encrypted"
    MAY_SPILL = "it may write its memory to disk"
    OTHER_VERSION = "it has another version of suffice"


def objection(dask_worker: Any, caller: str) -> Objection | None:
    """Say, on a worker, why it may not take part in the run of a caller with this version of suffice."""
    if is_open(dask_worker.contact_address):
        return Objection.OPEN_LINK
    if may_spill(dask_worker):
        return Objection.MAY_SPILL
    return None if version("suffice") == caller else Objection.OTHER_VERSION


def is_open(address: str) -> bool:
    """Tell whether others can read a link to this address."""
    parts = urlsplit(address)
    return parts.scheme != "tls" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def may_spill(worker: Any) -> bool:
    """Tell whether a worker may write its memory to disk."""
    # A worker that never spills holds its data in a plain dict, any other in a buffer that writes to disk.
    return type(worker.data) is not dict
