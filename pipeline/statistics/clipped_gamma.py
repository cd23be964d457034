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


def steps_of_gamma(shape: float, most: int) -> int:
    """Return how many steps keep a clipped variable's variance to some tenth of a percent, at most `most`."""
    return min(math.ceil(_STEPS * math.sqrt(max(shape / _NARROW, 1.0))), most)


def clipped_gamma(rate: Floats, upper: float, shape: float, steps: int) -> Floats:
    r"""Return the chances of steps of :math:`\min(T, u)`, :math:`T \sim \mathrm{Gamma}(k, r)`: (n, steps + 1)."""
    from scipy.special import gammainc, gammaincc  # noqa: PLC0415 - slow to import

    step = upper / steps
    with np.errstate(over="ignore"):
        place = rate[:, None] * (step * np.arange(1.0, steps + 1.0))
        mean = (shape / rate / step)[:, None]
    beyond = gammaincc(shape, place)
    # E min(T, t) and E (T - t)^+ in steps: each is precise where it is the small one of the two.
    number = np.arange(1.0, steps + 1.0)
    with np.errstate(invalid="ignore"):
        below = mean * gammainc(shape + 1.0, place) + number * beyond
        above = np.maximum(mean * gammaincc(shape + 1.0, place) - number * beyond, 0.0)
    below = np.where(np.isfinite(mean), below, number)
    chances = np.empty((len(rate), steps + 1))
    chances[:, 0] = 1.0 - below[:, 0]
    chances[:, -1] = below[:, -1] - (below[:, -2] if steps > 1 else 0.0)
    if steps > 1:
        before = np.concatenate([np.zeros_like(below[:, :1]), below[:, :-2]], axis=1)
        by_below = 2.0 * below[:, :-1] - before - below[:, 1:]
        by_above = np.empty_like(by_below)
        by_above[:, 1:] = above[:, :-2] - 2.0 * above[:, 1:-1] + above[:, 2:]
        by_above[:, 0] = by_below[:, 0]
        chances[:, 1:-1] = np.where((place[:, :-1] > shape) & np.isfinite(mean), by_above, by_below)
    np.maximum(chances, 0.0, out=chances)
    chances /= np.sum(chances, axis=1, keepdims=True)
    return chances
