"""One count clipped to ``0..upper``: the chances of its values, that of the bound with all above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


def clipped_poisson(rate: Floats, upper: int) -> Floats:
    r"""Return :math:`P(\min(X, C) = x)` of Poisson counts, (n_rates, upper + 1)."""
    from scipy.special import gammaln, pdtrc, xlogy

    count = np.arange(float(upper))
    mean = rate[:, None]
    below = np.exp(xlogy(count, mean) - mean - gammaln(count + 1.0))
    return np.concatenate([below, np.asarray(pdtrc(upper - 1.0, mean))], axis=1)


def clipped_failures(probability: Floats, upper: int, successes: float = 1.0) -> Floats:
    r"""Return :math:`P(\min(X, C) = x)` of failures before r successes, (n_probabilities, upper + 1)."""
    from scipy.special import betainc, gammaln, xlog1py, xlogy

    count = np.arange(float(upper))
    chance = probability[:, None]
    ways = gammaln(count + successes) - gammaln(successes) - gammaln(count + 1.0)
    below = np.exp(ways + xlogy(successes, chance) + xlog1py(count, -chance))
    return np.concatenate([below, np.asarray(betainc(float(upper), successes, 1.0 - chance))], axis=1)
