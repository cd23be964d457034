r"""Compiled sums over pairs (N, S), cell by cell: by Gauss rules on blocks of both; see ``plane_division``.

In a block the rule over N has up to five nodes, and at each of them the rule over S. Of sums both are Gauss
rules on integers. Moments are those of the nodes. They are added up by rules of a node less each way too, but
of two at least: what both differ by is the error that is stated. In the mixture a node stands for a piece of
its line of S, as in ``block_pieces``, and of N, along which S moves as it does between nodes; the pieces of a
column of nodes have its mass and its mean N.

Machine code is kept beside this module while it stays as it is: whoever changes ``plane_division``,
``block_kernel``, ``sum_weights``, ``block_rules``, ``block_pieces``, ``integer_rules`` or
``vector_functions`` alone removes ``__pycache__``.
"""

# ruff: noqa: C901, PLR0912, PLR0915, FBT003 - compiled loops, which know no keywords

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.block_rules import is_enough
from suffice.pipeline.math.distributions.integer_rules import integer_rule, rule_of_length
from suffice.pipeline.math.distributions.machine_code import compiled, vectorised, written
from suffice.pipeline.math.distributions.vector_functions import exp, log
from suffice.pipeline.math.engines.one_sum.block_kernel import add_up, given_pairs, log_joint_at
from suffice.pipeline.math.engines.one_sum.block_pieces import (
    BETA_LINE,
    KEYS,
    LEVELS,
    merge_heavy,
    set_answers,
    set_pieces,
)
from suffice.pipeline.math.engines.one_sum.plane_division import (
    COLUMNS,
    END_N,
    FIRST_N,
    HIGH,
    HIGH_SLOPE,
    IN_LOGS,
    KEPT_BOUND,
    KEPT_N_POLE,
    KEPT_N_SIZE,
    KEPT_S_POLE,
    KEPT_S_SIZE,
    LIGHT,
    LOG_OF_N,
    LOG_OF_TOTAL,
    LOW,
    LOW_SLOPE,
    MOST_EDGES,
    NATS,
    POINTS,
    SETS,
    SINGLE,
    TINY,
    first_blocks,
    look,
    set_edges,
    set_lines,
    sort_out,
)
from suffice.pipeline.math.engines.one_sum.sum_weights import (
    FAMILY,
    GAMMA,
    KINKS,
    LOWER,
    SECOND,
    SHAPE,
    SHARE,
    STEP,
    noise_of_none,
    set_rows,
)
from suffice.pipeline.math.engines.one_sum.tilted_pieces import tilted_mass, tilted_mean, tilted_variance

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_BLOCKS, MOST_NODES, MOST_MERGED = 3_000, 42_100, 2_500
"""Of a cell, beyond which it is left to finer blocks."""
_ROUNDS, _MARGIN, _HIGHEST, _ROUNDING = 60, 20.0, 600.0, 1e-9
POINTS_N, POINTS_S = KEPT_N_SIZE, KEPT_S_SIZE
"""Of a block that is kept, in place of its sizes: nodes each way."""
_DEEP = 10.0
"""Nats below what a cell has at least, beyond which a block is too light for its error to matter."""
_CHUNK, _ROOM = 512, 40
"""Nodes that are weighed at a time: they stay in a near cache; and more room than a block takes."""


@vectorised
def _points(sizes: Floats, log_tolerance: float, size: float, depth: float, pole: float) -> int:
    """Fewest nodes that are enough."""
    for points in range(2, POINTS):
        if is_enough(sizes, log_tolerance, points - 1, points, size, depth, 0.0, pole, False):
            return points
    return POINTS


@vectorised
def _rule(length: float, points: int, offset: Floats, weight: Floats) -> int:
    """Gauss rule on integers, which may be between whole numbers of them; how many nodes it has."""
    if points < 2:
        offset[0], weight[0] = 0.0, length
        return 1
    if abs(length - points) < _ROUNDING:
        return int(integer_rule(float(points), points, offset, weight))
    return int(rule_of_length(length, points, offset, weight))


