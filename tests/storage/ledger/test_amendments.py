"""The contract of amendments, on every ledger: what each replaces, what it costs, and in which order."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import (
    AmendmentError,
    BudgetExceededError,
    ChargeInProgressError,
    ChargeSpentError,
    SpecChangedError,
    UsageError,
    WrongStoreError,
)
from suffice.pipeline.spec.windows_and_amendments import AmendedRelease, edition, read_edition
from suffice.storage.ledger.charge import ChargeRequest, ChargeState
from suffice.storage.ledger.replay import export_lines, read_export
from support.charging import MANIFEST, drawn, published, shown
from support.ledger_sql import REFUSALS, execute

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.ledger import Ledger

    MakeRequest = Callable[..., ChargeRequest]

SHA256 = hashlib.sha256(MANIFEST).hexdigest()
MONTH = "2013-01"


def test_an_amendment_is_a_charge_of_its_own_that_names_what_it_replaces(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    first = published(ledger, make_request(window=MONTH))
    second = published(ledger, make_request(window=MONTH, amendment=1))
    third = ledger.reserve(make_request(window=MONTH, amendment=2))
    assert (first.amendment, first.amends, first.label) == (0, None, "delays@2013-01")
    assert second.amends == AmendedRelease(release_id=first.release_id, manifest_sha256=SHA256)
    assert (second.attempt, second.label) == (1, "delays@2013-01.1")
    assert third.amends is not None
    assert third.amends.release_id == second.release_id
    assert len({first.charge_id, second.charge_id, third.charge_id}) == 3
    account = ledger.account("flights")
    assert shown(account.spent, account.reserved, account.remaining) == "2 1 0"
    for number, charge in enumerate([first, second, third]):
        assert ledger.find("flights", "delays", MONTH, amendment=number) == charge
    assert ledger.find("flights", "delays", MONTH, amendment=3) is None
    editions = ledger.editions("flights", "delays")
    assert [(one.edition, one.state) for one in editions[MONTH]] == [
        ("2013-01", "published"),
        ("2013-01.1", "published"),
        ("2013-01.2", "reserved"),
    ]
    assert ledger.verify() == ()
    assert read_export("\n".join(export_lines(ledger.entries())) + "\n").verify() == ()


def test_a_rerun_of_an_amendment_finds_it(ledger: Ledger, make_request: MakeRequest) -> None:
    published(ledger, make_request(window=MONTH))
    charge = published(ledger, make_request(window=MONTH, amendment=1))
    assert ledger.reserve(make_request(window=MONTH, amendment=1)) == charge
    assert ledger.reserve(make_request(window=MONTH)).amendment == 0
    assert ledger.account("flights").spent == 2


def test_nothing_is_amended_that_is_not_published(ledger: Ledger, make_request: MakeRequest) -> None:
    amendment = make_request(window=MONTH, amendment=1)
    for attempt in (ledger.check, ledger.reserve):
        with pytest.raises(AmendmentError, match=r"delays@2013-01\.1 would amend nothing: delays@2013-01 is"):
            attempt(amendment)
    charge = ledger.reserve(make_request(window=MONTH))
    with pytest.raises(ChargeInProgressError, match=r"delays@2013-01, which .* would amend, is reserved"):
        ledger.reserve(amendment)
    ledger.abandon(charge, reason="test")
    with pytest.raises(AmendmentError, match="would amend nothing"):
        ledger.reserve(amendment)
    assert ledger.account("flights").remaining == 3


def test_amendments_follow_one_another(ledger: Ledger, make_request: MakeRequest) -> None:
    """One that was passed over comes no more: it would read later rows than the one that replaced it."""
    first = published(ledger, make_request(window=MONTH))
    third = published(ledger, make_request(window=MONTH, amendment=3))
    assert third.amends is not None
    assert third.amends.release_id == first.release_id
    with pytest.raises(AmendmentError, match=r"delays@2013-01\.3 was charged before delays@2013-01\.2"):
        ledger.reserve(make_request(window=MONTH, amendment=2))
    assert ledger.account("flights").remaining == 1


def test_an_amendment_whose_noise_is_lost_is_replaced_by_the_next(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    first = published(ledger, make_request(window=MONTH))
    request = make_request(window=MONTH, amendment=1)
    ledger.abandon(drawn(ledger, request), reason="test")
    with pytest.raises(ChargeSpentError, match=r"attempt 1 of delays@2013-01\.1"):
        ledger.reserve(request)
    again = ledger.reserve(make_request(window=MONTH, amendment=2))
    assert again.amends is not None
    assert again.amends.release_id == first.release_id
    assert shown(ledger.account("flights").spent) == "2"
    assert ledger.verify() == ()


def test_an_amendment_has_the_plan_and_the_store_of_what_it_replaces(
    ledger: Ledger, make_request: MakeRequest
) -> None:
    published(ledger, make_request(window=MONTH))
    with pytest.raises(SpecChangedError):
        ledger.reserve(make_request(window=MONTH, amendment=1, plan={"privacy": {"epsilon": "0.5"}}))
    with pytest.raises(WrongStoreError):
        ledger.reserve(make_request(window=MONTH, amendment=1, store_id="9" * 32))


def test_an_amendment_is_held_against_its_window(ledger: Ledger, make_request: MakeRequest) -> None:
    ledger.grant(
        "trips", epsilon=Fraction(2), reason="test", per_window="day:month:UTC", sources=["/data/flights"]
    )
    for number in (0, 1):
        published(ledger, make_request(dataset="trips", name="trips", window=MONTH, amendment=number))
    with pytest.raises(BudgetExceededError, match="in window 2013-01"):
        ledger.reserve(make_request(dataset="trips", name="trips", window=MONTH, amendment=2))
    ledger.reserve(make_request(dataset="trips", name="trips", window="2013-02"))
    (january, february) = ledger.windows("trips")
    assert shown(january.spent, january.remaining, february.reserved) == "2 0 1"
    assert ledger.verify() == ()


@pytest.mark.parametrize(("window", "amendment"), [("all", 1), (MONTH, -1), (MONTH, 100)])
def test_a_request_for_no_amendment_is_refused(
    make_request: MakeRequest, window: str, amendment: int
) -> None:
    with pytest.raises(UsageError, match="has no amendment"):
        make_request(window=window, amendment=amendment)


@pytest.mark.parametrize(
    "change",
    [
        "amendment = 2",
        "amends = 'ffffffffffffffff'",
        "amends = NULL",
        f"amended_sha256 = '{'0' * 64}'",
    ],
)
def test_the_database_keeps_what_an_amendment_replaces(
    ledger: Ledger, ledger_url: str, make_request: MakeRequest, change: str
) -> None:
    published(ledger, make_request(window=MONTH))
    charge = ledger.reserve(make_request(window=MONTH, amendment=1))
    with pytest.raises(REFUSALS):
        execute(ledger_url, f"UPDATE charges SET {change} WHERE amendment = 1")  # noqa: S608
    assert ledger.find("flights", "delays", MONTH, amendment=1) == charge
    assert charge.state is ChargeState.RESERVED


def test_editions_are_named_by_their_window_and_number() -> None:
    for window in ("2013", "2013-01", "2013-W05", "2013-01-31", "all"):
        for number in (1, 2, 99):
            assert read_edition(edition(window, number)) == (window, number)
        assert read_edition(edition(window, 0)) == (window, None)
    for text in ("", "2013-01.", "2013-01.01", "2013-01.100", "2013-01.-1", "2013-01.1.1", ".1", "2013-01~1"):
        assert read_edition(text) is None
