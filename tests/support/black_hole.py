"""A link that can be made to swallow all that is sent over it, as a firewall does: nobody gets an error."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 16


@dataclass
class BlackHole:
    """Ports on the loopback, each of which leads to another one.

    Attributes
    ----------
    swallows : threading.Event
        Once it is set nothing comes through, in either direction, and no connection is closed.
    """

    swallows: threading.Event = field(default_factory=threading.Event)
    _sockets: list[socket.socket] = field(default_factory=list)

    def lead_to(self, port: int) -> int:
        """Return a port that leads to another, on which somebody listens by the time that it is used."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._sockets.append(listener)
        self._start(self._accept, listener, port)
        return int(listener.getsockname()[1])

    def close(self) -> None:
        """Close everything."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener: socket.socket, port: int) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                self._sockets += [near, far]
                self._start(self._forward, near, far)
                self._start(self._forward, far, near)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                if not self.swallows.is_set():
                    target.sendall(piece)
            if not self.swallows.is_set():
                target.shutdown(socket.SHUT_WR)

    def _start(self, work: object, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]


@contextmanager
def black_hole() -> Iterator[BlackHole]:
    """Give links that are closed when the block ends."""
    made = BlackHole()
    try:
        yield made
    finally:
        made.close()
