"""Densities of mixtures relative to their prior, against the distributions' own densities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.distributions.beta import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.inverse_gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution
from suffice.pipeline.math.distributions.one_parameter import coordinate_of
from suffice.pipeline.math.engines.combined import MixtureRatio

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats


def inverse_gamma(concentration: Floats, scale: Floats) -> Distribution:
    return InverseGammaDistribution(concentration=concentration, scale=scale, name="variance")


def beta(own: Floats, rest: Floats) -> Distribution:
    return BetaDistribution(concentration1=own, concentration0=rest)


def normal(strength: Floats, sums: Floats) -> Distribution:
    return NormalDistribution(loc=sums / strength, scale=1.0 / np.sqrt(strength))


def gamma(concentration: Floats, rate: Floats) -> Distribution:
    return GammaDistribution(concentration=concentration, rate=rate)


@pytest.mark.parametrize("distribution", [gamma, inverse_gamma, beta, normal])
@pytest.mark.parametrize("largest", [30.0, 1e5, 1e12])
def test_ratios_are_those_of_the_densities(
    distribution: Callable[[Floats, Floats], Distribution], largest: float
) -> None:
    rng = np.random.default_rng()
    n = largest * (1.0 + rng.random(500) / np.sqrt(largest))
    total = 0.4 * n + np.sqrt(n) * (rng.random(500) - 0.5)
    log_weight = np.log(rng.dirichlet(np.ones(500)))
    prior, distributions = distribution(np.array([2.0]), np.array([3.0])), distribution(2.0 + n, 3.0 + total)
    ratio = MixtureRatio.of(prior, distributions, log_weight)
    own = coordinate_of(distributions)
    middle, width = float(np.mean(own.centre)), float(np.max(own.width))
    position = middle + width * np.linspace(-12.0, 12.0, 101)
    parts = own.log_density(position[:, None]) + log_weight
    expected = np.logaddexp.reduce(parts, axis=1) - coordinate_of(prior).log_density(position[:, None])[:, 0]
    assert ratio(position) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("distribution", [gamma, inverse_gamma, beta, normal])
def test_what_is_the_prior_is_so_however_far_out(
    distribution: Callable[[Floats, Floats], Distribution],
) -> None:
    prior = distribution(np.array([2.0]), np.array([3.0]))
    both = distribution(np.array([2.0, 502.0]), np.array([3.0, 203.0]))
    ratio = MixtureRatio.of(prior, both, np.log([0.25, 0.75]))
    assert ratio(np.array([-190.0, 190.0])) == pytest.approx(np.log(0.25), abs=1e-9)
