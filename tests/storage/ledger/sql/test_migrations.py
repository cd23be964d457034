"""Ledgers of revision 0001, made by the code of that time: migrated on each engine, or left as they were.

``revision_0001.db.xz`` is such a file: an account with and one without windows, charges in every state, an
amendment, a draw that was returned, two checkpoints, entries after the last. On PostgreSQL its rows are put
into tables that the migration 0001 makes.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import create_engine, make_url

from suffice.errors import LedgerCorruptError, LedgerError, LedgerMissingError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.storage.ledger.opening import create_ledger, migrate_ledger, open_ledger
from suffice.storage.ledger.sql import migrations
from suffice.storage.ledger.sql.migrations import rules_0002
from support.charging import MANIFEST, published
from support.ledger_sql import REFUSALS, columns, execute, rows, tamper
from support.postgres import as_user, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import Charge, ChargeRequest
    from suffice.storage.ledger.ledger import Ledger
    from support.postgres import Server

    MakeRequest = Callable[..., ChargeRequest]

FILE = Path(__file__).with_name("revision_0001.db.xz")
HEAD = (61, "e44daa47da2c7b88e442d73f9e47efffee88eb53f48d4b5b355105f2ee2de4d5")
CHECKPOINT = (57, "65c514417cd665e0f1c764d1b02fbd4111e771978071bfb1b3155bbada1ef735")
"""Its entry, and the SHA-256 of its state."""
BALANCES = {"flights": ("6", "1.623456", "1", "3.376544"), "taxis": ("6", "0.25", "0", "2.75")}
TABLES = (
    *("ledger", "entries", "checkpoints", "accounts", "windows", "names", "stores", "plans", "charges"),
    "staged_manifests",
)
TRUTHS = {"units_disjoint", "retired", "marked", "drew", "draw_returned"}
"""Columns that SQLite has as 0 and 1."""
OLD = "has the schema 0001, this version of suffice needs 0002: stop all runs, back it up, and run `suffice "


def later() -> datetime:
    """Return a moment after every lease of the file."""
    return datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture
def old_url(empty_url: str, tmp_path: Path) -> str:
    """Return the URL of a ledger of revision 0001, on each engine."""
    file = tmp_path / "ledger.db"
    file.write_bytes(lzma.decompress(FILE.read_bytes()))
    if not empty_url.startswith("sqlite"):
        _copy(file, empty_url)
    return empty_url


def _copy(file: Path, url: str) -> None:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        migrations.upgrade(connection, "0001")
    engine.dispose()
    with closing(sqlite3.connect(file)) as source, connect(url) as server, server.transaction():
        server.execute("SET LOCAL session_replication_role = replica")
        for table in TABLES:
            names = [name.strip('"') for name in columns(url, table)]
            listed = sql.SQL(", ").join(map(sql.Identifier, names))
            insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                sql.Identifier(table), listed, sql.SQL(", ").join([sql.Placeholder()] * len(names))
            )
            for row in source.execute(f"SELECT {', '.join(columns(url, table))} FROM {table}"):  # noqa: S608
                values = zip(names, row, strict=True)
                server.execute(insert, [bool(cell) if name in TRUTHS else cell for name, cell in values])


def entries_of(url: str) -> list[tuple[Any, ...]]:
    query = "SELECT sequence, previous_hash, kind, time, payload, hash FROM entries ORDER BY sequence"
    return rows(url, query)


def revision_of(url: str) -> str:
    ((revision,),) = rows(url, "SELECT version_num FROM alembic_version")
    return str(revision)


def balances(ledger: Ledger) -> dict[str, tuple[str, ...]]:
    return {
        account.dataset: tuple(
            PrivacyLoss(account.measure, amount).text
            for amount in (account.granted, account.spent, account.reserved, account.remaining)
        )
        for account in ledger.accounts()
    }


def charge_of(ledger: Ledger, dataset: str, name: str, window: str) -> Charge:
    charge = ledger.find(dataset, f"{dataset}-{name}", window)
    assert charge is not None
    return charge


@pytest.mark.slow
def test_an_old_ledger_is_migrated_and_its_charges_go_on(old_url: str, make_request: MakeRequest) -> None:
    before = entries_of(old_url)
    for use in (open_ledger, create_ledger):
        with pytest.raises(LedgerError, match=OLD):
            use(old_url)
    assert migrate_ledger(old_url) == "0001"
    assert migrate_ledger(old_url) is None
    assert entries_of(old_url) == before
    assert (before[-1][0], before[-1][-1]) == HEAD
    with open_ledger(old_url, clock=later) as ledger:
        assert ledger.verify() == ()
        goes_on = ledger.examine()
        assert (goes_on.problems, goes_on.since) == ((), CHECKPOINT[0])
        assert balances(ledger) == BALANCES
        assert {account.measure for account in ledger.accounts()} == {PrivacyMeasure.EPSILON}
        for dataset, window in (("flights", "all"), ("taxis", "2013-01")):
            taken = ledger.take_over(charge_of(ledger, dataset, "reserved", window))
            assert ledger.publish(ledger.stage(ledger.enter_drawing(taken), MANIFEST)).loss.amount * 2 == 1
            ledger.return_draw(ledger.take_over(charge_of(ledger, dataset, "drawing", window)), reason="x")
            staged = ledger.take_over(charge_of(ledger, dataset, "staged", window))
            assert ledger.publish(staged).state == "published"
        published(ledger, make_request(name="new", source="/data"))
        ledger.grant("flights", epsilon=Fraction(7), reason="more")
        ledger.grant("riders", rho=Fraction(1), reason="of another measure")
        published(ledger, make_request(dataset="riders", name="riders"))
        assert balances(ledger)["flights"] == ("7", "3.123456", "0", "3.876544")
        assert balances(ledger)["riders"] == ("1", "0.5", "0", "0.5")
        # published, its amendment, lost, reserved and staged are five halves; of none, a quarter
        assert ledger.remaining("taxis", "2013-01") == 6 - Fraction(5, 2) - Fraction(1, 4)
        assert ledger.verify() == ledger.add_checkpoint().problems == ledger.examine().problems == ()
    assert entries_of(old_url)[: HEAD[0]] == before


def test_the_state_of_an_old_checkpoint_is_what_its_entries_imply(old_url: str) -> None:
    """The control: with a name of amounts changed, the books write another state than was sealed."""
    ((sequence, state),) = rows(old_url, "SELECT sequence, state FROM checkpoints")
    assert (sequence, hashlib.sha256(state.encode()).hexdigest()) == CHECKPOINT
    migrate_ledger(old_url)
    assert rows(old_url, "SELECT sequence, state FROM checkpoints") == [(sequence, state)]
    with open_ledger(old_url) as ledger:
        assert ledger.verify() == ()
        for entry in ledger.entries():
            content = json.loads(entry.payload)
            assert "measure" not in content
            assert not any(name.startswith("pico_") for name in content)


KILLED = """
import os, signal, sys
from suffice.storage.ledger.opening import migrate_ledger
from suffice.storage.ledger.sql.migrations import rules_0002

