r"""Compiled mixtures of betas and gammas: merging, distribution functions and quantiles; see ``merged``.

Merging, coordinates and approximations are those of ``merged``, ``dirichlet`` and ``gamma``. With
:math:`\delta = -\log(1 / F - 1)` in place of normal deviates, rough quantiles come from a table of the
distribution function of a mixture that is merged much coarser, and exact ones by secants within a bracket.

Machine code is kept beside this module while it stays as it is: whoever changes ``mixture_functions`` or
``vector_functions`` alone removes ``__pycache__``.

Symbols:

- x: ``position`` on the line, a logit or a logarithm; a, b: ``first`` and ``second``
"""

# ruff: noqa: C901, PLR0912, PLR0915 - calls cost too much in loops for these to be taken apart

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.machine_code import compiled, inner, read, vectorised, written
from suffice.pipeline.math.distributions.mixture_functions import (
    BETA,
    LARGE,
    below,
    constant_of,
    put_constants,
)
from suffice.pipeline.math.distributions.vector_functions import log

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

LEVELS, POSITIONS = 96, 2048.0
NEGLIGIBLE, _NEXT_TO_NOTHING = 2e-6, 2e-5
_LEFT_OUT = 1e-3
"""Share that pairs which are left out have at most together."""
_PER_SPREAD, _PER_WIDTH, _PER_OCTAVE = 24.0, 4.0, 3.0
_ROUGHLY = 0.3
"""As in ``merged``."""
_ROUGHLY_LARGE = 0.75
"""Concentration from which on betas are nearly normal to a hundredth of a level, for rough quantiles."""
_MOST_ROUNDS, _REACH, _RIGHT = 60, 12.0, 1e-4
_LEAST = 1e-15
_PACE, _PER_DEVIATE = 0.5, 2.0
"""Of a standard deviation, by which a position moves about while its deviate moves by 1; and over it."""


@inner
def coordinates(update: Floats, n: float, total: float) -> tuple[float, float]:
    """Both natural parameters given a pair."""
    first = update[0] + update[1] * n + update[2] * total
    second = update[3] + update[4] * n + update[5] * total
    return first, second


@inner
def mean_and_variance(line: int, first: float, second: float) -> tuple[float, float]:
    """Of the parameter."""
    if line == BETA:
        total = first + second
        by_total = 1.0 / total
        mean = first * by_total
        return mean, mean * second * by_total / (total + 1.0)
    by_rate = 1.0 / second
    return first * by_rate, first * by_rate * by_rate


@inner
def width_squared(line: int, first: float, second: float) -> float:
    """Square of the width on the line."""
    return 1.0 / first + 1.0 / second if line == BETA else 1.0 / first


@inner
def _octaves(x: float) -> float:
    """About log2 of x, without a logarithm: continuous, right at powers of 2."""
    fraction, power = math.frexp(x)
    return power - 2.0 + 2.0 * fraction


@inner
def merge(
    pairs: Floats, number: int, fineness: float, negligible: float, table: Integers, keys: Integers,
    merged: Floats,
) -> int:  # fmt: skip
    """Merge pairs of N, S, weight, centre, scatter and squared width; how many are left, -1 if too many.

    ``merged`` gets N, S, weight, scatter, centre, and the weight by the squared share of a pair's
    variance that is scatter.
    """
    whole, middle, narrowest, kept = 0.0, 0.0, np.inf, 0.0
    for i in range(number):
        whole += pairs[i, 2]
    # Many pairs of next to nothing each are tails: all that are left out hold at most this.
    least = whole * min(negligible, _LEFT_OUT / number)
    for i in range(number):
        if pairs[i, 2] > least:
            kept += pairs[i, 2]
            middle += pairs[i, 2] * pairs[i, 3]
            narrowest = min(narrowest, pairs[i, 5] + pairs[i, 4])
    middle /= kept
    spread = 0.0
    for i in range(number):
        if pairs[i, 2] > least:
            spread += pairs[i, 2] * (pairs[i, 3] - middle) ** 2
    # u: a share of the centres' spread, or of the narrowest width.
    unit = max(math.sqrt(spread / kept) / _PER_SPREAD, math.sqrt(narrowest) / _PER_WIDTH) / fineness
    powers = np.empty(LEVELS)
    per_octave = _PER_OCTAVE * math.sqrt(fineness)
    for level in range(LEVELS):
        powers[level] = 2.0 ** (-level / per_octave) / unit
    base = (_PER_WIDTH * fineness * unit) ** -2
    low_level, high_level, low, high = LEVELS, -1, 1 << 30, -(1 << 30)
    for i in range(number):
        if pairs[i, 2] <= least:
            continue
        relative = (pairs[i, 5] + pairs[i, 4]) * base
        level = int(min(0.5 * per_octave * _octaves(relative), LEVELS - 1.0)) if relative > 1.0 else 0
        place = (pairs[i, 3] - middle) * powers[level]
        point = math.floor(place / (1.0 + abs(place) / POSITIONS) + 0.5)
        keys[i, 0], keys[i, 1] = level, point
        low_level, high_level = min(low_level, level), max(high_level, level)
        low, high = min(low, point), max(high, point)
    span = high - low + 1
    if (high_level - low_level + 1) * span > len(table):
        return -1
    for i in range((high_level - low_level + 1) * span):
        table[i] = -1
    count = 0
    for i in range(number):
        w = pairs[i, 2]
        if w <= least:
            continue
        key = (keys[i, 0] - low_level) * span + keys[i, 1] - low
        at = table[key]
        away = pairs[i, 3] - middle
        if at < 0:
            if count >= merged.shape[0]:
                return -1
            at = count
            table[key] = at
            count += 1
            for column in range(6):
                merged[at, column] = 0.0
        merged[at, 0] += w * pairs[i, 0]
        merged[at, 1] += w * pairs[i, 1]
        merged[at, 2] += w
        merged[at, 3] += w * (away * away + pairs[i, 4])
        merged[at, 4] += w * away
        share = pairs[i, 4] / (pairs[i, 4] + pairs[i, 5])
        merged[at, 5] += w * share * share
    for at in range(count):
        w = merged[at, 2]
        merged[at, 0] /= w
        merged[at, 1] /= w
        mean = merged[at, 4] / w
        merged[at, 3] = max(merged[at, 3] / w - mean * mean, 0.0)
        merged[at, 4] = middle + mean
        merged[at, 2] = w / kept
        merged[at, 5] /= kept
    return count


