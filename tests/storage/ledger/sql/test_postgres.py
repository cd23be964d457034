"""What only the ledger on a server has: its URL, its settings, its sessions, its clock."""

from __future__ import annotations

import builtins
import logging
import subprocess
import sys
import traceback
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import inspect

from suffice.errors import (
    LedgerError,
    LedgerMissingError,
    MissingExtraError,
    SufficeError,
)
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.postgres import make_engine, parse_address
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from support.postgres import as_user, connect, execute, with_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger
    from support.postgres import Server

    MakeRequest = Callable[..., ChargeRequest]

PASSWORD = "c0rrect-horse"  # noqa: S105


@pytest.fixture
def ledger(postgres_url: str) -> Iterator[SqlLedger]:
    with create_ledger(postgres_url) as ledger:
        assert isinstance(ledger, SqlLedger)
        ledger.grant("flights", epsilon=Fraction(3), reason="x")
        yield ledger


# Opening


@pytest.mark.slow
def test_only_create_makes_a_ledger(postgres_url: str) -> None:
    with pytest.raises(LedgerMissingError, match=r"there is no ledger in the database .* --create"):
        open_ledger(postgres_url)
    with create_ledger(postgres_url) as first:
        first_id = first.ledger_id
    with create_ledger(postgres_url) as again, open_ledger(postgres_url) as opened:
        assert again.ledger_id == opened.ledger_id == first_id
    other_scheme = postgres_url.replace("postgresql://", "postgresql+psycopg://")
    with open_ledger(other_scheme) as opened:
        assert opened.ledger_id == first_id


@pytest.mark.slow
def test_two_makers_make_one_ledger(postgres_url: str) -> None:
    code = (
        "import sys; from suffice.storage.ledger.opening import create_ledger\n"
        "ledger = create_ledger(sys.argv[1]); print(ledger.ledger_id); ledger.close()"
    )
    command = [sys.executable, "-c", code, postgres_url]
    makers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [maker.communicate(timeout=60)[0].strip() for maker in makers]
    assert len(set(outputs)) == 1
    assert len(outputs[0]) == 32


def test_a_ledger_is_made_whole_or_not_at_all(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE charges (id int)")
    with pytest.raises(LedgerError, match="holds tables of something else"):
        create_ledger(postgres_url)
    with connect(postgres_url) as connection:
        query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert connection.execute(query).fetchall() == [("charges",)]
    with pytest.raises(LedgerMissingError):
        open_ledger(postgres_url)


def test_another_programs_database_is_refused(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE alembic_version (version_num text)")
    for use in (open_ledger, create_ledger):
        with pytest.raises(LedgerError, match="not a ledger of suffice"):
            use(postgres_url)


def test_a_newer_ledger_is_refused(ledger: Ledger, postgres_url: str) -> None:
    execute(postgres_url, "UPDATE alembic_version SET version_num = '0999'")
    for use in (open_ledger, create_ledger):
        with pytest.raises(LedgerError, match="has the schema 0999, this version of suffice needs 0002"):
            use(postgres_url)
    assert ledger.accounts()


def test_a_database_that_is_not_there_is_named(postgres_server: Server) -> None:
    with pytest.raises(LedgerError, match="refused the database or the login"):
        create_ledger(with_database(postgres_server.url, "not_there"))


def test_queries_name_the_columns_that_the_migrations_make(ledger: SqlLedger) -> None:
    inspector = inspect(ledger._engine)
    for table in tables.metadata.sorted_tables:
        made = [
            (column["name"], str(column["type"]), column["nullable"])
            for column in inspector.get_columns(table.name)
        ]
        named = [
            (column.name, str(column.type.compile(ledger._engine.dialect)), bool(column.nullable))
            for column in table.columns
        ]
        assert made == named
        key = inspector.get_pk_constraint(table.name)["constrained_columns"]
        assert key == [column.name for column in table.primary_key]


def test_without_its_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "psycopg":
            message = "no pq wrapper available"  # what psycopg says where libpq is missing
            raise ImportError(message)
        return import_module(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "suffice.storage.ledger.sql.postgres")
    monkeypatch.delattr("suffice.storage.ledger.sql.postgres")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'suffice\[postgres\]'"):
        open_ledger("postgresql://host/db")


# Passwords


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://owner:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql://owner:{PASSWORD}@127.0.0.1:port/db",
        f"postgresql://owner:{PASSWORD}@127.0.0.1:1",
        f"postgresql://owner:{PASSWORD}@host:with:colons/db",
        f"postgresql://owner@127.0.0.1:1/db?password={PASSWORD}",
        f"postgresql://owner@127.0.0.1:1/db?sslpassword={PASSWORD}",
        f"postgresql://owner:{PASSWORD}@127.0.0.1:1/db?no_such_option=1",
        f"postgres://owner:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql+asyncpg://owner:{PASSWORD}@127.0.0.1:1/db",
    ],
)
def test_no_error_shows_a_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for use in (open_ledger, create_ledger):
        with pytest.raises(SufficeError) as caught:
            use(url)
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
        assert PASSWORD not in shown


