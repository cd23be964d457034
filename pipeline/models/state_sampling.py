"""Draws of a hidden Markov model by the method that settings state."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from suffice.pipeline.models.noise_aware_states import noise_aware_draws
from suffice.pipeline.models.plug_in_states import plug_in_draws
from suffice.pipeline.posterior.posterior import NOISE_AWARE

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from suffice.pipeline.models.count_table import CountTable
    from suffice.pipeline.models.fit_settings import FitSettings
    from suffice.pipeline.models.plug_in_states import Projection, StateSampler
    from suffice.pipeline.models.state_draws import StateDraws


def sampled_states(
    table: CountTable,
    settings: FitSettings,
    *,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> StateDraws:
    """Return draws of every restart; `progress` gets the number of sweeps that are done."""
    if settings.method == NOISE_AWARE:
        return noise_aware_draws(
            table,
            n_states=settings.n_states,
            n_restarts=settings.n_restarts,
            n_sweeps=settings.n_sweeps,
            n_draws=settings.n_draws,
            priors=settings.priors,
            rng=rng,
            progress=progress,
        )
    return plug_in_draws(
        table,
        n_states=settings.n_states,
        n_restarts=settings.n_restarts,
        n_sweeps=settings.n_sweeps,
        n_draws=settings.n_draws,
        priors=settings.priors,
        project=cast("Projection", settings.project),
        sampler=cast("StateSampler", settings.sampler),
        rng=rng,
        progress=progress,
    )