@inner
def _deviate(level: float) -> float:
    level = min(max(level, _LEAST), 1.0 - _LEAST)
    return math.log(level / (1.0 - level))


@vectorised
def set_centres(
    merged: Floats, number: int, line: int, update: Floats, first: Floats, second: Floats, centres: Floats,
    widths: Floats,
) -> None:  # fmt: skip
    """Both natural parameters of parts, where these are on the line, and their squared widths there."""
    for i in range(number):
        first[i] = update[0] + update[1] * merged[i, 0] + update[2] * merged[i, 1]
    for i in range(number):
        second[i] = update[3] + update[4] * merged[i, 0] + update[5] * merged[i, 1]
    of_second = 1.0 if line == BETA else 0.0
    for i in range(number):
        widths[i] = 1.0 / first[i] + of_second / second[i]
    for i in range(number):
        centres[i] = log(first[i] / second[i])


@inner
def set_parts(
    merged: Floats, number: int, line: int, update: Floats, parts: Floats, about: Floats, large: float
) -> None:
    """Weaken parts by their scatter; ``about`` gets ends between which quantiles are, mean and sd."""
    low, high, mean, square = np.inf, -np.inf, 0.0, 0.0
    a, b, centres, widths = parts[1], parts[2], parts[4], parts[5]
    set_centres(merged, number, line, update, a, b, centres, widths)
    for i in range(number):
        reach = _REACH * math.sqrt(widths[i] + merged[i, 3])
        low, high = min(low, centres[i] - reach), max(high, centres[i] + reach)
        mean += merged[i, 2] * centres[i]
        square += merged[i, 2] * (centres[i] * centres[i] + widths[i] + merged[i, 3])
    for i in range(number):
        kept = 1.0 / (1.0 + merged[i, 3] / widths[i])
        parts[0, i], a[i], b[i] = merged[i, 2], kept * a[i], kept * b[i]
    put_constants(line, parts, number)
    for i in range(number):
        if min(a[i], b[i] if line == BETA else a[i]) >= large:
            continue
        parts[3, i] = constant_of(line, a[i], b[i], large)
        if line == BETA:
            parts[4, i] = math.lgamma(a[i]) + math.lgamma(b[i]) - math.lgamma(a[i] + b[i])
    about[0], about[1], about[2] = low, high, mean
    about[3] = math.sqrt(max(square - mean * mean, 0.0))


@inner
def _quantile(
    line: int, parts: Floats, number: int, about: Floats, level: float, start: float, pace: float
) -> float:
    """Position at a level, by secants within a bracket; ``pace`` is of deviates here about the start."""
    wanted = _deviate(level)
    left, right, sd = about[0], about[1], about[3]
    position = min(max(start, left), right)
    other, previous, local = position, 0.0, sd
    for turn in range(_MOST_ROUNDS):
        value = _deviate(below(line, parts, number, position, LARGE)) - wanted
        if value < 0.0:
            left = position
        else:
            right = position
        usable = False
        following = position - min(max(value, -2.0), 2.0) * pace
        if turn > 0:
            following = 0.5 * (left + right)
            if turn % 4 != 3 and value != previous:
                secant = position - value * (position - other) / (value - previous)
                if left < secant < right:
                    following, usable = secant, True
                    # Beside a narrow peak a long tail says nothing: there a deviate moves by 1 in this.
                    local = min(sd, _PER_DEVIATE * (position - other) / (value - previous))
        following = min(max(following, left), right)
        step = abs(following - position)
        after = step
        if usable and step < 0.03 * local:
            after = step * min(abs(position - other) / local, 1.0)
        if after <= _RIGHT * local or right - left <= _RIGHT * local:
            # The last secant costs nothing more.
            return float(following if usable else position)
        other, previous, position = position, value, following
    return float(position)


