r"""The log density of latent moments and its gradient, in compiled loops over blocks of states.

The steps are those of ``log_posterior``, ``evidence``, ``latent_scales`` and ``latent_noise``, where formulas
and sources stand, of one data set with an intercept, a private N, and one release behind noise on a cone or
Laplace noise, under default priors: of a regression, or of means and covariances.

Machine code is kept beside this module while it stays as it is: whoever changes ``lanes``,
``noise_lanes``, ``evidence_lanes`` or ``vector_functions`` alone removes ``__pycache__``.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - compiled loops, one step after the other

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.machine_code import compiled, making_arrays, merged, read, written
from suffice.pipeline.math.distributions.vector_functions import exp, log1p
from suffice.pipeline.math.engines.multivariate.evidence_lanes import (
    add_normal_evidence,
    add_regression_evidence,
)
from suffice.pipeline.math.engines.multivariate.lanes import (
    LANES,
    add_multivariate_gamma,
    exponential,
    invert_lower,
    logarithm,
)
from suffice.pipeline.math.engines.multivariate.log_posterior import LEFT, ROUNDING, STEEPEST
from suffice.pipeline.math.engines.multivariate.noise_lanes import (
    pull_cone,
    pull_outcome,
    set_cone,
    set_outcome,
)
from suffice.pipeline.math.engines.multivariate.shared_target import TOLD

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

COLUMNS, IS_REGRESSION, IS_CONE, LATENT, NOISE, SHARED = range(6)
"""Of a problem: d, which kinds, and where the coordinates of latent scales and of noise start."""
LOWEST, HIGHEST, RECIPROCAL, CONCENTRATION, OUTCOME, FACTOR = range(6)
"""Of a problem: the prior of N, those of scales, and the cone's share of the noise over its rate."""


@merged
def _diagonal(q: float) -> tuple[float, float, float, float]:
    """Return log (L / r), and the slope, its log, and the slope of its log; see ``LatentTarget.units``."""
    q = max(q, -STEEPEST / LEFT)
    small = exp(-abs(q))
    more = log1p(small)
    soft = max(q, 0.0) + more
    share = (1.0 if q > 0.0 else small) / (1.0 + small)
    inside, rest = share / soft, 1.0 - share
    slope = inside + (LEFT - 1.0) * rest
    bent = inside * (rest - inside) - (LEFT - 1.0) * share * rest
    return logarithm(soft) - (LEFT - 1.0) * (max(-q, 0.0) + more), slope, logarithm(slope), bent / slope


