"""What names a cluster: a text, or a client. It is read without the packages that run clusters."""

from __future__ import annotations

import re
import sys
from typing import Any
from urllib.parse import urlsplit

from suffice.errors import ClusterError, UsageError

AnyCluster = str | Any
"""What `open_cluster` takes: a text, or a ``distributed.Client``, whose package not every caller has."""

_CLOSED = "cluster: the client is closed, or has lost its scheduler: hand over another"
_ASYNCHRONOUS = "cluster: the client is asynchronous: hand over one that is not"
_NO_CLUSTER = (
    "cluster: a {} is given: say threads, local, an address or MODULE:FUNCTION, or hand over a "
    "distributed.Client, as cluster.get_client() returns it"
)
_HOOK = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def client_address(client: Any) -> str:
    """Return the address of the scheduler that a client is connected to.

    Raises
    ------
    UsageError
        Where it is no client, or one that nobody here can wait for.
    ClusterError
        Where it is closed.
    """
    distributed = sys.modules.get("distributed")  # nobody has a client without it
    if distributed is None or not isinstance(client, distributed.Client):
        raise UsageError(_NO_CLUSTER.format(type(client).__name__))
    if client.asynchronous:
        raise UsageError(_ASYNCHRONOUS)
    if client.status != "running" or client.scheduler is None:
        raise ClusterError(_CLOSED)
    return str(client.scheduler.address)


def is_hook(cluster: str) -> bool:
    """Tell whether a text names a function that returns a client, as ``MODULE:FUNCTION``."""
    return _HOOK.fullmatch(cluster) is not None


def scheme_and_host(address: str) -> tuple[str, str]:
    """Split a scheduler's address; its text is not repeated in errors, as it might hold a password.

    Raises
    ------
    UsageError
    """
    try:
        parts = urlsplit(address)
        well_formed = parts.scheme in {"tls", "tcp"} and parts.hostname and parts.port and "@" not in address
    except ValueError:
        well_formed = False
    if not well_formed:
        message = (
            "--cluster is threads, local, or the address of a Dask scheduler, as tls://HOST:8786; or "
            "MODULE:FUNCTION, which returns a client"
        )
        raise UsageError(message)
    return parts.scheme, str(parts.hostname)
