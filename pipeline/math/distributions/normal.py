r"""Normal distributions of a mean: as a prior, and of many cells; Student's t where variances are unknown.

Model.

.. math:: p(x) = \frac 1 {s \sqrt{2 \pi}} e^{-(x - m)^2 / 2 s^2}, \qquad
    \eta = (s^{-2}, m s^{-2}), \qquad \log Z = \log s + \frac{m^2}{2 s^2}. \qquad (1)

Where a variance is unknown too, a mean or a coefficient has Student's t of :math:`\nu` degrees of freedom as
its marginal, about m and of width w: with z = (x - m) / w

.. math:: \log p(x) = \log \frac{\Gamma(\nu / 2 + 1 / 2)}{\Gamma(\nu / 2)} - \frac{\log(\pi \nu)} 2 - \log w
    - \frac{\nu + 1} 2 \log\left(1 + \frac{z^2} \nu\right). \qquad (2)

Symbols:

- m: ``loc``, (n_cells,), any number, in the unit of x
- s, w: ``scale`` and ``width``, > 0, in the unit of x
- nu: ``degrees``, > 0

Method. Formulas, right but for rounding. For :math:`\nu \ge 200` the ratio of gamma functions is the series
:math:`\log \Gamma(u + 1/2) - \log \Gamma(u) = \tfrac 1 2 \log u - \tfrac 1 {8 u} + \tfrac 1 {192 u^3} -
\dots` (from DLMF 5.11.1), whose next term, 1 / (640 u^5), is below 2e-13 there.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.distribution import Coordinate, Line, OneParameter, Prior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats

_LARGE = 100.0
"""Half degrees of freedom from which the series stands for the ratio of gamma functions."""


def log_student(degrees: Floats, loc: Floats, width: Floats, points: Floats) -> Floats:
    """Log densities of t distributions with these degrees of freedom, centres and widths."""
    from scipy.special import gammaln

    # u = nu / 2.
    u = degrees / 2.0
    large = np.maximum(u, _LARGE)
    # Two large log gammas would cancel.
    series = 0.5 * np.log(large) - 1.0 / (8.0 * large) + 1.0 / (192.0 * large**3)
    small = np.minimum(u, _LARGE)
    ratio = np.where(u < _LARGE, gammaln(small + 0.5) - gammaln(small), series)
    z = (points - loc) / width
    log_density: Floats = (
        ratio - 0.5 * np.log(np.pi * degrees) - np.log(width) - (u + 0.5) * np.log1p(z * z / degrees)
    )
    return log_density


@dataclass(frozen=True, slots=True)
class Normal(Prior):
    r"""Normal distribution: mean ``loc``, standard deviation ``scale`` > 0.

    .. math:: p(x) \propto e^{-(x - loc)^2 / 2 \, scale^2}
    """

    loc: float
    scale: float

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.normal(self.loc, self.scale, size)

    def distribution(self) -> NormalDistribution:
        """Return it as the distribution of one cell."""
        return NormalDistribution(**self._of_one_cell())


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalDistribution(OneParameter):
    """Normal distributions of a mean.

    Attributes
    ----------
    loc, scale : ndarray of shape (n_cells,), float64
        As in ``Normal``.
    name : str
        The parameter's.
    """

    loc: Floats
    scale: Floats
    name: str = "mean"

    def mean(self, parameter: str) -> Floats:
        """Means, m."""
        return self.loc

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, s."""
        return self.scale

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles, m + s z with Phi(z) = q."""
        from scipy.special import ndtri

        # m + s z.
        quantiles: Floats = self.loc[:, None] + self.scale[:, None] * ndtri(np.asarray(q))
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        size = (draws, len(self.loc))
        return {self.name: self.loc + self.scale * rng.standard_normal(size)}

    def natural(self) -> Floats:
        """Return the natural parameters (1 / s^2, m / s^2), (n_cells, 2)."""
        # (1): a precision, and the precision times the mean.
        precision = self.scale**-2.0
        return np.stack([precision, precision * self.loc], axis=-1)

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution with these natural parameters."""
        return replace(self, loc=eta[..., 1] / eta[..., 0], scale=eta[..., 0] ** -0.5)

    def log_normaliser(self) -> Floats:
        """Return log Z = log s + m^2 / 2 s^2, up to a constant."""
        # (1).
        return np.log(self.scale) + (self.loc / self.scale) ** 2 / 2.0

    def coordinate(self) -> Coordinate:
        """Return the mean as it is."""
        from scipy.special import ndtr

        loc, scale = self.loc, self.scale
        return Coordinate(
            centre=loc,
            width=scale,
            cdf=lambda position: np.asarray(ndtr((position - loc) / scale)),
            log_density=lambda position: (
                -0.5 * ((position - loc) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2.0 * np.pi)
            ),
            line=Line.IDENTITY,
        )

    def widened(self, variance: Floats) -> Self:
        """Weaken distributions so that their variances rise by this much (n,)."""
        # The sum of independent normal numbers: variances add up.
        return replace(self, scale=np.sqrt(self.scale**2 + variance))
