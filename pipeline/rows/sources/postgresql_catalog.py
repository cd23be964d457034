"""What PostgreSQL's catalogue says of a table or a view: its columns, their types, and where its rows are.

Names come from the spec or from the catalogue, and are quoted; nothing here depends on a row. No expression
raises in the server, whatever the value: an error would stop the release because of a value, and PostgreSQL
writes the value into its log. Values that Arrow's type cannot hold become nulls:

- decimals that are NaN;
- dates and timestamps that are infinite, and timestamps from the year 200,000 on. Where they are privacy
  units their rows enter nothing: as nulls, each row could be a unit of its own, and a person enter any number
  of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.rows.sources.contract import exact_data
from suffice.pipeline.terms.declaration.table_names import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST_SCALED = 18
"""Digits of a decimal that, scaled to an integer, surely is one of 64 bits."""
_TYPMOD_HEADER = 4
_UNREAD = pa.time64("us")
"""Stands for a type that no statistic reads; the schema check refuses it."""

_AS_IT_IS = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
}
_AS_TEXT = frozenset({"bpchar", "name", "uuid", "enum"})
"""Whose cast to text never fails; that of padded characters drops the padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerColumn:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its name.
    kind : pyarrow.DataType
        What holds its values here.
    expression : str
        What is asked of the server.
    scaled : bool
        Whether integers arrive, which are decimals times a power of ten.
    enters : str
        Of a unit, which rows are asked for; empty for all.
    """

    name: str
    kind: pa.DataType
    expression: str
    scaled: bool = False
    enters: str = ""

    @property
    def is_read(self) -> bool:
        """Whether some statistic can read it."""
        return bool(self.kind != _UNREAD)

    def array(self, stored: pa.Array) -> pa.Array:
        """Return values as they arrived in their Arrow type, without copying most of them."""
        if isinstance(stored, pa.ExtensionArray):
            stored = stored.storage
        if self.scaled:
            return _decimals(stored, self.kind)
        return stored if stored.type == self.kind else pc.cast(stored, self.kind)


def server_column(name: str, type_name: str, typmod: int, *, is_unit: bool) -> ServerColumn:
    """Return a column as the catalogue describes it.

    Parameters
    ----------
    name : str
        Its name.
    type_name : str
        Its type in ``pg_type``, of a domain that of its base; ``enum`` for enumerated types.
    typmod : int
        The type's modifier: of ``numeric`` its precision and scale, -1 for none.
    is_unit : bool
        Whether its values are the privacy units, which must not be rounded.
    """
    column = quoted(name)
    if type_name in _AS_IT_IS:
        return ServerColumn(name=name, kind=_AS_IT_IS[type_name], expression=column)
    if type_name in _AS_TEXT:
        return ServerColumn(name=name, kind=pa.string(), expression=f"{column}::text")
    if type_name == "numeric":
        return _numeric(name, column, typmod, is_unit=is_unit)
    if type_name == "date":
        return _time(name, column, pa.date32(), f"isfinite({column})", is_unit=is_unit)
    if type_name in {"timestamp", "timestamptz"}:
        kind = pa.timestamp("us", "UTC" if type_name == "timestamptz" else None)
        in_range = f"isfinite({column}) AND {column} < {type_name} '200000-01-01'"
        return _time(name, column, kind, in_range, is_unit=is_unit)
    return ServerColumn(name=name, kind=_UNREAD, expression="NULL::time")


def batch_of(batch: pa.RecordBatch, columns: Sequence[ServerColumn]) -> pa.RecordBatch:
    """Return a batch as it arrived in the columns' Arrow types."""
    arrays = [column.array(batch.column(index)) for index, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])


def _time(name: str, column: str, kind: pa.DataType, in_range: str, *, is_unit: bool) -> ServerColumn:
    """Return a date or a time: null out of range, and as a unit not asked for there."""
    enters = f"({column} IS NULL OR {in_range})" if is_unit else ""
    return ServerColumn(name=name, kind=kind, expression=_where(in_range, column), enters=enters)


def _numeric(name: str, column: str, typmod: int, *, is_unit: bool) -> ServerColumn:
    """Return a decimal: scaled to an integer, as text, or where it has no declared digits as a float64.

    Without declared digits a unit stays text, as a float64 would merge units: without trailing zeros, as the
    server holds 5 and 5.0 for equal.
    """
    precision, scale = divmod(typmod - _TYPMOD_HEADER, 1 << 16) if typmod >= _TYPMOD_HEADER else (0, 0)
    is_number = f"{column} <> 'NaN'::numeric"
    if 0 < precision <= _LARGEST_SCALED and 0 <= scale <= precision:
        kind = pa.decimal128(precision, scale)
        scaled = f"({column} * 1{'0' * scale})::int8"
        return ServerColumn(name=name, kind=kind, expression=_where(is_number, scaled), scaled=True)
    if 0 < precision <= 38 and 0 <= scale <= precision:
        text = _where(is_number, f"{column}::text")
        return ServerColumn(name=name, kind=pa.decimal128(precision, scale), expression=text)
    if is_unit:
        text = _where(is_number, f"trim_scale({column})::text")
        return ServerColumn(name=name, kind=pa.string(), expression=text)
    # The cast fails beyond the range of float64, and below it: 308 digits before the point, 307 after it.
    largest, smallest = "1" + "0" * 308, "0." + "0" * 306 + "1"
    expression = (
        f"CASE WHEN {column} = 'NaN'::numeric THEN 'NaN'::float8"
        f" WHEN {column} >= {largest} THEN 'Infinity'::float8"
        f" WHEN {column} <= -{largest} THEN '-Infinity'::float8"
        f" WHEN abs({column}) < {smallest} AND {column} IS NOT NULL THEN 0::float8"
        f" ELSE {column}::float8 END"
    )
    return ServerColumn(name=name, kind=pa.float64(), expression=expression)


