"""Preloaded by a Dask worker: a task waits while a file says so. Everything else is the real thing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.pipeline.rows import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = "HELD_READING_PLACE"
"""The variable that names a folder: while ``hold`` is there a task makes ``reading`` there, and waits."""

_read = sources.read


def _read_later(*arguments: Any) -> Iterator[Any]:
    place = Path(os.environ[PLACE])
    while (place / "hold").exists():
        (place / "reading").touch()
        time.sleep(0.1)
    return _read(*arguments)


def dask_setup(_worker: object) -> None:
    """Hold the reading of this worker; called by Dask."""
    sources.read = _read_later  # type: ignore[assignment]
