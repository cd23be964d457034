"""Clusters that others started: by address, or by a client that is handed over or returned by a function."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from suffice.errors import ClusterError
from suffice.pipeline.cluster import workers
from suffice.pipeline.cluster.addresses import AnyCluster, client_address, is_hook, scheme_and_host
from suffice.pipeline.cluster.quiet_client import quiet_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOT_ENCRYPTED = (
    "a link of the cluster beyond this machine is not encrypted: use tls://HOST:PORT, with certificates as "
    "`suffice cluster certificates DIR` makes them, in SUFFICE_CLUSTER_CERTIFICATES=DIR"
)
CONNECT_SECONDS = 30
_UNREACHABLE = "the cluster at {} cannot be reached, or its certificates do not match this client's"
_IN_THIS_PROCESS = "the client's cluster is threads of this process: say threads instead"
_NO_HOOK = "--cluster {}: a module cannot be imported here: install it, or set PYTHONPATH"
_HOOK_FAILED = "--cluster {}: the function ended in {}, whose text is withheld: call it by itself to see it"
_NOT_LEFT = "--cluster {}: leaving its client ended in {}: look whether its cluster still runs"
_ENCRYPTED = ("tls", "gateway")
"""Schemes of schedulers' addresses; Dask Gateway's proxy passes TLS on without opening it."""


def import_distributed() -> Any:
    """Import what runs a cluster: it takes a second, and is mostly untyped."""
    import distributed

    return distributed


@contextmanager
def client_of(cluster: AnyCluster, certificates: str | None, notice: Callable[[str], None]) -> Iterator[Any]:
    """Give a client of a cluster that others started, by a link that is closed to strangers."""
    if isinstance(cluster, str) and not is_hook(cluster):
        with _remote_client(cluster, certificates) as client:
            yield client
        return
    with quiet_client(), _given_client(cluster, notice) as client:
        yield client


@contextmanager
def _remote_client(address: str, certificates: str | None) -> Iterator[Any]:
    scheme, host = scheme_and_host(address)
    if scheme == "tcp" and not workers.is_loopback(host):
        raise ClusterError(NOT_ENCRYPTED)
    tls = _client_tls(certificates) if scheme == "tls" and certificates is not None else {}
    distributed = import_distributed()
    with quiet_client(), _connected(distributed, address, scheme, tls) as client:
        yield client


@contextmanager
def _connected(distributed: Any, address: str, scheme: str, tls: dict[str, str]) -> Iterator[Any]:
    # In two steps: a client that cannot connect must be closed here, and not when it happens to be
    # collected, perhaps by the thread that its closing would wait for.
    client = distributed.Client.__new__(distributed.Client)
    try:
        security = distributed.Security(require_encryption=scheme == "tls", **tls)
        client.__init__(address, security=security, set_as_default=False, timeout=CONNECT_SECONDS)
    except Exception:  # noqa: BLE001 - wrong certificates alone raise four types
        with suppress(Exception):
            client.close()
        where = f"{scheme}://{urlsplit(address).netloc}"  # what stands behind it is not repeated
        raise ClusterError(_UNREACHABLE.format(where)) from None
    with client:
        yield client


def _client_tls(certificates: str) -> dict[str, str]:
    from suffice.pipeline.cluster.certificates import client_files  # threads need none

    authority, certificate, key = map(str, client_files(Path(certificates)))
    return {"tls_ca_file": authority, "tls_client_cert": certificate, "tls_client_key": key}


@contextmanager
def _given_client(cluster: AnyCluster, notice: Callable[[str], None]) -> Iterator[Any]:
    """Give a client that was handed over, or that a function returns, if its link is closed to strangers.

    Raises
    ------
    UsageError, ClusterError
        Where there is none, or others can read its link.
    """
    given = _hooked(cluster, notice) if isinstance(cluster, str) else nullcontext(cluster)
    with given as client:
        parts = urlsplit(client_address(client))
        if parts.scheme == "inproc":
            raise ClusterError(_IN_THIS_PROCESS)
        if parts.scheme not in _ENCRYPTED and not workers.is_loopback(parts.hostname or ""):
            raise ClusterError(NOT_ENCRYPTED)
        yield client


@contextmanager
def _hooked(hook: str, notice: Callable[[str], None]) -> Iterator[Any]:
    """Call a hook, and leave what it returned; it hears of no error, whose frames may hold exact sums."""
    try:
        with redirect_stdout(sys.stderr):  # where documents are printed, nobody else prints
            module, name = hook.split(":")
            context = getattr(importlib.import_module(module), name)()
            client = context.__enter__()
    except ModuleNotFoundError:
        raise ClusterError(_NO_HOOK.format(hook)) from None
    except Exception as error:  # noqa: BLE001 - its text may hold a password
        raise ClusterError(_HOOK_FAILED.format(hook, type(error).__name__)) from None
    try:
        yield client
    finally:
        try:
            context.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - the run is over, and its end does not hang on this
            notice(_NOT_LEFT.format(hook, type(error).__name__))
