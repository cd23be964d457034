"""Draws of a hidden Markov model by the method that settings state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.ask.models.fit_settings import MOST_SWEEPS
from suffice.pipeline.ask.models.noise_aware_states import noise_aware_draws
from suffice.pipeline.ask.models.plug_in_states import plug_in_draws
from suffice.pipeline.ask.models.restart_diagnostics import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.pipeline.ask.models.fit_settings import FitSettings
    from suffice.pipeline.ask.models.plug_in_states import Projection, StateSampler
    from suffice.pipeline.ask.models.state_draws import StateDraws


def sampled_states(
    table: CountsOverTime,
    settings: FitSettings,
    *,
    rng: np.random.Generator,
    start: StateDraws | None = None,
    progress: Callable[[int], None] | None = None,
) -> StateDraws:
    """Return draws of every restart, which go on from where `start` ends.

    `progress` gets the number of sweeps that are done.
    """
    common: dict[str, Any] = {
        "n_states": settings.n_states,
        "n_restarts": settings.n_restarts,
        "n_sweeps": settings.n_sweeps,
        "n_draws": settings.n_draws,
        "priors": settings.priors,
        "rng": rng,
        "start": start,
        "progress": progress,
    }
    if settings.method == NOISE_AWARE:
        return noise_aware_draws(table, **common)
    return plug_in_draws(
        table,
        project=cast("Projection", settings.project),
        sampler=cast("StateSampler", settings.sampler),
        **common,
    )


def settled_states(
    table: CountsOverTime,
    settings: FitSettings,
    *,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[StateDraws, FitSettings]:
    """Return draws of restarts that have settled, and the settings with the number of sweeps that took.

    Where they have not, as many sweeps again are run from where they are, and what came before is warm-up; up
    to ``MOST_SWEEPS`` sweeps. Where the settings state the number of sweeps, so many are run.
    """
    ahead = MOST_SWEEPS if settings.until_settled else settings.n_sweeps
    drawn = sampled_states(table, settings, rng=rng, progress=part_of(progress, 0, ahead))
    done = settings.n_sweeps
    while settings.until_settled and 2 * done <= MOST_SWEEPS and not diagnose(drawn).is_settled:
        more = sampled_states(
            table,
            dataclasses.replace(settings, n_sweeps=done),
            rng=rng,
            start=drawn,
            progress=part_of(progress, done, ahead),
        )
        drawn = dataclasses.replace(more, trace=np.concatenate([drawn.trace, more.trace], axis=1))
        done *= 2
    if progress is not None:
        progress(ahead, ahead)
    return drawn, dataclasses.replace(settings, n_sweeps=done)


def part_of(
    progress: Callable[[int, int], None] | None, before: int, total: int
) -> Callable[[int], None] | None:
    """Return what tells of the sweeps of a part as of so many in all."""
    if progress is None:
        return None
    return lambda done: progress(before + done, total)
