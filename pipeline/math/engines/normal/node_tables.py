"""Merging of a cell's nodes into few components of its marginals, for ``node_lines``; see ``nested_rule``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.machine_code import merged, uncounted, vectorised
from suffice.pipeline.math.distributions.vector_functions import bits_of, exp, log, number_of
from suffice.pipeline.math.engines.normal.node_picks import pick
from suffice.pipeline.math.engines.normal.node_weights import (
    FIRST,
    LOC,
    LOG_E,
    MASS,
    MOST_NODES,
    N_AFTER,
    N_SHRUNK,
    NODES,
    OVER,
    RHO,
    SECOND,
    SPAN,
    TOTAL,
    WEIGHTS,
    E,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.node_weights import Integers
    from suffice.typing import Floats

SLOTS, FIELDS = 4096, 4
"""Slots of a table of merged components, and sums in each."""
# Rows of the array of what is to be merged; the last two are of scales over half of N, but for E.
MERGING_ROWS, MOST_MERGED = 7, 3 * MOST_NODES
WEIGHT, AT, SQUARE, SCALE, LONG, REST, REST_SQUARE = range(0, MERGING_ROWS * MOST_MERGED, MOST_MERGED)
_FAR = 30000.0
_TOLD = 4.0
"""Spreads from the middle beyond which locations are told apart by their logarithm."""
_FEW = 16.0
"""Concentration below which what is picked is not widened."""
_MOST_PIECES = 12
"""Of a panel."""
_PER_SPREAD = 2.0
"""Pieces are shorter than a spread of the logarithm over this, or than the width of an inverse gamma."""


def _piece_tables() -> tuple[Floats, Floats]:
    """By nodes of a panel and number of equal pieces: what a piece has of each node's weight, and where.

    The polynomial through the nodes is integrated over the piece: all pieces have what all nodes have. The
    second table has what is away from the piece's middle, in lengths of the panel.
    """
    masses, moments = np.zeros((2, 7, _MOST_PIECES + 1, _MOST_PIECES, 6))
    for points in range(1, 7):
        x, w = np.polynomial.legendre.leggauss(points)
        through = np.linalg.inv(np.vander(x, increasing=True)) / w
        powers = np.arange(1, points + 2)
        for pieces in range(1, _MOST_PIECES + 1):
            edges = np.linspace(-1.0, 1.0, pieces + 1)
            middle = (edges[1:] + edges[:-1])[:, None] / 2.0
            integrals = np.diff(edges[:, None] ** powers, axis=0) / powers
            away = (integrals[:, 1:] - middle * integrals[:, :-1]) / 2.0
            masses[points, pieces, :pieces, :points] = integrals[:, :-1] @ through
            moments[points, pieces, :pieces, :points] = away @ through
    return masses, moments


MASSES, MOMENTS = _piece_tables()


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


@uncounted
def _put(which: int, count: int, after: float, merging: Floats, tables: Floats, keys: Integers) -> bool:
    """Add to merged components of a marginal; false where the table is full."""
    for i in range(count):
        w, at, square = merging[WEIGHT + i], merging[AT + i], merging[SQUARE + i]
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


@vectorised
def _positions(count: int, half_n: float, after: float, known: float, merging: Floats) -> None:
    """Fill in scales, logs of variances and squared widths of these."""
    for i in range(count):
        e, rest = exp(merging[AT + i]), merging[REST + i]
        whole = rest + e
        scatter = max(merging[REST_SQUARE + i] - rest * rest, 0.0) / (whole * whole)
        length = merging[LONG + i] * e / whole
        merging[SCALE + i] = half_n * whole
        merging[AT + i] = log(half_n * whole / after) - known
        merging[SQUARE + i] = 1.0 / after + scatter + length * length / 12.0


@uncounted
def _put_variances(
    count: int, after: float, about: Floats, merging: Floats, tables: Floats, keys: Integers
) -> bool:
    """Add inverse gammas of the variance."""
    unit = 1.0 / about[5]
    for i in range(count):
        merging[AT + i] *= unit
        merging[SQUARE + i] *= unit * unit
    return _put(1, count, after, merging, tables, keys)


@uncounted
def _put_means(
    count: int, after: float, over: float, loc: float, square: float, about: Floats, merging: Floats,
    tables: Floats, keys: Integers,
) -> bool:  # fmt: skip
    """Add Student distributions of the mean; ``over`` is one over the precision, ``square`` beside theirs.

    They differ less than inverse gammas do: their tails are told apart by whole factors of 2.
    """
    unit = 1.0 / about[4]
    for i in range(count):
        merging[AT + i] = (loc - about[3]) * unit
        merging[SQUARE + i] = (merging[SCALE + i] / after * over + square) * unit * unit
    return _put(0, count, after, merging, tables, keys)


@uncounted
def _cut(count: int, points: int, longest: float, least: float, nodes: Floats, merging: Floats) -> int:
    """Cut a line's panels into pieces, each at the mean of its log E; return how many there are."""
    kept = 0
    for first in range(0, count, points):
        mass, rest = 0.0, 0.0
        for i in range(first, first + points):
            mass += nodes[TOTAL + i]
            rest += nodes[FIRST + i]
        if not mass > least:
            continue
        length = nodes[SPAN + first] / WEIGHTS[points, 0]
        start = nodes[LOG_E + first] - length * NODES[points, 0]
        e = nodes[E + first + points - 1]
        pieces = min(int(length * e / ((rest / mass + e) * longest)) + 1, _MOST_PIECES)
        length /= pieces
        for piece in range(pieces):
            w, away, rest, rest_square = 0.0, 0.0, 0.0, 0.0
            for i in range(points):
                share = MASSES[points, pieces, piece, i]
                w += share * nodes[TOTAL + first + i]
                away += MOMENTS[points, pieces, piece, i] * nodes[TOTAL + first + i]
                rest += share * nodes[FIRST + first + i]
                rest_square += share * nodes[SECOND + first + i]
            # Where the density falls by far within a panel the polynomial may be below 0.
            if w > least:
                away = min(max(away * pieces / w, -0.5), 0.5)
                merging[WEIGHT + kept], merging[AT + kept] = w, start + (piece + 0.5 + away) * length
                merging[REST + kept], merging[REST_SQUARE + kept] = max(rest / w, 0.0), rest_square / w
                merging[LONG + kept] = length
                kept += 1
    return kept


