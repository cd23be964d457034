"""Tables in PostgreSQL as sources: how tests write, change and lose one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from support.postgres import connect, execute

if TYPE_CHECKING:
    import psycopg

TABLE = "public.flights"
OTHERS = "pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"


def source_url() -> str:
    """Return where tests keep their tables."""
    return os.environ["SUFFICE_POSTGRESQL"]


def server_type(kind: pa.DataType) -> str:
    """Return the type of a column that holds an Arrow type's values."""
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_dictionary(kind):
        return "text"
    names = {
        pa.bool_(): "boolean",
        pa.int8(): "int2",
        pa.int16(): "int2",
        pa.int32(): "int4",
        pa.int64(): "int8",
        pa.uint64(): "numeric(20,0)",
        pa.float32(): "float4",
        pa.float64(): "float8",
        pa.date32(): "date",
    }
    return names.get(kind, "text")


def write_postgresql(table: pa.Table, name: str = TABLE) -> dict[str, Any]:
    """Write a table where none holds a lock on what was there; return the entry of a spec."""
    end_all_others()
    columns = ", ".join(f'"{field.name}" {server_type(field.type)}' for field in table.schema)
    execute(source_url(), f"DROP TABLE IF EXISTS {name} CASCADE", f"CREATE TABLE {name} ({columns})")
    with connect(source_url()) as connection:
        copy_rows(connection, name, table)
    return {"postgresql": name}


def copy_rows(connection: psycopg.Connection[Any], name: str, table: pa.Table) -> None:
    """Add the rows of a table."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)


def change_postgresql(name: str = TABLE) -> None:
    """Commit other rows: fewer, more, and moved ones."""
    moved = f"UPDATE {name} SET flag = NOT flag WHERE amount > 3"  # noqa: S608
    execute(source_url(), moved, f"INSERT INTO {name} SELECT * FROM {name}", f"DELETE FROM {name} WHERE flag")  # noqa: S608


def end_all_others() -> None:
    """End every other connection to the database, those that hold snapshots above all."""
    execute(source_url(), f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {OTHERS}")  # noqa: S608


def lose_postgresql() -> None:
    """End the connection that holds the snapshot."""
    end_all_others()
