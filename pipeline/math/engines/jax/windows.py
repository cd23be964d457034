"""Which latent numbers are summed: windows fixed by the released values and the noise.

So one compiled function serves all parameters. A count lies within ``NATS`` scales of its noisy value but
for a chance of e^-NATS. Where parameters are so far from the data that the sum lives outside, the value is a
lower bound that still rises towards the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats


NATS = 45.0
MOST_TERMS = 50_000_000
"""Of all sums together: some gigabytes, gradients included."""


def window_of_n(centre: Floats, reach: int, prior: NPrior, least: int = 0) -> tuple[Floats, Floats]:
    """Return numbers of rows about each cell's centre, and the logs of their prior: (n_cells, n_numbers)."""
    low, high = max(prior.support[0], least), prior.support[1]
    if high - low <= 2 * reach:
        n = np.broadcast_to(np.arange(low, high + 1.0), (len(centre), high - low + 1))
    else:
        first = np.maximum(low, np.minimum(np.rint(centre), high) - reach)
        n = first[:, None] + np.arange(2.0 * reach + 1.0)
    return n, log_prior_of_n(n, prior, least)


def log_prior_of_n(n: Floats, prior: NPrior, least: int = 0) -> Floats:
    """Return the log prior of numbers of rows, minus infinity below `least` and outside of its support."""
    low, high = prior.support
    inside = (n >= max(low, least)) & (n <= high)
    return np.where(inside, prior.log_prob(np.clip(n, low, high)), -np.inf)


def require_terms(terms: int) -> None:
    """Refuse sums that would not fit into memory.

    Raises
    ------
    UsageError
    """
    if terms > MOST_TERMS:
        message = (
            f"the exact likelihood would take {terms} terms, more than {MOST_TERMS}: the noise is wide. Keep "
            "fewer cells with where, or use release.posterior, whose cost does not grow with the noise"
        )
        raise UsageError(message)
