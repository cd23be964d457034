"""Merging of a cell's nodes into few components of its marginals, for ``node_lines``; see ``nested_rule``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.machine_code import inner, merged, vectorised
from suffice.pipeline.math.distributions.vector_functions import bits_of, log, number_of
from suffice.pipeline.math.engines.normal.node_picks import pick
from suffice.pipeline.math.engines.normal.node_weights import (
    FIRST,
    LOC,
    MASS,
    OVER,
    RHO,
    SECOND,
    SHIFT,
    SPAN,
    TOTAL,
    E,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.node_weights import Integers
    from suffice.typing import Floats

SLOTS, FIELDS = 4096, 4
"""Slots of a table of merged components, and sums in each."""
# Rows of the array of what is to be merged.
WEIGHT, SCALE, SCATTER, LONG, MOVED, OVER_N, AT, SQUARE, WHOLE = range(9)
MERGING_ROWS = 9
_FAR = 30000.0
_FEW = 64.0
"""Below this concentration an inverse gamma is too skew to be widened: it is repeated along an interval."""
_LONG = 0.5
"""Of log variances: longer intervals are several pieces."""
_SCATTERED = 0.005
"""Relative variance of a part's scales in a panel from which on its nodes stay apart."""
_TOLD = 4.0
"""Spreads from the middle beyond which locations are told apart by their logarithm."""


@merged
def _key(loc: float, square: float, degrees: float, tails: int) -> int:
    """Components alike in width, in location as far as it matters, and in tails have one key.

    Tails are told apart by this part of a factor of 2 of the degrees of freedom.
    """
    # By factors of 2 of the width, whose square is (1/2..1) times 2 to the power.
    power = (bits_of(square) >> 52) - 1022
    alike = min(max((power + 1) >> 1, -4), 60)
    step = max(0.35 * number_of((alike + 1023) << 52), 0.06 if alike < 0 else 0.0)
    away = abs(loc)
    if away > _TOLD:
        loc *= _TOLD * (1.0 + math.log(away / _TOLD)) / away
    position = int(min(max(loc / step + 0.5, -_FAR), _FAR) + 2.0 * _FAR)
    bits = bits_of(degrees)
    kind = min(tails * ((bits >> 52) - 1022) + (((bits >> 51) & 1) if tails == 2 else 0), 6 * tails)
    return ((alike + 200) * 128 + kind + 40) * 131072 + position


@inner
def _put(which: int, count: int, after: float, merging: Floats, tables: Floats, keys: Integers) -> bool:
    """Add to merged components of a marginal; false where the table is full."""
    for i in range(count):
        w, at, square = merging[WEIGHT, i], merging[AT, i], merging[SQUARE, i]
        key = _key(at, square, 2.0 * after, which + 1)
        slot = ((key * 0x9E3779B97F4A7C1) >> 20) & (SLOTS - 1)
        tried = 0
        while keys[which, slot] != key and keys[which, slot] != -1:
            slot = (slot + 1) & (SLOTS - 1)
            tried += 1
            if tried > SLOTS // 2:
                return False
        keys[which, slot] = key
        tables[which, slot, 0] += w
        tables[which, slot, 1] += w * at
        tables[which, slot, 2] += w * (at * at + square)
        tables[which, slot, 3] += w * 0.5 / after
    return True


@inner
def put_means(
    count: int, after: float, about: Floats, merging: Floats, tables: Floats, keys: Integers
) -> bool:
    """Add Student distributions of the mean, about intervals; ``OVER_N`` is one over the precision.

    They differ less than inverse gammas do: their tails are told apart by whole factors of 2.
    """
    centre, unit = about[3], 1.0 / about[4]
    for i in range(count):
        length = merging[LONG, i]
        square = merging[SCALE, i] / after * merging[OVER_N, i] + merging[SCATTER, i] + length * length / 12.0
        merging[AT, i] = (merging[MOVED, i] - centre) * unit
        merging[SQUARE, i] = square * unit * unit
    return _put(0, count, after, merging, tables, keys)


