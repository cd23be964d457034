r"""Hidden states given the parameters of a hidden Markov model, and draws that take noisy counts for exact.

A chain has a state :math:`z_t` in 0..K-1 at each time step t, and a cell has released counts :math:`y_t`:

.. math::
    z_1 \sim \pi, \qquad z_{t+1} \mid z_t \sim A_{z_t}, \qquad y_t \mid z_t = k \sim e_t(k)

with Dirichlet(alpha) rows of transitions, pi among them, and Dirichlet(beta) categories of each feature in
each state. Chains are independent, and so are restarts, each with parameters of its own: all take a step at
once. A cell without an emission has :math:`\log e_t(k) = 0` in every state.

**States given parameters** are drawn without error. Forward filtering and backward sampling are

.. math::
    f_t(k) = P(z_t = k \mid y_{1..t}) \propto e_t(k) \sum_j f_{t-1}(j) A_{jk}, \qquad
    P(z_t = j \mid z_{t+1} = k, y_{1..t}) \propto f_t(j) A_{jk}

and the sums that normalise f multiply to the evidence of a chain. Smoothing goes back over the filtered
chances:

.. math:: P(z_t = j \mid y) = f_t(j) \sum_k A_{jk} \frac{P(z_{t+1} = k \mid y)}{\sum_i f_t(i) A_{ik}}

**The plug-in sampler** is the model of Foulds and others (2016): released counts, projected or not, are the
counts of a multinomial emission, :math:`\log e_t(k) = \sum_j y_{tj} \log \theta_{kj}`. Its intervals are too
narrow, as the noise of counts is taken for data. States may also be drawn one after the other, transitions
summed out (their equation 68):

.. math::
    P(z_t = k \mid \ldots) \propto (n_{z_{t-1}, k} + \alpha)
    \frac{n_{k, z_{t+1}} + [z_{t-1} = k = z_{t+1}] + \alpha}{n_k + [z_{t-1} = k] + K \alpha}\, e_t(k)

Counts n are of the steps of all chains but those to and from this cell; :math:`n_k` counts steps out of k.
The first cell follows on a start, which is no state; the last one has no second factor.

Samplers of noisy and of exact counts share where restarts start, and which sweeps are kept.

References
----------
Foulds, Geumlek, Welling, Chaudhuri. On the theory and practice of privacy-preserving Bayesian data analysis.
UAI 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from suffice.pipeline.math.distributions.dirichlet import project_simplex
from suffice.pipeline.terms.statistics.statistic_plan import discrete_laplace_sd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.typing import Counts, Floats, Rows

_NO_NOISE = 1e-6
"""The least variance: counts without noise decide."""


def cell_totals(released: Counts | Floats, starts: Rows, scales: Floats) -> Floats:
    """Estimate the rows of each cell: totals of features, averaged inversely to the variance of their noise.

    Released counts are (..., n_columns), and features begin at `starts`. Noise makes negative totals normal.
    """
    sizes = np.diff(starts, append=released.shape[-1])
    deviations = [discrete_laplace_sd(scale) if scale else 0.0 for scale in scales[starts].tolist()]
    # A total of J categories has J times the variance of one.
    precision = 1.0 / (sizes * np.maximum(np.square(deviations), _NO_NOISE))
    totals = np.add.reduceat(released, starts, axis=-1)
    average: Floats = totals @ (precision / precision.sum())
    return average


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


_STARTING_ROWS = 100.0
"""How many rows the states' first distributions are drawn from: alike at first, and yet not the same."""


def starting_theta(
    sums: Floats, starts: Rows, n_states: int, beta: float, rng: np.random.Generator
) -> Floats:
    """Draw the states' first distributions near the table added up over all cells.

    Sums of released counts are (n_restarts, n_columns), and negative ones count as none; the distributions
    are (n_restarts, n_states, n_columns).
    """
    sizes = np.diff(starts, append=sums.shape[-1])
    positive = np.maximum(sums, 0.0) + 1.0
    pooled = positive / np.repeat(np.add.reduceat(positive, starts, axis=-1), sizes, axis=-1)
    parameters = np.repeat(_STARTING_ROWS * pooled[:, None] + beta, n_states, axis=1)
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
    # Gamma(a) is Gamma(a + 1) U^(1/a): of a small a it is often too small for a float, and its log is not.
    log_gamma = np.log(rng.standard_gamma(parameters + 1.0))
    log_gamma -= rng.standard_exponential(parameters.shape) / parameters
    log_gamma -= _in_blocks(np.maximum.reduceat(log_gamma, starts, axis=-1), starts, parameters.shape[-1])
    gamma = np.exp(log_gamma)
    gamma /= _in_blocks(np.add.reduceat(gamma, starts, axis=-1), starts, parameters.shape[-1])
    drawn: Floats = np.maximum(gamma, LEAST)
    return drawn


