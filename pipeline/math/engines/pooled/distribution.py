r"""Posteriors of cells' parameters under a population whose hyperparameters are integrated over.

Model. With the weights of ``hyperparameters``,

.. math::
    p(x_c \mid y) = \sum_h \frac{p(h \mid y)}{Z_c(h)} \sum_j w_{cj}(x_c) f(x_c - b (v_{cj} - v_0) \mid m, s),
    \qquad (1)

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
Moments are sums over nodes; ``marginals`` has distribution functions.

References
----------
Morris. Parametric empirical Bayes inference: theory and applications. J. Amer. Statist. Assoc. 78, 1983.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.marginals import NodeMarginal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters, KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats

_FLOOR = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDistribution:
    """Made by ``pooled_distribution``.

    Attributes
    ----------
    name : str
        The parameter's.
    line : Line
    position, mass : ndarray of shape (n_cells, n_positions), float64
        Nodes on the line, and what of the posterior each stands for.
    spacing : ndarray of shape (n_cells, n_positions), float64
        Masses over it are densities.
    own_share : ndarray of shape (n_cells,), float64
        Of (2), in 0..1.
    outside : ndarray of shape (n_cells,), float64
        How probable it is that a cell is an outlier; zeros where the population has none.
    hyperparameters : Hyperparameters
    population : Population
    blocks : KeptNodes
        Nodes of all cells, for joint draws.
    """

    name: str
    line: Line
    position: Floats
    mass: Floats
    spacing: Floats
    own_share: Floats
    outside: Floats
    hyperparameters: Hyperparameters
    population: Population
    blocks: KeptNodes = field(repr=False)
    _marginal: list[NodeMarginal] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.position)

    @property
    def marginal(self) -> NodeMarginal:
        """The parameter's distribution in every cell."""
        if not self._marginal:
            self._marginal.append(
                NodeMarginal(line=self.line, position=self.position, mass=self.mass, spacing=self.spacing)
            )
        return self._marginal[0]

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.marginal.mean()

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.marginal.sd()

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from the distribution function; they rest on no draws."""
        return self.marginal.quantiles(q)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        return self.marginal.density(points)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: hyperparameters first, then every cell."""
        hyper = self.hyperparameters
        drawn = rng.multinomial(draws, hyper.weight.ravel() / np.sum(hyper.weight))
        drawn = drawn.reshape(hyper.weight.shape)
        position = np.empty((draws, self.n_cells))
        for cells, nodes in self.blocks(hyper.grid.focus):
            done = 0
            for number in np.flatnonzero(np.any(drawn > 0, axis=1)):
                kept = np.flatnonzero(drawn[number])
                placed = hyper.grid.placed(nodes, float(hyper.slope[number]))
                densities = _densities(self.population, hyper, int(number), kept)
                for each, density in zip(drawn[number][kept].tolist(), densities, strict=True):
                    weight = nodes.of_kept * placed.at_nodes_of_all(density)
                    position[done : done + each, cells] = _drawn(nodes, weight, each, rng)
                    done += each
        return {self.name: self.line.parameter(position[rng.permutation(draws)])}


def _drawn(nodes: Nodes, weight: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw positions (draws, n_cells) in proportion to the weights of the nodes that are kept."""
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
    return drawn


def _densities(population: Population, hyper: Hyperparameters, number: int, kept: Any) -> Floats:
    parts = population.components(hyper.grid.points, hyper.location[number][kept], hyper.spread[number][kept])
    return np.asarray(sum(share * density for share, density in parts))


def pooled_distribution(
    source: CellsSource, population: Population, name: str, line: Line
) -> PooledDistribution:
    """Return the posterior of every cell's parameter, hyperparameters integrated over."""
    hyper, blocks = fitted(source, population, line)
    return mixture_over(hyper, blocks, population, name, line)


def mixture_over(
    hyper: Hyperparameters, blocks: KeptNodes, population: Population, name: str, line: Line
) -> PooledDistribution:
    """Return (1) and (2) over the nodes of hyperparameters that have a weight."""
    points = hyper.grid.points
    kept = [np.flatnonzero(weight) for weight in hyper.weight]
    parts = [
        population.components(points, location[rows], spread[rows])
        for location, spread, rows in zip(hyper.location, hyper.spread, kept, strict=True)
    ]
    middle = hyper.mean(hyper.location)
    of_location = hyper.mean((hyper.location - middle) ** 2)
    variances = [hyper.mean(spread**2) + of_location for spread in population.spreads(hyper.spread)]
    n_parts = len(variances)
    position, mass, spacing, own_share, outside = [], [], [], [], []
    for cells, nodes in blocks(hyper.grid.focus):
        of_nodes = np.zeros(nodes.of_kept.shape)
        moments = np.zeros((n_parts, 3, len(cells)))
        for number, rows in enumerate(kept):
            if not rows.size:
                continue
            placed = hyper.grid.placed(nodes, float(hyper.slope[number]))
            measure = placed.measure()
            shared = [share * density for share, density in parts[number]]
            z = np.maximum(measure @ np.sum(shared, axis=0).T, _FLOOR)
            ratio = hyper.weight[number][rows] / z
            together = [ratio @ each for each in shared]
            of_nodes += nodes.of_kept * placed.at_nodes(np.asarray(sum(together)))
            for part, each in enumerate(together):
                at = measure * each
                moments[part] += [np.sum(at * (points - middle) ** power, axis=1) for power in range(3)]
        size = nodes.weight.size
        whole = np.bincount(nodes.kept, of_nodes, size).reshape(nodes.weight.shape).sum(axis=2)
        position.append(nodes.position)
        spacing.append(nodes.spacing)
        mass.append(whole / np.maximum(np.sum(whole, axis=1, keepdims=True), _FLOOR))
        share = moments[:, 0] / np.maximum(np.sum(moments[:, 0], axis=0), _FLOOR)
        mean, square = moments[:, 1:].transpose(1, 0, 2) / np.maximum(moments[:, 0], _FLOOR)
        # (2).
        told = 1.0 - (square - mean**2) / np.array(variances)[:, None]
        own_share.append(np.sum(share * np.clip(told, 0.0, 1.0), axis=0))
        outside.append(share[1] if population.is_contaminated else np.zeros(len(cells)))
    return PooledDistribution(
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
