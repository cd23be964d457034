"""The models of the war logs under each method: hidden Markov models, of one state naive Bayes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.ops_hmm import ops_hmm
from suffice.pipeline.ask.models.chain_tables import CountsOverTime
from suffice.pipeline.ask.models.noise_aware_states import noise_aware_draws
from suffice.pipeline.ask.models.state_draws import StatePriors, plug_in_draws
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from studies.mechanisms.not_a_release import Relation
    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.typing import Counts, Mask

EXACT, CLIPPED, AWARE = "non-private", "Laplace, clipped", "Laplace, noise-aware"
OPS: Mapping[str, float] = {
    "OPS, M = 10 (if converged)": 10.0,
    "OPS, M = 100 (if converged)": 100.0,
}
"""The multiplier M of each: least probabilities are 1 / (M K_d)."""
PRIVATE = (CLIPPED, AWARE, *OPS)
PRIORS = StatePriors(transitions=1.0, emissions=1.0, rate=1e-3)


def laplace_table(
    counts: Sequence[Counts],
    is_observed: Mask,
    epsilon: float,
    *,
    relation: Relation,
    rng: np.random.Generator,
) -> CountsOverTime:
    """Return counts with discrete Laplace noise, epsilon shared by the features.

    The counts of a feature change by a sensitivity of 1 where a row is added or removed, of 2 where one is
    replaced.
    """
    scale = (2 if relation == "replace_one" else 1) * len(counts) / epsilon
    noisy = tuple(each + discrete_laplace(scale, each.shape, rng) for each in counts)
    return CountsOverTime(counts=noisy, is_observed=is_observed, scales=(scale,) * len(counts))


def exact_table(counts: Sequence[Counts], is_observed: Mask) -> CountsOverTime:
    """Return counts without noise."""
    return CountsOverTime(counts=tuple(counts), is_observed=is_observed, scales=(0.0,) * len(counts))


def table_draws(
    table: CountsOverTime,
    method: str,
    *,
    n_states: int,
    n_sweeps: int,
    n_draws: int,
    n_restarts: int,
    rng: np.random.Generator,
) -> StateDraws:
    """Draw from a table: noise-aware, or clipped as in the paper, which leaves exact counts as they are.

    Parameters
    ----------
    table : CountTable
    method : str
        `EXACT`, `CLIPPED` or `AWARE`.
    n_states, n_sweeps, n_draws, n_restarts : int
        Draws are kept from the second half of the sweeps.
    rng : numpy.random.Generator
    """
    if method == AWARE:
        return noise_aware_draws(
            [table] * n_restarts,
            n_states=n_states,
            n_sweeps=n_sweeps,
            n_draws=n_draws,
            priors=PRIORS,
            rng=rng,
        )
    return plug_in_draws(
        table,
        project="clip",
        n_states=n_states,
        n_restarts=n_restarts,
        n_sweeps=n_sweeps,
        n_draws=n_draws,
        priors=PRIORS,
        rng=rng,
    )


def ops_draws(
    counts: Sequence[Counts],
    is_observed: Mask,
    multiplier: float,
    *,
    n_states: int,
    epsilon: float,
    n_sweeps: int,
    n_draws: int,
    n_restarts: int,
    rounds: int,
    relation: Relation,
    rng: np.random.Generator,
) -> StateDraws:
    """Draw from exact counts; the last draw is the one posterior sample.

    Rounds are those of Gibbs on pairs, for emissions in a sweep: with one, chains stay near their start.
    """
    sample = ops_hmm(
        counts,
        is_observed,
        n_states=n_states,
        epsilon=epsilon,
        multiplier=multiplier,
        n_sweeps=n_sweeps,
        n_draws=n_draws,
        n_restarts=n_restarts,
        rounds=rounds,
        relation=relation,
        rng=rng,
    )
    return sample.draws


def best_restart(draws: StateDraws) -> int:
    """Return the restart of the highest mean log joint: what is released decides, which costs nothing."""
    return int(np.argmax(draws.log_joint.mean(axis=1)))
