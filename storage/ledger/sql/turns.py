"""Turns of those who write to a ledger in a file: first come, first served.

SQLite lets whoever asks at the right moment have its lock. Writers therefore take a ticket first, in a file
beside the ledger, and wait until all earlier tickets are gone. A ticket is a lock on one byte of that file:
the kernel takes it back from whoever dies. Nothing but fairness rests on it: SQLite's own lock still keeps
writers apart, and whoever finds that nothing moves goes past the ticket that is in the way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_OFFERED = hasattr(fcntl, "F_OFD_SETLK")
"""Whether this system has locks that belong to an open file: threads of one process are told apart."""
_LOCK = "hhqqi4x"
_COUNTERS = struct.Struct("=QQ")
"""What the file holds: the last ticket given out, and the last one that was served."""
_DOOR = 0
_FIRST = 16
"""The byte of ticket 0; the door, behind which tickets are given out, is byte 0."""
_SHORTEST, _LONGEST = 0.0005, 0.02
"""Seconds between two looks at the queue: for the next in turn, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPatience:
    """How long to wait, in seconds.

    Attributes
    ----------
    door : float
        For a ticket; without one, a writer goes for SQLite's lock as it is.
    standstill : float
        While nobody is served and SQLite's lock is free: then the tickets in the way are passed.
    turn : float
        At most for one's turn.
    """

    door: float = 1.0
    standstill: float = 2.0
    turn: float = 60.0


PATIENCE = TurnPatience()


@contextmanager
def turn(path: Path, *, is_free: Callable[[], bool], patience: TurnPatience = PATIENCE) -> Iterator[None]:
    """Wait for one's turn, and keep it until the context ends.

    Parameters
    ----------
    path : Path
        The file of the queue; made where there is none. Where it cannot be made, there are no turns.
    is_free : callable
        Tells whether SQLite's own lock could be had now.
    patience : TurnPatience
    """
    descriptor = _open(path) if _OFFERED else None
    if descriptor is None:
        yield
        return
    try:
        ticket = _take_ticket(descriptor, patience)
        if ticket is not None:
            _wait(descriptor, ticket, is_free, patience)
        try:
            yield
        finally:
            if ticket is not None:
                _note_served(descriptor, ticket)
    finally:
        os.close(descriptor)  # gives the ticket back


def _open(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None


def _take_ticket(descriptor: int, patience: TurnPatience) -> int | None:
    deadline = time.monotonic() + patience.door
    while not _lock(descriptor, _DOOR):
        if time.monotonic() > deadline:
            return None
        time.sleep(_SHORTEST)
    try:
        given, served = _counters(descriptor)
        ticket = max(given, served) + 1
        if not _lock(descriptor, _FIRST + ticket):  # a counter that went back: its owner still waits
            return None
        os.pwrite(descriptor, _COUNTERS.pack(ticket, served), 0)
    except OSError:  # a full disk
        return None
    else:
        return ticket
    finally:
        _unlock(descriptor, _DOOR)


def _wait(descriptor: int, ticket: int, is_free: Callable[[], bool], patience: TurnPatience) -> None:
    begun = moved = time.monotonic()
    _, served = _counters(descriptor)
    while _anyone_in(descriptor, served + 1, ticket):
        time.sleep(min(_LONGEST, _SHORTEST * max(1, ticket - served - 1)))
        last, (_, served) = served, _counters(descriptor)
        now = time.monotonic()
        if served != last:
            moved = now
        if now - begun > patience.turn:
            return
        if now - moved > patience.standstill and is_free():
            _note_served(descriptor, ticket - 1)  # whoever comes later need not wait for them again
            return


def _note_served(descriptor: int, ticket: int) -> None:
    with contextlib.suppress(OSError):
        given, served = _counters(descriptor)
        if ticket > served:
            os.pwrite(descriptor, _COUNTERS.pack(given, ticket)[8:], 8)


def _counters(descriptor: int) -> tuple[int, int]:
    content = os.pread(descriptor, _COUNTERS.size, 0)
    given, served = _COUNTERS.unpack(content) if len(content) == _COUNTERS.size else (0, 0)
    limit = 2**62  # whatever a damaged file says
    return given % limit, served % limit


def _anyone_in(descriptor: int, first: int, end: int) -> bool:
    """Tell whether a ticket from `first` up to, not with, `end` is held."""
    if first >= end:
        return False
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _FIRST + first, end - first, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
    return bool(struct.unpack(_LOCK, answer)[0] != fcntl.F_UNLCK)


def _lock(descriptor: int, position: int) -> bool:
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, position, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, asked)
    except OSError:
        return False
    return True


def _unlock(descriptor: int, position: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_LOCK, fcntl.F_UNLCK, os.SEEK_SET, position, 1, 0))
