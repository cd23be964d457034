"""What PostgreSQL's catalogue says of a table or a view: its columns, and the tables that hold its rows.

Names come from the spec or from the catalogue, and are quoted; nothing here depends on a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.rows.sources.postgresql_columns import ServerColumn, server_column
from suffice.pipeline.terms.declaration.table_names import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    found = rows_of(cursor, f"SELECT relkind::text FROM pg_class c WHERE {_is_named(name)}")  # noqa: S608
    return str(found[0][0]) if found else None


def columns(cursor: Any, name: str, unit: str | None) -> tuple[ServerColumn, ...]:
    """Return the columns of a relation, in its order; `unit` names the one that holds the privacy units."""
    found = rows_of(
        cursor,
        "SELECT a.attname::text,"  # noqa: S608
        " CASE WHEN b.typtype = 'e' THEN 'enum' WHEN b.typnamespace = 'pg_catalog'::regnamespace"
        " THEN b.typname::text ELSE '' END,"
        " CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END"
        " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid"
        " JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END"
        f" WHERE {_is_named(name)} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    )
    return tuple(server_column(*row, is_unit=row[0] == unit) for row in found)


def schema_of(found: Sequence[ServerColumn]) -> pa.Schema:
    """Return columns as a schema of Arrow."""
    return pa.schema([pa.field(column.name, column.kind) for column in found])


def leaves(cursor: Any, name: str) -> tuple[Leaf, ...] | None:
    """Return the tables that hold a relation's rows, so that together they are all of its rows.

    None where it has to be read as a whole: it is a view, a part of it lies elsewhere or may not be read by
    itself, policies choose the rows that the role sees, or the server cannot read ranges of pages.
    """
    found = rows_of(
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
    for _, _, kind, has_policies, is_readable, _, _, version in found:
        if kind not in "rpm" or has_policies or not is_readable or version < _FIRST_WITH_RANGES:
            return None
    return tuple(
        Leaf(name=f"{quoted(schema)}.{quoted(table)}", n_pages=n_pages, rows_per_page=rows_per_page)
        for schema, table, kind, _, _, n_pages, rows_per_page, _ in found
        if kind in "rm"
    )


def _is_named(name: str) -> str:
    schema, table = map(literal, name.split("."))
    return (
        f"c.relname = {table} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"  # noqa: S608
        f" AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = {schema})"
    )
