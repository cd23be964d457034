r"""Beta: a population of probabilities that is conjugate to counts.

.. math:: p \sim \mathrm{Beta}(\varphi \mu, \varphi (1 - \mu)), \qquad \mu = \operatorname{logistic} m,
    \qquad \psi'(\varphi \mu) + \psi'(\varphi (1 - \mu)) = s^2 \qquad (1)

with the trigamma function :math:`\psi'`, so that s is the standard deviation of the logit (DLMF 5.15). It is
no location family on the line, and has no slope on the size.

Method. (1) is solved for the logarithm of :math:`\varphi` by Newton's method (``trigamma_total``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.engines.pooled.trigamma_total import total_of

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class BetaPopulation:
    """A ``Population``."""

    name: str
    slope: ClassVar[bool] = False
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return the one component's share and densities of logits."""
        from scipy.special import betaln

        mean = 1.0 / (1.0 + np.exp(-location))
        total = total_of(spread, [mean, 1.0 - mean])
        a, b = total * mean, total * (1.0 - mean)
        # log p = -log(1 + e^-z), log(1 - p) = -log(1 + e^z), and dp = p (1 - p) dz.
        log_p, log_q = -np.logaddexp(0.0, -z), -np.logaddexp(0.0, z)
        log_density = a[:, None] * log_p + b[:, None] * log_q - betaln(a, b)[:, None]
        return [(1.0, np.exp(log_density))]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of logits."""
        return [spread]
