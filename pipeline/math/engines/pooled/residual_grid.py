r"""A common grid of what a population is the law of, and each cell's likelihood as a measure on it.

With a slope b on log size, populations are laws of

.. math:: z = x - b (\min(v, f) - v_0). \qquad (1)

A cell's nodes (``cells``) are a measure of z. Their weights are moved to the three nearest points of a common
grid, such that mass and mean stay and the variance is a quarter of a squared step more, wherever between
points a node is. By two points it is between nothing and that much, and thousands of cells that are alike
tell the difference. Integrals of any function that is smooth on the grid are those over the nodes, but for
this variance, which ``sharpened`` takes off; integrals under many populations are one product of matrices.

Where the spread of a population depends on the size of a cell, the grid is of z and of ``knots`` of log size:
a node is moved to the nearest points of the two nearest knots, in proportion to how near they are. A
population is then that of each knot, and between two knots a mixture of theirs; beyond the outermost it is
theirs.

The grid is evenly spaced in the first term of (2) of ``cells``: dense where populations may be narrow, and
wide elsewhere.

Symbols: b: ``slope``; v_0: ``origin``; f: ``highest`` (``normal_approximation``); c, d: ``focus``; g:
``spread_slope``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats

_STEP, _STEP_OF_KNOTS = 0.05, 0.08
_REACH = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualGrid:
    """Points z, more closely spaced than any population that matters is wide, of every knot.

    Attributes
    ----------
    focus : Focus
    origin : float
        The log size at which populations have their location and spread.
    knots : tuple of float
        Log sizes, evenly spaced; the origin alone where spreads do not depend on the size.
    highest : float
        The log size that larger ones count as; infinity where there are none.
    """

    focus: Focus
    origin: float
    knots: tuple[float, ...] = (0.0,)
    highest: float = np.inf

    def beyond_origin(self, log_size: Floats) -> Floats:
        """Return how far log sizes are above the origin: what slopes multiply."""
        result: Floats = np.minimum(log_size, self.highest) - self.origin
        return result

    @property
    def _scaled(self) -> Focus:
        # About the centre points are a seventh of the least spread that matters apart.
        return replace(self.focus, width=self.focus.width * 3.0)

    @property
    def _step(self) -> float:
        return _STEP if len(self.knots) == 1 else _STEP_OF_KNOTS

    @property
    def _half(self) -> int:
        scaled = self._scaled
        far = scaled.coordinate(np.array([scaled.centre + scaled.reach + _REACH]))
        return int(np.ceil(far[0] / self._step))

    @property
    def points(self) -> Floats:
        """z_k, (n_points,): the same of every knot."""
        half = self._half
        return self._scaled.position(np.arange(-half, half + 1, dtype=np.float64) * self._step)

    @property
    def n_points(self) -> int:
        """Of all knots."""
        return (2 * self._half + 1) * len(self.knots)

    def components(
        self, population: Population, location: Floats, spread: Floats, spread_slope: Floats
    ) -> list[tuple[float, Floats]]:
        """Return shares and densities of components, (n_hyperparameters, n_knots n_points)."""
        points = self.points
        if len(self.knots) == 1:
            return population.components(points, location, spread)
        growth = np.exp(spread_slope[:, None] * (np.array(self.knots) - self.origin))
        # Rows are hyperparameters at knots, knots last: their densities stand together.
        of_knots = np.maximum(spread[:, None] * growth, self.focus.width).ravel()
        parts = population.components(points, np.repeat(location, len(self.knots)), of_knots)
        return [(share, density.reshape(len(location), -1)) for share, density in parts]

    def drawn_knots(self, log_size: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw which knot each of some log sizes has the population of."""
        if len(self.knots) == 1:
            return np.zeros(len(log_size), dtype=np.int64)
        return np.floor(self._at_knots(log_size) + rng.random(len(log_size))).astype(np.int64)

    def _at_knots(self, log_size: Floats) -> Floats:
        """Return where log sizes are among several knots, in 0..n_knots - 1."""
        apart = self.knots[1] - self.knots[0]
        result: Floats = np.clip((log_size - self.knots[0]) / apart, 0.0, len(self.knots) - 1.0001)
        return result

    def placed(self, nodes: Nodes, slope: float) -> Placed:
        """Place the nodes of some cells on the grid."""
        n_points, n_knots = 2 * self._half + 1, len(self.knots)
        # Places among some hundred points need no more than seven digits.
        unit = self._scaled.width
        position = ((nodes.position - self.focus.centre) / unit).astype(np.float32)
        moved = ((slope / unit) * self.beyond_origin(nodes.log_size)).astype(np.float32)
        place = (position[:, :, None] - moved[:, None, :]).ravel()[nodes.kept]
        if self.focus.reach:
            even = np.float32(self.focus.reach / unit)
            beyond = place - np.clip(place, -even, even)
            place -= beyond
            place += np.arcsinh(beyond)
        else:
            np.arcsinh(place, out=place)
        place *= np.float32(1.0 / self._step)
        place += np.float32(self._half)
        np.clip(place, 1.0, n_points - 2.01, out=place)
        first = place.astype(np.int32)
        share = place - first
        first += nodes.row * np.int32(n_points * n_knots)
        of_knot, above = None, 0
        if n_knots > 1:
            at_size, n_sizes = self._at_knots(nodes.log_size).astype(np.float32), nodes.log_size.shape[1]
            at_knot = at_size.ravel()[nodes.row * n_sizes + nodes.kept % n_sizes]
            knot = at_knot.astype(np.int32)
            first += knot * np.int32(n_points)
            of_knot, above = at_knot - knot, n_points
        return Placed(
            first=first,
            share=share,
            of_knot=of_knot,
            above=above,
            shape=(len(nodes.position), n_points * n_knots),
            weight=nodes.of_kept,
        )


