"""Compiled Gauss rules on integers, by their closed forms; ``quadrature`` has them of any number of nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.machine_code import uncounted

if TYPE_CHECKING:
    from suffice.typing import Floats

_B1, _B2, _B3, _B4 = 1.0 / 12.0, 1.0 / 15.0, 9.0 / 140.0, 16.0 / 252.0
"""Of the recurrence's coefficients: products, as divisions take longer than all else."""


@uncounted
def integer_rule(n: float, points: int, offset: Floats, weight: Floats) -> int:
    """Gauss rule on n integers about 0 (discrete Chebyshev polynomials); weights sum to n."""
    if n <= points:
        count = int(n)
        for i in range(count):
            offset[i], weight[i] = i - (n - 1.0) / 2.0, 1.0
        return count
    return rule_of_length(n, points, offset, weight)


@uncounted
def rule_of_length(n: float, points: int, offset: Floats, weight: Floats) -> int:
    """Gauss rule on n integers as a function of n, of 2 to 5 points, at any n above points - 1."""
    # Recurrence coefficients b_k = k^2 (n^2 - k^2) / (4 (4 k^2 - 1)).
    square = n * n
    b1, b2 = _B1 * (square - 1.0), _B2 * (square - 4.0)
    b3, b4 = _B3 * (square - 9.0), _B4 * (square - 16.0)
    if points == 2:
        offset[0], offset[1] = -math.sqrt(b1), math.sqrt(b1)
        weight[0], weight[1] = 0.5 * n, 0.5 * n
        return 2
    if points == 3:
        far = math.sqrt(b1 + b2)
        side = 0.5 * b1 / (b1 + b2)
        offset[0], offset[1], offset[2] = -far, 0.0, far
        weight[0], weight[1], weight[2] = n * side, n * (1.0 - 2.0 * side), n * side
        return 3
    if points == 4:
        total = b1 + b2 + b3
        root = math.sqrt(total * total - 4.0 * b1 * b3)
        u, v = (total + root) * 0.5, (total - root) * 0.5
        # 2 (w_u + w_v) = 1 and 2 (w_u u + w_v v) = b_1.
        w_u = 0.5 * (b1 - v) / root
        w_v = 0.5 - w_u
        far, near = math.sqrt(u), math.sqrt(v)
        offset[0], offset[1], offset[2], offset[3] = -far, -near, near, far
        weight[0], weight[1], weight[2], weight[3] = n * w_u, n * w_v, n * w_v, n * w_u
        return 4
    total = b1 + b2 + b3 + b4
    product = b1 * b3 + b1 * b4 + b2 * b4
    root = math.sqrt(total * total - 4.0 * product)
    u, v = (total + root) * 0.5, (total - root) * 0.5
    # 2 (w_u u + w_v v) = b_1 and 2 (w_u u^2 + w_v v^2) = b_1 (b_1 + b_2).
    fourth = b1 * (b1 + b2)
    per_root = 0.5 / root
    w_u = (fourth - b1 * v) * per_root / u
    w_v = (b1 * u - fourth) * per_root / v
    far, near = math.sqrt(u), math.sqrt(v)
    offset[0], offset[1], offset[2], offset[3], offset[4] = -far, -near, 0.0, near, far
    weight[0], weight[1], weight[3], weight[4] = n * w_u, n * w_v, n * w_v, n * w_u
    weight[2] = n * (1.0 - 2.0 * (w_u + w_v))
    return 5
