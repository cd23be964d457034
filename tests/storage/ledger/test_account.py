from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from suffice.errors import GuaranteeError, UsageError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.account import AccountTerms, check_guarantee
from suffice.storage.ledger.places import overlapping

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import ChargeRequest

    MakeRequest = Callable[..., ChargeRequest]


def terms(**fields: object) -> AccountTerms:
    values = {
        "measure": PrivacyMeasure.EPSILON,
        "neighboring": "add_or_remove_one",
        "unit": "row",
        "per_window": None,
        "units_disjoint": False,
    }
    return AccountTerms(**{**values, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"neighboring": "replace"},
        {"unit": "column:"},
        {"unit": "customer_id"},
        {"per_window": "month"},
        {"per_window": ":month"},
        {"per_window": "day:fortnight"},
        {"per_window": "day:month"},
        {"per_window": "day:month:Europe/Atlantis"},
        {"per_window": "day:month:../../etc/passwd"},
        {"unit": "column:customer_id", "per_window": "day:month:UTC"},
    ],
)
def test_terms_that_break_a_rule_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        terms(**fields)


def test_a_column_unit_per_window_needs_the_owners_word() -> None:
    terms(unit="column:customer_id", per_window="day:month:UTC", units_disjoint=True)
    terms(unit="column:customer_id")
    assert terms(per_window="a:b:year:UTC").per_window == "a:b:year:UTC"


@pytest.mark.parametrize(
    ("granted", "asked"),
    [
        ({"neighboring": "replace_one"}, {}),
        ({}, {"neighboring": "replace_one"}),
        ({"unit": "column:customer_id"}, {}),
        ({}, {"unit": "column:customer_id"}),
        ({"unit": "column:customer_id"}, {"unit": "column:other"}),
        ({"per_window": "day:year:UTC"}, {"window": "2013-01"}),
        ({"per_window": "other:month:UTC"}, {"window": "2013-01"}),
    ],
)
def test_another_guarantee_is_refused(
    make_request: MakeRequest, granted: dict[str, object], asked: dict[str, object]
) -> None:
    with pytest.raises(GuaranteeError, match=r"state the account's (neighboring|unit|window) in the spec"):
        check_guarantee(make_request(**asked), terms(**granted), (), ())


@pytest.mark.parametrize("asked", [{}, {"window": "2013-01"}])
@pytest.mark.parametrize("per_window", [None, "day:month:UTC"])
def test_all_and_the_granted_grid_are_accepted(
    make_request: MakeRequest, asked: dict[str, object], per_window: str | None
) -> None:
    check_guarantee(make_request(**asked), terms(per_window=per_window), (), ())


@pytest.mark.parametrize(
    ("prefix", "source", "allowed"),
    [
        ("/data/flights", "/data/flights", True),
        ("/data/flights", "/data/flights/2013.parquet", True),
        ("/data/flights/", "/data/flights", True),
        ("/data/flights/", "/data/flights/*.parquet", True),
        ("/data/flights", "/data/flights2/2013.parquet", False),
        ("/data/flights", "/data/fligh*/2013.parquet", False),
        ("/data/flights", "/data", False),
        ("/data/flights", "/data/flights/../payroll", False),
        ("/", "/data", True),
        ("s3://bucket/a", "s3://bucket/a/b", True),
        ("s3://bucket/a", "s3://bucket/ab", False),
    ],
)
def test_sources_are_compared_by_path_components(
    make_request: MakeRequest, prefix: str, source: str, allowed: bool
) -> None:
    request = make_request(source=source)
    if allowed:
        check_guarantee(request, terms(), ("/nowhere", prefix), ())
    else:
        with pytest.raises(GuaranteeError, match="does not allow this source"):
            check_guarantee(request, terms(), ("/nowhere", prefix), ())


@pytest.mark.parametrize(
    ("first", "second", "overlaps"),
    [
        ("/data/flights", "/data/flights", True),
        ("/data", "/data/flights", True),
        ("/data/flights/2013", "/data/flights", True),
        ("/data/flights", "/data/flights2", False),
        ("/data/*/2013", "/data/flights", True),
        ("/data/flights/*.parquet", "/data/taxis/*.parquet", False),
        ("s3://bucket/a", "s3://bucket/a/b", True),
        ("s3://bucket/a", "/data", False),
        ("/", "/data", True),
    ],
)
def test_accounts_over_overlapping_sources_are_told(first: str, second: str, overlaps: bool) -> None:
    for one, other in ((first, second), (second, first)):
        found = overlapping({"a": ("/nowhere", one), "b": (other,), "c": ("s3://elsewhere/x",)}, "a")
        assert [("allow overlapping sources" in sentence) for sentence in found] == [True] * overlaps
        assert all(sentence.startswith("the accounts a and b ") for sentence in found)


def test_accounts_without_sources_cannot_be_told_apart() -> None:
    assert overlapping({"a": ()}, "a") == ()
    (sentence,) = overlapping({"a": (), "b": ("/data",)}, "a")
    assert sentence.startswith("a may be charged for any source")
    (sentence,) = overlapping({"a": (), "b": ("/data",)}, "b")
    assert sentence.startswith("a may be charged for any source")
    (sentence,) = overlapping({"a": (), "b": ()}, "a")
    assert sentence.startswith("a and b may be charged for any source")
