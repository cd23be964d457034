"""A ledger's tables in an SQL database: made once, recognised by their revision."""

from __future__ import annotations

import secrets
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, insert, inspect, select, text

from suffice.errors import LedgerError
from suffice.storage.ledger.chain import START_HASH, EntryKind, coarse, format_time
from suffice.storage.ledger.sql import migrations, tables
from suffice.storage.ledger.sql.rows import append_entry

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection


def has_ledger(connection: Connection, location: str) -> bool:
    """Tell whether a database holds a ledger that this version of the package reads and writes.

    Parameters
    ----------
    connection : Connection
    location : str
        The database as messages name it.

    Raises
    ------
    LedgerError
        Where it holds the ledger of another version, or another program's tables.
    """
    inspector = inspect(connection)
    if not inspector.has_table("alembic_version"):
        return False
    if not inspector.has_table(tables.ledger.name):
        message = f"{location} is a database, but not a ledger of suffice"
        raise LedgerError(message)
    revision = connection.scalar(select(text("version_num")).select_from(text("alembic_version")))
    if revision != tables.REVISION:
        message = (
            f"the ledger {location} has the schema {revision}, this version of suffice needs "
            f"{tables.REVISION}: use the version that wrote it, or a newer one"
        )
        raise LedgerError(message)
    return True


def make_ledger(connection: Connection, now: datetime) -> None:
    """Make all tables and the first entry, in the transaction that `connection` is in."""
    migrations.upgrade(connection)
    ledger_id = secrets.token_hex(16)
    connection.execute(
        insert(tables.ledger).values(
            id=1,
            ledger_id=ledger_id,
            head_sequence=0,
            head_hash=START_HASH,
            created_at=format_time(coarse(now)),
        )
    )
    append_entry(connection, EntryKind.CREATED, now, {"ledger_id": ledger_id, "format_version": 1})


def altered_rules(connection: Connection) -> list[str]:
    """Name the tables, indexes and triggers of an SQLite ledger that are not as the migrations made them.

    On a server only the role that made the ledger can change them.
    """
    if connection.dialect.name != "sqlite":
        return []
    present = _objects(connection)
    return [
        f"the ledger's {kind} {name} is missing or altered: it keeps a rule, or rows"
        for kind, name, _table, _statement in sorted(_made_by_the_migrations() - present, key=str)
    ]


@cache
def _made_by_the_migrations() -> frozenset[tuple[str, str, str, str]]:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            migrations.upgrade(connection)
            return _objects(connection)
    finally:
        engine.dispose()


def _objects(connection: Connection) -> frozenset[tuple[str, str, str, str]]:
    query = text("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return frozenset((row[0], row[1], row[2], row[3]) for row in connection.execute(query))
