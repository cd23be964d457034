"""Hidden states given parameters: forward filtering, backward sampling, smoothing.

Chains are independent, and so are restarts, each with transitions of its own: all take a step at once. A cell
without an emission has a log emission of 0 in every state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats

LEAST = 1e-290
"""The least chance of a transition or a category: below it is no room for products."""


def draw_states(log_emissions: Floats, transitions: Floats, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw all states at once, given parameters.

    Parameters
    ----------
    log_emissions : ndarray of shape (n_restarts, n_chains, n_times, K), float64
        Up to a constant of each cell.
    transitions : ndarray of shape (n_restarts, K + 1, K), float64
        Row 0 is the start, row k + 1 leaves state k; at least ``LEAST``.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_restarts, n_chains, n_times), int8
    """
    filtered, _ = _filter(log_emissions, transitions)
    n_times, n_restarts, n_chains, n_states = filtered.shape
    # The chance of a step to a state, by the state that it is from: one row for each restart and next state.
    arrivals = np.ascontiguousarray(transitions[:, 1:].swapaxes(1, 2)).reshape(-1, n_states)
    restart = n_states * np.arange(n_restarts)[:, None]
    cumulate = np.triu(np.ones((n_states, n_states)))
    uniform = rng.random((n_times, n_restarts, n_chains, 1))
    states = np.empty((n_times, n_restarts, n_chains), dtype=np.int64)
    weights = filtered[-1]
    for time in range(n_times - 1, -1, -1):
        if time < n_times - 1:
            weights = arrivals.take(states[time + 1] + restart, axis=0)
            weights *= filtered[time]
        sums = weights @ cumulate
        (sums > uniform[time] * sums[..., -1:]).argmax(axis=-1, out=states[time])
    return np.ascontiguousarray(np.moveaxis(states, 0, -1), dtype=np.int8)


def log_evidence(log_emissions: Floats, transitions: Floats) -> Floats:
    """Return the log chance of every chain, all states summed out, (n_restarts, n_chains).

    Parameters are those of ``draw_states``.
    """
    return _filter(log_emissions, transitions)[1]


def state_probability(log_emissions: Floats, transitions: Floats) -> Floats:
    """Return the chance of each state in each cell given all cells, of the shape of the log emissions.

    Parameters are those of ``draw_states``.
    """
    filtered, _ = _filter(log_emissions, transitions)
    found = np.empty_like(filtered)
    found[-1] = filtered[-1]
    between = transitions[:, 1:]
    for time in range(len(filtered) - 2, -1, -1):
        ahead = found[time + 1] / (filtered[time] @ between)
        found[time] = filtered[time] * (ahead @ between.swapaxes(1, 2))
    return np.ascontiguousarray(np.moveaxis(found, 0, 2))


def _filter(log_emissions: Floats, transitions: Floats) -> tuple[Floats, Floats]:
    """Return the chance of each state given the cells so far, times first, and the log evidence of chains."""
    highest = log_emissions.max(axis=-1)
    filtered = np.moveaxis(log_emissions - highest[..., None], 2, 0).copy()
    np.exp(filtered, out=filtered)
    n_times, n_restarts, n_chains, n_states = filtered.shape
    sums = np.empty((n_times, n_restarts, n_chains, 1))
    ones = np.ones((n_states, 1))
    predicted = np.empty(filtered.shape[1:])
    between = np.ascontiguousarray(transitions[:, 1:])
    filtered[0] *= transitions[:, None, 0]
    np.matmul(filtered[0], ones, out=sums[0])
    filtered[0] /= sums[0]
    for time in range(1, n_times):
        now = filtered[time]
        np.matmul(filtered[time - 1], between, out=predicted)
        now *= predicted
        np.matmul(now, ones, out=sums[time])
        now /= sums[time]
    evidence: Floats = np.log(sums[..., 0]).sum(axis=0) + highest.sum(axis=-1)
    return filtered, evidence
