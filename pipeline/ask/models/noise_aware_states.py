r"""Draws of a hidden Markov model given noisy counts, exact ones latent.

A cell of chain r at time t in state k has counts Poisson(lambda_rt theta_kdj) of category j of feature d;
released are these counts plus discrete Laplace noise. Features share lambda, the expected number of rows, and
not the number itself. One sweep:

1. log emissions of all cells in all states, exact counts summed out, and the states given them;
2. the exact counts given the states;
3. theta, lambda and the transitions given exact counts, each from its own distribution;
4. theta and lambda once more with exact counts summed out. Wide noise leaves theta next to no room once exact
   counts are given. A step moves chance between the two categories of random pairs: given states and lambda,
   categories are independent, so that all pairs of all states move at once, each accepted by itself.

States and parameters are kept after step 1, together with the log joint density that it has computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.cell_emissions import CellEmissions
from suffice.pipeline.ask.models.cell_totals import cell_totals
from suffice.pipeline.ask.models.state_draws import StateDraws
from suffice.pipeline.ask.models.state_filter import (
    LEAST,
    count_transitions,
    draw_dirichlet,
    draw_states,
    kept_sweeps,
    log_dirichlet,
    starting_theta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.pipeline.ask.models.state_draws import StatePriors
    from suffice.typing import Floats, Rows

PAIR_STEPS = 4
"""Rounds of pairs in a sweep: together they cost about half of what step 1 does with ten states."""
_PAIR_WIDTHS = (0.03, 3.0)
"""Steps of log odds: the size of each is drawn between these, evenly on the scale of logs."""
_ROW_WIDTHS = (0.05, 2.0)
"""Steps of log lambda."""


@dataclass(slots=True)
class Position:
    """Where the restarts are: theta (n_restarts, K, n_columns), lambda and states (n_restarts, n_cells)."""

    theta: Floats
    expected_rows: Floats
    transitions: Floats
    states: NDArray[np.int64]


def noise_aware_draws(
    table: CountsOverTime,
    *,
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
    n_states : int, from 1 to 127
    n_restarts : int, > 0
        Independent chains of draws, side by side.
    n_sweeps, n_draws : int
        At most half of the sweeps are kept, rounded up.
    priors : StatePriors
    rng : numpy.random.Generator
    start : StateDraws, optional
        Earlier draws, from the last of which these go on: all sweeps count then.
    progress : callable, optional
        Told after every sweep how many are done.
    """
    return draws_of_tables(
        [table] * n_restarts,
        n_states=n_states,
        n_sweeps=n_sweeps,
        n_draws=n_draws,
        priors=priors,
        rng=rng,
        start=start,
        progress=progress,
    )


def draws_of_tables(
    tables: Sequence[CountsOverTime],
    *,
    n_states: int,
    n_sweeps: int,
    n_draws: int,
    priors: StatePriors,
    rng: np.random.Generator,
    start: StateDraws | None = None,
    progress: Callable[[int], None] | None = None,
) -> StateDraws:
    """Draw for tables of one shape and the same noise, one restart of each."""
    emissions = CellEmissions.of(tables, n_states)
    shape = tables[0].is_observed.shape
    position = _start(emissions, n_states, priors, rng) if start is None else _last(start)
    kept = set(kept_sweeps(n_sweeps, n_draws, goes_on=start is not None))
    states, transitions, theta, rows, trace = [], [], [], [], []
    for sweep in range(n_sweeps):
        log_emissions = emissions.by_state(position.theta, position.expected_rows)
        drawn = draw_states(log_emissions.reshape(len(tables), *shape, n_states), position.transitions, rng)
        position.states = drawn.reshape(len(tables), -1).astype(np.int64)
        steps = count_transitions(drawn.astype(np.int64), n_states)
        trace.append(_log_joint(emissions, log_emissions, position, steps, priors))
        if sweep in kept:
            states.append(drawn)
            transitions.append(position.transitions)
            theta.append(position.theta)
            rows.append(position.expected_rows.reshape(drawn.shape))
        _given_counts(emissions, position, priors, rng)
        position.transitions = draw_dirichlet(priors.transitions + steps, rng)
        _without_counts(emissions, position, priors, rng)
        if progress is not None:
            progress(sweep + 1)
    all_theta = np.stack(theta, axis=1)
    return StateDraws(
        states=np.stack(states, axis=1),
        transitions=np.stack(transitions, axis=1),
        emissions=tuple(np.split(all_theta, emissions.starts[1:], axis=-1)),
        expected_rows=np.stack(rows, axis=1),
        log_joint=np.stack([trace[sweep] for sweep in sorted(kept)], axis=1),
        trace=np.stack(trace, axis=1),
    )


