r"""Private Metropolis steps (Foulds and others 2016, Theorem C.1) and Barker's, with their costs on a grid.

A step at a public state proposes a state by a law that is symmetric and knows no data, and accepts it by the
change v of the tempered log likelihood, :math:`v = (\ell(\theta') - \ell(\theta)) / T`,
:math:`T = 2 \Delta / \epsilon`; :math:`\Delta` is the largest change of a log likelihood between neighbours.

*Metropolis* accepts with :math:`\min(1, e^v)`. Accepted states have chances within :math:`e^\epsilon`; a
rejection is certain not to happen where all proposals lie uphill, so rejections have no such bound. The
theorem calls the chance of a rejection delta: no privacy. *Barker* accepts with :math:`1 / (1 + e^{-v})`.
Its logarithm and that of its complement change by at most the change of v, so a step is epsilon-private,
with delta 0, at the same T. Both leave the tempered posterior invariant. k steps cost (k epsilon, k
delta).

``step_cost`` enumerates all data sets of ones and zeros up to a size, all states and all neighbours that
replace a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from studies.mechanisms.not_a_release import NotARelease, check_counts, check_positive
from studies.mechanisms.posterior_sampling import change_bound
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.typing import Floats

Rule = Literal["metropolis", "barker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost(NotARelease):
    """What one step costs, enumerated.

    Attributes
    ----------
    rule : {"metropolis", "barker"}
    epsilon : float
        Of the temperature.
    temperature : float
    delta : float
        The least delta for which a step, its new state published, is (epsilon, delta)-private.
    delta_of_decision : float
        The same if the step's decision is published as well.
    largest_log_ratio : float
        Of the chances of a new state: the pure loss of a step. The state that a step may stay at is one.
    largest_rejection : float
        The chance of a rejection, which Theorem C.1 takes for its delta.
    least : float
    n_points, most_records : int
        The grid, and the largest data sets, of which this is the cost.
    """

    rule: Rule
    epsilon: float
    temperature: float
    delta: float
    delta_of_decision: float
    largest_log_ratio: float
    largest_rejection: float
    least: float
    n_points: int
    most_records: int

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a step is."""
        return (
            f"a step of {self.rule} is ({self.epsilon:g}, {self.delta:.3g})-private on this grid",
            f"enumerated for at most {self.most_records} records",
        )

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row."""
        names = ("epsilon", "delta", "delta_of_decision", "largest_log_ratio", "largest_rejection")
        return {name: np.array([getattr(self, name)]) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(NotARelease):
    """States of a chain, and what its steps cost by adding up.

    Attributes
    ----------
    states : ndarray of shape (n_steps + 1,), float64
        Points of the grid, the start first.
    epsilon, delta : float
        Of all steps together, every state published.
    """

    states: Floats
    epsilon: float
    delta: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the chain is."""
        return (f"the chain is ({self.epsilon:g}, {self.delta:.3g})-private, delta cut off at 1",)

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each state."""
        return {"step": np.arange(len(self.states)), "state": self.states}


def kernel(log_likelihood: Floats, temperature: float, rule: Rule) -> Floats:
    """Return the chances of the next state under uniform proposals, the state itself among them.

    Parameters
    ----------
    log_likelihood : ndarray of shape (..., n_points), float64
    temperature : float, > 0
    rule : {"metropolis", "barker"}

    Returns
    -------
    ndarray of shape (..., n_points, n_points), float64
        From the state of the row to that of the column.
    """
    chances: Floats = acceptance(log_likelihood, temperature, rule) / log_likelihood.shape[-1]
    diagonal = np.einsum("...ii->...i", chances)
    diagonal += 1.0 - chances.sum(axis=-1)
    return chances


def acceptance(log_likelihood: Floats, temperature: float, rule: Rule) -> Floats:
    """Return the chance that a proposal (column) is accepted at a state (row); shapes as in ``kernel``."""
    check_positive(temperature=temperature)
    change = (log_likelihood[..., None, :] - log_likelihood[..., :, None]) / temperature
    if rule == "metropolis":
        accepted: Floats = np.exp(np.minimum(change, 0.0))
    else:
        accepted = 1.0 / (1.0 + np.exp(-change))
    return accepted


def step_cost(
    epsilon: float, *, rule: Rule, least: float = 0.1, n_points: int = 81, most_records: int = 20
) -> StepCost:
    """Return what one step costs, over all data sets of at most `most_records` ones and zeros.

    Parameters
    ----------
    epsilon : float, > 0
        T = 2 log((1 - least) / least) / epsilon.
    rule : {"metropolis", "barker"}
    least : float
        Ends of the grid are `least` and 1 - `least`.
    n_points : int, >= 2
        Of the grid, equally spaced.
    most_records : int, >= 1
    """
    check_positive(epsilon=epsilon)
    grid = _grid(least, n_points)
    temperature = 2.0 * change_bound(least) / epsilon
    delta = delta_of_decision = largest = rejected = 0.0
    for n_records in range(1, most_records + 1):
        ones = np.arange(n_records + 1.0)[:, None]
        likelihood = ones * np.log(grid) + (n_records - ones) * np.log1p(-grid)
        moves = kernel(likelihood, temperature, rule)
        accepted = acceptance(likelihood, temperature, rule) / n_points
        stays = 1.0 - accepted.sum(axis=-1, keepdims=True)
        decided = np.concatenate([accepted, np.maximum(stays, 0.0)], axis=-1)
        delta = max(delta, _delta(moves, epsilon))
        delta_of_decision = max(delta_of_decision, _delta(decided, epsilon))
        largest = max(largest, float(np.abs(np.diff(np.log(moves), axis=0)).max()))
        rejected = max(rejected, float(stays.max()))
    return StepCost(
        rule=rule,
        epsilon=epsilon,
        temperature=temperature,
        delta=delta,
        delta_of_decision=delta_of_decision,
        largest_log_ratio=largest,
        largest_rejection=rejected,
        least=least,
        n_points=n_points,
        most_records=most_records,
    )


def draw_chain(ones: int, zeros: int, *, n_steps: int, cost: StepCost, rng: np.random.Generator) -> Chain:
    """Draw a chain from the middle of the grid that `cost` is of.

    Raises
    ------
    UsageError
        Where there are more records than were enumerated: no claim goes beyond that.
    """
    check_counts(ones=ones, zeros=zeros)
    if ones + zeros > cost.most_records:
        raise UsageError(f"the cost was enumerated for at most {cost.most_records} records")
    grid = _grid(cost.least, cost.n_points)
    likelihood = ones * np.log(grid) + zeros * np.log1p(-grid)
    sums = np.cumsum(kernel(likelihood, cost.temperature, cost.rule), axis=-1)
    states = np.full(n_steps + 1, cost.n_points // 2)
    for step, uniform in enumerate(rng.random(n_steps)):
        row = sums[states[step]]
        states[step + 1] = np.searchsorted(row, uniform * row[-1], side="right")
    return Chain(states=grid[states], epsilon=n_steps * cost.epsilon, delta=min(1.0, n_steps * cost.delta))


def _delta(chances: Floats, epsilon: float) -> float:
    """Return the largest sum of what chances exceed those of a neighbour by, times e^epsilon."""
    here, there = chances[:-1], chances[1:]
    factor = np.exp(epsilon) * (1.0 + 1e-12)  # what floats add is no loss
    forth = np.maximum(here - factor * there, 0.0).sum(axis=-1).max()
    back = np.maximum(there - factor * here, 0.0).sum(axis=-1).max()
    return float(max(forth, back))


def _grid(least: float, n_points: int) -> Floats:
    if n_points < 2:
        raise UsageError("a grid has at least two points")
    grid: Floats = np.linspace(least, 1.0 - least, n_points)
    return grid
