r"""The total of shapes of gamma laws whose logarithms have a given variance together.

.. math:: \sum_i \psi'(e^u w_i) = s^2 \qquad (1)

with the trigamma function :math:`\psi'` (DLMF 5.15) and shares w. The logarithm of the left falls by 1 to 2
for a unit of u, so that Newton's method for u gets there from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats

_ENDS, _ROUNDS, _CLOSE = (-8.0, 40.0), 30, 1e-12


def total_of(spread: Floats, shares: Sequence[Floats | float]) -> Floats:
    """Return :math:`e^u` of (1), of the shape of `spread`."""
    from scipy.special import polygamma

    wanted = 2.0 * np.log(spread)
    u = np.clip(np.log(0.5 + np.exp(-wanted)) - np.log(min(np.min(each) for each in shares)) / 2.0, *_ENDS)
    for _ in range(_ROUNDS):
        each = [np.exp(u) * share for share in shares]
        value = np.sum([polygamma(1, shape) for shape in each], axis=0)
        slope = np.sum([shape * polygamma(2, shape) for shape in each], axis=0)
        step = (np.log(value) - wanted) * value / slope
        u = np.clip(u - step, *_ENDS)
        if np.max(np.abs(step)) < _CLOSE:
            break
    return np.asarray(np.exp(u))
