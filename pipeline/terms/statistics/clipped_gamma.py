r"""One gamma variable clipped at a bound, on a lattice of equal steps that keeps its mean.

Every value stands as the two lattice values about it, by shares that leave its mean as it is. With
:math:`G(t) = E \min(T, t)` and steps of length h, the chances of 0, h, 2 h, ... are

.. math::
    1 - \frac{G(h)}{h}, \quad \frac{-G((j - 1) h) + 2 G(j h) - G((j + 1) h)}{h}, \quad
    \frac{G(R h) - G((R - 1) h)}{h}.

What that adds to the variance of a record is at most a quarter of a squared step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


_STEPS = 64
"""Of a gamma variable of a shape up to ``_NARROW``."""
_NARROW = 8.0
"""From this shape on a variable is narrower beside its mean, by the root of the shape, and so are steps."""
_LEAST = 1e-300
_RATES = 1e-100, 1e100
"""Of a step: beyond them all records are at an end."""


def steps_of_gamma(shape: float, most: int) -> int:
    """Return how many steps keep a clipped variable's variance to some tenth of a percent, at most `most`."""
    return min(math.ceil(_STEPS * math.sqrt(max(shape / _NARROW, 1.0))), most)


def clipped_gamma(rate: Floats, upper: float, shape: float, steps: int) -> Floats:
    r"""Return the chances of steps of :math:`\min(T, u)`, T of a gamma distribution: (n_rates, steps + 1)."""
    from scipy.special import gammainc, gammaincc

    number = np.arange(1.0, steps + 1.0)
    with np.errstate(over="ignore"):
        of_step = np.clip(rate * (upper / steps), *_RATES)[:, None]
    place, mean = of_step * number, shape / of_step
    # E min(T, t) and E (T - t)^+ in steps: each is precise where it is the small one of the two.
    beyond = gammaincc(shape, place)
    below = mean * gammainc(shape + 1.0, place) + number * beyond
    above = np.maximum(mean * gammaincc(shape + 1.0, place) - number * beyond, 0.0)
    none = np.zeros_like(of_step)
    by_below = -np.diff(np.concatenate([none, below], axis=1), 2, axis=1)
    by_above = np.diff(np.concatenate([mean, above], axis=1), 2, axis=1)
    inner = np.where(place[:, :-1] > shape, by_above, by_below)
    last = np.diff(np.concatenate([none, below], axis=1)[:, -2:], axis=1)
    chances = np.concatenate([1.0 - below[:, :1], inner, last], axis=1)
    # Above 0, so that no tilt to one end leaves nothing.
    np.maximum(chances, _LEAST, out=chances)
    chances /= np.sum(chances, axis=1, keepdims=True)
    return chances
