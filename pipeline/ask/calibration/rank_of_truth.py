"""The rank of the truth among draws of its posterior, many data sets at once."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.ask.calibration.ranks import DRAWS, LEFT_OUT
from suffice.pipeline.ask.posterior.infer import posterior_of
from suffice.pipeline.ask.posterior.posterior import NOISE_AWARE
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.terms.statistics.measure import MomentSums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Counts, Floats

    Progress: TypeAlias = Callable[[int, int], None]

_BATCH = 250
_SLOW_BATCH = 20
_CHAINS_BATCH = 500
"""Where the chains of all data sets run side by side: the more of them, the less each costs."""


def batch_of(generative_model: GenerativeModel) -> int:
    """Return how many posteriors are worked out at once."""
    if not generative_model.is_slow:
        return _BATCH
    side_by_side = isinstance(generative_model.family.measure(generative_model.entry), MomentSums)
    return _CHAINS_BATCH if side_by_side else _SLOW_BATCH


def _names(posterior: Posterior) -> tuple[tuple[str, str | None], ...]:
    """Name the entries of all parameters: with their component, ``mean[x]``, or beside their category."""
    if not posterior.components:
        return tuple(product(posterior.parameters, posterior.categories or (None,)))
    return tuple(
        (parameter if component is None else f"{parameter}[{component}]", None)
        for parameter in posterior.parameters
        for component in posterior.components.get(parameter, (None,))
    )


def ranks_of(
    generative_model: GenerativeModel,
    truth: Floats,
    sums: NDArray[np.object_],
    noise: Counts,
    seed: int,
    *,
    whole_prior: bool = False,
) -> tuple[tuple[tuple[str, str | None], ...], Counts, Floats]:
    """Names of the parameters; the truths' ranks among posterior draws, and how wide these are.

    Ranks and widths of the central 80 % have the shape (n_simulations, n_parameters). With `whole_prior` the
    posterior is not restricted to what records within the bounds can have.
    """
    rng = np.random.default_rng(seed)
    posterior = posterior_of(
        generative_model.noisy(sums, noise),
        method=generative_model.method,
        prior=generative_model.prior,
        n_prior=generative_model.believed_n_prior,
        clipping=generative_model.clipping,
        predictor_prior=(
            generative_model.predictor_prior if generative_model.method == NOISE_AWARE else None
        ),
    )
    if whole_prior:
        posterior = dataclasses.replace(posterior, distribution=unrestricted(posterior.distribution))
    drawn = posterior.sample(DRAWS, rng)
    names = _names(posterior)
    draws = np.concatenate(
        [drawn[parameter].reshape(DRAWS, len(truth), -1) for parameter in posterior.parameters], axis=2
    )
    true = truth.reshape(len(truth), -1)
    # Where float64 cannot tell truth and draws apart, their order is a matter of chance.
    ties = np.sum(draws == true, axis=0)
    ranks = np.sum(draws < true, axis=0) + rng.integers(0, ties, endpoint=True)
    out = LEFT_OUT[0.8] - 1
    ordered = np.partition(draws, (out, DRAWS - 1 - out), axis=0)
    return names, ranks, ordered[DRAWS - 1 - out] - ordered[out]
