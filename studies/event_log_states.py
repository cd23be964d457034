"""What a fitted model says of the states of an event log, and how far that is from another model."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.hidden_markov_fit import align_states, total_variation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.typing import Floats

MASS = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """The states of one restart, numbered as those of a reference.

    Attributes
    ----------
    most_frequent : ndarray of shape (n_regions, n_times), int64
        The state of each cell in most draws.
    last : ndarray of shape (n_regions, n_times), int64
        In the last draw: of OPS, all that is published.
    emissions : tuple of ndarray of shape (K, n_categories)
        Means over draws, one a feature; of OPS those of the last draw.
    lower, upper : tuple of ndarray of shape (K, n_categories)
        Ends of 95 % intervals.
    transitions : ndarray of shape (K, K)
        Means over draws, of OPS those of the last draw; from the state in front.
    """

    most_frequent: NDArray[np.int64]
    last: NDArray[np.int64]
    emissions: tuple[Floats, ...]
    lower: tuple[Floats, ...]
    upper: tuple[Floats, ...]
    transitions: Floats


def states_of(draws: StateDraws, restart: int, reference: States | None, *, is_one_sample: bool) -> States:
    """Return what one restart says; without a reference the first state has most cells.

    Parameters
    ----------
    draws : StateDraws
    restart : int
    reference : States or None
    is_one_sample : bool
        Whether the last draw alone is published.
    """
    of_restart = slice(restart, restart + 1)
    aligned = align_states(
        dataclasses.replace(
            draws,
            states=draws.states[of_restart],
            transitions=draws.transitions[of_restart],
            emissions=tuple(each[of_restart] for each in draws.emissions),
            expected_rows=None,
            log_joint=draws.log_joint[of_restart],
            trace=draws.trace[of_restart],
        )
    )
    emissions = [each[0] for each in aligned.emissions]
    kept = slice(-1, None) if is_one_sample else slice(None)
    means = [each[kept].mean(axis=0) for each in emissions]
    n_states = len(means[0])
    order = np.arange(n_states) if reference is None else matching(means, reference.emissions)
    place = np.argsort(order)
    of_cells = place[aligned.states[0].astype(np.int64)]
    frequency = np.stack([(of_cells == state).mean(axis=0) for state in range(n_states)])
    ends = [np.quantile(each, [(1 - MASS) / 2, (1 + MASS) / 2], axis=0)[:, order] for each in emissions]
    return States(
        most_frequent=frequency.argmax(axis=0),
        last=of_cells[-1],
        emissions=tuple(each[order] for each in means),
        lower=tuple(each[0] for each in ends),
        upper=tuple(each[1] for each in ends),
        transitions=aligned.transitions[0, kept, 1:].mean(axis=0)[np.ix_(order, order)],
    )


def matching(emissions: Sequence[Floats], reference: Sequence[Floats]) -> NDArray[np.int64]:
    """Return the state that stands for each of the reference: least total variation in all."""
    distance = total_variation([each[None] for each in emissions], reference)[0]
    places = np.arange(len(distance))
    orders = itertools.permutations(range(len(distance)))
    return np.array(min(orders, key=lambda order: distance[places, list(order)].sum()))


def share_alike(most_frequent: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the share of cells in the same state."""
    return float(np.mean(most_frequent == other))


def distance_of_emissions(states: States, other: States) -> float:
    """Return the total variation between emissions, averaged over states and features."""
    pairs = zip(states.emissions, other.emissions, strict=True)
    return float(np.mean([0.5 * np.abs(first - second).sum(axis=-1).mean() for first, second in pairs]))


def share_covered(states: States, other: States) -> float:
    """Return the share of another model's emissions that lie within the 95 % intervals."""
    inside = [
        (low <= value) & (value <= high)
        for low, value, high in zip(states.lower, other.emissions, states.upper, strict=True)
    ]
    return float(np.concatenate([each.ravel() for each in inside]).mean())


def chance_of_rare(states: States, other: States, feature: int, rare: float) -> float:
    """Return the chance of categories of a feature that the other model calls rare, averaged over states."""
    is_rare = other.emissions[feature] < rare
    return float((states.emissions[feature] * is_rare).sum(axis=-1).mean())
