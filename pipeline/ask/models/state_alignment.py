"""One numbering of states in all draws: samplers exchange them, from draw to draw and between restarts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.typing import Floats

_ROUNDS = 3
"""How often the reference is made anew of what was aligned with it."""


def align_states(draws: StateDraws) -> StateDraws:
    """Return draws whose states are numbered alike, the one with most cells first.

    Each draw's states are matched with those of a reference, so that the total variation between their
    emissions, averaged over features and added up over states, is smallest. The reference is the draw with
    the highest log joint, and then the average of what was matched.
    """
    n_restarts, n_draws, n_states = draws.emissions[0].shape[:3]
    flat = [each.reshape(n_restarts * n_draws, n_states, -1) for each in draws.emissions]
    best = int(np.argmax(draws.log_joint))
    reference = [each[best] for each in flat]
    order = np.empty((n_restarts * n_draws, n_states), dtype=np.int64)
    for _ in range(_ROUNDS):
        earlier = order.copy()
        order = _matched(flat, reference)
        if np.array_equal(order, earlier):
            break
        reference = [np.take_along_axis(each, order[:, :, None], axis=1).mean(axis=0) for each in flat]
    renumbered = _renumbered(draws, order.reshape(n_restarts, n_draws, n_states))
    size = np.bincount(renumbered.states.ravel(), minlength=n_states)
    by_size = np.argsort(-size, kind="stable")
    return _renumbered(renumbered, np.broadcast_to(by_size, (n_restarts, n_draws, n_states)))


def total_variation(emissions: Sequence[Floats], reference: Sequence[Floats]) -> Floats:
    """Return the mean over features of total variation, (n_draws, n_reference_states, n_states).

    Parameters
    ----------
    emissions : sequence of ndarray of shape (n_draws, n_states, n_categories)
        One a feature.
    reference : sequence of ndarray of shape (n_reference_states, n_categories)
    """
    distance = np.zeros((len(emissions[0]), len(reference[0]), emissions[0].shape[1]))
    for each, other in zip(emissions, reference, strict=True):
        for state, probability in enumerate(other):
            distance[:, state] += 0.5 * np.abs(each - probability).sum(axis=-1)
    return distance / len(emissions)


def _matched(emissions: Sequence[Floats], reference: Sequence[Floats]) -> NDArray[np.int64]:
    """Return for each draw which of its states each state of the reference is, (n_draws, n_states)."""
    from scipy.optimize import linear_sum_assignment

    distance = total_variation(emissions, reference)
    return np.array([linear_sum_assignment(each)[1] for each in distance], dtype=np.int64)


def _renumbered(draws: StateDraws, order: NDArray[Any]) -> StateDraws:
    """Let state k be what was state order[..., k]."""
    number = np.argsort(order, axis=-1).astype(draws.states.dtype)
    shape = draws.states.shape
    states = np.take_along_axis(number, draws.states.reshape(*shape[:2], -1).astype(np.int64), axis=-1)
    leaving = np.concatenate([np.zeros_like(order[..., :1]), order + 1], axis=-1)
    transitions = np.take_along_axis(draws.transitions, leaving[..., None], axis=2)
    return dataclasses.replace(
        draws,
        states=states.reshape(shape),
        transitions=np.take_along_axis(transitions, order[..., None, :], axis=3),
        emissions=tuple(np.take_along_axis(each, order[..., None], axis=2) for each in draws.emissions),
    )
