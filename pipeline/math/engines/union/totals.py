r"""Posteriors of the exact totals of one merged cell, from the sums of its released values.

Component j of m merged cells is released as :math:`y_j = t_j + z_j`: the total :math:`t_j \ge 0` of all their
records, and a sum of m independent noises. Nothing is assumed of how records differ from cell to cell. Given
an exponent a, totals are independent, and

.. math:: p(t_j \mid y_j, a) \propto (1 + t_j / R)^{-a} \, f_m(y_j - t_j), \qquad 0 \le t_j,

with R what one record adds to all components. The exponents 0, 1/2, 1, 3/2 are equally likely a priori, and
are weighed by their evidence over all components of the cell: whether small totals are many is learned from
the release. Priors are normalised over 0..M records, M the released N and three standard deviations of its
noise.
"""

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


EXPONENTS = (0.0, 0.5, 1.0, 1.5)
_EVENLY, _FROM_ZERO = 2049, 513
"""Nodes of a total whose integers lie too densely to be summed: over its window, and in octaves from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsOfCell:
    """Quasi-random points of the totals of one merged cell.

    Attributes
    ----------
    values : ndarray of shape (n_components,), float64
        Sums of released values, in lattice steps.
    record : float
        R, what one record adds to all components, in lattice steps.
    noise : SummedNoise
    """

    values: Floats
    record: float
    noise: SummedNoise

    def points(self, shares: Floats) -> Floats:
        """Return totals (n_points, n_components) in lattice steps, equally likely.

        Parameters
        ----------
        shares : ndarray of shape (n_components + 1, n_points), float64
            Evenly spread over 0..1 in each row: they choose the exponent, then every total.
        """
        spread = self.noise.sd * np.sqrt(len(self.values))
        most = max(float(np.sum(self.values)) + 3.0 * spread, self.record) / self.record
        tables = [self._table(value) for value in self.values.tolist()]
        evidence = np.zeros(len(EXPONENTS))
        for place, exponent in enumerate(EXPONENTS):
            normaliser = np.log(self.record * _integral(exponent, most))
            evidence[place] = sum(log_mass[place] - normaliser for _, _, log_mass in tables)
        weight = np.exp(evidence - np.max(evidence))
        chosen = np.searchsorted(np.cumsum(weight / np.sum(weight))[:-1], shares[0], side="right")
        result = np.empty((shares.shape[1], len(tables)))
        for component, (nodes, cumulative, _) in enumerate(tables):
            for place in range(len(EXPONENTS)):
                points = np.flatnonzero(chosen == place)
                result[points, component] = self._inverse(
                    nodes, cumulative[place], shares[component + 1, points]
                )
        return result

    def _table(self, value: float) -> tuple[Floats, Floats, Floats]:
        """Nodes (n,), distribution functions there (n_exponents, n), and logs of the masses."""
        reach = self.noise.reach
        first, last = np.floor(max(value - reach, 0.0)), np.ceil(max(value, 0.0) + reach)
        if self.noise.is_discrete:
            nodes = np.arange(first, last + 1.0)
        else:
            nodes = np.append(np.linspace(first, last, _EVENLY), np.clip(value, first, last))
            if first == 0.0:
                octaves = np.expm1(np.linspace(0.0, np.log1p(last / self.record), _FROM_ZERO))
                nodes = np.append(nodes, np.minimum(self.record * octaves, last))
            nodes = np.unique(nodes)
        log_noise = self.noise.log_density(nodes - value)
        log_value = log_noise - np.outer(EXPONENTS, np.log1p(nodes / self.record))
        top = np.max(log_value, axis=1, keepdims=True)
        density = np.exp(log_value - top)
        if self.noise.is_discrete:
            cumulative = np.cumsum(density, axis=1)
        else:
            steps = np.diff(nodes) * (density[:, 1:] + density[:, :-1]) / 2.0
            cumulative = np.concatenate([np.zeros((len(density), 1)), np.cumsum(steps, axis=1)], axis=1)
        mass = cumulative[:, -1:]
        return nodes, cumulative / mass, (np.log(mass) + top)[:, 0]

    def _inverse(self, nodes: Floats, cumulative: Floats, shares: Floats) -> Floats:
        if self.noise.is_discrete:
            return nodes[np.minimum(np.searchsorted(cumulative, shares), len(nodes) - 1)]
        return np.interp(shares, cumulative, nodes)


def _integral(exponent: float, most: float) -> float:
    """Integral of (1 + t)^-a over 0..most."""
    if exponent == 1.0:
        return float(np.log1p(most))
    return float(((1.0 + most) ** (1.0 - exponent) - 1.0) / (1.0 - exponent))
