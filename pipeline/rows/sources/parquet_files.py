"""Pinned Parquet files, whoever listed them: footers, division into tasks, reading in blocks, what changed.

Paths, hive folders, and table formats that list files at a version all end here. A file may lack columns
that its source has, or call them otherwise: `FileColumns` says how its columns become the source's. Footers
are read by threads of this process or by the workers of a cluster.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.arrays import number_array
from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.cluster.workers import by_threads
from suffice.pipeline.rows.sources.contract import Kept, PartSchema, Split, exact_data, split_rows
from suffice.pipeline.rows.sources.contracted_columns import (
    AS_STORED,
    FileColumns,
    Footer,
    Unreadable,
    read_footers,
)
from suffice.pipeline.rows.sources.file_access import SMALL_BYTES, ObjectFile, PinnedFile, opened, status
from suffice.pipeline.rows.sources.joined_batches import joined
from suffice.pipeline.rows.sources.row_groups_by_pages import by_pages
from suffice.pipeline.rows.sources.times_of_96_bits import parquet_file, stored_columns, with_instants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.sources.contracted_columns import ColumnsOf
    from suffice.pipeline.rows.sources.deletion_vectors import Deletes
    from suffice.pipeline.rows.sources.row_groups_by_pages import PageReader

    Survey: TypeAlias = Callable[[Callable[[Sequence[Any]], list[Any]], list[Sequence[Any]]], list[list[Any]]]
    """Calls a function of a module with each of several sequences, and returns what it returned."""


Item = TypeVar("Item")
Found = TypeVar("Found")

_READERS = 8
_BATCH = 16
_LARGE_BATCH = 256
"""Files of which a worker reads the footers in a task: a second of an object store's round trips."""


_by: ContextVar[Survey | None] = ContextVar("_by", default=None)


@contextmanager
def surveys_by(survey: Survey) -> Iterator[None]:
    """Let others than this process's threads read the metadata of sources that are pinned in the block."""
    token = _by.set(survey)
    try:
        yield
    finally:
        _by.reset(token)


def surveyed(look: Callable[[Sequence[Item]], list[Found]], items: Sequence[Item]) -> list[Found]:
    """Look at many things, each independently of the others, and return what was found, in their order.

    Parameters
    ----------
    look : callable
        Takes some of them and returns as many results: a function of a module, which raises nothing.
    items : sequence
        Exact data that travel, or public; so are the results.
    """
    survey = _by.get()
    is_here = survey is None or len(items) <= _LARGE_BATCH
    size = _BATCH if is_here else _LARGE_BATCH
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    surveys = by_threads(look, parts, _READERS) if is_here or survey is None else survey(look, parts)
    return [each for part in surveys for each in part]


