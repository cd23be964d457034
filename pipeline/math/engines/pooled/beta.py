r"""Beta: a population of probabilities that is conjugate to counts.

.. math:: p \sim \mathrm{Beta}(\varphi \mu, \varphi (1 - \mu)), \qquad \mu = \operatorname{logistic} m,
    \qquad \psi'(\varphi \mu) + \psi'(\varphi (1 - \mu)) = s^2 \qquad (1)

with the trigamma function :math:`\psi'`, so that s is the standard deviation of the logit (DLMF 5.15). It is
no location family on the line, and has no slope on the size.

Method. (1) is solved for the logarithm of :math:`\varphi` by bisection: its left-hand side falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class BetaPopulation:
    """A ``Population``."""

    name: str
    slope: ClassVar[bool] = False
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return the one component's share and densities of logits."""
        from scipy.special import betaln, polygamma

        mean = 1.0 / (1.0 + np.exp(-location))
        low, high = np.full_like(mean, -8.0), np.full_like(mean, 40.0)
        for _ in range(_HALVINGS):
            total = np.exp((low + high) / 2.0)
            is_wide = polygamma(1, total * mean) + polygamma(1, total * (1.0 - mean)) > spread**2
            low, high = np.where(is_wide, np.log(total), low), np.where(is_wide, high, np.log(total))
        a, b = total * mean, total * (1.0 - mean)
        # log p = -log(1 + e^-z), log(1 - p) = -log(1 + e^z), and dp = p (1 - p) dz.
        log_p, log_q = -np.logaddexp(0.0, -z), -np.logaddexp(0.0, z)
        log_density = a[:, None] * log_p + b[:, None] * log_q - betaln(a, b)[:, None]
        return [(1.0, np.exp(log_density))]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of logits."""
        return [spread]
