"""Sums that both noise and prior put below the least that there can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import gammaln

from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.engines.one_sum.compiled_blocks import resolve_blocks
from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaGamma, NoisySums
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.record_count import Fixed, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.typing import Floats


@pytest.mark.parametrize("value", [-3.0, -1e5, -1e8])
def test_a_sum_that_is_next_to_its_least_is_resolved(value: float) -> None:
    """The noise, and a prior of large rates, both say that a sum is below all that there can be."""
    a, b, n, lower, scale = 1600.0, 0.004, 10_000.0, 0.25, 0.6
    totals = NoisyTotals(
        values=np.array([[value], [209.0]]), scale=np.array([scale]), coefficients=np.array([[0.0, 1.0]])
    )
    sums = NoisySums(
        totals=totals, step=1.0, lower=lower, n_prior=Fixed(int(n)),
        marginal=GammaGamma(concentration=a, rate=b),
    )  # fmt: skip
    posterior = LatentSumPosterior.of(
        sums, lambda n, total: GammaDistribution(concentration=a + n, rate=b + total)
    )
    # Trapezoids over what the sum is above its least, all of which is next to 0 beside the noise's kink.
    amount = np.linspace(0.0, 40.0, 400_001)
    total = lower * n + amount
    log_weight = (n - 1.0) * np.log(total) - (n + a) * np.log(b + total) - np.maximum(amount, value) / scale
    weight = np.exp(log_weight - np.max(log_weight))
    mean = np.sum(weight * (a + n) / (b + total)) / np.sum(weight)
    assert posterior.means[0] == pytest.approx(mean, rel=1e-6)
    quantiles = posterior.quantiles("rate", (0.1, 0.5, 0.9), 0, np.random.default_rng(3))
    assert np.all(np.diff(quantiles, axis=1) > 0.0)
    below = posterior.cdf(quantiles)
    assert below == pytest.approx(np.tile([0.1, 0.5, 0.9], (2, 1)), abs=1e-3)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("a", "b", "lower", "scale"), [(4.7, 0.93, 0.25, 60.0), (4.7, 0.93, 0.25, 6.0), (12.0, 0.05, 0.01, 90.0)]
)
def test_sums_below_their_least_are_resolved_for_every_n(
    a: float, b: float, lower: float, scale: float, *, compiled: bool
) -> None:
    """Of few rows noise and typical sum are below the least; private N, of all of which some have a share."""
    most, reach = 400, 1.0
    values = np.rint(np.array([[-0.77, 0.37], [-3.0, -0.1], [0.2, 0.4]]) * scale)
    rates = np.array([1.0, 0.85]) / scale
    sums = NoisySums(
        totals=NoisyTotals(
            values=values, scale=1.0 / rates, coefficients=np.array([[0.0, 1.0], [reach, -1.0]]), releases=1
        ),
        step=1.0, lower=lower, n_prior=Uniform(0, most), marginal=GammaGamma(concentration=a, rate=b),
    )  # fmt: skip

    def update(n: Floats, total: Floats) -> GammaDistribution:
        return GammaDistribution(concentration=a + n, rate=b + total)

    near = resolve_blocks(sums, update).near if compiled else LatentSumPosterior.of(sums, update)
    # Trapezoids over log A for every N, and no records, whose noise has a probability.
    n = np.arange(1.0, most + 1.0)[:, None]
    log_amount, step = np.linspace(-25.0, 9.0, 3_401, retstep=True)
    total = lower * n + np.exp(log_amount)
    log_density = (
        gammaln(a + n) - gammaln(a) - gammaln(n) + a * np.log(b)
        + (n - 1.0) * np.log(total) - (n + a) * np.log(b + total) + log_amount + np.log(step)
    )  # fmt: skip
    mean = (a + n) / (b + total)
    for cell, (first, second) in enumerate(values):
        misses = rates[0] * np.abs(first - np.exp(log_amount))
        misses = misses + rates[1] * np.abs(second - reach * n + np.exp(log_amount))
        weight = np.exp(log_density - misses)
        none = np.exp(-rates @ np.abs(values[cell]))
        whole = none + np.sum(weight)
        centre = (none * a / b + np.sum(weight * mean)) / whole
        square = (none * a * (a + 1.0) / b**2 + np.sum(weight * mean * (mean + 1.0 / (b + total)))) / whole
        assert near.means[cell] == pytest.approx(centre, rel=1e-5)
        assert near.sds[cell] == pytest.approx(np.sqrt(square - centre**2), rel=1e-5)
        assert near.log_evidence[cell] == pytest.approx(np.log(whole / (most + 1.0)), abs=1e-5)
