"""The nearest vector of non-negative numbers with a given total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


def project_simplex(values: Floats, total: float | Floats) -> Floats:
    """Return the nearest rows that are nowhere negative and sum to the total, one or (n_rows, 1)."""
    descending = -np.sort(-values, axis=1)
    ranks = np.arange(1.0, values.shape[1] + 1.0)
    excess = (np.cumsum(descending, axis=1) - total) / ranks
    kept = np.sum(descending > excess, axis=1)
    # With a total of 0 nothing is kept: then the largest entry sets the threshold.
    threshold = np.take_along_axis(excess, np.maximum(kept - 1, 0)[:, None], axis=1)
    projected: Floats = np.maximum(values - threshold, 0.0)
    return projected
