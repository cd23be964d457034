r"""The horseshoe: a density with a pole at 0 and tails as wide as Cauchy's, for few large effects.

Model. With a scale of its own for every effect,

.. math:: \beta \mid \lambda \sim \mathrm{Normal}(0, \lambda \tau), \qquad
    \lambda \sim \mathrm{HalfCauchy}(1), \qquad
    p(\beta) = \frac{e^z E_1(z)}{\tau \sqrt{2 \pi^3}}, \quad z = \frac{\beta^2}{2 \tau^2}, \qquad (1)

with :math:`E_1` the exponential integral. It is about :math:`\log(1 + 2 / z) / \tau \sqrt{8 \pi^3}`.

Symbols:

- tau: ``scale``, > 0, in the parameter's unit

Method. (1); beyond z = 300 by five terms of its asymptotic series, right to 1e-10. Quantiles are interpolated
on 20,001 points even in the logarithm.

References
----------
Carvalho, Polson, Scott. The horseshoe estimator for sparse signals. Biometrika 97(2), 2010.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats

_FAR = 300.0
_CONSTANT = -0.5 * math.log(2.0 * math.pi**3)
_LOGS = (-40.0, 40.0)


def _log_standard(z: Floats) -> Floats:
    """Return log(e^z E_1(z)) of z > 0."""
    from scipy.special import exp1

    near, far = np.minimum(z, _FAR), np.maximum(z, _FAR)
    series = 1.0 / far * (1.0 + (-1.0 + (2.0 + (-6.0 + 24.0 / far) / far) / far) / far)
    with np.errstate(divide="ignore"):
        value: Floats = np.where(z < _FAR, near + np.log(exp1(near)), np.log(series))
    return value


@functools.cache
def _half() -> tuple[Floats, Floats]:
    """Logs of absolute values under a scale of 1, and how much of the distribution is below, (n,) each."""
    log_size = np.linspace(*_LOGS, 20_001)
    density = np.exp(_CONSTANT + _log_standard(np.exp(2.0 * log_size) / 2.0) + log_size)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2.0)])
    return log_size, below / below[-1]


@dataclass(frozen=True, slots=True)
class HorseshoeDistribution:
    """The distribution (1), by the methods of a frozen distribution of ``scipy.stats`` that densities take.

    Attributes
    ----------
    scale : float, > 0
        tau.
    """

    scale: float

    def logpdf(self, x: Any) -> Floats:
        """Log densities."""
        # The pole is cut where numbers end.
        size = np.maximum(np.abs(np.asarray(x, dtype=np.float64)) / self.scale, 1e-150)
        return _CONSTANT - math.log(self.scale) + _log_standard(size**2 / 2.0)

    def support(self) -> tuple[float, float]:
        """Ends of the support."""
        return -math.inf, math.inf

    def ppf(self, q: Any) -> Floats:
        """Quantiles."""
        log_size, below = _half()
        level = np.asarray(q, dtype=np.float64)
        size = np.exp(np.interp(np.abs(2.0 * level - 1.0), below, log_size))
        return self.scale * np.sign(level - 0.5) * size
