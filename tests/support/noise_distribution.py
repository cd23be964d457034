"""The exact distribution of sums of discrete Laplace magnitudes, and a two-sided scale test built on it.

For Z with P(Z = z) = tanh(1/2b) exp(-|z|/b), the sum S of N magnitudes |Z| decides the scale: it is small
where noise is too weak, large where it is too strong. Its distribution is the N-fold convolution of
P(|Z| = 0) = (1-q)/(1+q), P(|Z| = k) = 2 (1-q)/(1+q) q^k, q = exp(-1/b), computed by FFT.
"""

from __future__ import annotations

import bisect
import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM = 1e-7
"""Chance that a correct mechanism fails one two-sided test."""

MISS = 1e-7
"""Chance that a control with a wrong scale passes; sample sizes are computed from both."""


@cache
def distribution_of_sum(scale: float, size: int) -> NDArray[np.float64]:
    """Return P(S = 0), P(S = 1), ... for `size` magnitudes; errors are near 1e-16 a point."""
    # Beyond three times its mean, and 400 scales more, the sum has no mass that float64 could tell from 0.
    length = 1 << math.ceil(math.log2((3 * size + 400) * max(scale, 1.0)))
    q = math.exp(-1 / scale)
    magnitude = np.zeros(length)
    magnitude[0] = (1 - q) / (1 + q)
    magnitude[1:] = 2 * magnitude[0] * q ** np.arange(1, length, dtype=float)
    power = np.fft.rfft(magnitude) ** size
    return np.clip(np.fft.irfft(power, length), 0, None)


def acceptance(scale: float, size: int) -> tuple[int, int]:
    """Return the least and the greatest S that the two-sided test at FALSE_ALARM accepts."""
    distribution = distribution_of_sum(scale, size)
    below = np.cumsum(distribution)
    above = np.cumsum(distribution[::-1])[::-1]
    lower = int(np.searchsorted(below, FALSE_ALARM / 2, side="right"))
    upper = int(len(distribution) - 1 - np.searchsorted(above[::-1], FALSE_ALARM / 2, side="right"))
    return lower, upper


def accepts(noise: NDArray[np.int64], scale: float) -> bool:
    """Tell whether noise is consistent with a scale: two-sided, at FALSE_ALARM."""
    lower, upper = acceptance(scale, noise.size)
    return lower <= int(np.abs(noise).sum()) <= upper


def miss_probability(true_scale: float, claimed_scale: float, size: int) -> float:
    """Return the chance that noise of `true_scale` passes the test for `claimed_scale`."""
    lower, upper = acceptance(claimed_scale, size)
    return float(distribution_of_sum(true_scale, size)[lower : upper + 1].sum())


def sample_size(scale: float, factor: float) -> int:
    """Return a size at which scales `factor` times too small and too large are missed with chance <= MISS."""
    sizes: list[int] = [64 * 5**step // 4**step for step in range(20)]

    def is_enough(size: int) -> bool:
        missed = (miss_probability(scale, wrong, size) for wrong in (scale * factor, scale / factor))
        return max(missed) <= MISS

    return sizes[bisect.bisect_left(sizes, True, key=is_enough)]  # noqa: FBT003 - a place in an order
