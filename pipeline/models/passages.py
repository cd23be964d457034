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
    chances, steps = np.where(transitions < _LEAST, 0.0, transitions), np.ones(transitions.shape[:-1])
    others = [other for other in range(transitions.shape[-1]) if other != state]
    leaving = {}
    for position, gone in enumerate(others):
        kept = np.array([*others[position + 1 :], state])
        outward = chances[..., gone, kept]
        leaving[gone] = np.sum(outward, axis=-1)
        inward = chances[..., kept, gone]
        is_trap = leaving[gone] <= 0.0
        visits = inward / np.where(is_trap, 1.0, leaving[gone])[..., None]
        lasting = np.where(is_trap[..., None] & (inward > 0.0), np.inf, 0.0)
        # An infinite number of steps times no chance of taking them is nothing.
        with np.errstate(over="ignore"):
            lasting += np.multiply(
                visits, steps[..., gone, None], where=visits > 0.0, out=np.zeros_like(visits)
            )
        steps[..., kept] += lasting
        chances[..., kept[:, None], kept] += visits[..., :, None] * outward[..., None, :]
    for position, gone in reversed(list(enumerate(others))):
        later = np.array(others[position + 1 :], dtype=np.int64)
        outward = chances[..., gone, later]
        onward = np.multiply(outward, steps[..., later], where=outward > 0.0, out=np.zeros_like(outward))
        total = steps[..., gone] + np.sum(onward, axis=-1)
        is_trap = leaving[gone] <= 0.0
        with np.errstate(over="ignore"):
            steps[..., gone] = np.where(is_trap, np.inf, total / np.where(is_trap, 1.0, leaving[gone]))
    return steps


def all_first_passages(transitions: Floats) -> Floats:
    """Return the expected steps from each state (rows) to each (columns), shaped as the transitions."""
    states = range(transitions.shape[-1])
    return np.stack([first_passage(transitions, state) for state in states], axis=-1)


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
