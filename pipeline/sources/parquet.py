"""Local Parquet files: list and pin them, read row groups in blocks, notice what changed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.declaration.source_specs import ParquetSpec
from suffice.pipeline.sources.checksums import fits, mismatch
from suffice.pipeline.sources.contract import PartSchema, Pin, Split, spec_columns, task_rows
from suffice.pipeline.sources.exact_data import exact_data
from suffice.pipeline.sources.file_listing import list_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from suffice.pipeline.spec.spec import Spec

KIND = ParquetSpec.kind

_DAMAGED = "cannot be read: it is damaged, or access to it was lost"
_FOOTER_READERS = 8
_LONGEST_NAME = 200
_READ_BYTES = 1 << 20
"""Read of a column at a time: otherwise a whole row group's bytes would be in memory."""


@exact_data(travels=True)
class PinnedFile:
    """A file as it was when the list of files was made.

    Parameters
    ----------
    path : str
        Absolute path.
    size : int
        In bytes.
    mtime_ns : int
        Time of modification, in nanoseconds since 1970.
    """

    path: str
    size: int
    mtime_ns: int


@exact_data(travels=True)
class RowGroups:
    """Some row groups of one pinned file.

    Parameters
    ----------
    file : PinnedFile
        The file.
    row_groups : tuple of int
        Their numbers.
    dictionaries : tuple of str
        Text columns that are worth reading as dictionaries: stored as such.
    n_rows : int
        Physical rows in them.
    """

    file: PinnedFile
    row_groups: tuple[int, ...]
    dictionaries: tuple[str, ...]
    n_rows: int


@exact_data(travels=False)
class _RowGroup:
    """What division into tasks needs of one row group."""

    file: PinnedFile
    number: int
    n_rows: int
    dictionaries: tuple[str, ...]


@exact_data(travels=False)
class PinnedFiles:
    """The private part of a pin: files as their metadata told them.

    Parameters
    ----------
    files : tuple of PinnedFile
        In the order of their paths.
    schemas : tuple of pyarrow.Schema
        One per file.
    row_groups : tuple of _RowGroup
        Those of all files.
    n_columns : int
        Columns that the spec reads.
    named : str
        The source as the spec names it.
    """

    files: tuple[PinnedFile, ...]
    schemas: tuple[pa.Schema, ...]
    row_groups: tuple[_RowGroup, ...]
    n_columns: int
    named: str


def pin(spec: Spec) -> Pin:
    """List the spec's files and pin them. Reads metadata only.

    Parameters
    ----------
    spec : Spec
        Its ``source.parquet`` is a file, a directory (its ``*.parquet``, not those below it) or a pattern.

    Raises
    ------
    UsageError
        Where no file is there, one is no Parquet file, or two names are the same file.
    """
    columns = spec_columns(spec)
    paths = list_files(spec.source_address)
    with ThreadPoolExecutor(_FOOTER_READERS) as pool:
        footers = list(pool.map(lambda path: _read_footer(path, columns), paths))
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": spec.source_address},
        private=PinnedFiles(
            files=tuple(file for file, _, _ in footers),
            schemas=tuple(schema for _, schema, _ in footers),
            row_groups=tuple(group for _, _, groups in footers for group in groups),
            n_columns=len(columns),
            named=str(getattr(spec.source, KIND))[:_LONGEST_NAME],
        ),
    )


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns of every file."""
    pinned: PinnedFiles = pin.private
    return tuple(
        PartSchema(part=file.path, columns=columns)
        for file, columns in zip(pinned.files, pinned.schemas, strict=True)
    )


def splits(pin: Pin) -> tuple[Split, ...]:
    """Batch consecutive row groups into tasks; a row group is never divided."""
    pinned: PinnedFiles = pin.private
    n_rows = sum(group.n_rows for group in pinned.row_groups)
    return tuple(_splits(pinned.row_groups, task_rows(n_rows, pinned.n_columns)))


def read(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the columns of a split in blocks of at most `block_rows` rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or its size or time of modification is not the pinned one.
    """
    for piece in split.pieces:
        yield from _read_piece(piece, columns, block_rows)


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
        is_fit = fits([file.path for file in pinned.files], checksums, pin.public["address"])
        check(pin)
    except StageFailedError:  # a file changed while it was hashed
        is_fit = False
    if not is_fit:
        raise mismatch(f"source.parquet: {pinned.named}")


