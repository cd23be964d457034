"""Files by their address, a path or an object's URL: what identifies one, and how its bytes are opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, cast

from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.rows.sources.object_access import ObjectFile, object_status
from suffice.pipeline.terms.declaration.source_spec import is_url

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@exact_data(travels=True)
class PinnedFile:
    """A file as it was when the list of files was made.

    Parameters
    ----------
    address : str
        Absolute path, or ``s3://BUCKET/KEY``, ``gs://...`` or ``az://...``.
    size : int
        In bytes.
    version : str
        What changes when it is written again: the time of modification, in nanoseconds since 1970; an
        object's entity tag.
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
    if is_url(address):
        size, version = object_status(address)
        return PinnedFile(address=address, size=size, version=version)
    found = os.stat(address)  # noqa: PTH116 - no Path object per check
    return PinnedFile(address=address, size=found.st_size, version=str(found.st_mtime_ns))


def opened(file: PinnedFile) -> AbstractContextManager[BinaryIO]:
    """Open a file's bytes; nothing is read ahead.

    Of an object every answer is checked to be of the pinned version.

    Raises
    ------
    OSError
        Where it cannot be opened; on reading, where the bytes cannot be had.
    """
    if is_url(file.address):
        return cast("BinaryIO", ObjectFile(file.address, file.size, file.version))
    return open(file.address, "rb", buffering=0)  # noqa: PTH123 - no Path object per check
