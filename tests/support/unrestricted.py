"""Posteriors under the whole prior, not restricted to what bounded records can have: of engines."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.pooling import pool
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.within_limits import unrestricted

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior


def free(posterior: Posterior) -> Posterior:
    """Return a posterior without the limits of bounded records."""
    return dataclasses.replace(posterior, distribution=unrestricted(posterior.distribution))


def unrestricted_posterior(*given: Any, **terms: Any) -> Posterior:
    """As ``choice_of_engine.posterior_of``."""
    return free(posterior_of(*given, **terms))


def pooled(*given: Any, **terms: Any) -> Posterior:
    """As ``pool.pooled``."""
    return free(pool.pooled(*given, **terms))
