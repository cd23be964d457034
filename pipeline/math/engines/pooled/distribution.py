r"""Posteriors of cells' parameters under a population whose hyperparameters are integrated over.

Model. With the weights of ``hyperparameters``,

.. math::
    p(x_c \mid y) = \sum_h \frac{p(h \mid y)}{Z_c(h)}
    \sum_j w_{cj}(x_c) f\bigl(x_c - b (v_{cj} - v_0) \mid m, s e^{g (v_{cj} - v_0)}\bigr), \qquad (1)

the exact mixture over hyperparameters: p(h | y) rests on all cells. Of a population with components k of the
shares :math:`\epsilon_k`,

.. math:: P(k \mid y) = \sum_h p(h \mid y) \, \epsilon_k Z_{ck}(h) / Z_c(h), \qquad
    \text{own}_c = \sum_k P(k \mid y) \Bigl(1 - \frac{\mathrm{Var}(z_c \mid y, k)}{\mathrm{Var}_k(z)}\Bigr).
    \qquad (2)

With normal likelihoods of variance v and a normal population of variance s^2, it is s^2 / (s^2 + v), one
less the shrinkage factor of Morris (1983): 0 of an answer that is the population's, 1 of one that is the
cell's.

Joint draws take h first, then every cell given it.

Method. Sums (1) are products of matrices on the grid of residuals, which is then looked up at the nodes.
Marginals are those of ``marginals``.

References
----------
Morris. Parametric empirical Bayes inference: theory and applications. J. Amer. Statist. Assoc. 78, 1983.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.pooled.block_sums import BlockSums, joined
from suffice.pipeline.math.engines.pooled.cells import TellsRecords
from suffice.pipeline.math.engines.pooled.contaminated import OUTLYING
from suffice.pipeline.math.engines.pooled.dictionary import drawn_populations
from suffice.pipeline.math.engines.pooled.dictionary_population import DictionaryPopulation
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.marginals import LineMarginals
from suffice.pipeline.math.engines.pooled.residual_grid import sharpened
from suffice.pipeline.math.engines.pooled.shared_density import SharedDensity

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters
    from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats, Rows

_WHOLE = 6.5
_FLOOR = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDistribution(LineMarginals):
    """Made by ``pooled_distribution``; ``outside`` is how probable it is that a cell is an outlier.

    Attributes
    ----------
    hyperparameters : Hyperparameters
    population : Population
    blocks : KeptNodes
        Nodes of all cells, for joint draws.
    """

    hyperparameters: Hyperparameters
    population: Population
    blocks: KeptNodes = field(repr=False)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on; empty where all is quadrature."""
        return self.hyperparameters.diagnostics

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: hyperparameters first, then every cell."""
        return {self.name: self.line.parameter(self._joint(draws, rng, with_sizes=False)[0])}

    @property
    def tells_records(self) -> bool:
        """Whether numbers of records can be drawn with parameters."""
        return isinstance(self.blocks.source, TellsRecords) and self.blocks.source.has_sizes

    def sample_with_records(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Joint draws of parameters and of numbers of records, (draws, n_cells) each."""
        source: Any = self.blocks.source
        position, log_size = self._joint(draws, rng, with_sizes=True)
        return self.line.parameter(position), source.records(position, log_size, rng)

    def _joint(self, draws: int, rng: np.random.Generator, *, with_sizes: bool) -> tuple[Floats, Floats]:
        """Draw positions and log sizes, (draws, n_cells); zeros for sizes where they are left out."""
        hyper = self.hyperparameters
        drawn = rng.multinomial(draws, hyper.weight.ravel() / np.sum(hyper.weight))
        drawn = drawn.reshape(hyper.weight.shape)
        position, log_size = np.empty((draws, self.n_cells)), np.zeros((draws, self.n_cells))
        for cells, nodes in self.blocks(hyper.grid.focus):
            done = 0
            for number in np.flatnonzero(np.any(drawn > 0, axis=1)):
                kept = np.flatnonzero(drawn[number])
                placed = hyper.grid.placed(nodes, float(hyper.slope[number]))
                densities = hyper.densities(self.population, int(number), kept)
                for each, density in zip(drawn[number][kept].tolist(), densities, strict=True):
                    weight = nodes.of_kept * placed.at_nodes_of_all(density)
                    position[done : done + each, cells], chosen = drawn_positions(nodes, weight, each, rng)
                    if with_sizes:
                        log_size[done : done + each, cells] = drawn_sizes(nodes, chosen, rng)
                    done += each
        order = rng.permutation(draws)
        return position[order], log_size[order]

    def plug_in(self) -> PooledDistribution:
        """Return the same cells with hyperparameters fixed at their posterior means: what (1) is not."""
        return mixture_over(
            self.hyperparameters.at_means(), self.blocks, self.population, self.name, self.line
        )

    def population_draws(self, log_size: Floats, rng: np.random.Generator) -> Floats:
        """Draw parameters of new cells of these sizes: hyperparameters once, then every cell.

        By the distribution function on the grid, whose points are close to each other beside the spread.
        """
        hyper = self.hyperparameters
        chosen = int(rng.choice(hyper.weight.size, p=hyper.weight.ravel() / np.sum(hyper.weight)))
        number, node = np.unravel_index(chosen, hyper.weight.shape)
        points = hyper.grid.points
        mass = hyper.densities(self.population, int(number), [node])[0].reshape(-1, len(points))
        mass = mass * np.gradient(points)
        mass /= np.sum(mass, axis=1, keepdims=True)
        below = np.cumsum(mass, axis=1) - mass / 2.0
        knot, rank, z = (
            hyper.grid.drawn_knots(log_size, rng),
            rng.random(len(log_size)),
            np.zeros(len(log_size)),
        )
        for each in np.unique(knot).tolist():
            z[knot == each] = np.interp(rank[knot == each], below[each], points)
        return self.line.parameter(z + hyper.slope[number] * hyper.grid.beyond_origin(log_size))


