"""The number of rows of each cell, estimated from all features: each counts every row once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.terms.statistics.statistic_plan import discrete_laplace_sd

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats, Rows

_NO_NOISE = 1e-6
"""The least variance: counts without noise decide."""


def cell_totals(released: Counts | Floats, starts: Rows, scales: Floats) -> Floats:
    """Average the features' totals, inversely to the variance of their noise.

    Parameters
    ----------
    released : ndarray of shape (..., n_columns)
    starts : ndarray of shape (n_features,), int64
        The first category of each feature.
    scales : ndarray of shape (n_columns,), float64
        Of the noise.

    Returns
    -------
    ndarray of shape (...), float64
        Noise makes negative ones normal.
    """
    sizes = np.diff(starts, append=released.shape[-1])
    deviations = [discrete_laplace_sd(scale) if scale else 0.0 for scale in scales[starts].tolist()]
    precision = 1.0 / (sizes * np.maximum(np.square(deviations), _NO_NOISE))
    totals = np.add.reduceat(released, starts, axis=-1)
    average: Floats = totals @ (precision / precision.sum())
    return average
