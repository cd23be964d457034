"""Whether a default prior decides an interval, and not what was released.

A prior and a posterior are compared by the prior probability of the posterior's central interval. That is the
same on every scale of the parameter, and needs no moments, which priors spread over scales owe to far tails.
Where the release says nothing, it is the interval's own mass. Of normal priors and posteriors about the same
middle it falls below ``MOSTLY`` where the posterior's standard deviation is below half the prior's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.posterior.draws import MASS
from suffice.pipeline.ask.posterior.prior_density import prior_distribution_of
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.judged import Judged
    from suffice.typing import Floats, Mask

MOSTLY = 2.0 / 3.0
"""The least prior probability of a 95 % interval that is mostly the prior's."""
_LEVELS = (np.arange(200) + 0.5) / 200
_DRAWS = 1000


def decided_by_default(posterior: Judged) -> dict[str, Mask]:
    """Return which intervals are mostly the default prior's; see ``Posterior.decided_by_default``."""
    if not posterior.observed or posterior.method == "plug-in":
        return {}
    default = FAMILIES[posterior.family].default_prior(posterior.observed[0].plan.parameters)
    if posterior.prior != default:
        return {}
    prior = prior_distribution_of(posterior)
    if prior is None:
        return {}
    rng = np.random.default_rng(0)
    ends = ((1.0 - MASS) / 2.0, (1.0 + MASS) / 2.0)
    return {
        name: _prior_probability(
            prior.quantiles(of_prior, tuple(_LEVELS), _DRAWS, rng)[0],
            posterior.distribution.quantiles(name, ends, _DRAWS, rng),
        )
        >= MOSTLY
        for name, of_prior in zip(posterior.parameters, prior.parameters, strict=True)
    }


def _prior_probability(levels: Floats, intervals: Floats) -> Floats:
    """Return shares of the prior's quantiles inside of intervals, (n_cells,) or (n_cells, n_categories)."""
    inside = np.empty(intervals.shape[:-1])
    for entry in np.ndindex(intervals.shape[1:-1]):
        of_entry = (slice(None), *entry)
        lower, upper = np.moveaxis(intervals[of_entry], -1, 0)
        below = np.searchsorted(levels[entry], lower, side="left")
        inside[of_entry] = np.searchsorted(levels[entry], upper, side="right") - below
    shares: Floats = inside / len(_LEVELS)
    return shares
