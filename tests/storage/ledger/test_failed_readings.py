"""Attempts that give their epsilon back are counted for each key, and limited by the database itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from suffice.errors import ReadingsExhaustedError, UsageError
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.replay import export_lines, read_export, replay
from support.ledger_sql import REFUSALS, execute

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeLedger = Callable[[], Ledger]
    MakeRequest = Callable[..., ChargeRequest]


def fail(ledger: Ledger, request: ChargeRequest, times: int) -> None:
    for _ in range(times):
        ledger.abandon(ledger.reserve(request), reason="reading failed")


def counts(ledger: Ledger) -> dict[str, int]:
    return {one.label: one.count for one in ledger.failed_readings("flights")}


def spent(ledger: Ledger) -> Fraction:
    return ledger.account("flights").spent


def test_ten_failed_readings_of_a_key_give_their_epsilon_back(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    request = make_request()
    other = replace(request, name="cancellations")
    fail(ledger, request, 10)
    fail(ledger, other, 1)
    assert counts(ledger) == {"delays": 10, "cancellations": 1}
    assert spent(ledger) == 0
    charge = ledger.reserve(request)
    with pytest.raises(ReadingsExhaustedError, match="--failed-readings"):
        ledger.abandon(charge, reason="reading failed")
    assert ledger.account("flights").reserved == 1, "it stays taken"
    ledger.abandon(ledger.enter_drawing(charge), reason="reading failed")
    assert spent(ledger) == 1
    assert counts(ledger)["delays"] == 10
    fail(ledger, other, 1)
    assert ledger.verify() == ()


def test_an_owner_allows_more_or_none(ledger: Ledger, make_request: MakeRequest) -> None:
    assert ledger.account("flights").failed_readings == 10
    account = ledger.account("flights")
    ledger.grant("flights", epsilon=account.granted, failed_readings=0, reason="none")
    charge = ledger.reserve(make_request())
    with pytest.raises(ReadingsExhaustedError):
        ledger.abandon(charge, reason="reading failed")
    ledger.grant("flights", epsilon=account.granted, failed_readings=1, reason="one")
    assert ledger.account("flights").failed_readings == 1
    ended = ledger.abandon(charge, reason="reading failed")
    assert (ended.state, ended.drew) == (ChargeState.ABANDONED, False)
    ledger.grant("flights", epsilon=account.granted, reason="as before")
    assert ledger.account("flights").failed_readings == 1
    with pytest.raises(UsageError, match="0 to 10000"):
        ledger.grant("flights", epsilon=account.granted, failed_readings=-1, reason="less")
    assert ledger.verify() == ()


@pytest.mark.slow
def test_a_charge_that_was_taken_over_before_its_draw_counts_too(
    ledger_factory: MakeLedger, ledger: Ledger, make_request: MakeRequest
) -> None:
    """A run that is killed again and again leaves its charge reserved: each time may tell a bit."""
    charge = ledger.reserve(make_request())
    runs = [ledger]
    for _ in range(11):
        runs[-1].let_go(charge)
        runs.append(ledger_factory())
        charge = runs[-1].take_over(charge)
    assert counts(ledger) == {"delays": 11}
    with pytest.raises(ReadingsExhaustedError):
        runs[-1].abandon(charge, reason="reading failed")
    ended = runs[-1].abandon(runs[-1].enter_drawing(charge), reason="reading failed")
    assert ended.drew
    assert counts(ledger) == {}, "what came to its draw is spent, and counts no more"
    assert ledger.verify() == ()


def test_the_database_refuses_the_return_whoever_asks(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    request = make_request()
    fail(ledger, request, 10)
    charge = ledger.reserve(request)
    returned = f"UPDATE charges SET state = 'abandoned' WHERE charge_id = '{charge.charge_id}'"  # noqa: S608
    with pytest.raises(REFUSALS, match="no more failed readings"):
        execute(ledger_url, returned)
    with pytest.raises(REFUSALS):
        execute(ledger_url, "UPDATE accounts SET failed_readings = -1")
    assert ledger.verify() == ()


def test_a_replay_knows_the_limit(ledger: Ledger, make_request: MakeRequest) -> None:
    """One attempt more that gave its epsilon back breaks a rule; a checkpoint keeps the count."""
    request = make_request()
    fail(ledger, request, 4)
    assert ledger.add_checkpoint().problems == ()
    fail(ledger, request, 6)
    assert ledger.verify() == ()
    assert ledger.examine(full=True).problems == ()
    entries = list(ledger.entries())
    books, broken = replay(entries)
    assert not broken
    assert list(books.failed.values()) == [10]
    lowered = [
        replace(entry, payload=entry.payload.replace('"failed_readings":10', '"failed_readings":9'))
        for entry in entries
        if entry.kind != "checkpoint"  # it would be the first to differ
    ]
    assert "no more failed readings" in replay(lowered)[1][0]
    exported = read_export("\n".join(export_lines(entries)))
    assert exported.verify() == ()
