"""Laplace noise in rho: what pairs of it lose, the scale that it takes, and the check before the draw."""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.mechanism import noise, sampling
from suffice.pipeline.terms.declaration.exact_numbers import LARGEST_SCALE, PICO
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.statistics.exponential_draws import LARGEST_SAMPLE_SCALE, smallest_scale
from suffice.pipeline.terms.statistics.noise_scale import noise_scale
from suffice.pipeline.terms.statistics.statistic_plan import (
    discrete_laplace_sd,
)

SCALES = ("0.05", "0.2", "0.7", "1", "3", "10", "100", "1700")
SHIFTS = (1, 2, 3, 7, 40)
ORDERS = ("1.000000001", "1.001", "1.1", "1.5", "2", "3", "8", "40", "1000")


def renyi_divergence(order: str, shift: int, scale: str) -> Decimal:
    """Return that of discrete Laplace noise and the same shifted, by all of its terms, in 60 digits.

    Where z lies beyond both centres the terms are geometric.
    """
    with localcontext(Context(prec=60)):
        a, b = Decimal(order), Decimal(scale)
        q = (-1 / b).exp()
        tail = 1 / (1 - q)
        terms = [((a - 1) * shift / b).exp() * tail, (-a * shift / b).exp() * tail]
        terms += [(-(a * z + (1 - a) * (shift - z)) / b).exp() for z in range(1, shift)]
        return (sum(terms) * (1 - q) / (1 + q)).ln() / (a - 1)


def test_pairs_of_laplace_noise_lose_at_most_half_the_square_and_come_close() -> None:
    largest = Decimal(0)
    for scale, shift, order in itertools.product(SCALES, SHIFTS, ORDERS):
        rho = renyi_divergence(order, shift, scale) / Decimal(order)
        bound = (shift / Decimal(scale)) ** 2 / 2
        assert rho <= bound
        largest = max(largest, rho / bound)
    assert largest > Decimal("0.9998"), "the bound is no larger than it has to be"


def test_half_of_the_bound_would_be_too_little() -> None:
    """The control: what the test above compares is not so small that any bound would pass."""
    assert renyi_divergence("2", 1, "10") / 2 > Decimal("0.1") ** 2 / 2 / 2


rhos = st.integers(1, 10 * PICO).map(lambda count: Fraction(count, PICO))
squares = st.one_of(st.integers(1, 10**6), st.integers(1, 2**105))


@settings(max_examples=60, deadline=None)
@given(rho=rhos, l2_squared=squares, share=st.fractions(min_value="1/1000", max_value=1))
def test_the_scale_is_the_least_that_the_check_passes(
    rho: Fraction, l2_squared: int, share: Fraction
) -> None:
    loss = PrivacyLoss.of_rho(rho * share)
    scale = noise_scale(loss, l1_sensitivity=1, l2_squared=l2_squared)
    exact = Fraction(l2_squared) / (2 * loss.amount)
    assert Fraction(scale) ** 2 >= exact
    fewer = scale
    for _ in range(4):
        fewer = math.nextafter(fewer, 0.0)
    assert Fraction(fewer) ** 2 < exact, "at most three floats above exact"
    if scale > LARGEST_SCALE:
        with pytest.raises(ValueError, match="out of range"):
            noise.discrete_laplace(scale=scale, loss=loss, l1_sensitivity=1, l2_squared=l2_squared)
        return
    noise.discrete_laplace(scale=scale, loss=loss, l1_sensitivity=1, l2_squared=l2_squared)
    smaller = math.nextafter(scale, 0.0)
    with pytest.raises(ValueError, match="privacy map exceeds rho"):
        noise.discrete_laplace(scale=smaller, loss=loss, l1_sensitivity=1, l2_squared=l2_squared)


@pytest.mark.parametrize("l2_squared", [None, 0, -1])
def test_rho_without_an_l2_sensitivity_draws_nothing(l2_squared: int | None) -> None:
    """Not even where the square of the L1 sensitivity would do."""
    with pytest.raises(ValueError, match="needs the square of the L2 sensitivity"):
        noise.discrete_laplace(
            scale=1e9, loss=PrivacyLoss.of_rho(Fraction(1)), l1_sensitivity=1, l2_squared=l2_squared
        )


def test_rho_is_compared_exactly() -> None:
    """At scale 2 a shift by 1 costs 1/8: a rho less by 1e-12 is exceeded."""
    just = PrivacyLoss.of_rho(Fraction(1, 8))
    noise.discrete_laplace(scale=2.0, loss=just, l1_sensitivity=9, l2_squared=1)
    for refused, l2_squared in ((PrivacyLoss.of_rho(Fraction(1, 8) - Fraction(1, PICO)), 1), (just, 2)):
        with pytest.raises(ValueError, match="exceeds rho"):
            noise.discrete_laplace(scale=2.0, loss=refused, l1_sensitivity=9, l2_squared=l2_squared)


def test_noise_by_l2_is_as_large_as_the_theory_has_it() -> None:
    """At (1, 1e-6) a Bernoulli statistic has noise of sd 6.41; nine tables are at 19, pure ones at 12.7."""
    rho = PrivacyLoss.of_rho(Fraction("0.024355970359"))
    scales = [noise_scale(rho, l1_sensitivity=number, l2_squared=number) for number in (1, 9)]
    assert [round(discrete_laplace_sd(scale), 1) for scale in scales] == [6.4, 19.2]


@settings(max_examples=30, deadline=None)
@given(rho=rhos, draws=st.integers(1, 1000), half=st.integers(1, 2**40))
def test_samples_take_the_least_scale_that_loses_less(rho: Fraction, draws: int, half: int) -> None:
    scale = smallest_scale(2 * half, draws, PrivacyLoss.of_rho(rho))
    lost = draws * Fraction(2 * half, scale) ** 2 / 8
    assert lost < rho
    if scale > 1 << 20:
        assert draws * Fraction(2 * half, scale - 1) ** 2 / 8 >= rho * (1 - Fraction(1, 1 << 48))
    if scale <= LARGEST_SAMPLE_SCALE:
        sampling.exponential_mechanism(scale=scale, range_sensitivity=2 * half, rho=rho / draws)


def test_a_sample_that_costs_more_than_its_rho_draws_nothing() -> None:
    with pytest.raises(ValueError, match="exceeds the rho"):
        sampling.exponential_mechanism(scale=1 << 20, range_sensitivity=1 << 20, rho=Fraction(1, 9))
    sampling.exponential_mechanism(scale=1 << 20, range_sensitivity=1 << 20, rho=Fraction(1, 8))
