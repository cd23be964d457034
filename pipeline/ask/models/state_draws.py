"""What samplers of hidden Markov models are asked for, and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePriors:
    """The priors of a hidden Markov model.

    Attributes
    ----------
    transitions : float
        Alpha: each row of transitions, and the start, is Dirichlet(alpha, ..., alpha); positive.
    emissions : float
        Beta: the categories of each feature in each state are Dirichlet(beta, ..., beta); positive.
    rate : float
        Of the exponential prior Gamma(1, rate) of the expected number of rows of a cell; positive.
    """

    transitions: float
    emissions: float
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDraws:
    """Draws of every restart, after those that were left out for warming up.

    Attributes
    ----------
    states : ndarray
        Shape (n_restarts, n_draws, n_chains, n_times), in 0..K-1.
    transitions : ndarray
        Shape (n_restarts, n_draws, K + 1, K); row 0 is the start, row k + 1 leaves state k.
    emissions : tuple of ndarray
        One a feature, of shape (n_restarts, n_draws, K, n_categories).
    expected_rows : ndarray or None
        Lambda, of shape (n_restarts, n_draws, n_chains, n_times); plug-in draws have none.
    log_joint : ndarray
        Of parameters, states and released counts, shape (n_restarts, n_draws): the density of the log odds of
        probabilities.
    trace : ndarray
        The log joint of each sweep, those for warming up included, (n_restarts, n_sweeps).
    """

    states: NDArray[np.int8]
    transitions: NDArray[np.float64]
    emissions: tuple[NDArray[np.float64], ...]
    expected_rows: NDArray[np.float64] | None
    log_joint: NDArray[np.float64]
    trace: NDArray[np.float64]
