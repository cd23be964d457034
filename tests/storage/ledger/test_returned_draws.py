"""What a draw takes while it lasts, and when a ledger gives it back; each database enforces it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    ChargeLostError,
    ChargeSpentError,
    DrawsExhaustedError,
    LedgerError,
    ReadingsExhaustedError,
)
from suffice.storage.ledger.charge import MOST_RETURNED_DRAWS, Charge, ChargeState, release_id
from suffice.storage.ledger.replay import export_lines, read_export, replay
from suffice.storage.ledger.sql.migrations import limits_0001
from support.charging import MANIFEST, drawn
from support.ledger_sql import REFUSALS, execute
from support.losses import MEASURES, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
    from suffice.storage.ledger.chain import Entry
    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeLedger = Callable[[], Ledger]
    MakeRequest = Callable[..., ChargeRequest]


@pytest.fixture(params=MEASURES)
def measure(request: pytest.FixtureRequest) -> PrivacyMeasure:
    measure: PrivacyMeasure = request.param
    return measure


def balance(ledger: Ledger) -> Any:
    """Return what is spent and what is reserved."""
    account = ledger.account("flights")
    return account.spent, account.reserved


def taken_over(ledger: Ledger, request: ChargeRequest) -> Charge:
    """Return a charge that was left in its draw, and taken over."""
    charge = drawn(ledger, request)
    ledger.let_go(charge)
    return ledger.take_over(charge)


def return_draws(ledger: Ledger, request: ChargeRequest, times: int) -> None:
    for _ in range(times):
        ledger.return_draw(taken_over(ledger, request), reason="its run died")


def test_a_draw_is_spent_once_it_is_staged(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    charge = drawn(ledger, make_request())
    assert balance(ledger) == (0, 1)
    if ledger_url.startswith("postgresql"):
        with pytest.raises(REFUSALS, match="balances are the sums of charges"):
            execute(ledger_url, "UPDATE charges SET state = 'staged', manifest_sha256 = 'x'")
    assert charge.counts_as == "reserved"
    assert ledger.remaining("flights", "all") == 2
    charge = ledger.stage(charge, MANIFEST)
    assert balance(ledger) == (1, 0)
    assert charge.counts_as == "spent"
    assert ledger.abandon(charge, reason="x").counts_as == "spent"
    assert balance(ledger) == (1, 0)
    other = ledger.abandon(taken_over(ledger, make_request(name="other")), reason="x")
    assert other.counts_as == "spent"
    assert balance(ledger) == (2, 0)
    assert ledger.verify() == ()


@pytest.mark.parametrize("grid", [None, "day:month:UTC"])
def test_a_draw_that_was_taken_over_is_returned(
    ledger: Ledger, make_request: MakeRequest, grid: str | None
) -> None:
    dataset, window = ("taxis", "2013-01") if grid else ("flights", "all")
    if grid:
        ledger.grant("taxis", **total(ledger), per_window=grid, sources=["/"], reason="x")
    request = make_request(dataset=dataset, window=window, source="/data")
    returned = ledger.return_draw(taken_over(ledger, request), reason="its run died")
    assert (returned.state, returned.drew, returned.draw_returned) == (ChargeState.ABANDONED, True, True)
    assert returned.counts_as == "returned"
    assert ledger.remaining(dataset, window) == 3
    assert ledger.returned(dataset) == {window: 1}
    assert tuple(ledger.held(dataset)) == ()
    assert [(key.label, key.count) for key in ledger.returned_draws(dataset)] == [
        (f"delays@{window}" if grid else "delays", 1)
    ]
    again = ledger.reserve(request)  # without a new attempt
    assert (again.attempt, again.state) == (2, ChargeState.RESERVED)
    assert ledger.verify() == ()


def test_nothing_is_returned_without_a_take_over(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    charge = drawn(ledger, make_request())
    with pytest.raises(LedgerError, match="nobody took it over"):
        ledger.return_draw(charge, reason="x")
    returned = (
        f"UPDATE charges SET state = 'abandoned', draw_returned = true WHERE charge_id = '{charge.charge_id}'"  # noqa: S608
    )
    with pytest.raises(REFUSALS, match="whoever took it over"):
        execute(ledger_url, returned)
    with pytest.raises(REFUSALS):  # not in one statement either
        execute(ledger_url, returned.replace("SET", "SET epoch = epoch + 1,"))
    with pytest.raises(REFUSALS, match="fixed once"):
        execute(ledger_url, "UPDATE charges SET drawing_epoch = 0")
    with pytest.raises(REFUSALS):
        execute(ledger_url, "UPDATE charges SET draw_returned = true")
    assert balance(ledger) == (0, 1)
    staged = ledger.stage(charge, MANIFEST)
    ledger.let_go(staged)
    with pytest.raises(ChargeLostError):
        ledger.return_draw(ledger.take_over(staged), reason="x")
    assert balance(ledger) == (1, 0)
    assert ledger.verify() == ()


def test_a_draw_states_the_epoch_in_which_it_drew(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    charge = ledger.reserve(make_request())
    ledger.let_go(charge)
    ledger.take_over(charge)
    with pytest.raises(REFUSALS, match="the epoch in which it draws"):
        execute(ledger_url, "UPDATE charges SET state = 'drawing', drew = true, drawing_epoch = 1")
    with pytest.raises(REFUSALS):
        execute(ledger_url, "UPDATE charges SET state = 'drawing', drew = true")


def test_the_holder_before_the_take_over_stages_nothing(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest
) -> None:
    charge = drawn(ledger, make_request())
    ledger.let_go(charge)
    other = ledger_factory()
    taken = other.take_over(charge)
    with pytest.raises(ChargeLostError):
        ledger.stage(charge, MANIFEST)
    other.return_draw(taken, reason="its run died")
    with pytest.raises(ChargeLostError):
        ledger.stage(charge, MANIFEST)


def test_the_fourth_draw_of_a_key_is_spent(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    request = make_request()
    assert limits_0001.MOST_DRAWS == MOST_RETURNED_DRAWS == 3
    return_draws(ledger, request, 3)
    return_draws(ledger, replace(request, name="other"), 1)
    charge = taken_over(ledger, request)
    assert not ledger.is_returnable(charge)
    with pytest.raises(DrawsExhaustedError, match="3 draws of delays were returned"):
        ledger.return_draw(charge, reason="x")
    returned = "UPDATE charges SET state = 'abandoned', draw_returned = true WHERE state = 'drawing'"
    with pytest.raises(REFUSALS, match="no more than 3 draws"):
        execute(ledger_url, returned)
    ledger.abandon(charge, reason="its run died")
    assert balance(ledger) == (1, 0)
    with pytest.raises(ChargeSpentError):
        ledger.reserve(request)
    assert [(key.label, key.count) for key in ledger.returned_draws("flights")] == [
        ("delays", 3),
        ("other", 1),
    ]
    assert ledger.verify() == ()


def test_too_many_failed_attempts_are_spent_in_their_draw_too(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    request = make_request()
    for _ in range(9):
        ledger.abandon(ledger.reserve(request), reason="reading failed")
    charge = ledger.reserve(request)
    ledger.let_go(charge)
    charge = ledger.enter_drawing(ledger.take_over(charge))  # a tenth attempt was gone before its draw
    ledger.let_go(charge)
    charge = ledger.take_over(charge)
    with pytest.raises(ReadingsExhaustedError):
        ledger.return_draw(charge, reason="x")
    with pytest.raises(REFUSALS, match="no more failed readings"):
        execute(ledger_url, "UPDATE charges SET state = 'abandoned', draw_returned = true WHERE drew")
    ledger.grant("flights", **total(ledger), failed_readings=11, reason="the view is mended")
    ledger.return_draw(charge, reason="x")
    assert [key.count for key in ledger.failed_readings("flights")] == [10], "nothing paid for them"
    assert balance(ledger) == (0, 0)
    assert ledger.verify() == ()


def test_a_replay_knows_when_a_draw_is_returned(ledger: Ledger, make_request: MakeRequest) -> None:
    request = make_request()
    return_draws(ledger, request, 1)
    assert ledger.add_checkpoint().problems == ()
    return_draws(ledger, request, 2)
    assert ledger.examine().problems == ledger.examine(full=True).problems == ()
    entries = [entry for entry in ledger.entries() if entry.kind != "checkpoint"]
    assert replay(entries)[1] == ()
    assert read_export("\n".join(export_lines(ledger.entries()))).verify() == ()
    ended = [number for number, entry in enumerate(entries) if entry.kind == "abandoned"]
    reserved = next(number for number, entry in enumerate(entries) if entry.kind == "reserved")
    taken = ended[0] - 1
    for wrong, rule in (
        (_changed(entries, ended[0], '"draw_returned":true', '"draw_returned":false'), "nobody saw a draw"),
        (_changed(entries, ended[0], '"epoch":2', '"epoch":1', without=taken), "whoever took it over"),
        ([*entries, *_once_more(entries[reserved : ended[0] + 1], ledger.ledger_id)], "no more draws"),
    ):
        assert rule in replay(wrong)[1][0]


def _changed(
    entries: list[Entry], number: int, old: str, new: str, without: int | None = None
) -> list[Entry]:
    """Return entries of which one states something else, and one may be missing."""
    assert old in entries[number].payload
    changed = replace(entries[number], payload=entries[number].payload.replace(old, new))
    return [changed if each == number else entry for each, entry in enumerate(entries) if each != without]


def _once_more(entries: list[Entry], ledger_id: str) -> list[Entry]:
    """Return the entries of a charge, as if they were another's."""
    stated = json.loads(entries[0].payload)
    texts = {
        stated["charge_id"]: "e" * 32,
        stated["release_id"]: release_id(ledger_id, "e" * 32),
    }
    again = []
    for entry in entries:
        payload = entry.payload
        for old, new in texts.items():
            payload = payload.replace(old, new)
        again.append(replace(entry, payload=payload))
    return again
