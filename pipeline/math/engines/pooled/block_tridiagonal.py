r"""Symmetric matrices whose rows are those of a graph, by blocks of which each meets only the next.

Rows are ordered by their distance from an outer node of the graph, component by component (Cuthill, McKee
1969): levels of that distance are blocks, and a node's neighbours are in its own level, the one before, and
the one after. Of a map of n cells levels hold about :math:`\sqrt n`. With diagonal blocks D and blocks E
below these,

.. math::
    S_1 = D_1, \qquad S_{k+1} = D_{k+1} - E_k S_k^{-1} E_k', \qquad S_k = L_k L_k', \qquad
    B_k = S_k^{-1} E_k' \qquad (1)

give the determinant :math:`\prod_k |L_k|^2`, solutions, draws, and the blocks of the inverse

.. math::
    \Sigma_k = S_k^{-1} + B_k \Sigma_{k+1} B_k', \qquad \Sigma_{k, k+1} = -B_k \Sigma_{k+1} \qquad (2)

without the rest of it (Takahashi, Fagan, Chen 1973), in some :math:`n^2` steps of a map.

References
----------
Cuthill, McKee. Reducing the bandwidth of sparse symmetric matrices. Proc. ACM, 1969. Takahashi, Fagan, Chen.
Formation of a sparse bus impedance matrix. Proc. PICA, 1973. Rue, Held. Gaussian Markov random fields. 2005.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

    from suffice.typing import Cells, Floats

_LEAST_BLOCK = 24
"""Levels are joined up to so many rows: small blocks cost as much as that."""


@dataclass(frozen=True, slots=True)
class BlockTridiagonal:
    """A symmetric matrix, its rows ordered.

    Attributes
    ----------
    order : ndarray of shape (n,), int64
        Which row of the given matrix each row is.
    ends : tuple of int
        Where blocks begin, and n.
    diagonal, below : tuple of ndarray
        D and E of (1).
    """

    order: Cells
    ends: tuple[int, ...]
    diagonal: tuple[Floats, ...]
    below: tuple[Floats, ...]

    @classmethod
    def of(cls, matrix: csr_array) -> BlockTridiagonal:
        """Order the rows of a symmetric matrix and cut it into blocks."""
        order, ends = _levels(matrix)
        ordered = matrix[order][:, order].tocsr()
        slices = [slice(low, high) for low, high in itertools.pairwise(ends)]
        return cls(
            order=order,
            ends=tuple(ends),
            diagonal=tuple(ordered[each][:, each].toarray() for each in slices),
            below=tuple(ordered[after][:, each].toarray() for each, after in itertools.pairwise(slices)),
        )

    def times(self, x: Floats) -> Floats:
        """Return the product with columns (n, n_columns), in the order of the given matrix."""
        ordered = x[self.order]
        parts = [ordered[low:high] for low, high in itertools.pairwise(self.ends)]
        rows = [block @ part for block, part in zip(self.diagonal, parts, strict=True)]
        for number, below in enumerate(self.below):
            rows[number + 1] += below @ parts[number]
            rows[number] += below.T @ parts[number + 1]
        product = np.empty_like(ordered)
        product[self.order] = np.concatenate(rows)
        return product

    def factor(self, added: Floats) -> Factor:
        """Factorise the matrix with a diagonal added to it, in the order of the given matrix.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where the sum is not positive definite.
        """
        from scipy.linalg.lapack import dpotrf, dtrtri

        added = added[self.order]
        inverses, rows = [], []
        schur = None
        for number, block in enumerate(self.diagonal):
            whole = block + np.diag(added[self.ends[number] : self.ends[number + 1]])
            if schur is not None:
                whole -= schur
            lower, failed = dpotrf(whole, lower=1)
            if failed:
                message = "not positive definite"
                raise np.linalg.LinAlgError(message)
            inverses.append(np.tril(dtrtri(lower, lower=1)[0]))
            if number < len(self.below):
                half = inverses[-1] @ self.below[number].T
                rows.append(inverses[-1].T @ half)
                schur = half.T @ half
        return Factor(matrix=self, inverses=tuple(inverses), rows=tuple(rows))


@dataclass(frozen=True, slots=True)
class Factor:
    """The factors of a positive definite matrix.

    Attributes
    ----------
    matrix : BlockTridiagonal
        Whose order and blocks they are of.
    inverses, rows : tuple of ndarray
        The inverse of L, and B of (1).
    """

    matrix: BlockTridiagonal
    inverses: tuple[Floats, ...]
    rows: tuple[Floats, ...]

    @property
    def log_determinant(self) -> float:
        """Of the matrix."""
        return -2.0 * float(sum(np.sum(np.log(np.diag(inverse))) for inverse in self.inverses))

    def _given_order(self, blocks: Sequence[Floats]) -> Floats:
        values = np.concatenate(blocks)
        result = np.empty_like(values)
        result[self.matrix.order] = values
        return result

    def solve(self, values: Floats) -> Floats:
        """Return the inverse times columns (n, n_columns)."""
        parts = np.split(values[self.matrix.order], self.matrix.ends[1:-1])
        for number, row in enumerate(self.rows):
            parts[number + 1] = parts[number + 1] - row.T @ parts[number]
        # With L y = values.
        return self._backwards([inverse @ part for inverse, part in zip(self.inverses, parts, strict=True)])

    def drawn(self, normals: Floats) -> Floats:
        """Return columns of the inverse's covariance from standard normal numbers (n, n_columns)."""
        return self._backwards(np.split(normals, self.matrix.ends[1:-1]))

    def _backwards(self, parts: Sequence[Floats]) -> Floats:
        """Solve L' x = y for all blocks, the last one first."""
        done: list[Floats] = []
        for number in range(len(parts) - 1, -1, -1):
            x = self.inverses[number].T @ parts[number]
            if done:
                x -= self.rows[number] @ done[-1]
            done.append(x)
        return self._given_order(done[::-1])

    def variances(self) -> Floats:
        """Return the diagonal of the inverse, by (2)."""
        parts, after = [], None
        for number in range(len(self.inverses) - 1, -1, -1):
            inverse = self.inverses[number]
            block = inverse.T @ inverse
            if after is not None:
                row = self.rows[number]
                block += row @ after @ row.T
            parts.append(np.diag(block))
            after = block
        return self._given_order(parts[::-1])


def _levels(matrix: csr_array) -> tuple[Cells, list[int]]:
    """Return an order of the rows, and where its blocks begin, as the first lines above say."""
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    n = matrix.shape[0]
    component = connected_components(matrix, directed=False)[1]
    order, ends, begun = [], [0], 0
    for start in np.unique(component, return_index=True)[1].tolist():
        root = start
        for _ in range(2):
            # The farthest node from any is an outer one.
            root = int(breadth_first_order(matrix, root, directed=False)[0][-1])
        reached, before = breadth_first_order(matrix, root, directed=False)
        depth = np.zeros(n, dtype=np.int64)
        for node in reached[1:].tolist():
            depth[node] = depth[before[node]] + 1
        order.append(reached)
        for size in np.bincount(depth[reached]).tolist():
            begun += size
            if begun - ends[-1] >= _LEAST_BLOCK:
                ends.append(begun)
        # What is left joins the next component: they do not meet.
    if ends[-1] < n:
        ends.append(n)
    return np.concatenate(order).astype(np.int64), ends
