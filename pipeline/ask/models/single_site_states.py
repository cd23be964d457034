r"""Hidden states one after the other, transitions summed out: equation 68 of Foulds and others (2016).

.. math::
    P(z_t = k \mid \ldots) \propto (n_{z_{t-1}, k} + \alpha)
    \frac{n_{k, z_{t+1}} + [z_{t-1} = k = z_{t+1}] + \alpha}{n_k + [z_{t-1} = k] + K \alpha}\, e_t(k)

Counts are of the steps of all chains but those to and from this cell; :math:`n_k` counts steps out of k. The
first cell follows on a start, which is no state; the last one has no second factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.dirichlet_rows import count_transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats


def draw_single_sites(
    states: NDArray[np.int8], log_emissions: Floats, transitions_prior: float, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Draw every state once given all others, in order; all restarts at once.

    Parameters
    ----------
    states : ndarray of shape (n_restarts, n_chains, n_times), int8
    log_emissions : ndarray of shape (n_restarts, n_chains, n_times, K), float64
    transitions_prior : float
        Alpha.
    rng : numpy.random.Generator
    """
    n_restarts, n_chains, n_times, n_states = log_emissions.shape
    emissions = np.exp(log_emissions - log_emissions.max(axis=-1, keepdims=True))
    steps = count_transitions(states.astype(np.int64), n_states).astype(np.float64)
    leaving = steps[:, 1:].sum(axis=-1)
    uniform = rng.random((n_chains, n_times, n_restarts, 1))
    restart = np.arange(n_restarts)
    # Row k + 1 leaves state k; a state of -1 before the first time makes its row the start.
    path = np.full((n_chains, n_times + 1, n_restarts), -1, dtype=np.int64)
    path[:, 1:] = states.transpose(1, 2, 0)
    for chain in range(n_chains):
        for time in range(n_times):
            before, now = path[chain, time], path[chain, time + 1]
            steps[restart, before + 1, now] -= 1.0
            is_inner = time < n_times - 1
            if is_inner:
                after = path[chain, time + 2]
                steps[restart, now + 1, after] -= 1.0
                leaving[restart, now] -= 1.0
            weights = steps[restart, before + 1] + transitions_prior
            if is_inner:
                arriving = steps[restart, 1:, after] + transitions_prior
                total = leaving + n_states * transitions_prior
                if time > 0:
                    # The step to this cell is still among those that leave the state before.
                    arriving[restart, before] += before == after
                weights *= arriving
                weights /= total
            weights *= emissions[:, chain, time]
            sums = np.cumsum(weights, axis=-1)
            now = (sums > uniform[chain, time] * sums[:, -1:]).argmax(axis=-1)
            path[chain, time + 1] = now
            steps[restart, before + 1, now] += 1.0
            if is_inner:
                steps[restart, now + 1, after] += 1.0
                leaving[restart, now] += 1.0
    return np.ascontiguousarray(path[:, 1:].transpose(2, 0, 1), dtype=np.int8)
