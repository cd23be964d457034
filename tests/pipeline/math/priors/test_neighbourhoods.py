"""Ranges over neighbourhoods of a prior: against linear programmes, priors within them, closed forms."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from suffice.pipeline.math.priors.neighbourhoods import (
    ParameterOnNodes,
    contaminated,
    draws_within_factor,
    shifted,
    within_factor,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

LEVELS = (0.025, 0.3, 0.5, 0.975)


def normal_cell(mean: float, sd: float, observed: float, error: float, nodes: int = 4001) -> ParameterOnNodes:
    """A normal mean under a normal prior, of which one observation is known."""
    position = np.linspace(-15.0, 15.0, nodes)
    return ParameterOnNodes(
        position=position,
        parameter=position,
        weight=np.full(nodes, position[1] - position[0]),
        log_likelihood=np.asarray(stats.norm.logpdf(observed, position, error)),
        log_prior=lambda place: np.asarray(stats.norm.logpdf(place, mean, sd)),
        ends=(-math.inf, math.inf),
    )


def any_cell(seed: int, nodes: int = 12) -> ParameterOnNodes:
    """A few nodes with any prior and any likelihood."""
    rng = np.random.default_rng(seed)
    position = np.sort(rng.normal(size=nodes))
    log_prior = rng.normal(size=nodes)
    return ParameterOnNodes(
        position=position,
        parameter=np.exp(position),
        weight=np.ones(nodes),
        log_likelihood=2.0 * rng.normal(size=nodes),
        log_prior=lambda _: log_prior,
        ends=(0.0, math.inf),
    )


def extreme(values: Floats, cell: ParameterOnNodes, factor: float) -> tuple[float, float]:
    """The least and the greatest posterior mean of values under (3), by the transformed linear programme."""
    mass = cell.mass()
    n = len(mass)
    # Weights w = t g / f in [t / k, t k] with sum of w mass = 1: Charnes and Cooper's transformation.
    above = np.hstack([np.eye(n), np.full((n, 1), -factor)])
    below = np.hstack([-np.eye(n), np.full((n, 1), 1.0 / factor)])
    ends = []
    for sign in (1.0, -1.0):
        done = optimize.linprog(
            sign * np.append(values * mass, 0.0),
            A_ub=np.vstack([above, below]),
            b_ub=np.zeros(2 * n),
            A_eq=np.append(mass, 0.0)[None],
            b_eq=[1.0],
            bounds=[(0.0, None)] * (n + 1),
        )
        assert done.fun is not None
        ends.append(sign * done.fun)
    return ends[0], ends[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1.0, 1.5, 10.0])
def test_means_within_a_factor_are_those_of_a_linear_programme(seed: int, factor: float) -> None:
    cell = any_cell(seed)
    assert within_factor(cell, factor).mean == pytest.approx(extreme(cell.parameter, cell, factor), rel=1e-8)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.floats(0.01, 0.9), st.floats(1.0, 20.0), st.floats(0.0, 3.0))
@settings(max_examples=60, deadline=None)
def test_no_prior_of_a_neighbourhood_lies_outside(
    seed: int, share: float, factor: float, most: float
) -> None:
    rng = np.random.default_rng(seed)
    cell = normal_cell(0.0, 1.0, float(rng.normal(0.0, 4.0)), float(rng.uniform(0.2, 2.0)), 801)
    prior, likelihood = cell.prior(), np.exp(cell.log_likelihood - np.max(cell.log_likelihood))
    other = rng.dirichlet(np.full(len(prior), rng.choice([0.002, 0.1, 3.0])))
    ratio = factor ** rng.uniform(-1.0, 1.0, len(prior))
    width = math.sqrt(float(np.sum(prior * cell.position**2)))
    cases = [
        (contaminated(cell, share), (1.0 - share) * prior + share * other),
        (within_factor(cell, factor), prior * ratio),
        (shifted(cell, most), cell.prior(float(rng.choice([-most, 0.0, most])) * width)),
    ]
    for ranges, of_class in cases:
        mass = of_class * likelihood / np.sum(of_class * likelihood)
        low, high = ranges.mean
        assert low - 1e-9 <= float(np.sum(mass * cell.parameter)) <= high + 1e-9
        place = int(rng.integers(1, len(mass) - 1))
        above = float(np.sum(mass[place + 1 :]) + mass[place] / 2.0)
        least, most_above = ranges.above(float(cell.parameter[place]))
        # A point of prior mass may lie on the node itself, whose half then counts.
        assert least - np.max(mass) <= above <= most_above + np.max(mass)


def test_contamination_of_a_normal_mean_has_its_closed_form() -> None:
    """Berger and Berliner: one observation of variance 1, 20 % of any prior beside Normal(0, 1)."""
    observed, share = 1.5, 0.2
    cell = normal_cell(0.0, 1.0, observed, 1.0, 30_001)
    # The evidence is Normal(y; 0, sqrt 2): r(x) = Normal(y; x, 1) / Normal(y; 0, sqrt 2).
    ratio = stats.norm.pdf(observed, cell.position, 1.0) / stats.norm.pdf(observed, 0.0, math.sqrt(2.0))
    np.testing.assert_allclose(cell.ratio, ratio, rtol=1e-9)
    ranges = contaminated(cell, share)
    posterior = stats.norm(observed / 2.0, math.sqrt(0.5))
    for c in (-0.5, 0.75, 1.5, 2.0):
        best = ratio[cell.position > c].max()
        worst = ratio[cell.position <= c].max()
        above = float(posterior.sf(c))
        greatest = (0.8 * above + 0.2 * best) / (0.8 + 0.2 * best)
        least = 0.8 * above / (0.8 + 0.2 * worst)
        assert ranges.above(c) == pytest.approx((least, greatest), abs=2e-3)


def test_nothing_moves_in_a_neighbourhood_of_one_prior() -> None:
    cell = normal_cell(0.5, 1.0, 2.0, 0.7, 20_001)
    precision = 1.0 + 1.0 / 0.49
    posterior = stats.norm((0.5 + 2.0 / 0.49) / precision, precision**-0.5)
    for ranges in (contaminated(cell, 0.0), within_factor(cell, 1.0), shifted(cell, 0.0)):
        assert ranges.mean == pytest.approx((posterior.mean(),) * 2, abs=1e-9)
        for level in LEVELS:
            assert ranges.quantile(level) == pytest.approx((posterior.ppf(level),) * 2, abs=1e-5)


def test_shifts_of_a_normal_prior_move_the_mean_by_its_weight() -> None:
    cell = normal_cell(0.0, 2.0, 3.0, 1.0)
    # The posterior mean is (1/4 prior mean + observation) / (1/4 + 1); shifts are of prior sds.
    low, high = shifted(cell, 1.5).mean
    assert (low, high) == pytest.approx(((-0.75 + 3.0) / 1.25, (0.75 + 3.0) / 1.25), abs=1e-6)
    ends = shifted(cell, 1.5).quantile(0.5)
    assert ends == pytest.approx((low, high), abs=1e-5)


def test_wider_neighbourhoods_have_wider_ranges() -> None:
    cell = normal_cell(0.0, 1.0, 4.0, 0.5)
    for of, sizes in (
        (contaminated, (0.0, 0.05, 0.5)),
        (within_factor, (1.0, 2.0, 9.0)),
        (shifted, (0.0, 1.0, 2.0)),
    ):
        ranges = [of(cell, size) for size in sizes]
        lows, highs = zip(*(each.mean for each in ranges), strict=True)
        assert list(lows) == sorted(lows, reverse=True)
        assert list(highs) == sorted(highs)
        assert lows[-1] < lows[0] < highs[-1]


def test_a_mean_is_unbounded_where_the_likelihood_does_not_fall() -> None:
    position = np.linspace(-5.0, 50.0, 2001)
    cell = ParameterOnNodes(
        position=position,
        parameter=np.exp(position),
        weight=np.full(2001, 55.0 / 2000),
        log_likelihood=np.logaddexp(np.asarray(stats.norm.logpdf(position, 1.0, 0.3)), -6.0),
        log_prior=lambda place: np.asarray(stats.norm.logpdf(place, 1.0, 1.0)),
        ends=(0.0, math.inf),
    )
    low, high = contaminated(cell, 0.1).mean
    assert high == np.inf
    assert 0.0 < low < math.e
    assert all(map(math.isfinite, within_factor(cell, 3.0).mean))


@pytest.mark.parametrize("factor", [1e3, 1e6])
def test_wide_factors_lose_no_digits(factor: float) -> None:
    """Tails of 1e-12 count as much as the middle: sums of theirs from exact fractions."""
    cell = normal_cell(0.0, 1.0, 1.0, 1.0, 401)
    mass, value = ([Fraction(float(of)) for of in many] for many in (cell.mass(), cell.parameter))
    weights = Fraction(factor) ** 2
    up_to, rest = Fraction(0), sum(mass, Fraction(0))
    below, above = Fraction(0), sum((m * v for m, v in zip(mass, value, strict=True)), Fraction(0))
    lowest, highest = [], []
    for m, v in zip(mass, value, strict=True):
        up_to, rest, below, above = up_to + m, rest - m, below + m * v, above - m * v
        lowest.append((below * weights + above) / (up_to * weights + rest))
        highest.append((below + above * weights) / (up_to + rest * weights))
    low, high = within_factor(cell, factor).mean
    assert (low, high) == pytest.approx((float(min(lowest)), float(max(highest))), rel=1e-9)


def test_a_quantile_beyond_the_nodes_is_a_bound() -> None:
    position = np.linspace(-30.0, 30.0, 401)
    flat = ParameterOnNodes(
        position=position,
        parameter=1.0 / (1.0 + np.exp(-position)),
        weight=np.full(401, 0.15),
        log_likelihood=np.zeros(401),
        log_prior=lambda place: np.asarray(stats.norm.logpdf(place)),
        ends=(0.0, 1.0),
    )
    ranges = contaminated(flat, 0.1)
    assert ranges.quantile(0.025)[0] == 0.0
    assert ranges.quantile(0.975)[1] == 1.0


def test_draws_have_the_range_of_what_they_are_drawn_from() -> None:
    cell = normal_cell(0.0, 1.0, 1.0, 1.0)
    draws = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000, 0.5, math.sqrt(0.5))
    expected = within_factor(cell, 3.0).mean
    assert draws_within_factor(np.asarray(draws), 3.0).mean == pytest.approx(expected, abs=1e-3)


def test_a_prior_that_is_moved_off_the_likelihood_rules_nothing_out() -> None:
    cell = normal_cell(0.0, 1.0, 0.0, 0.5)
    known = np.where(np.abs(cell.position) < 1.0, cell.log_likelihood, -np.inf)
    away = dataclasses.replace(
        cell, log_likelihood=known, log_prior=lambda place: np.where(np.abs(place) < 0.5, 0.0, -np.inf)
    )
    assert math.isfinite(shifted(away, 1.0).mean[0])
    ranges = shifted(away, 20.0)
    assert ranges.mean == (-math.inf, math.inf)
    bounded = shifted(dataclasses.replace(away, ends=(-15.0, 15.0)), 20.0)
    assert (bounded.mean, bounded.quantile(0.5)) == ((-15.0, 15.0), (-15.0, 15.0))
    assert ranges.above(0.0) == (0.0, 1.0)
