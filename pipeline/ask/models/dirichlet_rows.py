"""Rows of chances: their draws, which keep away from 0, their density, and the steps that they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.state_filter import LEAST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats, Rows

_FIRST = np.zeros(1, dtype=np.int64)


def draw_dirichlet(
    parameters: NDArray[np.floating], rng: np.random.Generator, starts: Rows = _FIRST
) -> Floats:
    """Draw one distribution for each block of parameters along the last axis; blocks begin at `starts`.

    Entries are at least ``LEAST``: a number below it stands for it.
    """
    # Of a small parameter a gamma number is often too small for a float; its log is not.
    log_gamma = np.log(rng.standard_gamma(parameters + 1.0))
    log_gamma -= rng.standard_exponential(parameters.shape) / parameters
    log_gamma -= _in_blocks(np.maximum.reduceat(log_gamma, starts, axis=-1), starts, parameters.shape[-1])
    gamma = np.exp(log_gamma)
    gamma /= _in_blocks(np.add.reduceat(gamma, starts, axis=-1), starts, parameters.shape[-1])
    drawn: Floats = np.maximum(gamma, LEAST)
    return drawn


def log_dirichlet(probability: Floats, parameter: float, starts: Rows = _FIRST) -> Floats:
    """Return the log density of Dirichlet(parameter, ..., parameter), summed over all blocks and rows.

    It is the density of log odds. That of probabilities has no bound where the parameter is below 1:
    categories that hardly occur would decide which of two draws is the more probable.

    Parameters
    ----------
    probability : ndarray of shape (n_restarts, n_rows, n_columns), float64
    parameter : float, > 0
    starts : ndarray of int64

    Returns
    -------
    ndarray of shape (n_restarts,), float64
    """
    from scipy.special import gammaln

    sizes = np.diff(starts, append=probability.shape[-1])
    constant = np.sum(gammaln(sizes * parameter) - sizes * gammaln(parameter)) * probability.shape[1]
    density: Floats = parameter * np.log(probability).sum(axis=(1, 2)) + constant
    return density


def count_transitions(states: NDArray[np.int64], n_states: int) -> NDArray[np.int64]:
    """Count starts (row 0) and steps from a state to the next (row k + 1), (n_restarts, K + 1, K)."""
    n_restarts, n_chains, _ = states.shape
    before = np.concatenate(
        [np.zeros((n_restarts, n_chains, 1), dtype=np.int64), states[..., :-1] + 1], axis=-1
    )
    place = (np.arange(n_restarts)[:, None, None] * (n_states + 1) + before) * n_states + states
    size = n_restarts * (n_states + 1) * n_states
    return np.bincount(place.ravel(), minlength=size).reshape(n_restarts, n_states + 1, n_states)


def _in_blocks(values: Floats, starts: Rows, n_columns: int) -> Floats:
    if len(starts) == 1:
        return values
    return np.repeat(values, np.diff(starts, append=n_columns), axis=-1)
