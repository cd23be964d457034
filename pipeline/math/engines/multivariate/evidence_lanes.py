"""Evidences of default priors for many states side by side, in compiled loops: those of ``exact_moments``.

What comes in and what goes out stands in arrays with states last (``lanes``): moments as ``MomentState`` has
them, derivatives as ``Gradient`` has them. The steps are those of ``SpreadNormalEvidence`` and
``SpreadRegressionEvidence``, number by number, where formulas and sources stand.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - compiled loops, one step after the other

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions import spread_deviations, spread_scales
from suffice.pipeline.math.distributions.machine_code import making_arrays
from suffice.pipeline.math.engines.multivariate.lanes import (
    LANES,
    add_multivariate_gamma,
    exponential,
    gamma_functions,
    invert,
    logarithm,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

_LEAST, _DECADES = spread_deviations.LEAST, spread_deviations.DECADES
_EVEN = spread_deviations.EVEN * (1.0 - _LEAST**8) / _DECADES
_FLAT = (1.0 - spread_deviations.EVEN) * 8.0 / math.sqrt(2.0) / math.pi
_CONCENTRATION = spread_scales.CONCENTRATION
_RANGE = spread_scales.RANGE
_LOWEST = math.exp(-_RANGE)
_FAR = 300.0
_LOG_INSIDE = math.log(-math.expm1(-_RANGE))
_EVEN_SCALES = spread_scales.EVEN / _RANGE
_FLAT_SCALES = (1.0 - spread_scales.EVEN) / 2.0 / -math.expm1(-_RANGE / 2.0)
_LOG_2 = math.log(2.0)


@making_arrays
def add_normal_evidence(
    p: int, concentration: float, loc: Floats, half_range: Floats,
    n: Floats, mean: Floats, spread: Floats, latent: Floats,
    value: Floats, by_n: Floats, by_total: Floats, by_products: Floats, by_latent: Floats,
) -> None:  # fmt: skip
    """Add the log evidence of the first p columns, and its derivatives; set those by latent scales."""
    freedom = 2.0 * concentration + p - 1.0
    scale, inverse, inner = np.empty((p, p, LANES)), np.empty((p, p, LANES)), np.empty((p, p, LANES))
    row, column, half = np.empty((p, LANES)), np.empty((p, LANES)), np.empty(LANES)
    log_determinant, log_gamma, digamma = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    rows, by_rows = np.empty(LANES), np.empty(LANES)
    psi, by_log = np.empty((p, LANES)), np.empty((p, LANES))
    weight, log_weight, of_inner = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    solved, distance, by_product = np.empty((p, LANES)), np.empty(LANES), np.empty(LANES)
    for s in range(LANES):
        half[s] = (freedom + n[s]) / 2.0
        share = n[s] / (n[s] + 3.0)
        rows[s] = 2.0 * concentration + n[s] * share
        by_rows[s] = share * (2.0 - share)
    for i in range(p):
        for j in range(i + 1):
            for s in range(LANES):
                scale[i, j, s] = n[s] * spread[i, j, s]
        for s in range(LANES):
            psi[i, s] = exponential(latent[i, s]) * half_range[i] ** 2
            scale[i, i, s] += psi[i, s]
        for j in range(i + 1):
            for s in range(LANES):
                inverse[i, j, s] = scale[i, j, s]
    invert(inverse, p, log_determinant, row, column)
    add_multivariate_gamma(half, p, log_gamma, digamma)
    for s in range(LANES):
        value[s] += log_gamma[s] - half[s] * log_determinant[s] + log_determinant[s] / 2.0
        by_n[s] += (digamma[s] - log_determinant[s]) / 2.0
    for i in range(p):
        for s in range(LANES):
            # q of standard deviations, and its slope.
            deviation = math.sqrt(scale[i, i, s] / rows[s]) / half_range[i]
            square = deviation * deviation
            above = square * square * square * square
            least = above * (1.0 / _LEAST**8)
            even, flat = _EVEN * least / (1.0 + least), _FLAT * square
            value[s] += logarithm(even + flat) - logarithm(1.0 + above) + freedom / 2.0 * latent[i, s]
            risen = even * 8.0 / (1.0 + least) + 2.0 * flat
            by_log[i, s] = (risen / (even + flat) - 8.0 * above / (1.0 + above)) / 2.0
            by_n[s] -= by_rows[s] / rows[s] * by_log[i, s]
    # The factor of w and the means.
    for s in range(LANES):
        weight[s] = half[s] * exponential(latent[p, s])
        log_weight[s] = logarithm(half[s]) + latent[p, s]
        distance[s], by_product[s] = 0.0, 0.0
    for i in range(p):
        for j in range(i + 1):
            for s in range(LANES):
                inner[i, j, s] = scale[i, j, s]
        for s in range(LANES):
            inner[i, i, s] += 2.0 * n[s] * weight[s] * (half_range[i] / 2.0) ** 2
    invert(inner, p, of_inner, row, column)
    for i in range(p):
        for s in range(LANES):
            solved[i, s] = 0.0
        for j in range(p):
            for s in range(LANES):
                solved[i, s] += inner[i, j, s] * (mean[j, s] - loc[j])
        for s in range(LANES):
            distance[s] += solved[i, s] * (mean[i, s] - loc[i])
    for i in range(p):
        for s in range(LANES):
            by_scale = n[s] * weight[s] * solved[i, s] ** 2 - inner[i, i, s] / 2.0
            by_product[s] += 2.0 * (half_range[i] / 2.0) ** 2 * by_scale
    for s in range(LANES):
        by_product[s] -= distance[s]
        product = n[s] * weight[s]
        log_gamma_half, digamma_half = gamma_functions(half[s])
        value[s] += half[s] * log_weight[s] - weight[s] - log_gamma_half - of_inner[s] / 2.0
        value[s] -= product * distance[s]
        by_weight = half[s] - weight[s] + product * by_product[s]
        by_latent[p, s] = by_weight
        by_n[s] += (log_weight[s] - digamma_half) / 2.0 + weight[s] * by_product[s]
        by_n[s] += by_weight / (2.0 * half[s])
    for i in range(p):
        for s in range(LANES):
            # What is called pulled there, of row i.
            row[i, s] = 0.0
        for j in range(p):
            for s in range(LANES):
                by_scale = (0.5 - half[s]) * inverse[i, j, s] - inner[i, j, s] / 2.0
                by_scale += n[s] * weight[s] * solved[i, s] * solved[j, s]
                column[j, s] = by_scale
            if i == j:
                for s in range(LANES):
                    column[i, s] += by_log[i, s] / scale[i, i, s]
                    by_latent[i, s] = freedom / 2.0 + psi[i, s] * column[i, s]
            for s in range(LANES):
                by_products[i, j, s] += column[j, s]
                row[i, s] += column[j, s] * mean[j, s]
        for s in range(LANES):
            # S = Q - t t^T / n, and the averages are t / n.
            by_mean = -2.0 * weight[s] * solved[i, s]
            by_total[i, s] += by_mean - 2.0 * row[i, s]
            by_n[s] += mean[i, s] * (row[i, s] - by_mean)


@making_arrays
def add_regression_evidence(
    p: int, outcome: float, loc: Floats, gram: Floats,
    n: Floats, mean: Floats, second: Floats, latent: Floats,
    value: Floats, by_n: Floats, by_total: Floats, by_products: Floats, by_latent: Floats,
) -> None:  # fmt: skip
    """Add the log evidence of column p given those before it, and its derivatives; set that by the scale."""
    k = p + 1
    updated, inverse = np.empty((k, k, LANES)), np.empty((k, k, LANES))
    row, column, log_determinant = np.empty((k, LANES)), np.empty((k, LANES)), np.empty(LANES)
    right, beta = np.empty((k, LANES)), np.empty((k, LANES))
    residual, weight, v = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    slope, by_prior, seen = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for s in range(LANES):
        # `spread_scales.log_scale`.
        near = min(max(latent[s], -_FAR), _FAR)
        e = exponential(near)
        above, below = 1.0 + e, _LOWEST + e
        log_above, log_below = logarithm(above), logarithm(below)
        slope[s] = (1.0 - _LOWEST) * e / above / below
        tilted = _FLAT_SCALES * math.sqrt(below / above)
        chance = _EVEN_SCALES + tilted
        by_prior[s] = tilted / 2.0 / chance * slope[s] - e / above + _LOWEST / below
        log_v = log_below - log_above
        v[s] = exponential(log_v)
        value[s] += logarithm(chance) + _LOG_INSIDE + near - abs(latent[s] - near) - log_above - log_below
        value[s] += (k / 2.0 + _CONCENTRATION) * log_v
        residual[s] = n[s] * second[p, p, s]
    for i in range(k):
        for s in range(LANES):
            right[i, s] = n[s] * (second[p, i, s] if i < p else mean[p, s])
        for j in range(i + 1):
            for s in range(LANES):
                product = second[i, j, s] if i < p else (mean[j, s] if j < p else 1.0)
                updated[i, j, s] = inverse[i, j, s] = n[s] * product + v[s] * gram[i, j]
        for j in range(k):
            pulled = gram[i, j] * loc[j]
            for s in range(LANES):
                right[i, s] += v[s] * pulled
                residual[s] += loc[i] * v[s] * pulled
    invert(inverse, k, log_determinant, row, column)
    for i in range(k):
        for s in range(LANES):
            beta[i, s] = 0.0
        for j in range(k):
            for s in range(LANES):
                beta[i, s] += inverse[i, j, s] * right[j, s]
    # Refined once, so that nearly collinear columns cost no digits of what may be a tiny residual.
    for i in range(k):
        for s in range(LANES):
            row[i, s] = right[i, s]
        for j in range(k):
            above_, below_ = min(i, j), max(i, j)
            for s in range(LANES):
                row[i, s] -= updated[below_, above_, s] * beta[j, s]
    for i in range(k):
        for s in range(LANES):
            column[i, s] = 0.0
        for j in range(k):
            for s in range(LANES):
                column[i, s] += inverse[i, j, s] * row[j, s]
    for i in range(k):
        for s in range(LANES):
            residual[s] -= beta[i, s] * (right[i, s] + row[i, s]) + column[i, s] * row[i, s]
            beta[i, s] += column[i, s]
    for s in range(LANES):
        half = _CONCENTRATION + n[s] / 2.0
        scale = 2.0 * v[s] * outcome**2
        scale_of_all = scale + max(residual[s], 0.0) / 2.0
        log_scale = logarithm(scale_of_all) + _LOG_2
        log_gamma, digamma = gamma_functions(half)
        weight[s] = half / scale_of_all
        value[s] += log_gamma - log_determinant[s] / 2.0 - half * log_scale
        by_n[s] += (digamma - log_scale) / 2.0
        by_products[p, p, s] -= weight[s] / 2.0
        seen[s] = 0.0
        by_latent[s] = k / 2.0 + _CONCENTRATION - weight[s] * scale
    for i in range(k):
        for j in range(k):
            for s in range(LANES):
                by_gram = (inverse[i, j, s] + weight[s] * beta[i, s] * beta[j, s]) / -2.0
                apart = (beta[i, s] - loc[i]) * (beta[j, s] - loc[j])
                seen[s] += gram[i, j] * (inverse[i, j, s] + weight[s] * apart)
                column[j, s] = by_gram
            if i < p and j < p:
                for s in range(LANES):
                    by_products[i, j, s] += column[j, s]
            elif i < p:
                for s in range(LANES):
                    by_total[i, s] += 2.0 * column[j, s]
            elif j == p:
                for s in range(LANES):
                    by_n[s] += column[j, s]
        for s in range(LANES):
            by_cross = weight[s] * beta[i, s]
            if i < p:
                by_products[i, p, s] += by_cross / 2.0
                by_products[p, i, s] += by_cross / 2.0
            else:
                by_total[p, s] += by_cross
    for s in range(LANES):
        by_latent[s] = slope[s] * (by_latent[s] - v[s] * seen[s] / 2.0) + by_prior[s]
