r"""Each cell under the population of all others: how probable what it released is, and how far out.

Model. With the weights w_h of hyperparameters h given all cells, and a cell's likelihood Z_c(h),

.. math::
    p(h \mid y_{-c}) \propto \frac{w_h}{Z_c(h)}, \qquad
    p(y_c \mid y_{-c}) = \Bigl(\sum_h \frac{w_h}{Z_c(h)}\Bigr)^{-1}. \qquad (1)

How far out is judged given the number that the cell's parts add up to, which tells the size, and is no matter
of the population: with the d-th alternative, in which so many units are moved from one part to the other, and
the released values as d = 0,

.. math::
    P(D = d \mid y_{-c}) \propto \sum_h p(h \mid y_{-c}) \, Z_c^{(d)}(h), \qquad
    \text{tail} = \min\bigl(1, \ 2 \min(P(D \le 0), P(D \ge 0))\bigr), \qquad
    u = P(D < 0) + V \, P(D = 0), \qquad (2)

V uniform. If the population is right, tails are at most p with a chance of at most p, and u is uniform.

Method. Z of alternatives is worked out at ``_SHIFTS`` numbers d, or all where there are fewer, dense about 0
and about what the population expects, and by a monotone cubic of its logarithm between them. Of slopes
``_SLOPES`` are taken, by lines between them. Of 12 cells, chances below 0 differed by at most .005 from those
by every d under hyperparameters that were fitted without the cell; by draws of a population, by .02. Where a
cell weighs so much that (1) rests on few h (``LEAST_EFFECTIVE``), the hyperparameters are fitted again
without it, for at most ``MOST_AGAIN`` cells; others are ``is_rough``.

References
----------
Gelfand, Dey, Chang. Model determination using predictive distributions with implementation via sampling-based
methods. Bayesian Statistics 4, 1992. Czado, Gneiting, Held. Predictive model assessment for count data.
Biometrics 65, 2009.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import CellsSource, Focus, dense_nodes
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.held_out_scores import LEAST_EFFECTIVE, MOST_AGAIN, HeldOutScores
from suffice.pipeline.math.engines.pooled.kept_nodes import BLOCK, KeptNodes
from suffice.pipeline.math.engines.pooled.normal_approximation import moments_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.pooled.cells import Nodes
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters
    from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid
    from suffice.typing import Cells, Floats

_SHIFTS, _SLOPES, _BETWEEN = 40, 7, 64
_FAR, _UNLIKELY = 25.0, 1e-4
_FLOOR = 1e-300


@runtime_checkable
class Movable(CellsSource, Protocol):
    """Cells of which alternatives can be asked for."""

    def moved(self, cells: Cells, shifts: Floats) -> CellsSource:
        """Return the given cells with so many units more in the first part, and less in the last."""

    def parts(self, cells: Cells) -> tuple[Floats, Floats, Floats, float]:
        """Return the first and the last part, about the number of records, and the scale of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(HeldOutScores):
    """How probable what each cell released is under the population of all others; made by ``left_out``.

    Attributes
    ----------
    again : dict of int to PooledDistribution
        The others of cells without which hyperparameters were fitted again.
    """

    again: dict[int, PooledDistribution]


