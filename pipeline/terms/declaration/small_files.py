"""Files that are named in a declaration, read as a whole: regular ones alone, of a bounded size."""

from __future__ import annotations

import os
import stat


def read_small_file(path: str, most_bytes: int) -> bytes | None:
    """Return a file's bytes; None where there are more than `most_bytes`, of which none is read then.

    Raises
    ------
    OSError
        Where it cannot be read, or is no regular file: reading a pipe or a device might never end.
    """
    _require_regular(os.stat(path))  # noqa: PTH116 - before it is opened: opening may block, or do something
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        _require_regular(status)
        if status.st_size > most_bytes:
            return None
        content = file.read(most_bytes + 1)
    return content if len(content) <= most_bytes else None


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        message = "no regular file"
        raise OSError(message)
