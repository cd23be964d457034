"""Released counts of several features over chains and time: what hidden Markov models are fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """Noisy counts of D features in cells of chains and time steps.

    Attributes
    ----------
    counts : tuple of ndarray
        One a feature, of shape (n_chains, n_times, n_categories), integers; negative ones are normal. What
        stands in a cell that is not observed has no meaning.
    is_observed : ndarray
        Shape (n_chains, n_times). A cell that is not takes part with no emission.
    scales : tuple of float
        Of the discrete Laplace noise of each feature, P(z) proportional to exp(-|z| / scale); 0: none.
    """

    counts: tuple[NDArray[np.int64], ...]
    is_observed: NDArray[np.bool_]
    scales: tuple[float, ...]
