r"""Posteriors of cells whose location depends on covariates, coefficients integrated over.

Model. As (1) and (2) of ``distribution``, with the location m_c of ``regression`` in the place of m. The
variance of a population that ``own_share`` is one less the share of is that of cells with the covariates of
the cell,

.. math:: \mathrm{Var}_k(z_c) = \mathrm{E}(s_k^2 \mid y) + \mathrm{Var}(m_c \mid y). \qquad (1)

Joint draws take the hyperparameters first, by ``_HYPERPARAMETERS`` of their nodes at even distances of their
weights, then every cell given them.

Method. At each pair of s and b the nodes of coefficients give a cell weights over locations. These are spread
out over the places of ``regression``, by the same cubics through four, so that the mixture is a product of
matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.reweighted import resampled
from suffice.pipeline.math.engines.pooled.distribution import (
    PooledDistribution,
    drawn_positions,
    drawn_sizes,
)
from suffice.pipeline.math.engines.pooled.regression import Regression, regressed
from suffice.pipeline.math.engines.pooled.regression_target import Places

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource
    from suffice.pipeline.math.engines.pooled.hyperparameters import KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats

_FLOOR = 1e-300
_HYPERPARAMETERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionDistribution(PooledDistribution):
    """Made by ``regression_distribution``."""

    hyperparameters: Regression

    def _joint(self, draws: int, rng: np.random.Generator, *, with_sizes: bool) -> tuple[Floats, Floats]:
        """Draw hyperparameters and coefficients first, then the position and log size of every cell."""
        hyper = self.hyperparameters
        chosen = resampled(hyper.weight.ravel(), min(draws, _HYPERPARAMETERS), rng)
        # As many draws of each, but for what is left over.
        counts = np.diff(np.linspace(0, draws, len(chosen) + 1).astype(np.int64))
        position, log_size = np.empty((draws, self.n_cells)), np.zeros((draws, self.n_cells))
        n_nodes = hyper.weight.shape[1]
        for cells, nodes in self.blocks(hyper.grid.focus):
            done, known, placed = 0, -1, None
            for each, count in zip(chosen.tolist(), counts.tolist(), strict=True):
                number, node = divmod(each, n_nodes)
                if placed is None or number != known:
                    known, placed = number, hyper.grid.placed(nodes, float(hyper.slope[number]))
                location = hyper.locations(cells, number, [node])[:, 0]
                spread = np.full(len(cells), hyper.spread[number, node])
                parts = self.population.components(hyper.grid.points, location, spread)
                density = np.asarray(sum(share * part for share, part in parts))
                weight = nodes.of_kept * placed.at_nodes(density)
                position[done : done + count, cells], drawn = drawn_positions(nodes, weight, count, rng)
                if with_sizes:
                    log_size[done : done + count, cells] = drawn_sizes(nodes, drawn, rng)
                done += count
        order = rng.permutation(draws)
        return position[order] + hyper.offset, log_size[order]


def regression_distribution(
    source: CellsSource, population: Population, name: str, line: Line, design: Floats
) -> RegressionDistribution:
    """Return the posterior of every cell's parameter; the design is (n_cells, n_coefficients), of mean 0.

    Raises
    ------
    UsageError
        Where no method is reliable.
    """
    hyper, blocks = regressed(source, population, line, design)
    return mixture_with_covariates(hyper, blocks, population, name, line)


def mixture_with_covariates(
    hyper: Regression, blocks: KeptNodes, population: Population, name: str, line: Line
) -> RegressionDistribution:
    """Return the exact mixture over the nodes that have a weight."""
    points = hyper.grid.points
    # Nodes of one pair of s and b stand together.
    pairs = _pairs(hyper, population)
    middle = hyper.mean(hyper.location)
    squares = [hyper.mean(spread**2) for spread in population.spreads(hyper.spread)]
    position, mass, spacing, own_share, outside = [], [], [], [], []
    for cells, nodes in blocks(hyper.grid.focus):
        of_nodes = np.zeros(nodes.of_kept.shape)
        moments = np.zeros((len(squares), 3, len(cells)))
        for number, of_slope in enumerate(pairs):
            if not of_slope:
                continue
            placed = hyper.grid.placed(nodes, float(hyper.slope[number]))
            measure = placed.measure()
            together = np.zeros((len(squares), *measure.shape))
            for chosen, places in of_slope:
                location = hyper.locations(cells, number, chosen)
                table = np.log(np.maximum(measure @ places.whole.T, _FLOOR))
                z = np.exp(places.looked_up(table, location))
                at_places = places.spread_out(hyper.weight[number][chosen] / z, location)
                together += [at_places @ part for part in places.parts]
            of_nodes += nodes.of_kept * placed.at_nodes(np.sum(together, axis=0))
            for part, each in enumerate(together):
                at = measure * each
                moments[part] += [np.sum(at * (points - middle) ** power, axis=1) for power in range(3)]
        of_nodes = np.maximum(of_nodes, 0.0)
        whole = np.bincount(nodes.kept, of_nodes, nodes.weight.size).reshape(nodes.weight.shape).sum(axis=2)
        position.append(nodes.position + hyper.offset[cells][:, None])
        spacing.append(nodes.spacing)
        mass.append(whole / np.maximum(np.sum(whole, axis=1, keepdims=True), _FLOOR))
        share = moments[:, 0] / np.maximum(np.sum(moments[:, 0], axis=0), _FLOOR)
        mean, square = moments[:, 1:].transpose(1, 0, 2) / np.maximum(moments[:, 0], _FLOOR)
        # (1).
        variances = np.array(squares)[:, None] + hyper.location_variance(cells)
        told = 1.0 - (square - mean**2) / variances
        own_share.append(np.sum(share * np.clip(told, 0.0, 1.0), axis=0))
        outside.append(share[1] if population.is_contaminated else np.zeros(len(cells)))
    return RegressionDistribution(
        name=name,
        line=line,
        position=np.concatenate(position),
        mass=np.concatenate(mass),
        spacing=np.concatenate(spacing),
        own_share=np.concatenate(own_share),
        outside=np.concatenate(outside),
        hyperparameters=hyper,
        population=population,
        blocks=blocks,
    )


def _pairs(hyper: Regression, population: Population) -> list[list[tuple[Any, Places]]]:
    """Return, for each slope, the nodes of each spread that have a weight, and places of their locations."""
    everything = np.arange(len(hyper.design))
    ends: dict[float, tuple[float, float]] = {}
    by_spread: list[list[tuple[float, Any]]] = []
    for number, weight in enumerate(hyper.weight):
        kept = np.flatnonzero(weight)
        groups = [
            (float(spread), kept[hyper.spread[number][kept] == spread])
            for spread in np.unique(hyper.spread[number][kept])
        ]
        by_spread.append(groups)
        for spread, chosen in groups:
            location = hyper.locations(everything, number, chosen)
            low, high = ends.get(spread, (np.inf, -np.inf))
            ends[spread] = min(low, float(np.min(location))), max(high, float(np.max(location)))
    places = {
        spread: Places.of(population, hyper.grid, (low - spread, high + spread), spread)
        for spread, (low, high) in ends.items()
    }
    return [[(chosen, places[spread]) for spread, chosen in groups] for groups in by_spread]
