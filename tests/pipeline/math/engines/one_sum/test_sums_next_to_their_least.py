"""Sums that both noise and prior put below the least that there can be."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaGamma, NoisySums
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals


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
