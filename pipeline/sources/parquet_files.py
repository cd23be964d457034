"""Pinned Parquet files, whoever listed them: footers, division into tasks, reading in blocks, what changed.

Paths, hive folders, and table formats that list files at a version all end here. A file may lack columns
that its source has, or call them otherwise: `FileColumns` says how its columns become the source's.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.sources.contract import PartSchema, Split, task_rows
from suffice.pipeline.sources.exact_data import exact_data
from suffice.pipeline.sources.file_access import PinnedFile, opened, status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_DAMAGED = "cannot be read: it is damaged, or access to it was lost"
_FOOTER_READERS = 8
_READ_BYTES = 1 << 20
"""Read of a column at a time: otherwise a whole row group's bytes would be in memory."""


@exact_data(travels=True)
class FileColumns:
    """How the columns of a file become those of its source.

    Parameters
    ----------
    renamed : tuple of (str, str)
        The source's name of a column and the file's, where they differ.
    constants : tuple of (str, pyarrow.Scalar)
        Columns that the file does not hold, and their one value: of a partition, or null.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, pa.Scalar], ...] = ()

    def stored(self, columns: Iterable[str]) -> list[str]:
        """Return what the file calls those of these columns that it holds."""
        absent = {name for name, _ in self.constants}
        renamed = dict(self.renamed)
        return [renamed.get(name, name) for name in columns if name not in absent]

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """Return the source's columns, given the file's."""
        names = {file_name: name for name, file_name in self.renamed}
        fields = [field.with_name(names.get(field.name, field.name)) for field in stored]
        return pa.schema([*fields, *(pa.field(name, value.type) for name, value in self.constants)])

    def batch(self, stored: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """Return these columns of a batch of the file's rows."""
        if not self.renamed and not self.constants:
            return stored
        renamed, constants = dict(self.renamed), dict(self.constants)
        arrays = [
            _repeated(constants[name], stored.num_rows)
            if name in constants
            else stored.column(renamed.get(name, name))
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, list(columns))


AS_STORED = FileColumns()
"""A file that holds all columns of its source under their names."""


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
        Text columns that are worth reading as dictionaries, by the file's names: stored as such.
    n_rows : int
        Physical rows in them.
    columns : FileColumns
        How its columns become the source's.
    """

    file: PinnedFile
    row_groups: tuple[int, ...]
    dictionaries: tuple[str, ...]
    n_rows: int
    columns: FileColumns = AS_STORED


@exact_data(travels=False)
class _RowGroup:
    """What division into tasks needs of one row group."""

    file: PinnedFile
    number: int
    n_rows: int
    dictionaries: tuple[str, ...]
    columns: FileColumns


@exact_data(travels=False)
class PinnedFiles:
    """Parquet files as their footers told them: the private part of a pin, or a part of that.

    Parameters
    ----------
    files : tuple of PinnedFile
        In the order of their addresses.
    schemas : tuple of pyarrow.Schema
        The source's columns, one per file.
    row_groups : tuple of _RowGroup
        Those of all files.
    n_columns : int
        Columns that the spec reads.
    """

    files: tuple[PinnedFile, ...]
    schemas: tuple[pa.Schema, ...]
    row_groups: tuple[_RowGroup, ...]
    n_columns: int


def pin_files(
    files: Sequence[tuple[PinnedFile, FileColumns]], columns: Sequence[str], *, place: str
) -> PinnedFiles:
    """Read the footers of files that were listed.

    Parameters
    ----------
    files : sequence of (PinnedFile, FileColumns)
        The files, in a fixed order, and how their columns become the source's.
    columns : sequence of str
        The source's columns that the spec reads.
    place : str
        What messages name: ``source.parquet``, say.

    Raises
    ------
    UsageError
        Where one is no Parquet file.
    """
    with ThreadPoolExecutor(_FOOTER_READERS) as pool:
        footers = list(pool.map(lambda each: _read_footer(each[0], each[1], columns, place), files))
    return PinnedFiles(
        files=tuple(file for file, _ in files),
        schemas=tuple(schema for schema, _ in footers),
        row_groups=tuple(group for _, groups in footers for group in groups),
        n_columns=len(columns),
    )


def file_schemas(pinned: PinnedFiles) -> tuple[PartSchema, ...]:
    """Return the source's columns as every file has them."""
    return tuple(
        PartSchema(part=file.address, columns=columns)
        for file, columns in zip(pinned.files, pinned.schemas, strict=True)
    )