def log_dirichlet(theta: Floats, a: float, starts: Rows = _FIRST) -> Floats:
    r"""Return the log density of Dirichlet(a, ..., a), summed over all blocks and rows, (n_restarts,).

    It is the density of log odds, :math:`\Gamma(J a) / \Gamma(a)^J \prod_j \theta_j^a`. That of probabilities
    has no bound where a is below 1: categories that hardly occur would decide which of two draws is the more
    probable.
    """
    from scipy.special import gammaln

    sizes = np.diff(starts, append=theta.shape[-1])
    constant = np.sum(gammaln(sizes * a) - sizes * gammaln(a)) * theta.shape[1]
    density: Floats = a * np.log(theta).sum(axis=(1, 2)) + constant
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
    """Draw all states at once, given parameters, (n_restarts, n_chains, n_times).

    Log emissions have a number for each state besides, up to a constant of each cell. Row 0 of transitions,
    (n_restarts, K + 1, K), is the start, and row k + 1 leaves state k; all are at least ``LEAST``.
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
            # f_t(j) A_jk of every j, with k drawn.
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
        # P(z_{t+1} = k | y) over its chance given the cells up to t, then back over A.
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
        # e_t(k) sum_j f_{t-1}(j) A_jk, normalised.
        now = filtered[time]
        np.matmul(filtered[time - 1], between, out=predicted)
        now *= predicted
        np.matmul(now, ones, out=sums[time])
        now /= sums[time]
    # The sums multiply to the evidence, up to what was taken out of the emissions.
    evidence: Floats = np.log(sums[..., 0]).sum(axis=0) + highest.sum(axis=-1)
    return filtered, evidence


def draw_single_sites(
    states: NDArray[np.int8], log_emissions: Floats, alpha: float, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Draw every state once given all others, in order; all restarts at once.

    States are (n_restarts, n_chains, n_times), and log emissions have a number for each state besides.
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
            # The two factors of equation 68.
            weights = steps[restart, before + 1] + alpha
            if is_inner:
                arriving = steps[restart, 1:, after] + alpha
                total = leaving + n_states * alpha
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


def collected(
    draws: Sequence[tuple[Any, Floats, Floats, Floats | None]],
    trace: Sequence[Floats],
    kept: Iterable[int],
    starts: Rows,
) -> StateDraws:
    """Stack kept states, transitions, theta and lambda, and the log joint of every sweep."""
    states, transitions, theta, rows = zip(*draws, strict=True)
    return StateDraws(
        states=np.stack(states, axis=1),
        transitions=np.stack(transitions, axis=1),
        emissions=tuple(np.split(np.stack(theta, axis=1), starts[1:], axis=-1)),
        expected_rows=None if rows[0] is None else np.stack(rows, axis=1),
        log_joint=np.stack([trace[sweep] for sweep in sorted(kept)], axis=1),
        trace=np.stack(trace, axis=1),
    )


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
    draws: list[tuple[Any, Floats, Floats, None]] = []
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
        # The log joint: emissions and their prior, transitions and theirs.
        joint = (of_states * np.log(theta)).sum(axis=(1, 2)) + log_dirichlet(theta, priors.emissions, starts)
        joint += (steps * np.log(transitions)).sum(axis=(1, 2))
        trace.append(joint + log_dirichlet(transitions, priors.transitions))
        if sweep in kept:
            draws.append((states, transitions, theta, None))
        # Both from their conjugate distributions given the states.
        transitions = draw_dirichlet(priors.transitions + steps, rng)
        theta = draw_dirichlet(priors.emissions + np.maximum(of_states, 0.0), rng, starts)
        if progress is not None:
            progress(sweep + 1)
    return collected(draws, trace, kept, starts)


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
