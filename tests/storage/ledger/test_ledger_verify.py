"""Whatever is changed behind the ledger's back, `verify` names it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from support.charging import MANIFEST
from support.ledger_sql import REFUSALS, columns, execute, tamper, tampered

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeRequest = Callable[..., ChargeRequest]


@pytest.fixture
def busy(ledger: Ledger, make_request: MakeRequest) -> Ledger:
    """A ledger with one charge in every state, and a grant per window."""
    ledger.grant("taxis", epsilon=Fraction(5), per_window="day:month:UTC", sources=["/taxis"], reason="x")
    ledger.publish(ledger.stage(ledger.enter_drawing(ledger.reserve(make_request(name="a"))), MANIFEST))
    ledger.abandon(ledger.reserve(make_request(name="b")), reason="x")
    taxis = make_request(dataset="taxis", name="c", window="2013-01", source="/taxis")
    ledger.stage(ledger.enter_drawing(ledger.reserve(taxis)), MANIFEST)
    ledger.reserve(make_request(dataset="taxis", name="d", source="/taxis"))
    assert ledger.verify() == ()
    return ledger


CHAIN_CHANGES = [
    "UPDATE entries SET payload = '{}' WHERE sequence = 3",
    "DELETE FROM entries WHERE sequence = 3",
    "DELETE FROM entries",
    "INSERT INTO entries SELECT 99, hash, kind, time, payload, previous_hash FROM entries LIMIT 1",
    "INSERT INTO entries VALUES (NULL, 'x', 'grant', '', '{}', 'y')",
    "INSERT INTO entries SELECT 14, previous_hash, kind, time, payload, 'x' FROM entries LIMIT 1",
    "UPDATE ledger SET head_sequence = 12",
    "UPDATE ledger SET head_hash = 'x'",
    "UPDATE ledger SET head_sequence = 14, head_hash = 'x'",
    "DELETE FROM ledger",
]


def test_entries_are_append_only(busy: Ledger, ledger_url: str) -> None:
    for statement in CHAIN_CHANGES:
        with pytest.raises(REFUSALS, match=r"append|head of the chain"):
            execute(ledger_url, statement)
    assert busy.verify() == ()


def test_entries_are_not_replaced(busy: Ledger, ledger_url: str) -> None:
    conflict = {
        "sqlite": "INSERT OR REPLACE INTO entries SELECT sequence, 'x', kind, time, '{}', 'y' FROM entries",
        "postgresql": "INSERT INTO entries SELECT sequence, 'x', kind, time, '{}', 'y' FROM entries "
        "ON CONFLICT (sequence) DO UPDATE SET payload = '{}'",
    }
    with pytest.raises(REFUSALS, match="entries are append"):
        execute(ledger_url, conflict[ledger_url.partition(":")[0]])
    assert busy.verify() == ()


IMPOSSIBLE_ROWS = [
    "UPDATE accounts SET spent = 4000000 WHERE dataset = 'flights'",
    "UPDATE accounts SET spent = 0 WHERE dataset = 'flights'",
    "UPDATE accounts SET reserved = -1 WHERE dataset = 'flights'",
    "UPDATE accounts SET granted = 1999999 WHERE dataset = 'taxis'",
    "UPDATE accounts SET neighboring = 'replace_one'",
    "UPDATE accounts SET per_window = NULL WHERE dataset = 'taxis'",
    "UPDATE accounts SET per_window = 'day:month:UTC' WHERE dataset = 'flights'",
    "UPDATE windows SET reserved = -1",
    "UPDATE windows SET spent = 0",
    "UPDATE windows SET reserved = 3000001",
    "UPDATE names SET dataset = 'taxis' WHERE name = 'a'",
    "UPDATE charges SET state = 'published' WHERE name = 'd'",
    "UPDATE charges SET state = 'drawing' WHERE name = 'd'",
    "UPDATE charges SET state = 'reserved', drew = false WHERE name = 'c'",
    "UPDATE charges SET state = 'reserved' WHERE name = 'a'",
    "UPDATE charges SET state = 'lost' WHERE name = 'a'",
    "UPDATE charges SET state = 'abandoned', drew = false WHERE name = 'c'",
    "UPDATE charges SET state = 'abandoned', drew = true WHERE name = 'd'",
    "UPDATE charges SET charged = 1 WHERE name = 'd'",
    "UPDATE charges SET epoch = 7 WHERE name = 'd'",
    "UPDATE charges SET epoch = 2 WHERE name = 'a'",
    "UPDATE charges SET manifest_sha256 = NULL WHERE name = 'c'",
    "UPDATE charges SET manifest_sha256 = 'x' WHERE name = 'c'",
    "UPDATE charges SET plan_hash = 'x' WHERE name = 'c'",
    "UPDATE staged_manifests SET content = CAST('' AS {bytes})",
    "DELETE FROM staged_manifests",
    "INSERT INTO staged_manifests SELECT charge_id, CAST('x' AS {bytes}) FROM charges WHERE name = 'a'",
    "INSERT INTO staged_manifests SELECT charge_id, CAST('x' AS {bytes}) FROM charges WHERE name = 'd'",
    "UPDATE plans SET content = '{{}}'",
    "DELETE FROM plans",
    "UPDATE charges SET drawing_sequence = 1 WHERE name = 'c'",
    "UPDATE charges SET name = 'a', dataset = 'taxis' WHERE name = 'd'",
    "UPDATE ledger SET id = 2",
    "DELETE FROM accounts",
    "DELETE FROM windows",
    "UPDATE stores SET store_id = 'x'",
    "UPDATE stores SET first_sequence = first_sequence + 1",
    "UPDATE stores SET last_marker = 0",
    "DELETE FROM stores",
    "DELETE FROM names",
    "DELETE FROM charges WHERE name = 'd'",
]


def bytes_type(url: str) -> str:
    return "blob" if url.startswith("sqlite") else "bytea"


def test_the_database_itself_refuses_impossible_rows(busy: Ledger, ledger_url: str) -> None:
    for statement in IMPOSSIBLE_ROWS:
        with pytest.raises(REFUSALS):
            execute(ledger_url, statement.format(bytes=bytes_type(ledger_url)))
    assert busy.verify() == ()


FALSE_BALANCES = [
    "UPDATE accounts SET reserved = reserved + 1",
    "UPDATE accounts SET reserved = 0 WHERE dataset = 'taxis'",
    "UPDATE accounts SET spent = spent + 1",
    "UPDATE windows SET spent = spent + 1",
    "UPDATE charges SET state = 'abandoned' WHERE name = 'd'",
]


def test_postgresql_keeps_balances_equal_to_their_charges(busy: Ledger, ledger_url: str) -> None:
    for statement in FALSE_BALANCES:
        if ledger_url.startswith("sqlite"):  # it checks nothing at the commit: `verify` finds it
            with tampered(ledger_url):
                execute(ledger_url, statement)
                assert busy.verify() != (), statement
            continue
        with pytest.raises(REFUSALS, match="balances are the sums of charges"):
            execute(ledger_url, statement)
        with pytest.raises(REFUSALS, match="in read committed transactions only"):
            execute(ledger_url, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", statement)
    assert busy.verify() == ()


@pytest.mark.slow
def test_two_live_charges_of_one_key_are_refused(busy: Ledger, ledger_url: str) -> None:
    changed = {"charge_id": "'x'", "release_id": "'y'", "attempt": "2"}
    values = ", ".join(changed.get(name.strip('"'), name) for name in columns(ledger_url, "charges"))
    with pytest.raises(
        REFUSALS, match=r"one_live_charge_a_key|charges\.dataset, charges\.name, charges\.window"
    ):
        execute(ledger_url, f"INSERT INTO charges SELECT {values} FROM charges WHERE name = 'd'")  # noqa: S608
    assert busy.verify() == ()


ALTERED_CHAINS = [
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
]


@pytest.mark.slow
def test_every_change_of_the_chain_is_named(busy: Ledger, ledger_url: str) -> None:
    for statements, problem in ALTERED_CHAINS:
        with tampered(ledger_url, *statements):
            assert problem in busy.verify()[0]
    assert busy.verify() == ()


ALTERED_ROWS = [
    ("UPDATE ledger SET head_hash = 'x'", "the chain ends"),
    ("UPDATE ledger SET ledger_id = 'x'", "the ledger's id differs"),
    (
        "UPDATE accounts SET spent = 0 WHERE dataset = 'flights'",
        "accounts flights: spent differ",
    ),
    (
        "UPDATE accounts SET granted = 9000000 WHERE dataset = 'flights'",
        "accounts flights: granted differ",
    ),
    ("UPDATE accounts SET sources = '[]'", "accounts taxis: sources differ"),
    ("UPDATE accounts SET checksums = '/mine'", "accounts taxis: checksums differ"),
    ("UPDATE accounts SET neighboring = 'replace_one'", "accounts flights: neighboring differ"),
    ("UPDATE accounts SET per_window = 'day:year:UTC' WHERE dataset = 'taxis'", "accounts taxis: per_window"),
    ("UPDATE windows SET spent = 0", "windows taxis 2013-01: spent differ"),
    ("DELETE FROM windows", "windows taxis 2013-01: the entries have it"),
    ("UPDATE names SET dataset = 'taxis' WHERE name = 'a'", "names a: dataset differ"),
    ("DELETE FROM charges WHERE name = 'd'", "the entries have it, the table does not"),
    ("UPDATE charges SET state = 'abandoned' WHERE name = 'a'", "state differ"),
    ("UPDATE charges SET charged = 1 WHERE name = 'a'", "charged differ"),
    ("UPDATE charges SET epoch = 2 WHERE name = 'd'", "epoch differ"),
    ("UPDATE charges SET plan_hash = 'x' WHERE name = 'd'", "plan_hash differ"),
    ("UPDATE plans SET content = '{}'", "sha256 differ from the entries"),
    ("DELETE FROM plans", "plans "),
    ("INSERT INTO plans VALUES ('x', 'y')", "plans x: the table has it, the entries do not"),
    ("UPDATE charges SET manifest_sha256 = NULL, state = 'abandoned' WHERE name = 'c'", "manifest_sha256"),
    ("UPDATE staged_manifests SET content = CAST('x' AS {bytes})", "staged_manifests "),
    ("DELETE FROM staged_manifests", "staged_manifests "),
    (
        "INSERT INTO staged_manifests SELECT charge_id, CAST('x' AS {bytes}) FROM charges WHERE name = 'a'",
        "the table has it, the entries do not",
    ),
    ("UPDATE charges SET store_id = 'x' WHERE name = 'c'", "store_id differ"),
    ("UPDATE charges SET drawing_sequence = 1 WHERE name = 'c'", "drawing_sequence differ"),
    (
        "UPDATE charges SET drew = true WHERE name = 'b'",
        "drew differ",
    ),
    ("UPDATE charges SET \"window\" = '2013-02' WHERE name = 'c'", "window differ"),
]


@pytest.mark.slow
def test_every_change_behind_the_ledgers_back_is_named(busy: Ledger, ledger_url: str) -> None:
    for statement, problem in ALTERED_ROWS:
        with tampered(ledger_url, statement.replace("{bytes}", bytes_type(ledger_url))):
            problems = busy.verify()
        assert any(problem in found for found in problems), (statement, problems)
    assert busy.verify() == ()


def test_a_row_that_no_entry_explains_is_named(busy: Ledger, ledger_url: str) -> None:
    tamper(
        ledger_url,
        "INSERT INTO accounts (dataset, neighboring, unit, units_disjoint, sources, failed_readings, stores, "
        "granted, spent, reserved) SELECT 'extra', neighboring, unit, units_disjoint, "
        "sources, failed_readings, stores, granted, 0, 0 FROM accounts LIMIT 1",
    )
    assert busy.verify() == ("accounts extra: the table has it, the entries do not",)