@vectorised
def _positions(count: int, after: float, known: float, merging: Floats) -> None:
    for i in range(count):
        merging[AT, i] = log(merging[SCALE, i] / after) - 0.5 * merging[SCATTER, i] - known
        merging[SQUARE, i] = 1.0 / after + merging[SCATTER, i]


@inner
def put_variances(
    count: int, after: float, about: Floats, merging: Floats, tables: Floats, keys: Integers
) -> bool:
    """Add inverse gammas of the variance about intervals of its log; ``SCATTER`` is of their scales."""
    _positions(count, after, about[2], merging)
    unit, whole = 1.0 / about[5], count
    for i in range(count):
        length, pieces = merging[LONG, i], 1
        if after >= _FEW:
            pieces = min(int(length / _LONG) + 1, 4)
            merging[AT, i] += merging[MOVED, i]
            length /= pieces
            merging[SQUARE, i] += length * length / 12.0
        elif length * length * after > 0.5:
            # Equal steps with the interval's variance.
            pieces = min(int(math.sqrt(length * length * after)) + 2, 6)
            merging[AT, i] += merging[MOVED, i]
            length /= math.sqrt(pieces * pieces - 1.0)
        merging[SQUARE, i] *= unit * unit
        if pieces > 1:
            if whole + pieces > merging.shape[1]:
                return False
            merging[WEIGHT, i] /= pieces
            for piece in range(1, pieces):
                at = merging[AT, i] + length * (piece - 0.5 * (pieces - 1.0))
                merging[AT, whole] = at * unit
                merging[SQUARE, whole], merging[WEIGHT, whole] = merging[SQUARE, i], merging[WEIGHT, i]
                whole += 1
            merging[AT, i] -= 0.5 * length * (pieces - 1.0)
        merging[AT, i] *= unit
    return _put(1, whole, after, merging, tables, keys)


@inner
def put_line(
    n: float, count: int, points: int, shift_m: float, span_m: float, parts: int, of_n: Floats,
    of_parts: Floats, nodes: Floats, about: Floats, merging: Floats, tables: Floats, keys: Integers,
    picked: Floats,
) -> bool:  # fmt: skip
    """Add a line's nodes, all parts of the prior as one by two moments of their scales."""
    half_n, after, least = 0.5 * n, of_n[5, 0], about[6]
    mass, loc, square, over = 0.0, 0.0, 0.0, 0.0
    for k in range(parts):
        w = of_parts[MASS, k]
        mass += w
        loc += w * of_parts[LOC, k]
        square += w * of_parts[LOC, k] * of_parts[LOC, k]
        over += w * of_parts[OVER, k]
    if not mass > least:
        return True
    loc /= mass
    square = max(square / mass - loc * loc, 0.0)
    over /= mass
    kept = 0
    for i in range(count):
        w = nodes[TOTAL, i]
        if w > least:
            rho, e = nodes[FIRST, i] / w, nodes[E, i]
            scale = rho + e
            slope = e / scale
            merging[WEIGHT, kept], merging[SCALE, kept] = w, half_n * scale
            merging[SCATTER, kept] = max(nodes[SECOND, i] / w - rho * rho, 0.0) / (scale * scale)
            merging[LONG, kept], merging[MOVED, kept] = slope * nodes[SPAN, i], slope * nodes[SHIFT, i]
            scatter, length = merging[SCATTER, kept], merging[LONG, kept]
            pick(
                w, about[0] + loc + shift_m, square + span_m * span_m / 12.0, over, half_n * scale,
                scatter + length * length / 12.0, merging[MOVED, kept] - 0.5 * scatter, after, picked,
            )  # fmt: skip
            kept += 1
    if not put_variances(kept, after, about, merging, tables, keys):
        return False
    kept = 0
    for first in range(0, count, points):
        mass, scale = 0.0, 0.0
        for i in range(first, first + points):
            mass += nodes[TOTAL, i]
            scale += nodes[FIRST, i] + nodes[TOTAL, i] * nodes[E, i]
        if mass > least:
            merging[WEIGHT, kept], merging[SCALE, kept] = mass, half_n * scale / mass
            merging[SCATTER, kept], merging[OVER_N, kept] = square, over
            merging[LONG, kept], merging[MOVED, kept] = span_m, loc + shift_m
            kept += 1
    return put_means(kept, after, about, merging, tables, keys)


