"""The contract of a ledger, on every implementation."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    AccountMissingError,
    BudgetExceededError,
    ChargeInProgressError,
    ChargeLostError,
    ChargeSpentError,
    GuaranteeError,
    NameTakenError,
    SpecChangedError,
    UsageError,
    WrongStoreError,
)
from suffice.pipeline.numbers import format_epsilon
from suffice.storage.ledger import Charge, ChargeRequest, ChargeState, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeLedger = Callable[[], Ledger]
    MakeRequest = Callable[..., ChargeRequest]

MANIFEST = b'{"format_version":1}'


def drawn(ledger: Ledger, request: ChargeRequest, **options: Any) -> Charge:
    return ledger.enter_drawing(ledger.reserve(request, **options))


def published(ledger: Ledger, request: ChargeRequest, **options: Any) -> Charge:
    return ledger.publish(ledger.stage(drawn(ledger, request, **options), MANIFEST))


def shown(*epsilons: Fraction) -> str:
    return " ".join(map(format_epsilon, epsilons))


def entry_count(ledger: Ledger) -> int:
    count = 0
    while ledger.entry_hash(count + 1) is not None:
        count += 1
    return count


# Grants


def test_a_first_grant_fixes_its_terms_by_default(ledger: Ledger) -> None:
    account = ledger.account("flights")
    assert (account.neighboring, account.unit, account.per_window) == ("add_or_remove_one", "row", None)
    assert shown(account.granted, account.spent, account.remaining) == "3 0 3"
    assert account.sources == ()


def test_repeating_a_grant_changes_nothing(ledger: Ledger) -> None:
    before = entry_count(ledger)
    ledger.grant("flights", epsilon=Fraction(3), reason="again")
    ledger.grant("flights", epsilon=Fraction(3), neighboring="add_or_remove_one", unit="row", reason="again")
    assert entry_count(ledger) == before
    assert ledger.grant("flights", epsilon=Fraction(4), reason="more").remaining == 4
    assert entry_count(ledger) == before + 1


def test_sources_are_replaced_and_kept(ledger: Ledger) -> None:
    assert ledger.grant("flights", epsilon=Fraction(3), sources=["/a", "/b"], reason="x").sources == (
        "/a",
        "/b",
    )
    assert ledger.grant("flights", epsilon=Fraction(4), reason="x").sources == ("/a", "/b")
    assert ledger.grant("flights", epsilon=Fraction(4), sources=["/c"], reason="x").sources == ("/c",)
    assert ledger.grant("flights", epsilon=Fraction(4), sources=[], reason="x").sources == ()
    assert ledger.verify() == ()


@pytest.mark.parametrize(
    "terms",
    [
        {"neighboring": "replace_one"},
        {"unit": "column:customer_id"},
        {"per_window": "day:month"},
        {"units_disjoint": True},
    ],
)
def test_terms_never_change(ledger: Ledger, terms: dict[str, Any]) -> None:
    before = entry_count(ledger)
    with pytest.raises(GuaranteeError, match="the first grant of flights fixed"):
        ledger.grant("flights", epsilon=Fraction(9), reason="x", **terms)
    assert entry_count(ledger) == before
    assert ledger.account("flights").granted == 3


@pytest.mark.parametrize("state", ["reserved", "drawing"])
def test_a_total_below_what_is_taken_is_refused(
    ledger: Ledger, make_request: MakeRequest, state: str
) -> None:
    charge = ledger.reserve(make_request(epsilon=Fraction(2)))
    if state == "drawing":
        ledger.enter_drawing(charge)
    with pytest.raises(BudgetExceededError, match=r"lowered to 1\.999999: 2 is spent or reserved"):
        ledger.grant("flights", epsilon=Fraction(1_999_999, 10**6), reason="x")
    assert ledger.grant("flights", epsilon=Fraction(2), reason="x").remaining == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": "Flights"},
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(-1)},
        {"epsilon": Fraction(1, 10**7)},
        {"reason": " "},
        {"sources": [""]},
        {"neighboring": "bounded"},
        {"unit": "customer_id"},
        {"per_window": "month"},
        {"per_window": "day:month", "unit": "column:customer_id"},
    ],
)
def test_a_grant_that_breaks_a_rule_is_refused(ledger: Ledger, fields: dict[str, Any]) -> None:
    before = entry_count(ledger)
    values = {"dataset": "taxis", "epsilon": Fraction(1), "reason": "x", **fields}
    with pytest.raises(UsageError):
        ledger.grant(values.pop("dataset"), **values)
    assert (entry_count(ledger), len(ledger.accounts())) == (before, 1)


def test_a_missing_account_is_refused(ledger: Ledger, make_request: MakeRequest) -> None:
    for call in (ledger.account, ledger.accounts):
        with pytest.raises(AccountMissingError, match="suffice ledger grant taxis"):
            call("taxis")
    for charge in (ledger.check, ledger.reserve):
        with pytest.raises(AccountMissingError):
            charge(make_request(dataset="taxis"))
    assert ledger.find("taxis", "delays", "all") is None


# The life of a charge


def test_a_charge_moves_to_published_and_is_spent_from_drawing_on(
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
    assert shown(account.reserved, account.spent, account.remaining) == "0 1 2"

    charge = ledger.stage(charge, MANIFEST)
    assert (charge.state, charge.manifest) == ("staged", MANIFEST)
    charge = ledger.publish(charge)
    assert charge.state is ChargeState.PUBLISHED
    assert ledger.find("flights", "delays", "all") == charge
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
    assert [(charge.name, charge.state, charge.drew) for charge in account.charges] == [
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


# Refusals


def test_the_last_millionth_counts(ledger: Ledger, make_request: MakeRequest) -> None:
    ledger.reserve(make_request(name="a", epsilon=Fraction(2_999_999, 10**6)))
    for call in (ledger.check, ledger.reserve):
        with pytest.raises(
            BudgetExceededError, match=r"has epsilon 0\.000001 left of 3, .* 0\.000002$"
        ) as caught:
            call(make_request(name="b", epsilon=Fraction(2, 10**6)))
        assert caught.value.remaining == Fraction(1, 10**6)
        assert caught.value.requested == Fraction(2, 10**6)
    ledger.reserve(make_request(name="b", epsilon=Fraction(1, 10**6)))
    assert ledger.account("flights").remaining == 0


def test_a_refusal_leaves_no_trace(ledger: Ledger, make_request: MakeRequest) -> None:
    before = (entry_count(ledger), ledger.accounts())
    for request in (
        make_request(epsilon=Fraction(4)),
        make_request(neighboring="replace_one"),
        make_request(unit="column:customer_id"),
    ):
        for call in (ledger.check, ledger.reserve):
            with pytest.raises((BudgetExceededError, GuaranteeError)):
                call(request)
    assert (entry_count(ledger), ledger.accounts()) == before
    assert ledger.find("flights", "delays", "all") is None


def test_a_source_outside_the_grant_is_refused(ledger: Ledger, make_request: MakeRequest) -> None:
    ledger.grant("flights", epsilon=Fraction(3), sources=["/data/flights"], reason="x")
    for call in (ledger.check, ledger.reserve):
        with pytest.raises(GuaranteeError):
            call(make_request(source="/data/flights-2"))
    ledger.reserve(make_request(source="/data/flights/2013.parquet"))


def test_check_does_not_count_a_reservation_against_itself(ledger: Ledger, make_request: MakeRequest) -> None:
    request = make_request(epsilon=Fraction(3))
    ledger.check(request)
    ledger.reserve(request)
    ledger.check(request)
    with pytest.raises(BudgetExceededError):
        ledger.check(make_request(name="other", epsilon=Fraction(3)))


def test_a_name_belongs_to_one_dataset_for_good(ledger: Ledger, make_request: MakeRequest) -> None:
    ledger.grant("taxis", epsilon=Fraction(3), reason="x")
    ledger.abandon(ledger.reserve(make_request()), reason="x")
    with pytest.raises(NameTakenError, match="belongs to the dataset flights"):
        ledger.find("taxis", "delays", "2013-01")
    for call in (ledger.check, ledger.reserve):
        with pytest.raises(NameTakenError):
            call(make_request(dataset="taxis"))
    assert ledger.account("taxis").remaining == 3


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


# Windows


@pytest.fixture
def monthly(ledger_factory: MakeLedger) -> Ledger:
    ledger = ledger_factory()
    ledger.grant("flights", epsilon=Fraction(3), per_window="day:month", reason="x")
    return ledger


def test_each_window_has_the_whole_grant(monthly: Ledger, make_request: MakeRequest) -> None:
    for month in ("2013-02", "2013-01"):
        published(monthly, make_request(window=month, epsilon=Fraction(3)))
    for call in (monthly.check, monthly.reserve):
        with pytest.raises(BudgetExceededError, match="has epsilon 0 left in window 2013-01"):
            call(make_request(name="more", window="2013-01", epsilon=Fraction(1, 10**6)))
    monthly.reserve(make_request(name="more", window="2013-03", epsilon=Fraction(1)))
    account = monthly.account("flights")
    assert shown(account.spent, account.remaining) == "0 0"
    assert [(w.window, shown(w.spent, w.reserved, w.remaining)) for w in account.windows] == [
        ("2013-01", "3 0 0"),
        ("2013-02", "3 0 0"),
        ("2013-03", "0 1 2"),
    ]
    assert shown(account.remaining_in("2013-03"), account.remaining_in("2013-04")) == "2 3"
    assert monthly.verify() == ()


def test_charges_of_all_count_against_every_window(monthly: Ledger, make_request: MakeRequest) -> None:
    drawn(monthly, make_request(window="2013-01", epsilon=Fraction(2)))
    for call in (monthly.check, monthly.reserve):
        with pytest.raises(BudgetExceededError, match="has epsilon 1 left of 3"):
            call(make_request(name="whole", epsilon=Fraction(1_000_001, 10**6)))
    whole = monthly.reserve(make_request(name="whole", epsilon=Fraction(1)))
    assert monthly.account("flights").remaining_in("2013-02") == 2
    with pytest.raises(BudgetExceededError):
        monthly.reserve(make_request(window="2013-02", epsilon=Fraction(2_000_001, 10**6)))
    with pytest.raises(BudgetExceededError):
        monthly.reserve(make_request(name="more", window="2013-01", epsilon=Fraction(1, 10**6)))
    account = monthly.account("flights")
    assert shown(account.reserved, account.remaining) == "1 0"
    monthly.abandon(whole, reason="x")
    assert monthly.account("flights").remaining == 1
    monthly.reserve(make_request(name="more", window="2013-01", epsilon=Fraction(1)))
    assert monthly.verify() == ()


def test_a_window_gets_back_what_was_never_drawn(monthly: Ledger, make_request: MakeRequest) -> None:
    request = make_request(window="2013-01", epsilon=Fraction(3))
    monthly.abandon(monthly.reserve(request), reason="x")
    monthly.abandon(drawn(monthly, request), reason="x")
    (window,) = monthly.account("flights").windows
    assert shown(window.spent, window.reserved, window.remaining) == "3 0 0"


def test_a_total_below_the_fullest_window_is_refused(monthly: Ledger, make_request: MakeRequest) -> None:
    drawn(monthly, make_request(window="2013-01", epsilon=Fraction(1)))
    drawn(monthly, make_request(window="2013-02", epsilon=Fraction(3, 2)))
    monthly.reserve(make_request(name="whole", epsilon=Fraction(1)))
    with pytest.raises(BudgetExceededError, match=r"lowered to 2: 2\.5 is"):
        monthly.grant("flights", epsilon=Fraction(2), reason="x")
    assert monthly.grant("flights", epsilon=Fraction(5, 2), reason="x").remaining == 0


def test_another_grid_is_refused(monthly: Ledger, make_request: MakeRequest) -> None:
    with pytest.raises(GuaranteeError, match="per window of day:month, the spec has day:year"):
        monthly.reserve(make_request(window="2013", grid="day:year"))


def test_without_a_grant_per_window_all_windows_add_up(ledger: Ledger, make_request: MakeRequest) -> None:
    for month in ("2013-01", "2013-02", "2013-03"):
        ledger.reserve(make_request(window=month))
    with pytest.raises(BudgetExceededError):
        ledger.reserve(make_request(window="2013-04"))
    assert ledger.account("flights").windows == ()


# Showing


def test_accounts_are_shown_in_order_with_their_charges(ledger: Ledger, make_request: MakeRequest) -> None:
    ledger.grant("airports", epsilon=Fraction(1), reason="x")
    published(ledger, make_request(name="z"))
    ledger.reserve(make_request(name="a", epsilon=Fraction(1, 4)))
    airports, flights = ledger.accounts()
    assert (airports.dataset, airports.charges) == ("airports", ())
    assert [(c.name, c.window, c.epsilon, c.state) for c in flights.charges] == [
        ("z", "all", 1, "published"),
        ("a", "all", Fraction(1, 4), "reserved"),
    ]
    assert ledger.accounts("flights") == (flights,)


def test_another_run_sees_what_one_has_committed(
    ledger: Ledger, ledger_factory: MakeLedger, make_request: MakeRequest
) -> None:
    charge = published(ledger, make_request())
    other = ledger_factory()
    assert other.ledger_id == ledger.ledger_id
    assert other.find("flights", "delays", "all") == charge
    assert other.accounts() == ledger.accounts()
