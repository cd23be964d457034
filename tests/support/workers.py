"""A job that misbehaves inside a worker; it is here because workers cannot import tests."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from suffice.pipeline.rows.chunk.partition import ChunkJob

_LONG = 600.0


def stopped_with_its_result(number: int, marker: str) -> int:
    """Return a number, and stop this process a moment later, unless that was done before."""
    if _is_first(marker):
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGSTOP)).start()
    return number


@dataclass(frozen=True, kw_only=True)
class FragileJob(ChunkJob):
    """A job that does something else first, in the process that reads.

    ``hang``: wait, unless that was done before, while the process goes on, as in a read of a disk that does
    not answer. ``hang all``: each time. ``stop``: stop the process, as a debugger does, unless that was done
    before. ``stop all``: each time. ``die``: kill the process. ``die once``: kill it, unless that was done
    before. ``raise``: fail with a text that quotes data.
    """

    action: str
    marker: str = ""
    canary: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Misbehave; then return the columns."""
        if self.action == "raise":
            message = f"cannot convert {self.canary}"
            raise ValueError(message)
        if self.action == "hang all" or (self.action == "hang" and _is_first(self.marker)):
            time.sleep(_LONG)
        if self.action == "stop all" or (self.action == "stop" and _is_first(self.marker)):
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.action == "die" or (self.action == "die once" and _is_first(self.marker)):
            os._exit(1)
        return super().columns


def _is_first(marker: str) -> bool:
    """Tell, of several processes, one alone that it is the first."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
