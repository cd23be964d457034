r"""Distributions of counts on grids of points a step apart: masses are split between neighbouring points.

Away from 0 that smooths a distribution and changes little. At the first points it does: of a flat
distribution the point 0 only gets what lies above it, and what rises as :math:`N^{A - 1}` over one step is
not its value at a point. So what counts without noise would add up to is put onto the same grid in the same
way, and the distribution of a sum is taken relative to that.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multinomial.noise_weights import CountWeights, log_rising
from suffice.pipeline.math.engines.multinomial.noisy_counts import masses

if TYPE_CHECKING:
    from suffice.typing import Floats


GRADED = 512
"""Points from 0 on of which the steps are accounted for."""


def on_grid(nodes: Floats, mass: Floats, base: Floats, step: Floats) -> Floats:
    """Split masses at nodes (n_rows, n_nodes) linearly between grid points base + step * index."""
    position = (nodes - base[:, None]) / step[:, None]
    index = np.floor(position).astype(np.int64)
    part = position - index
    points = int(np.max(index)) + 2
    flat = (index + np.arange(len(nodes))[:, None] * points).ravel()
    size = len(nodes) * points
    lower = np.bincount(flat, (mass * (1.0 - part)).ravel(), size)
    upper = np.bincount(flat + 1, (mass * part).ravel(), size + 1)[:size]
    return np.asarray(lower + upper, dtype=np.float64).reshape(len(nodes), points)


def log_rising_on_grid(concentration: Floats, step: Floats, n: Floats) -> Floats:
    r"""Log of :math:`\Gamma(A + N) / (\Gamma(A) N!)` at grid points n (n_rows, n_points), with a step a row.

    It sums :math:`\prod_k \Gamma(\alpha_k + c_k) / (\Gamma(\alpha_k) c_k!)` over all counts of that N; near
    0, on grids that are not the integers, it is the sum of the counts' distributions on the grid instead.
    """
    result = log_rising(np.array([np.sum(concentration)]), n)
    for coarse in np.unique(step[step > 1.0]):
        rows = np.flatnonzero(step == coarse)
        index = np.rint(n[rows] / coarse).astype(np.int64)
        on_points = _log_sum_on_grid(tuple(concentration.tolist()), float(coarse))[
            np.clip(index, 0, GRADED - 1)
        ]
        near = (index < GRADED) & (n[rows] == index * coarse) & np.isfinite(on_points)
        result[rows] = np.where(near, on_points, result[rows])
    return result


@lru_cache(maxsize=64)
def _log_sum_on_grid(concentration: tuple[float, ...], step: float) -> Floats:
    """Logs of the first points of the sum of prior distributions on a grid, over the step."""
    tables: dict[float, tuple[Floats, float]] = {}
    total, log_total = np.ones(1), -np.log(step)
    for alpha in concentration:
        if alpha not in tables:
            none, end = np.zeros(1), np.array([GRADED * step])
            weights = CountWeights(
                concentration=np.array([alpha]),
                tilt=none,
                n=end,
                rest_concentration=np.ones(1),
                kinks=np.array([none, end]),
                rates=np.zeros(2),
            )
            edges = weights.blocks(none, end, np.array([max(1.0, step / 4.0)]))
            nodes, mass, log_sum = masses(weights, edges)
            tables[alpha] = on_grid(nodes, mass, none, np.array([step]))[0, :GRADED], float(log_sum[0])
        table, log_sum_of_one = tables[alpha]
        total = np.convolve(total, table)[:GRADED]
        log_total += log_sum_of_one
        log_total += np.log(np.max(total))
        total = total / np.max(total)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(total) + log_total
    return logs


def log_mean_reciprocal(n: Floats, step: Floats) -> Floats:
    """Log of the mean of 1 / (N + 1) about grid points over 1 / (n + 1); 0 far from 0 and on integers."""
    from scipy.special import digamma

    near = (n < GRADED / 8 * step) & (n % step == 0.0) & (step > 1.0)
    result = np.zeros(near.shape)
    if not np.any(near):
        return result
    point, width = n[near], np.broadcast_to(step, near.shape)[near]
    below = np.maximum(point - width, 0.0)
    at = digamma(point + 1.0)
    left = np.where(point > 0.0, width - (point - width + 1.0) * (at - digamma(below + 1.0)), 0.0)
    right = (point + width + 1.0) * (digamma(point + width + 1.0) - at) - width
    # At 0 only the share above it is covered, which the caller accounts for.
    share = np.where(point > 0.0, 1.0, 0.5 + 0.5 / width)
    result[near] = np.log((left + right) / (width * width * share) * (point + 1.0))
    return result
