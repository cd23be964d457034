"""The contract of a ledger, on every implementation: grants, windows, refusals, what is shown."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    AccountMissingError,
    BudgetExceededError,
    GuaranteeError,
    NameTakenError,
    UsageError,
)
from suffice.storage.ledger.chain import public_entry
from support.charging import drawn, entry_count, published, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeLedger = Callable[[], Ledger]
    MakeRequest = Callable[..., ChargeRequest]

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


def test_a_list_of_checksums_is_demanded_kept_and_given_up(ledger: Ledger) -> None:
    assert ledger.grant("flights", epsilon=Fraction(3), reason="x").checksums is None
    before = entry_count(ledger)
    assert ledger.grant("flights", epsilon=Fraction(3), checksums="", reason="x").checksums is None
    assert entry_count(ledger) == before
    granted = ledger.grant("flights", epsilon=Fraction(3), checksums="/srv/SHA256SUMS", reason="x")
    assert granted.checksums == ledger.checksums("flights") == "/srv/SHA256SUMS"
    assert entry_count(ledger) == before + 1
    assert ledger.grant("flights", epsilon=Fraction(4), reason="x").checksums == "/srv/SHA256SUMS"
    assert "/srv/SHA256SUMS" not in repr([public_entry(entry) for entry in ledger.entries()])
    assert ledger.verify() == ()
    assert ledger.grant("flights", epsilon=Fraction(4), checksums="", reason="x").checksums is None
    assert ledger.checksums("flights") is None
    assert ledger.verify() == ()
    first = ledger.grant("trains", epsilon=Fraction(1), checksums="/srv/trains", reason="x")
    assert first.checksums == "/srv/trains"
    with pytest.raises(AccountMissingError):
        ledger.checksums("ships")


@pytest.mark.parametrize(
    "terms",
    [
        {"neighboring": "replace_one"},
        {"unit": "column:customer_id"},
        {"per_window": "day:month:UTC"},
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
        {"per_window": "day:month:UTC", "unit": "column:customer_id"},
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


# Windows


@pytest.fixture
def monthly(ledger_factory: MakeLedger) -> Ledger:
    ledger = ledger_factory()
    ledger.grant("flights", epsilon=Fraction(3), per_window="day:month:UTC", sources=["/data"], reason="x")
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
    assert [(w.window, shown(w.spent, w.reserved, w.remaining)) for w in monthly.windows("flights")] == [
        ("2013-01", "3 0 0"),
        ("2013-02", "3 0 0"),
        ("2013-03", "0 1 2"),
    ]
    assert shown(*(monthly.remaining("flights", month) for month in ("2013-03", "2013-04"))) == "2 3"
    assert monthly.verify() == ()


def test_charges_of_all_count_against_every_window(monthly: Ledger, make_request: MakeRequest) -> None:
    drawn(monthly, make_request(window="2013-01", epsilon=Fraction(2)))
    for call in (monthly.check, monthly.reserve):
        with pytest.raises(BudgetExceededError, match="has epsilon 1 left of 3"):
            call(make_request(name="whole", epsilon=Fraction(1_000_001, 10**6)))
    whole = monthly.reserve(make_request(name="whole", epsilon=Fraction(1)))
    assert monthly.remaining("flights", "2013-02") == 2
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
    (window,) = monthly.windows("flights")
    assert shown(window.spent, window.reserved, window.remaining) == "3 0 0"


def test_a_total_below_the_fullest_window_is_refused(monthly: Ledger, make_request: MakeRequest) -> None:
    drawn(monthly, make_request(window="2013-01", epsilon=Fraction(1)))
    drawn(monthly, make_request(window="2013-02", epsilon=Fraction(3, 2)))
    monthly.reserve(make_request(name="whole", epsilon=Fraction(1)))
    with pytest.raises(BudgetExceededError, match=r"lowered to 2: 2\.5 is"):
        monthly.grant("flights", epsilon=Fraction(2), reason="x")
    assert monthly.grant("flights", epsilon=Fraction(5, 2), reason="x").remaining == 0


def test_another_grid_is_refused(monthly: Ledger, make_request: MakeRequest) -> None:
    with pytest.raises(GuaranteeError, match="per window of day:month:UTC, the spec has day:year:UTC"):
        monthly.reserve(make_request(window="2013", grid="day:year:UTC"))


def test_a_grant_per_window_is_of_one_time_zone(monthly: Ledger, make_request: MakeRequest) -> None:
    with pytest.raises(GuaranteeError, match="of day:month:UTC, the spec has day:month:Europe/Berlin"):
        monthly.reserve(make_request(window="2013-01", grid="day:month:Europe/Berlin"))
    with pytest.raises(GuaranteeError, match="fixed per window: day:month:UTC"):
        monthly.grant("flights", epsilon=Fraction(3), per_window="day:month:Europe/Berlin", reason="x")


def test_a_grant_per_window_names_its_sources_and_keeps_them(
    monthly: Ledger, make_request: MakeRequest
) -> None:
    """Another source may hold the same rows under other dates, so that a row would be in two windows."""
    before = entry_count(monthly)
    none: list[list[str] | None] = [None, []]
    for sources in none:
        with pytest.raises(UsageError, match="names its sources"):
            monthly.grant(
                "taxis", epsilon=Fraction(1), per_window="day:week:UTC", sources=sources, reason="x"
            )
    for others in ([], ["/data", "/more"], ["/more"]):
        with pytest.raises(GuaranteeError, match="fixed its windows and their sources: /data"):
            monthly.grant("flights", epsilon=Fraction(3), sources=others, reason="x")
    with pytest.raises(GuaranteeError, match="does not allow this source"):
        monthly.reserve(make_request(window="2013-01", source="/more"))
    assert entry_count(monthly) == before
    assert monthly.grant("flights", epsilon=Fraction(4), sources=["/data"], reason="x").granted == 4


def test_without_a_grant_per_window_all_windows_add_up(ledger: Ledger, make_request: MakeRequest) -> None:
    for month in ("2013-01", "2013-02", "2013-03"):
        ledger.reserve(make_request(window=month))
    with pytest.raises(BudgetExceededError):
        ledger.reserve(make_request(window="2013-04"))
    assert list(ledger.windows("flights")) == []


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


# Showing


def test_accounts_are_shown_in_order_with_their_charges(ledger: Ledger, make_request: MakeRequest) -> None:
    ledger.grant("airports", epsilon=Fraction(1), reason="x")
    published(ledger, make_request(name="z"))
    ledger.reserve(make_request(name="a", epsilon=Fraction(1, 4)))
    airports, flights = ledger.accounts()
    assert (airports.dataset, list(ledger.charges("airports"))) == ("airports", [])
    assert [(c.name, c.window, c.loss.epsilon, c.state) for c in ledger.charges("flights")] == [
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