@uncounted
def _whole(count: int, points: int, half_n: float, least: float, nodes: Floats, merging: Floats) -> int:
    """Fill in weights and scales of a line's panels; return how many there are."""
    kept = 0
    for first in range(0, count, points):
        mass, scale = 0.0, 0.0
        for i in range(first, first + points):
            mass += nodes[TOTAL + i]
            scale += nodes[FIRST + i] + nodes[TOTAL + i] * nodes[E + i]
        if mass > least:
            merging[WEIGHT + kept], merging[SCALE + kept] = mass, half_n * scale / mass
            kept += 1
    return kept


@uncounted
def _put_panels(
    n: float, count: int, points: int, loc: float, square: float, over: float, after: float, nodes: Floats,
    about: Floats, merging: Floats, tables: Floats, keys: Integers, picked: Floats, apart: bool,
) -> bool:  # fmt: skip
    """Add a line: variances by pieces of panels, means by panels, or by pieces ``apart``."""
    half_n, least = 0.5 * n, about[6]
    longest = max(about[5] / _PER_SPREAD, 1.0 / math.sqrt(after))
    if len(picked) > 1:
        longest = 0.5 / math.sqrt(after) if after < _FEW else 0.5 * longest
    kept = _cut(count, points, longest, least, nodes, merging)
    _positions(kept, half_n, after, about[2], merging)
    if len(picked) > 1:
        for i in range(kept):
            scatter = merging[SQUARE + i] - 1.0 / after
            if after < _FEW:
                # Widened, an inverse gamma of a heavy tail would have far larger moments.
                length = merging[LONG + i] * (1.0 - merging[REST + i] * half_n / merging[SCALE + i])
                scatter -= length * length / 12.0
            pick(
                merging[WEIGHT + i], about[0] + loc, merging[SCALE + i] / after * over + square,
                merging[AT + i] + about[2] - 0.5 * scatter, 1.0 / after + scatter, after, picked,
            )  # fmt: skip
    if not _put_variances(kept, after, about, merging, tables, keys):
        return False
    if not apart:
        kept = _whole(count, points, half_n, least, nodes, merging)
    return _put_means(kept, after, over, loc, square, about, merging, tables, keys)


@uncounted
def put_line(
    n: float, count: int, points: int, shift_m: float, span_m: float, parts: int, of_n: Floats,
    of_parts: Floats, nodes: Floats, about: Floats, merging: Floats, tables: Floats, keys: Integers,
    picked: Floats,
) -> bool:  # fmt: skip
    """Add a line, all parts of the prior as one by two moments of their scales."""
    mass, loc, square, over = 0.0, 0.0, 0.0, 0.0
    for k in range(parts):
        w = of_parts[MASS + k]
        mass += w
        loc += w * of_parts[LOC + k]
        square += w * of_parts[LOC + k] * of_parts[LOC + k]
        over += w * of_parts[OVER + k]
    if not mass > about[6]:
        return True
    loc /= mass
    square = max(square / mass - loc * loc, 0.0) + span_m * span_m / 12.0
    return _put_panels(
        n, count, points, loc + shift_m, square, over / mass, of_n[N_AFTER], nodes, about, merging, tables,
        keys, picked, apart=False,
    )  # fmt: skip


@uncounted
def put_parts(
    n: float, count: int, points: int, shift_m: float, span_m: float, parts: int, of_n: Floats,
    of_parts: Floats, nodes: Floats, weights: Floats, about: Floats, merging: Floats, tables: Floats,
    keys: Integers, picked: Floats,
) -> bool:  # fmt: skip
    """Add a line part by part; sums of all parts at its nodes are no more."""
    for k in range(parts):
        if not of_parts[MASS + k] > about[6]:
            continue
        rho, shrunk, row = of_parts[RHO + k], of_n[N_SHRUNK + k], k * MOST_NODES
        for i in range(count):
            w = weights[row + i]
            nodes[TOTAL + i], nodes[FIRST + i], nodes[SECOND + i] = w, w * rho, w * rho * rho
        if not _put_panels(
            n, count, points, of_parts[LOC + k] + shrunk * shift_m, shrunk * shrunk * span_m * span_m / 12.0,
            of_parts[OVER + k], of_n[N_AFTER], nodes, about, merging, tables, keys, picked, apart=True,
        ):  # fmt: skip
            return False
    return True


@uncounted
def put_point(
    w: float, loc: float, length: float, scale: float, over: float, after: float, about: Floats,
    merging: Floats, tables: Floats, keys: Integers, picked: Floats,
) -> bool:  # fmt: skip
    """Add one inverse gamma, and one Student distribution about an interval of means."""
    square, position = length * length / 12.0, math.log(scale / after)
    pick(w, about[0] + loc, scale / after * over + square, position, 1.0 / after, after, picked)
    merging[WEIGHT + 0], merging[SCALE + 0] = w, scale
    merging[AT + 0], merging[SQUARE + 0] = position - about[2], 1.0 / after
    return _put_variances(1, after, about, merging, tables, keys) and _put_means(
        1, after, over, loc, square, about, merging, tables, keys
    )
