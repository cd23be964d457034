"""Scores of held-out events under the models of event logs: see ``studies.war_logs_held_out``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from studies.event_log_models import (
    AWARE,
    EXACT,
    OPS,
    best_restart,
    exact_table,
    laplace_table,
    ops_draws,
    table_draws,
)
from suffice.pipeline.ask.models.hidden_markov import exact_log_likelihood, log_mean_exp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from studies.event_logs import EventLog, Kind
    from studies.mechanisms.not_a_release import Relation
    from suffice.pipeline.ask.models.state_draws import StateDraws
    from suffice.typing import Counts, Floats, Mask

EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0)
HELD_OUT = 0.1
ROUNDS = 5
"""Of Gibbs on pairs, in a sweep of OPS."""
NAIVE, MARKOV = MODELS = ("naive Bayes", "hidden Markov")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated.

    Attributes
    ----------
    epsilons : tuple of float
    n_splits : int
    n_states, n_sweeps : int
    n_restarts : int
        Without privacy, and clipped.
    n_slow_restarts : int
        Noise-aware, and OPS.
    kinds : tuple of str
        Of the logs.
    part : tuple of int or None
        Regions and time steps of a smaller log.
    """

    epsilons: tuple[float, ...] = EPSILONS
    n_splits: int
    n_states: int = 10
    n_sweeps: int = 200
    n_restarts: int = 4
    n_slow_restarts: int
    kinds: tuple[Kind, ...] = ("few", "many")
    part: tuple[int, int] | None = None


SMALLEST = Effort(
    epsilons=(0.1, 10.0),
    n_splits=2,
    n_states=3,
    n_sweeps=10,
    n_restarts=2,
    n_slow_restarts=1,
    kinds=("few",),
    part=(5, 8),
)
USUAL = Effort(n_splits=2, n_slow_restarts=1)
FULL = Effort(n_splits=10, n_slow_restarts=4)

Scores = dict[tuple[str, str, float], list[float]]
"""Of each split, by model, method, epsilon; without privacy epsilon is infinite."""


def held_out_cells(shape: tuple[int, int], rng: np.random.Generator) -> Mask:
    """Choose a tenth of the cells."""
    chosen = np.zeros(shape, dtype=bool)
    chosen.flat[rng.permutation(chosen.size)[: max(1, round(HELD_OUT * chosen.size))]] = True
    return chosen


def score(counts: tuple[Counts, ...], held_out: Mask, draws: StateDraws, restart: int) -> float:
    """Return the log likelihood of a held-out event, by the mean chance over the draws of a restart."""
    n_draws = draws.states.shape[1]
    by_draw = exact_log_likelihood(counts, held_out, draws, restart=restart, n_draws=n_draws)
    return float(log_mean_exp(by_draw).sum() / counts[0][held_out].sum())


def score_of_emissions(counts: tuple[Counts, ...], held_out: Mask, draws: StateDraws, restart: int) -> float:
    """Return the same under naive Bayes: every held-out cell has the emissions of the one state."""
    total: Floats = np.concatenate([each[held_out].sum(axis=0) for each in counts])
    theta = np.concatenate([each[restart, :, 0] for each in draws.emissions], axis=-1)
    # Cells are scored one by one, as they are under the hidden Markov model.
    cells = np.concatenate([each[held_out] for each in counts], axis=-1)
    by_draw = np.log(theta) @ cells.T
    return float(log_mean_exp(by_draw).sum() / total[: counts[0].shape[-1]].sum())


def score_split(
    counts: tuple[Counts, ...],
    held_out: Mask,
    model: str,
    method: str,
    epsilon: float,
    effort: Effort,
    relation: Relation,
    rng: np.random.Generator,
) -> float:
    """Fit a model to all other cells, and return its score of the held-out ones."""
    is_naive = model == NAIVE
    scored = score_of_emissions if is_naive else score
    if is_naive:
        fitted = tuple(each[~held_out].sum(axis=0)[None, None] for each in counts)
        observed = np.ones((1, 1), dtype=bool)
    else:
        fitted, observed = counts, ~held_out
    n_states = 1 if is_naive else effort.n_states
    n_draws = effort.n_sweeps // 2
    if method in OPS:
        draws = ops_draws(
            fitted,
            observed,
            OPS[method],
            n_states=n_states,
            epsilon=epsilon,
            n_sweeps=effort.n_sweeps,
            n_draws=1,
            n_restarts=effort.n_slow_restarts,
            rounds=ROUNDS,
            relation=relation,
            rng=rng,
        )
        restarts = range(effort.n_slow_restarts)
        return float(np.mean([scored(counts, held_out, draws, restart) for restart in restarts]))
    if method == EXACT:
        table = exact_table(fitted, observed)
    else:
        table = laplace_table(fitted, observed, epsilon, relation=relation, rng=rng)
    draws = table_draws(
        table,
        method,
        n_states=n_states,
        n_sweeps=effort.n_sweeps,
        n_draws=n_draws,
        n_restarts=effort.n_slow_restarts if method == AWARE else effort.n_restarts,
        rng=rng,
    )
    return scored(counts, held_out, draws, best_restart(draws))


def scores_of(
    log: EventLog,
    methods: Sequence[str],
    n_splits: int,
    effort: Effort,
    *,
    relation: Relation,
    rng: np.random.Generator,
) -> Scores:
    """Score every model, private method and epsilon on the same splits, and models without privacy."""
    by_method: Scores = {}
    for _ in range(n_splits):
        held_out = held_out_cells(log.shape, rng)
        for model in MODELS:
            cases = [
                (EXACT, np.inf),
                *((method_name, each) for method_name in methods for each in effort.epsilons),
            ]
            for method, epsilon in cases:
                value = score_split(log.counts, held_out, model, method, epsilon, effort, relation, rng)
                by_method.setdefault((model, method, epsilon), []).append(value)
    return by_method
