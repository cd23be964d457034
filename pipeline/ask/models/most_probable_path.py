"""The most probable sequence of hidden states, from draws of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def most_probable_path(states: NDArray[Any], n_states: int) -> NDArray[np.int64]:
    r"""Return the most probable sequence of every chain, (n_chains, n_times).

    Given its parameters, the states of a chain are a Markov chain whatever was observed. So are the draws,
    nearly, over all parameters; the path maximises

    .. math:: p(z_1) \prod_t p(z_{t+1} \mid z_t)

    with shares of draws as probabilities of states and of pairs of neighbours (the Viterbi
    algorithm).

    Parameters
    ----------
    states : ndarray of shape (n_draws, n_chains, n_times)
        In 0..n_states-1.
    n_states : int
    """
    n_draws, n_chains, n_times = states.shape
    codes = states.astype(np.int64)
    score = _log_shares(codes[:, :, 0], n_states, n_draws)
    origin = np.zeros((n_times, n_chains, n_states), dtype=np.int64)
    for step in range(1, n_times):
        pairs = codes[:, :, step - 1] * n_states + codes[:, :, step]
        joint = _log_shares(pairs, n_states**2, n_draws).reshape(n_chains, n_states, n_states)
        earlier = _log_shares(codes[:, :, step - 1], n_states, n_draws)
        seen = np.isfinite(earlier)[:, :, None]
        conditional = np.where(seen, joint - np.where(seen, earlier[:, :, None], 0.0), -np.inf)
        candidates = score[:, :, None] + conditional
        origin[step] = candidates.argmax(axis=1)
        score = candidates.max(axis=1)
    path = np.empty((n_chains, n_times), dtype=np.int64)
    path[:, -1] = score.argmax(axis=1)
    for step in range(n_times - 1, 0, -1):
        path[:, step - 1] = np.take_along_axis(origin[step], path[:, step, None], axis=1)[:, 0]
    return path


def _log_shares(codes: NDArray[np.int64], size: int, n_draws: int) -> NDArray[np.float64]:
    """Return the log share of draws (n_draws, n_chains) with every code, (n_chains, size)."""
    n_chains = codes.shape[1]
    counted = np.bincount((codes + size * np.arange(n_chains)).ravel(), minlength=size * n_chains)
    with np.errstate(divide="ignore"):
        return np.log(counted.reshape(n_chains, size) / n_draws)
