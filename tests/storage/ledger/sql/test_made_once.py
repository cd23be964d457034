"""Ledgers that tests make by kept statements have the schema that the migrations make."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, make_url, text

from suffice.storage.ledger.sql import migrations
from support.made_once import keeping_statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

SQLITE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2"
POSTGRESQL = """
SELECT table_name, column_name, data_type, is_nullable, coalesce(column_default, '')
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '' FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), '', '' FROM pg_trigger
  WHERE NOT tgisinternal
UNION ALL SELECT proname, '', prosrc, '', '' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
ORDER BY 1, 2, 3
"""


def schema(connection: Connection) -> list[tuple[object, ...]]:
    query = SQLITE if connection.dialect.name == "sqlite" else POSTGRESQL
    rows = [tuple(row) for row in connection.execute(text(query))]
    return [*rows, *(tuple(row) for row in connection.execute(text("SELECT * FROM alembic_version")))]


@contextmanager
def empty(url: str) -> Iterator[Connection]:
    """Open a transaction on an empty database that is rolled back."""
    made = make_url(url)
    if made.drivername == "postgresql":
        engine = create_engine(made.set(drivername="postgresql+psycopg"))
    else:
        engine = create_engine("sqlite://")
    with engine.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()
    engine.dispose()


def test_kept_statements_make_what_the_migrations_make(ledger_url: str) -> None:
    runs = []

    def upgrade(connection: Connection, revision: str) -> None:
        runs.append(revision)
        ORIGINAL(connection, revision)

    kept = keeping_statements(upgrade)
    made = []
    for _ in range(3):
        with empty(ledger_url) as connection:
            kept(connection)
            made.append(schema(connection))
    assert runs == ["head"], "the others are of kept statements"
    assert made[0] == made[1] == made[2]
    assert len(made[0]) > 20


def test_a_named_revision_is_migrated_to() -> None:
    runs = []
    kept = keeping_statements(lambda _, revision: runs.append(revision))
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        kept(connection, "0001")
        connection.execute(text("CREATE TABLE here (number INTEGER)"))
        kept(connection)
    engine.dispose()
    assert runs == ["0001", "head"]


ORIGINAL = migrations.upgrade
"""As the module has it: sessions of tests replace it later."""
