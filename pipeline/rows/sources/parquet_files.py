"""Pinned Parquet files, whoever listed them: footers, division into tasks, reading in blocks, what changed.

Paths, hive folders, and table formats that list files at a version all end here. A file may lack columns
that its source has, or call them otherwise: `FileColumns` says how its columns become the source's.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from suffice.errors import UsageError
from suffice.pipeline.rows.sources.contract import PartSchema, Split, split_rows
from suffice.pipeline.rows.sources.exact_data import Kept, exact_data
from suffice.pipeline.rows.sources.parquet_footers import Footer, read_footers
from suffice.pipeline.rows.sources.parquet_pieces import RowGroups, check_file, read_piece
from suffice.pipeline.rows.sources.surveying import surveyed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from suffice.pipeline.rows.sources.file_access import PinnedFile
    from suffice.pipeline.rows.sources.parquet_footers import ColumnsOf

_KEPT_BYTES = 1 << 26
"""Footers of so many bytes in all are kept from pin to reading; others are read again."""


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
    """

    files: tuple[PinnedFile, ...]
    footers: tuple[Footer, ...]
    root: str | None
    n_columns: int
    kept: tuple[pa.BooleanArray | None, ...]

    def called(self, file: PinnedFile) -> str:
        """Return what messages call a file."""
        return file.address if self.root is None else f"below {self.root}"


def pin_files(
    files: Sequence[tuple[PinnedFile, ColumnsOf]],
    columns: Sequence[str],
    *,
    place: str,
    root: str | None = None,
    kept: Sequence[pa.BooleanArray | None] | None = None,
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
    kept : sequence, optional
        Of each file, which of its rows its table still has; None where it has all of them.

    Raises
    ------
    UsageError
        Where one is no Parquet file.
    """
    wanted = tuple(columns)
    footers = surveyed(read_footers, [(file, file_columns, wanted) for file, file_columns in files])
    pinned = PinnedFiles(
        files=tuple(file for file, _ in files),
        footers=tuple(_within_memory(footers)),
        root=root,
        n_columns=len(wanted),
        kept=tuple(kept) if kept is not None else (None,) * len(files),
    )
    for file, footer in zip(pinned.files, footers, strict=True):
        if footer is None:
            message = f"{place}: the file {pinned.called(file)} cannot be read as a Parquet file"
            raise UsageError(message)
    return pinned


def file_schemas(pinned: PinnedFiles) -> tuple[PartSchema, ...]:
    """Return the source's columns as files have them: of each schema the first file that has it."""
    first: dict[pa.Schema, PinnedFile] = {}
    for file, footer in zip(pinned.files, pinned.footers, strict=True):
        first.setdefault(footer.schema, file)
    return tuple(PartSchema(part=pinned.called(file), columns=columns) for columns, file in first.items())


def file_splits(kind: str, pinned: PinnedFiles) -> tuple[Split, ...]:
    """Batch consecutive row groups into splits of a kind of source; a row group is never divided."""
    n_rows = sum(group.n_rows for footer in pinned.footers for group in footer.row_groups)
    return tuple(_splits(kind, _row_groups(pinned), split_rows(n_rows, pinned.n_columns)))


def read_files(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the source's columns of a split in blocks of at most `block_rows` rows.

    Raises
    ------
    StageFailedError
        Where a file cannot be read, or is not the pinned one.
    """
    for piece in split.pieces:
        yield from read_piece(piece, columns, block_rows)


def check_files(pinned: PinnedFiles) -> None:
    """Check that every file is the pinned one, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or is not the pinned one.
    """
    for file in pinned.files:
        check_file(file, pinned.called(file))


def _within_memory(footers: Iterable[Footer | None]) -> Iterator[Footer]:
    """Let go of the footers beyond those that memory is set aside for."""
    left = _KEPT_BYTES
    for footer in footers:
        if footer is None:
            continue
        kept = footer.metadata.value
        left -= kept.serialized_size if kept is not None else 0
        yield (
            footer
            if left >= 0
            else Footer(
                schema=footer.schema,
                row_groups=footer.row_groups,
                columns=footer.columns,
                metadata=Kept(),
            )
        )


def _row_groups(pinned: PinnedFiles) -> Iterator[RowGroups]:
    for file, footer, kept in zip(pinned.files, pinned.footers, pinned.kept, strict=True):
        first = 0
        for number, group in enumerate(footer.row_groups):
            yield RowGroups(
                file=file,
                called=pinned.called(file),
                row_groups=(number,),
                dictionaries=group.dictionaries,
                n_rows=group.n_rows,
                columns=footer.columns,
                metadata=footer.metadata,
                kept=None if kept is None else _kept(kept, first, group.n_rows),
            )
            first += group.n_rows


def _kept(kept: pa.BooleanArray, first: int, n_rows: int) -> pa.BooleanArray:
    """Return which of some rows are kept: what says nothing of the last ones keeps them."""
    part = kept.slice(first, n_rows)
    return pa.concat_arrays([part, pa.repeat(True, n_rows - len(part))])  # noqa: FBT003 - a value


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
    )
