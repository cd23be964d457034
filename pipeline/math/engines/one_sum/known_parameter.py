r"""The distribution of a sum given the parameter itself: what a point mass of a prior makes of noisy sums.

Under a prior that is a point mass at :math:`\theta` nothing is integrated out, and

.. math::
    \begin{array}{ll}
    \text{Binomial}(m N, p) & \log p(S \mid N) = \log\binom{mN}{S} + S \log p + (mN - S) \log(1 - p) \\
    \text{Poisson}(\lambda N) & \log p(S \mid N) = S \log \lambda N - \lambda N - \log S! \\
    \text{failures before } R = r N \text{ successes} &
        p(S \mid N) = \frac{R}{R + S} \, \text{Binomial}(R; R + S, p) \\
    \text{Gamma}(k N, \rho w) & \log p(S \mid N) = k N \log \rho w S - \rho w S - \log \Gamma(k N) - \log S \\
    \text{Normal}(N \mu, \sqrt{N v}) &
    \end{array} \qquad (1)

The evidence under it is the likelihood p(y | theta), with the constant that evidences under conjugate priors
have. With :math:`h(a) = a \log a - a - \log \Gamma(a)` and the deviance

.. math:: D(x, m) = x \log (x / m) + m - x \ge 0, \qquad (2)

the largest terms cancel by hand: of a Poisson number :math:`\log p = -D(S, m) + h(S) - \log S`, and likewise
of the others.

Symbols:

- N: ``n``; S: ``total``; m: ``trials``; k, w: ``shape``, ``share``
- p: ``success``, with ``failure`` = 1 - p; lambda, rho: ``rate``; mu, v: ``loc``, ``variance``

Method. Exact but for rounding: the terms of (2) differ by :math:`|x - m|` times a rounding error at most.

References
----------
Loader. Fast and accurate computation of binomial probabilities. 2000.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import log_height
from suffice.pipeline.math.engines.one_sum.noisy_sum import (
    BetaBinomial,
    BetaNegativeBinomial,
    GammaGamma,
    GammaPoisson,
    NoisySums,
    NormalNormal,
    SumSupport,
)
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.typing import Cells, Floats

    Number: TypeAlias = float | Floats


_LEAST = 1e-80
"""What stands for a parameter at 0, where logarithms end: no count of rows makes a difference of it."""


class _OfKnownParameter:
    """What sums of a known parameter have in common."""

    __slots__ = ()

    def spread(self, total: Floats, n: Floats) -> Floats:
        """Infinite: there is no parameter that nodes have to resolve."""
        return np.full(np.broadcast_shapes(total.shape, n.shape), np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinomialSum(_OfKnownParameter):
    """Successes among m N trials of a known probability."""

    success: Number
    failure: Number
    trials: float
    support: ClassVar[SumSupport] = SumSupport.INTEGERS

    @property
    def most_per_row(self) -> float:
        """All trials."""
        return self.trials

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        trials = self.trials * n
        return _log_binomial(total, trials - total, self.success, self.failure)

    def typical(self, n: Floats) -> Floats:
        """About the mode."""
        return np.rint(self.success * self.trials * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSum(_OfKnownParameter):
    """Sum of N Poisson counts of a known rate."""

    rate: Number
    support: ClassVar[SumSupport] = SumSupport.INTEGERS
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        mean = self.rate * n
        # (1) by (2).
        return _log_over_factorial(total) - _deviance(total, mean)

    def typical(self, n: Floats) -> Floats:
        """The mode."""
        return np.floor(self.rate * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeBinomialSum(_OfKnownParameter):
    """Failures before r N successes of a known probability of success."""

    success: Number
    failure: Number
    successes: float
    support: ClassVar[SumSupport] = SumSupport.INTEGERS
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        successes = self.successes * n
        binomial = _log_binomial(successes, total, self.success, self.failure)
        # (1): the last trial is a success.
        return binomial - np.log1p(total / successes)

    def typical(self, n: Floats) -> Floats:
        """About the mode."""
        return np.floor(np.maximum(self.successes * n - 1.0, 0.0) * self.failure / self.success)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaSum(_OfKnownParameter):
    """Sum whose multiple w S is gamma of shape k N and a known rate."""

    rate: Number
    shape: float
    share: float
    support: ClassVar[SumSupport] = SumSupport.POSITIVE
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        shape = self.shape * n
        # (1) by (2), with a = k N and x = rho w S: a log x - x - log Gamma(a) = h(a) - D(a, x).
        return log_height(shape) - _deviance(shape, self.rate * self.share * total) - np.log(total)

    def typical(self, n: Floats) -> Floats:
        """The mode of the logarithm of S."""
        return self.shape * n / (self.rate * self.share)


def given_parameter(marginal: Marginal, value: Number, *, is_scale: bool) -> Marginal:
    """Return the distribution of a sum given the parameter, in place of that under a conjugate prior of it.

    Parameters
    ----------
    marginal : Marginal
        Under any conjugate prior: its other numbers are kept.
    value : float, or ndarray that broadcasts with N
        The parameter.
    is_scale : bool
        Whether it is one over the rate that the marginal has.

    Raises
    ------
    PriorError
        Where the family has no such parameter: an end of the range at which there is no distribution.
    """
    # Of no rows at all every distribution is right.
    lowest = float(np.min(value, initial=np.inf))
    match marginal:
        case BetaBinomial(trials=trials):
            success, failure = np.maximum(value, _LEAST), np.maximum(np.subtract(1.0, value), _LEAST)
            return BinomialSum(success=success, failure=failure, trials=trials)
        case GammaPoisson():
            return PoissonSum(rate=np.maximum(value, _LEAST))
        case BetaNegativeBinomial(successes=successes) if lowest > 0.0:
            failure = np.maximum(np.subtract(1.0, value), _LEAST)
            return NegativeBinomialSum(success=value, failure=failure, successes=successes)
        case GammaGamma() | SpreadGammaGamma() if lowest > 0.0:
            rate = np.divide(1.0, value) if is_scale else value
            return GammaSum(rate=rate, shape=marginal.shape, share=marginal.share)
        case NormalNormal(variance=variance):
            return NormalNormal(loc=value, scale=0.0, variance=variance)
    message = f"prior: a point mass at {lowest:g} leaves records no distribution: leave this point out"
    raise PriorError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsOfParameters(NoisySums):
    """Noisy sums of cells that each have a known parameter: their evidences are likelihoods.

    Parameters
    ----------
    values : ndarray of shape (n_cells,), float64
        The parameters.
    is_scale : bool
        As of ``given_parameter``.
    """

    values: Floats
    is_scale: bool

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        return replace(self, totals=self.totals.take(cells), values=self.values[cells])

    def law(self, cell: Cells, axes: int) -> Marginal:
        """The distribution of S given N and the parameter of rows' cells."""
        shape = (-1,) + (1,) * (axes - 1)
        return given_parameter(self.marginal, self.values[cell].reshape(shape), is_scale=self.is_scale)

    def spread(self, n: Floats, position: Floats) -> Floats:
        """Infinite: there is no parameter that nodes have to resolve."""
        return np.full(np.broadcast_shapes(n.shape, position.shape), np.inf)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """D of (2); the mean at x = 0."""
    x, mean = np.broadcast_arrays(x, mean)
    away = x - mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Near the mean x log(x / m) + m - x cancels less as x log1p((x - m) / m) - (x - m).
        deviance = x * np.log1p(away / mean) - away
        far = x * np.log(x / mean) - away
    deviance = np.where(np.abs(away) > 0.5 * mean, far, deviance)
    return np.where(x > 0.0, deviance, mean)


def _log_over_factorial(x: Floats) -> Floats:
    """Log of x^x e^-x / x!, which is 1 at 0."""
    positive = np.maximum(x, 1.0)
    # log x! = log x + log Gamma(x).
    return np.where(x > 0.0, log_height(positive) - np.log(positive), 0.0)


def _log_binomial(successes: Floats, failures: Floats, success: Number, failure: Number) -> Floats:
    """Log of (x + y)! / (x! y!) p^x q^y, of real x and y >= 0."""
    trials = successes + failures
    return (
        _log_over_factorial(successes)
        + _log_over_factorial(failures)
        - _log_over_factorial(trials)
        - _deviance(successes, trials * success)
        - _deviance(failures, trials * failure)
    )
