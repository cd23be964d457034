r"""One posterior sample of a hidden Markov model, by Gibbs sampling (Foulds and others 2016, 5 and E).

States z of cells follow one another by transitions A; rows of a cell have D features, feature d in
category j with chance :math:`\theta_{z d j}`, Dirichlet(beta), cut off at :math:`a_{0d} = 1 / (M K_d)`.
The likelihood is tempered, the priors are not: the law in the limit is :math:`P(A) P(z \mid A) P(\theta)
P(X \mid z, \theta)^{1 / T}`, :math:`T = \max(1, R / \epsilon)`, with :math:`C = \sum_d \log(K_d (M - 1) +
1)` and R = 2C where a record is replaced, C where one comes or goes.

A sweep moves theta given z by rounds of Gibbs on pairs, draws z given theta and A from emissions of
counts / T, and A given z, which costs nothing. Two costs stand in every output. *nominal*: R / T for one
draw, **if the chain has converged**, which nobody can check. *unconverged*: each draw of z, and each round
for theta, is a query of its own; with one round a sweep and 200 sweeps that is 400 times the nominal cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from studies.mechanisms.not_a_release import NotARelease, Relation, check_counts, check_positive
from studies.mechanisms.posterior_sampling import change_bound, public_start, temperature
from studies.mechanisms.truncated import move_truncated_dirichlet
from suffice.errors import UsageError
from suffice.pipeline.ask.models.state_draws import (
    StateDraws,
    count_transitions,
    draw_dirichlet,
    draw_single_sites,
    draw_states,
    kept_sweeps,
    log_dirichlet,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats, Mask

Sampler = Literal["ffbs", "single-site"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpsHmmSample(NotARelease):
    """Draws of a tempered, truncated hidden Markov model, and both costs.

    Attributes
    ----------
    draws : StateDraws
        Of each restart. The last draw is the posterior sample; the others show what it does not.
    temperature : float, >= 1
    n_sweeps : int
    nominal_epsilon : float
        Of one draw of one restart, only if the chain has converged. q draws cost q times as much.
    unconverged_epsilon : float
        Of one restart, whatever the chain does: the composition of all its queries.
    """

    draws: StateDraws
    temperature: float
    n_sweeps: int
    nominal_epsilon: float
    unconverged_epsilon: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """Both costs."""
        return (
            f"one draw: epsilon {self.nominal_epsilon:.6g} only if the chain has converged: nobody can check",
            f"epsilon {self.unconverged_epsilon:.6g} for {self.n_sweeps} sweeps of a chain that may not have",
        )

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each cell: its state in the last draw of the first restart."""
        states = self.draws.states[0, -1]
        chain, time = np.indices(states.shape)
        return {"chain": chain.ravel(), "time": time.ravel(), "state": states.ravel()}


def ops_change(n_categories: Sequence[int], multiplier: float) -> float:
    """Return C = sum over features of log(K_d (M - 1) + 1), the largest change of a row's log probability."""
    if not multiplier > 1:
        raise UsageError("multiplier must be above 1")
    return sum(change_bound(1.0 / (multiplier * each), each) for each in n_categories)


