r"""Compiled blocks of latent pairs (N, S), cell by cell: what ``nodes`` does, number by number.

Model, question, blocks, rules and merging are those of ``nodes``, ``adaptive_blocks``, ``few_numbers`` and
``merged``, whose answers these loops give but for rounding.

Machine code is kept beside this module while it stays as it is: whoever changes ``sum_weights``,
``block_rules`` or ``vector_functions`` alone removes ``__pycache__``.
"""

# ruff: noqa: C901, PLR0912, PLR0915, FBT001, FBT003 - compiled loops, which know no keywords

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
    pole_of,
    put_nodes,
    rule_of,
    sparse_rules,
)
from suffice.pipeline.math.distributions.machine_code import compiled, inner, written
from suffice.pipeline.math.distributions.vector_functions import exp, log
from suffice.pipeline.math.engines.one_sum.sum_weights import (
    COUNT,
    FAMILY,
    GAMMA,
    KINKS,
    LOWER,
    NONE,
    ROWS,
    STEP,
    log_weights,
    noise_of_none,
    profiles,
    set_breaks,
    set_row,
    spread,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_BLOCKS, MOST_NODES, MOST_ROWS, MOST_MERGED, MOST_OF_N = 1 << 14, 1 << 17, 1 << 12, 2500, 512
"""Of a cell, beyond which it is left to arrays."""
LEFT, RIGHT, SIZE, DEPTH, POLE = range(5)
"""Of a block."""
_ROUNDS = 200
_OF_ROUGH, _OF_ROUGH_OF_N = adaptive_blocks.OF_ROUGH, adaptive_blocks.OF_ROUGH_IF_APPROXIMATE
_MARGIN = adaptive_blocks.MARGIN
_PARTS, _WIDE = 16.0, 8.0
"""As in ``few_numbers``."""
_LEAST, _LOG_LEAST, _HIGHEST = 1e-290, math.log(1e-290) - 40.0, 600.0
"""As in ``nodes``."""
_NEGLIGIBLE, _PER_SPREAD, _PER_WIDTH, _PER_OCTAVE, _LEVELS, _POSITIONS = 5e-7, 24.0, 4.0, 3.0, 72, 2048.0
"""As in ``merged``."""
_KEYS = 2 * 2048 + 1
BETA_LINE, GAMMA_LINE, INVERSE_GAMMA_LINE = range(3)
"""Distributions of the parameter; of the last natural parameters are a concentration and a scale."""


@inner
def _divided(
    of_n: bool, model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, nats: float,
    sizes: Floats, table: Floats, count: int, rows: Integers, blocks: Floats, place_rows: Integers,
    work: Floats, kept_rows: Integers, kept: Floats, state: Floats,
) -> int:  # fmt: skip
    """Divide so many blocks until they fit; how many there are, -1 if too many. ``state`` gets the top.

    The blocks are of N, or else of S. ``rows`` and ``blocks`` have two lists, which take turns.
    """
    is_sum_over_s, has_none = model[FAMILY] != GAMMA, state[1] > 0.0
    is_sum, at_integers = of_n or is_sum_over_s, of_n and is_sum_over_s
    of_rough = _OF_ROUGH_OF_N if of_n else _OF_ROUGH
    margin = _MARGIN if of_n else 0.0
    position, density, noise = work[0], work[3], work[4]
    top, refined, turn = -math.inf, 0, 0
    # N at which profiles are worked out at a time: these take several positions each.
    most = 128
    for _ in range(_ROUNDS):
        if count == 0:
            break
        if 5 * count > work.shape[1] // 2:
            return -1
        row, left, right = rows[turn], blocks[turn, 0], blocks[turn, 1]
        least, bound, size = blocks[turn, 2], blocks[turn, 3], blocks[turn, 4]
        if of_n:
            for first in range(0, count, most):
                number = min(most, count - first)
                n, out = work[6, 5 * first :], work[7, 5 * first :]
                for b in range(number):
                    length = right[first + b] - 1.0 - left[first + b]
                    for q in range(5):
                        n[5 * b + q] = left[first + b] + length * (0.25 * q)
                profiles(
                    model, values, reaches, rates, n_prior, 5 * number, n, table, place_rows, work, out
                )
            value = work[7]
        else:
            for b in range(count):
                length = right[b] - left[b]
                if is_sum:
                    length -= 1.0
                for q in range(5):
                    position[5 * b + q] = left[b] + length * (0.25 * q)
                    place_rows[5 * b + q] = row[b]
            _log_joint(model, rates, table, 5 * count, place_rows, work, has_none)
            value = density
        for b in range(count):
            least[b], bound[b], size[b] = judge(value, 5 * b, right[b] - left[b], of_rough, at_integers)
            # What a group has at least: the highest such bound so far.
            top = max(top, least[b])
        following, other = 0, 1 - turn
        for b in range(count):
            depth = top - bound[b]
            if not depth <= nats:
                continue
            length = right[b] - left[b]
            limit = 5.0
            if of_n:
                limit = 9.0 * max(left[b], 1.0)
            elif is_sum:
                limit = 9.0 * left[b] + 12.0
            pole = pole_of(length, limit)
            middle = middle_of(left[b], right[b], limit, is_sum)
            fine = middle <= left[b] or middle >= right[b] or (is_sum and length <= POINTS)
            if not fine and length <= limit:
                fine = is_enough(sizes, 3, POINTS, size[b], depth - margin, length, pole, at_integers)
            if fine:
                if refined >= kept.shape[1]:
                    return -1
                kept_rows[refined] = row[b]
                kept[LEFT, refined], kept[RIGHT, refined], kept[SIZE, refined] = left[b], right[b], size[b]
                kept[DEPTH, refined], kept[POLE, refined] = bound[b], pole
                refined += 1
                continue
            if following + 2 > blocks.shape[2]:
                return -1
            rows[other, following], rows[other, following + 1] = row[b], row[b]
            blocks[other, 0, following], blocks[other, 1, following] = left[b], middle
            blocks[other, 0, following + 1], blocks[other, 1, following + 1] = middle, right[b]
            following += 2
        count, turn = following, other
    number = 0
    for b in range(refined):
        depth = top - kept[DEPTH, b]
        if depth <= nats:
            kept_rows[number] = kept_rows[b]
            for column in range(5):
                kept[column, number] = kept[column, b]
            kept[DEPTH, number] = depth - margin
            number += 1
    state[0] = top
    return number


@inner
def _log_joint(
    model: Floats, rates: Floats, table: Floats, count: int, row: Integers, work: Floats, has_none: bool
) -> None:
    """Put log weights at positions where densities are."""
    density, noise = work[3], work[4]
    log_weights(model, rates, table, count, row, work[0], work[1], work[2], density, noise)
    for i in range(count):
        density[i] += noise[i]
    if has_none:
        for i in range(count):
            if table[ROWS, row[i]] > table[COUNT, row[i]]:
                density[i] = table[NONE, row[i]]


def _blocks_of_n(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, edges: Floats,
    nats: float, sizes: Floats, counts: Integers, out: Floats,
) -> None:  # fmt: skip
    """Blocks of N of every cell, as ``nodes.blocks_of_n``: left, right, size, depth, pole; -1 if too many."""
    table, work = np.empty((KINKS + len(rates), 1024)), np.empty((8, 1 << 15))
    rows, blocks = np.zeros((2, 1 << 12), np.int64), np.empty((2, 5, 1 << 12))
    place_rows, kept_rows = np.empty(1 << 15, np.int64), np.empty(MOST_OF_N, np.int64)
    state = np.zeros(2)
    for cell in range(len(values)):
        count = 0
        for j in range(edges.shape[1] - 1):
            if edges[cell, j] < edges[cell, j + 1]:
                blocks[0, 0, count], blocks[0, 1, count] = edges[cell, j], edges[cell, j + 1]
                count += 1
        counts[cell] = _divided(
            True, model, values[cell], reaches, rates, n_prior, nats, sizes, table, count, rows, blocks,
            place_rows, work, kept_rows, out[cell], state,
        )  # fmt: skip


@inner
def _cut(
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
    _log_joint(model, rates, table, number, place_rows, work, has_none)
    for r in range(n_rows):
        masses[r] = 0.0
    for b in range(number):
        masses[row[b]] += math.exp(work[3, b] - top) * (kept[RIGHT, b] - kept[LEFT, b])
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


@inner
def _moments(
    line: int, count: int, first: Floats, second: Floats, weight: Floats, scratch: Floats, answer: Floats
) -> None:
    """Mean and standard deviation of a mixture with these natural parameters."""
    mean = 0.0
    for i in range(count):
        if line == BETA_LINE:
            scratch[i] = first[i] / (first[i] + second[i])
        elif line == GAMMA_LINE:
            scratch[i] = first[i] / second[i]
        else:
            scratch[i] = second[i] / (first[i] - 1.0) if first[i] > 1.0 else math.inf
    for i in range(count):
        mean += weight[i] * scratch[i]
    variance = 0.0
    for i in range(count):
        away = scratch[i] - mean
        if line == BETA_LINE:
            within = scratch[i] * (1.0 - scratch[i]) / (first[i] + second[i] + 1.0)
        elif line == GAMMA_LINE:
            within = scratch[i] / second[i]
        else:
            within = scratch[i] * scratch[i] / (first[i] - 2.0) if first[i] > 2.0 else math.inf
        variance += weight[i] * (within + away * away)
    answer[0] = mean
    answer[1] = math.sqrt(variance) if not math.isnan(variance) else math.inf


@inner
def _merged(
    line: int, count: int, n: Floats, total: Floats, weight: Floats, centre: Floats, width: Floats,
    turn: int, keys: Integers, slots: Integers, sums: Floats, merged: Floats,
) -> int:  # fmt: skip
    """Merge pairs as ``Components.of``; how many are left, or -1. All that are given have a weight."""
    middle, square, narrowest, whole = 0.0, 0.0, math.inf, 0.0
    for i in range(count):
        middle += weight[i] * centre[i]
        narrowest = min(narrowest, width[i])
        whole += weight[i]
    for i in range(count):
        centre[i] -= middle
    for i in range(count):
        square += weight[i] * centre[i] * centre[i]
    unit = max(math.sqrt(square) / _PER_SPREAD, narrowest / _PER_WIDTH)
    per_unit, per_least = 1.0 / unit, 1.0 / (_PER_WIDTH * unit)
    per_log2 = _PER_OCTAVE / math.log(2.0)
    for i in range(count):
        level = math.floor(min(per_log2 * log(max(width[i] * per_least, 1.0)), _LEVELS - 1.0))
        point = centre[i] * per_unit * exp(-level * math.log(2.0) / _PER_OCTAVE)
        point /= 1.0 + abs(point) / _POSITIONS
        keys[i] = int(level) * _KEYS + int(np.rint(point)) + 2048
    number = 0
    for i in range(count):
        # What was put there for another cell counts for nothing.
        at = slots[keys[i]] - turn
        if at < 0:
            if number >= merged.shape[0]:
                return -1
            at = number
            slots[keys[i]] = turn + at
            for column in range(5):
                sums[at, column] = 0.0
            number += 1
        w, away = weight[i], centre[i]
        sums[at, 0] += w
        sums[at, 1] += w * n[i]
        sums[at, 2] += w * total[i]
        sums[at, 3] += w * away
        sums[at, 4] += w * away * away
    for at in range(number):
        w = sums[at, 0]
        shift = sums[at, 3] / w
        merged[at, 0], merged[at, 1], merged[at, 2] = sums[at, 1] / w, sums[at, 2] / w, w / whole
        merged[at, 3] = max(sums[at, 4] / w - shift * shift, 0.0)
    return number


@inner
def _nodes(
    model: Floats, sums: Floats, integrals: Floats, sizes: Floats, number: int, row: Integers, kept: Floats,
    parts: Floats, place_rows: Integers, position: Floats, weight: Floats,
) -> int:  # fmt: skip
    """Put nodes of all blocks beside each other; how many, or -1."""
    is_sum, count = model[FAMILY] != GAMMA, 0
    for b in range(number):
        left, length = kept[LEFT, b], kept[RIGHT, b] - kept[LEFT, b]
        pieces = min(parts[b], length) if is_sum else parts[b]
        bits = sparse_rules(sizes, kept[SIZE, b], kept[DEPTH, b], kept[POLE, b])
        begin = left
        for piece in range(int(pieces)):
            end = left + length * (piece + 1.0) / pieces
            if is_sum:
                end = math.floor(end)
            if count + POINTS > len(position):
                return -1
            rule = rule_of(bits, end - begin, is_sum)
            points = put_nodes(sums, integrals, rule, begin, end, is_sum, position, weight, count)
            for i in range(count, count + points):
                place_rows[i] = row[b]
            count += points
            begin = end
    return count


def _resolve(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, ends: Integers, n: Floats,
    added: Floats, nats: float, line: int, update: Floats, sizes: Floats, sums: Floats, integrals: Floats,
    answers: Floats, counts: Integers, merged: Floats,
) -> None:  # fmt: skip
    """Resolve every cell, whose rows of N are between its ends: mean, sd, log evidence, largest N.

    ``merged`` gets N, S, weight and scatter; counts are -1 of cells that are left to arrays.
    """
    table, work = np.empty((KINKS + len(rates), MOST_ROWS)), np.empty((8, MOST_NODES))
    rows, blocks = np.empty((2, MOST_BLOCKS), np.int64), np.empty((2, 5, MOST_BLOCKS))
    place_rows, kept_rows = np.empty(MOST_NODES, np.int64), np.empty(MOST_BLOCKS, np.int64)
    kept, parts, masses = np.empty((5, MOST_BLOCKS)), np.empty(MOST_BLOCKS), np.empty(MOST_ROWS)
    slots, of_merged, breaks = np.zeros(_KEYS * _LEVELS, np.int64), np.empty((MOST_MERGED, 5)), np.empty(64)
    state = np.zeros(2)
    position, amount, scratch, density = work[0], work[1], work[2], work[3]
    weight = work[5]
    is_sum = model[FAMILY] != GAMMA
    for cell in range(len(values)):
        counts[cell] = -1
        first_row, n_rows, count = ends[cell], ends[cell + 1] - ends[cell], 0
        if n_rows > MOST_ROWS or n_rows < 1:
            continue
        has_none, none = False, noise_of_none(values[cell], rates)
        too_many = False
        for r in range(n_rows):
            of_row, more = n[first_row + r], added[first_row + r]
            set_row(model, values[cell], reaches, of_row, more, table, r)
            if of_row < 1.0:
                has_none = True
                table[NONE, r] = none + more
                breaks[0], breaks[1], number = 0.0, 1.0, 2
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
        state[1] = 1.0 if has_none else 0.0
        number = _divided(
            False, model, values[cell], reaches, rates, update, nats, sizes, table, count, rows, blocks,
            place_rows, work, kept_rows, kept, state,
        )  # fmt: skip
        if number < 1:
            continue
        top = state[0]
        _cut(
            model, rates, table, number, has_none, top, kept_rows, kept, place_rows, work, parts, masses,
            n_rows,
        )  # fmt: skip
        count = _nodes(
            model, sums, integrals, sizes, number, kept_rows, kept, parts, place_rows, position, weight
        )
        if count < 1:
            continue
        _log_joint(model, rates, table, count, place_rows, work, has_none)
        raised = 0.0
        for i in range(count):
            density[i] -= top
            raised = max(raised, density[i])
        if raised < _HIGHEST:
            raised = 0.0
        for i in range(count):
            weight[i] *= exp(density[i] - raised)
        evidence = 0.0
        for i in range(count):
            if weight[i] <= _LEAST or density[i] <= _LOG_LEAST:
                weight[i] = 0.0
            evidence += weight[i]
        by_evidence = 1.0 / evidence
        pair_n, total, first, second = work[4], work[6], work[2], work[7]
        lower, step = model[LOWER], model[STEP]
        for i in range(count):
            pair_n[i] = table[COUNT, place_rows[i]]
            total[i] = amount[i]
        if has_none:
            for i in range(count):
                if pair_n[i] < 1.0:
                    total[i] = 0.0
        if not is_sum:
            for i in range(count):
                total[i] = lower * pair_n[i] + step * total[i]
        largest = 0.0
        for i in range(count):
            weight[i] *= by_evidence
            if weight[i] > 0.0:
                largest = max(largest, pair_n[i])
        for i in range(count):
            first[i] = update[0] + update[1] * pair_n[i] + update[2] * total[i]
            second[i] = update[3] + update[4] * pair_n[i] + update[5] * total[i]
        _moments(line, count, first, second, weight, density, answers[cell])
        answers[cell, 2], answers[cell, 3] = top + raised + math.log(evidence), largest
        heavy = 0
        for i in range(count):
            if weight[i] > _NEGLIGIBLE:
                pair_n[heavy], total[heavy], weight[heavy] = pair_n[i], total[i], weight[i]
                first[heavy], second[heavy] = first[i], second[i]
                heavy += 1
        centre, width = density, position
        for i in range(heavy):
            centre[i] = log(first[i] / second[i])
        if line == BETA_LINE:
            for i in range(heavy):
                width[i] = math.sqrt(1.0 / first[i] + 1.0 / second[i])
        else:
            for i in range(heavy):
                width[i] = math.sqrt(1.0 / first[i])
        if not (evidence > 0.0 and evidence < math.inf):
            continue
        counts[cell] = _merged(
            line, heavy, pair_n, total, weight, centre, width, (cell + 1) * MOST_MERGED, place_rows, slots,
            of_merged, merged[cell],
        )  # fmt: skip


blocks_of_n = compiled(
    _blocks_of_n,
    written(1), written(2), written(1), written(1), written(1), written(2), types.float64, written(3),
    written(1, types.int64), written(3),
)  # fmt: skip
resolve = compiled(
    _resolve,
    written(1), written(2), written(1), written(1), written(1, types.int64), written(1), written(1),
    types.float64, types.int64, written(1), written(3), written(4), written(3), written(2),
    written(1, types.int64), written(3),
)  # fmt: skip
