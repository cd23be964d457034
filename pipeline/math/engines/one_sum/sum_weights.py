r"""Compiled log weights of sums given N, as those of ``noisy_sum``, at many positions of many N at once.

Model, formulas and symbols as in ``noisy_sum``. What depends on N alone is a column of a table of rows; a
position has the number of its row. Loops over positions call nothing, so that they become vector instructions.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - compiled loops, in which calls cost too much

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.machine_code import inner
from suffice.pipeline.math.distributions.vector_functions import exp, log, log1p

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

POISSON, NEGATIVE_BINOMIAL, GAMMA = range(3)
"""Of sums, ``GammaPoisson``, ``BetaNegativeBinomial`` and ``GammaGamma``."""
FAMILY, FIRST, SECOND, SHAPE, SHARE, LOWER, STEP = range(7)
"""Of a model: its number, both concentrations or a concentration and a rate, r or k, w, and the lattice."""
CONSTANT, OF_N, ROWS, COUNT, NONE, KINKS = range(6)
"""Of a row: what is added, what depends on N beside it, N but at least 1, N, the weight of no records where
N is below 1, and no number elsewhere, and kinks of the noise from there on."""
_NEAR = 10.0
"""Counts up to so many times 1 + a / 2 are too small for the series in 1 / w."""
_NATS, _LEAST = 25.0, math.exp(-600.0)
"""As ``NATS`` of ``adaptive_blocks``, and the least sum of which there is a logarithm."""
_CLOSE, _LEVEL, _SECTIONS, _PARTS = 4.0, 1e-3, 11, 9
"""As in ``noisy_sum``."""


@inner
def rising(a: float, x: float) -> float:
    """Log of (a)_x / x!."""
    if a == 1.0:
        return 0.0
    middle = x + 0.5 * a
    if middle < _NEAR + _NEAR * a:
        return math.lgamma(a + x) - math.lgamma(x + 1.0) - math.lgamma(a)
    half, by = 0.5 * a, 1.0 / (middle * middle)
    odd, square = half * (half - 1.0) * (half - 0.5), half * (half - 1.0)
    series = odd * (((square - 2.0) * square + 9.0 / 5.0) * square - 3.0 / 5.0) / 36.0 * by
    series = (series + odd * ((square - 1.0) * square + 1.0 / 3.0) / 21.0) * by
    series = (series + odd * (square - 1.0 / 3.0) / 10.0) * by
    series = (series + odd / 3.0) * by
    return (a - 1.0) * math.log(middle) - math.lgamma(a) - series


@inner
def _add_rising(a: float, sign: float, count: int, x: Floats, out: Floats) -> None:
    """Add logs of (a)_x / x!, or take them away."""
    if a == 1.0:
        return
    half, power, constant = 0.5 * a, sign * (a - 1.0), sign * math.lgamma(a)
    odd, square = sign * half * (half - 1.0) * (half - 0.5), half * (half - 1.0)
    c8 = odd * (((square - 2.0) * square + 9.0 / 5.0) * square - 3.0 / 5.0) / 36.0
    c6 = odd * ((square - 1.0) * square + 1.0 / 3.0) / 21.0
    c4, c2 = odd * (square - 1.0 / 3.0) / 10.0, odd / 3.0
    near = _NEAR + _NEAR * a - half
    # Where counts are small the series is that of the least count that is not; what is added is corrected.
    for i in range(count):
        middle = max(x[i], near) + half
        by = 1.0 / (middle * middle)
        out[i] += power * log(middle) - constant - (((c8 * by + c6) * by + c4) * by + c2) * by
    at_near = sign * rising(a, near)
    for i in range(count):
        if x[i] < near:
            out[i] += sign * rising(a, x[i]) - at_near


@inner
def set_row(
    model: Floats, values: Floats, reaches: Floats, n: float, added: float, table: Floats, row: int
) -> None:
    """Work out what depends on N alone."""
    rows = max(n, 1.0)
    table[ROWS, row], table[COUNT, row], table[NONE, row] = rows, n, math.nan
    if model[FAMILY] == POISSON:
        table[CONSTANT, row] = added - model[FIRST] * math.log1p(rows / model[SECOND])
        table[OF_N, row] = math.log1p(model[SECOND] / rows)
    elif model[FAMILY] == NEGATIVE_BINOMIAL:
        successes = model[SHAPE] * rows
        table[CONSTANT, row] = added + rising(model[FIRST], successes) + math.log(successes)
        table[OF_N, row] = successes
    else:
        shape = model[SHAPE] * rows
        table[CONSTANT, row] = added + rising(model[FIRST], shape) + math.log(shape * model[STEP])
        table[CONSTANT, row] += model[FIRST] * math.log(model[SECOND] / model[SHARE])
        table[OF_N, row] = shape
    for j in range(len(values)):
        table[KINKS + j, row] = reaches[j] * rows - values[j] if reaches[j] > 0.0 else values[j]


@inner
def log_weights(
    model: Floats, rates: Floats, table: Floats, count: int, row: Integers, position: Floats, amount: Floats,
    scratch: Floats, density: Floats, noise: Floats,
) -> None:  # fmt: skip
    """Work out amounts, log densities and log noise at positions."""
    if model[FAMILY] == GAMMA:
        for i in range(count):
            amount[i] = exp(position[i])
    else:
        for i in range(count):
            amount[i] = position[i]
    for i in range(count):
        noise[i] = -rates[0] * abs(table[KINKS, row[i]] - amount[i])
    for j in range(1, len(rates)):
        for i in range(count):
            noise[i] -= rates[j] * abs(table[KINKS + j, row[i]] - amount[i])
    if model[FAMILY] == POISSON:
        for i in range(count):
            density[i] = table[CONSTANT, row[i]] - table[OF_N, row[i]] * amount[i]
        _add_rising(model[FIRST], 1.0, count, amount, density)
    elif model[FAMILY] == NEGATIVE_BINOMIAL:
        for i in range(count):
            scratch[i] = table[OF_N, row[i]] + amount[i]
        for i in range(count):
            # log1p(S / rN) is log(rN + S) less log rN, which is in the constant.
            density[i] = table[CONSTANT, row[i]] - log(scratch[i])
        _add_rising(model[SECOND], 1.0, count, amount, density)
        _add_rising(model[FIRST] + model[SECOND], -1.0, count, scratch, density)
    else:
        a, by_share = model[FIRST], model[SECOND] / model[SHARE]
        lower, step = model[LOWER], model[STEP]
        if lower == 0.0:
            log_step = math.log(step)
            for i in range(count):
                power = log1p(by_share / (step * amount[i]))
                # log1p(w S / b) is log1p(b / (w S)) and log(w S / b).
                density[i] = table[CONSTANT, row[i]] - (a + table[OF_N, row[i]]) * power - a * position[i]
            for i in range(count):
                density[i] -= (a + 1.0) * log_step
        else:
            for i in range(count):
                scratch[i] = lower * table[ROWS, row[i]] + step * amount[i]
            for i in range(count):
                power = log1p(by_share / scratch[i])
                density[i] = table[CONSTANT, row[i]] - (a + table[OF_N, row[i]]) * power
            for i in range(count):
                density[i] += position[i] - (a + 1.0) * log(scratch[i])


@inner
def _typical(model: Floats, n: float) -> float:
    a, b = model[FIRST], model[SECOND]
    if model[FAMILY] == POISSON:
        return math.floor(max(a - 1.0, 0.0) / b * n)
    if model[FAMILY] == NEGATIVE_BINOMIAL:
        return math.floor(max(b - 1.0, 0.0) / (a + 1.0) * max(model[SHAPE] * n - 1.0, 0.0))
    return b * model[SHAPE] * n / a / model[SHARE]


@inner
def _insert(columns: Floats, count: int, value: float) -> None:
    """Put a value where it belongs among so many that ascend."""
    i = count
    while i > 0 and columns[i - 1] > value:
        columns[i] = columns[i - 1]
        i -= 1
    columns[i] = value


@inner
def set_breaks(model: Floats, rates: Floats, table: Floats, row: int, breaks: Floats) -> int:
    """Positions as ``NoisySums.breaks``, how many."""
    kinks, fall, n = len(rates), 0.0, table[ROWS, row]
    is_sum = model[FAMILY] != GAMMA
    for j in range(kinks):
        kink = table[KINKS + j, row]
        _insert(breaks[2:], j, math.ceil(kink) if is_sum else kink)
        fall += rates[j]
    typical, margin = _typical(model, n), _NATS / fall
    if not is_sum:
        typical = (typical - model[LOWER] * n) / model[STEP]
    first, last = breaks[2] - margin, breaks[kinks + 1] + margin
    breaks[1], breaks[kinks + 2] = first, last
    _insert(breaks[1:], kinks + 2, typical)
    breaks[0], breaks[kinks + 4] = min(first, typical - margin), max(last, typical + margin)
    count = kinks + 5
    for j in range(count):
        breaks[j] = max(np.rint(breaks[j]), 0.0) if is_sum else math.log(max(breaks[j], _LEAST))
    if is_sum:
        breaks[count - 1] += 1.0
    return count


@inner
def spread(model: Floats, n: float, position: float) -> float:
    """As ``NoisySums.spread``; it rises with positions."""
    if model[FAMILY] == POISSON:
        return max(math.sqrt(position), 1.0)
    if model[FAMILY] == NEGATIVE_BINOMIAL:
        return max(math.sqrt(position * (1.0 + position / (model[SHAPE] * n))), 1.0)
    return 1.0 / math.sqrt(model[SHAPE] * n)


@inner
def noise_of_none(values: Floats, rates: Floats) -> float:
    """Log of the noise's distribution where N and A are 0."""
    distance = 0.0
    for j in range(len(values)):
        distance += rates[j] * abs(values[j])
    return -distance


