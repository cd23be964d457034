"""Posteriors of records as bounds leave them: within the bounds, and clipped only where a release says so."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.pipeline.ask.inference.bounded_records import evidence_of_clipping
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.within_limits import WithinLimits, unrestricted
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.terms.statistics.sensitivity import Quantity
from support.noisy import noisy_statistic, statistic_plan

ENTRIES = {
    "poisson": {"upper": "8"},
    "geometric": {"upper": "8"},
    "exponential": {"upper": "8"},
    "laplace": {"location": "0", "half_range": "8"},
    "normal_known_variance": {"variance": "4", "lower": "0", "upper": "8"},
}


@pytest.mark.parametrize(("mean", "is_off"), [(10, False), (14, False), (18, True), (20, True)])
def test_a_posterior_of_which_hardly_anything_is_left_within_the_bounds_says_so(
    mean: int, is_off: bool
) -> None:
    """Beside the same prior truncated to the bounds, which is integrated within them alone."""
    plan = statistic_plan(
        {"family": "normal_known_variance", **ENTRIES["normal_known_variance"]}, epsilon="1", public_n=False
    )
    statistic = noisy_statistic(plan, np.array([[6 * int(plan.partition_total or 1)] * 2], dtype=object))
    whole = posterior_of(statistic, prior=f"Normal({mean}, 2)")
    within = posterior_of(statistic, prior=f"Truncated(Normal({mean}, 2), 0, 8)")
    apart = abs(whole.mean("mean") - within.mean("mean"))[0] / within.sd("mean")[0]
    assert (apart > 0.1) == is_off
    assert any("less than a ten-thousandth" in note for note in whole.notes) == is_off
    assert not any("less than a ten-thousandth" in note for note in within.notes)


@pytest.mark.parametrize("family", list(ENTRIES))
def test_nothing_of_a_noisy_cell_lies_outside_of_what_bounded_records_can_have(family: str) -> None:
    """Released values at both ends of the range: the control is the posterior under the whole prior."""
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon="0.1", public_n=False)
    reach = int(plan.partition_total or 1)
    statistic = noisy_statistic(
        plan, np.array([[30 * reach, -9 * reach], [-5 * reach, 20 * reach]], dtype=object)
    )
    posterior = posterior_of(statistic)
    limits = FAMILIES[family].limits
    assert limits is not None
    low, high = limits(plan.parameters)
    (name,) = posterior.parameters
    drawn = posterior.sample(2000, 0)[name]
    ends = posterior.distribution.quantiles(name, [1e-6, 0.3, 1 - 1e-6], 0, np.random.default_rng(0))
    for values in (drawn, ends, posterior.mean(name)):
        assert np.all((values >= low) & (values <= high))
    plain = unrestricted(posterior.distribution).sample(2000, np.random.default_rng(0))[name]
    assert np.any((plain < low) | (plain > high))
    # Moments, quantiles and draws are of one distribution: those of the whole prior, those outside left out.
    assert isinstance(posterior.distribution, WithinLimits)
    kept = [column[(column >= low) & (column <= high)] for column in plain.T]
    for cell in np.flatnonzero([len(each) > 400 for each in kept]):
        sd = posterior.sd(name)[cell]
        assert (
            abs(kept[cell].mean() - posterior.mean(name)[cell])
            < 6.0 * sd / np.sqrt(len(kept[cell])) + 0.01 * sd
        )
        below = np.mean(drawn[:, cell] < ends[cell, 1])
        assert abs(below - 0.3) < 6.0 * np.sqrt(0.21 / 2000)


@pytest.mark.parametrize(
    ("prior", "is_cut"),
    [
        ("Mixture(0.3, Gamma(1, 0.3), 0.7, Gamma(90, 10))", [True, True]),
        ("Mixture(1, Gamma(1, 0.001), 1, Gamma(1, 1000))", [True, True]),
        ("Mixture(0.9, Gamma(50, 10), 0.1, Gamma(200, 50))", [True, True]),
        ("Mixture(0.9, Gamma(400, 400), 0.1, Gamma(400, 200))", [False, False]),
    ],
)
def test_mixtures_are_restricted_by_their_distribution_function(prior: str, is_cut: list[bool]) -> None:
    """F(x) / F(6) below a bound of 6, whose steps on a grid are the mean's too; all from its table."""
    plan = statistic_plan({"family": "poisson", "upper": "6"}, epsilon="0.2", public_n=False)
    statistic = noisy_statistic(plan, np.array([[50, 10], [300, -10]]))
    posterior = posterior_of(statistic, prior=prior, n_prior=Fixed(10))
    restricted = posterior.distribution
    assert isinstance(restricted, WithinLimits)
    assert restricted.cut.tolist() == is_cut
    if not any(is_cut):
        return
    whole: Any = restricted.plain
    grid = np.geomspace(1e-9, 6.0, 2001)
    below = whole.cdf(np.tile(grid, (2, 1)))
    assert np.all(below[:, -1] < 1.0 - 1e-4)
    below /= below[:, -1:]
    levels = np.array([0.025, 0.3, 0.5, 0.9, 0.975])
    at = restricted.quantiles("rate", [*levels], 10, np.random.default_rng(0))
    for cell in range(2):
        assert np.interp(at[cell], grid, below[cell]) == pytest.approx(levels, abs=5e-4)
        mean = np.diff(below[cell]) @ (grid[1:] + grid[:-1]) / 2.0
        assert posterior.mean("rate")[cell] == pytest.approx(mean, rel=0.005)


