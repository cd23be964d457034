r"""Posteriors of regressions and columns by weighted draws of the noise: no chains, no latent moments.

The released components are y = C M + e of moments M, with Laplace noise e. Noise is drawn from its law, and
:math:`C^{-1}(y - e)` is N and the mean and covariance of rows, taken for parameters :math:`\theta`. Moments
:math:`M'` of N normal rows with these parameters are drawn, by Bartlett's factors, and

.. math:: w = p(\theta, N) \Bigl|\frac{d\theta}{dM}\Bigr| e^{|e|_1 - |y - C M'|_1}

weighs them, in scales of the noise. Latent scales of the default priors are integrated out by a table. The
engine integrates parameters out and draws moments and scales by chains: nothing but the map C is shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from suffice.pipeline.ask.inference.chosen_priors import n_prior_for
from suffice.pipeline.math.engines.multivariate.released_moments import noisy_moments

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats

DECADES = 8.0 * np.log(10.0)
_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """Weighted draws of parameters, in half ranges about the middle of the bounds.

    Attributes
    ----------
    parameters : ndarray of shape (n, k), float64
        Slopes and the residual variance; or means, and the covariance's upper triangle by rows.
    weight : ndarray of shape (n,), float64
        With the sum 1.
    """

    parameters: Floats
    weight: Floats

    @property
    def effective(self) -> float:
        """How many draws they are worth."""
        return float(1.0 / np.sum(self.weight**2))

    def below(self, position: int, value: float) -> float:
        """Return the chance of what lies below a value."""
        return float(self.weight[self.parameters[:, position] < value].sum())

    def quantiles(self, position: int, q: Floats) -> Floats:
        """Return quantiles of one parameter."""
        order = np.argsort(self.parameters[:, position])
        share = np.cumsum(self.weight[order])
        between: Floats = np.interp(q, share / share[-1], self.parameters[order, position])
        return between


def weighted_draws(statistic: NoisyStatistic, cell: int, draws: int, rng: np.random.Generator) -> Weighted:
    """Weigh draws of the noise of one cell under the family's default priors, with an intercept."""
    chosen: Cells = np.array([cell])
    scaled = noisy_moments(statistic.take(chosen)).in_scales()
    c, y = scaled.coefficients, scaled.values[0]
    d = len(statistic.plan.parameters.columns)
    is_regression = statistic.plan.family == "linear_regression"
    most = n_prior_for(statistic, None).support[1]
    parameters, logs = [], []
    for _ in range(draws // _AT_ONCE):
        e = rng.laplace(size=(_AT_ONCE, len(y)))
        moments = (y - e) @ np.linalg.inv(c).T
        n, mean, covariance = _parted(moments, d)
        possible = (n > d + 1.5) & (n < most + 0.5)
        for size in range(1, d + 1):
            possible &= np.linalg.det(covariance[:, :size, :size]) > 0.0
        n, mean, covariance, e = n[possible], mean[possible], covariance[possible], e[possible]
        log_prior, drawn = (_regression if is_regression else _columns)(mean, covariance)
        root = np.linalg.cholesky(covariance).astype(np.float64)
        again = _moments(n, mean, root, rng)
        # The Jacobian from M to N, means and covariances is N to the power of what is divided by it.
        logs.append(
            log_prior
            - np.log1p(n)
            - d * (d + 3) / 2.0 * np.log(n)
            + np.abs(e).sum(axis=1)
            - np.abs(y - again @ c.T).sum(axis=1)
        )
        parameters.append(drawn)
    log_weight = np.concatenate(logs)
    weight = np.exp(log_weight - log_weight.max())
    return Weighted(parameters=np.concatenate(parameters), weight=weight / weight.sum())


def _parted(moments: Floats, d: int) -> tuple[Floats, Floats, Floats]:
    """Return N, means and covariances of moments N, sums, and the upper triangle of products."""
    n = moments[:, 0]
    mean = moments[:, 1 : 1 + d] / n[:, None]
    first, second = np.triu_indices(d)
    covariance = np.empty((len(n), d, d))
    covariance[:, first, second] = covariance[:, second, first] = moments[:, 1 + d :] / n[:, None]
    return n, mean, covariance - mean[:, :, None] * mean[:, None, :]


def _moments(n: Floats, mean: Floats, root: Floats, rng: np.random.Generator) -> Floats:
    """Draw the moments of n normal rows."""
    d = mean.shape[1]
    factor = np.zeros((len(n), d, d))
    for position in range(d):
        factor[:, position, position] = np.sqrt(rng.chisquare(n - 1.0 - position))
    rows, columns = np.tril_indices(d, -1)
    factor[:, rows, columns] = rng.standard_normal((len(n), len(rows)))
    total = n[:, None] * mean
    total += np.sqrt(n)[:, None] * np.einsum("cij,cj->ci", root, rng.standard_normal((len(n), d)))
    scattered = root @ factor
    products = scattered @ np.swapaxes(scattered, 1, 2)
    products += total[:, :, None] * total[:, None, :] / n[:, None, None]
    first, second = np.triu_indices(d)
    return np.concatenate([n[:, None], total, products[:, first, second]], axis=1)


def _columns(mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the log density of means and a covariance under the default prior, and both."""
    d = mean.shape[1]
    sd = np.sqrt(np.einsum("cii->ci", covariance))
    correlation = covariance / sd[:, :, None] / sd[:, None, :]
    inverse = np.einsum("cii->ci", np.linalg.inv(correlation))
    log_prior = -0.5 * np.sum((mean / 0.5) ** 2, axis=1)
    # Correlations of an inverse Wishart of d degrees of freedom: arcsine laws.
    log_prior -= (2.0 * d + 1.0) / 2.0 * np.linalg.slogdet(correlation)[1]
    log_prior -= d / 2.0 * np.log(inverse).sum(axis=1)
    # The law of log s, and the Jacobian from covariances to s and R.
    even = 0.05 / np.log(1e4) / (1.0 + (1e-4 / sd) ** 8)
    flat = 0.95 * 8.0 / np.sqrt(2.0) / np.pi * sd**2
    log_prior += np.sum(np.log(even + flat) - np.log1p(sd**8) - (d + 1.0) * np.log(sd), axis=1)
    first, second = np.triu_indices(d)
    return log_prior, np.concatenate([mean, covariance[:, first, second]], axis=1)


def _regression(mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the log density of means and a covariance of predictors and outcome; slopes and variance."""
    size = mean.shape[1] - 1
    of_predictors, _ = _columns(mean[:, :size], covariance[:, :size, :size])
    inner, cross = covariance[:, :size, :size], covariance[:, :size, size]
    slopes = np.linalg.solve(inner, cross[:, :, None])[:, :, 0]
    variance = covariance[:, size, size] - np.sum(slopes * cross, axis=1)
    intercept = mean[:, size] - np.sum(slopes * mean[:, :size], axis=1)
    k = size + 1
    squares = np.sum(slopes**2, axis=1) + intercept**2
    # InverseGamma(3, 2 v) of s, Normal(0, s / v) of k coefficients; dc = |Sigma| db.
    log_prior = of_predictors - np.linalg.slogdet(inner)[1] - (4.0 + k / 2.0) * np.log(variance)
    log_prior += _log_integral(3.0 + k / 2.0, (2.0 + squares / 2.0) / variance)
    return log_prior, np.column_stack([slopes, variance])


def _log_integral(power: float, rate: Floats) -> Floats:
    """Return the log of the integral of f(u) v^power e^(-rate v) over u = log v, but for constants."""
    grid, values = _table(power)
    interpolated: Floats = np.interp(np.log(rate), grid, values)
    return interpolated


@cache
def _table(power: float) -> tuple[Floats, Floats]:
    u = np.linspace(-DECADES, 0.0, 4001)
    log_density = np.log(0.25 / DECADES + 0.75 * np.exp(u / 2.0) / 2.0 / -np.expm1(-DECADES / 2.0))
    log_density[[0, -1]] -= np.log(2.0)  # the ends of the trapezoidal rule
    grid = np.linspace(-10.0, 45.0, 3001)
    values = [logsumexp(log_density + power * u - np.exp(rate + u)) for rate in grid]
    return grid, np.array(values)
