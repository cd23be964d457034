"""A TCP proxy before a PostgreSQL server that cuts a connection around its next COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from support.postgres import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMIT = b"COMMIT\x00"


class Cut(StrEnum):
    """What becomes of the next COMMIT."""

    BEFORE = "before"
    """It never reaches the server, whose session ends."""
    AT_ONCE = "at_once"
    """It reaches the server, and both connections end in the same moment."""
    AFTER = "after"
    """The server carries it out, and the answer is lost."""
    HELD = "held"
    """It never reaches the server, whose session lives on with all its locks."""
    SWALLOWED = "swallowed"
    """The same, and nobody's connection ends."""


class CuttingProxy:
    """Passes everything on, until :meth:`arm` is called.

    Attributes
    ----------
    url : str
        The database through the proxy.
    n_cuts : int
    refusing : bool
        Whether new connections are refused from the next cut on.
    """

    def __init__(self, url: str) -> None:
        self._target = connect(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        address = make_url(url).difference_update_query(["host", "port"])
        address = address.set(host="127.0.0.1", port=self._listener.getsockname()[1])
        address = address.update_query_dict({"sslmode": "disable", "gssencmode": "disable"})
        self.url = address.render_as_string(hide_password=False)
        self.n_cuts = 0
        self.refusing = False
        self._closed_to_all = False
        self._cut: Cut | None = None
        self._open: list[socket.socket] = []
        self._passing_on: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def arm(self, cut: Cut, *, refusing: bool = False) -> None:
        """Cut at the next COMMIT that passes; with `refusing`, let nobody in afterwards."""
        self._cut, self.refusing = cut, refusing

    def mend(self) -> None:
        """Let everybody in again."""
        self._closed_to_all = False

    def close(self) -> None:
        """End every connection, and wait until nobody waits for one."""
        self._closed_to_all = True
        _end(self._listener)
        self._accepting.join()
        _end(*self._open)
        for thread in self._passing_on:
            thread.join()
        for end in (self._listener, *self._open):
            end.close()
        self._target.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._closed_to_all:
                    client.close()
                    continue
                server = self._connect()
                self._open += [client, server]
                for pass_on in (self._forward, self._backward):
                    thread = threading.Thread(target=pass_on, args=(client, server), daemon=True)
                    self._passing_on.append(thread)
                    thread.start()

    def _connect(self) -> socket.socket:
        info = self._target.info
        if info.host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{info.host}/.s.PGSQL.{info.port}")
            return server
        return socket.create_connection((info.host, info.port))

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self._cut is not None and data.endswith(_COMMIT):
                    self._cut_off(self._cut, client, server, data)
                    return
                server.sendall(data)
        _end(client, server)

    def _backward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        _end(client)

    def _cut_off(self, cut: Cut, client: socket.socket, server: socket.socket, data: bytes) -> None:
        self._cut = None
        self.n_cuts += 1
        self._closed_to_all = self.refusing
        if cut is Cut.AFTER:
            _end(client)  # first, so that no answer passes
            server.sendall(data)
            self._wait_until_idle()
            _end(server)
        elif cut is Cut.AT_ONCE:
            _end(client)
            server.sendall(data)
            _end(server)
        elif cut is Cut.BEFORE:
            _end(client, server)
        elif cut is Cut.HELD:
            _end(client)

    def _wait_until_idle(self) -> None:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND state <> 'idle'"
        )
        while self._target.execute(query).fetchone() != (0,):
            pass


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting_proxy(url: str) -> Iterator[CuttingProxy]:
    """Give a proxy before a database for as long as the block lasts."""
    proxy = CuttingProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