def ops_hmm(
    counts: Sequence[NDArray[np.number]],
    is_observed: Mask,
    *,
    n_states: int,
    epsilon: float,
    multiplier: float = 10.0,
    transitions_prior: float = 1.0,
    emissions_prior: float = 1.0,
    sampler: Sampler = "ffbs",
    n_sweeps: int = 200,
    n_draws: int = 1,
    n_restarts: int = 1,
    rounds: int = 1,
    relation: Relation = "replace_one",
    rng: np.random.Generator,
) -> OpsHmmSample:
    """Draw one posterior sample of a hidden Markov model from exact counts.

    Law and cost are those of the module.

    Parameters
    ----------
    counts : sequence of ndarray of shape (n_chains, n_times, K_d)
        Exact counts, one array a feature.
    is_observed : ndarray of shape (n_chains, n_times), bool
        A cell that is not has no emission: it may be held out.
    n_states : int, 1..127
        K; 1 is naive Bayes.
    epsilon : float, > 0
        Of one draw, nominally.
    multiplier : float, > 1
        M.
    transitions_prior, emissions_prior : float, > 0
        Alpha and beta.
    sampler : {"ffbs", "single-site"}
        All states at once given transitions, or one after the other, transitions summed out (equation 68).
    n_sweeps, n_draws, n_restarts : int, >= 1
        Draws are kept from the second half. A choice among restarts that looks at data is not paid for.
    rounds : int, >= 1
        Of Gibbs on pairs, for theta in each sweep: more of them mix better, and each is a query.
    relation : {"add_or_remove_one", "replace_one"}
    rng : numpy.random.Generator

    Returns
    -------
    OpsHmmSample
    """
    check_positive(transitions_prior=transitions_prior, emissions_prior=emissions_prior)
    check_counts(**{f"counts_{place}": each[is_observed] for place, each in enumerate(counts)})
    if not 1 <= n_states <= 127 or min(n_sweeps, n_draws, n_restarts, rounds) < 1:
        raise UsageError("numbers of sweeps, draws, restarts and rounds are at least 1, of states 1 to 127")
    sizes = [each.shape[-1] for each in counts]
    change_range = ops_change(sizes, multiplier) * (2.0 if relation == "replace_one" else 1.0)
    tempered = temperature(change_range, epsilon)
    weighted = [np.where(is_observed[..., None], each, 0).astype(np.float64) / tempered for each in counts]
    least = [1.0 / (multiplier * size) for size in sizes]
    cells = np.concatenate(weighted, axis=-1).reshape(-1, sum(sizes))
    starts = np.cumsum([0, *sizes[:-1]])
    # Starts know no data: they would be queries as well. Theta moves first, for states drawn at random: were
    # states drawn first, for theta drawn at random, all cells would go to the state that happens to be near.
    theta = [
        public_start((n_restarts, n_states, size), low, rng) for size, low in zip(sizes, least, strict=True)
    ]
    transitions = np.full((n_restarts, n_states + 1, n_states), 1.0 / n_states)
    states = rng.integers(n_states, size=(n_restarts, *is_observed.shape), dtype=np.int8)
    kept = set(kept_sweeps(n_sweeps, n_draws))
    draws: list[tuple[NDArray[np.int8], Floats, list[Floats]]] = []
    trace = []
    of_states = _counts_of_states(states, cells, n_states)
    for sweep in range(n_sweeps):
        parameters = np.split(emissions_prior + of_states, starts[1:], axis=-1)
        theta = [
            move_truncated_dirichlet(values, of_feature, low, rounds=rounds, rng=rng)
            for values, of_feature, low in zip(theta, parameters, least, strict=True)
        ]
        together = np.concatenate(theta, axis=-1)
        product = cells @ np.log(together).reshape(-1, sum(sizes)).T
        emissions = np.moveaxis(product.reshape(*is_observed.shape, n_restarts, n_states), 2, 0)
        if sampler == "ffbs":
            states = draw_states(emissions, transitions, rng)
        else:
            states = draw_single_sites(states, emissions, transitions_prior, rng)
        steps = count_transitions(states.astype(np.int64), n_states)
        transitions = draw_dirichlet(transitions_prior + steps, rng)
        of_states = _counts_of_states(states, cells, n_states)
        joint = (of_states * np.log(together)).sum(axis=(1, 2))
        joint += log_dirichlet(together, emissions_prior, starts)
        joint += (steps * np.log(transitions)).sum(axis=(1, 2))
        trace.append(joint + log_dirichlet(transitions, transitions_prior))
        if sweep in kept:
            draws.append((states, transitions, theta))
    return OpsHmmSample(
        draws=StateDraws(
            states=np.stack([each[0] for each in draws], axis=1),
            transitions=np.stack([each[1] for each in draws], axis=1),
            emissions=tuple(
                np.stack(each, axis=1) for each in zip(*(draw[2] for draw in draws), strict=True)
            ),
            expected_rows=None,
            log_joint=np.stack([trace[sweep] for sweep in sorted(kept)], axis=1),
            trace=np.stack(trace, axis=1),
        ),
        temperature=tempered,
        n_sweeps=n_sweeps,
        nominal_epsilon=change_range / tempered,
        unconverged_epsilon=n_sweeps * (1 + rounds) * change_range / tempered,
    )


def _counts_of_states(states: NDArray[np.int8], cells: Floats, n_states: int) -> Floats:
    """Return the sums of the counts of each state's cells, (n_restarts, n_states, n_columns)."""
    member = states.reshape(len(states), 1, -1) == np.arange(n_states, dtype=np.int8)[:, None]
    sums: Floats = member.astype(np.float64) @ cells
    return sums
