"""Likelihoods of clipped records in compiled loops, position by position; formulas are in ``slices``.

Means of rows lie side by side, and loops over them are vector instructions. Those are left out whose share of
a likelihood is below e^-50, by the highest sum over deviations that there is in the table.

Machine code is kept beside this module while it stays as it is: whoever changes ``vector_functions`` alone
removes ``__pycache__``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.machine_code import (
    compiled,
    making_arrays,
    read,
    reordered,
    vectorised,
    written,
)
from suffice.pipeline.math.distributions.vector_functions import exp, log
from suffice.pipeline.math.engines.mean_variance.clipped_records import AT_A_BOUND, LEAST_SHARE, TWO_VALUES

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

_NATS = 50.0
_TWO_PI = 2.0 * math.pi
_HIGHEST = 600.0
"""Logarithms beyond which an exponential is infinite for any shape of a gamma."""


@reordered
def _log_sum(value: Floats) -> float:
    top, total = -math.inf, 0.0
    for j in range(len(value)):
        top = max(top, value[j])
    for j in range(len(value)):
        total += exp(value[j] - top)
    result: float = top + log(total)
    return result


@reordered
def _moments_about(place: Floats, mass: Floats, about: float) -> tuple[float, float, float, float]:
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for j in range(len(place)):
        inner = place[j] - about
        square = inner * inner
        first += mass[j] * inner
        second += mass[j] * square
        third += mass[j] * square * inner
        fourth += mass[j] * square * square
    return first, second, third, fourth


@reordered
def _set_mass(low: float, high: float, nodes: Floats, weights: Floats, place: Floats, mass: Floats) -> float:
    middle, half, total = (low + high) / 2.0, (high - low) / 2.0, 0.0
    for j in range(len(nodes)):
        place[j] = middle + half * nodes[j]
        mass[j] = half * weights[j] * exp(-place[j] * place[j] / 2.0)
        total += mass[j]
    return total


@making_arrays
def _set_moments(
    ends: Floats, inner: Floats, tails: Floats, nodes: Floats, weights: Floats, moments: Floats
) -> None:
    """Set moments (4, n) of z clipped to ends (2, n): by how much E z is off 0 or an end; central ones.

    ``inner`` are ends within which z has its density, ``tails`` the normal masses beyond either end.
    """
    place, mass = np.empty(len(nodes)), np.empty(len(nodes))
    for i in range(ends.shape[1]):
        low, high, at_low, at_high = ends[0, i], ends[1, i], tails[0, i], tails[1, i]
        total = _set_mass(inner[0, i], inner[1, i], nodes, weights, place, mass) + at_low + at_high
        for j in range(len(nodes)):
            mass[j] /= total
        # From where most records are: the middle of the distribution, or the bound next to it.
        origin = min(max(0.0, low), high)
        away, _, _, _ = _moments_about(place, mass, origin)
        away += at_low * (low - origin) + at_high * (high - origin)
        centre = origin + away
        _, second, third, fourth = _moments_about(place, mass, centre)
        below, above = low - centre, high - centre
        moments[0, i] = away
        moments[1, i] = second + at_low * below**2 + at_high * above**2
        moments[2, i] = third + at_low * below**3 + at_high * above**3
        moments[3, i] = fourth + at_low * below**4 + at_high * above**4


@vectorised
def _set_gamma(shape: float, height: float, expected: Floats, log_e: Floats, density: Floats) -> None:
    """Set densities (n_expected, n_deviations) of log E under gammas of one shape."""
    for i in range(len(expected)):
        for j in range(len(log_e)):
            distance = min(log_e[j] - expected[i], _HIGHEST)
            density[i, j] = exp(height - shape * (exp(distance) - 1.0 - distance))


@vectorised
def _add_at(
    table: Floats, first: int, count: int, start: float, per_step: float, position: Floats, share: float,
    offset: int, value: Floats,
) -> None:  # fmt: skip
    """Add shares of cubic interpolations between expectations, through two on either side."""
    last = float(count - 1)
    for j in range(len(value)):
        place = min(max((position[j] - start) * per_step, 0.0), last)
        index = min(max(int(place), 1), count - 3)
        place -= index
        after, row, column = 1.0 - place, first + index - 1, np.uintp(offset + j)
        product = place * after / 6.0
        value[j] += share * (
            (after + 3.0 * product * after) * table[np.uintp(row + 1), column]
            - product * (1.0 + after) * table[np.uintp(row), column]
            + (place + 3.0 * product * place) * table[np.uintp(row + 2), column]
            - product * (1.0 + place) * table[np.uintp(row + 3), column]
        )


@vectorised
def _set_means(
    mean: Floats, blur: Floats, centre: float, sampling: float, away: Floats, width: Floats, weighted: Floats
) -> None:
    for j in range(len(mean)):
        away[j] = mean[j] - centre
        width[j] = blur[j] + sampling
        weighted[j] = away[j] * away[j] / (2.0 * width[j])


@vectorised
def _set_own(
    mean: Floats, away: Floats, width: Floats, weighted: Floats, curve: tuple[float, float, float],
    least: float, position: Floats, value: Floats,
) -> None:  # fmt: skip
    """Set logs of E(E | m), and log densities of m."""
    constant, linear, square = curve
    for j in range(len(away)):
        expected = constant + away[j] * (linear + square * away[j])
        position[j] = log(max(min(expected, 1.0 - mean[j] * mean[j]), least))
        value[j] = -weighted[j] - log(_TWO_PI * width[j]) / 2.0


@making_arrays
def _set_all(
    records: Floats, n: float, mean: Floats, blur: Floats, of_shapes: Floats, layout: Cells, table: Floats,
    highest: Floats, level: Cells, shape: Floats, log_likelihood: Floats,
) -> None:  # fmt: skip
    """Set log likelihoods at records (4, n), with their gammas' shapes, and levels of these in the table.

    ``of_shapes`` are the table's shapes, starts and steps, ``layout`` where each begins and how long it is,
    and ``highest`` the largest entry of each.
    """
    means = len(mean)
    away, weighted, width = np.empty(means), np.empty(means), np.empty(means)
    position, value = np.empty(means), np.empty(means)
    part, least, most = (n - 1.0) / n, np.min(blur), np.max(blur)
    for i in range(records.shape[1]):
        centre, variance, skewed, kurtosis = records[0, i], records[1, i], records[2, i], records[3, i]
        sampling = variance / n
        _set_means(mean, blur, centre, sampling, away, width, weighted)
        nearest = int(np.argmin(weighted))
        # E(E | m), (3) of ``slices``.
        middle = part * variance
        curve = (middle, 0.0, 0.0)
        if kurtosis < AT_A_BOUND * n:
            curved = max(kurtosis - 3.0 - skewed * skewed / variance, TWO_VALUES)
            curve = (middle - curved / 2.0 * sampling, part * skewed, curved / 2.0)
        at = level[i]
        share = (shape[i] - of_shapes[0, at]) / (of_shapes[0, at + 1] - of_shapes[0, at])
        # First the nearest mean alone: it bounds which others matter.
        begin, end = nearest, nearest + 1
        for turn in range(2):
            _set_own(
                mean[begin:end], away[begin:end], width[begin:end], weighted[begin:end], curve,
                LEAST_SHARE * middle, position[begin:end], value[begin:end],
            )  # fmt: skip
            at_nearest = value[nearest]
            for k in range(2):
                _add_at(
                    table, layout[0, at + k], layout[1, at + k], of_shapes[1, at + k],
                    1.0 / of_shapes[2, at + k], position[begin:end], share if k else 1.0 - share, begin,
                    value[begin:end],
                )  # fmt: skip
            if turn:
                break
            above = max(highest[at], highest[at + 1]) - (value[nearest] - at_nearest)
            widest = log((most + sampling) / (least + sampling)) / 2.0
            reach = weighted[nearest] + _NATS + widest + max(above, 0.0)
            begin, end = 0, means
            while weighted[begin] > reach:
                begin += 1
            while weighted[end - 1] > reach:
                end -= 1
        log_likelihood[i] = _log_sum(value[begin:end]) + log(shape[i]) / 2.0


def _moments(
    ends: Floats, inner: Floats, tails: Floats, nodes: Floats, weights: Floats, moments: Floats
) -> None:
    _set_moments(ends, inner, tails, nodes, weights, moments)


def _gamma(shape: float, height: float, expected: Floats, log_e: Floats, density: Floats) -> None:
    _set_gamma(shape, height, expected, log_e, density)


def _values(
    records: Floats, n: float, mean: Floats, blur: Floats, of_shapes: Floats, layout: Cells, table: Floats,
    highest: Floats, level: Cells, shape: Floats, log_likelihood: Floats,
) -> None:  # fmt: skip
    _set_all(
        records, n, mean, blur, of_shapes, layout, table, highest, level, shape, log_likelihood
    )  # fmt: skip


set_moments = compiled(_moments, read(2), read(2), read(2), read(1), read(1), written(2))
set_gamma = compiled(_gamma, types.float64, types.float64, read(1), read(1), written(2))
set_values = compiled(
    _values,
    read(2), types.float64, read(1), read(1), read(2), read(2, types.int64), read(2), read(1),
    read(1, types.int64), read(1), written(1),
)  # fmt: skip
