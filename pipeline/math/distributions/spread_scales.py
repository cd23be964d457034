r"""Fourteen scales of a variance, and how probable each is before anything was seen.

In squares of the half range of a column's bounds, with :math:`j = 0, \dots, 13`,

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