@vectorised
def _put_sums(
    is_sum: bool, left: float, right: float, is_small: bool, in_logs: bool, points: int, gauss: Floats,
    offset: Floats, count: int, line: int, lefts: Floats, work: Floats,
) -> int:  # fmt: skip
    """Put nodes of S between both sides, and the left end of what they stand for; how many there are then."""
    amount, weight = work[1], work[5]
    if is_sum:
        left = max(left, 0.0)
        if is_small:
            left, right = math.ceil(left - _ROUNDING), math.ceil(right - _ROUNDING)
        length = max(right - left, _ROUNDING)
        from_middle = left + 0.5 * (length - 1.0)
        # A length may be no whole number.
        points = _rule(length, min(points, math.ceil(length - _ROUNDING)), offset, weight[count:])
        for j in range(points):
            amount[count + j] = max(offset[j] + from_middle, 0.0)
        lefts[line] = left - 0.5
    elif not in_logs:
        left = max(left, TINY)
        half = max(0.5 * (right - left), 1e-12 * left)
        for j in range(points):
            amount[count + j] = left + half * (1.0 + gauss[points, 0, j])
            weight[count + j] = half * gauss[points, 1, j]
        # Next to nothing what the first node stands for begins nowhere near it.
        lefts[line] = left if left >= right * 1e-6 else 0.0
    else:
        left, high = log(max(left, TINY)), log(max(right, TINY))
        half = max(0.5 * (high - left), 1e-12)
        for j in range(points):
            amount[count + j] = exp(left + half * (1.0 + gauss[points, 0, j]))
            weight[count + j] = half * gauss[points, 1, j] * amount[count + j]
        lefts[line] = exp(left)
    return count + points


@vectorised
def _in_logarithms(count: int, lines: int, starts: Integers, lefts: Floats, work: Floats) -> None:
    """Turn weights of amounts into those of logarithms, and take these."""
    position, amount, weight = work[0], work[1], work[5]
    for i in range(count):
        position[i] = log(amount[i])
    for i in range(count):
        weight[i] /= amount[i]
    for i in range(lines):
        first = starts[i]
        lefts[i] = log(lefts[i]) if lefts[i] > 0.0 else position[first] - 0.5 * weight[first]


@vectorised
def _tilt_of_n(
    number: int, first: int, points: int, n: Floats, of_n: Floats, left: float, log_weight: Floats,
    total: Floats, along: Floats,
) -> None:  # fmt: skip
    """What nodes stand for across N, of a block of so many N with as many nodes of S each.

    Puts the slope, the squared half of the length, how far its middle is away, and how S moves.
    """
    at = left
    for i in range(number):
        before, after = max(i - 1, 0), min(i + 1, number - 1)
        by = 1.0 / (n[after] - n[before])
        squared, away = max(0.25 * (of_n[i] * of_n[i] - 1.0), 0.0), at + 0.5 * of_n[i] - n[i]
        at += of_n[i]
        for j in range(points):
            k, k0, k1 = first + i * points + j, first + before * points + j, first + after * points + j
            along[0, k] = (log_weight[k1] - log_weight[k0]) * by
            along[1, k], along[2, k] = squared, away
            along[3, k] = (total[k1] - total[k0]) * by


@vectorised
def _pieces_of_n(count: int, mass: Floats, along: Floats) -> None:
    """Put masses of pieces, how far these are away, and their variances, as ``set_pieces`` does for S."""
    slope, spread_n, shift_n, of_pieces = along[0], along[1], along[2], along[4]
    for i in range(count):
        of_pieces[i] = mass[i] * tilted_mass(slope[i] * slope[i] * spread_n[i], slope[i] * shift_n[i])
    for i in range(count):
        shift_n[i] += slope[i] * spread_n[i] * tilted_mean(slope[i] * slope[i] * spread_n[i])
    for i in range(count):
        spread_n[i] *= tilted_variance(slope[i] * slope[i] * spread_n[i])


@vectorised
def _level_columns(
    number: int, first: int, points: int, n_of: Floats, mass: Floats, along: Floats
) -> None:  # fmt: skip
    """Give pieces of each column of nodes its mass and its mean N."""
    shift_n, of_piece = along[2], along[4]
    for j in range(points):
        whole, moment, of_pieces, moment_of_pieces = 0.0, 0.0, 0.0, 0.0
        for i in range(number):
            k = first + i * points + j
            whole += mass[k]
            moment += mass[k] * n_of[k]
            of_pieces += of_piece[k]
            moment_of_pieces += of_piece[k] * (n_of[k] + shift_n[k])
        if of_pieces > 0.0 and whole > 0.0:
            scale, shift = whole / of_pieces, moment / whole - moment_of_pieces / of_pieces
            for i in range(number):
                k = first + i * points + j
                of_piece[k] *= scale
                shift_n[k] += shift