@making_arrays
def _set_all(
    problem: Integers, numbers: Floats, of_cells: Floats, coefficients: Floats, precision: Floats,
    loc: Floats, half_range: Floats, of_regression: Floats, gram: Floats, squares: Floats, x: Floats,
    values: Floats, gradient: Floats,
) -> None:  # fmt: skip
    """Set log densities (b,) and their gradients (n_coordinates, b) at coordinates (``CompiledTarget``)."""
    d, is_regression, is_cone = problem[COLUMNS], problem[IS_REGRESSION] == 1, problem[IS_CONE] == 1
    n_coordinates, b = x.shape
    n_components, chains = len(coefficients), b // of_cells.shape[1]
    p = d - 1 if is_regression else d
    n_moments, lowest = 1 + d + d * (d + 1) // 2, numbers[LOWEST]
    width, reciprocal, factor = numbers[HIGHEST] - lowest, numbers[RECIPROCAL], numbers[FACTOR]
    log_width = math.log(width)
    z, slopes, value = np.empty((n_coordinates, LANES)), np.empty((n_coordinates, LANES)), np.empty(LANES)
    given = np.empty((len(of_cells), LANES))
    n, slope_of_n, by_free = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    mean, root, logs = np.empty((d, LANES)), np.empty((d, d, LANES)), np.empty((d, LANES))
    log_slopes = np.empty((2, d, LANES))
    pairs = p * (p - 1) // 2
    lengths, of_column = np.empty((pairs, LANES)), np.empty((pairs, LANES))
    of_row = np.empty((pairs, LANES))
    factors, variance = np.zeros((d, d, LANES)), np.empty((d, d, LANES))
    lower, inverse = np.zeros((d, d, LANES)), np.zeros((d, d, LANES))
    sampling, row, column = np.empty(LANES), np.empty((d, LANES)), np.empty((d, LANES))
    work, other, of_log = np.empty((d, d, LANES)), np.empty((d, d, LANES)), np.empty(LANES)
    by_precision = np.empty((d, d, LANES))
    spread, second = np.empty((d, d, LANES)), np.empty((d, d, LANES))
    moments, by = np.empty((n_moments, LANES)), np.empty((n_moments, LANES))
    distance, weighted = np.empty((n_components, LANES)), np.empty((n_components, LANES))
    t, chi, twice, length = (
        np.empty((2, LANES)), np.empty((2, d, LANES)), np.empty((2, d, LANES)), np.empty((2, d, LANES))
    )  # fmt: skip
    points, components = np.zeros((2, d, d + 1, LANES)), np.empty((2, n_moments, LANES))
    by_points = np.empty((d + 1, LANES))
    by_n, by_total, by_products = np.empty(LANES), np.empty((d, LANES)), np.empty((d, d, LANES))
    latent, by_latent = np.empty((p + 1, LANES)), np.empty((p + 1, LANES))
    shared, by_shared = np.empty(LANES), np.empty(LANES)
    own, shift = np.zeros((p, p, LANES)), np.empty((p, LANES))
    by_root, by_mean, by_factors = np.empty((d, d, LANES)), np.empty((d, LANES)), np.empty((d, d, LANES))
    log_gamma, digamma, log_determinant = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    of_root = 1 + d
    of_pairs, of_sampling = d, d + 3 * pairs
    for begin in range(0, b, LANES):
        count, start = min(LANES, b - begin), 0
        while start < count:
            cell = (begin + start) // chains
            end = min((cell + 1) * chains - begin, count)
            # Where a block is not full its last state stands in the other lanes.
            end = LANES if end == count else end
            for c in range(len(of_cells)):
                for s in range(start, end):
                    given[c, s] = of_cells[c, cell]
            start = end
        for s in range(LANES):
            value[s] = 0.0
        for c in range(n_coordinates):
            for s in range(count):
                z[c, s] = x[c, np.uintp(begin + s)]  # which cannot count from the end
            for s in range(count, LANES):
                z[c, s] = z[c, count - 1]
            for s in range(LANES):
                # No number where a coordinate is none, whatever is made of it.
                value[s] += 0.0 * z[c, s]
        # N, as ``LatentN.of``.
        for s in range(LANES):
            small = exp(-abs(z[0, s]))
            larger = 1.0 / (1.0 + small)
            share = larger if z[0, s] > 0.0 else small * larger
            rest = small * larger if z[0, s] > 0.0 else larger
            n[s] = lowest + width * share
            slope_of_n[s] = width * share * rest
            value[s] += log_width - abs(z[0, s]) - 2.0 * log1p(small) - reciprocal * log1p(n[s])
            by_free[s] = rest - share - reciprocal * slope_of_n[s] / (1.0 + n[s])
        # Means, and L.
        place, pair = of_root, 0
        for i in range(d):
            for s in range(LANES):
                mean[i, s] = z[1 + i, s]
            for j in range(i):
                for s in range(LANES):
                    root[i, j, s], root[j, i, s] = z[place + j, s], 0.0
            place += i + 1
            for s in range(LANES):
                above, slope, log_slope, bent = _diagonal(z[place - 1, s])
                logs[i, s] = above + given[i, s]
                log_slopes[0, i, s], log_slopes[1, i, s] = slope, bent
                root[i, i, s] = exponential(logs[i, s])
                value[s] += log_slope
            if i >= p:
                continue
            for j in range(i):
                for s in range(LANES):
                    # The length of an entry: sqrt((a L_jj)^2 + (b L_ii)^2 + c^2).
                    left = given[of_pairs + pair, s] * root[j, j, s] * root[j, j, s]
                    right = given[of_pairs + pairs + pair, s] * root[i, i, s] * root[i, i, s]
                    square = left + right + given[of_pairs + 2 * pairs + pair, s]
                    lengths[pair, s] = math.sqrt(square)
                    of_column[pair, s], of_row[pair, s] = left / square, right / square
                    root[i, j, s] *= lengths[pair, s]
                    value[s] += 0.5 * logarithm(square)
                pair += 1
        if is_regression:
            set_outcome(
                d, given, of_sampling, squares, z, mean, root, factors, variance, lower, inverse, sampling,
                column, row, work, of_log, value,
            )  # fmt: skip
        for s in range(LANES):
            moments[0, s] = n[s]
        place = 1 + d
        for i in range(d):
            for s in range(LANES):
                moments[1 + i, s] = n[s] * mean[i, s]
            for j in range(i, d):
                for s in range(LANES):
                    spread[i, j, s] = 0.0
                for m in range(i + 1):
                    for s in range(LANES):
                        spread[i, j, s] += root[i, m, s] * root[j, m, s]
                for s in range(LANES):
                    second[i, j, s] = spread[i, j, s] + mean[i, s] * mean[j, s]
                    spread[j, i, s], second[j, i, s] = spread[i, j, s], second[i, j, s]
                    moments[place, s] = n[s] * second[i, j, s]
                place += 1
        # The noise.
        for i in range(n_components):
            for s in range(LANES):
                distance[i, s] = given[i - n_components + len(of_cells), s]
            for j in range(n_moments):
                if coefficients[i, j] != 0.0:
                    for s in range(LANES):
                        distance[i, s] -= coefficients[i, j] * moments[j, s]
        if is_cone:
            start, half = problem[NOISE], 1 + d * (d + 1) // 2 + 2 * d
            for m in range(2):
                set_cone(
                    d, z, start + m * half, t[m], chi[m], twice[m], length[m], points[m], components[m], value
                )  # fmt: skip
            for i in range(n_components):
                for s in range(LANES):
                    distance[i, s] -= factor * (t[0, s] * components[0, i, s] - t[1, s] * components[1, i, s])
            for i in range(n_components):
                for s in range(LANES):
                    weighted[i, s] = 0.0
                for j in range(n_components):
                    if precision[i, j] != 0.0:
                        for s in range(LANES):
                            weighted[i, s] += precision[i, j] * distance[j, s]
                for s in range(LANES):
                    value[s] -= 0.5 * distance[i, s] * weighted[i, s]
        else:
            for i in range(n_components):
                for s in range(LANES):
                    value[s] -= abs(distance[i, s])
                    # tanh, of which the exponential overflows nowhere.
                    e = exp(-2.0 * abs(distance[i, s]) / ROUNDING)
                    rounded = (1.0 - e) / (1.0 + e)
                    weighted[i, s] = rounded if distance[i, s] > 0.0 else -rounded
        for j in range(n_moments):
            for s in range(LANES):
                by[j, s] = 0.0
            for i in range(n_components):
                if coefficients[i, j] != 0.0:
                    for s in range(LANES):
                        by[j, s] += coefficients[i, j] * weighted[i, s]
        if is_cone:
            for i in range(n_components):
                for s in range(LANES):
                    weighted[i, s] *= factor
            for m in range(2):
                pull_cone(
                    d, 1.0 - 2.0 * m, weighted, z, start + m * half, t[m], chi[m], twice[m], length[m],
                    points[m], components[m], by_points, of_log, slopes,
                )  # fmt: skip
        for s in range(LANES):
            by_n[s] = by[0, s]
        place = 1 + d
        for i in range(d):
            for s in range(LANES):
                by_total[i, s] = by[1 + i, s]
            for j in range(i, d):
                for s in range(LANES):
                    by_products[i, j, s] = by[place, s] if i == j else by[place, s] / 2.0
                    by_products[j, i, s] = by_products[i, j, s]
                place += 1
        # The evidences, at scales along with what each column has for itself.
        invert_lower(root, p, own)
        for j in range(p):
            for s in range(LANES):
                shift[j, s] = 0.0
            for i in range(j, p):
                for s in range(LANES):
                    shift[j, s] += own[i, j, s] * own[i, j, s]
            for s in range(LANES):
                latent[j, s] = z[problem[LATENT] + j, s] - logarithm(shift[j, s])
        for s in range(LANES):
            latent[p, s] = z[problem[LATENT] + p, s]
        add_normal_evidence(
            p, numbers[CONCENTRATION], loc, half_range, n, mean, spread, latent,
            value, by_n, by_total, by_products, by_latent,
        )  # fmt: skip
        for i in range(p + 1):
            for s in range(LANES):
                slopes[problem[LATENT] + i, s] = by_latent[i, s]
        if is_regression:
            for s in range(LANES):
                shared[s] = z[problem[SHARED], s] + 2.0 * logs[p, s]
            add_regression_evidence(
                p, numbers[OUTCOME], of_regression, gram, n, mean, second, shared,
                value, by_n, by_total, by_products, by_shared,
            )  # fmt: skip
            for s in range(LANES):
                slopes[problem[SHARED], s] = by_shared[s]
        # ``LatentTarget.complete``: (1), the Jacobian (3), and derivatives by L.
        loose, power = d + 2.0, d * (d + 2) / 2.0
        for s in range(LANES):
            log_determinant[s] = 0.0
            of_log[s] = (n[s] - 1.0) / 2.0
        for i in range(d):
            for s in range(LANES):
                log_determinant[s] += 2.0 * logs[i, s]
                value[s] += (d + 1.0 - i) * logs[i, s]
        add_multivariate_gamma(of_log, d, log_gamma, digamma)
        for s in range(LANES):
            log_n = logarithm(n[s])
            value[s] += (n[s] - loose) / 2.0 * (log_determinant[s] + d * log_n) + power * log_n - log_gamma[s]
            by_n[s] += (d * log_n + log_determinant[s]) / 2.0 - digamma[s] / 2.0
            by_n[s] += ((n[s] - loose) / 2.0 * d + power) / n[s]
        for i in range(d):
            for s in range(LANES):
                by_mean[i, s] = by_total[i, s]
                by_n[s] += by_total[i, s] * mean[i, s]
            for j in range(d):
                for s in range(LANES):
                    by_mean[i, s] += 2.0 * by_products[i, j, s] * mean[j, s]
                    by_n[s] += by_products[i, j, s] * second[i, j, s]
            for s in range(LANES):
                by_mean[i, s] *= n[s]
            for j in range(i + 1):
                for s in range(LANES):
                    by_root[i, j, s] = 0.0
                for m in range(j, d):
                    for s in range(LANES):
                        by_root[i, j, s] += by_products[i, m, s] * root[m, j, s]
                for s in range(LANES):
                    by_root[i, j, s] *= 2.0 * n[s]
        # ``pulled_along``: with K = M^T M and M = L^-1, d(-log K_jj) = 2 (K e_j)^T dL (M e_j) / K_jj.
        for i in range(p):
            for j in range(i + 1):
                for s in range(LANES):
                    work[i, j, s] = 0.0
                for m in range(j + 1):
                    for s in range(LANES):
                        work[i, j, s] += own[i, m, s] * own[j, m, s] * by_latent[m, s] / shift[m, s]
                for s in range(LANES):
                    work[j, i, s] = work[i, j, s]
        for i in range(p):
            for j in range(i + 1):
                for m in range(i, p):
                    for s in range(LANES):
                        by_root[i, j, s] += 2.0 * own[m, i, s] * work[m, j, s]
        for i in range(d):
            for s in range(LANES):
                by_root[i, i, s] = by_root[i, i, s] * root[i, i, s] + n[s] - loose + d + 1.0 - i
        if is_regression:
            for s in range(LANES):
                by_root[p, p, s] += 2.0 * by_shared[s]
            pull_outcome(
                d, given, of_sampling, squares, root, factors, variance, inverse, sampling, column, row, work,
                other, by_precision, by_factors, of_log, by_mean, by_root,
            )  # fmt: skip
        # L_ij is its coordinate times a length of L_ii and L_jj, whose log is in the Jacobian.
        pair = 0
        for i in range(p):
            for j in range(i):
                for s in range(LANES):
                    by_length = by_root[i, j, s] * root[i, j, s] + 1.0
                    by_root[i, j, s] *= lengths[pair, s]
                    by_root[j, j, s] += by_length * of_column[pair, s]
                    by_root[i, i, s] += by_length * of_row[pair, s]
                pair += 1
        place = of_root
        for i in range(d):
            for s in range(LANES):
                slopes[1 + i, s] = by_mean[i, s]
                by_root[i, i, s] = by_root[i, i, s] * log_slopes[0, i, s] + log_slopes[1, i, s]
            for j in range(i + 1):
                for s in range(LANES):
                    slopes[place, s] = by_root[i, j, s]
                place += 1
        for s in range(LANES):
            slopes[0, s] = by_n[s] * slope_of_n[s] + by_free[s]
        for i in range(d):
            for s in range(LANES):
                is_told = root[i, i, s] * root[i, i, s] > TOLD * n[s] * spread[i, i, s]
                value[s] = value[s] if is_told else -np.inf
        for s in range(count):
            values[np.uintp(begin + s)] = value[s]
        for c in range(n_coordinates):
            for s in range(count):
                gradient[c, np.uintp(begin + s)] = slopes[c, s]


def _value_and_gradient(
    problem: Integers, numbers: Floats, of_cells: Floats, coefficients: Floats, precision: Floats,
    loc: Floats, half_range: Floats, of_regression: Floats, gram: Floats, squares: Floats, x: Floats,
    values: Floats, gradient: Floats,
) -> None:  # fmt: skip
    _set_all(
        problem, numbers, of_cells, coefficients, precision, loc, half_range, of_regression, gram, squares, x,
        values, gradient,
    )  # fmt: skip


value_and_gradient = compiled(
    _value_and_gradient,
    read(1, types.int64), read(1), read(2), read(2), read(2), read(1), read(1), read(1), read(2), read(1),
    read(2), written(1), written(2),
)  # fmt: skip
