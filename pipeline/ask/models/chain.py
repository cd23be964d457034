r"""A Markov chain over a release: transitions, stationary distribution, expected steps, states after steps.

.. math:: P(x_{t+1} = j \mid x_t = i) = P_{ij}, \qquad P \sim p(P \mid y)

What follows from P is worked out for each posterior draw of it, and so has an interval. There are four
questions. The next state is P itself. After n steps a law p becomes :math:`p P^n`. The expected number of
steps until state j is entered is the solution of

.. math:: m_{ij} = 1 + \sum_{k \ne j} P_{ik} m_{kj}

and the share of time spent in state j in the long run is :math:`\pi_j = 1 / m_{jj}`.

States are eliminated one at a time, as Grassmann, Taksar and Heyman do for the stationary distribution: a
chain that is watched only outside of an eliminated state s is a chain again, whose steps take longer,

.. math::
    P_{ij} \leftarrow P_{ij} + \frac{P_{is} P_{sj}}{\sum_{k \ne s} P_{sk}}, \qquad
    t_i \leftarrow t_i + \frac{P_{is} t_s}{\sum_{k \ne s} P_{sk}}

with t the expected time that a step takes, 1 at first. Nothing is ever subtracted, so that small
probabilities keep their digits, and what cannot be left is known by a zero. The error is rounding, and that
of the draws.

References
----------
Grassmann, Taksar, Heyman. Regenerative analysis and steady state distributions for Markov chains. Operations
Research 33(5), 1985.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import lists_terms
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity, require_family, tidy_draws
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.math.parameters.contrasts import finite
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.dirichlet import Dirichlet
    from suffice.typing import Floats

FAMILY = "markov_chain"
MOST_STEPS = 1_000_000
TRANSITION, STATIONARY, STEPS = "transition", "stationary", "expected_steps"
_NUMBERS = 4_000_000
"""Draws of transition probabilities that are worked on at once."""
_LEAST = 1e-300
"""Of a chance: one over a smaller one is no number, and it counts as 0."""


def first_passage(transitions: Floats, state: int) -> Floats:
    """Return the expected number of steps until a state is entered, from each state, (..., n_states).

    Rows of transitions, (..., n_states, n_states), are where a step starts. Of the state itself it is until
    it is entered again; it is infinite where the state may never be entered.
    """
    order = [state, *(other for other in range(transitions.shape[-1]) if other != state)]
    steps = np.ones(transitions.shape[:-1])
    return _to_first(_ordered(_invertible(transitions), order), steps, 1)[..., np.argsort(order), 0]


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
    m = np.empty((*steps.shape, kept))
    m[..., :kept, :] = _to_each(chances[..., :kept, :kept], steps[..., :kept])
    # What is left to go from each state: m_kj of k other than j.
    onward = m.copy()
    onward[..., range(kept), range(kept)] = 0.0
    for state, left in zip(range(kept, size), leaving, strict=True):
        outward, before = chances[..., state, None, :state], onward[..., :state, :]
        # m_sj = (t_s + sum_k P_sk m_kj) / sum_k P_sk, over the states k before s.
        is_endless = np.isinf(before)
        total = steps[..., state, None] + (outward @ np.where(is_endless, 0.0, before))[..., 0, :]
        never = ((outward > 0.0) @ is_endless)[..., 0, :] | (left <= 0.0)[..., None]
        with np.errstate(over="ignore"):
            took = total / np.where(left > 0.0, left, 1.0)[..., None]
        onward[..., state, :] = np.where(never, np.inf, took)
    m[..., kept:, :] = onward[..., kept:, :]
    return m


def _eliminate(chances: Floats, steps: Floats, state: int) -> Floats:
    """Take the last state that is left out of a chain, and return the probability of leaving it, (...)."""
    outward, inward = chances[..., state, :state], chances[..., :state, state]
    leaving: Floats = np.sum(outward, axis=-1)
    is_trap = (leaving <= 0.0)[..., None]
    visits = inward / np.where(is_trap, 1.0, leaving[..., None])
    is_visited = visits > 0.0
    # t_i + P_is t_s / sum_k P_sk. An infinite number of steps times no chance of taking them is nothing.
    with np.errstate(over="ignore"):
        lasting = np.multiply(visits, steps[..., state, None], where=is_visited, out=np.zeros_like(visits))
    steps[..., :state] += np.where(is_trap & is_visited, np.inf, lasting)
    # P_ij + P_is P_sj / sum_k P_sk, with s the state that is left out.
    chances[..., :state, :state] += visits[..., :, None] * outward[..., None, :]
    return leaving


def _ordered(chances: Floats, order: list[int]) -> Floats:
    """Return a copy with its states in another order."""
    return chances[..., np.array(order)[:, None], order]


def stationary_law(passages: Floats) -> Floats:
    """Return the shares of time spent in each state in the long run, from all first passages.

    A state's share is one over the steps that it takes to come back. These add up to the number of classes of
    states that cannot be left: where there are several, the long run depends on the start, and the law is not
    a number.
    """
    shares = 1.0 / np.diagonal(passages, axis1=-2, axis2=-1)
    total = np.sum(shares, axis=-1, keepdims=True)
    return np.where(total < 1.5, shares / total, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainQuantity:
    """Draws of one thing that follows from transition probabilities.

    Attributes
    ----------
    name : str
        ``transition``, ``stationary``, ``expected_steps``, or ``after_3`` of three steps.
    begins : tuple of str or None
        The states that it is from; None of a law.
    ends : tuple of str
        The states that it is to, or of.
    drawn : DrawnQuantity
        Draws of shape (n_draws, n_groups, len(begins), len(ends)), without the third axis where it is one.
    """

    name: str
    begins: tuple[str | None, ...]
    ends: tuple[str, ...]
    drawn: DrawnQuantity = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovChains:
    """Markov chains, one in every selected cell; made by ``chain``.

    Attributes
    ----------
    posterior : Posterior
        Of the transition probabilities.
    states : tuple of str
        In declared order; ``other`` last where the statistic has it.
    transitions : DrawnQuantity
        Probabilities of the next state (columns) given each state (rows), draws of shape
        (n_draws, n_groups, n_states, n_states).
    """

    posterior: Posterior = field(repr=False)
    states: tuple[str, ...]
    transitions: DrawnQuantity = field(repr=False)

    def stationary(self) -> DrawnQuantity:
        """Return the shares of time spent in each state in the long run, (n_draws, n_groups, n_states).

        Not a number in draws with several classes of states that cannot be left: there the long run depends
        on where a chain starts. Draws under a prior without zeros have one class.
        """
        return DrawnQuantity(draws=stationary_law(all_first_passages(self.transitions.draws)))

    def steps_to(self, state: str) -> DrawnQuantity:
        """Return the expected number of steps until a state is entered, from each state.

        From the state itself: until it is entered again. Infinite in draws in which it may never be. There
        are medians and intervals, and no mean: where a probability may be near 0, as under any prior with a
        concentration of at most 1, the expected number of steps has none.

        Returns
        -------
        DrawnQuantity
            Draws of shape (n_draws, n_groups, n_states), at least 1.

        Raises
        ------
        UsageError
            Where there is no such state.
        """
        return DrawnQuantity(
            draws=first_passage(self.transitions.draws, self._position(state)), has_moments=False
        )

    def after(self, steps: int, start: str | Mapping[str, float] | None = None) -> DrawnQuantity:
        """Return the law of the state after so many steps.

        Parameters
        ----------
        steps : int, 0..1,000,000
            How many.
        start : str or mapping of str to float, optional
            The state, or the probabilities of states, at first; those not named have none.

        Returns
        -------
        DrawnQuantity
            Draws of shape (n_draws, n_groups, n_states); without a start, one row from each state:
            (n_draws, n_groups, n_states, n_states).

        Raises
        ------
        UsageError
            Where the number of steps is out of range, or a state does not exist, or the probabilities do not
            add up to 1.
        """
        asked: object = steps
        if isinstance(asked, bool) or not isinstance(asked, int | np.integer) or not 0 <= asked <= MOST_STEPS:
            message = f"steps must be an integer in 0..{MOST_STEPS}, not {steps!r}"
            raise UsageError(message)
        power = np.linalg.matrix_power(self.transitions.draws, int(steps))
        if start is None:
            return DrawnQuantity(draws=power)
        return DrawnQuantity(draws=np.einsum("s,dgst->dgt", self._law(start), power))

    def rows(
        self,
        mass: float = MASS,
        *,
        steps: Sequence[int] = (),
        to: Sequence[str] | None = None,
        start: str | Mapping[str, float] | None = None,
    ) -> list[dict[str, Any]]:
        """One row a cell and number: keys, quantity, from, to, mean, sd, median, lower, upper.

        Parameters
        ----------
        mass : float
            Of the intervals.
        steps : sequence of int
            Also give the law after so many steps, as ``after_3``.
        to : sequence of str, optional
            Give expected steps to these states; to all otherwise.
        start
            As in ``after``.

        Returns
        -------
        list of dict
            ``from`` is None where a quantity has no start, or it is a law. Numbers that do not exist or are
            infinite are None.
        """
        rows = []
        for cells in self._blocks():
            groups = {column: keys[cells] for column, keys in self.posterior.groups.items()}
            quantities = self._of(cells).quantities(steps=steps, to=to, start=start)
            rows += _quantity_rows(groups, quantities, mass)
        return rows

    def quantities(
        self,
        *,
        steps: Sequence[int] = (),
        to: Sequence[str] | None = None,
        start: str | Mapping[str, float] | None = None,
    ) -> tuple[ChainQuantity, ...]:
        """Return the draws of what ``rows`` shows."""
        targets = self.states if to is None else tuple(dict.fromkeys(to))
        positions = [self._position(state) for state in targets]
        begins: tuple[str | None, ...] = self.states
        if start is not None:
            begins = (start,) if isinstance(start, str) else (None,)
        laws = [
            ChainQuantity(
                name=f"after_{number}", begins=begins, ends=self.states, drawn=self.after(number, start)
            )
            for number in dict.fromkeys(steps)
        ]
        passages = all_first_passages(self.transitions.draws)
        in_the_long_run = DrawnQuantity(draws=stationary_law(passages))
        expected = DrawnQuantity(draws=passages[..., positions], has_moments=False)
        return (
            ChainQuantity(name=TRANSITION, begins=self.states, ends=self.states, drawn=self.transitions),
            ChainQuantity(name=STATIONARY, begins=(None,), ends=self.states, drawn=in_the_long_run),
            ChainQuantity(name=STEPS, begins=self.states, ends=targets, drawn=expected),
            *laws,
        )

    def draw_columns(
        self,
        *,
        steps: Sequence[int] = (),
        to: Sequence[str] | None = None,
        start: str | Mapping[str, float] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the draws of what ``rows`` shows as tidy columns: keys, from, to, draw, parameter, value."""
        parts = []
        for quantity in self.quantities(steps=steps, to=to, start=start):
            drawn, pairs = quantity.drawn.draws, list(product(quantity.begins, quantity.ends))
            labels: dict[str, list[str | None]] = {
                "from": [begin for begin, _ in pairs],
                "to": [end for _, end in pairs],
            }
            by_pair = drawn.reshape(*drawn.shape[:2], -1)
            parts.append(tidy_draws(self.posterior.groups, labels, quantity.name, by_pair))
        return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}

    @property
    def undefined_share(self) -> Floats:
        """The share of draws in which a cell's chain has no one stationary distribution, (n_groups,)."""
        shares = [self._of(cells).stationary().undefined_share[:, 0] for cells in self._blocks()]
        return np.concatenate(shares)

    def _blocks(self) -> list[slice]:
        """Return cells, a block of which fits into memory several times over."""
        step = max(1, _NUMBERS // (self.transitions.draws.size // self.posterior.n_groups))
        return [slice(start, start + step) for start in range(0, self.posterior.n_groups, step)]

    def _of(self, cells: slice) -> MarkovChains:
        """Return the chains of some cells."""
        return dataclasses.replace(self, transitions=DrawnQuantity(draws=self.transitions.draws[:, cells]))

    def _position(self, state: str) -> int:
        if state not in self.states:
            message = f"{self.posterior.statistic} has no state {state!r}: it has {', '.join(self.states)}"
            raise UsageError(message)
        return self.states.index(state)

    def _law(self, start: str | Mapping[str, float]) -> Floats:
        law = np.zeros(len(self.states))
        for state, probability in ({start: 1.0} if isinstance(start, str) else dict(start)).items():
            law[self._position(state)] = probability
        if not (np.all(law >= 0.0) and abs(law.sum() - 1.0) <= 1e-9):
            message = "start: probabilities of states are not negative, and add up to 1"
            raise UsageError(message)
        return law


def _quantity_rows(
    groups: Mapping[str, list[str | int]], quantities: Sequence[ChainQuantity], mass: float
) -> list[dict[str, Any]]:
    """Sum quantities up, a row for each cell and pair of states; see ``MarkovChains.rows``."""
    rows: list[dict[str, Any]] = []
    summaries = [quantity.drawn.summary(mass) for quantity in quantities]
    for cell in range(len(summaries[0]["mean"])):
        keys = {column: values[cell] for column, values in groups.items()}
        for quantity, summary in zip(quantities, summaries, strict=True):
            shape = len(quantity.begins), len(quantity.ends)
            numbers = {name: values[cell].reshape(shape) for name, values in summary.items()}
            rows += [
                {
                    **keys,
                    "quantity": quantity.name,
                    "from": begin,
                    "to": end,
                    **{name: finite(values[i, j]) for name, values in numbers.items()},
                }
                for i, begin in enumerate(quantity.begins)
                for j, end in enumerate(quantity.ends)
            ]
    return rows


@lists_terms
def chain(
    release: Release,
    statistic: str,
    *,
    prior: Dirichlet | str | None = None,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
    **terms: Unpack[FurtherTerms],
) -> MarkovChains:
    """Return the Markov chains of a ``markov_chain`` statistic, one a cell. Costs no privacy.

    Parameters
    ----------
    release : Release
        That holds the statistic.
    statistic : str
        Its name.
    prior, **terms
        As in ``Release.posterior``.
    draws : int, > 0
        Posterior draws of the transition matrix.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Raises
    ------
    UsageError, PriorError
        Where the statistic is of another family, or a choice does not fit.
    """
    require_family(release, statistic, (FAMILY,), "a chain")
    draws, source = checked_draws(draws, least=2), generator(rng)
    posterior = release.posterior(statistic, prior, **terms)
    table = release.statistic(statistic).plan.parameters.tables[0]
    drawn = posterior.sample(draws, source)["probability"]
    return MarkovChains(
        posterior=posterior,
        states=table.variables[0].categories,
        transitions=DrawnQuantity(draws=drawn.reshape(*drawn.shape[:2], *table.shape)),
    )
