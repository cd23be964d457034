"""Files by their address: what identifies one, and how its bytes are opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from suffice.pipeline.sources.exact_data import exact_data

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@exact_data(travels=True)
class PinnedFile:
    """A file as it was when the list of files was made.

    Parameters
    ----------
    address : str
        Absolute path.
    size : int
        In bytes.
    version : str
        What changes when it is written again: the time of modification, in nanoseconds since 1970.
    """

    address: str
    size: int
    version: str


def status(address: str) -> PinnedFile:
    """Return a file as it is now.

    Raises
    ------
    OSError
        Where it is not there, or cannot be looked at.
    """
    found = os.stat(address)  # noqa: PTH116 - no Path object per check
    return PinnedFile(address=address, size=found.st_size, version=str(found.st_mtime_ns))


def opened(file: PinnedFile) -> AbstractContextManager[BinaryIO]:
    """Open a file's bytes; nothing is read ahead.

    Raises
    ------
    OSError
        Where it cannot be opened.
    """
    return open(file.address, "rb", buffering=0)  # noqa: PTH123 - no Path object per check