def _quantiles(
    ends: Integers, merged: Floats, line: int, update: Floats, rough: bool, levels: Floats, near: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Quantiles of every cell at levels (n_cells, n_levels), ascending where they are rough ones.

    Parts of a cell are the rows of ``merged`` between its ends: N, S, weight and scatter. ``near`` has about
    the quantiles, on the line, or nothing: then a table of a mixture that is merged much coarser has them.
    """
    longest = 1
    for cell in range(len(levels)):
        longest = max(longest, ends[cell + 1] - ends[cell])
    parts, coarse = np.empty((6, longest)), np.empty((longest, 6))
    pairs = np.empty((longest, 6))
    keys, table = np.empty((longest, 2), np.int64), np.empty(1 << 16, np.int64)
    about = np.empty(4)
    n_levels = levels.shape[1]
    knots, known = np.empty(40 + n_levels), np.empty(40 + n_levels)
    for cell in range(len(levels)):
        first, number = ends[cell], ends[cell + 1] - ends[cell]
        of_cell = merged[first : first + number]
        has_near = near.shape[1] > 0
        if not has_near:
            set_centres(of_cell, number, line, update, parts[1], parts[2], parts[4], parts[5])
            for i in range(number):
                for column in range(3):
                    pairs[i, column] = of_cell[i, column]
                pairs[i, 3], pairs[i, 4], pairs[i, 5] = parts[4, i], of_cell[i, 3], parts[5, i]
            count = merge(pairs, number, _ROUGHLY, _NEXT_TO_NOTHING, table, keys, coarse)
            if count < 0:
                count = number
                for i in range(number):
                    for column in range(4):
                        coarse[i, column] = of_cell[i, column]
            set_parts(coarse, count, line, update, parts, about, _ROUGHLY_LARGE)
            size = 0
            for i in range(9):
                at = min(max(about[2] + about[3] * (1.5 * i - 7.0), about[0]), about[1])
                if size > 0 and at <= knots[size - 1]:
                    continue
                knots[size] = at
                known[size] = _deviate(below(line, parts, count, at, _ROUGHLY_LARGE))
                size += 1
            # Twice: where the table so far has the levels, every fifth and then every second of them.
            for turn in range(2):
                every = 5 if turn == 0 else 2
                if n_levels <= 4:
                    every = 1
                k = 0
                while k < n_levels:
                    at = _interpolated(known, knots, size, _deviate(levels[cell, k]))
                    value = _deviate(below(line, parts, count, at, _ROUGHLY_LARGE))
                    size = _inserted(knots, known, size, at, value, about[3])
                    if size >= 36 + n_levels:
                        break
                    k = k + every if k + every < n_levels or k == n_levels - 1 else n_levels - 1
            for k in range(n_levels):
                out[cell, k] = _interpolated(known, knots, size, _deviate(levels[cell, k]))
            if rough:
                continue
        set_parts(of_cell, number, line, update, parts, about, LARGE)
        for k in range(n_levels):
            start = near[cell, k] if has_near else out[cell, k]
            out[cell, k] = _quantile(line, parts, number, about, levels[cell, k], start, _PACE * about[3])


@inner
def _interpolated(known: Floats, knots: Floats, size: int, wanted: float) -> float:
    """Knot at which the table, which ascends, has a deviate."""
    if wanted <= known[0]:
        return float(knots[0])
    for i in range(1, size):
        if wanted <= known[i]:
            rise = known[i] - known[i - 1]
            share = (wanted - known[i - 1]) / rise if rise > 0.0 else 0.5
            return float(knots[i - 1] + share * (knots[i] - knots[i - 1]))
    return float(knots[size - 1])


@inner
def _inserted(knots: Floats, known: Floats, size: int, at: float, value: float, sd: float) -> int:
    """Put a knot into the table, but one next to another."""
    i = size
    while i > 0 and knots[i - 1] > at:
        i -= 1
    if (i > 0 and at - knots[i - 1] < 1e-4 * sd) or (i < size and knots[i] - at < 1e-4 * sd):
        return size
    for j in range(size, i, -1):
        knots[j], known[j] = knots[j - 1], known[j - 1]
    # A distribution function does not fall; its rounding may.
    low = known[i - 1] if i > 0 else -np.inf
    high = known[i + 1] if i < size else np.inf
    knots[i], known[i] = at, min(max(value, low), high)
    return size + 1


quantiles = compiled(
    _quantiles,
    written(1, types.int64), read(2), types.int64, written(1), types.boolean, read(2), read(2), written(2),
)  # fmt: skip
