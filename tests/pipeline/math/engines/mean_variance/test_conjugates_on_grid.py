"""Tables of spread priors against the sums that they stand for, and where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.mean_variance.prior_on_grid import ConjugatesOnGrid
from suffice.pipeline.math.priors.mixtures import Mixture, ScaleMixture

MEANS = np.concatenate([np.linspace(-3.0, 3.0, 61), [-1e75, -1e30, 30.0, 1e75]])[None]
LOG_VARIANCES = np.concatenate([np.linspace(-40.0, 40.0, 161), [-200.0, -100.0, 100.0, 200.0]])[None]


def test_a_table_holds_the_sum_of_components_that_differ_by_scale() -> None:
    """Off by less than 2e-5 where a prior is within 60 nats of its highest, by 1e-6 of its depth below."""
    parts = ConjugatesOnGrid.of(ScaleMixture(-10.0, 10.0), 0.0, 10.0)
    assert parts.table is not None
    tabled = parts.log_density(MEANS, LOG_VARIANCES)
    exact = replace(parts, table=None).log_density(MEANS, LOG_VARIANCES)
    assert np.all(np.isfinite(tabled))
    near = exact > np.max(exact) - 60.0
    assert np.max(np.abs(tabled - exact)[near]) < 2e-5
    np.testing.assert_allclose(tabled, exact, rtol=1e-6, atol=2e-5)


def test_densities_are_those_of_scipy() -> None:
    """Of a mean in half ranges of 10 about 5, and of a log variance; constants of 2 pi are left out."""
    ones = NormalInverseGamma(4.0, 0.5, 3.0, 20.0), NormalInverseGamma(6.0, 2.0, 2.0, 5.0)
    prior = Mixture(0.3, ones[0], 0.7, ones[1])
    parts = ConjugatesOnGrid.of(prior, 5.0, 10.0)
    assert parts.table is None
    x, log_variance = np.array([[-0.2, 0.0, 0.5]]), np.array([[-4.0, -1.0, 0.0]])
    mean, variance = 5.0 + 10.0 * x[0][:, None], 100.0 * np.exp(log_variance[0])
    exact = sum(
        weight
        * stats.invgamma.pdf(variance, component.concentration, scale=component.scale)
        * stats.norm.pdf(mean, component.loc, np.sqrt(variance / component.precision))
        * variance
        for weight, component in zip(prior.weights, ones, strict=True)
    )
    difference = parts.log_density(x, log_variance)[0] - np.log(exact)
    assert np.ptp(difference) < 1e-10