@pytest.mark.slow
def test_a_mean_and_a_variance_are_those_of_bounded_records() -> None:
    plan = statistic_plan({"family": "normal", "lower": "0", "upper": "8"}, epsilon="0.1", public_n=False)
    unit = 4 * (1 << 32)
    statistic = noisy_statistic(plan, np.array([[40 * unit, 2 * unit, -3 * unit]], dtype=object))
    posterior = posterior_of(statistic)
    drawn = posterior.sample(1000, 0)
    mean, variance = drawn["mean"], drawn["variance"]
    assert np.all((mean >= 0.0) & (mean <= 8.0))
    assert np.all(variance <= (8.0 - mean) * mean + 1e-9)
    assert "as the public bounds leave them" in posterior.estimand
    plain = unrestricted(posterior.distribution).sample(1000, np.random.default_rng(0))
    assert np.any(plain["mean"] < 0.0)


def test_heavy_tails_of_which_little_lies_outside_leave_moments_that_bounded_records_can_have() -> None:
    """No rows: a prior of infinite moments, of which less than a 10,000th lies outside."""
    normal = statistic_plan({"family": "normal", "lower": "-10", "upper": "10"}, epsilon="1", public_n=False)
    laplace = statistic_plan({"family": "laplace", **ENTRIES["laplace"]}, epsilon="1", public_n=False)
    for plan, prior, (name, most) in (
        (normal, "Independent(mean=Normal(0, 0.1), sd=HalfCauchy(0.0005))", ("variance", 100.0)),
        (laplace, "InverseGamma(1, 0.0005)", ("scale", 8.0)),
    ):
        statistic = noisy_statistic(plan, np.zeros((1, len(plan.components)), dtype=object))
        posterior = posterior_of(statistic, prior=prior, n_prior=Fixed(0))
        plain = unrestricted(posterior.distribution)
        assert np.isinf(plain.sd(name)[0])
        assert plain.quantiles(name, [0.9999], 0, np.random.default_rng(0))[0, 0] < most
        assert 0.0 < posterior.mean(name)[0] < most
        assert 0.0 < posterior.sd(name)[0] <= most / 2.0


def test_clipping_is_modelled_where_counts_of_moved_records_exceed_their_noise() -> None:
    """P(noise >= k) = p^k / (1 + p), p = exp(-1 / b): the threshold is where that is 1e-4, to two steps."""
    plan = statistic_plan({"family": "poisson", "upper": "8"}, epsilon="1", public_n=False)
    counted = dataclasses.replace(
        plan, quantities=(*plan.quantities, Quantity(name="n_above", coefficients={0: Fraction(1)}))
    )
    p = np.exp(-1.0 / plan.scale)
    exact = int(np.ceil(np.log(1e-4 * (1.0 + p)) / np.log(p)))
    values = np.array([[exact - 1, 0], [exact + 2, 0]], dtype=object)
    assert evidence_of_clipping(noisy_statistic(counted, values)).tolist() == [False, True]
    assert not evidence_of_clipping(noisy_statistic(plan, values)).any()


def test_only_cells_with_evidence_model_clipping_by_default() -> None:
    plan = statistic_plan({"family": "poisson", "upper": "8"}, epsilon="1", public_n=False)
    counted = dataclasses.replace(
        plan, quantities=(*plan.quantities, Quantity(name="n_above", coefficients={1: Fraction(1)}))
    )
    statistic = noisy_statistic(counted, np.array([[800, 0], [700, 400]], dtype=object))
    posterior = posterior_of(statistic)
    assert posterior.models_clipping is not None
    assert posterior.models_clipping.tolist() == [False, True]
    assert "in 1 of 2 cells" in posterior.estimand
    assert posterior.clipping is not None
    assert posterior.clipping.is_warned.tolist() == [False, True]
    assert posterior.mean("rate")[0] <= 8.0


@pytest.mark.parametrize("mass", [0.5, 0.95])
def test_highest_density_intervals_reach_a_bound_at_which_all_records_are(mass: float) -> None:
    plan = statistic_plan({"family": "poisson", "upper": "40"}, epsilon="1", public_n=False)
    # 300 records of 40 each: of what they lack to 40 nothing but noise, and none above 0, is released.
    statistic = noisy_statistic(plan, np.array([[12_000, lacking] for lacking in (-200, -40, -1, 0)]))
    posterior = posterior_of(statistic)
    held = posterior.credible_interval("rate", mass)
    assert np.all(held[:, 1] == 40.0)
    assert np.all(held[:, 0] > 35.0)
    # The control: central ones never do.
    assert np.all(posterior.credible_interval("rate", mass, interval="central")[:, 1] < 40.0)
