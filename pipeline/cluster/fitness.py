"""What a worker must be to hold exact sums: behind encrypted links, without a disk, of the same version."""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit


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
