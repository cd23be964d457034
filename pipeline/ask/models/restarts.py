"""What all samplers of hidden Markov models share: where restarts start, and which sweeps are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.dirichlet_rows import draw_dirichlet

if TYPE_CHECKING:
    from suffice.typing import Floats, Rows

_STARTING_ROWS = 100.0
"""How many rows the states' first distributions are drawn from: alike at first, and yet not the same."""


def starting_theta(
    sums: Floats, starts: Rows, n_states: int, emissions: float, rng: np.random.Generator
) -> Floats:
    """Draw the states' first distributions near the table added up over all cells.

    Parameters
    ----------
    sums : ndarray of shape (n_restarts, n_columns), float64
        Of released counts; negative ones count as none.
    starts : ndarray of shape (n_features,), int64
        The first category of each feature.
    n_states : int
    emissions : float
        Beta of the prior.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_restarts, n_states, n_columns), float64
    """
    sizes = np.diff(starts, append=sums.shape[-1])
    positive = np.maximum(sums, 0.0) + 1.0
    pooled = positive / np.repeat(np.add.reduceat(positive, starts, axis=-1), sizes, axis=-1)
    parameters = np.repeat(_STARTING_ROWS * pooled[:, None] + emissions, n_states, axis=1)
    return draw_dirichlet(parameters, rng, starts)


def kept_sweeps(n_sweeps: int, n_draws: int, *, goes_on: bool = False) -> list[int]:
    """Return which sweeps are kept: the last one, and others at even distances in the second half.

    Where draws go on from earlier ones, which were the first half, in all of them.
    """
    part = n_sweeps if goes_on else (n_sweeps + 1) // 2
    n_kept = min(n_draws, part)
    return [n_sweeps - 1 - (place * part) // n_kept for place in range(n_kept)][::-1]
