r"""Integrals of many cells under many populations: one product of matrices, with seven digits.

Of a cell's weights w on the grid (``residual_grid``) and the density f of a population they are

.. math:: Z = \sum_k w_k f_k. \qquad (1)

Numbers of both have seven digits here, and all terms are positive, so that an integral is off by some 1e-7 of
itself, and a sum of logarithms over n cells by at most some n 1e-7. Cells that have an integral below
``_SMALL``, where terms would be lost, are summed with all digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats

_TINY, _SMALL = np.float32(1e-30), np.float32(1e-24)
"""Densities below count as 0, as products with numbers next to the least are slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDensity:
    """Densities of populations on a grid, (n_populations, n_points), with all digits and with seven."""

    exact: Floats
    single: NDArray[np.float32]

    @classmethod
    def of(cls, density: Floats) -> Self:
        """Round."""
        single = density.astype(np.float32)
        single[single < _TINY] = 0.0
        return cls(exact=density, single=single)

    def integrals(self, measure: Floats) -> Floats:
        """Return (1) of cells with the weights (n_cells, n_points): (n_cells, n_populations)."""
        z = (measure.astype(np.float32) @ self.single.T).astype(np.float64)
        is_small = np.min(z, axis=1) < _SMALL
        if np.any(is_small):
            z[is_small] = measure[is_small] @ self.exact.T
        return z
