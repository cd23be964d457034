"""Rows as tables of the types that pandas, Spark, DuckDB and PostgreSQL write, and what is then stored."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.terms.declaration.type_family import TypeFamily

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from suffice.auditing.hostile_rows import Part, Row
    from suffice.auditing.implied_schema import ImpliedColumn

    Schema = Mapping[str, ImpliedColumn]

ALL_NULLS_AS_DOUBLE = "pandas, a column without a value as double"
"""A writer that stores a column without a value as double, whatever it holds elsewhere."""

LEAVES_OUT_EMPTY = "a writer that leaves out a column without a value"

_TYPES = {
    TypeFamily.TEXT: pa.string(),
    TypeFamily.BOOLEAN: pa.bool_(),
    TypeFamily.DATE: pa.date32(),
}


def arrow_type(column: ImpliedColumn) -> pa.DataType:
    """Return the type of a column in a table that has a schema apart from its rows."""
    if column.family is TypeFamily.NUMERIC:
        return pa.int64() if column.is_whole else pa.float64()
    if column.family is TypeFamily.TIMESTAMP:
        return pa.timestamp("us", "UTC" if column.has_zone else None)
    return _TYPES[column.family]


def table_of(rows: Sequence[Row], schema: Schema, writer: str = "spark") -> pa.Table:
    """Return rows as one writer types them."""
    columns = {
        name: _array([row[name] for row in rows], column, writer)
        for name, column in schema.items()
        if writer != LEAVES_OUT_EMPTY or any(row[name] is not None for row in rows)
    }
    return pa.table(columns) if columns else pa.table({"nothing": pa.nulls(len(rows))})


def _array(values: list[Any], column: ImpliedColumn, writer: str) -> pa.Array:
    has_null = any(value is None for value in values)
    is_empty = has_null and all(value is None for value in values)
    if writer == ALL_NULLS_AS_DOUBLE and is_empty:
        return pa.array(np.full(len(values), np.nan))
    if column.family is TypeFamily.NUMERIC:
        return _numbers(values, column, writer, has_null=has_null)
    if column.family is TypeFamily.TEXT:
        kind = {"pandas": pa.large_string(), "duckdb": pa.dictionary(pa.int32(), pa.string())}
        return pa.array(values, pa.string()).cast(kind.get(writer, pa.string()))
    return pa.array(values, arrow_type(column))


def _numbers(values: list[Any], column: ImpliedColumn, writer: str, *, has_null: bool) -> pa.Array:
    if writer == "single":
        numbers = np.array([np.nan if value is None else value for value in values], np.float64)
        with np.errstate(over="ignore"):
            return pa.array(numbers.astype(np.float32))
    if not column.is_whole:
        return pa.array(values, pa.float64())
    if writer == "postgres":
        return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(20, 0))
    if writer.startswith("pandas") and has_null:
        return pa.array(np.array([np.nan if value is None else float(value) for value in values]))
    return pa.array(values, pa.int64())


def stored_rows(part: Part, schema: Schema) -> list[Row]:
    """Return the rows of a part as a file holds them: ids that doubles cannot hold are rounded."""
    rows = table_of(part.rows, schema, part.writer).to_pylist()
    return [
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()}
        for row in rows
    ]


def write_parquet(table: pa.Table, path: Path, writer: str) -> None:
    """Write a table as one file, as its writer does."""
    settings: dict[str, Any] = {"row_group_size": max(1, table.num_rows // 2)}
    if writer == "spark":
        settings |= {"compression": "snappy", "store_schema": False}
        # INT96, as Spark writes times, has no zone.
        zoned = any(pa.types.is_timestamp(field.type) and field.type.tz for field in table.schema)
        settings["use_deprecated_int96_timestamps"] = not zoned
    if writer == "duckdb":
        settings |= {"use_dictionary": True, "compression": "zstd"}
    pq.write_table(table, path, **settings)