def kill(dialect):
    os.kill(os.getpid(), signal.SIGKILL)

rules_0002.rules = kill
migrate_ledger(sys.argv[1])
"""


def test_a_migration_that_fails_on_its_way_changes_nothing(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, genuine = entries_of(old_url), rules_0002.rules
    with monkeypatch.context() as patched:
        patched.setattr(rules_0002, "rules", lambda dialect: [*genuine(dialect), "SELECT * FROM nowhere"])
        with pytest.raises(LedgerError):
            migrate_ledger(old_url)
    assert revision_of(old_url) == "0001"
    assert '"micro_spent"' in columns(old_url, "accounts")
    assert '"measure"' not in columns(old_url, "accounts")
    assert migrate_ledger(old_url) == "0001"
    assert (entries_of(old_url), revision_of(old_url)) == (before, "0002")


@pytest.mark.slow
def test_a_migration_that_is_killed_changes_nothing_and_is_repeated(old_url: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, old_url], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert revision_of(old_url) == "0001"
    assert '"micro_spent"' in columns(old_url, "windows")
    assert migrate_ledger(old_url) == "0001"
    with open_ledger(old_url) as ledger:
        assert ledger.verify() == ()
        assert balances(ledger) == BALANCES


def test_a_ledger_that_is_not_what_its_chain_says_is_not_migrated(old_url: str) -> None:
    tamper(old_url, "UPDATE accounts SET micro_spent = micro_spent - 1 WHERE dataset = 'flights'")
    with pytest.raises(LedgerCorruptError, match=r"accounts flights: spent differ .* Nothing was migrated"):
        migrate_ledger(old_url)
    assert revision_of(old_url) == "0001"
    assert '"micro_granted"' in columns(old_url, "accounts")


def test_nothing_is_migrated_where_there_is_no_ledger_or_a_newer_one(ledger_url: str) -> None:
    with pytest.raises(LedgerMissingError):
        migrate_ledger(ledger_url)
    create_ledger(ledger_url).close()
    assert migrate_ledger(ledger_url) is None
    tamper(ledger_url, "UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(LedgerError, match="has the schema 0999"):
        migrate_ledger(ledger_url)


def test_the_rules_of_the_first_revision_hold_after_the_second(old_url: str) -> None:
    """Of what the chain alone could name later, the database refuses each by itself."""
    migrate_ledger(old_url)
    with open_ledger(old_url) as ledger:
        ledger.grant("riders", rho=Fraction(1), reason="x")
    for statement in (
        "UPDATE accounts SET measure = 'rho' WHERE dataset = 'flights'",
        "UPDATE accounts SET measure = 'epsilon' WHERE dataset = 'riders'",
        "UPDATE accounts SET measure = 'delta'",
        "UPDATE accounts SET spent = spent - 1 WHERE dataset = 'flights'",
        "UPDATE accounts SET reserved = granted + 1",
        "UPDATE accounts SET spent = granted WHERE dataset = 'taxis'",
        "UPDATE windows SET spent = 6000000",
        "UPDATE windows SET spent = 0",
        "UPDATE charges SET charged = 1 WHERE state = 'reserved'",
        "DELETE FROM accounts",
    ):
        with pytest.raises(REFUSALS):
            execute(old_url, statement)
    with open_ledger(old_url) as ledger:
        assert ledger.verify() == ()


def test_roles_keep_their_columns_and_only_the_maker_migrates(
    postgres_server: Server, postgres_url: str, tmp_path: Path, repository: Path, make_request: MakeRequest
) -> None:
    file = tmp_path / "old.db"
    file.write_bytes(lzma.decompress(FILE.read_bytes()))
    _copy(file, postgres_url)
    roles = (repository / "deploy/postgres/roles.sql").read_text()
    roles = re.sub(r"\((granted|spent)\b", r"(micro_\1", roles).replace(" reserved)", " micro_reserved)")
    execute(postgres_url, roles)
    members = {role: f"suffice_test_{role}_{token_hex(4)}" for role in ("owner", "publisher")}
    for role, member in members.items():
        execute(postgres_server.url, f"CREATE ROLE {member} LOGIN PASSWORD 'x' IN ROLE suffice_{role}")
    urls = {role: as_user(postgres_url, member, "x") for role, member in members.items()}
    try:
        for url in urls.values():
            with pytest.raises(LedgerError, match="permission denied"):
                migrate_ledger(url)
        assert migrate_ledger(postgres_url) == "0001"
        with open_ledger(urls["owner"]) as owner, open_ledger(urls["publisher"]) as publisher:
            owner.grant("flights", epsilon=Fraction(7), reason="more")
            owner.grant("riders", rho=Fraction(1), reason="first")
            published(publisher, make_request(name="new"))
            published(publisher, make_request(dataset="riders", name="riders"))
            assert publisher.verify() == ()
        with connect(urls["publisher"]) as connection:
            for statement in ("SET granted = 9", "SET measure = 'rho'"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"UPDATE accounts {statement}".encode())
        with connect(urls["owner"]) as connection:
            for statement in ("SET spent = 0", "SET measure = 'rho'"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"UPDATE accounts {statement}".encode())
    finally:
        for member in members.values():
            execute(postgres_server.url, f"DROP ROLE {member}")


def test_a_run_that_was_left_open_is_told_that_the_tables_are_others(old_url: str) -> None:
    """What a run of another version meets that nobody stopped: it changes nothing."""
    migrate_ledger(old_url)
    with open_ledger(old_url) as ledger:
        tamper(old_url, "ALTER TABLE accounts RENAME COLUMN granted TO others")
        with pytest.raises(LedgerError, match="was it migrated meanwhile"):
            ledger.grant("flights", epsilon=Fraction(9), reason="x")
