r"""Compiled sums over pairs (N, S), cell by cell: by Gauss rules on blocks of both; see ``plane_division``.

In a block the rule over N has up to five nodes, and at each of them the rule over S. Of sums both are Gauss
rules on integers. Moments are those of the nodes. In the mixture a node stands for a piece of its line of S,
as in ``block_pieces``, and of N, along which S moves as it does between nodes; the pieces of a column of
nodes have its mass and its mean N.

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
from suffice.pipeline.math.engines.one_sum.block_kernel import add_up, given_pairs, log_joint
from suffice.pipeline.math.engines.one_sum.block_pieces import (
    BETA_LINE,
    KEYS,
    LEVELS,
    merge_pairs,
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

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_BLOCKS, MOST_NODES, MOST_MERGED = 3_000, 42_100, 2_500
"""Of a cell, beyond which it is left to finer blocks."""
_ROUNDS, _MARGIN, _HIGHEST, _ROUNDING = 60, 20.0, 600.0, 1e-9
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
def _pieces_of_n(
    number: int, first: int, points: int, n: Floats, of_n: Floats, left: float, log_weight: Floats,
    total: Floats, pieces: Floats, spread_n: Floats, shift_n: Floats, share: Floats,
) -> None:  # fmt: skip
    """What nodes stand for across N: of a block of so many N with as many nodes of S each."""
    mass = pieces[1]
    for j in range(points):
        at, whole, moment, of_pieces, moment_of_pieces = left, 0.0, 0.0, 0.0, 0.0
        for i in range(number):
            k = first + i * points + j
            before, after = max(i - 1, 0), min(i + 1, number - 1)
            k0, k1 = first + before * points + j, first + after * points + j
            apart = n[after] - n[before]
            slope = (log_weight[k1] - log_weight[k0]) / apart
            share[k] = (total[k1] - total[k0]) / apart
            length = of_n[i]
            squared = max(0.25 * (length * length - 1.0), 0.0)
            middle = at + 0.5 * length
            at += length
            u2 = slope * slope * squared
            by_u = 1.0 / (1.0 + math.sqrt(4.0 + u2))
            z = slope * (middle - n[i])
            whole += mass[k]
            moment += mass[k] * n[i]
            mass[k] *= 1.0 + u2 * (1.0 + u2 / 20.0) / 6.0
            mass[k] *= max(1.0 + z * (1.0 + z * (0.5 + z / 6.0)), 0.0)
            spread_n[k] = max(1.0 - u2 * by_u * by_u - 2.0 * by_u, 0.0) * squared
            shift_n[k] = middle - n[i] + slope * by_u * squared
            of_pieces += mass[k]
            moment_of_pieces += mass[k] * (n[i] + shift_n[k])
        if of_pieces > 0.0 and whole > 0.0:
            scale, shift = whole / of_pieces, moment / whole - moment_of_pieces / of_pieces
            for i in range(number):
                k = first + i * points + j
                mass[k] *= scale
                shift_n[k] += shift


def _resolve(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, fineness: Floats,
    line: int, update: Floats, merging: Floats, sizes: Floats, gauss: Floats, answers: Floats,
    counts: Integers, merged: Floats,
) -> None:  # fmt: skip
    """Resolve every cell: mean, sd, log evidence, largest N; counts are -1 of cells that are left."""
    most_rows = 5 * MOST_BLOCKS
    table, work = np.empty((KINKS + len(rates), most_rows)), np.empty((6, MOST_NODES))
    n, added, row = np.empty(most_rows), np.empty(most_rows), np.empty(MOST_NODES, np.int64)
    blocks, kept = np.empty((2, COLUMNS, MOST_BLOCKS)), np.empty((COLUMNS + 5, MOST_BLOCKS))
    looks, lines, edges = np.empty((17, MOST_BLOCKS)), np.empty((2, len(rates) + 1)), np.empty(MOST_EDGES)
    order = np.empty(len(rates) + 1, np.int64)
    state, moments, pairs = np.zeros(2), np.zeros(5), np.empty((4, MOST_NODES))
    starts, lefts, pieces = (
        np.empty(_CHUNK + 2, np.int64),
        np.empty(_CHUNK + 1),
        np.empty((5, _CHUNK + _ROOM)),
    )
    along = np.empty((4, _CHUNK + _ROOM))
    of_block = np.empty((6, _CHUNK), np.int64)
    offset, of_n = np.empty(8), np.empty(_CHUNK + _ROOM)
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
            if count <= 0 or SETS * count > MOST_NODES:
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
        top, number = state[0], int(state[1])
        moments[0], moments[1], moments[2], moments[3], moments[4] = 0.0, 0.0, 0.0, math.nan, 0.0
        heavy, b = 0, 0
        if none > top - fineness[NATS]:
            first, second = update[0], update[3]
            mean = first / (first + second) if line == BETA_LINE else first / second
            variance = mean * (1.0 - mean) / (first + second + 1.0) if line == BETA_LINE else mean / second
            w = math.exp(none - top)
            moments[0], moments[2], moments[3] = w, w * variance, mean
            pairs[0, 0], pairs[1, 0], pairs[2, 0], pairs[3, 0] = 0.0, 0.0, w, 0.0
            heavy = 1
        while b < number:
            # So many blocks as fill a near cache.
            rows, count, of_chunk, of_rows = 0, 0, 0, 0
            while b < number and count + _ROOM <= _CHUNK:
                depth = top - kept[KEPT_BOUND, b]
                if depth > fineness[NATS]:
                    b += 1
                    continue
                pn = _points(sizes, fineness[LOG_OF_N], kept[KEPT_N_SIZE, b], depth, kept[KEPT_N_POLE, b])
                ps = _points(sizes, fineness[LOG_OF_TOTAL], kept[KEPT_S_SIZE, b], depth, kept[KEPT_S_POLE, b])
                if is_sum and kept[FIRST_N, b] < SINGLE:
                    pn = POINTS
                length_n = kept[END_N, b] - kept[FIRST_N, b]
                pn = integer_rule(length_n, pn, offset, of_n[rows:])
                middle = 0.5 * (kept[FIRST_N, b] + kept[END_N, b] - 1.0)
                of_block[0, of_chunk], of_block[1, of_chunk], of_block[2, of_chunk] = count, rows, pn
                of_block[4, of_chunk] = b
                even = True
                for i in range(pn):
                    at = middle + offset[i]
                    n[rows] = at
                    left = kept[LOW, b] + kept[LOW_SLOPE, b] * at
                    right = kept[HIGH, b] + kept[HIGH_SLOPE, b] * at
                    starts[of_rows] = count
                    if is_sum:
                        left = max(left, 0.0)
                        if at < SINGLE:
                            left, right = math.ceil(left - _ROUNDING), math.ceil(right - _ROUNDING)
                        length = max(right - left, _ROUNDING)
                        from_middle = left + 0.5 * (length - 1.0)
                        # A length may be no whole number.
                        points = min(ps, math.ceil(length - _ROUNDING))
                        if points < 2:
                            points = 1
                            work[0, count], work[5, count] = 0.0, length
                        elif abs(length - points) < _ROUNDING:
                            integer_rule(float(points), points, work[0, count:], work[5, count:])
                        else:
                            rule_of_length(length, points, work[0, count:], work[5, count:])
                        for j in range(points):
                            work[0, count + j] = max(work[0, count + j] + from_middle, 0.0)
                        lefts[of_rows] = left - 0.5
                    elif kept[IN_LOGS, b] == 0.0:
                        left, points = max(left, TINY), ps
                        half = max(0.5 * (right - left), 1e-12 * left)
                        for j in range(points):
                            amount_at = left + half * (1.0 + gauss[points, 0, j])
                            work[0, count + j] = math.log(amount_at)
                            work[5, count + j] = half * gauss[points, 1, j] / amount_at
                        lefts[of_rows] = math.log(left)
                        if left < right * 1e-6:
                            # What the first node stands for begins nowhere near nothing.
                            lefts[of_rows] = work[0, count] - 0.5 * work[5, count]
                    else:
                        left, points = math.log(max(left, TINY)), ps
                        half = max(0.5 * (math.log(max(right, TINY)) - left), 1e-12)
                        for j in range(points):
                            work[0, count + j] = left + half * (1.0 + gauss[points, 0, j])
                            work[5, count + j] = half * gauss[points, 1, j]
                        lefts[of_rows] = left
                    for j in range(points):
                        row[count + j] = rows
                    if i == 0:
                        of_block[3, of_chunk] = points
                    even &= points == of_block[3, of_chunk]
                    count += points
                    rows += 1
                    of_rows += 1
                if not even:
                    of_block[3, of_chunk] = 0
                of_chunk += 1
                b += 1
            starts[of_rows] = count
            if heavy + count > pairs.shape[1] or of_chunk == 0:
                heavy = heavy if of_chunk == 0 else -1
                break
            for i in range(rows):
                added[i] = n_prior[0] - n_prior[1] * log(1.0 + n[i])
            set_rows(model, values[cell], reaches, rows, n, added, table)
            log_joint(model, rates, table, count, row, work, False)
            position, amount, density, weight = work[0], work[1], work[3], work[5]
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
                weight[i] *= exp(density[i])
            set_pieces(is_sum, count, of_rows, starts, lefts, work, pieces)
            mass, place, spread_of = pieces[1], pieces[2], pieces[3]
            lower, step = model[LOWER], model[STEP]
            for i in range(count):
                n_of[i] = n[row[i]]
            if is_sum:
                for i in range(count):
                    total[i] = amount[i]
            else:
                for i in range(count):
                    total[i] = lower * n_of[i] + step * amount[i]
                for i in range(count):
                    steps = step * exp(place[i])
                    place[i] = lower * n_of[i] + steps
                    spread_of[i] *= steps * steps
            log_weight, spread_n, shift_n, share = along[0], along[1], along[2], along[3]
            for i in range(count):
                log_weight[i] = density[i] + log(pieces[0, i])
                spread_n[i], shift_n[i], share[i] = 0.0, 0.0, 0.0
            for k in range(of_chunk):
                first_node, first_row, pn, points = (
                    of_block[0, k],
                    of_block[1, k],
                    of_block[2, k],
                    of_block[3, k],
                )
                for i in range(pn):
                    w = of_n[first_row + i]
                    line_of = first_row + i
                    for m in range(starts[line_of], starts[line_of + 1]):
                        mass[m] *= w
                        weight[m] *= w
                block = of_block[4, k]
                length_n = kept[END_N, block] - kept[FIRST_N, block]
                if pn < 2 or length_n <= pn:
                    continue
                if points > 0:
                    _pieces_of_n(
                        pn, first_node, points, n[first_row:], of_n[first_row:], kept[FIRST_N, block] - 0.5,
                        log_weight, total, pieces, spread_n, shift_n, share,
                    )  # fmt: skip
            mean, variance = density, position
            given_pairs(line, update, count, n_of, total, mean, variance)
            if math.isnan(moments[3]):
                moments[3] = mean[0]
            add_up(count, weight, mean, variance, moments[3], moments)
            least = light * moments[0]
            for i in range(count):
                if weight[i] > 0.0:
                    moments[4] = max(moments[4], n_of[i])
                if mass[i] > least:
                    at, s = max(n_of[i] + shift_n[i], low), max(place[i] + share[i] * shift_n[i], 0.0)
                    pairs[0, heavy], pairs[1, heavy], pairs[2, heavy] = at, s, mass[i]
                    first = update[0] + update[1] * at + update[2] * s
                    second = update[3] + update[4] * at + update[5] * s
                    of_total = update[2] / first - update[5] / second
                    of_both = share[i] * of_total + update[1] / first - update[4] / second
                    pairs[3, heavy] = of_total * of_total * spread_of[i] + of_both * of_both * spread_n[i]
                    heavy += 1
        evidence = moments[0]
        if heavy < 0 or not 0.0 < evidence < math.inf:
            continue
        shift = moments[1] / evidence
        answers[cell, 0] = moments[3] + shift
        answers[cell, 1] = math.sqrt(max(moments[2] / evidence - shift * shift, 0.0))
        answers[cell, 2], answers[cell, 3] = top + math.log(evidence), moments[4]
        by_evidence, count = 1.0 / evidence, 0
        for i in range(heavy):
            w = pairs[2, i] * by_evidence
            if w > light:
                pairs[0, count], pairs[1, count], pairs[2, count] = pairs[0, i], pairs[1, i], w
                pairs[3, count] = pairs[3, i]
                count += 1
        counts[cell] = merge_pairs(
            merging, line, update, count, pairs, work, (cell + 1) * MOST_MERGED, row, slots, of_merged,
            merged[cell],
        )  # fmt: skip


resolve = compiled(
    _resolve,
    written(1), written(2), written(1), written(1), written(1), written(1), types.int64, written(1),
    written(1), written(3), written(3), written(2), written(1, types.int64), written(3),
)  # fmt: skip
