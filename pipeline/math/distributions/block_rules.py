"""Compiled judgement of blocks and rules for them, as in ``adaptive_blocks``, ``rule_sizes`` and ``quadrature``.

Symbols, formulas and constants are those of these modules.
"""

# ruff: noqa: FBT001 - compiled loops know no keywords

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions import adaptive_blocks, quadrature, rule_sizes
from suffice.pipeline.math.distributions.machine_code import inner

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

POINTS, LONGEST = quadrature.POINTS, quadrature.LONGEST
_POWER, _LOG_TOLERABLE = rule_sizes.POWER, math.log(rule_sizes.TOLERABLE)
_LOWEST, _HIGHEST = float(rule_sizes.DEPTHS[0]), float(rule_sizes.DEPTHS[-1])
_NEAR_LENGTH = float(rule_sizes.LENGTHS[-1])
_RATIO, _LOG4 = adaptive_blocks.RATIO, math.log(4.0)
_SPARSE, _DENSE = adaptive_blocks.SPARSE, adaptive_blocks.DENSE


def tables() -> tuple[Floats, Floats, Floats]:
    """Return sizes that are allowed, (2, n_rules, n_depths), and Gauss rules of sums and of integrals.

    Rules are nodes and weights by length, (2, n_rules, LONGEST + 1, POINTS), of 0, 1, ..., and of integrals
    over -1..1, (2, n_rules, POINTS).
    """
    rules = quadrature.FEWER
    sizes = np.stack(
        [
            [rule_sizes.largest_sizes(points, at_integers=at_integers) for points in rules]
            for at_integers in (False, True)
        ]
    )
    sums, integrals = np.zeros((2, len(rules), LONGEST + 1, POINTS)), np.zeros((2, len(rules), POINTS))
    for rule, points in enumerate(rules):
        sums[0, rule, :, :points], sums[1, rule, :, :points] = quadrature.gauss_table(points)
        integrals[0, rule, :points], integrals[1, rule, :points] = quadrature.gauss(points)
    return sizes, sums, integrals


@inner
def judge(
    values: Floats, start: int, length: float, of_rough: float, at_integers: bool
) -> tuple[float, float, float]:
    """From five values: what a group has at least, what it can have at most in this block, and its size."""
    first, second, third = values[start], values[start + 1], values[start + 2]
    fourth, fifth = values[start + 3], values[start + 4]
    ends, tilt = first + fifth, fifth - first
    bend = third - 0.5 * ends
    most = max(max(max(first, fifth), max(second, fourth)), third)
    least = min(min(min(first, fifth), min(second, fourth)), third)
    highest = most
    if abs(tilt) < 4.0 * bend:
        highest = max(most, third + tilt * tilt / (16.0 * bend))
    even = 0.125 * ends + 0.75 * third
    rough = max(abs(second - even + 0.25 * tilt), abs(fourth - even - 0.25 * tilt))
    bend = abs(bend)
    size = math.sqrt((most - least) ** 2 + (36.0 + 25.0 * bend) * bend + (of_rough * rough) ** 2)
    if at_integers and length < 2 * POINTS:
        size = math.inf
    low = max(max(min(first, second), min(second, third)), max(min(third, fourth), min(fourth, fifth)))
    log_length = math.log(length)
    return low + log_length - _LOG4, highest + rough + log_length, size


@inner
def pole_of(length: float, limit: float) -> float:
    """Log of the sum of semi-axes, (4)."""
    part = max(min(length / limit, 1.0), 1e-9)
    return 2.0 * math.atanh(1.0 / math.sqrt(1.0 + (_RATIO - 1.0) * part))


@inner
def is_enough(
    sizes: Floats, rule: int, points: int, size: float, depth: float, length: float, pole: float,
    at_integers: bool,
) -> bool:  # fmt: skip
    """Whether a rule of so many nodes is accurate in a block."""
    depth *= _POWER
    wanted = depth + _LOG_TOLERABLE
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


@inner
def middle_of(left: float, right: float, limit: float, is_sum: bool) -> float:
    """Where a block is divided."""
    middle = 0.5 * (left + right)
    if is_sum:
        length = right - left
        if length > 1.5 * limit:
            middle = left + (limit if length <= 16.0 * limit else math.sqrt(limit * length))
        middle = math.floor(middle)
    return middle


@inner
def sparse_rules(sizes: Floats, size: float, depth: float, pole: float) -> int:
    """Which of the shorter rules are accurate in a block, as bits."""
    bits = 0
    if is_enough(sizes, 2, 8, size, depth, 0.0, pole, False):
        bits |= 4
    if depth > _SPARSE:
        if is_enough(sizes, 1, 5, size, depth, 0.0, pole, False):
            bits |= 2
        if is_enough(sizes, 0, 3, size, depth, 0.0, pole, False):
            bits |= 1
    return bits


@inner
def rule_of(bits: int, length: float, is_sum: bool) -> int:
    """Return the shortest rule that is accurate."""
    if bits & 1 or (is_sum and length <= 3.0):
        return 0
    if bits & 2 or (is_sum and length <= 5.0):
        return 1
    if bits & 4 or (is_sum and length <= 8.0):
        return 2
    return 3


@inner
def points_of(rule: int) -> int:
    """Nodes of a rule."""
    if rule < 2:
        return 3 + 2 * rule
    return 4 * rule


@inner
def put_nodes(
    sums: Floats, integrals: Floats, rule: int, left: float, right: float, is_sum: bool, nodes: Floats,
    weights: Floats, start: int,
) -> int:  # fmt: skip
    """Put nodes and weights of a block; how many."""
    points, length = points_of(rule), right - left
    if not is_sum:
        half, middle = 0.5 * length, 0.5 * (left + right)
        for i in range(points):
            nodes[start + i] = middle + half * integrals[0, rule, i]
            weights[start + i] = half * integrals[1, rule, i]
        return points
    if length <= LONGEST:
        index = int(length)
        count = min(points, index)
        for i in range(count):
            nodes[start + i] = left + sums[0, rule, index, i]
            weights[start + i] = sums[1, rule, index, i]
        return count
    near = (LONGEST / length) ** 2
    for i in range(points):
        at_longest = (2.0 * sums[0, rule, LONGEST, i] + 1.0) / LONGEST - 1.0
        relative = integrals[0, rule, i] + (at_longest - integrals[0, rule, i]) * near
        limit = 0.5 * integrals[1, rule, i]
        nodes[start + i] = left + 0.5 * (length * (relative + 1.0) - 1.0)
        weights[start + i] = length * (limit + (sums[1, rule, LONGEST, i] / LONGEST - limit) * near)
    return points