@inner
def put_parts(  # noqa: C901, PLR0912 - one compiled loop
    n: float, count: int, points: int, shift_m: float, span_m: float, parts: int, of_n: Floats,
    of_parts: Floats, nodes: Floats, weights: Floats, about: Floats, merging: Floats, tables: Floats,
    keys: Integers, picked: Floats,
) -> bool:  # fmt: skip
    """Add a line's panels part by part, or its nodes where a panel has scales that differ."""
    half_n, after, least = 0.5 * n, of_n[5, 0], about[6]
    for k in range(parts):
        if not of_parts[MASS, k] > least:
            continue
        rho, shrunk = of_parts[RHO, k], of_n[4, k]
        kept = 0
        for first in range(0, count, points):
            mass, first_of, second_of = 0.0, 0.0, 0.0
            for i in range(first, first + points):
                w, e = weights[k, i], nodes[E, i]
                mass += w
                first_of += w * e
                second_of += w * e * e
            if not mass > least:
                continue
            e = first_of / mass
            scale = rho + e
            scatter = max(second_of / mass - e * e, 0.0) / (scale * scale)
            if scatter <= _SCATTERED:
                merging[WEIGHT, kept], merging[SCALE, kept] = mass, half_n * scale
                merging[SCATTER, kept], merging[LONG, kept], merging[MOVED, kept] = scatter, 0.0, 0.0
                kept += 1
                continue
            for i in range(first, first + points):
                w, e = weights[k, i], nodes[E, i]
                if w > least:
                    scale = rho + e
                    slope = e / scale
                    merging[WEIGHT, kept], merging[SCALE, kept] = w, half_n * scale
                    merging[SCATTER, kept], merging[LONG, kept] = 0.0, slope * nodes[SPAN, i]
                    merging[MOVED, kept] = slope * nodes[SHIFT, i]
                    kept += 1
        if kept == 0:
            continue
        # The pieces of an interval of variances are beside its weight, which the mean has whole.
        for i in range(kept):
            merging[WHOLE, i] = merging[WEIGHT, i]
            scatter, length = merging[SCATTER, i], merging[LONG, i]
            pick(
                merging[WEIGHT, i], about[0] + of_parts[LOC, k] + shrunk * shift_m,
                shrunk * shrunk * span_m * span_m / 12.0, of_parts[OVER, k], merging[SCALE, i],
                scatter + length * length / 12.0, merging[MOVED, i] - 0.5 * scatter, after, picked,
            )  # fmt: skip
        if not put_variances(kept, after, about, merging, tables, keys):
            return False
        for i in range(kept):
            merging[WEIGHT, i] = merging[WHOLE, i]
            merging[SCATTER, i], merging[OVER_N, i] = 0.0, of_parts[OVER, k]
            merging[LONG, i] = shrunk * span_m
            merging[MOVED, i] = of_parts[LOC, k] + shrunk * shift_m
        if not put_means(kept, after, about, merging, tables, keys):
            return False
    return True


@inner
def put_point(
    w: float, loc: float, length: float, scale: float, over: float, after: float, about: Floats,
    merging: Floats, tables: Floats, keys: Integers, picked: Floats,
) -> bool:  # fmt: skip
    """Add one inverse gamma, and one Student distribution about an interval of means."""
    pick(w, about[0] + loc, length * length / 12.0, over, scale, 0.0, 0.0, after, picked)
    merging[WEIGHT, 0], merging[SCALE, 0], merging[SCATTER, 0] = w, scale, 0.0
    merging[LONG, 0], merging[MOVED, 0] = 0.0, 0.0
    if not put_variances(1, after, about, merging, tables, keys):
        return False
    merging[LONG, 0], merging[MOVED, 0], merging[OVER_N, 0] = length, loc, over
    return put_means(1, after, about, merging, tables, keys)
