"""Times of 96 bits (``INT96``), the type in which Spark, Hive and Trino write instants to Parquet by default.

The type says nothing of a zone. Its writers turn an instant into UTC, whatever their own zone, so that it is
read as an instant; a contract that calls the column ``timestamp`` or ``date`` says that it holds wall times,
and what is stored is then taken as it is. Read as nanoseconds, years from 2262 on would come back as others:
microseconds hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.terms.declaration.column_types import ColumnFamily

if TYPE_CHECKING:
    from typing import BinaryIO

_INSTANT = pa.timestamp("us", "UTC")
WALL_TIME = pa.timestamp("us")
WALL_TIMES = frozenset({ColumnFamily.TIMESTAMP, ColumnFamily.DATE})
"""Families whose values have no zone."""
_MARK = {b"physical type": b"INT96"}


class ColumnNamesError(pa.ArrowInvalid):  # type: ignore[misc]
    """A Parquet file has a column whose name is no UTF-8: Arrow reads none of such a file."""


def parquet_file(content: BinaryIO | str, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file whose times of 96 bits are read in microseconds; for options see `ParquetFile`.

    Raises
    ------
    ColumnNamesError
        And Arrow's own, of which it is one.
    """
    try:
        return pq.ParquetFile(content, coerce_int96_timestamp_unit=_INSTANT.unit, **options)
    except UnicodeDecodeError:
        raise ColumnNamesError from None


def stored_columns(file: pq.ParquetFile) -> pa.Schema:
    """Return the columns of a file; times of 96 bits are instants, and known by `is_of_96_bits`."""
    schema: pa.Schema = file.schema_arrow
    names = _names(file, schema)
    if not names:
        return schema
    return pa.schema([_marked(of) if of.name in names else of for of in schema], metadata=schema.metadata)


def _marked(field: pa.Field) -> pa.Field:
    """Return an instant's field, which keeps what else is known of it, as its id in a table."""
    return pa.field(field.name, _INSTANT, metadata={**(field.metadata or {}), **_MARK})


def is_of_96_bits(field: pa.Field) -> bool:
    """Tell whether a column of a file holds times of 96 bits."""
    return field.metadata is not None and _MARK.items() <= field.metadata.items()


def with_instants(batch: pa.RecordBatch, file: pq.ParquetFile) -> pa.RecordBatch:
    """Return a batch that was read from a file, with times of 96 bits as instants."""
    names = _names(file, batch.schema)
    if not names.intersection(batch.schema.names):
        return batch
    arrays = [
        column.view(_INSTANT) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def as_wall_times(column: pa.Array) -> pa.Array:
    """Return instants as what a clock in UTC shows, without a zone."""
    return column.view(WALL_TIME)


def _names(file: pq.ParquetFile, schema: pa.Schema) -> frozenset[str]:
    """Return the columns of times of 96 bits; those within lists and structures are read by nobody."""
    if not any(map(pa.types.is_timestamp, schema.types)):
        return frozenset()
    metadata = file.metadata
    columns = (metadata.schema.column(index) for index in range(metadata.num_columns))
    # What lies within another column has that one's name, too, in its path.
    return frozenset(
        column.name for column in columns if column.physical_type == "INT96" and column.path == column.name
    )
