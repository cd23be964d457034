r"""How much denser, at many positions, a mixture of very many conjugate distributions is than their prior.

In its coordinate every conjugate distribution of one parameter has a density of the form

.. math:: \log p_j(x) = \log p_j(x_0) + \eta_j \cdot (T(x) - T(x_0))

with two numbers :math:`\eta_j` of its own and two functions T that all share, the prior too. So the ratios of
all distributions at all positions are one product of matrices. Where a distribution is the prior itself, its
ratio is constant, however far out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import SLICE
from suffice.pipeline.math.distributions.beta import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.inverse_gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution
from suffice.pipeline.math.distributions.one_parameter import coordinate_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureRatio:
    """Made by ``MixtureRatio.of``.

    Attributes
    ----------
    start : ndarray of shape (n_components,), float64
        Log weights and ratios at one position.
    numbers : ndarray of shape (2, n_components), float64
        Those of all distributions less those of the prior.
    rises : callable
        Positions (n,) -> by how much the two functions are higher than at that position, (2, n).
    """

    start: Floats
    numbers: Floats
    rises: Callable[[Floats], Floats]

    @classmethod
    def of(cls, prior: Distribution, distributions: Distribution, log_weight: Floats) -> Self:
        """Take the prior, one distribution, and the components of the mixture with their log weights."""
        coordinate = coordinate_of(distributions)
        at = coordinate.centre[[int(np.argmax(log_weight))]]
        return cls(
            start=log_weight + coordinate.log_density(at) - coordinate_of(prior).log_density(at),
            numbers=_numbers(distributions, at) - _numbers(prior, at),
            rises=_rises(distributions, at),
        )

    def __call__(self, position: Floats) -> Floats:
        """Log ratio at positions (n,)."""
        log_ratio = np.empty(len(position))
        step = max(1, SLICE // len(self.start))
        for first in range(0, len(position), step):
            part = slice(first, first + step)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                terms = self.rises(position[part]).T @ self.numbers
                terms += self.start
                top = np.max(terms, axis=1)
                terms -= top[:, None]
                # Of what is between 0 and 1, seven digits are enough.
                parts = np.exp(terms.astype(np.float32))
                log_ratio[part] = top + np.log(np.sum(parts, axis=1, dtype=np.float64))
        return np.where(np.isnan(log_ratio), -np.inf, log_ratio)


def _numbers(distribution: Distribution, at: Floats) -> Floats:
    """Every distribution's two numbers."""
    if isinstance(distribution, NormalDistribution):
        precision = distribution.scale**-2.0
        return np.stack([(distribution.loc - at) * precision, precision])
    if isinstance(distribution, GammaDistribution):
        return np.stack([distribution.concentration, distribution.rate * np.exp(at)])
    if isinstance(distribution, InverseGammaDistribution):
        return np.stack([distribution.concentration, distribution.scale * np.exp(-at)])
    if isinstance(distribution, BetaDistribution):
        return np.stack([distribution.concentration1, distribution.concentration0])
    raise TypeError(type(distribution).__name__)


def _rises(distribution: Distribution, at: Floats) -> Callable[[Floats], Floats]:
    """Return the functions that they multiply."""
    if isinstance(distribution, NormalDistribution):
        return lambda position: _parabola(position - at)
    if isinstance(distribution, GammaDistribution):
        return lambda position: _exponential(position - at)
    if isinstance(distribution, InverseGammaDistribution):
        return lambda position: _exponential(at - position)
    return lambda position: _logits(position - at, at)


def _parabola(distance: Floats) -> Floats:
    return np.stack([distance, -0.5 * distance * distance])


def _exponential(distance: Floats) -> Floats:
    return np.stack([distance, -np.expm1(distance)])


def _logits(distance: Floats, at: Floats) -> Floats:
    """Rises of the logs of a probability and of its complement from the logit `at`."""
    rest = 1.0 / (1.0 + np.exp(at))
    return -np.stack([np.log1p(rest * np.expm1(-distance)), np.log1p(rest * np.exp(at) * np.expm1(distance))])