@inner
def profiles(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, count: int, n: Floats,
    table: Floats, row: Integers, work: Floats, out: Floats,
) -> None:  # fmt: skip
    """As ``NoisySums.profile`` at so many N; ``n_prior``: a constant, and whether N + 1 divides it."""
    position, amount, scratch, density, noise = work[0], work[1], work[2], work[3], work[4]
    breaks, columns = work[5], len(rates) + 5
    is_sum = model[FAMILY] != GAMMA
    for i in range(count):
        set_row(model, values, reaches, n[i], 0.0, table, i)
        set_breaks(model, rates, table, i, breaks)
        if not is_sum:
            breaks[0], breaks[columns - 1] = breaks[1], breaks[columns - 2]
        for j in range(columns):
            place = breaks[j]
            if is_sum:
                place = min(place, breaks[columns - 1] - 1.0)
            position[i * columns + j], row[i * columns + j] = place, i
    log_weights(model, rates, table, count * columns, row, position, amount, scratch, density, noise)
    none, fall = noise_of_none(values, rates), 0.0
    for j in range(len(rates)):
        fall += rates[j]
    for i in range(count):
        prior = n_prior[0] - n_prior[1] * math.log1p(n[i])
        if n[i] < 1.0:
            out[i] = none + prior
            continue
        start, best, at = i * columns, -math.inf, 0
        likeliest, nearest = -math.inf, -math.inf
        low, high = math.inf, -math.inf
        for j in range(columns):
            value = density[start + j] + noise[start + j]
            if value > best:
                best, at = value, j
            likeliest, nearest = max(likeliest, density[start + j]), max(nearest, noise[start + j])
        for j in range(len(rates)):
            low, high = min(low, table[KINKS + j, i]), max(high, table[KINKS + j, i])
        if likeliest + nearest - best > _CLOSE:
            left, right = position[start + max(at - 1, 0)], position[start + min(at + 1, columns - 1)]
            # The mode, beyond all places that are in use.
            free = count * columns
            place = _mode(model, rates, table, i, left, right, row[free:], work[:, free:])
            position[start] = place
            row[free], position[free] = i, place
            log_weights(
                model, rates, table, 1, row[free:], position[free:], amount[free:], scratch[free:],
                density[free:], noise[free:],
            )  # fmt: skip
            density[start], noise[start] = density[free], noise[free]
        wide = math.log(high - low + 2.0 / fall)
        top, total = -math.inf, 0.0
        for j in range(columns):
            width = wide if is_sum else wide - position[start + j]
            scarce = -density[start + j] - width
            room = noise[start + j] - max(scarce, 0.0) - math.log1p(math.exp(-abs(scarce)))
            scratch[start + j] = room
            top = max(top, room)
        for j in range(columns):
            total += math.exp(scratch[start + j] - top)
        out[i] = top + math.log(total) + prior


@inner
def _mode(
    model: Floats, rates: Floats, table: Floats, of_row: int, left: float, right: float, row: Integers,
    work: Floats,
) -> float:  # fmt: skip
    """As ``NoisySums._mode``."""
    position, amount, scratch, density, noise = work[0], work[1], work[2], work[3], work[4]
    mode = 0.5 * (left + right)
    for _ in range(_SECTIONS):
        for i in range(_PARTS):
            row[i], position[i] = of_row, left + (right - left) * i / (_PARTS - 1.0)
        log_weights(model, rates, table, _PARTS, row, position, amount, scratch, density, noise)
        best = 0
        for i in range(_PARTS):
            density[i] += noise[i]
            if density[i] > density[best]:
                best = i
        first, last = max(best - 1, 0), min(best + 1, _PARTS - 1)
        left, right = position[first], position[last]
        mode = 0.5 * (left + right)
        if density[best] - min(density[first], density[last]) < _LEVEL:
            break
    return mode
