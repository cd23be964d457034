"""Local Parquet files: list and pin them, check their columns, read one partition in blocks."""

from __future__ import annotations

import glob
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.spec.plan import measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from suffice.pipeline.spec.spec import Spec

_TASK_VALUES = 8_000_000
"""Values (rows times columns) that make a task: some 0.1 s of one processor, against 2 ms to schedule it."""

_DAMAGED = "cannot be read: it is damaged, or access to it was lost"
_MOST_TASKS = 2048
_FOOTER_READERS = 8
_READ_BYTES = 1 << 20
"""Read of a column at a time: otherwise a whole row group's bytes would be in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The rows of one task.

    Parameters
    ----------
    pieces : tuple of Piece
        Row groups, perhaps of several files.
    n_rows : int
        Physical rows.
    """

    pieces: tuple[Piece, ...]
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSource:
    """A pinned list of Parquet files.

    Parameters
    ----------
    files : tuple of PinnedFile
        In the order of their paths.
    schemas : tuple of pyarrow.Schema
        One per file.
    n_rows : int
        Physical rows, from the files' metadata.
    partitions : tuple of Partition
        Every row group once.
    """

    files: tuple[PinnedFile, ...]
    schemas: tuple[pa.Schema, ...]
    n_rows: int
    partitions: tuple[Partition, ...]

    @property
    def schema(self) -> dict[str, pa.DataType]:
        """Arrow types by column, of the first file."""
        return dict(zip(self.schemas[0].names, self.schemas[0].types, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowGroup:
    """What planning needs of one row group."""

    file: PinnedFile
    number: int
    n_rows: int
    dictionaries: tuple[str, ...]


def open_source(spec: Spec) -> ParquetSource:
    """List the spec's files, pin them, and divide their row groups into tasks. Reads metadata only.

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
    paths = list_files(spec.source_pattern)
    with ThreadPoolExecutor(_FOOTER_READERS) as pool:
        footers = list(pool.map(lambda path: _read_footer(path, columns), paths))
    groups = [group for _, _, file_groups in footers for group in file_groups]
    n_rows = sum(group.n_rows for group in groups)
    enough = max(1, _TASK_VALUES // len(columns), n_rows // _MOST_TASKS)
    return ParquetSource(
        files=tuple(file for file, _, _ in footers),
        schemas=tuple(schema for _, schema, _ in footers),
        n_rows=n_rows,
        partitions=tuple(_partitions(groups, enough)),
    )


def join(partitions: Sequence[Partition], most: int) -> list[Partition]:
    """Join consecutive partitions to at most `most`, of about as many rows each."""
    if len(partitions) <= most:
        return list(partitions)
    n_rows = max(1, sum(partition.n_rows for partition in partitions))
    parts: dict[int, list[Partition]] = {}
    before = 0
    for partition in partitions:
        parts.setdefault(min(before * most // n_rows, most - 1), []).append(partition)
        before += partition.n_rows
    return [
        Partition(
            pieces=tuple(piece for partition in part for piece in partition.pieces),
            n_rows=sum(partition.n_rows for partition in part),
        )
        for part in parts.values()
    ]


def spec_columns(spec: Spec) -> tuple[str, ...]:
    """Return the columns that a spec reads, each once."""
    window = (spec.window.column,) if spec.window else ()
    unit = (spec.privacy.column_unit.column,) if spec.privacy.column_unit else ()
    statistics = (of.column for measure in measures(spec).values() for of in measure.reads)
    return tuple(dict.fromkeys((*window, *spec.groups, *unit, *statistics)))


def list_files(pattern: str) -> tuple[str, ...]:
    """Return the Parquet files at a path, in a directory or of a pattern, in order of their paths.

    Raises
    ------
    UsageError
        Where there is none, or two names are one file: its rows would count twice.
    """
    position = Path(pattern)
    if position.is_dir():
        found = [
            str(path)
            for path in position.iterdir()
            if path.suffix.lower() == ".parquet" and not path.name.startswith((".", "_"))
        ]
    elif position.exists():
        found = [pattern]
    else:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - as a shell would, without hidden files
    paths = sorted(found)
    if not paths:
        hint = f"; for folders below it write {pattern}/**/*.parquet" if position.is_dir() else ""
        message = f"source.parquet: no Parquet file at {pattern}{hint}"
        raise UsageError(message)
    for path in paths:
        if not Path(path).is_file():  # left out in silence, its rows would be missed
            message = f"source.parquet: {path} is no file: name its folder or remove it"
            raise UsageError(message)
    known: dict[tuple[int, int], str] = {}
    for path in paths:
        status = Path(path).stat()
        first = known.setdefault((status.st_dev, status.st_ino), path)
        if first != path:
            message = f"source.parquet: {first} and {path} are the same file, so its rows would count twice"
            raise UsageError(message)
    return tuple(paths)


def read_schema(pattern: str) -> pa.Schema:
    """Return the schema of the first file at a path, in a directory or of a pattern.

    Raises
    ------
    UsageError
        Where there is none, or it is no Parquet file.
    """
    path = list_files(os.path.abspath(pattern))[0]  # noqa: PTH100 - no link is followed
    return _read_footer(path, ())[1]


def read_batches(partition: Partition, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the columns of a partition in blocks of at most `block_rows` rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or its size or time of modification is not the pinned one.
    """
    for piece in partition.pieces:
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
        found = _pin(file.path)
    except OSError:
        raise _failure(file, "cannot be read: it is gone, or access to it was lost") from None
    if found != file:
        raise _failure(file, "has changed since its size and time were taken") from None


def _failure(file: PinnedFile, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the data file {file.path} {what}")


def _pin(path: str) -> PinnedFile:
    status = os.stat(path)  # noqa: PTH116 - no Path object per check
    return PinnedFile(path=path, size=status.st_size, mtime_ns=status.st_mtime_ns)


def _read_footer(path: str, columns: Iterable[str]) -> tuple[PinnedFile, pa.Schema, list[_RowGroup]]:
    try:
        file = _pin(path)
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


def _partitions(groups: Iterable[_RowGroup], enough: int) -> Iterator[Partition]:
    """Batch consecutive row groups into tasks of `enough` rows or more; a row group is never divided."""
    batch: list[_RowGroup] = []
    n_rows = 0
    for group in groups:
        batch.append(group)
        n_rows += group.n_rows
        if n_rows >= enough:
            yield _partition(batch)
            batch, n_rows = [], 0
    if n_rows:
        yield _partition(batch)


def _partition(groups: Iterable[_RowGroup]) -> Partition:
    filled = [group for group in groups if group.n_rows]
    pieces = [
        _piece(list(alike)) for _, alike in groupby(filled, lambda group: (group.file, group.dictionaries))
    ]
    return Partition(pieces=tuple(pieces), n_rows=sum(piece.n_rows for piece in pieces))


def _piece(groups: Sequence[_RowGroup]) -> Piece:
    return Piece(
        file=groups[0].file,
        row_groups=tuple(group.number for group in groups),
        dictionaries=groups[0].dictionaries,
        n_rows=sum(group.n_rows for group in groups),
    )