def test_a_refused_login_shows_no_password(postgres_server: Server, postgres_url: str) -> None:
    with pytest.raises(LedgerError) as caught:
        open_ledger(as_user(postgres_url, "nobody_of_that_name", PASSWORD))
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in repr(make_engine(parse_address(as_user(postgres_server.url, "x", PASSWORD))))


def test_an_error_quotes_no_row(ledger: Ledger, postgres_url: str, make_request: MakeRequest) -> None:
    """The server's message ends in the failing row, with every column of it."""
    execute(postgres_url, "ALTER TABLE charges ADD CONSTRAINT none CHECK (name <> 'delays')")
    with pytest.raises(LedgerError, match=r"refused a row that breaks its rules$") as caught:
        ledger.reserve(make_request())
    shown = "".join(traceback.format_exception(caught.value))
    assert "delays" not in shown.replace("test_postgres.py", "")
    assert "releases" not in shown


# Sessions


def settings_of(connection: Connection) -> dict[str, str]:
    names = (
        "transaction_isolation",
        "transaction_read_only",
        "synchronous_commit",
        "search_path",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
    )
    return {name: str(connection.exec_driver_sql(f"SHOW {name}").scalar()) for name in names}


def test_every_session_is_durable_and_gives_its_locks_back(ledger: SqlLedger, postgres_url: str) -> None:
    database = parse_address(postgres_url).database
    for value in ("off", "remote_apply"):
        execute(postgres_url, f'ALTER DATABASE "{database}" SET synchronous_commit = {value}')
        with open_ledger(postgres_url) as opened:
            assert isinstance(opened, SqlLedger)
            expected = {
                "transaction_isolation": "read committed",
                "transaction_read_only": "off",
                "synchronous_commit": "on" if value == "off" else value,
                "search_path": "public",
                "lock_timeout": "1min",
                "idle_in_transaction_session_timeout": "30s",
            }
            with opened._engine.connect() as connection:
                assert settings_of(connection) == expected
            with opened._reading.connect() as connection:
                reading = {"transaction_isolation": "repeatable read", "transaction_read_only": "on"}
                assert settings_of(connection) == {**expected, **reading}
    assert ledger.verify() == ()


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "server_encoding"])
def test_a_server_that_forgets_is_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setattr("suffice.storage.ledger.sql.postgres._NEEDED", ((setting, "another value"),))
    with pytest.raises(LedgerError, match=f"served with {setting} other than"):
        create_ledger(postgres_url)


def test_an_old_server_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.storage.ledger.sql.postgres._OLDEST_VERSION", 99)
    with pytest.raises(LedgerError, match="PostgreSQL before 99"):
        create_ledger(postgres_url)


def test_a_table_of_the_same_name_in_another_schema_is_not_taken_for_it(
    ledger: Ledger, postgres_url: str
) -> None:
    with connect(postgres_url) as connection:
        (user,) = connection.execute("SELECT quote_ident(current_user)").fetchone() or ()
    execute(
        postgres_url,
        f"CREATE SCHEMA {user}",
        f"CREATE TABLE {user}.accounts AS SELECT * FROM public.accounts",  # noqa: S608
        "UPDATE accounts SET granted = 9000000",  # the user's own table, by the usual path
    )
    with open_ledger(postgres_url) as opened:
        assert opened.account("flights").granted == ledger.account("flights").granted == 3


def test_a_session_that_the_server_ended_is_replaced(
    ledger: Ledger, postgres_url: str, make_request: MakeRequest
) -> None:
    charge = ledger.reserve(make_request())
    execute(
        postgres_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert ledger.enter_drawing(charge).drew
    assert ledger.verify() == ()


def test_times_are_the_servers(
    ledger: Ledger, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.storage.ledger.opening.utc_now", lambda: datetime(1999, 1, 1, tzinfo=UTC))
    with create_ledger(f"sqlite:///{tmp_path}/ledger.db") as local, open_ledger(postgres_url) as opened:
        assert local.now().year == 1999
        for served in (ledger, opened):
            assert abs((served.now() - datetime.now(UTC)).total_seconds()) < 60


def test_no_variable_reaches_past_the_host_that_is_named(
    ledger: SqlLedger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens at the address of the variable; the host named is asked all the same."""
    with monkeypatch.context() as patch:  # others of the test connect as the environment says
        patch.setenv("PGHOSTADDR", "127.0.0.254")
        patch.setenv("PGPORT", "9")
        with open_ledger(postgres_url) as opened:
            assert opened.ledger_id == ledger.ledger_id
