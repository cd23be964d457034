"""The normal distribution of a mean: as a prior, and of many cells as their posterior.

Where the variance is unknown too, a mean or a coefficient has Student's t as its marginal.
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


def log_student(degrees: Floats, loc: Floats, width: Floats, points: Floats) -> Floats:
    """Log densities of t distributions with these degrees of freedom, centres and widths."""
    from scipy.special import gammaln

    half = degrees / 2.0
    large = np.maximum(half, _LARGE)
    # Two large log gammas would cancel.
    series = 0.5 * np.log(large) - 1.0 / (8.0 * large) + 1.0 / (192.0 * large**3)
    small = np.minimum(half, _LARGE)
    ratio = np.where(half < _LARGE, gammaln(small + 0.5) - gammaln(small), series)
    standard = (points - loc) / width
    log_density: Floats = (
        ratio
        - 0.5 * np.log(np.pi * degrees)
        - np.log(width)
        - (half + 0.5) * np.log1p(standard * standard / degrees)
    )
    return log_density


@dataclass(frozen=True, slots=True)
class Normal(Prior):
    """Normal distribution: mean ``loc``, standard deviation ``scale`` > 0."""

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
        """Means."""
        return self.loc

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.scale

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import ndtri

        quantiles: Floats = self.loc[:, None] + self.scale[:, None] * ndtri(np.asarray(q))
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        size = (draws, len(self.loc))
        return {self.name: self.loc + self.scale * rng.standard_normal(size)}

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, 2)."""
        precision = self.scale**-2.0
        return np.stack([precision, precision * self.loc], axis=-1)

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution with these natural parameters."""
        return replace(self, loc=eta[..., 1] / eta[..., 0], scale=eta[..., 0] ** -0.5)

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser, up to a constant."""
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
        return replace(self, scale=np.sqrt(self.scale**2 + variance))
