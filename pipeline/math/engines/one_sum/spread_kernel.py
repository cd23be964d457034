r"""Compiled blocks of sums under priors that are spread over scales, cell by cell; see ``spread_sums``.

Blocks, rules, pieces and merging are those of ``block_kernel``; log weights have the factor of
``spread_factor``. What differs is what nodes lead to. Given a pair (N, S) the parameter has a mixture of the
prior's components: their shares are worked out at all nodes, and moments are of the mixture. A heavy pair
becomes one for each component that matters, whose sum is shifted, before pairs are merged.

Machine code is kept beside this module while it stays as it is: whoever changes ``block_kernel``, a module
that it names, or ``spread_factor``, removes ``__pycache__``.
"""

# ruff: noqa: C901, PLR0912, PLR0915, FBT003 - compiled loops, which know no keywords

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from suffice.pipeline.math.distributions import adaptive_blocks
from suffice.pipeline.math.distributions.block_rules import (
    POINTS,
    is_enough,
    judge,
    points_of,
    poles,
    rule_of,
    sparse_rules,
)
from suffice.pipeline.math.distributions.machine_code import compiled, reordered, vectorised, written
from suffice.pipeline.math.distributions.vector_functions import exp, log, log1p
from suffice.pipeline.math.engines.one_sum.block_kernel import (
    DEPTH,
    LEFT,
    POLE,
    RIGHT,
    SIZE,
    cut_blocks,
    in_logarithms,
    log_joint,
    near_blocks,
)
from suffice.pipeline.math.engines.one_sum.block_pieces import (
    FEW,
    FEWEST,
    GAMMA_LINE,
    HAS_PIECES,
    KEYS,
    LEVELS,
    LIGHT,
    LOG_OF_TOTAL,
    NATS,
    PARTS,
    merge_pairs,
    set_pieces,
)
from suffice.pipeline.math.engines.one_sum.sum_weights import (
    COUNT,
    KINKS,
    NONE,
    SHAPE,
    SHARE,
    STEP,
    noise_of_none,
    set_breaks,
    set_rows,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_BLOCKS, MOST_NODES, MOST_ROWS, MOST_MERGED = 15_000, 130_000, 4_000, 4_000
"""Of a cell, beyond which it is left to arrays."""
LOG_WEIGHT, RATE = range(2)
"""Of a prior's components: log of w_j (b_j / b_0)^a, and b_j."""
MEAN, SD, LOG_EVIDENCE, MOST, CENTRE, LATE, BOUNDED_FIRST, BOUNDED_SECOND = range(8)
"""Of a cell's answers: as in ``NearMoments``."""
_LATE = 400.0
"""As in ``spread_sums``."""
_ROUNDS, _HIGHEST, _CHUNK, _LONGEST, _OF_ROUGH = 200, 600.0, 512, 5.0, adaptive_blocks.OF_ROUGH
"""As in ``block_kernel``."""


@vectorised
def _values_of(
    model: Floats, rates: Floats, table: Floats, has_none: bool, is_first: bool, count: int, row: Integers,
    blocks: Floats, place_rows: Integers, work: Floats, value: Floats,
) -> None:  # fmt: skip
    """Put log weights at both ends of blocks, the middles and the quarters between into ``value``.

    Those of halves at their ends and middles are known from what was halved.
    """
    left, right, number, position = blocks[0], blocks[1], 0, work[0]
    for q in range(5):
        if q % 2 == 1 or is_first:
            for b in range(count):
                position[number + b] = left[b] + (right[b] - left[b]) * (0.25 * q)
                place_rows[number + b] = row[b]
            number += count
    log_joint(model, rates, table, number, place_rows, work, has_none)
    if is_first:
        for i in range(number):
            value[i] = work[3, i]
        return
    for b in range(count):
        value[b], value[2 * count + b], value[4 * count + b] = blocks[7, b], blocks[8, b], blocks[9, b]
        value[count + b], value[3 * count + b] = work[3, b], work[3, count + b]


@vectorised
def _divided(
    fineness: Floats, sizes: Floats, count: int, turn: int, rows: Integers, blocks: Floats, value: Floats,
    kept_rows: Integers, kept: Floats, state: Floats,
) -> int:  # fmt: skip
    """Judge blocks, keep those that fit, and halve others; how many are next, -1 if too many.

    As ``block_kernel`` does; the two lists of ``blocks`` also have three values of each block.
    """
    of_these, of_next = blocks[turn], blocks[1 - turn]
    row, following_row, left, right = rows[turn], rows[1 - turn], of_these[0], of_these[1]
    least, bound, size, limit, pole = of_these[2], of_these[3], of_these[4], of_these[5], of_these[6]
    for b in range(count):
        limit[b] = _LONGEST
    judge(count, value, left, right, _OF_ROUGH, least, bound, size)
    poles(count, left, right, limit, pole)
    top, refined, following = state[0], int(state[2]), 0
    for b in range(count):
        top = max(top, least[b])
    for b in range(count):
        depth, length = top - bound[b], right[b] - left[b]
        if not depth <= fineness[NATS]:
            continue
        middle = 0.5 * (left[b] + right[b])
        fine = middle <= left[b] or middle >= right[b]
        if not fine and length <= _LONGEST:
            fine = is_enough(sizes, fineness[LOG_OF_TOTAL], 3, POINTS, size[b], depth, length, pole[b], False)
        if fine:
            if refined >= kept.shape[1]:
                return -1
            kept_rows[refined] = row[b]
            kept[LEFT, refined], kept[RIGHT, refined], kept[SIZE, refined] = left[b], right[b], size[b]
            kept[DEPTH, refined], kept[POLE, refined] = bound[b], pole[b]
            refined += 1
            continue
        if following + 2 > blocks.shape[2]:
            return -1
        for half in range(2):
            at, begin = following + half, 2 * half * count + b
            following_row[at] = row[b]
            of_next[0, at], of_next[1, at] = (left[b], middle) if half == 0 else (middle, right[b])
            of_next[7, at], of_next[8, at] = value[begin], value[begin + count]
            of_next[9, at] = value[begin + 2 * count]
        following += 2
    state[0], state[2] = top, refined
    return following


@vectorised
def _set_given(
    components: Floats, concentration: float, shape: float, is_inverse: bool, count: int, n: Floats,
    part: Floats, scratch: Floats, shares: Floats, mean: Floats, variance: Floats,
) -> None:  # fmt: skip
    """Shares of components given pairs of N and w S, and mean and variance of the parameter."""
    first, last = components[RATE, 0], components[RATE, components.shape[1] - 1]
    per_first, most = 1.0 / first, scratch[0]
    for i in range(count):
        # No term is above that of the rate under which the sum is likeliest, but for its weight.
        rows = max(shape * n[i], 1e-9)
        nearest = min(max(part[i] * concentration / rows, first), last)
        power = concentration + shape * n[i]
        most[i] = concentration * log(nearest * per_first) - power * log1p(
            (nearest - first) / (first + part[i])
        )
    whole = scratch[1]
    for i in range(count):
        whole[i], mean[i], variance[i] = 0.0, 0.0, 0.0
    for j in range(components.shape[1]):
        share, log_weight, more = shares[j], components[LOG_WEIGHT, j], components[RATE, j] - first
        for i in range(count):
            # (b_j + w S) / (b_0 + w S), less 1: more than 0, as rates ascend.
            beyond = more / (first + part[i])
            term = exp(log_weight - (concentration + shape * n[i]) * log1p(beyond) - most[i])
            ratio = 1.0 + beyond if is_inverse else 1.0 / (1.0 + beyond)
            share[i] = term
            whole[i] += term
            mean[i] += term * ratio
            variance[i] += term * ratio * ratio
    for i in range(count):
        by_whole, power = 1.0 / whole[i], concentration + shape * n[i]
        of_first = (first + part[i]) / (power - 1.0) if is_inverse else power / (first + part[i])
        # The variance over the mean's square is the same of all components.
        relative = 1.0 / (power - 2.0) if is_inverse else 1.0 / power
        away, square = mean[i] * by_whole, variance[i] * by_whole
        mean[i] = away * of_first
        variance[i] = (max(square - away * away, 0.0) + square * relative) * of_first * of_first
        whole[i] = by_whole
    for j in range(components.shape[1]):
        share = shares[j]
        for i in range(count):
            share[i] *= whole[i]


@vectorised
def _weigh(
    model: Floats, rates: Floats, table: Floats, count: int, place_rows: Integers, work: Floats, top: float,
    has_none: bool, components: Floats, concentration: float, is_inverse: bool, is_far: bool,
    has_pieces: bool, light: float, number: int, starts: Integers, lefts: Floats, pieces: Floats,
    given: Floats, nodes: Floats, state: Floats, pairs: Floats,
) -> bool:  # fmt: skip
    """Weigh so many nodes, whose weight, mean, variance and N ``nodes`` gets; False if not to be had.

    ``state`` has how many nodes and pairs there are, and the evidence.
    """
    amount, density, part, weight = work[1], work[3], work[4], work[5]
    known, heavy = int(state[0]), int(state[1])
    log_joint(model, rates, table, count, place_rows, work, has_none)
    highest = -math.inf
    for i in range(count):
        density[i] -= top
        highest = max(highest, density[i])
    if not highest < _HIGHEST or known + count > nodes.shape[1]:
        return False
    for i in range(count):
        pieces[0, i] = weight[i]
        weight[i] *= exp(density[i])
    if has_pieces:
        set_pieces(False, count, number, starts, lefts, work, pieces)
    else:
        for i in range(count):
            pieces[1, i], pieces[2, i], pieces[3, i] = weight[i], work[0, i], 0.0
    step, share_of_total = model[STEP], model[SHARE]
    for i in range(count):
        nodes[0, known + i], nodes[3, known + i] = weight[i], table[COUNT, place_rows[i]]
        part[i] = share_of_total * step * amount[i]
    if has_none:
        for i in range(count):
            if nodes[3, known + i] < 1.0:
                part[i] = 0.0
    for i in range(count):
        state[2] += weight[i]
    n = nodes[3, known:]
    _set_given(
        components, concentration, model[SHAPE], is_inverse, count, n, part, given[:2], given[2:],
        nodes[1, known:], nodes[2, known:],
    )  # fmt: skip
    state[0] = known + count
    if is_far:
        return True
    # The evidence grows: what is too light here is so in the end.
    mass, place, spread_of, least = pieces[1], pieces[2], pieces[3], light * state[2]
    for i in range(count):
        place[i] = step * exp(place[i])
    if has_none:
        for i in range(count):
            if n[i] < 1.0:
                place[i] = 0.0
    for j in range(components.shape[1]):
        share, shift = given[2 + j], (components[RATE, j] - components[RATE, 0]) / share_of_total
        for i in range(count):
            w = mass[i] * share[i]
            if w > least:
                if heavy >= pairs.shape[1]:
                    return False
                pairs[0, heavy], pairs[1, heavy], pairs[2, heavy] = n[i], place[i] + shift, w
                pairs[3, heavy] = spread_of[i] * place[i] * place[i]
                heavy += 1
    state[1] = heavy
    return True


@reordered
def _moments(count: int, nodes: Floats, evidence: float, answers: Floats) -> None:
    """Mean and standard deviation, and what (4) of ``spread_sums`` has of near pairs."""
    weight, mean, variance = nodes[0], nodes[1], nodes[2]
    centre = 0.0
    for i in range(count):
        centre += weight[i] * mean[i]
    centre /= evidence
    square = 0.0
    for i in range(count):
        square += weight[i] * (variance[i] + (mean[i] - centre) * (mean[i] - centre))
    square /= evidence
    late = _LATE * square
    first, second = 0.0, 0.0
    for i in range(count):
        away = mean[i] - centre
        of_pair = variance[i] + away * away
        kept = weight[i] * late / (late + of_pair)
        first += kept * away
        second += kept * of_pair
    answers[MEAN], answers[SD], answers[CENTRE], answers[LATE] = centre, math.sqrt(square), centre, late
    answers[BOUNDED_FIRST], answers[BOUNDED_SECOND] = first / evidence, second / evidence


@reordered
def _far_moments(count: int, nodes: Floats, per_evidence: float, answers: Floats) -> None:
    """The second sums of (4), given c, v and by what weights are multiplied."""
    weight, mean, variance = nodes[0], nodes[1], nodes[2]
    centre, late, first, second = answers[CENTRE], answers[LATE], 0.0, 0.0
    for i in range(count):
        away = mean[i] - centre
        of_pair = variance[i] + away * away
        w = weight[i] * of_pair / ((late + of_pair) * (variance[i] + mean[i] * mean[i]))
        first += w * away
        second += w * of_pair
    answers[BOUNDED_FIRST], answers[BOUNDED_SECOND] = first * per_evidence, second * per_evidence


def _resolve(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, ends: Integers, n: Floats, added: Floats,
    components: Floats, concentration: float, is_inverse: bool, is_far: bool, fineness: Floats,
    update: Floats, sizes: Floats, integrals: Floats, answers: Floats, counts: Integers, merged: Floats,
) -> None:  # fmt: skip
    """Resolve every cell, whose rows of N are between its ends; counts are -1 of cells left to arrays.

    ``merged`` gets N, S, weight and scatter. Of far pairs there are no merged ones: answers have c, v and the
    logarithm of what multiplies weights, and get the second sums of (4).
    """
    table, work = np.empty((KINKS + len(rates), MOST_ROWS)), np.empty((6, MOST_NODES))
    rows, blocks = np.empty((2, MOST_BLOCKS), np.int64), np.empty((2, 10, MOST_BLOCKS))
    place_rows, kept_rows = np.empty(MOST_NODES, np.int64), np.empty(MOST_BLOCKS, np.int64)
    kept, parts, masses = np.empty((5, MOST_BLOCKS)), np.empty(MOST_BLOCKS), np.empty(MOST_ROWS)
    slots, of_merged, breaks = np.zeros(KEYS * LEVELS, np.int64), np.empty((MOST_MERGED, 5)), np.empty(64)
    tops, state, value = np.zeros(3), np.zeros(3), np.empty(5 * MOST_BLOCKS)
    nodes, pairs = np.empty((4, MOST_NODES)), np.empty((4, MOST_NODES))
    starts, lefts = np.empty(_CHUNK + 2, np.int64), np.empty(_CHUNK + 1)
    pieces, given = (
        np.empty((5, _CHUNK + 2 * POINTS)),
        np.empty((2 + components.shape[1], _CHUNK + 2 * POINTS)),
    )
    position, weight, light, has_pieces = work[0], work[5], fineness[LIGHT], fineness[HAS_PIECES] > 0.0
    for cell in range(len(values)):
        counts[cell] = -1
        first_row, n_rows, count = ends[cell], ends[cell + 1] - ends[cell], 0
        if n_rows > MOST_ROWS or n_rows < 1:
            continue
        has_none, none = False, noise_of_none(values[cell], rates)
        set_rows(model, values[cell], reaches, n_rows, n[first_row:], added[first_row:], table)
        for r in range(n_rows):
            if n[first_row + r] < 1.0:
                has_none = True
                table[NONE, r] = none + added[first_row + r]
                # A block by itself.
                breaks[0], breaks[1], number = 1.0, math.e, 2
            else:
                number = set_breaks(model, rates, table, r, breaks)
            if count + number > MOST_BLOCKS:
                count = MOST_BLOCKS + 1
                break
            for j in range(number - 1):
                if breaks[j] < breaks[j + 1]:
                    rows[0, count], blocks[0, 0, count], blocks[0, 1, count] = r, breaks[j], breaks[j + 1]
                    count += 1
        if count > MOST_BLOCKS:
            continue
        count = in_logarithms(count, rows[0], blocks[0])
        turn, tops[0], tops[2] = 0, -math.inf, 0.0
        for turns in range(_ROUNDS):
            if count <= 0 or count > MOST_BLOCKS:
                break
            _values_of(
                model, rates, table, has_none, turns == 0, count, rows[turn], blocks[turn], place_rows, work,
                value,
            )  # fmt: skip
            count = _divided(
                fineness, sizes, count, turn, rows, blocks, value, kept_rows, kept, tops
            )  # fmt: skip
            turn = 1 - turn
        number = near_blocks(fineness[NATS], 0.0, kept_rows, kept, tops) if count == 0 else -1
        if number < 1:
            continue
        top = tops[0]
        cut_blocks(
            model, rates, table, number, has_none, top, kept_rows, kept, place_rows, work, parts, masses,
            n_rows,
        )  # fmt: skip
        state[0], state[1], state[2] = 0.0, 0.0, 0.0
        count, number_of_pieces, is_known = 0, 0, True
        for b in range(number):
            left, length, parts_of = kept[LEFT, b], kept[RIGHT, b] - kept[LEFT, b], parts[b] * fineness[PARTS]
            bits = sparse_rules(
                sizes, fineness[LOG_OF_TOTAL], fineness[FEW], fineness[FEWEST], kept[SIZE, b], kept[DEPTH, b],
                kept[POLE, b],
            )  # fmt: skip
            rule = rule_of(bits, length, False)
            points, half = points_of(rule), 0.5 * length / parts_of
            for piece in range(int(parts_of)):
                if count + POINTS > _CHUNK:
                    starts[number_of_pieces] = count
                    is_known = is_known and _weigh(
                        model, rates, table, count, place_rows, work, top, has_none, components,
                        concentration, is_inverse, is_far, has_pieces, light, number_of_pieces, starts, lefts,
                        pieces, given, nodes, state, pairs,
                    )  # fmt: skip
                    count, number_of_pieces = 0, 0
                begin = left + 2.0 * half * piece
                starts[number_of_pieces], lefts[number_of_pieces] = count, begin
                number_of_pieces += 1
                for i in range(points):
                    position[count] = begin + half + half * integrals[0, rule, i]
                    weight[count], place_rows[count] = half * integrals[1, rule, i], kept_rows[b]
                    count += 1
        starts[number_of_pieces] = count
        is_known = is_known and _weigh(
            model, rates, table, count, place_rows, work, top, has_none, components, concentration,
            is_inverse, is_far, has_pieces, light, number_of_pieces, starts, lefts, pieces, given, nodes,
            state, pairs,
        )  # fmt: skip
        evidence, of_cell, count = state[2], answers[cell], int(state[0])
        if not is_known or not 0.0 < evidence < math.inf:
            continue
        if is_far:
            _far_moments(count, nodes, math.exp(min(top + of_cell[LOG_EVIDENCE], 700.0)), of_cell)
            counts[cell] = 0
            continue
        _moments(count, nodes, evidence, of_cell)
        of_cell[LOG_EVIDENCE], of_cell[MOST] = top + math.log(evidence), 0.0
        for i in range(count):
            if nodes[0, i] > 0.0:
                of_cell[MOST] = max(of_cell[MOST], nodes[3, i])
        by_evidence, count = 1.0 / evidence, 0
        for i in range(int(state[1])):
            w = pairs[2, i] * by_evidence
            if w > light:
                of_n, of_sum = pairs[0, i], pairs[1, i]
                first = update[0] + update[1] * of_n + update[2] * of_sum
                second = update[3] + update[4] * of_n + update[5] * of_sum
                # The variance that S has, as one of the logarithm of the parameter.
                of_total = update[2] / first - update[5] / second
                pairs[0, count], pairs[1, count], pairs[2, count] = of_n, of_sum, w
                pairs[3, count] = pairs[3, i] * of_total * of_total
                count += 1
        counts[cell] = merge_pairs(
            fineness, GAMMA_LINE, update, count, pairs, work, (cell + 1) * MOST_MERGED, place_rows, slots,
            of_merged, merged[cell],
        )  # fmt: skip


resolve = compiled(
    _resolve,
    written(1), written(2), written(1), written(1), written(1, types.int64), written(1), written(1),
    written(2), types.float64, types.boolean, types.boolean, written(1), written(1), written(3), written(3),
    written(2), written(1, types.int64), written(3),
)  # fmt: skip
