"""A client of a cluster that writes no log: what it lost is told by one error of ours."""

from __future__ import annotations

import gc
import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from suffice.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.gc",
    "tornado",
    "tornado.application",
    "asyncio",
)
"""Of what a client runs on. The last says of tasks that nobody waits for when they are collected, late."""

LATE_SECONDS = 60.0
"""For how long tasks of a lost client may end after it."""


class _Silence:
    """Keeps the loggers silent while anybody wants that, and gives them back the levels that they had."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._levels: dict[str, int] = {}

    def begin(self) -> None:
        """Have silence from here on."""
        with self._lock:
            if not self._wanted:
                self._levels = {name: logging.getLogger(name).level for name in LOGGERS}
                for name in LOGGERS:
                    logging.getLogger(name).setLevel(logging.CRITICAL + 1)
            self._wanted += 1

    def end(self) -> None:
        """Want it no longer."""
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                for name, level in self._levels.items():
                    logging.getLogger(name).setLevel(level)

    def end_late(self) -> None:
        """Want it no longer once what a lost client left is collected."""
        gc.collect()
        self.end()


_silence = _Silence()


@contextmanager
def quiet_client() -> Iterator[None]:
    """Let a client write no log: one error of ours says that a scheduler is lost, and no traceback before it.

    Tasks of a lost one end later, so that the loggers stay silent for `LATE_SECONDS` more.
    """
    _silence.begin()
    try:
        yield
    except ClusterError:
        late = threading.Timer(LATE_SECONDS, _silence.end_late)
        late.daemon = True
        late.start()
        raise
    except BaseException:
        _silence.end()
        raise
    else:
        _silence.end()
