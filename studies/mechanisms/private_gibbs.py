r"""Gibbs sampling as a row of exponential mechanisms (Foulds and others 2016, 4.1).

A private Gibbs update draws a new value of one variable, all others public, with a chance proportional to
:math:`\exp(\log P(\theta_l, \theta_{\neg l}, X) / T)`. If :math:`\Delta_l` is the largest change of that
log joint between neighbours, the update costs :math:`2 \Delta_l / T`. Updates add up. Updates of
variables that depend on one record each run in parallel: a sweep over all of them, in a fixed or in a
random order, costs the largest of their costs once.

A random scan updates Q of N such variables. The paper takes the subsampling of records for an
amplification and prices the scan at :math:`4 \Delta Q / N`. There is none: values before and after an
update are public, so a variable that changed shows that it was touched, and the scan costs :math:`2
\Delta`, as one update. Even with the touched set kept secret the bound would be :math:`\log(1 + (Q /
N)(e^{2 \Delta} - 1))`, which :math:`4 \Delta Q / N` does not bound. ``random_scan`` computes all of them
beside an enumerated loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from studies.mechanisms.not_a_release import NotARelease, check_positive
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats, Rows

Order = Literal["systematic", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable of a Gibbs sampler.

    Attributes
    ----------
    change : float, >= 0
        Delta_l, the largest change of the log joint between neighbours, over its values.
    is_of_one_record : bool
        Whether its conditional depends on one record, which no other such variable's does.
    """

    change: float
    is_of_one_record: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GibbsChain(NotARelease):
    """States of a private Gibbs sampler, and what publishing all of them costs.

    Attributes
    ----------
    states : ndarray of shape (n_sweeps + 1, n_variables), int64
        The start first, which must not know data.
    order : {"systematic", "random"}
    epsilon_of_updates : ndarray of shape (n_variables,), float64
    epsilon_of_sweep : float
    epsilon : float
        Of all sweeps, whether the chain has converged or not.
    """

    states: NDArray[np.int64]
    order: Order
    epsilon_of_updates: Floats
    epsilon_of_sweep: float
    epsilon: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a sweep costs, and all of them."""
        of_sweep = f"epsilon {self.epsilon_of_sweep:.6g} for a sweep in {self.order} order"
        return (of_sweep, f"epsilon {self.epsilon:.6g} for {len(self.states) - 1} sweeps")

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each state of the chain."""
        names = {f"variable_{place}": column for place, column in enumerate(self.states.T)}
        return {"sweep": np.arange(len(self.states)), **names}


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomScan(NotARelease):
    """What a random scan is said to cost, and what it costs.

    Attributes
    ----------
    claimed : float
        4 Delta Q / N, which is **false**.
    with_secret_places : float
        log(1 + (Q / N)(e^(2 Delta) - 1)): if nobody learned which variables were touched. They do.
    with_public_places : float
        2 Delta: what is to be paid.
    enumerated_loss : float
        Of an example: a lower bound of what any price must cover.
    """

    claimed: float
    with_secret_places: float
    with_public_places: float
    enumerated_loss: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """Which price holds."""
        return (f"a random scan costs {self.with_public_places:.6g}: there is no amplification",)

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row."""
        names = ("claimed", "with_secret_places", "with_public_places", "enumerated_loss")
        return {name: np.array([getattr(self, name)]) for name in names}


def update_chances(log_joint: Floats, temperature: float) -> Floats:
    """Return the chances of the values of a variable, from the log joint of each, last axis."""
    check_positive(temperature=temperature)
    weights = np.exp((log_joint - log_joint.max(axis=-1, keepdims=True)) / temperature)
    chances: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return chances


def update_costs(variables: Sequence[Variable], temperature: float) -> Floats:
    """Return the epsilon of one update of each variable: 2 Delta_l / T, (n_variables,)."""
    check_positive(temperature=temperature)
    return np.array([2.0 * variable.change / temperature for variable in variables])


def sweep_cost(variables: Sequence[Variable], temperature: float) -> float:
    """Return the epsilon of a sweep that updates each variable once, in any order that knows no data.

    Variables of one record each cost as much as the dearest of them, once; all others add up.
    """
    costs = update_costs(variables, temperature)
    is_parallel = np.array([variable.is_of_one_record for variable in variables], dtype=bool)
    return float(costs[~is_parallel].sum() + costs[is_parallel].max(initial=0.0))


def private_gibbs(
    start: Sequence[int],
    log_joint: Callable[[int, Rows], Floats],
    *,
    variables: Sequence[Variable],
    temperature: float = 1.0,
    n_sweeps: int,
    order: Order = "systematic",
    rng: np.random.Generator,
) -> GibbsChain:
    """Run private Gibbs updates of finite variables.

    Law
        In the limit of many sweeps exp(log joint / T), normalised.
    Cost
        ``sweep_cost`` for each sweep.

    Parameters
    ----------
    start : sequence of int
        Values that know no data.
    log_joint : callable
        Of a variable's place and all values: the log joint for each value that it may have, with the data.
    variables : sequence of Variable
        What an update costs.
    temperature : float, > 0
    n_sweeps : int, >= 0
    order : {"systematic", "random"}
        As listed, or a new random order for each sweep. Every variable is updated once a sweep.
    rng : numpy.random.Generator

    Returns
    -------
    GibbsChain
    """
    if len(start) != len(variables) or n_sweeps < 0:
        raise UsageError("start needs a value for each variable, and n_sweeps must be at least 0")
    values = np.array(start, dtype=np.int64)
    states = [values.copy()]
    for _ in range(n_sweeps):
        places = np.arange(values.size) if order == "systematic" else rng.permutation(values.size)
        for place in places:
            chances = update_chances(log_joint(int(place), values), temperature)
            values[place] = rng.choice(chances.size, p=chances)
        states.append(values.copy())
    of_sweep = sweep_cost(variables, temperature)
    return GibbsChain(
        states=np.array(states),
        order=order,
        epsilon_of_updates=update_costs(variables, temperature),
        epsilon_of_sweep=of_sweep,
        epsilon=n_sweeps * of_sweep,
    )


def random_scan(change: float, n_updated: int, n_variables: int, *, rarity: float = 12.0) -> RandomScan:
    """Return the prices of a random scan of Q of N variables of one record each, beside an enumerated loss.

    The example: each variable and its record are 0 or 1; its log odds given the record are -rarity + Delta
    or -rarity - Delta; T = 1, and all variables were 0. One record is replaced, and the new values are
    published. The more rarely a variable changes, the nearer the loss comes to 2 Delta.

    Parameters
    ----------
    change : float, > 0
        Delta.
    n_updated, n_variables : int, >= 1
        Q and N.
    rarity : float
    """
    check_positive(change=change)
    if not 1 <= n_updated <= n_variables:
        raise UsageError("n_updated must be from 1 to n_variables")
    share = n_updated / n_variables
    to_one = share / (1.0 + np.exp(rarity + np.array([-change, change])))
    losses = np.log([to_one, 1.0 - to_one])
    return RandomScan(
        claimed=4.0 * change * share,
        with_secret_places=math.log1p(share * math.expm1(2.0 * change)),
        with_public_places=2.0 * change,
        enumerated_loss=float(np.abs(losses[:, 0] - losses[:, 1]).max()),
    )
