"""The distribution of what the records of merged cells add up to: quantities by name, cell by cell."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.typing import Floats

    CellPoints: TypeAlias = Callable[[], tuple[Floats, Mapping[str, Floats]]]
    """Returns weights (n_points,) and quantities, each (n_points,) or (n_points, n_entries)."""

POINTS = 1 << 13
"""Points of a cell: the ends of intervals are right to about 0.03 standard deviations."""
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionDistribution:
    """Made by ``UnionDistribution.of``.

    Attributes
    ----------
    cells : tuple of callable
        One for each merged cell: its weighted points.
    moments : dict of str to tuple of ndarray
        Means and standard deviations by quantity: (n_cells,) or (n_cells, n_entries).
    """

    cells: tuple[CellPoints, ...] = field(repr=False)
    moments: Mapping[str, tuple[Floats, Floats]] = field(repr=False)

    @classmethod
    def of(cls, cells: Sequence[CellPoints]) -> UnionDistribution:
        """Sum up the moments of every cell."""
        means: dict[str, list[Floats]] = {}
        sds: dict[str, list[Floats]] = {}
        for cell in cells:
            weight, quantities = cell()
            for name, values in quantities.items():
                mean = weight @ values
                means.setdefault(name, []).append(mean)
                sds.setdefault(name, []).append(np.sqrt(weight @ (values - mean) ** 2))
        moments = {name: (np.array(means[name]), np.array(sds[name])) for name in means}
        return cls(cells=tuple(cells), moments=moments)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.moments)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.moments[parameter][0]

    def sd(self, parameter: str) -> Floats:
        """Standard deviations."""
        return self.moments[parameter][1]

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles of the points; they rest on no draws."""
        levels = np.asarray(q, dtype=np.float64)
        result = []
        for cell in self.cells:
            weight, quantities = cell()
            values = quantities[parameter]
            columns = values.reshape(len(weight), -1).T
            quantiles = np.array([_weighted_quantiles(column, weight, levels) for column in columns])
            result.append(quantiles.reshape(*values.shape[1:], len(levels)))
        return np.array(result)

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Return None: only points are known."""
        return None

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: points, chosen by their weights."""
        drawn: dict[str, list[Floats]] = {name: [] for name in self.moments}
        for cell in self.cells:
            weight, quantities = cell()
            chosen = rng.choice(len(weight), draws, p=weight)
            for name, values in quantities.items():
                drawn[name].append(values[chosen])
        return {name: np.stack(parts, axis=1) for name, parts in drawn.items()}


def evenly_spread(dimensions: int) -> Floats:
    """Return a Latin hypercube of ``POINTS`` points, (dimensions, POINTS), the same at every call."""
    middles = (np.arange(POINTS) + 0.5) / POINTS
    return np.random.default_rng(_SEED).permuted(np.tile(middles, (dimensions, 1)), axis=1)


def _weighted_quantiles(values: Floats, weight: Floats, levels: Floats) -> Floats:
    """Return the least values below or at which so much of the weight is."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    places = np.searchsorted(below / below[-1], levels)
    return values[order][np.minimum(places, len(values) - 1)]
