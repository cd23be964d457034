"""What a charge costs does not grow with the charges before it: counted in SQLite's own instructions."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from support.history import MANIFEST, make_history, request_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FEW, MANY, SOME = 20, 2000, 300


def live(ledger: SqlLedger, *, per_window: bool) -> None:
    """Do what a run does with its ledger, from the first look to the last."""
    window = "w-new" if per_window else "all"
    request = request_for("series-0", window, per_window=per_window)
    assert ledger.allowed_stores("flights") == ()
    assert [store.store_id for store in ledger.stores()] == ["store"]
    assert ledger.unfinished("store") == []
    assert ledger.find("flights", request.name, window) is None
    ledger.check(request)
    charge = ledger.reserve(request)
    ledger.renew(charge)
    renewed = ledger.charge(charge.charge_id)
    assert renewed is not None
    assert renewed.lease_expires >= charge.lease_expires
    assert replace(renewed, lease_expires=charge.lease_expires) == charge
    assert [found.charge_id for found in ledger.unfinished("store")] == [charge.charge_id]
    assert ledger.entry_hash(charge.reserved_sequence) == ledger.head().hash
    ledger.publish(ledger.stage(ledger.enter_drawing(charge), MANIFEST))
    ledger.remaining("flights", window)
    ledger.remaining("flights", "all")
    ledger.account("flights")
    assert ledger.unsettled() == ()
    assert len(list(ledger.charges("flights", last=3))) == 3
    ledger.grant("flights", epsilon=2 * ledger.account("flights").granted, reason="more")


@contextmanager
def opened(url: str, on_connect: Callable[[sqlite3.Connection], object]) -> Iterator[SqlLedger]:
    with open_ledger(url) as ledger:
        assert isinstance(ledger, SqlLedger)
        ledger._engine.dispose()
        event.listen(ledger._engine, "connect", lambda connection, _: on_connect(connection))
        yield ledger


def instructions(url: str, work: Callable[[SqlLedger], object]) -> int:
    """Count SQLite's instructions, triggers' too, in tens."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    with opened(url, lambda connection: connection.set_progress_handler(tick, 10)) as ledger:
        work(ledger)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("per_window", [False, True])
def test_a_charge_costs_what_the_first_did(tmp_path: Path, per_window: bool) -> None:
    few, many = (
        make_history(tmp_path / f"{count}.db", count, per_window=per_window) for count in (FEW, MANY)
    )
    first, last = (
        instructions(url, lambda ledger: live(ledger, per_window=per_window)) for url in (few, many)
    )
    assert last <= 1.2 * first, (first, last)
    # The control: what looks at all of it does grow.
    first, last = (instructions(url, lambda ledger: list(ledger.charges("flights"))) for url in (few, many))
    assert last > 20 * first


def test_a_checked_history_costs_no_more_than_what_is_new(tmp_path: Path) -> None:
    url = make_history(tmp_path / "ledger.db", SOME, per_window=True)
    with open_ledger(url) as ledger:
        assert ledger.add_checkpoint().problems == ()
        assert ledger.verify() == ()
        read = [ledger.examine(full=full) for full in (True, False)]
        assert [(found.problems, found.since) for found in read] == [((), 0), ((), 4 * SOME + 3)]


def test_no_statement_of_a_charge_scans_a_table_that_grows(tmp_path: Path) -> None:
    url = make_history(tmp_path / "ledger.db", FEW, per_window=True)
    run: list[tuple[str, Any]] = []
    with open_ledger(url) as ledger:
        assert isinstance(ledger, SqlLedger)

        def note(_c: object, _k: object, statement: str, parameters: Any, *_: object) -> None:
            run.append((statement, parameters))

        event.listen(ledger._engine, "before_cursor_execute", note)
        live(ledger, per_window=True)
    scanned = []
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        for statement, parameters in run:
            if not statement.startswith(("SELECT", "UPDATE", "DELETE")):
                continue
            for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters):
                if detail.startswith("SCAN") and "USING INDEX charges_to_settle" not in detail:
                    scanned.append((detail, statement))
    assert len(run) > 30
    grown = ("charges", "entries", "windows", "plans", "names", "staged_manifests")
    assert [found for found in scanned if found[0].split()[1] in grown] == []
