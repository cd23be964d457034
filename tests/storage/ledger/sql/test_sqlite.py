"""What only the embedded ledger has: its file, its pragmas, its locks."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, inspect
from sqlalchemy.exc import OperationalError

from suffice.errors import CommitUnknownError, LedgerError, LedgerMissingError, UsageError
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.sqlite import make_engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from suffice.storage.ledger.charge import ChargeRequest

    MakeRequest = Callable[..., ChargeRequest]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with create_ledger(f"sqlite:///{path}") as ledger:
        ledger.grant("flights", epsilon=Fraction(3), reason="x")
    return path


def test_only_create_makes_a_ledger(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with pytest.raises(LedgerMissingError, match=r"suffice ledger grant DATASET .* --create"):
        open_ledger(url)
    assert list(tmp_path.iterdir()) == []
    with create_ledger(url) as first:
        first_id = first.ledger_id
    with create_ledger(url) as again, open_ledger(url) as opened:
        assert again.ledger_id == opened.ledger_id == first_id


def test_paths_are_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "other #1 100%?"
    elsewhere.mkdir()
    with create_ledger("sqlite:///ledger.db") as ledger:
        monkeypatch.chdir(elsewhere)
        assert ledger.accounts() == ()
    assert (tmp_path / "ledger.db").exists()
    with create_ledger("sqlite:///ledger.db") as other:
        assert other.ledger_id != ledger.ledger_id


def test_nobody_else_may_read_it_and_no_draft_stays_behind(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with open_ledger(f"sqlite:///{path}") as ledger:
        ledger.grant("taxis", epsilon=Fraction(1), reason="x")
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    kept = {"ledger.db": 0o600, "ledger.db-queue": 0o600}
    assert modes == {**kept, "ledger.db-shm": 0o600, "ledger.db-wal": 0o600}
    assert {entry.name for entry in path.parent.iterdir()} == kept.keys()


def test_every_connection_is_durable_and_checks_foreign_keys(path: Path) -> None:
    engine = make_engine(path)
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second.execution_options(ledger_reads_only=True)):
            pragmas = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            }
            connection.rollback()
            assert pragmas == {
                "journal_mode": "wal",
                "synchronous": 2,
                "foreign_keys": 1,
                "busy_timeout": 60_000,
            }
    engine.dispose()


def test_a_database_that_cannot_be_durable_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.storage.ledger.sql.sqlite._SETTINGS", (("journal_mode", "OFF", "nonsense"),))
    with pytest.raises(LedgerError, match="refuses journal_mode"):
        open_ledger(f"sqlite:///{path}")


def test_a_write_transaction_locks_before_it_reads(path: Path) -> None:
    engine = make_engine(path)
    with engine.begin() as connection:
        connection.exec_driver_sql("SELECT 1")
        with closing(sqlite3.connect(path, timeout=0)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            assert other.execute("SELECT count(*) FROM entries").fetchone() == (2,)
    engine.dispose()


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be taken for one" * 40])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for use in (open_ledger, create_ledger):
        with pytest.raises(
            LedgerError, match=r"notes\.txt (cannot be used as a|is a database, but not a) ledger"
        ):
            use(f"sqlite:///{path}")
    if content:
        assert path.read_bytes() == content


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
    with pytest.raises(LedgerError, match="not a ledger of suffice"):
        open_ledger(f"sqlite:///{path}")


def test_a_newer_ledger_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    for use in (open_ledger, create_ledger):
        with pytest.raises(LedgerError, match="has the schema 0999, this version of suffice needs 0002"):
            use(f"sqlite:///{path}")


def test_a_directory_or_a_missing_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened"):
        open_ledger(f"sqlite:///{tmp_path}")
    with pytest.raises(LedgerError, match=r"cannot be made at .*: No such file"):
        create_ledger(f"sqlite:///{tmp_path}/missing/ledger.db")


@pytest.mark.parametrize(
    "url",
    [
        "ledger.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///ledger.db?mode=ro",
        "mysql://owner:secret@host/db",
        "owner:secret@host",
    ],
)
def test_other_urls_are_refused_without_showing_them(url: str) -> None:
    for use in (open_ledger, create_ledger):
        with pytest.raises(UsageError, match="write sqlite:///PATH") as caught:
            use(url)
        assert "secret" not in str(caught.value)


def test_queries_name_the_columns_that_the_migrations_make(path: Path) -> None:
    engine = make_engine(path)
    inspector = inspect(engine)
    made = {
        name: [
            (column["name"], str(column["type"]), column["nullable"])
            for column in inspector.get_columns(name)
        ]
        for name in inspector.get_table_names()
        if name != "alembic_version"
    }
    named = {
        table.name: [
            (column.name, str(column.type.compile(engine.dialect)), bool(column.nullable))
            for column in table.columns
        ]
        for table in tables.metadata.sorted_tables
    }
    keys = {
        table.name: [column.name for column in table.primary_key] for table in tables.metadata.sorted_tables
    }
    assert made == named
    assert keys == {name: inspector.get_pk_constraint(name)["constrained_columns"] for name in keys}
    engine.dispose()


def test_the_databases_errors_become_ours_without_values(path: Path, make_request: MakeRequest) -> None:
    with open_ledger(f"sqlite:///{path}") as ledger:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE names")
        with pytest.raises(
            LedgerError, match="tables are not as this version of suffice made them"
        ) as caught:
            ledger.reserve(make_request())
        assert "delays" not in f"{caught.value} {caught.value.__cause__}"


def test_a_failed_commit_is_not_taken_for_a_success(path: Path, make_request: MakeRequest) -> None:
    with open_ledger(f"sqlite:///{path}") as ledger:

        def fail(_: Connection) -> None:
            raise OperationalError("COMMIT", None, sqlite3.OperationalError("disk I/O error"))

        event.listen(ledger._engine, "commit", fail)  # type: ignore[attr-defined]
        with pytest.raises(CommitUnknownError, match="counts as spent"):
            ledger.reserve(make_request())
        event.remove(ledger._engine, "commit", fail)  # type: ignore[attr-defined]
        assert ledger.find("flights", "delays", "all") is None
        assert ledger.verify() == ()


def test_a_heartbeat_runs_beside_the_run_that_it_serves(path: Path, make_request: MakeRequest) -> None:
    with open_ledger(f"sqlite:///{path}") as ledger:
        charge = ledger.reserve(make_request())
        failures: list[Exception] = []

        def beat() -> None:
            try:
                for _ in range(25):
                    ledger.renew(charge)
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        thread = Thread(target=beat)
        thread.start()
        for name in range(25):
            ledger.abandon(ledger.reserve(make_request(name=f"n{name}")), reason="x")
        thread.join()
        assert failures == []
        assert ledger.verify() == ()


@pytest.mark.slow
def test_two_makers_make_one_ledger(tmp_path: Path) -> None:
    code = (
        "import sys; from suffice.storage.ledger.opening import create_ledger\n"
        "ledger = create_ledger(sys.argv[1]); print(ledger.ledger_id); ledger.close()"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/ledger.db"]
    makers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [maker.communicate(timeout=60)[0].strip() for maker in makers]
    assert len(set(outputs)) == 1
    assert len(outputs[0]) == 32
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger.db"]
