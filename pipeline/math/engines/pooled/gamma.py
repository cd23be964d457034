r"""Gamma: a population of rates that is conjugate to counts.

.. math:: \lambda \sim \mathrm{Gamma}(k, k e^{-m}), \qquad \psi'(k) = s^2 \qquad (1)

with the trigamma function :math:`\psi'`, so that s is the standard deviation of the logarithm (DLMF 5.15),
and :math:`e^m` the mean.

Method. (1) is solved for the logarithm of k by Newton's method (``trigamma_total``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.engines.pooled.trigamma_total import total_of

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class GammaPopulation:
    """A ``Population``."""

    name: str
    slope: ClassVar[bool] = True
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return the one component's share and densities of logarithms."""
        from scipy.special import gammaln

        shape = total_of(spread, [1.0])
        gap = np.minimum(z - location[:, None], 600.0)
        k = shape[:, None]
        # k log k - log Gamma(k) + k (gap - e^gap), with k e^gap - k as expm1: large shapes do not cancel.
        height = k * np.log(k) - k - gammaln(k)
        return [(1.0, np.exp(height - k * (np.expm1(gap) - gap)))]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of logarithms."""
        return [spread]