@dataclass(frozen=True, slots=True)
class Without:
    """A source without one of its cells."""

    source: CellsSource
    cell: int

    @property
    def n_cells(self) -> int:
        """One less."""
        return self.source.n_cells - 1

    @property
    def has_sizes(self) -> bool:
        """As that of all."""
        return self.source.has_sizes

    @property
    def middle(self) -> float:
        """As that of all: it only says where to look, and what the hyperprior of logarithms is about."""
        return self.source.middle

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some of the cells that are left."""
        return self.source.nodes(np.where(cells < self.cell, cells, cells + 1), focus)


def left_out(pool: PooledDistribution) -> LeftOut:
    """Return (1) for all cells."""
    hyper = pool.hyperparameters
    inverse, square, log_scale = np.zeros(pool.n_cells), np.zeros(pool.n_cells), np.zeros(pool.n_cells)
    kept = [np.flatnonzero(weight) for weight in hyper.weight]
    of_slope = hyper.densities_by_slope(pool.population, pool.n_cells, kept)
    for cells, nodes in pool.blocks(hyper.grid.focus):
        log_scale[cells] = nodes.log_scale
        for number, rows in enumerate(kept):
            if rows.size:
                z = _measure(hyper, nodes, number) @ of_slope(number).T
                z = np.maximum(z, _FLOOR)
                # Of weights w_h / Z, the square of their mean over the mean of their squares.
                inverse[cells] += (1.0 / z) @ hyper.weight[number][rows]
                square[cells] += z**-2.0 @ hyper.weight[number][rows]
    log_predictive = log_scale - np.log(inverse)
    effective = np.exp(2.0 * np.log(inverse) - np.log(square))
    again = {}
    order = np.argsort(effective)[:MOST_AGAIN]
    for cell in order[effective[order] < LEAST_EFFECTIVE].tolist() if pool.n_cells > 2 else []:
        others = pooled_distribution(Without(pool.blocks.source, cell), pool.population, pool.name, pool.line)
        again[cell] = others
        nodes = pool.blocks.source.nodes(np.array([cell]), others.hyperparameters.grid.focus)
        z = _Population.of(others).of_nodes(nodes, np.zeros(1, dtype=np.int64))
        log_predictive[cell] = float(nodes.log_scale[0] + np.log(np.maximum(z[0], _FLOOR)))
    return LeftOut(log_predictive=log_predictive, effective=effective, again=again)


def standard_scores(pool: PooledDistribution) -> Floats:
    """Return how far out cells are by the normal approximation of their likelihoods, (n_cells,).

    They are of the population of all cells, and say which ones to look at.
    """
    hyper = pool.hyperparameters
    middle, slope = hyper.mean(hyper.location), hyper.mean(hyper.slopes)
    known = moments_of(KeptNodes(pool.blocks.source, pool.blocks.cells), middle)
    expected = middle + slope * hyper.grid.beyond_origin(known.log_size)
    variance = hyper.mean(hyper.spread**2) + hyper.sd(hyper.location) ** 2 + 1.0 / known.precision
    scores: Floats = (known.mean - expected) / np.sqrt(variance)
    return scores


def places(pool: PooledDistribution, known: LeftOut, cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Return P(D < 0), P(D = 0) and P(D > 0) of (2) for some cells, (n_cells,) each."""
    source = pool.blocks.source
    assert isinstance(source, Movable)  # noqa: S101 - who asks has looked
    parts = np.zeros((3, len(cells)))
    alike = np.array([cell not in known.again for cell in cells.tolist()], dtype=bool)
    whole = _Population.without(pool, cells[alike])
    parts[:, alike] = _places(pool, whole, source, cells[alike])
    for place in np.flatnonzero(~alike).tolist():
        others = known.again[int(cells[place])]
        parts[:, [place]] = _places(others, _Population.of(others), source, cells[[place]])
    return parts[0], parts[1], parts[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Population:
    """A population for each of some rows, hyperparameters averaged over: by slope, on one grid."""

    grid: ResidualGrid
    slope: Floats
    density: Floats
    """(n_rows, n_slopes, n_points), the weight of each slope in it."""

    @classmethod
    def of(cls, pool: PooledDistribution) -> _Population:
        """Average over the hyperparameters of a pool, for one row."""
        return cls._averaged(pool, 1, lambda _: np.ones((1, pool.hyperparameters.weight.shape[1])))

    @classmethod
    def without(cls, pool: PooledDistribution, cells: Cells) -> _Population:
        """Average with the weights (1), a row for each cell."""
        hyper = pool.hyperparameters
        blocks = [cells[start : start + BLOCK] for start in range(0, len(cells), BLOCK)]
        nodes = [pool.blocks.source.nodes(block, hyper.grid.focus) for block in blocks]

        def factor(number: int) -> Floats:
            density = hyper.densities(pool.population, number, slice(None)).T
            z = [_measure(hyper, each, number) @ density for each in nodes]
            # Of no more than 1, so that sums of them are numbers.
            return np.asarray(least[:, None] / np.maximum(np.concatenate(z), _FLOOR))

        least = np.ones(len(cells))
        likely = int(np.argmax(np.sum(hyper.weight, axis=1)))
        least = 1.0 / np.maximum(np.max(factor(likely), axis=1, initial=_FLOOR), _FLOOR)
        return cls._averaged(pool, len(cells), factor)

    @classmethod
    def _averaged(cls, pool: PooledDistribution, n_rows: int, factor: Callable[[int], Floats]) -> _Population:
        """Average by weights times a factor; slopes that are not kept, by their neighbours."""
        hyper = pool.hyperparameters
        likely, chosen = _slopes(hyper)
        density, mass = np.zeros((n_rows, len(chosen), hyper.grid.n_points)), np.zeros(n_rows)
        for number in likely.tolist():
            weight = factor(number) * hyper.weight[number]
            mass += np.sum(weight, axis=1)
            shares = np.array(
                [np.interp(hyper.slope[number], hyper.slope[chosen], row) for row in np.eye(len(chosen))]
            )
            density += (
                shares[:, None] * (weight @ hyper.densities(pool.population, number, slice(None)))[:, None, :]
            )
        return cls(
            grid=hyper.grid,
            slope=hyper.slope[chosen],
            density=density / np.maximum(mass, _FLOOR)[:, None, None],
        )

    def of_nodes(self, nodes: Nodes, rows: Cells) -> Floats:
        """Return likelihoods of nodes under the populations of some rows."""
        total = np.zeros(len(rows))
        for number, slope in enumerate(self.slope):
            measure = self.grid.placed(nodes, float(slope)).measure()
            total += np.einsum("ij,ij->i", measure, self.density[rows, number])
        return total


def _measure(hyper: Hyperparameters, nodes: Nodes, number: int) -> Floats:
    return hyper.grid.placed(nodes, float(hyper.slope[number])).measure()


def _slopes(hyper: Hyperparameters) -> tuple[Cells, Cells]:
    """Return the slopes that have a weight, and some of them, evenly spaced."""
    weight = np.sum(hyper.weight, axis=1)
    likely = np.flatnonzero(weight > _UNLIKELY * np.max(weight))
    places = np.unique(np.linspace(0, len(likely) - 1, _SLOPES).round().astype(np.int64))
    return likely, likely[places]


def _places(pool: PooledDistribution, population: _Population, source: Movable, cells: Cells) -> Floats:
    """Return P(D < 0), P(D = 0), P(D > 0), (3, n_cells); a row of the population is of a cell."""
    if not cells.size:
        return np.zeros((3, 0))
    hyper = pool.hyperparameters
    first, last, size, scale = source.parts(cells)
    # What the population expects of the first part, and by how much it varies.
    at = hyper.mean(hyper.location) + hyper.mean(hyper.slopes) * hyper.grid.beyond_origin(np.log1p(size))
    spread = hyper.mean(hyper.spread)
    low, middle, high = (size * pool.line.parameter(at + side * spread) for side in (-1.0, 0.0, 1.0))
    width = np.sqrt((high - low) ** 2 / 4.0 + scale**2 + middle)
    lowest, highest = -np.maximum(first, 0.0) - _FAR * scale, np.maximum(last, 0.0) + _FAR * scale
    shifts, _ = dense_nodes(
        lowest, highest, middle - first, width, n=_SHIFTS, focus=Focus(centre=0.0, width=max(scale, 1.0))
    )
    chosen = [np.unique(np.append(np.rint(row), 0.0)) for row in shifts]
    row = np.repeat(np.arange(len(cells)), [len(each) for each in chosen])
    every = np.concatenate(chosen)
    moved = source.moved(cells[row], every)
    log_chance = np.empty(len(every))
    for start in range(0, len(every), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(every)))
        nodes = moved.nodes(block, population.grid.focus)
        z = population.of_nodes(nodes, row[block])
        log_chance[block] = nodes.log_scale + np.log(np.maximum(z, _FLOOR))
    return np.stack(
        [
            _summed(each, part)
            for each, part in zip(
                chosen, np.split(log_chance, np.cumsum([*map(len, chosen)])[:-1]), strict=True
            )
        ],
        axis=1,
    )


def _summed(shifts: Floats, log_chance: Floats) -> Floats:
    """Return chances below, at and above 0: sums over whole numbers, by a spline between some."""
    from scipy.interpolate import PchipInterpolator

    log_chance = log_chance - np.max(log_chance)
    points, weights = [], []
    for low, high in itertools.pairwise(shifts):
        n = int(min(high - low, _BETWEEN))
        # Each stands for the whole numbers from it to the next.
        inner = low + (high - low) * np.arange(n) / n
        points.append(inner + ((high - low) / n - 1.0) / 2.0 * (high - low > n))
        weights.append(np.full(n, (high - low) / n))
    points.append(shifts[-1:])
    weights.append(np.ones(1))
    at, weight = np.concatenate(points), np.concatenate(weights)
    chance = weight * np.exp(PchipInterpolator(shifts, log_chance)(at))
    is_here = (shifts == 0.0).argmax()
    here = float(np.exp(log_chance[is_here]))
    below, total = float(np.sum(chance[at < 0.0])), float(np.sum(chance))
    return np.array([below, here, max(total - below - here, 0.0)]) / total
