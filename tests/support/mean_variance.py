"""Likelihoods of a mean and a variance behind noisy sums, by dense sums and integrals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from suffice.pipeline.families.normal import noisy_moments
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


HALF_RANGE = 10.0
"""Of the columns below, about 0."""


def released(
    n: int,
    epsilon: str = "1",
    *,
    public: bool = False,
    family: str = "normal",
    mean: float = 2.0,
    variance: float = 5.0,
) -> NoisyStatistic:
    """A statistic of n rows of this mean and variance, and a noise of a scale or so."""
    bounds = {"lower": "-10", "upper": "10"} if family == "normal" else {"lower": "0.01", "upper": "100"}
    plan = statistic_plan({"family": family, **bounds}, epsilon=epsilon, public_n=public)
    centre, half_range = (0.0, HALF_RANGE) if family == "normal" else (0.0, math.log(100.0))
    m, square = (mean - centre) / half_range, variance / half_range**2 + ((mean - centre) / half_range) ** 2
    total, steps = n * m, 2**16
    moments = (total / 2, n * square)
    basis = (n - 2 * total + n * square, 2 * (n - n * square), n + 2 * total + n * square)
    exact = moments if public else basis
    noise = np.array((0.7, -0.5, 1.2)[: len(exact)]) * plan.scale
    return noisy_statistic(
        plan, np.array([np.array(exact) * steps**2 + noise]), public_n=n if public else None
    )


def likelihood(statistic: NoisyStatistic, n_prior: NPrior, mean: Floats, log_variance: Floats) -> Floats:
    """Sums over N of integrals over rows' means and deviations, dense, at every pair of half ranges."""
    noisy = noisy_moments(statistic, NormalInverseGamma(0, 1, 3, 50), n_prior).totals
    x, v = (grid.ravel()[:, None, None] for grid in np.meshgrid(mean, np.exp(log_variance), indexing="ij"))
    u = np.linspace(-5.0, 5.0, 31)
    result = np.zeros((len(x), 1, 1))
    for n in range(n_prior.support[0], n_prior.support[1] + 1):
        weight = np.exp(n_prior.log_prob(np.array([float(n)]))[0])
        deviation, share = np.zeros(1), np.ones(1)
        if n >= 2:
            distribution = stats.chi2(n - 1)
            logs = np.linspace(math.log(distribution.ppf(1e-7)), math.log(distribution.isf(1e-9)), 40)
            deviation, share = (
                np.exp(logs),
                distribution.pdf(np.exp(logs)) * np.exp(logs) * (logs[1] - logs[0]),
            )
        average = x + np.sqrt(v / max(n, 1)) * u[:, None]
        share = stats.norm.pdf(u)[:, None] / 3.0 * share
        sums = (n, n * average, n * (average**2 + v * deviation / max(n, 1)))
        distance = 0.0
        for row, value, rate in zip(noisy.coefficients, noisy.values[0], noisy.rate, strict=True):
            of = sum(factor * part for factor, part in zip(row, sums, strict=True))
            distance = distance + rate * np.abs(value - of)
        result += weight * np.sum(np.exp(-distance) * share, axis=(1, 2), keepdims=True)
    return result.reshape(len(mean), len(log_variance))


MEANS, LOG_VARIANCES = np.linspace(-2.0, 2.4, 78), np.linspace(-12.0, 2.5, 50)
"""Half ranges, and their squares' logarithms."""


def dense(
    statistics: Sequence[NoisyStatistic],
    n_priors: Sequence[NPrior],
    log_prior: Callable[[Floats, Floats], Floats] | None = None,
    log_variances: Floats = LOG_VARIANCES,
    half_range: float = HALF_RANGE,
) -> Floats:
    """The posterior of disjoint data on a dense grid, under the priors below or another."""
    share = np.ones((len(MEANS), len(log_variances)))
    for statistic, n_prior in zip(statistics, n_priors, strict=True):
        log_likelihood = likelihood(statistic, n_prior, MEANS, log_variances)
        share *= log_likelihood / np.max(log_likelihood)
    log_density = (log_prior or log_of_sd)(half_range * MEANS[:, None], half_range**2 * np.exp(log_variances))
    share *= np.exp(log_density + log_variances)  # a density of the log variance
    share *= np.gradient(log_variances)
    return np.asarray(share / np.sum(share))


def missed(
    posterior: Posterior,
    share: Floats,
    log_variances: Floats = LOG_VARIANCES,
    half_range: float = HALF_RANGE,
) -> tuple[float, float]:
    """How far means and quantiles are from dense quadrature: in standard deviations, in probability."""
    positions = (half_range * MEANS, half_range**2 * np.exp(log_variances))
    far, off = 0.0, 0.0
    for axis, (name, position) in enumerate(zip(posterior.parameters, positions, strict=True)):
        marginal = np.sum(share, axis=1 - axis)
        expected = float(marginal @ position)
        sd = math.sqrt(marginal @ (position - expected) ** 2)
        far = max(far, abs(posterior.mean(name)[0] - expected) / sd, abs(posterior.sd(name)[0] / sd - 1.0))
        below = np.cumsum(marginal) - marginal / 2.0
        for level in (0.05, 0.5, 0.95):
            levels_reached = np.interp(posterior.quantile(name, level)[0], position, below)
            off = max(off, abs(float(levels_reached) - level))
    return far, off


SD, MEAN = stats.gamma(4, scale=0.9), stats.norm(1, 2)


def log_of_sd(mean: Floats, variance: Floats) -> Floats:
    sd = np.sqrt(variance)
    return np.asarray(MEAN.logpdf(mean) + SD.logpdf(sd) - np.log(sd))
