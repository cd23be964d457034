r"""A map: which cells are neighbours, and the law of a smooth field on it.

Model. Of neighbours i ~ j, an intrinsic conditional autoregression (Besag 1974) has

.. math:: p(u) \propto \exp\Bigl(-\frac 1 2 \sum_{i \sim j} q_j (u_i - u_j)^2\Bigr)
    = \exp\bigl(-\tfrac 1 2 u' Q u\bigr), \qquad \sum_{i \in j} u_i = 0 \qquad (1)

on each connected component j. :math:`q_j` is such that the geometric mean of the variances is 1 (Sørbye, Rue
2014; of every component by itself, Freni-Sterrantino, Ventrucci, Rue 2018), so that a spread means the same
on any map. A cell without a neighbour, an island, has no u.

Method. With one node of each component held, :math:`G = (Q + e e')^{-1}` exists, and the covariance of (1) is
C G C with the centring matrix C of each component: its diagonal needs that of G and one solution.

References
----------
Besag. Spatial interaction and the statistical analysis of lattice systems. J. R. Stat. Soc. B 36, 1974.
Sørbye, Rue. Scaling intrinsic Gaussian Markov random field priors in spatial modelling. Spatial Statist. 8,
2014. Freni-Sterrantino, Ventrucci, Rue. A note on intrinsic conditional autoregressive models for
disconnected graphs. Spat. Spatiotemporal Epidemiol. 26, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.block_tridiagonal import BlockTridiagonal

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMap:
    """Made by ``of``.

    Attributes
    ----------
    n_cells : int
        All, islands among them.
    level : ndarray of shape (n_cells,), int64
        Which map a cell is on: maps have levels of their own.
    mapped : ndarray of shape (n_mapped,), int64
        The cells with neighbours.
    component : ndarray of shape (n_mapped,), int64
        The connected component of each.
    precision : BlockTridiagonal
        Q of (1), of the cells with neighbours.
    variance : ndarray of shape (n_cells,), float64
        Of (1); 0 of islands.
    covariate : ndarray of shape (n_cells,), float64, optional
        What a coefficient that all maps share is of.
    """

    n_cells: int
    level: Cells
    mapped: Cells
    component: Cells
    precision: BlockTridiagonal
    variance: Floats
    covariate: Floats | None = None

    @property
    def n_levels(self) -> int:
        """How many maps there are."""
        return int(self.level.max()) + 1

    @property
    def n_components(self) -> int:
        """How many connected components there are, islands aside."""
        return int(self.component.max()) + 1

    @property
    def islands(self) -> Cells:
        """The cells without a neighbour."""
        return np.setdiff1d(np.arange(self.n_cells), self.mapped)

    @classmethod
    def of(cls, n_cells: int, pairs: Cells, level: Cells) -> FieldMap:
        """Scale the field of neighbours.

        Parameters
        ----------
        n_cells : int
        pairs : ndarray of shape (n_pairs, 2), int64
            Neighbouring cells, in any order, as often as they like; at least one pair.
        level : ndarray of shape (n_cells,), int64
            The map each cell is on, 0 and up; neighbours are on the same.
        """
        from scipy.sparse import coo_array, diags_array
        from scipy.sparse.csgraph import connected_components

        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
        mapped, place = np.unique(pairs, return_inverse=True)
        n = len(mapped)
        i, j = place.reshape(pairs.shape).T
        upper = coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
        neighbours = upper + upper.T
        component = connected_components(neighbours, directed=False)[1]
        laplacian = (diags_array(np.asarray(neighbours.sum(axis=1)).ravel()) - neighbours).tocsr()
        precision = BlockTridiagonal.of(laplacian)
        held = np.zeros(n)
        held[np.unique(component, return_index=True)[1]] = 1.0
        factor = precision.factor(held)
        size = np.bincount(component)
        row = factor.solve(np.ones((n, 1)))[:, 0]
        variance = factor.variances() - 2.0 * row / size[component]
        variance += (np.bincount(component, row) / size**2)[component]
        scale = np.exp(np.bincount(component, np.log(variance)) / size)[component]
        scaled = diags_array(scale) @ laplacian
        everywhere = np.zeros(n_cells)
        everywhere[mapped] = variance / scale
        return cls(
            n_cells=n_cells,
            level=level,
            mapped=mapped,
            component=component.astype(np.int64),
            precision=BlockTridiagonal.of(scaled.tocsr()),
            variance=everywhere,
        )
