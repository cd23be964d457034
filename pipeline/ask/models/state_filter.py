"""Hidden states given parameters: forward filtering, backward sampling, smoothing.

Chains are independent, and so are restarts, each with transitions of its own: all take a step at once. A cell
without an emission has a log emission of 0 in every state.

Rows of transition probabilities are drawn away from 0. All samplers share where restarts start and which
sweeps are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    smoothed = np.empty_like(filtered)
    smoothed[-1] = filtered[-1]
    between = transitions[:, 1:]
    for time in range(len(filtered) - 2, -1, -1):
        ahead = smoothed[time + 1] / (filtered[time] @ between)
        smoothed[time] = filtered[time] * (ahead @ between.swapaxes(1, 2))
    return np.ascontiguousarray(np.moveaxis(smoothed, 0, 2))


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
