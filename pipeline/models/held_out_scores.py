r"""How likely cells that took no part are under draws of a hidden Markov model.

Of noisy counts the noise is part of the likelihood, and the expected number of rows of a cell, of which the
other cells say nothing, is integrated over its prior:

.. math::
    p(y_{rt} \mid k) = \int \rho e^{-\rho \lambda} \prod_{dj}
    \sum_n \mathrm{Pois}(n; \lambda \theta_{kdj})\, \mathrm{DLap}_b(y_{rtdj} - n)\, d\lambda

In :math:`\sqrt\lambda` the integrand is smooth on one scale, no narrower than a normal density of deviation
:math:`1 / (2 \sqrt D)`: equal steps are right to more digits than the table of emissions. The states' chances
are those given the drawn states before and after the cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.models.cell_emissions import CellEmissions
from suffice.pipeline.models.cell_totals import cell_totals
from suffice.pipeline.models.count_table import CountTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.models.state_draws import StateDraws, StatePriors
    from suffice.typing import Counts, Floats, Mask

_NODES = 64
_DEVIATIONS = 9.0
"""How far from a cell's total its expected rows are looked for, in deviations of the total's noise."""
_MARGIN = 3.5
"""Of the root of lambda, likewise, on either side."""


def held_out_log_likelihood(
    table: CountTable, held_out: Mask, draws: StateDraws, priors: StatePriors, *, restart: int, n_draws: int
) -> Floats:
    """Return the log chance of each held-out cell's released counts under each of some draws.

    The score of a cell is the log of the mean of the chances over draws.

    Parameters
    ----------
    table : CountTable
        With the held-out cells' counts.
    held_out : ndarray of shape (n_chains, n_times), bool
        Cells that `draws` have not seen.
    draws : StateDraws
        Noise-aware or not.
    priors : StatePriors
        Their rate is that of lambda.
    restart : int
    n_draws : int, > 0
        At most so many of the restart's draws are taken, at even distances.

    Returns
    -------
    ndarray of shape (n_taken, n_held_out), float64
    """
    cells = CountTable(
        counts=tuple(counts[held_out][:, None] for counts in table.counts),
        is_observed=table.is_observed[held_out][:, None],
        scales=table.scales,
    )
    nodes, log_weights = _nodes(cells, priors.rate)
    # Each cell stands once for each node of its own.
    n_states = draws.transitions.shape[-1]
    n_cells = len(cells.is_observed)
    emissions = CellEmissions.of([_repeated(cells, _NODES)], n_states)
    taken = _taken(draws.states.shape[1], n_draws)
    found = np.empty((len(taken), n_cells))
    for row, draw in enumerate(taken):
        theta = np.concatenate([each[restart, draw] for each in draws.emissions], axis=-1)
        by_node = emissions.by_state(theta[None], nodes.reshape(1, -1)).reshape(n_cells, _NODES, n_states)
        by_state = _log_sum_exp(by_node + log_weights[..., None], axis=1)
        with np.errstate(divide="ignore"):
            chances = np.log(_state_chances(held_out, draws, restart, draw))
        found[row] = _log_sum_exp(by_state + chances, axis=1)
    return found


def exact_log_likelihood(
    counts: tuple[Counts, ...], held_out: Mask, draws: StateDraws, *, restart: int, n_draws: int
) -> Floats:
    """Return the same of exact counts, given each cell's number of rows, for studies that know them.

    It is that of the rows in their order: no multinomial coefficients.

    Parameters
    ----------
    counts : tuple of ndarray of shape (n_chains, n_times, n_categories), int64
        One a feature.
    held_out, draws, restart, n_draws
        As in ``held_out_log_likelihood``.
    """
    cells = np.concatenate([each[held_out] for each in counts], axis=-1).astype(np.float64)
    found = []
    for draw in _taken(draws.states.shape[1], n_draws):
        theta = np.concatenate([each[restart, draw] for each in draws.emissions], axis=-1)
        with np.errstate(divide="ignore"):
            chances = np.log(_state_chances(held_out, draws, restart, draw))
        found.append(_log_sum_exp(cells @ np.log(theta).T + chances, axis=1))
    return np.stack(found)


def log_mean_exp(log_likelihood: Floats) -> Floats:
    """Return the log of the mean chance over draws, (n_held_out,)."""
    mean: Floats = _log_sum_exp(log_likelihood, axis=0) - np.log(len(log_likelihood))
    return mean


def _state_chances(held_out: Mask, draws: StateDraws, restart: int, draw: int) -> Floats:
    """Return the chance of each state in each held-out cell, given the states drawn beside it."""
    states = draws.states[restart, draw].astype(np.int64)
    transitions = draws.transitions[restart, draw]
    chain, time = np.nonzero(held_out)
    n_times = states.shape[1]
    before = np.where(time > 0, states[chain, np.maximum(time - 1, 0)] + 1, 0)
    after = states[chain, np.minimum(time + 1, n_times - 1)]
    leaving = np.where((time < n_times - 1)[:, None], transitions[1:, after].T, 1.0)
    weights = transitions[before] * leaving
    chances: Floats = weights / weights.sum(axis=1, keepdims=True)
    return chances


def _nodes(cells: CountTable, rate: float) -> tuple[Floats, Floats]:
    """Return lambda at the nodes of each cell, (n_cells, n_nodes), and the logs of their weights."""
    sizes = [counts.shape[-1] for counts in cells.counts]
    released = np.concatenate([counts[:, 0] for counts in cells.counts], axis=-1)
    total, deviation = cell_totals(
        released, np.cumsum([0, *sizes[:-1]]), np.repeat(np.array(cells.scales, dtype=np.float64), sizes)
    )
    low = np.sqrt(np.maximum(total - _DEVIATIONS * deviation, 0.0)) - _MARGIN
    high = np.sqrt(np.maximum(total + _DEVIATIONS * deviation, 0.0)) + _MARGIN
    low = np.maximum(low, 0.0)
    step = (high - low) / _NODES
    # Middles of equal steps: the density of the root vanishes at 0.
    roots = low[:, None] + step[:, None] * (np.arange(_NODES) + 0.5)
    log_weights = np.log(step)[:, None] + np.log(2.0 * rate * roots) - rate * roots**2
    return roots**2, log_weights


def _repeated(cells: CountTable, times: int) -> CountTable:
    return CountTable(
        counts=tuple(np.repeat(counts, times, axis=0) for counts in cells.counts),
        is_observed=np.repeat(cells.is_observed, times, axis=0),
        scales=cells.scales,
    )


def _taken(n_kept: int, n_draws: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n_kept - 1, min(n_draws, n_kept)).round().astype(np.int64))


def _log_sum_exp(values: Floats, axis: int) -> Floats:
    highest = values.max(axis=axis, keepdims=True)
    total: Floats = np.log(np.exp(values - highest).sum(axis=axis)) + highest.squeeze(axis)
    return total
