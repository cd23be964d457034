"""Sums within limits: quantiles by levels of the whole distribution, and moments in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.within_limits import Tabulated, WithinLimits
from suffice.pipeline.math.engines.one_sum.sum_within_limits import SumWithinLimits, moments_below
from support.noisy import noisy_statistic, statistic_plan

VALUES = {
    "poisson": [[50, 20], [300, -10], [-20, 45], [5, -3], [90, 2]],
    "geometric": [[40, 160], [-10, 30], [3, 90], [60, 5], [-5, 300]],
    "negative_binomial": [[60, 200], [-10, 40], [3, 90], [60, 5], [-5, 300]],
    "laplace": [[50, 20], [300, -10], [-20, 45], [5, -3], [90, 2]],
}
ENTRIES = {
    "poisson": {"upper": "6"},
    "geometric": {"upper": "8"},
    "negative_binomial": {"successes": "2", "upper": "8"},
    "laplace": {"location": "0", "half_range": "8"},
}


def inner_of(family: str, epsilon: str) -> tuple[WithinLimits, SumWithinLimits]:
    """Posteriors of a few noisy cells under the default prior, and those that limits cut."""
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon=epsilon, public_n=False)
    unit = (plan.partition_total or 1) if family == "laplace" else 1
    values = unit * np.array(VALUES[family], dtype=object)
    restricted = posterior_of(noisy_statistic(plan, values), clipping="ignored").distribution
    assert isinstance(restricted, WithinLimits)
    assert isinstance(restricted.inner, SumWithinLimits)
    return restricted, restricted.inner


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("family", list(ENTRIES))
def test_quantiles_and_moments_are_those_of_all_pairs_within_limits(family: str, epsilon: str) -> None:
    """Beside a table of the distribution function, and sums over pairs that were not merged."""
    restricted, inner = inner_of(family, epsilon)
    (name,) = inner.parameters
    near = np.setdiff1d(np.arange(len(inner.below)), inner.far)
    assert near.size
    q = [0.025, 0.2, 0.5, 0.8, 0.975]
    quantiles, table = inner.quantiles(name, q, 0, np.random.default_rng(0)), inner.table()
    exact = inner.plain.moments_within(restricted.limits[name])
    assert exact is not None
    for cell in near:
        levels = np.interp(quantiles[cell], table.knots[cell], table.below[cell])
        assert levels == pytest.approx(q, abs=1e-3)
        assert inner.mean(name)[cell] == pytest.approx(exact[0][cell], abs=0.01 * exact[1][cell])
        assert inner.sd(name)[cell] == pytest.approx(exact[1][cell], rel=0.01)
    # The control: without limits they are farther off than all of that.
    away = np.abs(inner.plain.mean(name) - exact[0])[near] / exact[1][near]
    assert np.max(away) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "laplace"])
def test_densities_within_limits_integrate_to_one(family: str) -> None:
    restricted, inner = inner_of(family, "0.3")
    (name,) = inner.parameters
    low, high = restricted.limits[name]
    points = np.tile(np.geomspace(max(low, 1e-8 * high), high, 1201), (len(inner.below), 1))
    near = np.setdiff1d(np.arange(len(inner.below)), inner.far)
    assert near.size
    mass = np.trapezoid(inner.density(name, points)[near], points[near], axis=1)
    assert mass == pytest.approx(1.0, abs=0.003)
    assert np.all(inner.density(name, np.full((len(points), 1), 1.01 * high)) == 0.0)


def test_cells_of_which_hardly_anything_lies_within_keep_their_table() -> None:
    plan = statistic_plan({"family": "poisson", "upper": "6"}, epsilon="1", public_n=False)
    # 200 records that have 2,000 together, where bounds leave 1,200 at most; and half of that.
    statistic = noisy_statistic(plan, np.array([[2000, -800], [600, 600]], dtype=object))
    restricted = posterior_of(statistic, prior="Gamma(1000, 100)").distribution
    assert isinstance(restricted, WithinLimits)
    assert isinstance(restricted.inner, SumWithinLimits)
    inner = restricted.inner
    assert inner.far.size
    table = inner.far_table()
    assert isinstance(table, Tabulated)
    held = inner.quantiles("rate", [0.1, 0.9], 0, np.random.default_rng(0))
    assert np.all((held > 0.0) & (held <= 6.0))
    assert held[inner.far] == pytest.approx(table.quantiles("rate", [0.1, 0.9], 0, np.random.default_rng(0)))
    assert inner.mean("rate")[inner.far] == pytest.approx(table.mean("rate"))


def test_moments_have_what_merged_parts_leave_out() -> None:
    """Next to no records, or none, are unlikely, and nearly all of the spread is theirs."""
    entry = {"family": "negative_binomial", "successes": "10", "upper": "1000"}
    plan = statistic_plan(entry, epsilon="0.0218", public_n=False)
    values = np.array([[812854, 324536], [794259, -10704]], dtype=object)
    restricted = posterior_of(noisy_statistic(plan, values)).distribution
    assert isinstance(restricted, WithinLimits)
    inner = restricted.inner
    assert isinstance(inner, SumWithinLimits)
    assert not inner.far.size
    exact = inner.plain.moments_within(restricted.limits["probability"])
    assert exact is not None
    # Dense sums over N and S have .0040764 and .02375.
    assert exact[1] == pytest.approx([0.0040764, 0.02375], rel=2e-3)
    assert inner.sd("probability") == pytest.approx(exact[1], rel=1e-3)
    assert inner.mean("probability") == pytest.approx(exact[0], abs=1e-3 * exact[1][0])


def test_scales_whose_moments_are_infinite_without_limits_have_those_of_the_table() -> None:
    plan = statistic_plan({"family": "laplace", **ENTRIES["laplace"]}, epsilon="0.1", public_n=False)
    values = (plan.partition_total or 1) * np.array([[3, 5], [80, 40]], dtype=object)
    restricted = posterior_of(
        noisy_statistic(plan, values), prior="InverseGamma(1.5, 4)", clipping="ignored"
    ).distribution
    assert isinstance(restricted, WithinLimits)
    inner = restricted.inner
    assert isinstance(inner, SumWithinLimits)
    assert not np.isfinite(inner.plain.sds).any()
    table = inner.table()
    assert np.isfinite(inner.sd("scale")).all()
    assert inner.mean("scale") == pytest.approx(table.mean("scale"))
    assert inner.sd("scale") == pytest.approx(table.sd("scale"))


@pytest.mark.parametrize("limit", [0.02, 0.3, 0.65, 0.9999])
@pytest.mark.parametrize(("a", "b"), [(0.3, 0.4), (1.0, 5.0), (40.0, 60.0), (3e6, 2e6)])
def test_moments_below_a_limit_are_integrals_of_the_density(a: float, b: float, limit: float) -> None:
    """Of betas, and of gammas with a mean of 1; distribution functions are right to 1e-4."""
    share = (np.arange(20_000) + 0.5) / 20_000
    beta = BetaDistribution(concentration1=np.array([a]), concentration0=np.array([b]))
    gamma = GammaDistribution(concentration=np.array([a]), rate=np.array([a]))
    for given, law in ((beta, scipy.stats.beta(a, b)), (gamma, scipy.stats.gamma(a, scale=1.0 / a))):
        moments, mass = moments_below(given, limit, np.array([0.4]))[:, 0], law.cdf(limit)
        # The integral over x is one over levels.
        away = law.ppf(share * mass) - 0.4
        unit = law.std() + abs(law.mean() - 0.4)
        for power, moment in enumerate(moments):
            assert moment == pytest.approx(mass * np.mean(away**power), abs=2e-4 * unit**power)
