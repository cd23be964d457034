"""Reading row groups of one pinned Parquet file, and noticing that it is not the pinned one."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import StageFailedError
from suffice.pipeline.rows.sources.exact_data import Kept, exact_data
from suffice.pipeline.rows.sources.file_access import PinnedFile, opened, status
from suffice.pipeline.rows.sources.file_columns import AS_STORED, FileColumns
from suffice.pipeline.rows.sources.object_access import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DAMAGED = "cannot be read: it is damaged, or access to it was lost"
_READ_BYTES = 1 << 20
"""Read of a column at a time: otherwise a whole row group's bytes would be in memory."""
_SMALL_BYTES = 1 << 20
"""Objects of at most so many bytes are fetched whole, with their footer, by one request."""
_FETCH_BYTES = 1 << 25
"""Columns of consecutive row groups that are fetched of an object at a time, or of one where it has more."""


@exact_data(travels=True)
class RowGroups:
    """Some row groups of one pinned file.

    Parameters
    ----------
    file : PinnedFile
        The file.
    called : str
        What messages call it.
    row_groups : tuple of int
        Their numbers.
    dictionaries : tuple of str
        Text columns that are worth reading as dictionaries, by the file's names: stored as such.
    n_rows : int
        Physical rows in them.
    columns : FileColumns
        How its columns become the source's.
    metadata : Kept
        Its footer, where this process has read it.
    kept : pyarrow.BooleanArray or None
        Which of the rows the table still has; None where it has all of them.
    """

    file: PinnedFile
    called: str
    row_groups: tuple[int, ...]
    dictionaries: tuple[str, ...]
    n_rows: int
    columns: FileColumns = AS_STORED
    metadata: Kept = Kept()
    kept: pa.BooleanArray | None = None


def read_piece(piece: RowGroups, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the source's columns of some row groups in blocks of at most `block_rows` rows.

    Raises
    ------
    StageFailedError
        Where the file cannot be read, or is not the pinned one.
    """
    check_file(piece.file, piece.called)
    n_rows = 0
    try:
        with opened(piece.file) as stored:
            for batch in _batches(stored, piece, columns, block_rows):
                kept = None if piece.kept is None else piece.kept.slice(n_rows, batch.num_rows)
                n_rows += batch.num_rows
                yield piece.columns.batch(batch if kept is None else batch.filter(kept), columns)
    except (pa.ArrowException, OSError):
        # Arrow's texts may quote what it failed to read.
        check_file(piece.file, piece.called)
        raise _failure(piece.called, _DAMAGED) from None
    check_file(piece.file, piece.called)
    if n_rows != piece.n_rows:
        raise _failure(piece.called, _DAMAGED)


def check_file(file: PinnedFile, called: str) -> None:
    """Check that a file is the pinned one.

    Raises
    ------
    StageFailedError
        Where it is gone, or is not.
    """
    try:
        found = status(file.address)
    except OSError:
        raise _failure(called, "cannot be read: it is gone, or access to it was lost") from None
    if found != file:
        raise _failure(called, "has changed since it was pinned") from None


def _batches(
    stored: BinaryIO, piece: RowGroups, columns: Sequence[str], block_rows: int
) -> Iterator[pa.RecordBatch]:
    fetched = stored if isinstance(stored, ObjectFile) else None
    if fetched is not None and piece.file.size <= _SMALL_BYTES:
        fetched.fetch([(0, piece.file.size)])
        fetched = None
    names = piece.columns.stored(columns)
    with pq.ParquetFile(
        stored,
        metadata=piece.metadata.value,
        read_dictionary=list(piece.dictionaries),
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=_READ_BYTES,
    ) as file:
        if fetched is None:
            yield from _read(file, block_rows, piece.row_groups, names)
            return
        for row_groups, ranges in _fetches(file.metadata, piece.row_groups, names):
            fetched.fetch(ranges)
            yield from _read(file, block_rows, row_groups, names)


def _read(
    file: pq.ParquetFile, block_rows: int, row_groups: Sequence[int], names: list[str]
) -> Iterator[pa.RecordBatch]:
    yield from file.iter_batches(block_rows, row_groups=list(row_groups), columns=names, use_threads=False)


def _fetches(
    metadata: pq.FileMetaData, numbers: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Bundle row groups of which columns are fetched together, with the ranges of their bytes."""
    bundle: list[int] = []
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        group = metadata.row_group(number)
        chunks = [group.column(index) for index in range(group.num_columns)]
        own = [_range(chunk) for chunk in chunks if chunk.path_in_schema.partition(".")[0] in names]
        if bundle and sum(end - start for start, end in ranges + own) > _FETCH_BYTES:
            yield bundle, ranges
            bundle, ranges = [], []
        bundle.append(number)
        ranges += own
    yield bundle, ranges


def _range(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _failure(called: str, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the data file {called} {what}")
