"""Footers of Parquet files: their columns, their row groups, and which texts are stored as dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.rows.sources.contracted_columns import ContractedColumns
from suffice.pipeline.rows.sources.exact_data import Kept, exact_data
from suffice.pipeline.rows.sources.file_access import PinnedFile, opened
from suffice.pipeline.rows.sources.file_columns import AS_STORED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.rows.sources.file_columns import FileColumns


class ColumnsOf(Protocol):
    """What knows how the columns of a file become its source's: exact data that travel."""

    def of(self, stored: pa.Schema) -> FileColumns | None:
        """Return how they do; None where the file does not tell."""


@exact_data(travels=True)
class RowGroup:
    """What division into tasks needs of one row group.

    Parameters
    ----------
    n_rows : int
        Physical rows in it.
    dictionaries : tuple of str
        Text columns that are worth reading as dictionaries, by the file's names: stored as such.
    """

    n_rows: int
    dictionaries: tuple[str, ...]


@exact_data(travels=True)
class Footer:
    """What the footer of one file says.

    Parameters
    ----------
    schema : pyarrow.Schema
        The source's columns.
    row_groups : tuple of RowGroup
        In their order.
    columns : FileColumns
        How the file's columns become the source's.
    metadata : Kept
        The footer itself, which holds the least and the largest value of columns: it never travels.
    """

    schema: pa.Schema
    row_groups: tuple[RowGroup, ...]
    columns: FileColumns
    metadata: Kept


def read_footers(files: Sequence[tuple[PinnedFile, ColumnsOf, tuple[str, ...]]]) -> list[Footer | None]:
    """Read the footers of some files; None for what is no Parquet file, or cannot be read.

    Parameters
    ----------
    files : sequence of (PinnedFile, ColumnsOf, tuple of str)
        The files, how their columns become the source's, and the source's columns that the spec reads.
    """
    return [_read_footer(*each) for each in files]


def _read_footer(file: PinnedFile, columns_of: ColumnsOf, columns: Iterable[str]) -> Footer | None:
    try:
        with opened(file) as found, pq.ParquetFile(found) as parquet:
            metadata, schema = parquet.metadata, parquet.schema_arrow
    except (pa.ArrowException, OSError):
        return _NO_ROWS if isinstance(columns_of, ContractedColumns) and _is_open_to(file) else None
    file_columns = columns_of.of(schema)
    if file_columns is None:
        return None
    paths = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    wanted = {name: paths[name] for name in file_columns.stored(columns) if name in paths}
    groups = []
    for number in range(metadata.num_row_groups if file_columns.has_rows else 0):
        group = metadata.row_group(number)
        dictionaries = tuple(name for name, index in wanted.items() if _is_dictionary(group.column(index)))
        groups.append(RowGroup(n_rows=group.num_rows, dictionaries=dictionaries))
    return Footer(
        schema=file_columns.schema(schema.remove_metadata()),
        row_groups=tuple(groups),
        columns=file_columns,
        metadata=Kept(metadata),
    )


def _is_open_to(file: PinnedFile) -> bool:
    """Tell whether a file's bytes can be had: by a contract, what is no Parquet file then has no rows."""
    try:
        with opened(file) as found:
            found.read(1)
    except OSError:
        return False
    return True


_NO_ROWS = Footer(schema=pa.schema([]), row_groups=(), columns=AS_STORED, metadata=Kept())


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
