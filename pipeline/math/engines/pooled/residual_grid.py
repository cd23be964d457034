r"""A common grid of what a population is the law of, and each cell's likelihood as a measure on it.

With a slope b on log size, populations are laws of

.. math:: z = x - b (v - v_0). \qquad (1)

A cell's nodes (``cells``) are a measure of z. Their weights are moved to the two nearest points of a common
grid, such that mass and mean stay, so that integrals of any function that is smooth on the grid are those
over the nodes, but for what a variance of at most a quarter of a squared step adds; integrals under many
populations are then one product of matrices.

The grid is evenly spaced in the first term of (2) of ``cells``: dense where populations may be narrow, and
wide elsewhere.

Symbols: b: ``slope``; v_0: ``origin``; c, d: ``focus``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes
    from suffice.typing import Floats

_STEP = 0.05
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
    def _scaled(self) -> Focus:
        # About the centre points are a seventh of the least spread that matters apart.
        return replace(self.focus, width=self.focus.width * 3.0)

    @property
    def _half(self) -> int:
        scaled = self._scaled
        far = scaled.coordinate(np.array([scaled.centre + scaled.reach + _REACH]))
        return int(np.ceil(far[0] / _STEP))

    @property
    def points(self) -> Floats:
        """z_k, (n_points,)."""
        half = self._half
        return self._scaled.position(np.arange(-half, half + 1, dtype=np.float64) * _STEP)

    def placed(self, nodes: Nodes, slope: float) -> Placed:
        """Place the nodes of some cells on the grid."""
        n_points = 2 * self._half + 1
        # Places among some hundred points need no more than seven digits.
        unit = self._scaled.width
        position = ((nodes.position - self.focus.centre) / unit).astype(np.float32)
        moved = ((slope / unit) * (nodes.log_size - self.origin)).astype(np.float32)
        place = (position[:, :, None] - moved[:, None, :]).ravel()[nodes.kept]
        if self.focus.reach:
            even = np.float32(self.focus.reach / unit)
            beyond = place - np.clip(place, -even, even)
            place -= beyond
            place += np.arcsinh(beyond)
        else:
            np.arcsinh(place, out=place)
        place *= np.float32(1.0 / _STEP)
        place += np.float32(self._half)
        np.clip(place, 0.0, n_points - 1.01, out=place)
        first = place.astype(np.int32)
        share = place - first
        first += nodes.row * np.int32(n_points)
        return Placed(first=first, share=share, shape=(len(nodes.position), n_points), weight=nodes.of_kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where the nodes of some cells that have a weight are on a grid."""

    first: NDArray[np.int32]
    share: NDArray[np.float32]
    shape: tuple[int, int]
    weight: Floats

    def measure(self) -> Floats:
        """Return each cell's weights on the grid, (n_cells, n_points)."""
        size = self.shape[0] * self.shape[1]
        upper = self.weight * self.share
        total = np.bincount(self.first, self.weight - upper, size).astype(np.float64)
        total[1:] += np.bincount(self.first, upper, size)[:-1]
        return total.reshape(self.shape)

    def at_nodes(self, values: Floats) -> Floats:
        """Return values that are known on the grid, (n_cells, n_points), at the nodes that have a weight."""
        flat = values.ravel()
        low = flat.take(self.first)
        result: Floats = low + (flat.take(self.first + 1) - low) * self.share
        return result

    def at_nodes_of_all(self, values: Floats) -> Floats:
        """Return values that are the same of all cells, (n_points,), at the nodes that have a weight."""
        local = self.first % np.int32(self.shape[1])
        low = values.take(local)
        result: Floats = low + (values.take(local + 1) - low) * self.share
        return result