def _start(
    emissions: CellEmissions, n_states: int, priors: StatePriors, rng: np.random.Generator
) -> Position:
    """Start from the table added up over all cells, and from each cell's total."""
    released, starts = emissions.released, emissions.starts
    theta = starting_theta(released.sum(axis=1).astype(np.float64), starts, n_states, priors.emissions, rng)
    total = cell_totals(released, starts, emissions.scales)
    uniform = np.full((len(released), n_states + 1, n_states), 1.0 / n_states)
    return Position(
        theta=theta,
        expected_rows=np.maximum(total, 1.0),
        transitions=uniform,
        states=np.zeros(total.shape, dtype=np.int64),
    )


def _last(draws: StateDraws) -> Position:
    """Return where draws ended: the last sweep is always kept."""
    assert draws.expected_rows is not None  # noqa: S101 - noise-aware draws have them
    n_restarts = len(draws.states)
    return Position(
        theta=np.concatenate([each[:, -1] for each in draws.emissions], axis=-1),
        expected_rows=draws.expected_rows[:, -1].reshape(n_restarts, -1),
        transitions=draws.transitions[:, -1],
        states=draws.states[:, -1].reshape(n_restarts, -1).astype(np.int64),
    )


def _given_counts(
    emissions: CellEmissions, position: Position, priors: StatePriors, rng: np.random.Generator
) -> None:
    """Draw exact counts, then theta and lambda given them."""
    counts = emissions.draw_latent_counts(position.theta, position.states, position.expected_rows, rng)
    counts = counts.astype(np.float64)
    n_states = position.theta.shape[1]
    member = (position.states[:, None] == np.arange(n_states)[:, None]).astype(np.float64)
    position.theta = draw_dirichlet(priors.emissions + member @ counts, rng, emissions.starts)
    rate = priors.rate + len(emissions.starts) * emissions.is_observed
    position.expected_rows = rng.standard_gamma(1.0 + counts.sum(axis=-1)) / rate


def _without_counts(
    emissions: CellEmissions, position: Position, priors: StatePriors, rng: np.random.Generator
) -> None:
    """Move theta, then lambda, with exact counts summed out."""
    now = emissions.by_category(position.theta, position.states, position.expected_rows)
    now += priors.emissions * np.log(position.theta)
    for _ in range(PAIR_STEPS):
        first, second = _pairs(emissions, rng)
        theta_first, other = position.theta[..., first], position.theta[..., second]
        width = _widths(_PAIR_WIDTHS, theta_first.shape, rng)
        log_odds = np.log(theta_first / other) + width * rng.standard_normal(theta_first.shape)
        proposed = position.theta.copy()
        proposed[..., first] = (theta_first + other) / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
        proposed[..., second] = (theta_first + other) / (1.0 + np.exp(np.clip(log_odds, -700.0, 700.0)))
        np.maximum(proposed, LEAST, out=proposed)
        then = emissions.by_category(proposed, position.states, position.expected_rows)
        # In log odds the density of Dirichlet(beta) is theta^beta.
        then += priors.emissions * np.log(proposed)
        gain = (then - now)[..., first] + (then - now)[..., second]
        accepted = rng.standard_exponential(gain.shape) > -gain
        accepted &= np.minimum(proposed[..., first], proposed[..., second]) > LEAST
        for columns in (first, second):
            position.theta[..., columns] = np.where(
                accepted, proposed[..., columns], position.theta[..., columns]
            )
            now[..., columns] = np.where(accepted, then[..., columns], now[..., columns])
    rows = position.expected_rows
    width = _widths(_ROW_WIDTHS, rows.shape, rng)
    proposed = rows * np.exp(width * rng.standard_normal(rows.shape))
    gain = emissions.by_cell(position.theta, position.states, proposed)
    gain -= emissions.by_cell(position.theta, position.states, rows)
    gain += np.log(proposed / rows) - priors.rate * (proposed - rows)
    position.expected_rows = np.where(rng.standard_exponential(gain.shape) > -gain, proposed, rows)


def _widths(between: tuple[float, float], shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    low, high = between
    widths: Floats = low * (high / low) ** rng.random(shape)
    return widths


def _pairs(emissions: CellEmissions, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return categories two by two, each of one feature; of an odd number one is left out."""
    blocks = np.split(np.arange(len(emissions.scales)), emissions.starts[1:])
    shuffled = [rng.permutation(block)[: len(block) // 2 * 2].reshape(2, -1) for block in blocks]
    first, second = np.concatenate(shuffled, axis=1)
    return first, second


def _log_joint(
    emissions: CellEmissions,
    log_emissions: Floats,
    position: Position,
    steps: NDArray[np.int64],
    priors: StatePriors,
) -> Floats:
    """Return the log density of parameters, states and released counts, (n_restarts,)."""
    log_emission = np.take_along_axis(log_emissions, position.states[..., None], axis=-1)[..., 0]
    rows = np.where(emissions.is_observed, np.log(priors.rate) - priors.rate * position.expected_rows, 0.0)
    joint: Floats = (log_emission + rows).sum(axis=-1)
    joint += (steps * np.log(position.transitions)).sum(axis=(1, 2))
    joint += log_dirichlet(position.transitions, priors.transitions)
    joint += log_dirichlet(position.theta, priors.emissions, emissions.starts)
    return joint
