"""Compiled blocks: their judgement and rules, as in ``adaptive_blocks``, ``rule_sizes`` and ``quadrature``.

Symbols, formulas and constants are those of these modules.
"""

# ruff: noqa: FBT003, PLW3301 - compiled loops know no keywords, and two numbers at a time become vectors

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions import adaptive_blocks, quadrature, rule_sizes
from suffice.pipeline.math.distributions.machine_code import vectorised
from suffice.pipeline.math.distributions.vector_functions import log

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

POINTS = quadrature.POINTS
SHORT, DEGREE = 48, 6
"""Integers up to which rules are from a table; of longer ones they are polynomials, right to 1e-11."""
_POWER = rule_sizes.POWER
_LOWEST, _HIGHEST = float(rule_sizes.DEPTHS[0]), float(rule_sizes.DEPTHS[-1])
_NEAR_LENGTH = float(rule_sizes.LENGTHS[-1])
_RATIO, _LOG4 = adaptive_blocks.RATIO, math.log(4.0)


def tables(tolerance: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return sizes that are allowed, rules of short sums, those of long ones, and rules of integrals.

    Sizes are (2, n_rules, n_depths); nodes and weights by length (2, n_rules, SHORT + 1, POINTS), of 0, 1 ...
    Coefficients of powers of (SHORT / length)^2 are (2, n_rules, DEGREE + 1, POINTS), of nodes over half the
    length from the middle, and of weights over the length; rules over -1..1 are (2, n_rules, POINTS).
    """
    rules = quadrature.FEWER
    sizes = np.stack(
        [
            [
                rule_sizes.largest_sizes(points, at_integers=at_integers, tolerance=tolerance)
                for points in rules
            ]
            for at_integers in (False, True)
        ]
    )
    sums, integrals = np.zeros((2, len(rules), SHORT + 1, POINTS)), np.zeros((2, len(rules), POINTS))
    series = np.zeros((2, len(rules), DEGREE + 1, POINTS))
    # Where a polynomial is as right everywhere: its values are at the roots of Chebyshev's.
    at = 0.5 - 0.5 * np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    powers = np.linalg.inv(np.vander(at, increasing=True))
    lengths = SHORT / np.sqrt(at)
    for rule, points in enumerate(rules):
        nodes, weights = quadrature.gauss_table(points, quadrature.LONGEST)
        sums[0, rule, :, :points], sums[1, rule, :, :points] = nodes[: SHORT + 1], weights[: SHORT + 1]
        integrals[0, rule, :points], integrals[1, rule, :points] = quadrature.gauss(points)
        from_middle, weights = quadrature.gauss_rules(lengths, points)
        series[0, rule, :, :points] = powers @ (2.0 * from_middle / lengths[:, None])
        series[1, rule, :, :points] = powers @ (weights / lengths[:, None])
    return sizes, sums, series, integrals


@vectorised
def judge(
    count: int, values: Floats, left: Floats, right: Floats, of_rough: float, least: Floats, bound: Floats,
    size: Floats,
) -> None:  # fmt: skip
    """From five values of a block: what a group has at least, what it can have at most there, and its size.

    The first values of all blocks come first.
    """
    for b in range(count):
        first, second, third = values[b], values[count + b], values[2 * count + b]
        fourth, fifth = values[3 * count + b], values[4 * count + b]
        ends, tilt = first + fifth, fifth - first
        bend = third - 0.5 * ends
        most = max(max(max(first, fifth), max(second, fourth)), third)
        lowest = min(min(min(first, fifth), min(second, fourth)), third)
        inside = abs(tilt) < 4.0 * bend
        vertex = third + tilt * tilt / (16.0 * bend if inside else 1.0)
        highest = max(most, vertex) if inside else most
        even = 0.125 * ends + 0.75 * third
        rough = max(abs(second - even + 0.25 * tilt), abs(fourth - even - 0.25 * tilt))
        bend, rise, of_it = abs(bend), most - lowest, of_rough * rough
        size[b] = math.sqrt(rise * rise + (36.0 + 25.0 * bend) * bend + of_it * of_it)
        low = max(max(min(first, second), min(second, third)), max(min(third, fourth), min(fourth, fifth)))
        log_length = log(right[b] - left[b])
        least[b] = low + log_length - _LOG4
        bound[b] = highest + rough + log_length


@vectorised
def poles(count: int, left: Floats, right: Floats, limit: Floats, pole: Floats) -> None:
    """Logs of the sums of semi-axes, (4)."""
    for b in range(count):
        part = max(min((right[b] - left[b]) / limit[b], 1.0), 1e-9)
        y = 1.0 / math.sqrt(1.0 + (_RATIO - 1.0) * part)
        # 2 artanh y.
        pole[b] = log((1.0 + y) / (1.0 - y))


@vectorised
def is_enough(
    sizes: Floats, log_tolerance: float, rule: int, points: int, size: float, depth: float, length: float,
    pole: float, at_integers: bool,
) -> bool:  # fmt: skip
    """Whether a rule of so many nodes is accurate in a block."""
    depth *= _POWER
    wanted = depth + log_tolerance
    if 2.0 * points * pole + wanted < 0.0:
        return False
    if not size <= sizes[0, rule, int(min(max(depth, _LOWEST), _HIGHEST) - _LOWEST)]:
        return False
    if at_integers:
        near = math.log(10.0 * max(length / _NEAR_LENGTH, 1.0))
        if points * pole + wanted + near < 0.0:
            return False
        depth += near
        return bool(size <= sizes[1, rule, int(min(max(depth, _LOWEST), _HIGHEST) - _LOWEST)])
    return True


@vectorised
def middle_of(left: float, right: float, limit: float, is_sum: bool) -> float:
    """Where a block is divided."""
    middle = 0.5 * (left + right)
    if is_sum:
        length = right - left
        if length > 1.5 * limit:
            middle = left + (limit if length <= 16.0 * limit else math.sqrt(limit * length))
        middle = math.floor(middle)
    return middle


@vectorised
def sparse_rules(
    sizes: Floats, log_tolerance: float, few: float, fewest: float, size: float, depth: float, pole: float
) -> int:
    """Which of the shorter rules are accurate in a block, as bits: of 5 and 3 nodes beyond some depths."""
    bits = 0
    if is_enough(sizes, log_tolerance, 2, 8, size, depth, 0.0, pole, False):
        bits |= 4
    if depth > few and is_enough(sizes, log_tolerance, 1, 5, size, depth, 0.0, pole, False):
        bits |= 2
    if depth > fewest and is_enough(sizes, log_tolerance, 0, 3, size, depth, 0.0, pole, False):
        bits |= 1
    return bits


@vectorised
def rule_of(bits: int, length: float, is_sum: bool) -> int:
    """Return the shortest rule that is accurate."""
    if bits & 1 or (is_sum and length <= 3.0):
        return 0
    if bits & 2 or (is_sum and length <= 5.0):
        return 1
    if bits & 4 or (is_sum and length <= 8.0):
        return 2
    return 3


@vectorised
def points_of(rule: int) -> int:
    """Nodes of a rule."""
    if rule < 2:
        return 3 + 2 * rule
    return 4 * rule


@vectorised
def put_nodes(
    rules: Floats, series: Floats, integrals: Floats, rule: int, left: float, right: float, is_sum: bool,
    nodes: Floats, weights: Floats, start: int,
) -> int:  # fmt: skip
    """Put nodes and weights of a block; how many. Beyond them there has to be room for ``POINTS``."""
    points, length = points_of(rule), right - left
    if not is_sum:
        half, middle = 0.5 * length, 0.5 * (left + right)
        for i in range(POINTS):
            nodes[start + i] = middle + half * integrals[0, rule, i]
            weights[start + i] = half * integrals[1, rule, i]
        return points
    if length <= SHORT:
        index = int(length)
        for i in range(POINTS):
            nodes[start + i] = left + rules[0, rule, index, i]
            weights[start + i] = rules[1, rule, index, i]
        return min(points, index)
    u = (SHORT / length) ** 2
    for i in range(POINTS):
        nodes[start + i], weights[start + i] = series[0, rule, DEGREE, i], series[1, rule, DEGREE, i]
    for degree in range(DEGREE - 1, -1, -1):
        for i in range(POINTS):
            nodes[start + i] = nodes[start + i] * u + series[0, rule, degree, i]
            weights[start + i] = weights[start + i] * u + series[1, rule, degree, i]
    middle = left + 0.5 * (length - 1.0)
    for i in range(POINTS):
        nodes[start + i] = middle + 0.5 * length * nodes[start + i]
        weights[start + i] *= length
    return points
