"""Whatever is changed behind the ledger's back, `verify` names it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger import ChargeRequest, Ledger

    MakeRequest = Callable[..., ChargeRequest]

MANIFEST = b'{"format_version":1}'
UNLOCK = (
    "DROP TRIGGER entries_never_change",
    "DROP TRIGGER entries_never_go",
    "DROP TRIGGER entries_in_order",
)


@pytest.fixture
def busy(ledger: Ledger, make_request: MakeRequest) -> Ledger:
    """A ledger with one charge in every state, and a grant per window."""
    ledger.grant("taxis", epsilon=Fraction(5), per_window="day:month", sources=["/taxis"], reason="x")
    ledger.publish(ledger.stage(ledger.enter_drawing(ledger.reserve(make_request(name="a"))), MANIFEST))
    ledger.abandon(ledger.reserve(make_request(name="b")), reason="x")
    taxis = make_request(dataset="taxis", name="c", window="2013-01", source="/taxis")
    ledger.stage(ledger.enter_drawing(ledger.reserve(taxis)), MANIFEST)
    ledger.reserve(make_request(dataset="taxis", name="d", source="/taxis"))
    assert ledger.verify() == ()
    return ledger


def execute(url: str, *statements: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET payload = '{}' WHERE sequence = 3",
        "DELETE FROM entries WHERE sequence = 3",
        "DELETE FROM entries",
        "INSERT INTO entries SELECT 99, hash, kind, time, payload, previous_hash FROM entries LIMIT 1",
        "INSERT OR REPLACE INTO entries SELECT sequence, 'x', kind, time, '{}', 'y' FROM entries LIMIT 1",
        "INSERT INTO entries VALUES (NULL, 'x', 'grant', '', '{}', 'y')",
    ],
)
def test_entries_are_append_only(busy: Ledger, ledger_url: str, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="entries are append"):
        execute(ledger_url, statement)
    assert busy.verify() == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts SET micro_spent = 4000000 WHERE dataset = 'flights'",
        "UPDATE accounts SET micro_spent = -1 WHERE dataset = 'flights'",
        "UPDATE windows SET micro_reserved = -1",
        "UPDATE charges SET state = 'published' WHERE name = 'd'",
        "UPDATE charges SET state = 'reserved' WHERE name = 'a'",
        "UPDATE charges SET state = 'lost' WHERE name = 'a'",
        "UPDATE charges SET manifest = NULL WHERE name = 'a'",
        "UPDATE charges SET name = 'a', dataset = 'taxis' WHERE name = 'd'",
        "UPDATE ledger SET id = 2",
    ],
)
def test_the_database_itself_refuses_impossible_rows(busy: Ledger, ledger_url: str, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        execute(ledger_url, "PRAGMA foreign_keys = ON", statement)
    assert busy.verify() == ()


def test_two_live_charges_of_one_key_are_refused(busy: Ledger, ledger_url: str) -> None:
    with closing(sqlite3.connect(ledger_url.removeprefix("sqlite:///"))) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(charges)")]
    changed = {"charge_id": "'x'", "release_id": "'y'", "attempt": "2"}
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    with pytest.raises(sqlite3.IntegrityError, match=r"charges\.dataset, charges\.name, charges\.window"):
        execute(ledger_url, f"INSERT INTO charges SELECT {values} FROM charges WHERE name = 'a'")  # noqa: S608
    assert busy.verify() == ()


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["UPDATE entries SET payload = '{}' WHERE sequence = 3"], "entry 3 was altered"),
        (["UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE sequence = 5"], "entry 5 was altered"),
        (["DELETE FROM entries WHERE sequence = 4"], "entry 5 follows entry 3"),
        (["DELETE FROM entries WHERE sequence = 1"], "entry 2 follows entry 0"),
        (["DELETE FROM entries WHERE sequence = 13"], "the chain ends at entry 12, the ledger states 13"),
        (
            [
                "UPDATE entries SET sequence = -4 WHERE sequence = 4",
                "UPDATE entries SET sequence = 4 WHERE sequence = 5",
                "UPDATE entries SET sequence = 5 WHERE sequence = -4",
            ],
            "entry 4 does not continue",
        ),
    ],
)
def test_every_change_of_the_chain_is_named(
    busy: Ledger, ledger_url: str, statements: list[str], problem: str
) -> None:
    execute(ledger_url, *UNLOCK, *statements)
    assert problem in busy.verify()[0]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE ledger SET head_hash = 'x'", "the chain ends"),
        ("UPDATE ledger SET ledger_id = 'x'", "the ledger's id differs"),
        (
            "UPDATE accounts SET micro_spent = 0 WHERE dataset = 'flights'",
            "accounts flights: micro_spent differ",
        ),
        (
            "UPDATE accounts SET micro_granted = 9000000 WHERE dataset = 'flights'",
            "accounts flights: micro_granted differ",
        ),
        ("UPDATE accounts SET sources = '[]'", "accounts taxis: sources differ"),
        ("UPDATE accounts SET neighboring = 'replace_one'", "accounts flights: neighboring differ"),
        ("UPDATE accounts SET per_window = 'day:year' WHERE dataset = 'taxis'", "accounts taxis: per_window"),
        ("UPDATE windows SET micro_spent = 0", "windows taxis 2013-01: micro_spent differ"),
        ("DELETE FROM windows", "windows taxis 2013-01: the entries have it"),
        ("UPDATE names SET dataset = 'taxis' WHERE name = 'a'", "names a: dataset differ"),
        ("DELETE FROM charges WHERE name = 'd'", "the entries have it, the table does not"),
        ("UPDATE charges SET state = 'abandoned' WHERE name = 'a'", "state differ"),
        ("UPDATE charges SET micro_epsilon = 1 WHERE name = 'a'", "micro_epsilon differ"),
        ("UPDATE charges SET epoch = 2 WHERE name = 'd'", "epoch differ"),
        ("UPDATE charges SET plan_json = '{}' WHERE name = 'd'", "plan_hash differ"),
        ("UPDATE charges SET manifest = x'00' WHERE name = 'c'", "manifest_sha256 differ"),
        ("UPDATE charges SET store_id = 'x' WHERE name = 'c'", "store_id differ"),
        ("UPDATE charges SET drawing_sequence = 1 WHERE name = 'c'", "drawing_sequence differ"),
        (
            "UPDATE charges SET drew = 1 WHERE name = 'b'",
            "drew differ",
        ),
        ("UPDATE charges SET window = '2013-02' WHERE name = 'c'", "window differ"),
    ],
)
def test_every_change_behind_the_ledgers_back_is_named(
    busy: Ledger, ledger_url: str, statement: str, problem: str
) -> None:
    execute(ledger_url, statement)
    problems = busy.verify()
    assert any(problem in found for found in problems), problems


def test_a_row_that_no_entry_explains_is_named(busy: Ledger, ledger_url: str) -> None:
    execute(
        ledger_url,
        "INSERT INTO accounts SELECT 'extra', neighboring, unit, per_window, units_disjoint, sources, "
        "micro_granted, 0, 0 FROM accounts LIMIT 1",
    )
    assert busy.verify() == ("accounts extra: the table has it, the entries do not",)
