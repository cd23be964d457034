r"""The noise on sums of released values: m discrete Laplace numbers of scale b, added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.laplace_sums import log_density_of_sum, log_mass_of_sum

if TYPE_CHECKING:
    from suffice.typing import Floats

NATS = 40.0
"""How far the log density falls within ``reach``."""
MOST_INTEGERS = 1 << 15
"""Distances up to which probabilities are those of integers: beyond, integers lie densely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedNoise:
    """The distribution of the noise on one total; made by ``SummedNoise.of``.

    Attributes
    ----------
    terms : int
        m, how many numbers are added.
    scale : float
        b of the continuous Laplace numbers with the variance of the discrete ones, in lattice steps.
    log_mass : ndarray of shape (n,), float64, or None
        Log probabilities of 0..n - 1, where so many hold every distance that matters.
    """

    terms: int
    scale: float
    log_mass: Floats | None

    @classmethod
    def of(cls, terms: int, scale: float, farthest: float, *, is_whole: bool = True) -> SummedNoise:
        """Work out the distribution to ``reach`` beyond the farthest value from the possible totals.

        Parameters
        ----------
        terms : int, > 0
        scale : float, > 0
            b of one discrete Laplace number, in lattice steps.
        farthest : float, >= 0
            In lattice steps.
        is_whole : bool
            Whether the noise is a whole number of steps; else it is taken for continuous.
        """
        # 2 q / (1 - q)^2 = 1 / (2 sinh(1 / 2 b)^2) is the variance of one, 2 b^2 that of a continuous one.
        alike = 0.5 / math.sinh(0.5 / scale) if is_whole else scale
        noise = cls(terms=terms, scale=alike, log_mass=None)
        most = math.ceil(noise.reach + farthest) + 1
        if most > MOST_INTEGERS or not is_whole:
            return noise
        return cls(terms=terms, scale=alike, log_mass=log_mass_of_sum(most, terms, scale))

    @property
    def is_discrete(self) -> bool:
        """Whether totals are whole numbers of steps."""
        return self.log_mass is not None

    @property
    def sd(self) -> float:
        """Standard deviation, in lattice steps."""
        return math.sqrt(2.0 * self.terms) * self.scale

    @property
    def reach(self) -> float:
        """Distance, in lattice steps, at which the density is ``NATS`` below its top, or a little farther."""
        distances = np.linspace(0.0, NATS + 12.0 * math.sqrt(2.0 * self.terms), 4096)
        below = log_density_of_sum(distances, self.terms)
        far = np.searchsorted(below[0] - below, NATS)
        return float(distances[min(int(far), len(distances) - 1)]) * self.scale + 1.0

    def log_density(self, distance: Floats) -> Floats:
        """Log density or probability at distances (n,) in lattice steps, up to a constant."""
        if self.log_mass is None:
            return log_density_of_sum(distance / self.scale, self.terms)
        return self.log_mass[np.abs(distance).astype(np.int64)]
