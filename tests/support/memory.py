"""Files in memory, where there is room: ledgers and stores insist on ``fsync``, which costs nothing there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - what is kept in it belongs to one run of tests


def roomy_memory(n_bytes: int) -> Path | None:
    """Return a folder in memory with so many bytes left, or None."""
    try:
        roomy = shutil.disk_usage(MEMORY).free >= n_bytes and os.access(MEMORY, os.W_OK)
    except OSError:
        return None
    return MEMORY if roomy else None
