"""Ledgers that tests make by kept statements have the schema that the migrations make."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from suffice.storage.ledger.opening import create_ledger
from suffice.storage.ledger.sql import migrations, sqlite
from support.made_once import REVISION, Schemas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


def test_kept_statements_make_what_the_migrations_make(empty_url: str) -> None:
    runs = []

    def upgrade(connection: Connection, revision: str) -> None:
        runs.append(revision)
        ORIGINAL(connection, revision)

    schemas = Schemas()
    kept = schemas.keeping_statements(upgrade)
    made = []
    for preparing in (False, False, True):
        with empty(empty_url) as connection:
            if preparing:
                for statement in schemas.preparing(connection.dialect.name) or ():
                    connection.exec_driver_sql(statement)
                with pytest.raises(DBAPIError, match=REVISION), connection.begin_nested():
                    schema(connection)
            kept(connection)
            made.append(schema(connection))
    assert runs == ["head"], "the others are of kept statements"
    assert made[0] == made[1] == made[2]
    assert len(made[0]) > 20


def test_a_file_from_a_copy_is_a_ledger_as_the_migrations_make_it(tmp_path: Path) -> None:
    schemas = Schemas()
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "upgrade", schemas.keeping_statements(ORIGINAL))
        patch.setattr(sqlite, "_fill", schemas.filling_copies(FILL))
        for name in ("first.db", "copied.db"):
            with closing(create_ledger(f"sqlite:///{tmp_path / name}")):
                pass
            with closing(sqlite3.connect(tmp_path / name)) as connection:
                made.append(sorted(connection.execute(SQLITE)))
                assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                assert connection.execute("SELECT head_sequence FROM ledger").fetchone() == (1,)
    assert made[0] == made[1]


def test_a_named_revision_is_migrated_to() -> None:
    runs = []
    kept = Schemas().keeping_statements(lambda _, revision: runs.append(revision))
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        kept(connection, "0001")
        connection.execute(text("CREATE TABLE here (number INTEGER)"))
        kept(connection)
    engine.dispose()
    assert runs == ["0001", "head"]


ORIGINAL, FILL = migrations.upgrade, sqlite._fill
"""As the modules have them: sessions of tests replace them later."""
