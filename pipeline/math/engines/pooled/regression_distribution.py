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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.reweighted import LARGEST_SHAPE, effective, resampled, smoothed
from suffice.pipeline.math.engines.pooled.block_sums import BlockSums, joined
from suffice.pipeline.math.engines.pooled.cells import TellsRecords
from suffice.pipeline.math.engines.pooled.distribution import (
    PooledDistribution,
    drawn_positions,
    drawn_sizes,
)
from suffice.pipeline.math.engines.pooled.held_out_scores import LEAST_EFFECTIVE, MOST_AGAIN, HeldOutScores
from suffice.pipeline.math.engines.pooled.left_out import Without
from suffice.pipeline.math.engines.pooled.regression import Regression, Residuals, regressed
from suffice.pipeline.math.engines.pooled.regression_target import Places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Cells, Floats

_FLOOR = 1e-300
_HYPERPARAMETERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionDistribution(PooledDistribution):
    """Made by ``regression_distribution``."""

    hyperparameters: Regression

    @property
    def tells_records(self) -> bool:
        """Whether numbers of records can be drawn with parameters."""
        source = self.blocks.source
        source = source.source if isinstance(source, Residuals) else source
        return isinstance(source, TellsRecords) and source.has_sizes

    def plug_in(self) -> RegressionDistribution:
        """Return the same cells with hyperparameters and coefficients at their posterior means."""
        return mixture_with_covariates(
            self.hyperparameters.at_means(), self.blocks, self.population, self.name, self.line
        )

    def population_draws(self, log_size: Floats, rng: np.random.Generator) -> NoReturn:  # noqa: ARG002
        """Refuse: new cells have no covariates.

        Raises
        ------
        UsageError
        """
        message = "new cells of a population with covariates have none: draw those of cells that have"
        raise UsageError(message)

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

    def left_out(self) -> HeldOutScores:
        """Return how probable what each cell released is, given all others.

        Where few nodes of hyperparameters count without a cell, the tail of their weights is smoothed
        (Vehtari, Gelman, Gabry 2017); where that does not do, hyperparameters are fitted again without it.
        """
        hyper = self.hyperparameters
        inverse, square, log_scale = np.zeros((3, self.n_cells))
        pairs = _pairs(hyper, self.population)
        for cells, nodes in self.blocks(hyper.grid.focus):
            log_scale[cells] = nodes.log_scale
            for weight, z in _likelihoods(hyper, pairs, cells, nodes):
                inverse[cells] += (1.0 / z) @ weight
                square[cells] += z**-2.0 @ weight
        log_predictive = log_scale - np.log(inverse)
        share = np.exp(2.0 * np.log(inverse) - np.log(square))
        again: list[int] = []
        few = np.flatnonzero(share < LEAST_EFFECTIVE)
        for cell in few[np.argsort(share[few])].tolist():
            # A node far out is no more than one draw of a tail: that tail is smoothed.
            log_predictive[cell], share[cell] = self._smoothed(cell, pairs)
            if share[cell] < LEAST_EFFECTIVE and len(again) < MOST_AGAIN:
                known = self._log_predictive_again(cell)
                if known is not None:
                    log_predictive[cell] = known
                    again.append(cell)
        return HeldOutScores(log_predictive=log_predictive, effective=share, again=tuple(again))

    def _smoothed(self, cell: int, pairs: list[list[tuple[Any, Places]]]) -> tuple[float, float]:
        """Return log p(y_c | y_-c) by weights w / Z with a smoothed tail, and the share of nodes that count.

        It is 0 where the tail's shape says that averages cannot be relied on.
        """
        hyper, cells = self.hyperparameters, np.array([cell])
        nodes = self.blocks.source.nodes(cells, hyper.grid.focus)
        parts = [(weight, z[0]) for weight, z in _likelihoods(hyper, pairs, cells, nodes)]
        weight, z = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        without, shape = smoothed(np.log(weight) - np.log(z))
        share = effective(without) / effective(weight) if shape <= LARGEST_SHAPE else 0.0
        return float(nodes.log_scale[0] + np.log(without @ z)), share

    def _log_predictive_again(self, cell: int) -> float | None:
        """Fit the others without a cell; None where that is not reliable."""
        hyper, source = self.hyperparameters, self.blocks.source
        source = source.source if isinstance(source, Residuals) else source
        try:
            of_others, _ = regressed(
                Without(source, cell), self.population, self.line, np.delete(hyper.design, cell, axis=0)
            )
        except UsageError:
            return None
        # The nodes of the others, with the design of all cells.
        of_others = replace(of_others, design=hyper.design)
        cells = np.array([cell])
        nodes = Residuals(source=source, offset=of_others.offset).nodes(cells, of_others.grid.focus)
        pairs = _pairs(of_others, self.population)
        total = sum(float(z[0] @ weight) for weight, z in _likelihoods(of_others, pairs, cells, nodes))
        return float(nodes.log_scale[0] + np.log(max(total, _FLOOR)))


def _likelihoods(
    hyper: Regression, pairs: list[list[tuple[Any, Places]]], cells: Cells, nodes: Nodes
) -> Iterator[tuple[Floats, Floats]]:
    """Give weights of nodes (n_nodes,), and Z of some cells at these, (n_cells, n_nodes)."""
    for number, of_slope in enumerate(pairs):
        if not of_slope:
            continue
        measure = hyper.grid.placed(nodes, float(hyper.slope[number])).measure()
        for chosen, places in of_slope:
            table = np.log(np.maximum(measure @ places.whole.T, _FLOOR))
            location = hyper.locations(cells, number, chosen)
            yield hyper.weight[number][chosen], np.exp(places.looked_up(table, location))


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
    # Nodes of one pair of s and b stand together.
    pairs = _pairs(hyper, population)
    squares = np.array([hyper.mean(spread**2) for spread in population.spreads(hyper.spread)])
    marginals = []
    for cells, nodes in blocks(hyper.grid.focus):
        sums = BlockSums.of(hyper.grid, hyper.mean(hyper.location), nodes, len(squares))
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
            sums.add(placed, measure, list(together))
        # (1).
        variances = (squares[:, None] + hyper.location_variance(cells))[:, :, None]
        offset = hyper.offset[cells][:, None]
        marginals.append(sums.marginals(variances, is_contaminated=population.is_contaminated, offset=offset))
    return RegressionDistribution(
        name=name,
        line=line,
        hyperparameters=hyper,
        population=population,
        blocks=blocks,
        **joined(marginals),
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
