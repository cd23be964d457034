r"""Compiled division of pairs (N, S) into blocks whose sides are kinks; see ``plane_kernel``.

Lines. At an N the noise has kinks at :math:`A = y` and :math:`A = R N - y`, and given N the prior expects a
typical A: all are lines in N. Where two of them cross, N is divided; between two such N, S is divided at
lines, so that between two of them weights are smooth. Blocks are parts of what is between: N from ``FIRST_N``
up to ``END_N``, and S from one share of the way to another, the same at every N.

Judgement. Log weights are taken at five places across S, at the middle N, at five N, half way across S, and
at the corners: 13 in all. Both fives are judged as in ``adaptive_blocks``; what corners miss the sum of both
by counts twice in both sizes. A block is halved across N or across S until five nodes are enough both ways.

Whole numbers. Up to ``SINGLE`` records every N is a node, and sides are rounded up to whole sums. Beyond,
sums over S are functions of a block's length, which need not be whole: they continue those at whole N.
Sides among small sums are whole numbers at every whole N.
"""

# ruff: noqa: C901, PLR0912, PLR0915, FBT003, PLW3301 - compiled loops, which know no keywords

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.block_rules import is_enough, poles
from suffice.pipeline.math.distributions.machine_code import vectorised
from suffice.pipeline.math.distributions.vector_functions import exp, log, put_logs
from suffice.pipeline.math.engines.one_sum.block_kernel import log_joint_at
from suffice.pipeline.math.engines.one_sum.sum_weights import (
    FAMILY,
    FIRST,
    GAMMA,
    LOWER,
    NEGATIVE_BINOMIAL,
    POISSON,
    SECOND,
    SHAPE,
    SHARE,
    STEP,
    set_rows,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

FIRST_N, END_N, LOW, LOW_SLOPE, HIGH, HIGH_SLOPE, IN_LOGS = range(7)
"""Of a block: its N, both sides, linear in N, and whether what lies between is taken by its logarithm."""
COLUMNS = 7
KEPT_N_SIZE, KEPT_S_SIZE, KEPT_N_POLE, KEPT_S_POLE, KEPT_BOUND = range(COLUMNS, COLUMNS + 5)
N_LEFT, N_RIGHT, N_LIMIT, N_POLE, S_LEFT, S_RIGHT, S_LIMIT, S_POLE, LEAST, BOUND, N_SIZE, S_SIZE = range(12)
LEAST_ACROSS, BOUND_ACROSS, NOTHING, UNIT, S_RATIO = range(12, 17)
"""Of what is known of a block."""
NATS, LOG_OF_N, LOG_OF_TOTAL, LIGHT = range(4)
"""How fine blocks are."""
POINTS, SETS = 5, 13
"""Nodes at most, each way, and places at which a block is looked at."""
MOST_EDGES, TINY, SINGLE = 1200, 1e-290, 16.0
_FAR, _LOW_LOG = 25.0, 22.0
"""Nats beyond crossings of kinks at which N is divided; and below a side, of the least amount."""
_FEW, _WHOLE, _STEEP = 40.0, 64.0, 60.0
"""Typical sums up to which S is not divided there; sums up to which sides are whole; nats across few N."""
_STEEPLY, _LEAST_SHARE = 12.0, 1.0 / 64.0
"""Nats across a quarter of a block beyond which it is divided next to its higher end, and how near."""
_LOG16 = math.log(16.0)
_PLACES = (0, 3, 4, 9, 10, 13)
_SETS_OF_N = (5, 9, 11, 6, 0, 1, 2, 3, 4, 7, 8, 10, 12)
_SHARES = (0.5, 0.0, 1.0, 0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 0.5, 0.5, 0.0, 1.0)
"""Places of a block at each of five N: where these begin, the set of each, and its share of the way in S."""


@vectorised
def set_lines(model: Floats, values: Floats, reaches: Floats, lines: Floats) -> int:
    """Kinks and the typical amount, each a constant and a slope in N; how many."""
    count = len(values)
    for j in range(count):
        lines[0, j], lines[1, j] = values[j], 0.0
        if reaches[j] > 0.0:
            lines[0, j], lines[1, j] = -values[j], reaches[j]
    a, b, per_row = model[FIRST], model[SECOND], model[SHAPE]
    lines[0, count] = 0.0
    if model[FAMILY] == POISSON:
        slope = max(a - 1.0, 0.0) / b
    elif model[FAMILY] == NEGATIVE_BINOMIAL:
        ratio = max(b - 1.0, 0.0) / (a + 1.0)
        slope, lines[0, count] = ratio * per_row, -ratio
    else:
        slope = (b * per_row / a / model[SHARE] - model[LOWER]) / model[STEP]
    lines[1, count] = slope
    return count + 1


@vectorised
def set_edges(
    is_sum: bool, count: int, lines: Floats, rates: Floats, margin: float, low: float, high: float,
    edges: Floats,
) -> int:  # fmt: skip
    """N at which lines cross each other or nothing, ascending; how many."""
    number = 3
    edges[0], edges[1], edges[2] = low, high, SINGLE
    if is_sum:
        edges[3], edges[4], number = 6.0, 11.0, 5
    least, most, kinks, slowest = math.inf, -math.inf, len(rates), math.inf
    for j in range(count):
        c, r = lines[0, j], lines[1, j]
        if r > 0.0:
            edges[number] = -c / r
            edges[number + 1] = (margin - c) / r
            number += 2
        for i in range(j):
            apart = r - lines[1, i]
            if apart != 0.0 and number < MOST_EDGES - 8:
                at = (lines[0, i] - c) / apart
                edges[number] = at
                number += 1
                if j < kinks:
                    least, most = min(least, at), max(most, at)
                    slowest = min(slowest, min(rates[i], rates[j]) * max(r, lines[1, i]))
    if least <= most:
        edges[number], edges[number + 1] = least - _FAR / slowest, most + _FAR / slowest
        number += 2
    kept = 0
    for i in range(number):
        edges[i] = min(max(math.ceil(edges[i]), low), high)
    for i in range(1, number):
        value, at = edges[i], i
        while at > 0 and edges[at - 1] > value:
            edges[at] = edges[at - 1]
            at -= 1
        edges[at] = value
    for i in range(number):
        if kept == 0 or edges[i] > edges[kept - 1]:
            edges[kept] = edges[i]
            kept += 1
    return kept


@vectorised
def first_blocks(
    is_sum: bool, lowest: float, count: int, lines: Floats, margin: float, number: int, edges: Floats,
    order: Integers, blocks: Floats,
) -> int:  # fmt: skip
    """Blocks between lines and edges; how many, -1 if too many."""
    out = 0
    for e in range(number - 1):
        start, end = edges[e], edges[e + 1]
        middle, above = 0.5 * (start + end - 1.0), 0
        for j in range(count):
            at = lines[0, j] + lines[1, j] * middle
            if at <= 0.0 or (is_sum and j == count - 1 and at < _FEW):
                continue
            k = above
            while k > 0 and lines[0, order[k - 1]] + lines[1, order[k - 1]] * middle > at:
                order[k] = order[k - 1]
                k -= 1
            order[k] = j
            above += 1
        if out + above + 1 > blocks.shape[1]:
            return -1
        c, r = 0.0, 0.0
        if above == count:
            c, r = lines[0, order[0]] - margin, lines[1, order[0]]
            if c + r * middle <= 0.0:
                c, r = 0.0, 0.0
        for k in range(above + 1):
            if k < above:
                c_high, r_high = lines[0, order[k]], lines[1, order[k]]
            elif above > 0:
                c_high, r_high = lines[0, order[k - 1]] + margin, lines[1, order[k - 1]]
            else:
                c_high, r_high = margin, 0.0
            in_logs = not is_sum and k == 0 and c == 0.0 and r == 0.0 and lowest * start < SINGLE
            if in_logs:
                small = math.exp(-_LOW_LOG / min(lowest * start, 1.0))
                c, r = small * c_high, small * r_high
            if (c_high - c) + (r_high - r) * middle > 0.0:
                blocks[FIRST_N, out], blocks[END_N, out] = start, end
                blocks[LOW, out], blocks[LOW_SLOPE, out] = c, r
                blocks[HIGH, out], blocks[HIGH_SLOPE, out] = c_high, r_high
                blocks[IN_LOGS, out] = 1.0 if in_logs else 0.0
                out += 1
            c, r = c_high, r_high
    return out


@vectorised
def look(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, count: int,
    blocks: Floats, n: Floats, added: Floats, table: Floats, row: Integers, work: Floats,
) -> None:  # fmt: skip
    """Log weights of blocks: five across S, the other four across N, the corners."""
    is_sum = model[FAMILY] != GAMMA
    # Blocks of the same N are next to each other, and have the same rows.
    group, rows = row[SETS * count :], 0
    for b in range(count):
        first, end = blocks[FIRST_N, b], blocks[END_N, b]
        if b == 0 or first != blocks[FIRST_N, b - 1] or end != blocks[END_N, b - 1]:
            for q in range(5):
                n[rows + q] = first + 0.25 * q * (end - 1.0 - first)
            rows += 5
        group[b] = rows - 5
    for i in range(rows):
        added[i] = n_prior[0] - n_prior[1] * log(1.0 + n[i])
    set_rows(model, values, reaches, rows, n, added, table)
    position, amount, density = work[0], work[1], work[3]
    short = 1.0 if is_sum else 0.0
    for b in range(count):
        first, last = blocks[FIRST_N, b], blocks[END_N, b] - 1.0
        for of_n in range(5):
            at = first + 0.25 * of_n * (last - first)
            left = blocks[LOW, b] + blocks[LOW_SLOPE, b] * at
            length = max(blocks[HIGH, b] + blocks[HIGH_SLOPE, b] * at - short - left, 0.0)
            left = max(left, 0.0)
            for place in range(_PLACES[of_n], _PLACES[of_n + 1]):
                s = _SETS_OF_N[place]
                row[s * count + b] = group[b] + of_n
                amount[s * count + b] = left + _SHARES[place] * length
    if not is_sum:
        for b in range(count):
            if blocks[IN_LOGS, b] == 0.0:
                continue
            for of_n in range(5):
                at = n[group[b] + of_n]
                low = max(blocks[LOW, b] + blocks[LOW_SLOPE, b] * at, TINY)
                high = max(blocks[HIGH, b] + blocks[HIGH_SLOPE, b] * at, TINY)
                # A quarter of the way from one logarithm to the other.
                quarter = math.sqrt(math.sqrt(high)) / math.sqrt(math.sqrt(low))
                for place in range(_PLACES[of_n], _PLACES[of_n + 1]):
                    times = low
                    for _ in range(int(4.0 * _SHARES[place])):
                        times *= quarter
                    amount[_SETS_OF_N[place] * count + b] = times
        for i in range(SETS * count):
            amount[i] = max(amount[i], TINY)
        put_logs(SETS * count, amount, position)
    log_joint_at(model, rates, table, SETS * count, row, work)
    if not is_sum:
        # Densities of what is integrated over.
        for i in range(SETS * count):
            density[i] -= position[i]
        for b in range(count):
            if blocks[IN_LOGS, b] != 0.0:
                for s in range(SETS):
                    density[s * count + b] += position[s * count + b]


@vectorised
def _share(left: float, second: float, fourth: float, right: float) -> float:
    """Where a block is divided: in half, or next to the end from which it falls steeply."""
    first, last = left - second, right - fourth
    if first > _STEEPLY and left > right:
        return float(max(0.25 * _STEEPLY / first, _LEAST_SHARE))
    if last > _STEEPLY and left < right:
        return float(1.0 - max(0.25 * _STEEPLY / last, _LEAST_SHARE))
    return 0.5


@vectorised
def _judge(
    count: int, values: Floats, before: Floats, after: Floats, least: Floats, bound: Floats, size: Floats
) -> None:
    """As ``judge``, but for lengths; what is between two values is bounded as where it is concave."""
    for b in range(count):
        first, second, third = before[b], before[count + b], values[2 * count + b]
        fourth, fifth = after[b], after[count + b]
        ends, tilt = first + fifth, fifth - first
        bend = abs(third - 0.5 * ends)
        most = max(max(max(first, fifth), max(second, fourth)), third)
        lowest = min(min(min(first, fifth), min(second, fourth)), third)
        even = 0.125 * ends + 0.75 * third
        rough = max(abs(second - even + 0.25 * tilt), abs(fourth - even - 0.25 * tilt))
        rise, of_it = most - lowest, 40.0 * rough
        size[b] = math.sqrt(rise * rise + (36.0 + 25.0 * bend) * bend + of_it * of_it)
        low, high = max(min(first, second), min(second, third)), max(min(third, fourth), min(fourth, fifth))
        least[b] = max(low, high)
        between = max(
            max(second + max(second - third, 0.0), fourth + max(fourth - third, 0.0)),
            max(
                min(second + max(second - first, 0.0), third + max(third - fourth, 0.0)),
                min(third + max(third - second, 0.0), fourth + max(fourth - fifth, 0.0)),
            ),
        )
        bound[b] = max(most, 0.5 * (between + most)) + min(rough, 1.0)


@vectorised
def sort_out(
    is_sum: bool, smooth: float, fineness: Floats, sizes: Floats, count: int, blocks: Floats, value: Floats,
    looks: Floats, following: Floats, kept: Floats, state: Floats,
) -> int:  # fmt: skip
    """Keep blocks that fit and halve others; how many are next, -1 if too many."""
    # looks: left, right, limit, pole of N; the same of S; least, bound, size of N and S.
    nats = fineness[NATS]
    for b in range(count):
        first, last = blocks[FIRST_N, b], blocks[END_N, b] - 1.0
        looks[N_LEFT, b], looks[N_RIGHT, b] = first, last + 1.0
        looks[N_LIMIT, b] = 9.0 * first
        middle = 0.5 * (first + last)
        left = blocks[LOW, b] + blocks[LOW_SLOPE, b] * middle
        right = blocks[HIGH, b] + blocks[HIGH_SLOPE, b] * middle
        if blocks[IN_LOGS, b] == 0.0:
            looks[S_LEFT, b] = max(left, 0.0)
            looks[S_RIGHT, b] = max(right, looks[S_LEFT, b] + 1e-3)
            looks[S_LIMIT, b] = 9.0 * looks[S_LEFT, b] + smooth
            longest = (looks[S_RIGHT, b] - looks[S_LEFT, b]) / looks[S_LIMIT, b]
            for k in range(2):
                at = first if k == 0 else last
                left = max(blocks[LOW, b] + blocks[LOW_SLOPE, b] * at, 0.0)
                right = blocks[HIGH, b] + blocks[HIGH_SLOPE, b] * at
                longest = max(longest, (right - left) / (9.0 * left + smooth))
            if is_sum and looks[S_RIGHT, b] - looks[S_LEFT, b] <= POINTS:
                longest = min(longest, 1.0)
            looks[N_POLE, b] = longest
        else:
            low = log(max(left, TINY))
            looks[S_LEFT, b], looks[S_RIGHT, b] = low, max(log(max(right, TINY)), low + 1e-9)
            looks[S_LIMIT, b] = 5.0
            looks[N_POLE, b] = (looks[S_RIGHT, b] - low) / 5.0
        looks[NOTHING, b], looks[UNIT, b], looks[S_RATIO, b] = 0.0, 1.0, looks[N_POLE, b]
    poles(count, looks[NOTHING], looks[S_RATIO], looks[UNIT], looks[S_POLE])
    _judge(count, value, value, value[3 * count :], looks[LEAST], looks[BOUND], looks[S_SIZE])
    _judge(
        count, value, value[5 * count :], value[7 * count :], looks[LEAST_ACROSS], looks[BOUND_ACROSS],
        looks[N_SIZE],
    )  # fmt: skip
    poles(count, looks[N_LEFT], looks[N_RIGHT], looks[N_LIMIT], looks[N_POLE])
    for b in range(count):
        middle, length = value[2 * count + b], looks[S_RIGHT, b] - looks[S_LEFT, b]
        mixed, corner = 0.0, -math.inf
        for s in range(4):
            across_n = value[(5 + 3 * (s & 1)) * count + b]
            across_total = value[4 * (s >> 1) * count + b]
            at = value[(9 + s) * count + b]
            mixed = max(mixed, abs(at - (across_n + across_total - middle)))
            corner = max(corner, at)
        looks[N_SIZE, b] += 2.0 * mixed
        looks[S_SIZE, b] += 2.0 * mixed
        of_n = looks[N_RIGHT, b] - looks[N_LEFT, b]
        low_length = blocks[HIGH, b] - blocks[LOW, b]
        slope = blocks[HIGH_SLOPE, b] - blocks[LOW_SLOPE, b]
        widest = length
        if blocks[IN_LOGS, b] == 0.0:
            widest = max(
                low_length + slope * looks[N_LEFT, b], low_length + slope * (looks[N_RIGHT, b] - 1.0)
            )
        widest = max(widest, length)
        best, best_n, whole = looks[BOUND, b], looks[BOUND_ACROSS, b], log(length * of_n)
        highest = max(max(best, best_n), corner)
        highest = max(highest, min(best + best_n - middle, highest + 2.0))
        looks[BOUND, b] = highest + log(of_n * widest)
        # A sixteenth of it.
        low, low_n = looks[LEAST, b], looks[LEAST_ACROSS, b]
        looks[LEAST, b] = low + low_n - max(max(low, low_n), middle) + whole - _LOG16
        state[0] = max(state[0], looks[LEAST, b])
    top, refined, out = state[0], int(state[1]), 0
    for b in range(count):
        depth = top - looks[BOUND, b]
        if not depth <= nats:
            continue
        of_n, length = looks[N_RIGHT, b] - looks[N_LEFT, b], looks[S_RIGHT, b] - looks[S_LEFT, b]
        fine_n = of_n <= 1.0 or (of_n <= POINTS and looks[N_SIZE, b] < _STEEP)
        is_few = is_sum and looks[N_LEFT, b] < SINGLE
        if not fine_n and of_n > POINTS and not is_few and of_n <= looks[N_LIMIT, b]:
            fine_n = is_enough(
                sizes, fineness[LOG_OF_N], 4, POINTS, looks[N_SIZE, b], depth, of_n, looks[N_POLE, b], False
            )
        fine = is_sum and length <= POINTS
        if not fine and looks[S_RATIO, b] <= 1.0:
            fine = is_enough(
                sizes,
                fineness[LOG_OF_TOTAL],
                4,
                POINTS,
                looks[S_SIZE, b],
                depth,
                length,
                looks[S_POLE, b],
                False,
            )
        if fine and fine_n:
            if refined >= kept.shape[1]:
                return -1
            for column in range(COLUMNS):
                kept[column, refined] = blocks[column, b]
            kept[KEPT_N_SIZE, refined], kept[KEPT_S_SIZE, refined] = looks[N_SIZE, b], looks[S_SIZE, b]
            kept[KEPT_N_POLE, refined], kept[KEPT_S_POLE, refined] = looks[N_POLE, b], looks[S_POLE, b]
            kept[KEPT_BOUND, refined] = looks[BOUND, b]
            refined += 1
            continue
        if out + 2 > following.shape[1]:
            return -1
        for part in range(2):
            for column in range(COLUMNS):
                following[column, out + part] = blocks[column, b]
        divide_n = not fine_n
        if divide_n and not fine:
            too_long = of_n > looks[N_LIMIT, b]
            divide_n = too_long or (looks[S_RATIO, b] <= 1.0 and looks[N_SIZE, b] >= looks[S_SIZE, b])
        share, limit = (
            _share(value[b], value[count + b], value[3 * count + b], value[4 * count + b]),
            looks[S_LIMIT, b],
        )
        if blocks[IN_LOGS, b] == 0.0:
            if share == 0.5 and length > 1.5 * limit:
                share = (limit if length <= 16.0 * limit else math.sqrt(limit * length)) / length
        else:
            # Half of the logarithm at the middle N.
            share = (exp(share * length) - 1.0) / (exp(length) - 1.0)
        c = blocks[LOW, b] + share * (blocks[HIGH, b] - blocks[LOW, b])
        r = blocks[LOW_SLOPE, b] + share * (blocks[HIGH_SLOPE, b] - blocks[LOW_SLOPE, b])
        if is_sum and not divide_n:
            # Whole numbers, where there are such between.
            last = looks[N_RIGHT, b] - 1.0
            at_middle = 0.5 * (looks[N_LEFT, b] + last)
            slope = np.rint(r)
            constant = np.rint(c + (r - slope) * at_middle)
            inside = True
            for k in range(2):
                at = looks[N_LEFT, b] if k == 0 else last
                here = constant + slope * at
                inside &= here >= max(blocks[LOW, b] + blocks[LOW_SLOPE, b] * at, 0.0)
                inside &= here <= blocks[HIGH, b] + blocks[HIGH_SLOPE, b] * at
            if inside:
                c, r = constant, slope
            elif not is_few and of_n > 1.0 and (looks[S_LEFT, b] < _WHOLE or length < _WHOLE):
                divide_n = True
        if divide_n:
            share, limit = (
                _share(
                    value[5 * count + b], value[6 * count + b], value[7 * count + b], value[8 * count + b]
                ),
                looks[N_LIMIT, b],
            )
            at = looks[N_LEFT, b] + max(share * of_n, 1.0)
            if share == 0.5 and of_n > 1.5 * limit:
                at = looks[N_LEFT, b] + (limit if of_n <= 16.0 * limit else math.sqrt(limit * of_n))
            at = math.floor(at)
            following[END_N, out], following[FIRST_N, out + 1] = at, at
        else:
            following[HIGH, out], following[HIGH_SLOPE, out] = c, r
            following[LOW, out + 1], following[LOW_SLOPE, out + 1] = c, r
        out += 2
    state[1] = refined
    return out
