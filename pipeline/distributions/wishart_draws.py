"""Draws of mean vectors and covariances under a normal inverse Wishart distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


def sample_normal_inverse_wishart(
    loc: Floats, precision: Floats, df: Floats, scale: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw means (draws, n_cells, d) and covariances (draws, n_cells, d, d), by Bartlett's factors."""
    size = loc.shape[1]
    shape = (draws, len(loc))
    bartlett = np.zeros((*shape, size, size))
    below = np.tril_indices(size, -1)
    bartlett[..., below[0], below[1]] = rng.standard_normal((*shape, len(below[0])))
    freedom = df[:, None] - np.arange(size)
    diagonal = np.arange(size)
    bartlett[..., diagonal, diagonal] = np.sqrt(2.0 * rng.standard_gamma(freedom / 2.0, (*shape, size)))
    # With scale = L L^T and a Wishart A A^T, L A^-T is a root of the inverse Wishart.
    root = np.swapaxes(np.linalg.solve(bartlett, np.swapaxes(np.linalg.cholesky(scale), 1, 2)), -1, -2)
    spread = np.einsum("dcij,dcj->dci", root, rng.standard_normal((*shape, size)))
    return loc + spread / np.sqrt(precision)[:, None], root @ np.swapaxes(root, -1, -2)