def sharpened(density: Floats) -> Floats:
    """Return densities (n_densities, n_points) less an eighth of their second differences.

    Integrals are then those over nodes, whose weights a grid has with that much more variance.
    """
    result = density.copy()
    result[:, 1:-1] -= (density[:, 2:] - 2.0 * density[:, 1:-1] + density[:, :-2]) / 8.0
    return np.maximum(result, 0.0, out=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where the nodes of some cells that have a weight are on a grid.

    Attributes
    ----------
    first : ndarray of shape (n_kept,), int32
        The lower of two points of the lower of two knots, of all cells in C order.
    share : ndarray of shape (n_kept,), float32
        How far towards the upper point.
    of_knot : ndarray of shape (n_kept,), float32, or None
        How far towards the upper knot; None of a single one.
    above : int
        How far after a point that of the next knot stands.
    shape : (int, int)
    weight : ndarray of shape (n_kept,), float64
    """

    first: NDArray[np.int32]
    share: NDArray[np.float32]
    of_knot: NDArray[np.float32] | None
    above: int
    shape: tuple[int, int]
    weight: Floats

    def measure(self) -> Floats:
        """Return each cell's weights on the grid, (n_cells, n_points)."""
        if self.of_knot is None:
            return self._measure(self.weight, 0)
        upper = self.weight * self.of_knot
        return self._measure(self.weight - upper, 0) + self._measure(upper, self.above)

    def _measure(self, weight: Floats, moved: int) -> Floats:
        size = self.shape[0] * self.shape[1]
        is_upper = self.share >= 0.5
        nearest = self.first + is_upper + np.int32(moved)
        # From the nearest point, in -1/2..1/2.
        place = self.share - is_upper
        below, above = (0.5 * weight * (0.5 + sign * place) ** 2 for sign in (-1.0, 1.0))
        total = np.bincount(nearest, weight - below - above, size).astype(np.float64)
        total[:-1] += np.bincount(nearest, below, size)[1:]
        total[1:] += np.bincount(nearest, above, size)[:-1]
        return total.reshape(self.shape)

    def at_nodes(self, values: Floats) -> Floats:
        """Return values that are known on the grid, (n_cells, n_points), at the nodes that have a weight."""
        return self._between(values.ravel(), self.first)

    def at_nodes_of_all(self, values: Floats) -> Floats:
        """Return values that are the same of all cells, (n_points,), at the nodes that have a weight."""
        return self._between(values, self.first % np.int32(self.shape[1]))

    def _between(self, flat: Floats, first: NDArray[np.int32]) -> Floats:
        low = flat.take(first)
        result: Floats = low + (flat.take(first + 1) - low) * self.share
        if self.of_knot is None:
            return result
        next_knot = first + np.int32(self.above)
        low = flat.take(next_knot)
        above = low + (flat.take(next_knot + 1) - low) * self.share
        result += (above - result) * self.of_knot
        return result
