"""Parquet files that a path, a directory or a pattern names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.declaration.parquet_spec import ParquetSpec
from suffice.pipeline.sources.checksums import fits, mismatch
from suffice.pipeline.sources.contract import PartSchema, Pin, Split, spec_columns
from suffice.pipeline.sources.file_access import PinnedFile, status
from suffice.pipeline.sources.file_listing import list_files
from suffice.pipeline.sources.parquet_files import (
    AS_STORED,
    PinnedFiles,
    check_files,
    file_schemas,
    file_splits,
    pin_files,
    read_files,
)
from suffice.pipeline.spec.terms import ALL

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec

KIND = ParquetSpec.kind

_PLACE = f"source.{KIND}"

read = read_files


def pin(spec: Spec, window: str = ALL) -> Pin:  # noqa: ARG001 - the contract's
    """List the spec's files and pin them. Reads metadata only.

    Parameters
    ----------
    spec : Spec
        Its ``source.parquet`` is a file, a directory (its ``*.parquet``, not those below it) or a pattern.
    window : str
        The window that will be read, or ``all``.

    Raises
    ------
    UsageError
        Where no file is there, one is no Parquet file, or two names are the same file.
    """
    address = spec.source_address
    listed = [(_pinned(path), AS_STORED) for path in list_files(address)]
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": address},
        private=pin_files(listed, spec_columns(spec), place=_PLACE),
    )


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns of every file."""
    return file_schemas(pin.private)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Batch consecutive row groups into tasks; a row group is never divided."""
    return file_splits(KIND, pin.private)


def verify(pin: Pin, checksums: str) -> None:
    """Hash every file, and compare with the owner's list.

    What is read later is what was hashed as far as size and time of modification tell.

    Raises
    ------
    InputNotVerifiedError
        Where a file is not in the list or has another SHA-256, one in the list is gone, or there is no list.
    """
    pinned: PinnedFiles = pin.private
    try:
        is_fit = fits([file.address for file in pinned.files], checksums, pin.public["address"])
        check(pin)
    except StageFailedError:  # a file changed while it was hashed
        is_fit = False
    if not is_fit:
        raise mismatch(f"{_PLACE}: {pin.public['address']}")


def check(pin: Pin) -> None:
    """Check every file's size and time of modification, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or its size or time of modification is not the pinned one.
    """
    check_files(pin.private)


def _pinned(path: str) -> PinnedFile:
    try:
        return status(path)
    except OSError:
        message = f"{_PLACE}: {path} cannot be read as a Parquet file"
        raise UsageError(message) from None
