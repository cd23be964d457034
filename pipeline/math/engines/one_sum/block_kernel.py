r"""Compiled blocks of latent pairs (N, S), cell by cell: what ``nodes`` does, number by number.

Model, question, blocks, rules and merging are those of ``nodes``, ``adaptive_blocks``, ``few_numbers`` and
``merged``, whose answers these loops give but for rounding where they are as fine.

Machine code is kept beside this module while it stays as it is: whoever changes ``sum_weights``,
``block_rules``, ``block_pieces`` or ``vector_functions`` alone removes ``__pycache__``.
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
    middle_of,
    poles,
    put_nodes,
    rule_of,
    sparse_rules,
)
from suffice.pipeline.math.distributions.machine_code import compiled, reordered, vectorised, written
from suffice.pipeline.math.distributions.vector_functions import exp, log
from suffice.pipeline.math.engines.one_sum.block_pieces import (
    BETA_LINE,
    FEW,
    FEWEST,
    HAS_PIECES,
    KEYS,
    LEVELS,
    LIGHT,
    LOG_OF_N,
    LOG_OF_TOTAL,
    NATS,
    PARTS,
    merge_heavy,
    set_answers,
    set_pieces,
)
from suffice.pipeline.math.engines.one_sum.sum_weights import (
    COUNT,
    FAMILY,
    GAMMA,
    KINKS,
    LEAST_AMOUNT,
    LOWER,
    NONE,
    ROWS,
    STEP,
    add_density,
    log_noise,
    noise_at,
    noise_of_none,
    profiles,
    set_breaks,
    set_rows,
    spread,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_BLOCKS, MOST_NODES, MOST_ROWS, MOST_MERGED, MOST_OF_N = 15_000, 130_000, 4_000, 2500, 500
"""Of a cell, beyond which it is left to arrays."""
LEFT, RIGHT, SIZE, DEPTH, POLE = range(5)
"""Of a block."""
_ROUNDS = 200
_OF_ROUGH, _OF_ROUGH_OF_N = adaptive_blocks.OF_ROUGH, adaptive_blocks.OF_ROUGH_IF_APPROXIMATE
_MARGIN = adaptive_blocks.MARGIN
_PARTS, _WIDE = 16.0, 8.0
"""As in ``few_numbers``."""
_HIGHEST = 600.0
"""As in ``nodes``."""
_AT_A_TIME, _CHUNK = 500, 512
"""N at which profiles are worked out, and nodes that are weighed, at a time: they stay in a near cache."""
_PLACES, _OF_MODES = 30_000, 5_200
"""Room for positions. Powers of 2 would let all columns of a table compete for the same lines of a cache."""


@vectorised
def _sorted_out(
    of_n: bool, is_sum: bool, at_integers: bool, fineness: Floats, sizes: Floats, count: int, turn: int,
    rows: Integers, blocks: Floats, value: Floats, kept_rows: Integers, kept: Floats, state: Floats,
) -> int:  # fmt: skip
    """Judge blocks, keep those that fit, and halve others; how many are next, -1 if too many.

    ``rows`` and ``blocks`` have two lists, which take turns; ``state`` has the top and how many are kept.
    """
    row, left, right = rows[turn], blocks[turn, 0], blocks[turn, 1]
    least, bound, size = blocks[turn, 2], blocks[turn, 3], blocks[turn, 4]
    limit, pole = blocks[turn, 5], blocks[turn, 6]
    for b in range(count):
        if of_n:
            limit[b] = 9.0 * max(left[b], 1.0)
        else:
            limit[b] = 9.0 * left[b] + 12.0 if is_sum else 5.0
    judge(count, value, left, right, _OF_ROUGH_OF_N if of_n else _OF_ROUGH, least, bound, size)
    poles(count, left, right, limit, pole)
    top, refined, margin = state[0], int(state[2]), _MARGIN if of_n else 0.0
    nats, log_tolerance = fineness[NATS], fineness[LOG_OF_N] if of_n else fineness[LOG_OF_TOTAL]
    # What a group has at least: the highest such bound so far.
    for b in range(count):
        top = max(top, least[b])
    following, other = 0, 1 - turn
    for b in range(count):
        depth = top - bound[b]
        if not depth <= nats:
            continue
        length = right[b] - left[b]
        if at_integers and length < 2 * POINTS:
            size[b] = math.inf
        middle = middle_of(left[b], right[b], limit[b], is_sum)
        fine = middle <= left[b] or middle >= right[b] or (is_sum and length <= POINTS)
        if not fine and length <= limit[b]:
            fine = is_enough(
                sizes, log_tolerance, 3, POINTS, size[b], depth - margin, length, pole[b], at_integers
            )
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
        rows[other, following], rows[other, following + 1] = row[b], row[b]
        blocks[other, 0, following], blocks[other, 1, following] = left[b], middle
        blocks[other, 0, following + 1], blocks[other, 1, following + 1] = middle, right[b]
        following += 2
    state[0], state[2] = top, refined
    return following


@vectorised
def near_blocks(nats: float, margin: float, kept_rows: Integers, kept: Floats, state: Floats) -> int:
    """Leave out blocks that are far below what is known by now; how many are left."""
    number = 0
    for b in range(int(state[2])):
        depth = state[0] - kept[DEPTH, b]
        if depth <= nats:
            kept_rows[number] = kept_rows[b]
            for column in range(5):
                kept[column, number] = kept[column, b]
            kept[DEPTH, number] = depth - margin
            number += 1
    return number


@vectorised
def log_joint(
    model: Floats, rates: Floats, table: Floats, count: int, row: Integers, work: Floats, has_none: bool
) -> None:
    """Put log weights at positions where densities are."""
    density = work[3]
    log_noise(model, rates, table, count, row, work[0], work[1], density)
    add_density(model, table, count, row, work[0], work[1], work[2], density)
    if has_none:
        for i in range(count):
            if table[ROWS, row[i]] > table[COUNT, row[i]]:
                density[i] = table[NONE, row[i]]


@vectorised
def log_joint_at(
    model: Floats, rates: Floats, table: Floats, count: int, row: Integers, work: Floats
) -> None:
    """Put log weights at amounts where densities are; positions are read of positive sums only."""
    noise_at(rates, table, count, row, work[1], work[3])
    add_density(model, table, count, row, work[0], work[1], work[2], work[3])


@vectorised
def _places(count: int, left: Floats, right: Floats, short: float, position: Floats) -> None:
    """Put the ends of blocks, the middles and the quarters between, those of all blocks beside each other."""
    for q in range(5):
        for b in range(count):
            position[q * count + b] = left[b] + (right[b] - short - left[b]) * (0.25 * q)


def _blocks_of_n(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, edges: Floats,
    fineness: Floats, sizes: Floats, counts: Integers, out: Floats,
) -> None:  # fmt: skip
    """Blocks of N of every cell, as ``nodes.blocks_of_n``: left, right, size, depth, pole; -1 if too many."""
    table, work = np.empty((KINKS + len(rates), _AT_A_TIME)), np.empty((12, _PLACES))
    rows, blocks = np.zeros((2, MOST_ROWS), np.int64), np.empty((2, 7, MOST_ROWS))
    place_rows, kept_rows = np.empty(_PLACES, np.int64), np.empty(MOST_OF_N, np.int64)
    more_rows, more_work = np.empty(_OF_MODES, np.int64), np.empty((8, _OF_MODES))
    state, at_integers = np.zeros(3), model[FAMILY] != GAMMA
    n, value = work[10], work[11]
    for cell in range(len(values)):
        count, turn = 0, 0
        for j in range(edges.shape[1] - 1):
            if edges[cell, j] < edges[cell, j + 1]:
                blocks[0, 0, count], blocks[0, 1, count] = edges[cell, j], edges[cell, j + 1]
                count += 1
        state[0], state[2] = -math.inf, 0.0
        for _ in range(_ROUNDS):
            if count <= 0 or 5 * count > work.shape[1]:
                break
            _places(count, blocks[turn, 0], blocks[turn, 1], 1.0, n)
            for first in range(0, 5 * count, _AT_A_TIME):
                number = min(_AT_A_TIME, 5 * count - first)
                profiles(
                    model, values[cell], reaches, rates, n_prior, number, n[first:], table, place_rows, work,
                    more_rows, more_work, value[first:],
                )  # fmt: skip
            count = _sorted_out(
                True, True, at_integers, fineness, sizes, count, turn, rows, blocks, value, kept_rows,
                out[cell], state,
            )  # fmt: skip
            turn = 1 - turn
        counts[cell] = near_blocks(fineness[NATS], _MARGIN, kept_rows, out[cell], state) if count == 0 else -1


@vectorised
def cut_blocks(
    model: Floats, rates: Floats, table: Floats, number: int, has_none: bool, top: float, row: Integers,
    kept: Floats, place_rows: Integers, work: Floats, parts: Floats, masses: Floats, n_rows: int,
) -> None:  # fmt: skip
    """Into how many parts blocks are cut, as ``few_numbers.parts_of``."""
    is_sum, is_long = model[FAMILY] != GAMMA, False
    for b in range(number):
        wide = _WIDE * spread(model, table[ROWS, row[b]], kept[LEFT, b])
        parts[b] = max(math.ceil((kept[RIGHT, b] - kept[LEFT, b]) / wide), 1.0)
        is_long |= parts[b] > 1.0
    if not is_long:
        return
    for b in range(number):
        last = kept[RIGHT, b] - 1.0 if is_sum else kept[RIGHT, b]
        work[0, b], place_rows[b] = 0.5 * (kept[LEFT, b] + last), row[b]
    log_joint(model, rates, table, number, place_rows, work, has_none)
    for r in range(n_rows):
        masses[r] = 0.0
    for b in range(number):
        work[3, b] = exp(work[3, b] - top) * (kept[RIGHT, b] - kept[LEFT, b])
    for b in range(number):
        masses[row[b]] += work[3, b]
    whole, squares = 0.0, 0.0
    for r in range(n_rows):
        whole += masses[r]
        squares += masses[r] * masses[r]
    n_likely = whole * whole / squares
    if math.isnan(n_likely):
        n_likely = 1.0
    most = max(math.floor(_PARTS / n_likely), 1.0)
    for b in range(number):
        parts[b] = min(parts[b], most)


@vectorised
def given_pairs(
    line: int, update: Floats, count: int, n: Floats, total: Floats, mean: Floats, variance: Floats
) -> None:
    """Mean and variance of the parameter given pairs."""
    for i in range(count):
        first = update[0] + update[1] * n[i] + update[2] * total[i]
        second = update[3] + update[4] * n[i] + update[5] * total[i]
        if line == BETA_LINE:
            mean[i] = first / (first + second)
            variance[i] = mean[i] * (1.0 - mean[i]) / (first + second + 1.0)
        else:
            mean[i] = first / second
            variance[i] = mean[i] / second


@reordered
def add_up(
    count: int, weight: Floats, mean: Floats, variance: Floats, centre: float, moments: Floats
) -> None:
    """Add weights and what they have of the moments about a centre."""
    whole, first, second = 0.0, 0.0, 0.0
    for i in range(count):
        away = weight[i] * (mean[i] - centre)
        whole += weight[i]
        first += away
        second += away * (mean[i] - centre) + weight[i] * variance[i]
    moments[0] += whole
    moments[1] += first
    moments[2] += second


@vectorised
def _weigh(
    model: Floats, rates: Floats, table: Floats, count: int, place_rows: Integers, work: Floats, top: float,
    has_none: bool, line: int, update: Floats, moments: Floats, has_pieces: bool, light: float, number: int,
    starts: Integers, lefts: Floats, pieces: Floats, heavy: int, pairs: Floats,
) -> int:  # fmt: skip
    """Weigh so many nodes and add up moments; how many heavy pairs there are then, -1 if not to be had."""
    position, amount, n, density, total, weight = work[0], work[1], work[2], work[3], work[4], work[5]
    log_joint(model, rates, table, count, place_rows, work, has_none)
    highest = -math.inf
    for i in range(count):
        density[i] -= top
        highest = max(highest, density[i])
    # Where there is next to no noise blocks may be judged beside what is far below; that is left to arrays.
    if not highest < _HIGHEST or heavy + count > pairs.shape[1]:
        return -1
    for i in range(count):
        pieces[0, i] = weight[i]
        weight[i] *= exp(density[i])
    mass, place, spread_of = pieces[1], pieces[2], pieces[3]
    if has_pieces:
        set_pieces(model[FAMILY] != GAMMA, count, number, starts, lefts, work, pieces)
    else:
        for i in range(count):
            mass[i], place[i], spread_of[i] = weight[i], position[i], 0.0
    for i in range(count):
        n[i] = table[COUNT, place_rows[i]]
    if model[FAMILY] == GAMMA:
        lower, step = model[LOWER], model[STEP]
        for i in range(count):
            total[i] = lower * n[i] + step * amount[i]
    else:
        for i in range(count):
            total[i] = amount[i]
    if has_none:
        for i in range(count):
            if n[i] < 1.0:
                total[i] = model[LOWER] * n[i]
    if model[FAMILY] == GAMMA:
        lower, step = model[LOWER], model[STEP]
        for i in range(count):
            steps = step * exp(place[i])
            place[i] = lower * n[i] + steps
            spread_of[i] *= steps * steps
    if has_none:
        for i in range(count):
            if n[i] < 1.0:
                place[i], spread_of[i] = model[LOWER] * n[i], 0.0
    mean, variance = density, position
    given_pairs(line, update, count, n, total, mean, variance)
    if math.isnan(moments[3]):
        moments[3] = mean[0]
    add_up(count, weight, mean, variance, moments[3], moments)
    least = light * moments[0]
    for i in range(count):
        if weight[i] > 0.0:
            moments[4] = max(moments[4], n[i])
        # Evidence grows: what is too light here is so in the end.
        if mass[i] > least:
            at = max(place[i], 0.0)
            pairs[0, heavy], pairs[1, heavy], pairs[2, heavy] = n[i], at, mass[i]
            first = update[0] + update[1] * n[i] + update[2] * at
            second = update[3] + update[4] * n[i] + update[5] * at
            of_total = update[2] / first - update[5] / second
            pairs[3, heavy] = spread_of[i] * of_total * of_total
            heavy += 1
    return heavy


def _resolve(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, ends: Integers, n: Floats,
    added: Floats, fineness: Floats, line: int, update: Floats, sizes: Floats, rules: Floats, series: Floats,
    integrals: Floats, answers: Floats, counts: Integers, merged: Floats,
) -> None:  # fmt: skip
    """Resolve every cell, whose rows of N are between its ends: mean, sd, log evidence, largest N.

    ``merged`` gets N, S, weight and scatter; counts are -1 of cells that are left to arrays.
    """
    table, work = np.empty((KINKS + len(rates), MOST_ROWS)), np.empty((6, MOST_NODES))
    rows, blocks = np.empty((2, MOST_BLOCKS), np.int64), np.empty((2, 7, MOST_BLOCKS))
    place_rows, kept_rows = np.empty(MOST_NODES, np.int64), np.empty(MOST_BLOCKS, np.int64)
    kept, parts, masses = np.empty((5, MOST_BLOCKS)), np.empty(MOST_BLOCKS), np.empty(MOST_ROWS)
    slots, of_merged, breaks = np.zeros(KEYS * LEVELS, np.int64), np.empty((MOST_MERGED, 5)), np.empty(64)
    state, moments, pairs = np.zeros(3), np.zeros(5), np.empty((4, MOST_NODES))
    starts, lefts = np.empty(_CHUNK + 2, np.int64), np.empty(_CHUNK + 1)
    pieces = np.empty((5, _CHUNK + 2 * POINTS))
    position, weight = work[0], work[5]
    is_sum, has_pieces, light = model[FAMILY] != GAMMA, fineness[HAS_PIECES] > 0.0, fineness[LIGHT]
    for cell in range(len(values)):
        counts[cell] = -1
        first_row, n_rows, count = ends[cell], ends[cell + 1] - ends[cell], 0
        if n_rows > MOST_ROWS or n_rows < 1:
            continue
        has_none, none = False, noise_of_none(values[cell], rates)
        set_rows(model, values[cell], reaches, n_rows, n[first_row:], added[first_row:], table)
        too_many = False
        for r in range(n_rows):
            if n[first_row + r] < 1.0:
                has_none = True
                table[NONE, r] = none + added[first_row + r]
                # A block by itself.
                breaks[0], breaks[1], number = 0.0 if is_sum else 1.0, 1.0 if is_sum else math.e, 2
            else:
                number = set_breaks(model, rates, table, r, breaks)
            if count + number > MOST_BLOCKS:
                too_many = True
                break
            for j in range(number - 1):
                if breaks[j] < breaks[j + 1]:
                    rows[0, count], blocks[0, 0, count], blocks[0, 1, count] = r, breaks[j], breaks[j + 1]
                    count += 1
        if too_many:
            continue
        if not is_sum:
            count = in_logarithms(count, rows[0], blocks[0])
        turn, state[0], state[2] = 0, -math.inf, 0.0
        for _ in range(_ROUNDS):
            if count <= 0 or 5 * count > MOST_NODES:
                break
            _places(count, blocks[turn, 0], blocks[turn, 1], 1.0 if is_sum else 0.0, position)
            for q in range(5):
                for block in range(count):
                    place_rows[q * count + block] = rows[turn, block]
            log_joint(model, rates, table, 5 * count, place_rows, work, has_none)
            count = _sorted_out(
                False,
                is_sum,
                False,
                fineness,
                sizes,
                count,
                turn,
                rows,
                blocks,
                work[3],
                kept_rows,
                kept,
                state,
            )
            turn = 1 - turn
        number = near_blocks(fineness[NATS], 0.0, kept_rows, kept, state) if count == 0 else -1
        if number < 1:
            continue
        top = state[0]
        cut_blocks(
            model, rates, table, number, has_none, top, kept_rows, kept, place_rows, work, parts, masses,
            n_rows,
        )  # fmt: skip
        moments[0], moments[1], moments[2], moments[3], moments[4] = 0.0, 0.0, 0.0, math.nan, 0.0
        count, heavy, number_of_pieces = 0, 0, 0
        for b in range(number):
            left, length = kept[LEFT, b], kept[RIGHT, b] - kept[LEFT, b]
            parts_of = parts[b] * fineness[PARTS]
            parts_of = min(parts_of, length) if is_sum else parts_of
            bits = sparse_rules(
                sizes, fineness[LOG_OF_TOTAL], fineness[FEW], fineness[FEWEST], kept[SIZE, b], kept[DEPTH, b],
                kept[POLE, b],
            )  # fmt: skip
            begin = left
            for piece in range(int(parts_of)):
                end = left + length * (piece + 1.0) / parts_of
                if is_sum:
                    end = math.floor(end)
                if count + POINTS > _CHUNK:
                    starts[number_of_pieces] = count
                    heavy = _weigh(
                        model, rates, table, count, place_rows, work, top, has_none, line, update, moments,
                        has_pieces, light, number_of_pieces, starts, lefts, pieces, heavy, pairs,
                    )  # fmt: skip
                    count, number_of_pieces = 0, 0
                    if heavy < 0:
                        break
                rule = rule_of(bits, end - begin, is_sum)
                points = put_nodes(
                    rules, series, integrals, rule, begin, end, is_sum, position, weight, count
                )
                for i in range(count, count + POINTS):
                    place_rows[i] = kept_rows[b]
                starts[number_of_pieces], lefts[number_of_pieces] = count, begin - 0.5 if is_sum else begin
                number_of_pieces += 1
                count += points
                begin = end
            if heavy < 0:
                break
        if heavy >= 0:
            starts[number_of_pieces] = count
            heavy = _weigh(
                model, rates, table, count, place_rows, work, top, has_none, line, update, moments,
                has_pieces, light, number_of_pieces, starts, lefts, pieces, heavy, pairs,
            )  # fmt: skip
        evidence = moments[0]
        if heavy < 0 or not 0.0 < evidence < math.inf:
            continue
        set_answers(top, moments, answers[cell])
        counts[cell] = merge_heavy(
            fineness, line, update, heavy, evidence, light, pairs, work, (cell + 1) * MOST_MERGED, place_rows,
            slots, of_merged, merged[cell],
        )  # fmt: skip


@vectorised
def in_logarithms(count: int, row: Integers, blocks: Floats) -> int:
    """Take logarithms of ends of blocks; how many have a length then."""
    left, right, kept = blocks[0], blocks[1], 0
    for i in range(count):
        left[i], right[i] = log(max(left[i], LEAST_AMOUNT)), log(max(right[i], LEAST_AMOUNT))
    for i in range(count):
        if left[i] < right[i]:
            row[kept], left[kept], right[kept] = row[i], left[i], right[i]
            kept += 1
    return kept


blocks_of_n = compiled(
    _blocks_of_n,
    written(1), written(2), written(1), written(1), written(1), written(2), written(1), written(3),
    written(1, types.int64), written(3),
)  # fmt: skip
resolve = compiled(
    _resolve,
    written(1), written(2), written(1), written(1), written(1, types.int64), written(1), written(1),
    written(1), types.int64, written(1), written(3), written(4), written(4), written(3), written(2),
    written(1, types.int64), written(3),
)  # fmt: skip
