"""A ledger's file with a bit turned over: what it says differently is named, and nothing breaks."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import SufficeError
from suffice.storage.ledger.opening import open_ledger
from support.charging import MANIFEST
from support.paid import open_books, pay
from support.releases import flip_bit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest

HEARTBEATS = {"holder", "holder_process", "lease_expires", "marked"}
"""Columns that no entry states: they are of a run, and mean nothing once it has ended."""
LONGEST = 500


@pytest.fixture
def database(tmp_path: Path, make_request: Callable[..., ChargeRequest]) -> Path:
    """A ledger with all kinds of rows, whole in one file."""
    books = open_books(tmp_path)
    with books.ledger as ledger:
        pay(books, "a")
        ledger.grant("taxis", epsilon=Fraction(9), per_window="day:month:UTC", sources=["/data"], reason="x")
        assert ledger.add_checkpoint().problems == ()
        for name, month in (("b", "2013-01"), ("c", "2013-02"), ("b", "2013-03")):
            request = make_request(dataset="taxis", name=name, window=month)
            ledger.stage(ledger.enter_drawing(ledger.reserve(request)), MANIFEST)
        ledger.abandon(pay(books, "d", until="reserved"), reason="tests")
        pay(books, "e", until="drawing")
    assert not books.database.with_name("ledger.db-wal").exists()
    return books.database


def content_of(path: Path) -> object:
    """Return all that a file says, as its tables give it; or why it says nothing."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        try:
            objects = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
            names = [name for kind, name, _, _ in objects if kind == "table"]
            found = {}
            for name in names:
                rows = connection.execute(f"SELECT * FROM {name} NOT INDEXED")  # noqa: S608
                kept = [index for index, column in enumerate(rows.description) if column[0] not in HEARTBEATS]
                found[name] = [tuple(row[index] for index in kept) for row in rows]
        except (sqlite3.Error, ValueError) as error:
            return repr(error)
        return sorted(map(repr, objects)), found


def outcome_of(path: Path) -> str:
    """Return what is said of a damaged file: that it is well, what differs, or a typed error."""
    said = ""
    problems: tuple[str, ...] = ()
    try:
        with open_ledger(f"sqlite:///{path}", reading_only=True) as ledger:
            problems = ledger.verify()
            for account in ledger.accounts():
                list(ledger.charges(account.dataset))
    except SufficeError as error:
        said = str(error)
    if said:
        assert len(said) <= LONGEST
        assert "malformed" not in said
        return "refused"
    assert all(len(problem) <= LONGEST and problem.isprintable() for problem in problems)
    return "named" if problems else "well"


def flip(database: Path, n_flips: int) -> dict[str, int]:
    whole, rng = database.read_bytes(), random.Random(2026)  # noqa: S311 - chooses what to damage
    before = content_of(database)
    assert outcome_of(database) == "well"
    counts = {"changed": 0, "named": 0, "refused": 0, "well": 0}
    missed = []
    for _ in range(n_flips):
        bit = rng.randrange(8 * len(whole))
        database.write_bytes(flip_bit(whole, bit))
        changed = content_of(database) != before
        outcome = outcome_of(database)
        counts[outcome] += 1
        counts["changed"] += changed
        if changed and outcome == "well":
            missed.append(bit)
    database.write_bytes(whole)
    assert missed == []
    return counts


@pytest.mark.slow
def test_whatever_bit_is_turned_over_what_changes_is_named(database: Path) -> None:
    counts = flip(database, 200)
    assert counts["changed"] > 20, counts
    assert counts["named"] > 10, counts


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_whatever_of_2000_bits_is_turned_over_what_changes_is_named(database: Path) -> None:
    counts = flip(database, 2000)
    assert counts["changed"] > 300, counts


@pytest.mark.slow
def test_a_damaged_ledger_is_charged_or_refuses_and_never_breaks(
    database: Path, make_request: Callable[..., ChargeRequest]
) -> None:
    whole, rng = database.read_bytes(), random.Random(7)  # noqa: S311 - chooses what to damage
    refused = 0
    for _ in range(40):
        database.write_bytes(flip_bit(whole, rng.randrange(8 * len(whole))))
        for rest in ("-wal", "-shm"):
            database.with_name(database.name + rest).unlink(missing_ok=True)
        try:
            with open_ledger(f"sqlite:///{database}") as ledger:
                ledger.reserve(make_request(dataset="taxis", name="z", window="2013-04"))
        except SufficeError:
            refused += 1
    assert 0 < refused < 40


def test_damage_in_an_index_alone_is_named(database: Path) -> None:
    """The control of the file's own check: every table is as it was."""
    before = content_of(database)
    whole = database.read_bytes()
    with closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'charges_of_an_account'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    database.write_bytes(flip_bit(whole, 8 * (page * size - 3)))
    assert content_of(database) == before
    with open_ledger(f"sqlite:///{database}", reading_only=True) as ledger:
        assert ledger.verify()