def file_splits(kind: str, pinned: PinnedFiles) -> tuple[Split, ...]:
    """Batch consecutive row groups into tasks of a kind of source; a row group is never divided."""
    n_rows = sum(group.n_rows for group in pinned.row_groups)
    return tuple(_splits(kind, pinned.row_groups, task_rows(n_rows, pinned.n_columns)))


def read_files(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the source's columns of a split in blocks of at most `block_rows` rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the pinned one.
    """
    for piece in split.pieces:
        yield from _read_piece(piece, columns, block_rows)


def check_files(pinned: PinnedFiles) -> None:
    """Check that every file is the pinned one, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or is not the pinned one.
    """
    for file in pinned.files:
        _check_pinned(file)


def _repeated(value: pa.Scalar, n_rows: int) -> pa.Array:
    """Return a column of one value: a dictionary of one entry, so that it is looked up once."""
    if not value.is_valid:
        return pa.nulls(n_rows, value.type)
    return pa.DictionaryArray.from_arrays(np.zeros(n_rows, np.int32), pa.array([value.as_py()], value.type))


def _read_piece(piece: RowGroups, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    _check_pinned(piece.file)
    n_rows = 0
    try:
        with (
            opened(piece.file) as stored,
            pq.ParquetFile(
                stored,
                read_dictionary=list(piece.dictionaries),
                page_checksum_verification=True,
                pre_buffer=False,
                buffer_size=_READ_BYTES,
            ) as file,
        ):
            for batch in file.iter_batches(
                block_rows,
                row_groups=list(piece.row_groups),
                columns=piece.columns.stored(columns),
                use_threads=False,
            ):
                n_rows += batch.num_rows
                yield piece.columns.batch(batch, columns)
    except (pa.ArrowException, OSError):
        # Arrow's texts may quote what it failed to read.
        raise _failure(piece.file, _DAMAGED) from None
    _check_pinned(piece.file)
    if n_rows != piece.n_rows:
        raise _failure(piece.file, _DAMAGED)


def _check_pinned(file: PinnedFile) -> None:
    try:
        found = status(file.address)
    except OSError:
        raise _failure(file, "cannot be read: it is gone, or access to it was lost") from None
    if found != file:
        raise _failure(file, "has changed since it was pinned") from None


def _failure(file: PinnedFile, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the data file {file.address} {what}")


def _read_footer(
    file: PinnedFile, file_columns: FileColumns, columns: Iterable[str], place: str
) -> tuple[pa.Schema, list[_RowGroup]]:
    try:
        with opened(file) as found, pq.ParquetFile(found) as parquet:
            metadata, schema = parquet.metadata, parquet.schema_arrow
    except (pa.ArrowException, OSError):
        message = f"{place}: {file.address} cannot be read as a Parquet file"
        raise UsageError(message) from None
    wanted = file_columns.stored(columns)
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
                dictionaries=tuple(column for column in wanted if column in stored),
                columns=file_columns,
            )
        )
    return file_columns.schema(schema), groups


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


def _splits(kind: str, groups: Iterable[_RowGroup], enough: int) -> Iterator[Split]:
    """Batch consecutive row groups into tasks of `enough` rows or more."""
    batch: list[_RowGroup] = []
    n_rows = 0
    for group in groups:
        batch.append(group)
        n_rows += group.n_rows
        if n_rows >= enough:
            yield Split.of(kind, _pieces(batch))
            batch, n_rows = [], 0
    if n_rows:
        yield Split.of(kind, _pieces(batch))


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
        columns=groups[0].columns,
    )
