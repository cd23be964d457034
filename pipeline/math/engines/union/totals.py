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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.union.summed_noise import SummedNoise
    from suffice.typing import Floats

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
