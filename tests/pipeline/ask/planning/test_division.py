"""Shares add up to the whole, nothing is better in the stated criterion, and more weight is a larger one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.ask.planning.division import Criterion, Need, criterion_of, divided, rounded_shares

NUMBERS = st.floats(min_value=1e-9, max_value=1e9)
NEEDS = st.lists(
    st.builds(Need, cost=NUMBERS, power=st.sampled_from([1, 2]), weight=st.floats(0.01, 100.0)),
    min_size=1,
    max_size=8,
)
WHOLE = st.floats(min_value=1e-3, max_value=100.0)
CRITERIA = st.sampled_from(list(Criterion))


@settings(max_examples=40)
@given(NEEDS, WHOLE, CRITERIA)
def test_amounts_add_up_and_are_never_worse_than_equal_ones(
    needs: list[Need], whole: float, criterion: Criterion
) -> None:
    amounts = divided(needs, whole, criterion)
    assert np.all(amounts > 0.0)
    assert amounts.sum() == pytest.approx(whole, rel=1e-12)
    equal = [whole / len(needs)] * len(needs)
    assert criterion_of(needs, amounts, criterion) <= criterion_of(needs, equal, criterion) * (1.0 + 1e-9)


@settings(max_examples=40)
@given(NEEDS, WHOLE, CRITERIA, st.integers(0, 2**32 - 1))
def test_no_division_near_it_is_better(
    needs: list[Need], whole: float, criterion: Criterion, seed: int
) -> None:
    amounts = divided(needs, whole, criterion)
    moved = amounts * np.exp(np.random.default_rng(seed).normal(0.0, 0.1, len(needs)))
    moved *= whole / moved.sum()
    assert criterion_of(needs, moved, criterion) >= criterion_of(needs, amounts, criterion) * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("criterion", "power", "exponent"),
    [
        (Criterion.SUM, 2, 1 / 3),
        (Criterion.SUM, 1, 1 / 2),
        (Criterion.MAXIMUM, 2, 1 / 2),
        (Criterion.MAXIMUM, 1, 1),
    ],
    ids=["sum-epsilon", "sum-rho", "maximum-epsilon", "maximum-rho"],
)
def test_equal_powers_have_closed_forms(criterion: Criterion, power: int, exponent: float) -> None:
    """The exponents of epsilon and of rho; another exponent, the control, is worse in the criterion."""
    rng = np.random.default_rng(1)
    cost, weight = 10.0 ** rng.uniform(-3.0, 3.0, 6), rng.uniform(0.2, 5.0, 6)
    needs = [Need(cost=c, power=power, weight=w) for c, w in zip(cost, weight, strict=True)]
    shares = (weight * cost) ** exponent
    amounts = divided(needs, 2.5, criterion)
    assert amounts == pytest.approx(2.5 * shares / shares.sum(), rel=1e-9)
    other = (weight * cost) ** (exponent + 1 / 6)
    control = criterion_of(needs, 2.5 * other / other.sum(), criterion)
    assert control > criterion_of(needs, amounts, criterion) * 1.05


@settings(max_examples=40)
@given(NEEDS.filter(lambda needs: len(needs) > 1), CRITERIA, st.floats(1.1, 10.0))
def test_more_weight_is_more_and_the_others_get_less(
    needs: list[Need], criterion: Criterion, factor: float
) -> None:
    first, *rest = needs
    heavier = [Need(cost=first.cost, power=first.power, weight=first.weight * factor), *rest]
    before, after = divided(needs, 1.0, criterion), divided(heavier, 1.0, criterion)
    assert after[0] >= before[0] * (1.0 - 1e-9)
    assert np.all(after[1:] <= before[1:] * (1.0 + 1e-9))


@settings(max_examples=40)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40), st.data())
def test_rounded_shares_add_up_to_exactly_one(parts: list[float], data: st.DataObject) -> None:
    least = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)))
    shares = rounded_shares(parts, least)
    assert sum(shares) == 1
    assert all(share >= Fraction(1, 10**6) for share in shares)
    assert all(10**6 % share.denominator == 0 for share in shares)


def test_all_give_way_where_others_have_nothing_to_give() -> None:
    parts = np.array([1e-6, 1e-6, 0.1455, 0.14, 0.1455, 0.28557, 0.84549])
    least = [True, False, True, True, True, True, True]
    shares = rounded_shares(parts, least)
    assert sum(shares) == 1
    short = parts[least] / parts.sum() - np.array(shares, dtype=np.float64)[least]
    assert 0.0 < short.max() < 1e-6


def test_rounding_keeps_what_a_target_takes() -> None:
    parts = [0.2005001, 0.1003999, 0.6991]
    shares = rounded_shares(parts, [True, True, False])
    assert float(shares[0]) >= parts[0]
    assert float(shares[1]) >= parts[1]
    assert shares == (Fraction(201, 1000), Fraction(101, 1000), Fraction(698, 1000))
    assert float(rounded_shares(parts, [False] * 3)[1]) < parts[1]