def check(pin: Pin) -> None:
    """Check every file's size and time of modification, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or its size or time of modification is not the pinned one.
    """
    pinned: PinnedFiles = pin.private
    for file in pinned.files:
        _check_pinned(file)


def _read_piece(piece: RowGroups, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    _check_pinned(piece.file)
    n_rows = 0
    try:
        with pq.ParquetFile(
            piece.file.path,
            read_dictionary=list(piece.dictionaries),
            page_checksum_verification=True,
            pre_buffer=False,
            buffer_size=_READ_BYTES,
        ) as file:
            for batch in file.iter_batches(
                block_rows, row_groups=list(piece.row_groups), columns=list(columns), use_threads=False
            ):
                n_rows += batch.num_rows
                yield batch
    except (pa.ArrowException, OSError):
        # Arrow's texts may quote what it failed to read.
        raise _failure(piece.file, _DAMAGED) from None
    _check_pinned(piece.file)
    if n_rows != piece.n_rows:
        raise _failure(piece.file, _DAMAGED)


def _check_pinned(file: PinnedFile) -> None:
    try:
        found = _status(file.path)
    except OSError:
        raise _failure(file, "cannot be read: it is gone, or access to it was lost") from None
    if found != file:
        raise _failure(file, "has changed since its size and time were recorded") from None


def _failure(file: PinnedFile, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the data file {file.path} {what}")


def _status(path: str) -> PinnedFile:
    status = os.stat(path)  # noqa: PTH116 - no Path object per check
    return PinnedFile(path=path, size=status.st_size, mtime_ns=status.st_mtime_ns)


def _read_footer(path: str, columns: Iterable[str]) -> tuple[PinnedFile, pa.Schema, list[_RowGroup]]:
    try:
        file = _status(path)
        with pq.ParquetFile(path) as opened:
            metadata, schema = opened.metadata, opened.schema_arrow
    except (pa.ArrowException, OSError):
        message = f"source.parquet: {path} cannot be read as a Parquet file"
        raise UsageError(message) from None
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(index) for index in range(group.num_columns)]
        stored = {chunk.path_in_schema for chunk in chunks if _is_dictionary(chunk)}
        groups.append(
            _RowGroup(
                file=file,
                number=number,
                n_rows=group.num_rows,
                dictionaries=tuple(column for column in columns if column in stored),
            )
        )
    return file, schema, groups


def _is_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    """Tell whether a text column is stored as a dictionary throughout.

    Stored plainly each text takes its length, 4 bytes, and more. Reading such a column as a dictionary
    would gather all its values in memory.
    """
    return bool(
        chunk.physical_type == "BYTE_ARRAY"
        and chunk.has_dictionary_page
        and chunk.total_uncompressed_size < 4 * chunk.num_values
    )


def _splits(groups: Iterable[_RowGroup], enough: int) -> Iterator[Split]:
    """Batch consecutive row groups into tasks of `enough` rows or more."""
    batch: list[_RowGroup] = []
    n_rows = 0
    for group in groups:
        batch.append(group)
        n_rows += group.n_rows
        if n_rows >= enough:
            yield Split.of(KIND, _pieces(batch))
            batch, n_rows = [], 0
    if n_rows:
        yield Split.of(KIND, _pieces(batch))


def _pieces(groups: Iterable[_RowGroup]) -> list[RowGroups]:
    filled = (group for group in groups if group.n_rows)
    by_file = groupby(filled, lambda group: (group.file, group.dictionaries))
    return [_piece(list(alike)) for _, alike in by_file]


def _piece(groups: Sequence[_RowGroup]) -> RowGroups:
    return RowGroups(
        file=groups[0].file,
        row_groups=tuple(group.number for group in groups),
        dictionaries=groups[0].dictionaries,
        n_rows=sum(group.n_rows for group in groups),
    )
