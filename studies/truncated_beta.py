"""The beta distribution on an interval: what a posterior sample of a Bernoulli statistic is drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.typing import Floats


def log_mass(a: ArrayLike, b: ArrayLike, a0: float) -> Floats:
    """Return log of the integral of p^(a-1) (1-p)^(b-1) over [a0, 1 - a0]."""
    first, second = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    # Mirrored so that the mass lies towards 1: what is beyond 1 - a0 then costs no digits of what is not.
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    share = special.betainc(larger, smaller, 1.0 - a0) - special.betainc(larger, smaller, a0)
    log_value: Floats = special.betaln(first, second) + np.log(share)
    return log_value


def mean_error(a: ArrayLike, b: ArrayLike, a0: float, truth: float) -> Floats:
    """Return E|p - truth| of a beta distribution on [a0, 1 - a0]; a0 = 0: of the whole one."""
    first, second = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    ends = (a0, truth, 1.0 - a0)
    low, middle, high = (special.betainc(first, second, end) for end in ends)
    low1, middle1, high1 = (special.betainc(first + 1.0, second, end) for end in ends)
    mean = first / (first + second)
    above = mean * (high1 - middle1) - truth * (high - middle)
    below = truth * (middle - low) - mean * (middle1 - low1)
    error: Floats = (above + below) / (high - low)
    return error


def log_density(points: Floats, a: float, b: float, a0: float) -> Floats:
    """Return the log density on [a0, 1 - a0], and minus infinity elsewhere."""
    inside = (points >= a0) & (points <= 1.0 - a0)
    safe = np.where(inside, points, 0.5)
    log_value = (a - 1.0) * np.log(safe) + (b - 1.0) * np.log1p(-safe) - log_mass(a, b, a0)
    return np.where(inside, log_value, -np.inf)
