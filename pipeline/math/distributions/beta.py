"""The beta distribution of a probability: as a prior, and of many cells as their posterior."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.distributions.distribution import (
    LARGE,
    Coordinate,
    Line,
    OneParameter,
    Prior,
    excess,
    log_height,
    root_over,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class Beta(Prior):
    r"""Beta distribution of a probability.

    .. math:: p(x) \propto x^{a - 1} (1 - x)^{b - 1}

    Parameters
    ----------
    concentration1 : float, > 0
        a: pseudo-count of true.
    concentration0 : float, > 0
        b: pseudo-count of false.
    """

    concentration1: float
    concentration0: float

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.beta(self.concentration1, self.concentration0, size)

    def distribution(self) -> BetaDistribution:
        """Return it as the distribution of one cell."""
        return BetaDistribution(**self._of_one_cell())


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaDistribution(OneParameter):
    """Beta distributions of a probability.

    Attributes
    ----------
    concentration1, concentration0 : ndarray of shape (n_cells,), float64
        As in ``Beta``.
    name : str
        The parameter's.
    """

    _natural: ClassVar = ("concentration0", "concentration1")

    concentration1: Floats
    concentration0: Floats
    name: str = "probability"

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.concentration1 / self._total()

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        total = self._total()
        share = self.concentration1 / total
        return np.asarray(np.sqrt(share * (1.0 - share) / (total + 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import betaincinv

        alpha, total = self.concentration1[:, None], self._total()[:, None]
        return np.asarray(betaincinv(alpha, total - alpha, np.asarray(q)), dtype=np.float64)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        size = (draws, len(self.concentration1))
        return {self.name: 1.0 - rng.beta(self.concentration0, self.concentration1, size)}

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser."""
        from scipy.special import gammaln

        log_z: Floats = gammaln(self.concentration0) + gammaln(self.concentration1) - gammaln(self._total())
        return log_z

    def coordinate(self) -> Coordinate:
        """Return the logit."""
        alpha, beta = self.concentration1, self.concentration0
        return Coordinate(
            centre=np.log(alpha / beta),
            width=np.sqrt(1.0 / alpha + 1.0 / beta),
            cdf=lambda position: beta_cdf(alpha, beta, position),
            log_density=lambda position: _log_beta(alpha, beta, position),
            line=Line.LOGIT,
        )

    def _total(self) -> Floats:
        return self.concentration0 + self.concentration1


def _log_beta(alpha: Floats, beta: Floats, position: Floats) -> Floats:
    """Log density of the logit of a beta, relative to that at its mode."""
    distance = position - np.log(alpha / beta)
    p, q = alpha / (alpha + beta), beta / (alpha + beta)
    height = log_height(alpha) + log_height(beta) - log_height(alpha + beta)
    with np.errstate(over="ignore", divide="ignore"):
        below = alpha * np.log1p(q * np.expm1(-distance))
        return height - below - beta * np.log1p(p * np.expm1(distance))


def beta_cdf(alpha: Floats, beta: Floats, logit: Floats) -> Floats:
    """Probability that a beta is below the probability with this logit."""
    from scipy.special import betainc, ndtr

    p, q = Line.LOGIT.parameter(logit), Line.LOGIT.parameter(-logit)
    a, b = np.maximum(alpha, LARGE), np.maximum(beta, LARGE)
    n = a + b - 1.0
    s, t = a - 0.5, b - 0.5
    gap = s * q - t * p
    deviance = 2.0 * (s * excess(-gap / s) + t * excess(gap / t)) / (1.0 + 1.0 / (6.0 * n))
    distance = a - 1.0 / 3.0 - (n + 1.0 / 3.0) * p + 0.02 * (q / a - p / b + (q - 0.5) / (n + 1.0))
    result: Floats = ndtr(-distance * root_over(deviance, gap, np.sqrt(n * p * q)))
    small = np.minimum(alpha, beta) < LARGE
    low, high = np.flatnonzero(small & (p <= 0.5)), np.flatnonzero(small & (p > 0.5))
    result[low] = betainc(alpha[low], beta[low], p[low])
    result[high] = 1.0 - betainc(beta[high], alpha[high], q[high])
    return result
