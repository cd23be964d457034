r"""Draws of a hidden Markov model that takes released counts for exact ones: its intervals are too narrow.

This is the model of Foulds and others (2016): released counts, projected or not, are the counts of a
multinomial emission. Restarts run side by side.

Hidden states are drawn one after the other, transitions summed out (their equation 68):

.. math::
    P(z_t = k \mid \ldots) \propto (n_{z_{t-1}, k} + \alpha)
    \frac{n_{k, z_{t+1}} + [z_{t-1} = k = z_{t+1}] + \alpha}{n_k + [z_{t-1} = k] + K \alpha}\, e_t(k)

Counts are of the steps of all chains but those to and from this cell; :math:`n_k` counts steps out of k. The
first cell follows on a start, which is no state; the last one has no second factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from suffice.pipeline.ask.models.cell_totals import cell_totals
from suffice.pipeline.ask.models.state_draws import StateDraws
from suffice.pipeline.ask.models.state_filter import (
    count_transitions,
    draw_dirichlet,
    draw_states,
    kept_sweeps,
    log_dirichlet,
    starting_theta,
)
from suffice.pipeline.math.distributions.dirichlet import project_simplex

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.pipeline.ask.models.state_draws import StatePriors
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


Projection = Literal["clip", "simplex", "none"]
StateSampler = Literal["ffbs", "single-site"]


def plug_in_draws(
    table: CountsOverTime,
    *,
    project: Projection,
    sampler: StateSampler = "ffbs",
    n_states: int,
    n_restarts: int,
    n_sweeps: int,
    n_draws: int,
    priors: StatePriors,
    rng: np.random.Generator,
    start: StateDraws | None = None,
    progress: Callable[[int], None] | None = None,
) -> StateDraws:
    """Draw states and parameters; of the second half of the sweeps `n_draws` are kept, at even distances.

    Parameters
    ----------
    table : CountTable
    project : {"clip", "simplex", "none"}
        What stands for counts: ``projected_counts``. Under "none" negative counts enter emissions, and sums
        over a state's cells count as 0 where they are below it.
    sampler : {"ffbs", "single-site"}
        All states at once given parameters, or one state after the other with transitions summed out.
    n_states, n_restarts, n_sweeps, n_draws, priors, rng, start, progress
        As in ``noise_aware_draws``; the prior of expected rows has no part.
    """
    counts = projected_counts(table, project)
    n_cells, n_columns = counts.shape
    shape = table.is_observed.shape
    starts = _starts(table)
    sums = np.repeat(counts.sum(axis=0)[None], n_restarts, axis=0)
    theta = starting_theta(sums, starts, n_states, priors.emissions, rng)
    transitions = np.full((n_restarts, n_states + 1, n_states), 1.0 / n_states)
    states = rng.integers(n_states, size=(n_restarts, *shape), dtype=np.int8)
    if start is not None:
        theta = np.concatenate([each[:, -1] for each in start.emissions], axis=-1)
        transitions, states = start.transitions[:, -1], start.states[:, -1]
    restart = np.repeat(n_states * np.arange(n_restarts), n_cells)
    kept = set(kept_sweeps(n_sweeps, n_draws, goes_on=start is not None))
    draws: list[tuple[object, Floats, Floats]] = []
    trace = []
    for sweep in range(n_sweeps):
        # One product for all restarts; restarts stand first again without a copy.
        product = counts @ np.log(theta).reshape(-1, n_columns).T
        log_emissions = np.moveaxis(product.reshape(*shape, n_restarts, n_states), 2, 0)
        if sampler == "ffbs":
            states = draw_states(log_emissions, transitions, rng)
        else:
            states = draw_single_sites(states, log_emissions, priors.transitions, rng)
        steps = count_transitions(states.astype(np.int64), n_states)
        column = restart + states.ravel()
        member = np.zeros((n_restarts * n_states, n_cells))
        member[column, np.tile(np.arange(n_cells), n_restarts)] = 1.0
        of_states = (member @ counts).reshape(theta.shape)
        if sampler == "single-site":
            transitions = draw_dirichlet(priors.transitions + steps, rng)
        joint = (of_states * np.log(theta)).sum(axis=(1, 2)) + log_dirichlet(theta, priors.emissions, starts)
        joint += (steps * np.log(transitions)).sum(axis=(1, 2))
        trace.append(joint + log_dirichlet(transitions, priors.transitions))
        if sweep in kept:
            draws.append((states, transitions, theta))
        transitions = draw_dirichlet(priors.transitions + steps, rng)
        theta = draw_dirichlet(priors.emissions + np.maximum(of_states, 0.0), rng, starts)
        if progress is not None:
            progress(sweep + 1)
    all_states, all_transitions, all_theta = (np.stack(each, axis=1) for each in zip(*draws, strict=True))
    return StateDraws(
        states=all_states,
        transitions=all_transitions,
        emissions=tuple(np.split(all_theta, starts[1:], axis=-1)),
        expected_rows=None,
        log_joint=np.stack([trace[sweep] for sweep in sorted(kept)], axis=1),
        trace=np.stack(trace, axis=1),
    )


def projected_counts(table: CountsOverTime, project: Projection) -> Floats:
    """Return what stands for the counts of all features, (n_cells, n_columns); 0 in cells not observed.

    "clip" takes negative ones for 0. "simplex" takes the nearest counts of one total for all features, the
    average of their totals (``cell_totals``) or 0. "none" leaves them.
    """
    features = [counts.reshape(-1, counts.shape[-1]).astype(np.float64) for counts in table.counts]
    if project == "clip":
        features = [np.maximum(counts, 0.0) for counts in features]
    elif project == "simplex":
        scales = np.repeat(np.array(table.scales, dtype=np.float64), [each.shape[1] for each in features])
        total = cell_totals(np.concatenate(features, axis=1), _starts(table), scales)
        features = [project_simplex(counts, np.maximum(total, 0.0)[:, None]) for counts in features]
    counts: Floats = np.concatenate(features, axis=1)
    return np.where(table.is_observed.reshape(-1, 1), counts, 0.0)


def _starts(table: CountsOverTime) -> np.ndarray:
    return np.cumsum([0, *(counts.shape[-1] for counts in table.counts[:-1])])