def _resolve(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, fineness: Floats,
    line: int, update: Floats, merging: Floats, sizes: Floats, gauss: Floats, answers: Floats,
    counts: Integers, merged: Floats,
) -> None:  # fmt: skip
    """Resolve every cell: mean, sd, log evidence, largest N, by both rules; counts are -1 of those left."""
    most_rows, room = 5 * MOST_BLOCKS, _CHUNK + _ROOM
    table, work = np.empty((KINKS + len(rates), most_rows)), np.empty((6, MOST_NODES))
    n, added, row = np.empty(most_rows), np.empty(most_rows), np.empty(MOST_NODES, np.int64)
    blocks, kept = np.empty((2, COLUMNS, MOST_BLOCKS)), np.empty((COLUMNS + 5, MOST_BLOCKS))
    looks, lines, edges = np.empty((17, MOST_BLOCKS)), np.empty((2, len(rates) + 1)), np.empty(MOST_EDGES)
    order, listed = np.empty(len(rates) + 1, np.int64), np.empty(MOST_BLOCKS, np.int64)
    state, of_rules, pairs = np.zeros(2), np.empty((3, 5)), np.empty((4, MOST_NODES))
    starts, lefts, pieces = np.empty(_CHUNK + 2, np.int64), np.empty(_CHUNK + 1), np.empty((5, room))
    along, of_block = np.empty((5, room)), np.empty((5, _CHUNK), np.int64)
    offset, of_n, of_total = np.empty(8), np.empty(room), np.empty(8)
    slots, of_merged = np.zeros(KEYS * LEVELS, np.int64), np.empty((MOST_MERGED, 5))
    is_sum = model[FAMILY] != GAMMA
    fall = 0.0
    for j in range(len(rates)):
        fall += rates[j]
    margin, light = _MARGIN / fall, fineness[LIGHT]
    low, high = max(n_prior[2], 1.0), n_prior[3] + 1.0
    smooth = 12.0 if is_sum else 9.0 * model[SECOND] / model[SHARE] / model[STEP]
    lowest = model[SHAPE] if model[LOWER] == 0.0 else math.inf
    for cell in range(len(values)):
        counts[cell] = -1
        of_lines = set_lines(model, values[cell], reaches, lines)
        number = set_edges(is_sum, of_lines, lines, rates, margin, low, high, edges)
        count = first_blocks(is_sum, lowest, of_lines, lines, margin, number, edges, order, blocks[0])
        turn, state[0], state[1] = 0, -math.inf, 0.0
        none = -math.inf
        if n_prior[2] < 1.0:
            none = n_prior[0] + noise_of_none(values[cell], rates)
            state[0] = none
        for _ in range(_ROUNDS):
            if count <= 0 or (SETS + 1) * count > MOST_NODES:
                break
            look(
                model, values[cell], reaches, rates, n_prior, count, blocks[turn], n, added, table, row, work
            )
            count = sort_out(
                is_sum, smooth, fineness, sizes, count, blocks[turn], work[3], looks, blocks[1 - turn], kept,
                state,
            )  # fmt: skip
            turn = 1 - turn
        if count != 0:
            continue
        top, number, heavy = state[0], 0, 0
        for b in range(int(state[1])):
            depth = top - kept[KEPT_BOUND, b]
            if depth <= fineness[NATS]:
                pn = _points(sizes, fineness[LOG_OF_N], kept[KEPT_N_SIZE, b], depth, kept[KEPT_N_POLE, b])
                ps = _points(sizes, fineness[LOG_OF_TOTAL], kept[KEPT_S_SIZE, b], depth, kept[KEPT_S_POLE, b])
                if is_sum and kept[FIRST_N, b] < SINGLE:
                    pn = POINTS
                for column in range(COLUMNS):
                    kept[column, number] = kept[column, b]
                kept[POINTS_N, number], kept[POINTS_S, number] = pn, ps
                kept[KEPT_BOUND, number] = depth
                number += 1
        near = 0
        for b in range(number):
            if kept[KEPT_BOUND, b] <= _DEEP:
                listed[near] = b
                near += 1
        count = near
        for b in range(number):
            if kept[KEPT_BOUND, b] > _DEEP:
                listed[count] = b
                count += 1
        # By a node less each way first, and then by all: what they differ by is the error that is stated.
        # What is deep below the top is taken by all nodes only.
        centre = math.nan
        for part in range(3):
            fewer = 1 if part == 0 else 0
            moments, at_block = of_rules[(1, 0, 2)[part]], near if part == 2 else 0
            last_block = number if part == 2 else near
            moments[0], moments[1], moments[2], moments[3], moments[4] = 0.0, 0.0, 0.0, centre, 0.0
            if part < 2 and none > top - fineness[NATS]:
                first, second = update[0], update[3]
                mean = first / (first + second) if line == BETA_LINE else first / second
                variance = (
                    mean * (1.0 - mean) / (first + second + 1.0) if line == BETA_LINE else mean / second
                )
                w = math.exp(none - top)
                moments[0], moments[2], moments[3] = w, w * variance, mean
                pairs[0, 0], pairs[1, 0], pairs[2, 0], pairs[3, 0] = 0.0, 0.0, w, 0.0
                heavy = 1
            while at_block < last_block:
                # So many blocks as fill a near cache.
                rows, count, of_chunk = 0, 0, 0
                while at_block < last_block and count + _ROOM <= _CHUNK:
                    b = listed[at_block]
                    length_n, pn = kept[END_N, b] - kept[FIRST_N, b], int(kept[POINTS_N, b])
                    if length_n > pn > 2:
                        pn -= fewer
                    pn = _rule(length_n, int(min(float(pn), length_n)), offset, of_n[rows:])
                    middle = 0.5 * (kept[FIRST_N, b] + kept[END_N, b] - 1.0)
                    of_block[0, of_chunk], of_block[1, of_chunk], of_block[2, of_chunk] = count, rows, pn
                    of_block[4, of_chunk] = b
                    even = True
                    for i in range(pn):
                        at = middle + offset[i]
                        n[rows], starts[rows] = at, count
                        left = kept[LOW, b] + kept[LOW_SLOPE, b] * at
                        right = kept[HIGH, b] + kept[HIGH_SLOPE, b] * at
                        ps = int(kept[POINTS_S, b])
                        if fewer > 0 and ps > 2 and not (is_sum and right - max(left, 0.0) <= ps):
                            ps -= 1
                        after = _put_sums(
                            is_sum, left, right, at < SINGLE, kept[IN_LOGS, b] != 0.0, ps, gauss, of_total,
                            count, rows, lefts, work,
                        )  # fmt: skip
                        if i == 0:
                            of_block[3, of_chunk] = after - count
                        even &= after - count == of_block[3, of_chunk]
                        for j in range(count, after):
                            row[j] = rows
                        count = after
                        rows += 1
                    if not even:
                        of_block[3, of_chunk] = 0
                    of_chunk += 1
                    at_block += 1
                starts[rows] = count
                if heavy + count > pairs.shape[1]:
                    heavy = -1
                    break
                for i in range(rows):
                    added[i] = n_prior[0] - n_prior[1] * log(1.0 + n[i])
                set_rows(model, values[cell], reaches, rows, n, added, table)
                position, amount, density, weight = work[0], work[1], work[3], work[5]
                if is_sum:
                    for i in range(count):
                        position[i] = amount[i]
                else:
                    _in_logarithms(count, rows, starts, lefts, work)
                log_joint_at(model, rates, table, count, row, work)
                total, n_of = work[4], work[2]
                highest = -math.inf
                for i in range(count):
                    density[i] -= top
                    highest = max(highest, density[i])
                if not highest < _HIGHEST:
                    heavy = -1
                    break
                for i in range(count):
                    pieces[0, i] = weight[i]
                for i in range(count):
                    weight[i] *= exp(density[i])
                for i in range(count):
                    n_of[i] = n[row[i]]
                lower, step = (0.0, 1.0) if is_sum else (model[LOWER], model[STEP])
                for i in range(count):
                    total[i] = lower * n_of[i] + step * amount[i]
                if fewer == 0:
                    set_pieces(is_sum, count, rows, starts, lefts, work, pieces)
                mass, place, spread_of = pieces[1], pieces[2], pieces[3]
                for k in range(rows):
                    for m in range(starts[k], starts[k + 1]):
                        weight[m] *= of_n[k]
                if fewer == 0:
                    for k in range(rows):
                        for m in range(starts[k], starts[k + 1]):
                            mass[m] *= of_n[k]
                    if not is_sum:
                        for i in range(count):
                            place[i] = exp(place[i])
                        for i in range(count):
                            spread_of[i] *= step * place[i] * (step * place[i])
                        for i in range(count):
                            place[i] = lower * n_of[i] + step * place[i]
                    log_weight = work[1]
                    for i in range(count):
                        log_weight[i] = density[i] + log(pieces[0, i])
                    for i in range(count):
                        along[0, i], along[1, i], along[2, i], along[3, i] = 0.0, 0.0, 0.0, 0.0
                    for turned in range(2):
                        for k in range(of_chunk):
                            first_row, pn, points = of_block[1, k], of_block[2, k], of_block[3, k]
                            block = of_block[4, k]
                            if pn < 2 or points < 1 or kept[END_N, block] - kept[FIRST_N, block] <= pn:
                                continue
                            if turned == 0:
                                _tilt_of_n(
                                    pn, of_block[0, k], points, n[first_row:], of_n[first_row:],
                                    kept[FIRST_N, block] - 0.5, log_weight, total, along,
                                )  # fmt: skip
                            else:
                                _level_columns(pn, of_block[0, k], points, n_of, mass, along)
                        if turned == 0:
                            _pieces_of_n(count, mass, along)
                mean, variance = density, position
                given_pairs(line, update, count, n_of, total, mean, variance)
                if math.isnan(moments[3]):
                    moments[3] = mean[0]
                add_up(count, weight, mean, variance, moments[3], moments)
                if fewer == 1:
                    continue
                for i in range(count):
                    if weight[i] > 0.0:
                        moments[4] = max(moments[4], n_of[i])
                spread_n, shift_n, share, of_piece = along[1], along[2], along[3], along[4]
                for i in range(count):
                    place[i] = max(place[i] + share[i] * shift_n[i], 0.0)
                for i in range(count):
                    n_of[i] = max(n_of[i] + shift_n[i], low)
                scatter = density
                for i in range(count):
                    first = update[0] + update[1] * n_of[i] + update[2] * place[i]
                    second = update[3] + update[4] * n_of[i] + update[5] * place[i]
                    of_sum = update[2] / first - update[5] / second
                    of_both = share[i] * of_sum + update[1] / first - update[4] / second
                    scatter[i] = of_sum * of_sum * spread_of[i] + of_both * of_both * spread_n[i]
                least = light * (of_rules[0, 0] + of_rules[2, 0] if part == 2 else moments[0])
                for i in range(count):
                    if of_piece[i] > least:
                        pairs[0, heavy], pairs[1, heavy] = n_of[i], place[i]
                        pairs[2, heavy], pairs[3, heavy] = of_piece[i], scatter[i]
                        heavy += 1
            if heavy < 0:
                break
            centre = moments[3]
        if heavy >= 0:
            for column in range(3):
                of_rules[0, column] += of_rules[2, column]
                of_rules[1, column] += of_rules[2, column]
            of_rules[0, 3], of_rules[1, 3] = centre, centre
            of_rules[0, 4] = max(of_rules[0, 4], of_rules[2, 4])
        evidence = of_rules[0, 0]
        if heavy < 0 or not 0.0 < evidence < math.inf or not 0.0 < of_rules[1, 0] < math.inf:
            continue
        for fewer in range(2):
            set_answers(top, of_rules[fewer], answers[cell, 1 - fewer])
        counts[cell] = merge_heavy(
            merging, line, update, heavy, evidence, light, pairs, work, (cell + 1) * MOST_MERGED, row, slots,
            of_merged, merged[cell],
        )  # fmt: skip


resolve = compiled(
    _resolve,
    written(1), written(2), written(1), written(1), written(1), written(1), types.int64, written(1),
    written(1), written(3), written(3), written(3), written(1, types.int64), written(3),
)  # fmt: skip
