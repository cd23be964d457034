r"""The law of a panel's step d, from the lattice of its hyperparameters and what lies below it.

Model. Where steps are far below noise the likelihood hardly changes with d, and the posterior of log d falls
to the left as d does. A lattice that ends at a depth cuts that tail, whose length says whether cells tell the
step at all. Of small d the likelihood is a smooth function of the variance d^2, so that below the least place
:math:`u_1` of a lattice, where the density of u = log d has the slope k,

.. math:: \log p(u) = \log p(u_1) + (u - u_1) + \frac{k - 1} 2 \bigl(e^{2 (u - u_1)} - 1\bigr),
    \qquad k \ge 1. \qquad (1)

Method. Points of one d and one share of jumps are a section of the lattice, over s and :math:`\rho`. Sections
next to an end have some of their points: each counts for its highest point times what the whole one of the
most probable d has over its own highest. Logarithms of sections are a cubic spline in u; shares of jumps add
up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.pooled.panel_lattice import PanelPoint
    from suffice.typing import Floats

_FINE = 40
"""Places between two sections."""
_FEWEST = 3
"""Sections that a spline takes: of fewer, each is a normal law as wide as they are apart."""
_BELOW = 9.0
"""How far (1) is followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLaw:
    """The posterior of log d.

    Attributes
    ----------
    log_step, weight : ndarray of shape (n,), float64
        Places in order, and what each stands for; weights add up to 1.
    """

    log_step: Floats
    weight: Floats

    @property
    def moments(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of d."""
        return _moments(np.exp(self.log_step), self.weight)

    @property
    def log_sd(self) -> float:
        """The posterior standard deviation of log d."""
        return _moments(self.log_step, self.weight)[1]

    def quantiles(self, q: Sequence[float]) -> Floats:
        """Return quantiles of d."""
        below = np.cumsum(self.weight) - self.weight / 2.0
        return np.exp(np.interp(q, below, self.log_step))

    @classmethod
    def of(cls, points: Sequence[PanelPoint], weight: Floats) -> StepLaw:
        """Add up sections of a lattice, by its points and their weights."""
        log_step = np.array([point.theta[0] for point in points])
        shares = np.array([point.jumps for point in points])
        sections = [
            _sections(log_step[shares == share], weight[shares == share]) for share in np.unique(shares)
        ]
        apart = min((float(np.min(np.diff(at))) for at, _ in sections if len(at) > 1), default=1.0)
        low = min(float(at[0]) for at, _ in sections) - _BELOW
        high = max(float(at[-1]) for at, _ in sections) + 2.0 * apart
        places = np.arange(low, high, apart / _FINE)
        density = np.zeros(len(places))
        for at, mass in sections:
            density += _density(places, at, mass, apart)
        return cls(log_step=places, weight=density / np.sum(density))


def _sections(log_step: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return places of sections in order, and what each has."""
    at, number = np.unique(np.round(log_step, 9), return_inverse=True)
    mass = np.bincount(number, weight)
    highest = np.zeros(len(at))
    np.maximum.at(highest, number, weight)
    whole = int(np.argmax(mass))
    return at, np.maximum(mass, highest * mass[whole] / highest[whole])


def _density(places: Floats, at: Floats, mass: Floats, apart: float) -> Floats:
    """Return the density of u at places, but for a constant of all shares."""
    if len(at) < _FEWEST:
        gap = (places[:, None] - at) / apart
        return np.asarray(np.exp(-0.5 * gap**2) @ mass / np.sqrt(2.0 * np.pi))
    from scipy.interpolate import CubicSpline  # it is slow to import

    spline = CubicSpline(at, np.log(mass), bc_type="natural")
    # Beyond the upper end the last slope goes on; (1) below the least place.
    above = np.maximum(places - at[-1], 0.0)
    log_density = spline(np.clip(places, at[0], at[-1])) + above * min(float(spline(at[-1], 1)), 0.0)
    below = np.minimum(places - at[0], 0.0)
    steeper = max(float(np.log(mass[1] / mass[0]) / (at[1] - at[0])) - 1.0, 0.0)
    log_density += below + 0.5 * steeper * np.expm1(2.0 * below)
    return np.asarray(np.exp(log_density))


def _moments(values: Floats, weight: Floats) -> tuple[float, float]:
    mean = float(weight @ values)
    return mean, float(np.sqrt(weight @ (values - mean) ** 2))
