"""Shortest intervals against those that a fine search finds, and their ends at the ends of the range.

Moments of conjugate distributions between limits, against adaptive quadrature of scipy's densities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.stats import binom

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.intervals import (
    moments_about,
    moments_between,
    shortest_intervals,
    shortest_of_draws,
)
from suffice.pipeline.math.distributions.normal import NormalDistribution
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.parameters.contrasts import require_interval
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Distribution

INF = float("inf")


def of(kind: Any, **numbers: float) -> Distribution:
    distribution: Distribution = kind(**{name: np.array([value]) for name, value in numbers.items()})
    return distribution


GAMMA = of(GammaDistribution, concentration=2.5, rate=4.0), stats.gamma(2.5, scale=1 / 4.0)
INVERSE = of(InverseGammaDistribution, concentration=3.5, scale=2.0), stats.invgamma(3.5, scale=2.0)
HEAVY = of(InverseGammaDistribution, concentration=1.5, scale=2.0), stats.invgamma(1.5, scale=2.0)
BETA = of(BetaDistribution, concentration1=0.7, concentration0=9.0), stats.beta(0.7, 9.0)
NORMAL = of(NormalDistribution, loc=1.0, scale=0.5), stats.norm(1.0, 0.5)


@pytest.mark.parametrize(
    ("pair", "limits"),
    [
        (GAMMA, (0.0, 0.6)),
        (GAMMA, (-INF, 0.6)),
        (GAMMA, (0.2, INF)),
        (GAMMA, (3.0, 4.0)),
        (INVERSE, (0.0, 1.0)),
        (INVERSE, (0.5, INF)),
        (INVERSE, (0.01, 0.2)),
        (BETA, (0.0, 0.1)),
        (BETA, (0.05, 1.0)),
        (BETA, (0.5, 0.7)),
        (NORMAL, (0.0, 1.2)),
        (NORMAL, (3.0, 3.5)),
        (NORMAL, (-INF, 0.9)),
    ],
)
def test_parts_are_integrals(pair: tuple[Distribution, Any], limits: tuple[float, float]) -> None:
    distribution, law = pair
    centre = 0.3
    low, high = (float(np.clip(limit, *law.support())) for limit in limits)
    moments = moments_between(distribution, limits, np.array([centre]))
    for power, part in enumerate(moments):
        exact = law.expect(
            lambda t, power=power: (t - centre) ** power, lb=low, ub=high, epsabs=0, epsrel=1e-10, limit=200
        )
        assert part[0] == pytest.approx(exact, rel=1e-6)


def test_without_limits_they_are_those_of_the_distribution() -> None:
    for distribution, law in (GAMMA, INVERSE, BETA, NORMAL):
        first, second = moments_about(distribution, np.array([0.3]))
        assert first[0] == pytest.approx(law.mean() - 0.3)
        assert second[0] == pytest.approx(law.var() + (law.mean() - 0.3) ** 2)
        _, all_first, all_second = moments_between(distribution, (-INF, INF), np.array([0.3]))
        assert (all_first[0], all_second[0]) == pytest.approx((first[0], second[0]))


def test_a_moment_that_does_not_exist_is_infinite() -> None:
    distribution, _ = HEAVY
    assert moments_about(distribution, np.zeros(1))[1][0] == INF
    mass, first, second = moments_between(distribution, (0.5, INF), np.zeros(1))
    assert mass[0] < 1
    assert np.isfinite(first[0])
    assert second[0] == INF
    assert integrate.quad(stats.invgamma(1.5, scale=2.0).pdf, 0.5, INF)[0] == pytest.approx(mass[0])


UNIT = (0.0, 1.0)
BETAS = [
    (1.0, 300.0),
    (0.5, 30.0),
    (1.05, 40.0),
    (2.0, 300.0),
    (30.0, 30.0),
    (3.0, 1.0),
    (300.0, 2.0),
    (7, 3),
]
MASSES = (0.5, 0.8, 0.95)
DRAWS = 4000


def shortest_by_search(law: Any, mass: float) -> float:
    below = np.linspace(0.0, 1.0 - mass, 20_001)
    return float(np.min(law.ppf(np.minimum(below + mass, 1.0)) - law.ppf(below)))


@pytest.mark.parametrize("mass", MASSES)
def test_intervals_are_as_short_as_any_and_have_the_mass(mass: float) -> None:
    first, second = map(np.array, zip(*BETAS, strict=True))
    betas = BetaDistribution(concentration1=first, concentration0=second)
    shapes = np.array([1.0, 1.5, 20.0])
    gammas = GammaDistribution(name="rate", concentration=shapes, rate=np.ones(3))
    laws: list[tuple[Distribution, tuple[float, float], list[Any]]]
    laws = [(betas, UNIT, [stats.beta(*parameters) for parameters in BETAS])]
    laws.append((gammas, (0.0, math.inf), [stats.gamma(shape) for shape in shapes]))
    for distribution, ends, exact in laws:
        (name,) = distribution.parameters
        intervals = shortest_intervals(distribution, name, mass, ends, 0, np.random.default_rng(7))
        for (low, high), law in zip(intervals, exact, strict=True):
            assert law.cdf(high) - law.cdf(low) == pytest.approx(mass, abs=1e-9)
            assert high - low <= 1.01 * shortest_by_search(law, mass)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_rough_quantiles_choose_among_intervals_that_have_the_mass(family: str, mass: float) -> None:
    """Of few records and many, rare and common, and of values that are impossible without noise."""
    entry = {"family": family, **({"upper": "9"} if family == "poisson" else {})}
    values = np.array([[7, 2], [30, 0], [30, 30], [-40, -25], [310, 95], [310, -4], [5000, 70], [7e5, 3e5]])
    for epsilon in ("0.1", "1"):
        statistic = noisy_statistic(statistic_plan(entry, epsilon=epsilon, public_n=False), values)
        posterior = unrestricted_posterior(statistic, clipping="ignored")
        distribution, rng = posterior.distribution, np.random.default_rng(7)
        assert isinstance(distribution, LatentSumPosterior)
        (name,) = distribution.parameters
        ends = posterior.ends_of(name)
        intervals = shortest_intervals(distribution, name, mass, ends, 0, rng)
        held = distribution.cdf(intervals)
        assert held[:, 1] - held[:, 0] == pytest.approx(mass, abs=1e-4)
        below = np.linspace(0.0, 1.0 - mass, 30)[1:-1]
        quantiles = distribution.quantiles(name, [*below, mass, *(below + mass), 1.0 - mass], 0, rng)
        lower, upper = np.split(quantiles, 2, axis=1)
        shortest = np.min(upper[:, :-1] - lower[:, :-1], axis=1)
        shortest = np.minimum(shortest, lower[:, -1] - ends[0])
        if math.isfinite(ends[1]):
            shortest = np.minimum(shortest, ends[1] - upper[:, -1])
        assert np.all(intervals[:, 1] - intervals[:, 0] <= 1.015 * shortest)


def test_what_is_symmetric_has_the_central_interval() -> None:
    normal = NormalDistribution(name="mean", loc=np.array([3.0]), scale=np.array([2.0]))
    intervals = shortest_intervals(normal, "mean", 0.95, (-math.inf, math.inf), 0, np.random.default_rng(7))
    assert intervals[0] == pytest.approx(stats.norm(3.0, 2.0).interval(0.95), rel=1e-9)
    flat = BetaDistribution(concentration1=np.ones(1), concentration0=np.ones(1))
    ends = shortest_intervals(flat, flat.name, 0.95, UNIT, 0, np.random.default_rng(7))
    assert ends[0] == pytest.approx([0.025, 0.975], abs=1e-12)


def test_the_end_of_the_range_is_reached_where_the_density_is_highest() -> None:
    rng = np.random.default_rng(7)
    at_zero = BetaDistribution(concentration1=np.array([1.0, 0.1]), concentration0=np.array([300.0, 300.0]))
    for intervals in (
        shortest_intervals(at_zero, at_zero.name, 0.95, UNIT, 0, rng),
        shortest_of_draws(at_zero.sample(DRAWS, rng)[at_zero.name], 0.95, UNIT),
    ):
        assert np.all(intervals[:, 0] == 0.0)
        assert np.all(intervals[:, 1] < 0.02)
    mirrored = shortest_of_draws(1.0 - at_zero.sample(DRAWS, rng)[at_zero.name], 0.95, UNIT)
    assert np.all(mirrored[:, 1] == 1.0)
    central = at_zero.quantiles(at_zero.name, (0.025, 0.975), 0, rng)
    assert np.all(central[:, 0] > 0.0)


def test_intervals_of_draws_hold_their_mass() -> None:
    """Windows are chosen by the draws that they are counted by: their mass falls short by 0.01 at most.

    Of 500 truths each; the false alarm of one mass is 1e-6 / 3.
    """
    rng = np.random.default_rng()
    cells = 500
    drawn, truth = rng.gamma(3.0, size=(DRAWS, cells)), rng.gamma(3.0, size=cells)
    for mass in MASSES:
        low, high = shortest_of_draws(drawn, mass, (0.0, math.inf)).T
        held = int(np.sum((low <= truth) & (truth <= high)))
        least = binom.ppf(1e-6 / 6, cells, mass - 0.01)
        assert least <= held <= binom.isf(1e-6 / 6, cells, mass + 0.01)
        # The control: the first .4 of an interval hold .22 of the truths where it holds .5; chance 4e-15.
        narrow = 0.4 * (high - low)
        assert np.sum((low <= truth) & (truth <= low + narrow)) < least


def test_two_modes_have_one_interval_and_infinite_draws_an_infinite_end() -> None:
    two = np.concatenate([np.linspace(0.0, 1.0, 100), np.linspace(9.0, 10.0, 100)])
    low, high = shortest_of_draws(two, 0.8)
    assert low < 1.0
    assert high > 9.0
    half_infinite = np.concatenate([np.linspace(0.0, 1.0, 50), np.full(50, np.inf)])
    assert shortest_of_draws(half_infinite, 0.8, (0.0, math.inf)).tolist() == [0.0, math.inf]


def test_the_shortest_interval_of_a_comb_is_that_of_a_fine_search() -> None:
    """Of a beta that is cut into 16 pieces: 17 levels find one 1.8 times as long."""
    edges = np.arange(33) * math.pi / 100.0  # sin(100 x) > 0 on every second
    left, right = edges[:-1:2], np.minimum(edges[1::2], 1.0)
    law, line = stats.beta(90, 210), Line.LOGIT
    panels = np.linspace(left, right, 9)
    starts, ends = (line.position(np.maximum(each.T.ravel(), 1e-9)) for each in (panels[:-1], panels[1:]))

    def log_density(position: Any) -> Any:
        return law.logpdf(line.parameter(position)) + line.log_slope(position)

    comb = GriddedDistribution.of("probability", line, [(starts, ends, log_density)])
    rng = np.random.default_rng(0)
    ((lower, upper),) = shortest_intervals(comb, "probability", 0.5, (0.0, 1.0), 0, rng)
    levels = np.linspace(0.0, 0.5, 20_001)[1:-1]
    quantiles = comb.quantiles("probability", [*levels, *(levels + 0.5)], 0, rng)[0].reshape(2, -1)
    assert upper - lower <= 1.01 * np.min(quantiles[1] - quantiles[0])
    mass = comb.cdf(np.array([[lower, upper]]))[0]
    assert mass[1] - mass[0] == pytest.approx(0.5, abs=1e-6)


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="interval is central or highest-density, not 'hpd'"):
        require_interval("hpd")