def _where(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


def _decimals(integers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return integers as decimals of so many digits after the point: the same bits, called otherwise."""
    wide = pc.cast(integers, pa.decimal128(19, 0))
    buffers: list[Any] = wide.buffers()
    return pa.Array.from_buffers(kind, len(wide), buffers, wide.null_count, wide.offset)


DATABASE = (
    "(SELECT system_identifier::text FROM pg_control_system()) || '/' ||"
    " (SELECT oid::text FROM pg_database WHERE datname = current_database())"
)
"""Tells one server's database from all others."""

READABLE = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view"}
"""Kinds of relations that are read, as ``pg_class`` calls them."""

_FIRST_WITH_RANGES = 140000
"""From this version of the server on a range of pages is read without reading all others."""
_ROWS_PER_PAGE = 100
"""Taken of a table that the server has no estimate of."""


@exact_data(travels=False)
class Leaf:
    """A table that holds rows itself.

    Parameters
    ----------
    name : str
        As SQL names it.
    n_pages : int
        Pages of its file.
    rows_per_page : float
        The server's estimate.
    """

    name: str
    n_pages: int
    rows_per_page: float


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def rows_of(cursor: Any, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query about the catalogue."""
    cursor.execute(query)
    return [tuple(row) for row in cursor.fetchall()]


def relation_kind(cursor: Any, name: str) -> str | None:
    """Return what kind of relation has a name of schema and table, a key of `READABLE` perhaps; or None."""
    kinds = rows_of(cursor, f"SELECT relkind::text FROM pg_class c WHERE {_is_named(name)}")  # noqa: S608
    return str(kinds[0][0]) if kinds else None


def columns(cursor: Any, name: str, unit: str | None) -> tuple[ServerColumn, ...]:
    """Return the columns of a relation, in its order; `unit` names the one that holds the privacy units."""
    rows = rows_of(
        cursor,
        "SELECT a.attname::text,"  # noqa: S608
        " CASE WHEN b.typtype = 'e' THEN 'enum' WHEN b.typnamespace = 'pg_catalog'::regnamespace"
        " THEN b.typname::text ELSE '' END,"
        " CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END"
        " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid"
        " JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END"
        f" WHERE {_is_named(name)} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    )
    return tuple(server_column(*row, is_unit=row[0] == unit) for row in rows)


def schema_of(columns: Sequence[ServerColumn]) -> pa.Schema:
    """Return columns as a schema of Arrow."""
    return pa.schema([pa.field(column.name, column.kind) for column in columns])


def leaves(cursor: Any, name: str) -> tuple[Leaf, ...] | None:
    """Return the tables that hold a relation's rows, so that together they are all of its rows.

    None where it has to be read as a whole: it is a view, a part of it lies elsewhere or may not be read by
    itself, policies choose the rows that the role sees, or the server cannot read ranges of pages.
    """
    rows = rows_of(
        cursor,
        "WITH RECURSIVE tree(oid) AS ("  # noqa: S608
        f" SELECT c.oid FROM pg_class c WHERE {_is_named(name)}"
        " UNION SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid)"
        " SELECT n.nspname::text, c.relname::text, c.relkind::text, c.relrowsecurity,"
        " has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),"
        " CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) ELSE 0 END"
        " / current_setting('block_size')::bigint,"
        " CASE WHEN c.relpages > 0 AND c.reltuples > 0"
        f" THEN c.reltuples / c.relpages ELSE {_ROWS_PER_PAGE} END::float8,"
        " current_setting('server_version_num')::int"
        " FROM tree JOIN pg_class c ON c.oid = tree.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
        " ORDER BY c.oid",
    )
    for _, _, kind, has_policies, is_readable, _, _, version in rows:
        if kind not in "rpm" or has_policies or not is_readable or version < _FIRST_WITH_RANGES:
            return None
    return tuple(
        Leaf(name=f"{quoted(schema)}.{quoted(table)}", n_pages=n_pages, rows_per_page=rows_per_page)
        for schema, table, kind, _, _, n_pages, rows_per_page, _ in rows
        if kind in "rm"
    )


def _is_named(name: str) -> str:
    schema, table = map(literal, name.split("."))
    return (
        f"c.relname = {table} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"  # noqa: S608
        f" AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = {schema})"
    )
