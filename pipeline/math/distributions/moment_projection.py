"""Noisy moments of several columns, in half ranges about the middle of their bounds, made possible.

A regression is scaled to half ranges, and back to the columns' units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.terms.statistics.block import Quantity, combination
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of, pair_name

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Moments of z = (x - centre) / half_range; without first moments, of z = x / half_range.

    Attributes
    ----------
    n : ndarray of shape (n_cells,), float64
        Rows.
    total : ndarray of shape (n_cells, d), float64
        Sums of z; 0 where first moments are not released.
    products : ndarray of shape (n_cells, d, d), float64
        Sums of z z^T.
    centre, half_range : ndarray of shape (d,), float64
        In the columns' units.
    """

    n: Floats
    total: Floats
    products: Floats
    centre: Floats
    half_range: Floats

    def take(self, order: NDArray[np.int64]) -> Moments:
        """Return those of some cells, in an order."""
        return replace(self, n=self.n[order], total=self.total[order], products=self.products[order])

    @property
    def scatter(self) -> Floats:
        """Sums of squares and products about the means, (n_cells, d, d); 0 where there are no rows."""
        return self.products - _outer_over_n(self.total, self.n)


def estimate(statistic: NoisyStatistic) -> Moments:
    """Return the unbiased estimates of the moments, possible or not."""
    columns, linear = statistic.plan.parameters.columns, is_linear(statistic.plan.parameters)
    lattices = [lattice_of(column, linear=linear) for column in columns]
    maps = {(quantity.name, quantity.component): quantity for quantity in statistic.plan.quantities}
    n_map, names, size = maps["n", None], [column.name for column in columns], len(columns)
    nothing = Quantity(name="nothing", coefficients={})
    totals = [maps.get(("total", name), nothing) for name in names]
    n = statistic.estimates(n_map)
    total, products = np.zeros((len(n), size)), np.zeros((len(n), size, size))
    # Combined in exact fractions: far from zero, a difference of rounded sums would lose its digits.
    for i in range(size):
        centre, half_range = lattices[i]
        if linear:
            parts = [(1 / half_range, totals[i]), (-centre / half_range, n_map)]
            total[:, i] = statistic.estimates(combination("total", parts))
        for j in range(i + 1):
            other, other_half_range = lattices[j]
            unit = half_range * other_half_range
            key = (
                ("total_of_squares", names[i])
                if i == j
                else ("total_of_products", pair_name(names[j], names[i]))
            )
            parts = [
                (1 / unit, maps[key]),
                (-centre / unit, totals[j]),
                (-other / unit, totals[i]),
                (centre * other / unit, n_map),
            ]
            products[:, i, j] = products[:, j, i] = statistic.estimates(combination("product", parts))
    return Moments(
        n=n,
        total=total,
        products=products,
        centre=_floats([centre for centre, _ in lattices]),
        half_range=_floats([half_range for _, half_range in lattices]),
    )


def project(statistic: NoisyStatistic) -> Moments:
    r"""Return possible moments: :math:`n \ge 0`, :math:`|t_i| \le n`, and a scatter that rows could have.

    Negative eigenvalues of the scatter become 0; where its diagonal is then above
    :math:`n - t_i^2 / n`, rows and columns are shrunk together, which keeps it positive semidefinite and
    so brings every product below n as well.
    """
    raw = estimate(statistic)
    n = np.maximum(raw.n, 0.0)
    total = np.clip(raw.total, -n[:, None], n[:, None])
    values, vectors = np.linalg.eigh(raw.products - _outer_over_n(total, n))
    scatter = (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    diagonal = np.einsum("cii->ci", scatter)
    most = n[:, None] - np.einsum("cii->ci", _outer_over_n(total, n))
    shrink = np.sqrt(
        np.divide(np.maximum(most, 0.0), diagonal, out=np.ones_like(diagonal), where=diagonal > most)
    )
    scatter = scatter * shrink[:, :, None] * shrink[:, None, :]
    return Moments(
        n=n,
        total=total,
        products=scatter + _outer_over_n(total, n),
        centre=raw.centre,
        half_range=raw.half_range,
    )


def _outer_over_n(total: Floats, n: Floats) -> Floats:
    share = np.divide(total, n[:, None], out=np.zeros_like(total), where=n[:, None] > 0.0)
    return total[:, :, None] * share[:, None, :]


def _floats(numbers: list[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])