_DAMAGED = "cannot be read: it is damaged, or access to it was lost"
_READ_BYTES = 1 << 20
"""Read of a column at a time: otherwise a whole row group's bytes would be in memory."""
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
        Rows in them that are not deleted by their places.
    columns : FileColumns
        How its columns become the source's.
    metadata : Kept
        Its footer, where this process has read it.
    kept : pyarrow.BooleanArray or None
        Which of the rows the table still has; None where it has all of them.
    values : RowDeletes or None
        Which rows its table no longer has because of their values.
    """

    file: PinnedFile
    called: str
    row_groups: tuple[int, ...]
    dictionaries: tuple[str, ...]
    n_rows: int
    columns: FileColumns = AS_STORED
    metadata: Kept = Kept()
    kept: pa.BooleanArray | None = None
    values: RowDeletes | None = None


class RowFilter(Protocol):
    """Tells of rows of a file which of them its table still has."""

    @property
    def stored(self) -> list[str]:
        """The file's columns that are looked at."""

    def kept(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return which rows of a batch are kept, shape (n_rows,)."""


class RowDeletes(Protocol):
    """What deletes rows of a file by their values: exact data that travel."""

    def opened(self, stored: pa.Schema) -> RowFilter:
        """Return the filter of a file's rows, given the file's columns."""


def read_piece(
    piece: RowGroups, columns: Sequence[str], block_rows: int, pages: PageReader | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the source's columns of some row groups in blocks of at most `block_rows` rows.

    A reader of pages reads those of local files and of small objects that are as the source has them, as
    far as it can.

    Raises
    ------
    StageFailedError
        Where the file cannot be read, or is not the pinned one.
    """
    check_file(piece.file, piece.called)
    n_rows = 0
    try:
        with opened(piece.file) as content:
            size = piece.file.size  # a file that grew since is read no further
            stored = pa.BufferReader(content.read(size)) if size <= SMALL_BYTES else content
            rows = None if piece.values is None else _filter(stored, piece, piece.values)
            names = piece.columns.stored(columns)
            beside = [name for name in rows.stored if name not in names] if rows else []
            is_plain = piece.kept is None and rows is None and piece.columns == AS_STORED
            for batch in _batches(stored, piece, [*names, *beside], block_rows, pages if is_plain else None):
                kept = None if piece.kept is None else piece.kept.slice(n_rows, batch.num_rows)
                n_rows += batch.num_rows
                if rows is not None:
                    left = _as_booleans(rows.kept(batch))
                    kept = left if kept is None else pc.and_(kept, left)
                left_over = batch.select(names) if beside and names else batch
                yield piece.columns.batch(left_over if kept is None else left_over.filter(kept), columns)
    except (pa.ArrowException, OSError, _MalformedError):
        # Arrow's texts may quote what it failed to read.
        check_file(piece.file, piece.called)
        raise _failure(piece.called, _DAMAGED) from None
    check_file(piece.file, piece.called)
    if n_rows != (piece.n_rows if piece.kept is None else len(piece.kept)):
        raise _failure(piece.called, _DAMAGED)


class _MalformedError(Exception):
    """What deletes rows is not what it has to be."""


def _filter(stored: BinaryIO, piece: RowGroups, values: RowDeletes) -> RowFilter:
    with parquet_file(stored, metadata=piece.metadata.value) as file:
        schema = stored_columns(file)
    try:
        return values.opened(schema)
    except ValueError:  # Arrow's errors are some, too
        raise _MalformedError from None


def _as_booleans(mask: NDArray[np.bool_]) -> pa.BooleanArray:
    return number_array(mask.view(np.uint8)).cast(pa.bool_())


def check_file(file: PinnedFile, called: str) -> None:
    """Check that a file is the pinned one.

    Raises
    ------
    StageFailedError
        Where it is gone, or is not.
    """
    try:
        current = status(file.address)
    except OSError:
        raise _failure(called, "cannot be read: it is gone, or access to it was lost") from None
    if current != file:
        raise _failure(called, "has changed since it was pinned") from None


def _batches(
    stored: BinaryIO, piece: RowGroups, names: list[str], block_rows: int, pages: PageReader | None
) -> Iterator[pa.RecordBatch]:
    fetched = stored if isinstance(stored, ObjectFile) else None
    with parquet_file(
        stored,
        metadata=piece.metadata.value,
        read_dictionary=list(piece.dictionaries),
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=_READ_BYTES,
    ) as file:
        if pages is not None and fetched is None:
            rest = partial(_read, file, block_rows, names)
            yield from by_pages(pages, stored, file, piece.row_groups, rest)
            return
        if fetched is None:
            yield from _read(file, block_rows, names, piece.row_groups)
            return
        for row_groups, ranges in _fetches(file.metadata, piece.row_groups, names):
            fetched.fetch(ranges)
            yield from _read(file, block_rows, names, row_groups)


def _read(
    file: pq.ParquetFile, block_rows: int, names: list[str], row_groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches(block_rows, row_groups=list(row_groups), columns=names, use_threads=False):
        yield with_instants(batch, file)


def _fetches(
    metadata: pq.FileMetaData, numbers: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Bundle row groups of which columns are fetched together, with the ranges of their bytes."""
    bundle: list[int] = []
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        group = metadata.row_group(number)
        chunks = [group.column(index) for index in range(group.num_columns)]
        group_ranges = [_range(chunk) for chunk in chunks if chunk.path_in_schema.partition(".")[0] in names]
        if bundle and sum(end - start for start, end in ranges + group_ranges) > _FETCH_BYTES:
            yield bundle, ranges
            bundle, ranges = [], []
        bundle.append(number)
        ranges += group_ranges
    yield bundle, ranges


def _range(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _failure(called: str, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the data file {called} {what}")


_KEPT_BYTES = 1 << 28
"""Footers of so many bytes in memory are kept from pin to reading; others are read again."""
_DECODED = 12
"""Bytes of memory that a byte of a footer takes, once it is read: 8 kB for three columns."""
_AT_ONCE = 1 << 14
"""Files whose footers are in memory before it is known which are kept: a few tasks for each worker."""


@exact_data(travels=False)
class PinnedFiles:
    """Parquet files as their footers told them: the private part of a pin, or a part of that.

    Parameters
    ----------
    files : tuple of PinnedFile
        In the order of their addresses.
    footers : tuple of Footer
        What their footers say.
    root : str or None
        What messages name in place of a file, where paths hold values.
    n_columns : int
        Columns that the spec reads.
    kept : tuple of (pyarrow.BooleanArray or None)
        Of each file, which of its rows its table still has; None where it has all of them.
    values : tuple of (RowDeletes or None)
        Of each file, what deletes rows by their values.
    """

    files: tuple[PinnedFile, ...]
    footers: tuple[Footer, ...]
    root: str | None
    n_columns: int
    kept: tuple[pa.BooleanArray | None, ...]
    values: tuple[RowDeletes | None, ...]

    def called(self, file: PinnedFile) -> str:
        """Return what messages call a file."""
        return file.address if self.root is None else f"below {self.root}"


def pin_files(
    files: Sequence[tuple[PinnedFile, ColumnsOf]],
    columns: Sequence[str],
    *,
    place: str,
    root: str | None = None,
    deletes: Sequence[Deletes | None] | None = None,
    values: Sequence[RowDeletes | None] | None = None,
) -> PinnedFiles:
    """Read the footers of files that were listed.

    Parameters
    ----------
    files : sequence of (PinnedFile, ColumnsOf)
        The files, in a fixed order, and how their columns become the source's.
    columns : sequence of str
        The source's columns that the spec reads.
    place : str
        What messages name: ``source.parquet``, say.
    root : str, optional
        What messages name in place of a file, where paths hold values; files are named otherwise.
    deletes : sequence, optional
        Of each file, which of its rows its table no longer has; None where it has all of them.
    values : sequence, optional
        Of each file, what deletes rows by their values; it is read with them.

    Raises
    ------
    UsageError
        Where one is no Parquet file, or what deletes rows of it cannot be read, or deletes others.
    """
    wanted = tuple(columns)
    asked = [(file, file_columns, wanted) for file, file_columns in files]
    parts = (asked[start : start + _AT_ONCE] for start in range(0, len(asked), _AT_ONCE))
    read = _within_memory(footer for part in parts for footer in surveyed(read_footers, part))
    footers: list[Footer] = []
    for (file, _), footer in zip(files, read, strict=True):
        if isinstance(footer, Unreadable):
            called = file.address if root is None else f"below {root}"
            message = f"{place}: the file {called} {footer}"
            raise UsageError(message)
        footers.append(footer)
    return PinnedFiles(
        files=tuple(file for file, _ in files),
        footers=tuple(footers),
        root=root,
        n_columns=len(wanted),
        kept=_kept_rows(footers, deletes or (None,) * len(files), f"{place}: {root}"),
        values=tuple(values or (None,) * len(files)),
    )


def _kept_rows(
    footers: Sequence[Footer], deletes: Sequence[Deletes | None], place: str
) -> tuple[pa.BooleanArray | None, ...]:
    """Return which rows of each file its table still has; None where it has all that enter anything."""

    def kept(footer: Footer, of: Deletes | None) -> pa.BooleanArray | None:
        n_rows = sum(group.n_rows for group in footer.row_groups)
        return _as_booleans(of.kept(n_rows)) if of and n_rows else None

    if not any(deletes):
        return (None,) * len(footers)
    try:
        return tuple(by_threads(lambda pair: kept(*pair), list(zip(footers, deletes, strict=True)), _READERS))
    except (ValueError, OSError, pa.ArrowException):
        message = (
            f"{place}: what deletes rows of a file is gone, damaged, or of other rows: name a later version "
            "or snapshot, or none, and keep files as long as releases need them"
        )
        raise UsageError(message) from None


def with_added_columns(pinned: PinnedFiles, columns: Sequence[str], unit: str | None) -> PinnedFiles:
    """Return loose files, columns that files lack and others hold being null in them, as tables have it.

    Parameters
    ----------
    pinned : PinnedFiles
        The files.
    columns : sequence of str
        The source's columns that the spec reads.
    unit : str or None
        The column of the units, which every file has to hold: nobody could tell whose the rows are.

    Returns
    -------
    PinnedFiles
        It follows from the names of the files' columns alone. What no file holds is left to the schema check.
    """
    held = {name for footer in pinned.footers for name in footer.schema.names}
    added = [name for name in columns if name in held and name != unit]

    def completed(footer: Footer) -> Footer:
        lacking = [name for name in added if name not in footer.schema.names]
        return footer.lacking(lacking) if lacking else footer

    return PinnedFiles(
        files=pinned.files,
        footers=tuple(map(completed, pinned.footers)),
        root=pinned.root,
        n_columns=pinned.n_columns,
        kept=pinned.kept,
        values=pinned.values,
    )


def file_schemas(pinned: PinnedFiles) -> tuple[PartSchema, ...]:
    """Return the source's columns as files have them: of each schema the first file that has it."""
    first: dict[tuple[pa.Schema, tuple[str, ...]], PinnedFile] = {}
    for file, footer in zip(pinned.files, pinned.footers, strict=True):
        first.setdefault((footer.schema, footer.absent), file)
    return tuple(
        PartSchema(part=pinned.called(file), columns=columns, absent=absent)
        for (columns, absent), file in first.items()
    )


def file_splits(kind: str, pinned: PinnedFiles) -> tuple[Split, ...]:
    """Batch consecutive row groups into splits of a kind of source; a row group is never divided."""
    n_rows = sum(group.n_rows for footer in pinned.footers for group in footer.row_groups)
    return tuple(_splits(kind, _row_groups(pinned), split_rows(n_rows, pinned.n_columns)))


def read_files(
    split: Split, columns: Sequence[str], block_rows: int, pages: PageReader | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the source's columns of a split in blocks of at most `block_rows` rows; see `read_piece`.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the pinned one.
    """
    pieces = (read_piece(piece, columns, block_rows, pages) for piece in split.pieces)
    yield from joined(chain.from_iterable(pieces), block_rows)


def check_files(pinned: PinnedFiles) -> None:
    """Check that every file is the pinned one, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or is not the pinned one.
    """
    for file in pinned.files:
        check_file(file, pinned.called(file))


def _within_memory(footers: Iterable[Footer | Unreadable]) -> Iterator[Footer | Unreadable]:
    """Let go of the footers beyond those that memory is set aside for; schemas that are alike are one."""
    left = _KEPT_BYTES
    schemas: dict[pa.Schema, pa.Schema] = {}
    for footer in footers:
        if isinstance(footer, Unreadable):
            yield footer
            continue
        kept = footer.metadata.value
        left -= _DECODED * kept.serialized_size if kept is not None else 0
        yield Footer(
            schema=schemas.setdefault(footer.schema, footer.schema),
            row_groups=footer.row_groups,
            columns=footer.columns,
            metadata=footer.metadata if left >= 0 else Kept(),
            absent=footer.absent,
        )


def _row_groups(pinned: PinnedFiles) -> Iterator[RowGroups]:
    for file, footer, kept, values in zip(
        pinned.files, pinned.footers, pinned.kept, pinned.values, strict=True
    ):
        first = 0
        for number, group in enumerate(footer.row_groups):
            of_group = None if kept is None else kept.slice(first, group.n_rows)
            yield RowGroups(
                file=file,
                called=pinned.called(file),
                row_groups=(number,),
                dictionaries=group.dictionaries,
                n_rows=group.n_rows if of_group is None else of_group.true_count,
                columns=footer.columns,
                metadata=footer.metadata,
                kept=of_group,
                values=values,
            )
            first += group.n_rows


def _splits(kind: str, groups: Iterable[RowGroups], enough: int) -> Iterator[Split]:
    """Batch consecutive row groups into splits of `enough` rows or more."""
    batch: list[RowGroups] = []
    n_rows = 0
    for group in groups:
        batch.append(group)
        n_rows += group.n_rows
        if n_rows >= enough:
            yield Split.of(kind, _joined(batch))
            batch, n_rows = [], 0
    if n_rows:
        yield Split.of(kind, _joined(batch))


def _joined(groups: Iterable[RowGroups]) -> list[RowGroups]:
    """Join consecutive row groups of a file that are read alike; leave out those without rows."""
    filled = (group for group in groups if group.n_rows)
    by_file = groupby(filled, lambda group: (group.file, group.dictionaries))
    return [_piece(list(alike)) for _, alike in by_file]


def _piece(groups: Sequence[RowGroups]) -> RowGroups:
    first = groups[0]
    kept = [group.kept for group in groups if group.kept is not None]
    return RowGroups(
        file=first.file,
        called=first.called,
        row_groups=tuple(number for group in groups for number in group.row_groups),
        dictionaries=first.dictionaries,
        n_rows=sum(group.n_rows for group in groups),
        columns=first.columns,
        metadata=first.metadata,
        kept=pa.concat_arrays(kept) if kept else None,
        values=first.values,
    )
