r"""A common grid of what a population is the law of, and each cell's likelihood as a measure on it.

With a slope b on log size, populations are laws of

.. math:: z = x - b (v - v_0). \qquad (1)

A cell's nodes (``cells``) are a measure of z. Their weights are moved to four points of a common grid by the
weights of cubic interpolation, so that integrals of any function that is smooth on the grid are those over the
nodes; integrals under many populations are then one product of matrices.

The grid is :math:`z_k = c + d \sinh u_k` with evenly spaced u: dense about the centre of populations, where
they may be narrow, and wide elsewhere.

Symbols: b: ``slope``; v_0: ``origin``; c, d: ``focus``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes
    from suffice.typing import Floats

_STEP = 0.06
_REACH = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualGrid:
    """Points z, more closely spaced than any population that matters is wide.

    Attributes
    ----------
    focus : Focus
    origin : float
        The log size at which populations have their location.
    """

    focus: Focus
    origin: float

    @property
    def _half(self) -> int:
        return int(np.ceil(np.arcsinh(_REACH / self._unit) / _STEP))

    @property
    def _unit(self) -> float:
        # About the centre points are a sixth of the least spread that matters apart.
        return self.focus.width * 3.0

    @property
    def points(self) -> Floats:
        """z_k, (n_points,)."""
        half = self._half
        points: Floats = self.focus.centre + self._unit * np.sinh(np.arange(-half, half + 1) * _STEP)
        return points

    def placed(self, nodes: Nodes, slope: float) -> Placed:
        """Place the nodes of some cells on the grid."""
        z = nodes.position[:, :, None] - slope * (nodes.log_size - self.origin)[:, None, :]
        kept = np.flatnonzero(nodes.weight)
        n_points = 2 * self._half + 1
        place = np.arcsinh((z.ravel()[kept] - self.focus.centre) / self._unit) / _STEP + self._half
        place = np.clip(place, 1.0, n_points - 2.0 - 1e-9)
        first = place.astype(np.int64) - 1
        share = place - first
        first += kept // nodes.weight[0].size * n_points
        return Placed(
            kept=kept,
            first=first,
            shares=cubic(share),
            shape=(len(nodes.position), n_points),
            weight=nodes.weight.ravel()[kept],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where the nodes of some cells are on a grid."""

    kept: np.ndarray
    first: np.ndarray
    shares: tuple[Floats, Floats, Floats, Floats]
    shape: tuple[int, int]
    weight: Floats

    def measure(self) -> Floats:
        """Return each cell's weights on the grid, (n_cells, n_points)."""
        size = self.shape[0] * self.shape[1]
        total = np.zeros(size)
        for tap, share in enumerate(self.shares):
            total += np.bincount(self.first + tap, self.weight * share, size)
        return total.reshape(self.shape)

    def at_nodes(self, values: Floats) -> Floats:
        """Return values that are known on the grid, (n_cells, n_points), at the nodes that are kept."""
        flat = values.ravel()
        result: Floats = sum(  # type: ignore[assignment]
            flat.take(self.first + tap) * share for tap, share in enumerate(self.shares)
        )
        return result
