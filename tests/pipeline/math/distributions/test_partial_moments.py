"""Moments of conjugate distributions between limits, against adaptive quadrature of scipy's densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import integrate, stats

from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.intervals import moments_about, moments_between
from suffice.pipeline.math.distributions.normal import NormalDistribution

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
    found = moments_between(distribution, limits, np.array([centre]))
    for power, part in enumerate(found):
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
