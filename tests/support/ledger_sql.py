"""SQL past the ledger, on either engine: within the rules of its database, and with all rights."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from support import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSALS = (sqlite3.IntegrityError, psycopg.IntegrityError)
_SQLITE = "sqlite:///"
_TABLES = (
    "ledger",
    "accounts",
    "windows",
    "names",
    "plans",
    "entries",
    "checkpoints",
    "stores",
    "charges",
    "staged_manifests",
    "staged_files",
)


def execute(url: str, *statements: str) -> None:
    """Run statements in one transaction, under every rule of the database."""
    if url.startswith(_SQLITE):
        with closing(sqlite3.connect(url.removeprefix(_SQLITE), timeout=60)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            with connection:
                for statement in statements:
                    connection.execute(statement)
        return
    with postgres.connect(url) as server, server.transaction():
        for statement in statements:
            server.execute(statement.encode())


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """Return what a query finds."""
    if url.startswith(_SQLITE):
        with closing(sqlite3.connect(url.removeprefix(_SQLITE), timeout=60)) as connection:
            return connection.execute(query).fetchall()
    with postgres.connect(url) as server:
        return server.execute(query.encode()).fetchall()


def tamper(url: str, *statements: str) -> None:
    """Run statements in one transaction, with triggers and foreign keys out of the way."""
    if not url.startswith(_SQLITE):
        execute(url, "SET LOCAL session_replication_role = replica", *statements)
        return
    with closing(sqlite3.connect(url.removeprefix(_SQLITE), timeout=60)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, trigger in triggers:
            connection.execute(trigger)


@contextmanager
def tampered(url: str, *statements: str) -> Iterator[None]:
    """Tamper with a ledger for as long as the block lasts."""
    tamper(url, *_for_tables("CREATE TABLE kept_{0} AS SELECT * FROM {0}"), *statements)
    try:
        yield
    finally:
        emptied, restored = (
            _for_tables("DELETE FROM {0}"),
            _for_tables("INSERT INTO {0} SELECT * FROM kept_{0}"),
        )
        tamper(url, *emptied, *restored, *_for_tables("DROP TABLE kept_{0}"))


def _for_tables(statement: str) -> list[str]:
    return [statement.format(table) for table in _TABLES]


def columns(url: str, table: str) -> list[str]:
    """Return the names of a table's columns, quoted, in their order."""
    if url.startswith(_SQLITE):
        with closing(sqlite3.connect(url.removeprefix(_SQLITE))) as connection:
            rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
    else:
        query = (
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
        )
        with postgres.connect(url) as server:
            rows = server.execute(query, (table,)).fetchall()
    return [f'"{name}"' for (name,) in rows]