def drawn_positions(
    nodes: Nodes, weight: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Rows]:
    """Draw positions (draws, n_cells) in proportion to the weights of the nodes that are kept, and which."""
    n_cells, n_positions, n_sizes = nodes.weight.shape
    total = np.maximum(np.bincount(nodes.row, weight, n_cells), _FLOOR)
    ends = np.cumsum(weight / total[nodes.row])
    last = np.searchsorted(nodes.row, np.arange(n_cells), side="right") - 1
    before = np.concatenate([[0.0], ends[last][:-1]])
    wanted = before + rng.random((draws, n_cells)) * (ends[last] - before)
    chosen = np.searchsorted(ends, wanted, side="right")
    first = np.searchsorted(nodes.row, np.arange(n_cells))
    chosen = np.clip(chosen, first, last)
    place = nodes.kept[chosen] % (n_positions * n_sizes) // n_sizes + rng.random((draws, n_cells)) - 0.5
    place = np.clip(place, 0.0, n_positions - 1.001)
    left = place.astype(np.int64)
    flat, left_of_all = nodes.position.ravel(), left + np.arange(n_cells) * n_positions
    low = flat[left_of_all]
    drawn: Floats = low + (place - left) * (flat[left_of_all + 1] - low)
    return drawn, chosen


def drawn_sizes(nodes: Nodes, chosen: Rows, rng: np.random.Generator) -> Floats:
    """Draw log sizes (draws, n_cells) about those of nodes that were chosen; whole numbers stay."""
    n_cells, n_sizes = nodes.log_size.shape
    if n_sizes == 1:
        return np.broadcast_to(nodes.log_size[:, 0], chosen.shape)
    exact = nodes.kept[chosen] % n_sizes
    place = np.clip(exact + rng.random(chosen.shape) - 0.5, 0.0, n_sizes - 1.001)
    left = place.astype(np.int64)
    cell = np.arange(n_cells)
    low = nodes.log_size[cell, left]
    between = low + (place - left) * (nodes.log_size[cell, left + 1] - low)
    at = nodes.log_size[cell, exact]
    size = np.expm1(at)
    # Small whole numbers are nodes of their own (``rate_cells``).
    is_whole = (np.abs(size - np.rint(size)) < 1e-9) & (size < _WHOLE)
    drawn: Floats = np.where(is_whole, at, between)
    return drawn


def pooled_distribution(
    source: CellsSource, population: Population, name: str, line: Line, *, has_spread_slope: bool = True
) -> PooledDistribution:
    """Return the posterior of every cell's parameter, hyperparameters integrated over.

    Where sizes are known the spread has a slope on them, unless the population or a caller says otherwise.
    """
    if isinstance(population, DictionaryPopulation):
        about, blocks = fitted(source, OUTLYING, line, has_spread_slope=has_spread_slope)
        hyper: Hyperparameters = drawn_populations(about, blocks, has_slope=source.has_sizes)
    else:
        hyper, blocks = fitted(source, population, line, has_spread_slope=has_spread_slope)
    return mixture_over(hyper, blocks, population, name, line)


def mixture_over(
    hyper: Hyperparameters, blocks: KeptNodes, population: Population, name: str, line: Line
) -> PooledDistribution:
    """Return (1) and (2) over the nodes of hyperparameters that have a weight."""
    kept = [np.flatnonzero(weight) for weight in hyper.weight]
    middle = hyper.mean(hyper.location)
    of_location = hyper.mean((hyper.location - middle) ** 2)
    of_knots = [hyper.spread_variances(population, knot) for knot in hyper.grid.knots]
    variances = np.transpose(of_knots)[:, None, :] + of_location
    # Populations are the same at every slope.
    of_any = np.flatnonzero(np.any(hyper.weight > 0.0, axis=0))
    shared = [share * density for share, density in hyper.components(population, 0, of_any)]
    whole = SharedDensity.of(sharpened(np.sum(shared, axis=0)))
    single = [each.astype(np.float32) for each in shared]
    marginals = []
    for _, nodes in blocks(hyper.grid.focus):
        sums = BlockSums.of(hyper.grid, middle, nodes, len(variances))
        for number, rows in enumerate(kept):
            if not rows.size:
                continue
            placed = hyper.grid.placed(nodes, float(hyper.slope[number]))
            measure = placed.measure()
            weight = hyper.weight[number][of_any]
            ratio = weight / np.maximum(whole.integrals(measure), _FLOOR)
            # Of at most 1, for products with seven digits.
            scale = np.max(ratio, axis=1, keepdims=True)
            ratio = (ratio / scale).astype(np.float32)
            # (1).
            sums.add(placed, measure, [scale * (ratio @ each) for each in single])
        # (2).
        marginals.append(sums.marginals(variances, is_contaminated=population.is_contaminated))
    return PooledDistribution(
        name=name,
        line=line,
        hyperparameters=hyper,
        population=population,
        blocks=blocks,
        **joined(marginals),
    )
