r"""Means and standard deviations under priors that are spread over scales, from pairs chosen for them.

Pairs that are next to impossible may hold most of a moment: of a rate spread over five decades, one that is
e^-22 times as probable as others may have a square that is 10^10 times theirs. So the second moment is
resolved as if it were the posterior's mass: with W as in ``noisy_sum``,

.. math::
    V = \sum_N \int W \sum_j s_j E_j\bigl[(\theta - c)^2 \mid N, S\bigr] \, dS,

:math:`s_j` the components' shares given the pair and c a number near the mean. The same pairs sum up the
first moment about c, which nowhere is larger than the root of the second one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.partial_moments import moments_about
from suffice.pipeline.math.engines.one_sum.nodes import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.marginals import SpreadGammaGamma
    from suffice.pipeline.math.engines.one_sum.nodes import Nodes
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

    Update: TypeAlias = Callable[[Floats, Floats], Distribution]

_NEGLIGIBLE = -16.0
"""Log of the share of a variance that may be left out: 1e-7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """Second moments given pairs, as a factor of their weights.

    Attributes
    ----------
    update : callable
        As in ``LatentSumPosterior``: of the first component.
    marginal : SpreadGammaGamma
        It splits pairs among components.
    centre : ndarray of shape (n_cells,), float64
        c of every cell.
    """

    update: Update
    marginal: SpreadGammaGamma
    centre: Floats

    def take(self, cells: Cells) -> Self:
        """That of the given cells."""
        return replace(self, centre=self.centre[cells])

    def log(self, cell: Cells, n: Floats, total: Floats) -> Floats:
        """Log of the second moment about c."""
        cells, n, total = np.broadcast_arrays(cell, n, total)
        _, second = self.moments(cells.ravel(), n.ravel(), total.ravel())
        return np.log(second).reshape(cells.shape)

    def moments(self, cell: Cells, n: Floats, total: Floats) -> tuple[Floats, Floats]:
        """First two moments about c given pairs (n_pairs,)."""
        first, second = np.zeros((2, len(n)))
        centre = self.centre[cell]
        for share, shift in zip(self.marginal.shares(total, n), self.marginal.shifts, strict=True):
            parts = moments_about(self.update(n, total + shift), centre)
            first += share * parts[0]
            second += share * parts[1]
        return first, second


def spread_moments(
    sums: NoisySums, update: Update, marginal: SpreadGammaGamma, nodes: Nodes
) -> tuple[Floats, Floats]:
    """Return means and standard deviations, each (n_cells,).

    Parameters
    ----------
    nodes : Nodes
        Pairs by their weights alone. Where what they leave out may matter others are resolved.
    """
    cells = sums.n_cells
    square = Square(update=update, marginal=marginal, centre=np.zeros(cells))
    first, _ = square.moments(nodes.cell, nodes.n, nodes.total)
    centre = np.bincount(nodes.cell, nodes.weight * first, cells).astype(np.float64, copy=False)
    square = replace(square, centre=centre)
    means, sds = _summed(square, nodes, np.ones(cells))
    far = np.flatnonzero(_left_out(sums, update, nodes, sds) > _NEGLIGIBLE)
    if far.size:
        given = square.take(far)
        found = resolve(replace(sums.take(far), factor=given))
        total = np.exp(found.log_evidence - nodes.log_evidence[far])
        _, second = given.moments(found.cell, found.n, found.total)
        means[far], sds[far] = _summed(given, replace(found, weight=found.weight / second), total)
    return means, sds


def _summed(square: Square, nodes: Nodes, total: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations from nodes whose weights sum to one over `total`."""
    cells = len(total)
    first, second = square.moments(nodes.cell, nodes.n, nodes.total)
    shift = total * np.bincount(nodes.cell, nodes.weight * first, cells)
    spread = total * np.bincount(nodes.cell, nodes.weight * second, cells)
    return square.centre + shift, np.sqrt(np.maximum(spread - shift**2, 0.0))


def _left_out(sums: NoisySums, update: Update, nodes: Nodes, sds: Floats) -> Floats:
    """Return logs of bounds on what of variances, over themselves, is where sums are next to 0."""
    cells = sums.n_cells
    most = np.zeros(cells)
    np.maximum.at(most, nodes.cell, nodes.n)
    _, second = moments_about(update(most, np.zeros(cells)), np.zeros(cells))
    # Of no N is the noise of a sum of 0 likelier than that of the sums alone.
    is_sum = sums.totals.coefficients[:, 0] == 0.0
    log_noise = -np.abs(sums.totals.values[:, is_sum]) @ sums.totals.rate[is_sum]
    bound: Floats = log_noise + np.log(second) - nodes.log_evidence - 2.0 * np.log(sds)
    return bound
