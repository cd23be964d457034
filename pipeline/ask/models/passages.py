r"""First passages of Markov chains: how many steps it takes, on average, until a state is entered.

.. math:: m_{ij} = 1 + \sum_{k \ne j} P_{ik} m_{kj}

States are eliminated one at a time, as Grassmann, Taksar and Heyman do for the stationary law: a chain that
is watched only outside of an eliminated state is a chain again, whose steps take longer. Nothing is ever
subtracted, so that small probabilities keep their digits, and what cannot be left is known by a zero.

References
----------
Grassmann, Taksar, Heyman. Regenerative analysis and steady state distributions for Markov chains. Operations
Research 33(5), 1985.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats

_LEAST = 1e-300
"""Of a chance: one over a smaller one is no number, and it counts as 0."""


def first_passage(transitions: Floats, state: int) -> Floats:
    """Return the expected number of steps until a state is entered, from each state.

    Parameters
    ----------
    transitions : ndarray of shape (..., n_states, n_states), float64
        Rows are where a step starts; each adds up to 1.
    state : int
        That is entered, 0..n_states - 1.

    Returns
    -------
    ndarray of shape (..., n_states), float64
        At least 1; of the state itself, until it is entered again. Infinite where it may never be.
    """
    order = [state, *(other for other in range(transitions.shape[-1]) if other != state)]
    found = _to_first(_ordered(_invertible(transitions), order), np.ones(transitions.shape[:-1]), 1)[..., 0]
    return found[..., np.argsort(order)]


def all_first_passages(transitions: Floats) -> Floats:
    """Return the expected steps from each state (rows) to each (columns), shaped as the transitions.

    States that are half of all are eliminated once for all of the other half, and so on: the work grows as
    the cube of their number.
    """
    return _to_each(_invertible(transitions), np.ones(transitions.shape[:-1]))


def _invertible(transitions: Floats) -> Floats:
    return np.where(transitions < _LEAST, 0.0, transitions)


def _to_each(chances: Floats, steps: Floats) -> Floats:
    """Return expected steps between all states of a chain whose steps take so long, (..., L, L)."""
    size = chances.shape[-1]
    if size == 1:
        return steps[..., None]
    half = size // 2
    turned = [*range(half, size), *range(half)]
    to_second = _to_first(_ordered(chances, turned), steps[..., turned], size - half)
    to_second = to_second[..., np.argsort(turned), :]
    return np.concatenate([_to_first(chances.copy(), steps.copy(), half), to_second], axis=-1)


def _to_first(chances: Floats, steps: Floats, kept: int) -> Floats:
    """Return expected steps from all states to the first ones, (..., L, kept); overwrites what it is given.

    The others are eliminated from the last on. Steps from one of these then follow from those of the states
    before it, of which a target takes none.
    """
    size = chances.shape[-1]
    leaving = [_eliminate(chances, steps, state) for state in range(size - 1, kept - 1, -1)][::-1]
    found = np.empty((*steps.shape, kept))
    found[..., :kept, :] = _to_each(chances[..., :kept, :kept], steps[..., :kept])
    onward = found.copy()
    onward[..., range(kept), range(kept)] = 0.0
    for state, left in zip(range(kept, size), leaving, strict=True):
        outward, before = chances[..., state, None, :state], onward[..., :state, :]
        is_endless = np.isinf(before)
        total = steps[..., state, None] + (outward @ np.where(is_endless, 0.0, before))[..., 0, :]
        never = ((outward > 0.0) @ is_endless)[..., 0, :] | (left <= 0.0)[..., None]
        with np.errstate(over="ignore"):
            took = total / np.where(left > 0.0, left, 1.0)[..., None]
        onward[..., state, :] = np.where(never, np.inf, took)
    found[..., kept:, :] = onward[..., kept:, :]
    return found


def _eliminate(chances: Floats, steps: Floats, state: int) -> Floats:
    """Take the last state that is left out of a chain, and return the probability of leaving it, (...)."""
    outward, inward = chances[..., state, :state], chances[..., :state, state]
    leaving: Floats = np.sum(outward, axis=-1)
    is_trap = (leaving <= 0.0)[..., None]
    visits = inward / np.where(is_trap, 1.0, leaving[..., None])
    is_visited = visits > 0.0
    # An infinite number of steps times no chance of taking them is nothing.
    with np.errstate(over="ignore"):
        lasting = np.multiply(visits, steps[..., state, None], where=is_visited, out=np.zeros_like(visits))
    steps[..., :state] += np.where(is_trap & is_visited, np.inf, lasting)
    chances[..., :state, :state] += visits[..., :, None] * outward[..., None, :]
    return leaving


def _ordered(chances: Floats, order: list[int]) -> Floats:
    """Return a copy with its states in another order."""
    return chances[..., np.array(order)[:, None], order]


def stationary_law(passages: Floats) -> Floats:
    """Return the shares of time spent in each state in the long run, from all first passages.

    A state's share is one over the steps that it takes to come back. These add up to the number of classes
    of states that cannot be left: where there are several, the long run depends on the start, and the law
    is not a number.

    Parameters
    ----------
    passages : ndarray of shape (..., n_states, n_states), float64

    Returns
    -------
    ndarray of shape (..., n_states), float64
    """
    shares = 1.0 / np.diagonal(passages, axis1=-2, axis2=-1)
    total = np.sum(shares, axis=-1, keepdims=True)
    return np.where(total < 1.5, shares / total, np.nan)
