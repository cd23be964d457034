"""Noise on a cone and outcomes' coordinates for many states side by side, in compiled loops.

The steps are those of ``latent_noise`` and of ``OutcomeNoise`` and ``OutcomeCoordinates``, where formulas and
sources stand. Arrays have states last (``lanes``).
"""

# ruff: noqa: C901, PLR0912 - compiled loops, one step after the other

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.machine_code import vectorised
from suffice.pipeline.math.engines.multivariate.lanes import LANES, exponential, invert, root_and_inverse

if TYPE_CHECKING:
    from suffice.typing import Floats


@vectorised
def set_cone(
    d: int, x: Floats, start: int,
    t: Floats, chi: Floats, twice: Floats, length: Floats, points: Floats, components: Floats, value: Floats,
) -> None:  # fmt: skip
    """Set a matrix of the cone at coordinates, and add its log density; see ``ConePoints.at``."""
    off = d * (d + 1) // 2
    n_components = 1 + d + off
    for s in range(LANES):
        t[s] = exponential(x[start, s])
        value[s] += n_components * x[start, s] - t[s]
        components[0, s] = 1.0
    place = start + 1
    for k in range(d):
        of_chi, of_exponential = start + 1 + off + k, start + 1 + off + d + k
        freedom = d + 1.0 - k
        for s in range(LANES):
            chi[k, s] = exponential(x[of_chi, s])
            twice[k, s] = 2.0 * exponential(x[of_exponential, s])
            points[k, k + 1, s] = chi[k, s]
            square = chi[k, s] * chi[k, s]
            length[k, s] = square + twice[k, s]
            value[s] += freedom * x[of_chi, s] + x[of_exponential, s] - 0.5 * (square + twice[k, s])
        for i in range(k + 1):
            for s in range(LANES):
                g = x[place, s]
                points[k, i, s] = g
                length[k, s] += g * g
                value[s] -= 0.5 * g * g
            place += 1
        for s in range(LANES):
            length[k, s] = math.sqrt(length[k, s])
        for i in range(k + 2):
            for s in range(LANES):
                points[k, i, s] /= length[k, s]
        for s in range(LANES):
            components[1 + k, s] = points[k, 0, s]
    place = 1 + d
    for k in range(d):
        for j in range(k, d):
            for s in range(LANES):
                components[place, s] = 0.0
            for i in range(k + 2):
                for s in range(LANES):
                    components[place, s] += points[k, i, s] * points[j, i, s]
            place += 1


@vectorised
def pull_cone(
    d: int, sign: float, by: Floats, x: Floats, start: int,
    t: Floats, chi: Floats, twice: Floats, length: Floats, points: Floats, components: Floats,
    by_points: Floats, along: Floats, slopes: Floats,
) -> None:  # fmt: skip
    """Set the slopes by coordinates from those by components, a sign times `by`; see ``pulled``."""
    off = d * (d + 1) // 2
    n_components = 1 + d + off
    for s in range(LANES):
        along[s] = 0.0
    for i in range(n_components):
        for s in range(LANES):
            along[s] += by[i, s] * components[i, s]
    for s in range(LANES):
        slopes[start, s] = t[s] * (sign * along[s] - 1.0) + n_components
    place = start + 1
    for k in range(d):
        for i in range(k + 2):
            for s in range(LANES):
                by_points[i, s] = by[1 + k, s] if i == 0 else 0.0
            # d <W, X X^T> = 2 W X dX, of which the triangle of `by` has both sides.
            for j in range(max(i - 1, 0), d):
                above, below = min(k, j), max(k, j)
                weight, both = 1 + d + above * d - above * (above - 1) // 2 + below - above, 1.0 + (k == j)
                for s in range(LANES):
                    by_points[i, s] += both * by[weight, s] * points[j, i, s]
        for s in range(LANES):
            along[s] = 0.0
        for i in range(k + 2):
            for s in range(LANES):
                by_points[i, s] *= sign * t[s]
                along[s] += by_points[i, s] * points[k, i, s]
        # x = r / |r|: what goes along x changes nothing.
        for i in range(k + 1):
            for s in range(LANES):
                by_raw = (by_points[i, s] - along[s] * points[k, i, s]) / length[k, s]
                slopes[place, s] = by_raw - x[place, s]
            place += 1
        of_chi, of_exponential = start + 1 + off + k, start + 1 + off + d + k
        freedom = d + 1.0 - k
        for s in range(LANES):
            by_raw = (by_points[k + 1, s] - along[s] * points[k, k + 1, s]) / length[k, s]
            slopes[of_chi, s] = by_raw * chi[k, s] + freedom - chi[k, s] * chi[k, s]
            half = twice[k, s] / 2.0
            slopes[of_exponential, s] = 1.0 - half - along[s] / (length[k, s] * length[k, s]) * half


