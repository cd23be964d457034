"""The contract of a ledger's charges, on every implementation: their lives, and reruns."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    ChargeInProgressError,
    ChargeLostError,
    ChargeSpentError,
    LedgerCorruptError,
    SpecChangedError,
    WrongStoreError,
)
from suffice.storage.ledger.charge import ChargeRequest, ChargeState
from suffice.storage.ledger.person import person_view
from support.charging import MANIFEST, drawn, entry_count, published, shown
from support.ledger_sql import rows
from support.losses import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
    from suffice.storage.ledger.ledger import Ledger

    MakeLedger = Callable[[], Ledger]
    MakeRequest = Callable[..., ChargeRequest]


@pytest.fixture(params=MEASURES)
def measure(request: pytest.FixtureRequest) -> PrivacyMeasure:
    measure: PrivacyMeasure = request.param
    return measure


# The life of a charge


def test_a_charge_moves_to_published_and_is_spent_once_it_is_staged(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    request = make_request()
    charge = ledger.reserve(request)
    assert (charge.state, charge.drew, charge.attempt, charge.epoch) == ("reserved", False, 1, 1)
    account = ledger.account("flights")
    assert shown(account.reserved, account.spent, account.remaining) == "1 0 2"

    charge = ledger.enter_drawing(charge)
    assert (charge.state, charge.drew) == ("drawing", True)
    assert charge.drawing_sequence is not None
    assert charge.drawing_hash == ledger.entry_hash(charge.drawing_sequence)
    account = ledger.account("flights")
    assert shown(account.reserved, account.spent, account.remaining) == "1 0 2"

    charge = ledger.stage(charge, MANIFEST)
    account = ledger.account("flights")
    assert shown(account.reserved, account.spent, account.remaining) == "0 1 2"
    assert (charge.state, charge.manifest) == ("staged", MANIFEST)
    charge = ledger.publish(charge)
    assert charge.state is ChargeState.PUBLISHED
    assert ledger.find("flights", "delays", "all") == ledger.charge(charge.charge_id) == charge
    assert ledger.charge("0" * 32) is None
    assert ledger.account("flights").spent == 1
    assert ledger.verify() == ()


def test_the_release_id_is_fixed_at_reservation(ledger: Ledger, make_request: MakeRequest) -> None:
    charge = ledger.reserve(make_request())
    assert len(ledger.ledger_id) == 32
    text = f"{ledger.ledger_id}:{charge.charge_id}"
    assert charge.release_id == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert charge.ledger_id == ledger.ledger_id


def test_times_are_utc_and_the_creation_is_coarse(
    ledger: Ledger, make_request: MakeRequest, clock: Any
) -> None:
    charge = ledger.reserve(make_request())
    assert charge.created == datetime(2026, 1, 31, 8, 0, tzinfo=UTC)
    assert charge.lease_expires == datetime(2026, 1, 31, 8, 2, 30, tzinfo=UTC)
    assert ledger.now() == clock()


def test_abandoning_returns_epsilon_if_and_only_if_nothing_was_drawn(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    ledger.abandon(ledger.reserve(make_request(name="a")), reason="reading failed")
    ledger.abandon(drawn(ledger, make_request(name="b")), reason="drawing failed")
    ledger.abandon(ledger.stage(drawn(ledger, make_request(name="c")), MANIFEST), reason="lost files")
    account = ledger.account("flights")
    assert shown(account.spent, account.reserved, account.remaining) == "2 0 1"
    assert [(charge.name, charge.state, charge.drew) for charge in ledger.charges("flights")] == [
        ("a", "abandoned", False),
        ("b", "abandoned", True),
        ("c", "abandoned", True),
    ]
    assert ledger.verify() == ()


@pytest.mark.parametrize("state", ["reserved", "drawing", "staged", "published", "abandoned"])
def test_no_move_skips_or_repeats_a_state(ledger: Ledger, make_request: MakeRequest, state: str) -> None:
    charge = ledger.reserve(make_request())
    if state not in {"reserved", "abandoned"}:
        charge = ledger.enter_drawing(charge)
        if state != "drawing":
            charge = ledger.stage(charge, MANIFEST)
            if state == "published":
                charge = ledger.publish(charge)
    elif state == "abandoned":
        charge = ledger.abandon(charge, reason="x")
    moves: dict[str, Callable[[], object]] = {
        "reserved": lambda: ledger.enter_drawing(charge),
        "drawing": lambda: ledger.stage(charge, MANIFEST),
        "staged": lambda: ledger.publish(charge),
    }
    before = (entry_count(ledger), ledger.accounts())
    for source, move in moves.items():
        if source != state and (source, state) != ("staged", "published"):
            with pytest.raises(ChargeLostError, match=f"the charge is {state}"):
                move()
    if state in {"published", "abandoned"}:
        for move in (
            lambda: ledger.abandon(charge, reason="x"),
            lambda: ledger.renew(charge),
            lambda: ledger.take_over(charge),
        ):
            with pytest.raises(ChargeLostError):
                move()
    assert (entry_count(ledger), ledger.accounts()) == before


# Reruns


def test_a_published_key_is_returned_and_nothing_is_charged(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    charge = published(ledger, make_request())
    before = entry_count(ledger)
    for new_attempt in (False, True):
        assert ledger.reserve(make_request(), new_attempt=new_attempt) == charge
    assert entry_count(ledger) == before
    assert ledger.account("flights").spent == 1


def test_a_staged_key_is_returned_and_may_be_taken_over_at_once(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest
) -> None:
    staged = ledger.stage(drawn(ledger, make_request()), MANIFEST)
    other = ledger_factory()
    for new_attempt in (False, True):
        assert other.reserve(make_request(), new_attempt=new_attempt) == staged
    with pytest.raises(ChargeLostError):
        other.publish(staged)
    taken = other.take_over(staged)
    assert (taken.state, taken.epoch, taken.manifest) == ("staged", 2, MANIFEST)
    with pytest.raises(ChargeLostError):
        ledger.publish(staged)
    done = other.publish(taken)
    assert done.state is ChargeState.PUBLISHED
    assert ledger.publish(staged) == done
    assert ledger.verify() == ()


def test_another_plan_or_store_for_the_same_key_is_refused(ledger: Ledger, make_request: MakeRequest) -> None:
    published(ledger, make_request())
    with pytest.raises(SpecChangedError):
        ledger.reserve(make_request(epsilon=Fraction(2)))
    with pytest.raises(WrongStoreError):
        ledger.reserve(make_request(store_id="store-2"))
    ledger.reserve(make_request(name="other", store_id="store-2"))


@pytest.mark.slow
def test_a_live_charge_is_in_progress(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest, clock: Any
) -> None:
    charge = ledger.reserve(make_request())
    clock.advance(seconds=119)
    other = ledger_factory()
    with pytest.raises(ChargeInProgressError):
        other.reserve(make_request())
    with pytest.raises(ChargeInProgressError):
        other.take_over(charge)
    before = entry_count(ledger)
    ledger.renew(charge)
    assert entry_count(ledger) == before
    clock.advance(seconds=119)
    with pytest.raises(ChargeInProgressError):
        other.reserve(make_request())


def test_an_expired_reservation_is_taken_over_with_its_epsilon(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest, clock: Any
) -> None:
    request = make_request(epsilon=Fraction(3))
    zombie = ledger.reserve(request)
    clock.advance(minutes=2)
    other = ledger_factory()
    taken = other.reserve(request)
    assert (taken.charge_id, taken.release_id) == (zombie.charge_id, zombie.release_id)
    assert (taken.epoch, taken.attempt, taken.state) == (2, 1, "reserved")
    assert ledger.account("flights").reserved == 3
    calls: tuple[Callable[[], object], ...] = (
        lambda: ledger.enter_drawing(zombie),
        lambda: ledger.stage(zombie, MANIFEST),
        lambda: ledger.publish(zombie),
        lambda: ledger.abandon(zombie, reason="x"),
        lambda: ledger.renew(zombie),
        lambda: ledger.take_over(zombie),
        lambda: ledger.enter_drawing(taken),  # the right epoch, but another holder
    )
    before = entry_count(ledger)
    for call in calls:
        with pytest.raises(ChargeLostError):
            call()
    assert entry_count(ledger) == before
    assert other.enter_drawing(taken).state is ChargeState.DRAWING
    assert ledger.verify() == ()


def test_a_run_that_takes_over_from_itself_goes_on_only_with_the_new_epoch(
    ledger: Ledger, make_request: MakeRequest, clock: Any
) -> None:
    stalled = ledger.reserve(make_request())
    clock.advance(minutes=2)
    taken = ledger.reserve(make_request())
    for call in (ledger.enter_drawing, ledger.renew, ledger.take_over):
        with pytest.raises(ChargeLostError, match="at epoch 2"):
            call(stalled)
    stalled_draw = ledger.enter_drawing(taken)
    clock.advance(minutes=2)
    ledger.take_over(stalled_draw)
    with pytest.raises(ChargeLostError):
        ledger.stage(stalled_draw, MANIFEST)
    with pytest.raises(ChargeLostError):
        ledger.abandon(stalled_draw, reason="x")


def test_an_expired_draw_is_fenced_abandoned_and_stays_spent(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest, clock: Any
) -> None:
    zombie = drawn(ledger, make_request())
    clock.advance(minutes=2)
    other = ledger_factory()
    for new_attempt in (False, True):
        with pytest.raises(ChargeInProgressError, match="run again"):
            other.reserve(make_request(), new_attempt=new_attempt)
    taken = other.take_over(zombie)
    with pytest.raises(ChargeLostError):
        ledger.stage(zombie, MANIFEST)
    other.abandon(taken, reason="its lease passed after the draw")
    assert other.account("flights").spent == 1
    with pytest.raises(ChargeSpentError):
        other.reserve(make_request())
    second = other.reserve(make_request(), new_attempt=True)
    assert (second.attempt, second.epoch) == (2, 1)
    assert second.release_id != zombie.release_id
    assert other.account("flights").remaining == 1
    assert other.verify() == ()


def test_a_zombie_that_staged_first_is_published_by_whoever_takes_over(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest, clock: Any
) -> None:
    seen = drawn(ledger, make_request())
    clock.advance(minutes=2)
    ledger.stage(seen, MANIFEST)
    taken = ledger_factory().take_over(seen)
    assert (taken.state, taken.manifest) == ("staged", MANIFEST)


def test_after_a_returned_attempt_a_new_one_starts_by_itself(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    ledger.abandon(ledger.reserve(make_request(epsilon=Fraction(3))), reason="reading failed")
    charge = ledger.reserve(make_request(epsilon=Fraction(3)))
    assert charge.attempt == 2
    assert ledger.find("flights", "delays", "all") == charge


def test_the_bytes_of_a_manifest_are_kept_while_it_is_staged(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    staged = [
        ledger.stage(ledger.enter_drawing(ledger.reserve(make_request(name=name))), MANIFEST)
        for name in ("a", "b")
    ]
    digest = hashlib.sha256(MANIFEST).hexdigest()
    ended = [ledger.publish(staged[0]), ledger.abandon(staged[1], reason="x")]
    assert [(charge.manifest, charge.manifest_sha256) for charge in staged] == [(MANIFEST, digest)] * 2
    assert [(charge.manifest, charge.manifest_sha256) for charge in ended] == [(None, digest)] * 2
    assert rows(ledger_url, "SELECT charge_id FROM staged_manifests") == []
    assert ledger.verify() == ()


def test_a_plan_is_kept_once_however_often_it_is_charged(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    request = make_request(plan={"a": "1"})
    for name in ("a", "b"):
        ledger.reserve(make_request(name=name, plan={"a": "1"}))
    assert rows(ledger_url, "SELECT sha256, content FROM plans") == [(request.plan_hash, request.plan_json)]
    assert ledger.plan(request.plan_hash) == request.plan_json
    with pytest.raises(LedgerCorruptError, match="no plan with the hash"):
        ledger.plan("0" * 64)


@pytest.mark.parametrize("together", [1, 2, 100])
def test_what_charges_hold_is_given_a_few_at_a_time(
    ledger: Ledger, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr("suffice.storage.ledger.sql.rows._MOST_TOGETHER", together)
    ledger.abandon(ledger.reserve(make_request(name="returned")), reason="x")
    for number in range(3):
        ledger.reserve(make_request(name=f"series-{number}", plan={"a": "1"}))
    held = list(ledger.held("flights"))
    assert sum(each.number for each in held) == 3
    assert max(each.number for each in held) == min(together, 3)
    spent = ledger.account("flights").reserved
    assert sum((each.number * each.loss.amount for each in held), Fraction(0)) == spent
    with ledger.at_one_moment():  # plans are looked up while charges are given
        assert person_view(ledger, ledger.account("flights")).loss.of_all == spent
