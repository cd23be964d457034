r"""The density on the log of a scale that priors of several columns take, as a mixture's weights made smooth.

In squares of the half range of a column's bounds a variance's scale v has, with :math:`u = \log v` on
:math:`-R..0` and :math:`R = 8 \log 10`,

.. math:: f(u) = \frac 1 4 \cdot \frac 1 R + \frac 3 4 \cdot \frac{e^{u / 2}}{2 (1 - e^{-R / 2})},

a quarter even over eight decades, the rest flat in the standard deviation: the weights
below, as a density. Chains move on the whole line,

.. math:: u = \log \frac{1 + e^{x + R}}{1 + e^x} - R, \qquad
          \frac{du}{dx} = (1 - e^{-R}) \frac{1}{1 + e^x} \cdot \frac{1}{1 + e^{-x - R}},

which is x but for a nat at either end: where noise hides a variance its scale goes straight along with it.

Families of one column take fourteen scales instead. With :math:`j = 0, \dots, 13`,

.. math::
    v_j = 10^{-0.6 (13 - j)}, \qquad
    w_j = \frac 1 4 \cdot \frac 1 {14} + \frac 3 4 \cdot \frac{\sqrt{v_j}}{\sum_k \sqrt{v_k}},

from :math:`10^{-7.8}` to 1: standard deviations from a 7,900th of the half range to all of it, each about
twice the one before. The even part leaves no scale without a say. The other one, a density that is flat in
the standard deviation, lets large scales prevail where noise hides which it is: an upper end is then far out,
not too low.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

CONCENTRATION = 3.0
"""Of a variance's inverse gamma about each scale: the least whole number that leaves it a finite variance."""
STEP = 0.6
"""Decades of variance from one scale to the next."""
VARIANCES: tuple[float, ...] = tuple(10.0 ** (-STEP * below) for below in range(13, -1, -1))
"""v_j: the prior mean of the variance about each scale, in squares of the half range."""
EVEN = 0.25
"""The part of the weight that is spread evenly over the scales."""


def _weights(variances: tuple[float, ...]) -> tuple[float, ...]:
    roots = math.fsum(math.sqrt(variance) for variance in variances)
    return tuple(EVEN / len(variances) + (1.0 - EVEN) * math.sqrt(variance) / roots for variance in variances)


WEIGHTS = _weights(VARIANCES)
"""w_j; they sum to 1."""
LARGEST: tuple[float, ...] = VARIANCES[4:]
"""The ten largest, from 10^-5.4 to 1: in units of a bound, of one scale without a mean beside it. One over a
scale has moments that the smallest of these decide wherever noise may hide the scale, so they end sooner."""
LARGEST_WEIGHTS = _weights(LARGEST)
"""Their weights, by the same rule."""


RANGE = 8.0 * math.log(10.0)
"""R: how far below that of the half range the log of a variance's scale may lie."""
_LOWEST = math.exp(-RANGE)
_FAR = 300.0
_LOG_INSIDE = math.log(-math.expm1(-RANGE))
_FLAT = (1.0 - EVEN) / 2.0 / -math.expm1(-RANGE / 2.0)


def density(u: Any, exp: Callable[[Any], Any]) -> Any:
    """Return f(u) of logs of scales, by NumPy's or JAX's exponential."""
    return EVEN / RANGE + _FLAT * exp(u / 2.0)


def log_scale(x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return u, du/dx, the log density of x, and its derivative by x, of coordinates on the line."""
    # One exponential, of what does not overflow: chains spend much of their time here.
    near = np.clip(x, -_FAR, _FAR)
    e = np.exp(near)
    above, below = 1.0 + e, _LOWEST + e
    log_above, log_below = np.log(above), np.log(below)
    log_slope = _LOG_INSIDE + near - np.abs(x - near) - log_above - log_below
    slope = (1.0 - _LOWEST) * e / above / below
    tilted = _FLAT * np.sqrt(below / above)
    chance = EVEN / RANGE + tilted
    by_x = tilted / 2.0 / chance * slope - e / above + _LOWEST / below
    return log_below - log_above, slope, np.log(chance) + log_slope, by_x


def coordinate(u: Floats) -> Floats:
    """Return the coordinate of a log scale; what is not inside of its interval is moved there."""
    inside = np.clip(u, 0.1 - RANGE, -0.1)
    x: Floats = np.log(np.expm1(inside + RANGE)) - np.log(-np.expm1(inside)) - RANGE
    return x


def sample(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw scales v, in squares of half ranges."""
    share, is_even = rng.uniform(size=shape), rng.uniform(size=shape) < EVEN
    lowest = math.exp(-RANGE / 2.0)
    deviation = lowest + (1.0 - lowest) * share
    drawn: Floats = np.where(is_even, np.exp(-RANGE * share), deviation**2)
    return drawn