@vectorised
def set_outcome(
    d: int, given: Floats, of_sampling: int, squares: Floats, z: Floats, mean: Floats, root: Floats,
    factors: Floats, variance: Floats, lower: Floats, inverse: Floats, sampling: Floats, column: Floats,
    row: Floats, work: Floats, of_log: Floats, value: Floats,
) -> None:  # fmt: skip
    """Set the outcome's row of L and its average, and what they rest on; add the log Jacobian.

    `variance` becomes the inverse of V, `column` the coordinates z of the outcome.
    """
    p = d - 1
    last_row = 1 + d + d * p // 2
    # F, V of (3), A of (4).
    for s in range(LANES):
        sampling[s] = root[p, p, s] * root[p, p, s] * given[of_sampling, s]
        factors[p, p, s] = 1.0
    for i in range(p):
        for s in range(LANES):
            factors[i, p, s] = mean[i, s]
        for j in range(i + 1):
            for s in range(LANES):
                factors[i, j, s] = root[i, j, s]
    for i in range(d):
        for j in range(i + 1):
            first = i if i < p else (j if j < p else 0)
            for s in range(LANES):
                variance[i, j, s] = sampling[s] if i == j else 0.0
            for m in range(first, d):
                for s in range(LANES):
                    variance[i, j, s] += squares[m] * factors[m, i, s] * factors[m, j, s]
    invert(variance, d, of_log, row, column)
    for i in range(d):
        for j in range(i + 1):
            for s in range(LANES):
                work[i, j, s] = variance[i, j, s]
                if i == j:
                    work[i, j, s] += given[of_sampling + (d + 1 if i < p else d), s]
            for m in range(i, p if i < p else 0):
                for s in range(LANES):
                    work[i, j, s] += root[m, i, s] * root[m, j, s] * given[of_sampling + 1 + m, s]
    root_and_inverse(work, d, lower, inverse, of_log)
    # y = U^-1 z: the outcome's row of L, and its average.
    for i in range(d):
        for s in range(LANES):
            column[i, s] = z[last_row + i, s] if i < p else z[d, s]
    for i in range(d):
        for s in range(LANES):
            row[i, s] = 0.0
        for j in range(i, d):
            for s in range(LANES):
                row[i, s] += inverse[j, i, s] * column[j, s]
        for s in range(LANES):
            if i < p:
                root[p, i, s] = row[i, s]
            else:
                mean[p, s] = row[i, s]
    for s in range(LANES):
        value[s] -= of_log[s]


@vectorised
def pull_outcome(
    d: int, given: Floats, of_sampling: int, squares: Floats, root: Floats, factors: Floats, variance: Floats,
    inverse: Floats, sampling: Floats, column: Floats, row: Floats, work: Floats, other: Floats,
    by_precision: Floats, by_factors: Floats, of_log: Floats, by_mean: Floats, by_root: Floats,
) -> None:  # fmt: skip
    """Turn derivatives by the outcome's row of L and average into those by z and what z rests on."""
    p = d - 1
    # By z, then by A, V, and F.
    for i in range(d):
        for s in range(LANES):
            row[i, s] = 0.0
        for j in range(i + 1):
            for s in range(LANES):
                row[i, s] += inverse[i, j, s] * (by_root[p, j, s] if j < p else by_mean[p, s])
    for i in range(d):
        for j in range(i + 1):
            for s in range(LANES):
                work[i, j, s] = (-column[i, s] * row[j, s] - (1.0 if i == j else 0.0)) / 2.0
                work[j, i, s] = work[i, j, s]
    for i in range(d):
        for j in range(d):
            for s in range(LANES):
                other[i, j, s] = 0.0
            for m in range(j, d):
                for s in range(LANES):
                    other[i, j, s] += work[i, m, s] * inverse[m, j, s]
    for i in range(d):
        for j in range(i + 1):
            for s in range(LANES):
                by_precision[i, j, s] = 0.0
            for m in range(i, d):
                for s in range(LANES):
                    by_precision[i, j, s] += inverse[m, i, s] * other[m, j, s]
            for s in range(LANES):
                by_precision[j, i, s] = by_precision[i, j, s]
    for i in range(d):
        for j in range(d):
            for s in range(LANES):
                other[i, j, s] = 0.0
            for m in range(d):
                for s in range(LANES):
                    other[i, j, s] += by_precision[i, m, s] * variance[m, j, s]
    for s in range(LANES):
        of_log[s] = 0.0
    for i in range(d):
        for j in range(i + 1):
            for s in range(LANES):
                work[i, j, s] = 0.0
            for m in range(d):
                for s in range(LANES):
                    work[i, j, s] -= variance[i, m, s] * other[m, j, s]
            for s in range(LANES):
                work[j, i, s] = work[i, j, s]
        for s in range(LANES):
            of_log[s] += work[i, i, s]
    for i in range(p):
        for j in range(d):
            if i < j < p:
                continue
            for s in range(LANES):
                by_factors[i, j, s] = 0.0
            for m in range(d):
                for s in range(LANES):
                    by_factors[i, j, s] += 2.0 * squares[i] * factors[i, m, s] * work[m, j, s]
            for m in range(i + 1 if j < p else 0):
                for s in range(LANES):
                    seen = root[i, m, s] * given[of_sampling + 1 + i, s]
                    by_factors[i, j, s] += 2.0 * seen * by_precision[m, j, s]
        for j in range(i):
            for s in range(LANES):
                by_root[i, j, s] += by_factors[i, j, s]
        for s in range(LANES):
            by_root[i, i, s] += by_factors[i, i, s] * root[i, i, s]
            by_mean[i, s] += by_factors[i, p, s]
    for s in range(LANES):
        by_root[p, p, s] += 2.0 * sampling[s] * of_log[s]
        by_mean[p, s] = row[p, s]
    for j in range(p):
        for s in range(LANES):
            by_root[p, j, s] = row[j, s]
