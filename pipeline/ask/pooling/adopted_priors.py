"""Priors of rates and probabilities of an adopted release, as log densities of a logarithm or a logit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.engines.published_counts import prior_on_line
from suffice.pipeline.math.priors.density import Density, DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.dirichlet import Beta
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats

_FARTHEST = 400.0
"""Of positions that are worked with: e^400 is 5e173."""


def log_prior_on_line(
    statistic: Any, chosen: Any, kind: type[Gamma | Beta], line: Line
) -> tuple[Any, Floats]:
    """Return the log density of a prior on the line, and where it is smooth."""
    if isinstance(chosen, Density):
        return prior_on_line(DensityOnLine.of(chosen, line, 0.0))
    components = chosen.components if isinstance(chosen, Mixture) else (chosen,)
    if not all(isinstance(component, kind) for component in components):
        message = (
            f"{statistic.name} is {statistic.family}: its prior must be {kind.__name__}, a Mixture of such, "
            "or any density of one number: by its name, or in Python one of scipy.stats or a "
            f"suffice.Density; not {chosen}"
        )
        raise PriorError(message)
    weights = np.array(chosen.weights if isinstance(chosen, Mixture) else (1.0,))
    log_weights = np.log(weights / weights.sum())

    def log_density(position: Floats) -> Floats:
        parts = [
            weight + _log_conjugate(each, position)
            for weight, each in zip(log_weights, components, strict=True)
        ]
        total: Floats = np.logaddexp.reduce(parts)
        return total

    return log_density, np.unique(np.concatenate([_edges(component) for component in components]))


def _log_conjugate(prior: Any, position: Floats) -> Floats:
    """Return the log density of a logarithm under a gamma prior, or of a logit under a beta one."""
    from scipy.special import betaln, gammaln

    if isinstance(prior, Gamma):
        a, r = prior.concentration, prior.rate
        density = a * (math.log(r) + position) - gammaln(a) - r * np.exp(position)
    else:
        a, b = prior.concentration1, prior.concentration0
        density = -a * np.logaddexp(0.0, -position) - b * np.logaddexp(0.0, position) - betaln(a, b)
    return np.asarray(density, dtype=np.float64)


def _edges(prior: Any) -> Floats:
    """Return positions about a conjugate prior, as far out as it has more than e^-50 of its mass.

    Towards its ends it falls as e^(-a |x|), slowly where a concentration is small.
    """
    if isinstance(prior, Gamma):
        centre, below, above = math.log(prior.concentration / prior.rate), prior.concentration, 1.0
    else:
        below, above = prior.concentration1, prior.concentration0
        centre = math.log(below / above)
    near = np.concatenate([np.arange(0.0, 8.0), np.exp2(np.arange(3.0, 8.0))])
    narrow = near / math.sqrt(1.0 + below)
    reach = max(_FARTHEST, 50.0 / below), max(_FARTHEST, 50.0 / above)
    left, right = ((each / 256.0) * near for each in reach)
    return centre + np.concatenate([-left, -near, -narrow, narrow, near, right])
