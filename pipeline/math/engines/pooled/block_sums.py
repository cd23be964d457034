r"""Sums over hyperparameters for a block of cells: their marginals, and how much of each answer is its own.

With the weight of a component k of the population at the points of the grid given all cells,
:math:`\sum_h p(h | y) \epsilon_k f_k / Z_c(h)`, a cell's nodes times these are its posterior, and

.. math::
    \text{own}_c = \sum_k P(k \mid y) \Bigl(1 - \frac{\mathrm{Var}(z_c \mid y, k)}{\mathrm{Var}_k(z_c)}\Bigr).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.pooled.cells import Nodes
    from suffice.pipeline.math.engines.pooled.residual_grid import Placed, ResidualGrid
    from suffice.typing import Floats

_FLOOR = 1e-300


@dataclass(slots=True, kw_only=True)
class BlockSums:
    """What is added up for the cells of a block.

    Attributes
    ----------
    grid : ResidualGrid
    middle : float
        About where z is: moments are about it.
    nodes : Nodes
    of_nodes : ndarray of shape (n_kept,), float64
        The posterior of the nodes that are kept.
    moments : ndarray of shape (n_components, 3, n_cells), float64
        Of z: 1, first and second powers.
    of_knots : ndarray of shape (n_components, n_cells, n_knots), float64
        The posterior of log sizes.
    """

    grid: ResidualGrid
    middle: float
    nodes: Nodes
    of_nodes: Floats
    moments: Floats
    of_knots: Floats

    @classmethod
    def of(cls, grid: ResidualGrid, middle: float, nodes: Nodes, n_components: int) -> Self:
        """Start with nothing."""
        n_cells = len(nodes.position)
        return cls(
            grid=grid,
            middle=middle,
            nodes=nodes,
            of_nodes=np.zeros(nodes.of_kept.shape),
            moments=np.zeros((n_components, 3, n_cells)),
            of_knots=np.zeros((n_components, n_cells, len(grid.knots))),
        )

    def add(self, placed: Placed, measure: Floats, together: Sequence[Floats]) -> None:
        """Add the components' weights on the grid at one slope, each (n_cells, n_knots n_points)."""
        self.of_nodes += self.nodes.of_kept * placed.at_nodes(np.sum(together, axis=0))
        gap = self.grid.points - self.middle
        for part, each in enumerate(together):
            at = (measure * each).reshape(len(measure), len(self.grid.knots), len(gap))
            self.of_knots[part] += np.sum(at, axis=2)
            at = np.sum(at, axis=1)
            self.moments[part] += [np.sum(at * gap**power, axis=1) for power in range(3)]

    def marginals(self, variances: Floats, *, is_contaminated: bool, offset: Floats | float = 0.0) -> Any:
        """Return what ``LineMarginals`` have of these cells.

        Parameters
        ----------
        variances : ndarray that fits (n_components, n_cells, n_knots), float64
            Of the population's components, at every knot.
        is_contaminated : bool
            Whether the second component is of outliers.
        offset : ndarray of shape (n_cells, 1), float64
            What positions are less by.
        """
        nodes, moments = self.nodes, self.moments
        of_nodes = np.maximum(self.of_nodes, 0.0)
        whole = np.bincount(nodes.kept, of_nodes, nodes.weight.size).reshape(nodes.weight.shape).sum(axis=2)
        total = np.maximum(moments[:, 0], _FLOOR)
        share = moments[:, 0] / np.maximum(np.sum(moments[:, 0], axis=0), _FLOOR)
        mean, square = moments[:, 1:].transpose(1, 0, 2) / total
        of_population = np.sum(self.of_knots * variances, axis=2) / total
        told = 1.0 - (square - mean**2) / np.maximum(of_population, _FLOOR)
        return {
            "position": nodes.position + offset,
            "spacing": nodes.spacing,
            "mass": whole / np.maximum(np.sum(whole, axis=1, keepdims=True), _FLOOR),
            "own_share": np.sum(share * np.clip(told, 0.0, 1.0), axis=0),
            "outside": share[1] if is_contaminated else np.zeros(len(whole)),
        }


def joined(blocks: Sequence[dict[str, Floats]]) -> Any:
    """Return marginals of all cells."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
