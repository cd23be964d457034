"""The directory of one audit: removed at its end, and by the next audit where nobody came to its end.

In it stands a lock that the audit's processes hold. Where they were killed nobody does, and what they left,
invented rows and releases of them, is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "suffice-audit-"
_LOCK = "lock"


def root() -> Path:
    """Return where audits have their directories: in memory if they can, as every step waits for a disk."""
    shared = Path("/dev/shm")  # noqa: S108 - directories of one user, with generated rows alone
    return shared if shared.is_dir() else Path(tempfile.gettempdir())


@contextlib.contextmanager
def scratch_directory(within: Path) -> Iterator[tuple[Path, int]]:
    """Give a new directory and the descriptor of its lock, which processes that use it inherit."""
    for left in within.glob(f"{PREFIX}*"):
        remove_left(left)
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=within) as name,
        (Path(name) / _LOCK).open("x") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name), lock.fileno()


def remove_left(directory: Path) -> None:
    """Remove the directory of an audit of this user, where none of its processes lives."""
    with contextlib.suppress(OSError):
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return
        with (directory / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where it is held
            shutil.rmtree(directory)
