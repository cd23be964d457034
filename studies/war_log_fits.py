"""The states of an event log under every method: see ``studies.war_logs``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from studies.event_log_models import (
    AWARE,
    CLIPPED,
    EXACT,
    OPS,
    best_restart,
    exact_table,
    ops_draws,
    table_draws,
)
from studies.event_log_states import States, states_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from studies.event_logs import EventLog, Kind
    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.typing import Floats

EPSILON = 5
ROUNDS = 20
"""Of Gibbs on pairs, in a sweep of OPS."""
N_STATES: Mapping[Kind, int] = {"many": 2, "few": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The states under each method.

    Attributes
    ----------
    shown : mapping of str to States
        Of the restart that the pictures show.
    restarts : mapping of str to list of States
    log_joint : mapping of str to ndarray of shape (n_restarts,)
        Means over draws.
    """

    shown: Mapping[str, States]
    restarts: Mapping[str, list[States]]
    log_joint: Mapping[str, Floats]


def fit_all(
    log: EventLog, released: CountsOverTime, n_sweeps: int, n_restarts: int, rng: np.random.Generator
) -> Fitted:
    """Draw states under every method."""
    n_states, everywhere = N_STATES[log.kind], np.ones(log.shape, dtype=bool)
    n_draws = n_sweeps // 2
    shown: dict[str, States] = {}
    restarts: dict[str, list[States]] = {}
    log_joint: dict[str, Floats] = {}
    methods = (EXACT, CLIPPED, AWARE, *OPS)
    # The release's noise has no seed: a generator for each method keeps the others' draws the same.
    for method, generator in zip(methods, rng.spawn(len(methods)), strict=True):
        if method in OPS:
            draws = ops_draws(
                log.counts,
                everywhere,
                OPS[method],
                n_states=n_states,
                epsilon=EPSILON,
                n_sweeps=n_sweeps,
                n_draws=n_draws,
                n_restarts=n_restarts,
                rounds=ROUNDS,
                relation="add_or_remove_one",
                rng=generator,
            )
        else:
            draws = table_draws(
                exact_table(log.counts, everywhere) if method == EXACT else released,
                method,
                n_states=n_states,
                n_sweeps=n_sweeps,
                n_draws=n_draws,
                n_restarts=n_restarts,
                rng=generator,
            )
        log_joint[method] = draws.log_joint.mean(axis=1)
        chosen = 0 if method in OPS else best_restart(draws)
        shown[method] = states_of(draws, chosen, shown.get(EXACT), is_one_sample=method in OPS)
        restarts[method] = [
            states_of(draws, restart, shown[EXACT], is_one_sample=method in OPS)
            for restart in range(n_restarts)
        ]
    return Fitted(shown=shown, restarts=restarts, log_joint=log_joint)
