r"""Compiled log weights of sums given N, as those of ``noisy_sum``, at many positions of many N at once.

Model, formulas and symbols as in ``noisy_sum``. What depends on N alone is a column of a table of rows; a
position has the number of its row. Loops over positions call nothing, and become vector instructions.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - compiled loops, in which calls cost too much

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.machine_code import merged, vectorised
from suffice.pipeline.math.distributions.vector_functions import exp, log, log1p
from suffice.pipeline.math.engines.one_sum.spread_factor import add_factor, set_factor

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

POISSON, NEGATIVE_BINOMIAL, GAMMA = range(3)
"""Of sums, ``GammaPoisson``, ``BetaNegativeBinomial`` and ``GammaGamma``."""
FAMILY, FIRST, SECOND, SHAPE, SHARE, LOWER, STEP = range(7)
"""Of a model: its number, both concentrations or a concentration and a rate, r or k, w, and the lattice."""
HEAVIEST, FROM_NOTHING, FACTOR = range(7, 10)
"""Of a spread prior, whose first component the model has: the heaviest component's rate, ``from_nothing``,
and what ``add_factor`` reads from there on."""
CONSTANT, OF_N, ROWS, COUNT, NONE, OF_FACTOR, KINKS = *range(6), 8
"""Of a row: what is added, what depends on N beside it, N but at least 1, N, the weight of no records where
N is below 1, and no number elsewhere, what ``set_factor`` has of a spread prior, and kinks of the noise."""
_NEAR, _NEAR_PER_A, _MOST_STEPPED, _MOST_FACTORS = 4.0, 2.5, 50.0, 13.0
"""Middles up to 4 + 2.5 a are too small for the series, right to 1e-11 beyond; and the largest a for steps
and, of whole ones, for products."""
_NATS, LEAST_AMOUNT = 25.0, math.exp(-600.0)
"""As ``NATS`` of ``adaptive_blocks``, and the least sum of which there is a logarithm."""
_CLOSE, _LEVEL, _SECTIONS, _PARTS = 4.0, 1e-3, 11, 9
"""As in ``noisy_sum``."""


@vectorised
def _log_series(a: float, middle: float) -> float:
    """Log of G(a + x) / G(x + 1), with x + a / 2 the middle, that is no small count."""
    half, by = 0.5 * a, 1.0 / (middle * middle)
    square = half * (half - 1.0)
    odd = square * (half - 0.5)
    series = odd * _c12(square) * by
    series = (series + odd * _c10(square)) * by
    series = (series + odd * _c8(square)) * by
    series = (series + odd * _c6(square)) * by
    series = (series + odd * _c4(square)) * by
    series = (series + odd / 3.0) * by
    return (a - 1.0) * log(middle) - series


@vectorised
def _c4(s: float) -> float:
    """Of the series: 2 B_5(u) / (4 5), over odd, where s = u (u - 1) and odd = s (u - 1/2); so below."""
    return (s - 1.0 / 3.0) / 10.0


@vectorised
def _c6(s: float) -> float:
    return ((s - 1.0) * s + 1.0 / 3.0) / 21.0


@vectorised
def _c8(s: float) -> float:
    return (((s - 2.0) * s + 9.0 / 5.0) * s - 3.0 / 5.0) / 36.0


@vectorised
def _c10(s: float) -> float:
    return ((((s - 10.0 / 3.0) * s + 17.0 / 3.0) * s - 5.0) * s + 5.0 / 3.0) / 55.0


@vectorised
def _c12(s: float) -> float:
    series = (((s - 5.0) * s + 41.0 / 3.0) * s - 472.0 / 21.0) * s
    return ((series + 691.0 / 35.0) * s - 691.0 / 105.0) / 78.0


@vectorised
def _log_ratio(a: float, x: float) -> float:
    """Log of G(a + x) / G(x + 1); small counts are those of larger ones, over what these have more."""
    near = _NEAR + (_NEAR_PER_A - 0.5) * a
    if x >= near:
        return _log_series(a, x + 0.5 * a)
    if a > _MOST_STEPPED:
        return math.lgamma(a + x) - math.lgamma(x + 1.0)
    above, below = 1.0, 1.0
    while x < near:
        above *= x + 1.0
        below *= a + x
        x += 1.0
    return _log_series(a, x + 0.5 * a) + log(above / below)


@merged
def _factor(a: float, j: float, x: float) -> float:
    """Return what is multiplied for a whole a: (a)_x / x! has x + 1 up to x + a - 1, over (a - 1)!."""
    return x + (a - j) if a - j > 0.5 else 1.0


@vectorised
def rising(a: float, x: float) -> float:
    """Log of (a)_x / x!."""
    return 0.0 if a == 1.0 else _log_ratio(a, x) - math.lgamma(a)


@vectorised
def _add_rising(a: float, sign: float, count: int, x: Floats, out: Floats) -> None:
    """Add logs of (a)_x / x!, or take them away."""
    if a == 1.0:
        return
    near, small = _NEAR + (_NEAR_PER_A - 0.5) * a, 0
    for i in range(count):
        small += x[i] < near
    if small > 0 and a <= _MOST_FACTORS and a == math.floor(a):
        constant = sign * math.lgamma(a)
        for i in range(count):
            first = _factor(a, 1.0, x[i]) * _factor(a, 2.0, x[i]) * _factor(a, 3.0, x[i])
            second = _factor(a, 4.0, x[i]) * _factor(a, 5.0, x[i]) * _factor(a, 6.0, x[i])
            third = _factor(a, 7.0, x[i]) * _factor(a, 8.0, x[i]) * _factor(a, 9.0, x[i])
            fourth = _factor(a, 10.0, x[i]) * _factor(a, 11.0, x[i]) * _factor(a, 12.0, x[i])
            out[i] += sign * log((first * second) * (third * fourth)) - constant
        return
    half, power, constant = 0.5 * a, sign * (a - 1.0), sign * math.lgamma(a)
    square = half * (half - 1.0)
    odd = sign * square * (half - 0.5)
    c12, c10, c8 = odd * _c12(square), odd * _c10(square), odd * _c8(square)
    c6, c4, c2 = odd * _c6(square), odd * _c4(square), odd / 3.0
    # Where counts are small the series is that of the least count that is not; what is added is corrected.
    for i in range(count):
        middle = max(x[i], near) + half
        by = 1.0 / (middle * middle)
        series = (((((c12 * by + c10) * by + c8) * by + c6) * by + c4) * by + c2) * by
        out[i] += power * log(middle) - constant - series
    if small == 0:
        return
    at_near = _log_ratio(a, near)
    for i in range(count):
        if x[i] < near:
            out[i] += sign * (_log_ratio(a, x[i]) - at_near)


@vectorised
def set_rows(
    model: Floats, values: Floats, reaches: Floats, count: int, n: Floats, added: Floats, table: Floats
) -> None:
    """Work out what depends on N alone, for so many of them."""
    constant, of_n, rows = table[CONSTANT], table[OF_N], table[ROWS]
    for i in range(count):
        rows[i] = max(n[i], 1.0)
        table[COUNT, i] = n[i]
    a, b = model[FIRST], model[SECOND]
    if model[FAMILY] == POISSON:
        for i in range(count):
            of_n[i] = log1p(b / rows[i])
        for i in range(count):
            constant[i] = added[i] - a * log1p(rows[i] / b)
    else:
        for i in range(count):
            of_n[i] = model[SHAPE] * rows[i]
        if model[FAMILY] == NEGATIVE_BINOMIAL:
            for i in range(count):
                constant[i] = added[i] + log(of_n[i])
        else:
            more = a * math.log(b / model[SHARE])
            for i in range(count):
                constant[i] = added[i] + more + log(of_n[i] * model[STEP])
        _add_rising(a, 1.0, count, of_n, constant)
    if len(model) > FACTOR:
        of_factor, least = table[OF_FACTOR:], math.log(b / model[SHARE] / model[STEP])
        for i in range(count):
            of_factor[0, i] = of_n[i]
        set_factor(model[FACTOR:], least, a, count, of_factor)
    for j in range(len(values)):
        kink = table[KINKS + j]
        if reaches[j] > 0.0:
            for i in range(count):
                kink[i] = reaches[j] * rows[i] - values[j]
        else:
            for i in range(count):
                kink[i] = values[j]


@vectorised
def noise_at(rates: Floats, table: Floats, count: int, row: Integers, amount: Floats, noise: Floats) -> None:
    """Work out log noise at amounts; there are at least two sums."""
    first, second = table[KINKS], table[KINKS + 1]
    for i in range(count):
        noise[i] = -rates[0] * abs(first[row[i]] - amount[i]) - rates[1] * abs(second[row[i]] - amount[i])
    for j in range(2, len(rates)):
        first = table[KINKS + j]
        for i in range(count):
            noise[i] -= rates[j] * abs(first[row[i]] - amount[i])


@vectorised
def log_noise(
    model: Floats, rates: Floats, table: Floats, count: int, row: Integers, position: Floats, amount: Floats,
    noise: Floats,
) -> None:  # fmt: skip
    """Work out amounts and log noise at positions."""
    if model[FAMILY] == GAMMA:
        for i in range(count):
            amount[i] = exp(position[i])
    else:
        for i in range(count):
            amount[i] = position[i]
    noise_at(rates, table, count, row, amount, noise)


@vectorised
def add_density(
    model: Floats, table: Floats, count: int, row: Integers, position: Floats, amount: Floats,
    scratch: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add log densities at positions."""
    # Loops that look up rows do nothing else, as they become no vectors.
    constant, of_n = table[CONSTANT], table[OF_N]
    for i in range(count):
        out[i] += constant[row[i]]
    if model[FAMILY] == POISSON:
        for i in range(count):
            out[i] -= of_n[row[i]] * amount[i]
        _add_rising(model[FIRST], 1.0, count, amount, out)
    elif model[FAMILY] == NEGATIVE_BINOMIAL:
        for i in range(count):
            scratch[i] = of_n[row[i]] + amount[i]
        _add_rising(model[SECOND], 1.0, count, amount, out)
        # log1p(S / rN) is log x less log rN, which is in the constant, at x = rN + S, and
        # x (c)_x / x! = c (c + 1)_y / y! at y = x - 1.
        c = model[FIRST] + model[SECOND]
        log_c = math.log(c)
        for i in range(count):
            scratch[i] -= 1.0
            out[i] -= log_c
        _add_rising(c + 1.0, -1.0, count, scratch, out)
    else:
        a, by_share = model[FIRST], model[SECOND] / model[SHARE]
        lower, step = model[LOWER], model[STEP]
        if lower == 0.0:
            more = (a + 1.0) * math.log(step)
            for i in range(count):
                scratch[i] = of_n[row[i]]
            for i in range(count):
                power = log1p(by_share / (step * amount[i]))
                # log1p(w S / b) is log1p(b / (w S)) and log(w S / b).
                out[i] -= more + (a + scratch[i]) * power + a * position[i]
            if len(model) > FACTOR:
                add_factor(model[FACTOR:], table[OF_FACTOR:], count, row, position, scratch, out)
        else:
            for i in range(count):
                scratch[i] = lower * table[ROWS, row[i]] + step * amount[i]
            for i in range(count):
                out[i] += position[i] - (a + 1.0) * log(scratch[i])
            for i in range(count):
                scratch[i] = log1p(by_share / scratch[i])
            for i in range(count):
                out[i] -= (a + of_n[row[i]]) * scratch[i]


@vectorised
def _typical(model: Floats, n: float) -> float:
    a, b, rows = float(model[FIRST]), float(model[SECOND]), float(model[SHAPE]) * n
    if model[FAMILY] == POISSON:
        return float(math.floor(max(a - 1.0, 0.0) / b * n))
    if model[FAMILY] == NEGATIVE_BINOMIAL:
        return float(math.floor(max(b - 1.0, 0.0) / (a + 1.0) * max(rows - 1.0, 0.0)))
    if len(model) > FACTOR:
        b = float(model[HEAVIEST])
    return b * rows / a / float(model[SHARE])


@vectorised
def _typical_amount(model: Floats, fall: float, n: float, typical: float) -> float:
    """As ``NoisySums._typical``."""
    least, step = model[LOWER] * n, float(model[STEP])
    if typical > least:
        return float((typical - least) / step)
    shape, by_share = model[SHAPE] * n, model[SECOND] / model[SHARE]
    width = min(1.0 / fall, least / step)
    more = step * width
    fewer = (model[FIRST] + shape) * math.log1p(more / (by_share + least))
    drop = fewer - (shape - 1.0) * math.log1p(more / least)
    return float(width / (fall * width + max(drop, 0.0)))


@vectorised
def _insert(columns: Floats, count: int, value: float) -> None:
    """Put a value where it belongs among so many that ascend."""
    i = count
    while i > 0 and columns[i - 1] > value:
        columns[i] = columns[i - 1]
        i -= 1
    columns[i] = value


@vectorised
def set_breaks(model: Floats, rates: Floats, table: Floats, row: int, breaks: Floats) -> int:
    """Amounts at ``NoisySums.breaks``, how many."""
    kinks, fall, n = len(rates), 0.0, table[ROWS, row]
    is_sum = model[FAMILY] != GAMMA
    for j in range(kinks):
        kink = table[KINKS + j, row]
        _insert(breaks[2:], j, math.ceil(kink) if is_sum else kink)
        fall += rates[j]
    typical, margin = _typical(model, n), _NATS / fall
    if not is_sum:
        typical = _typical_amount(model, fall, n, typical)
    first, last = breaks[2] - margin, breaks[kinks + 1] + margin
    breaks[1], breaks[kinks + 2] = first, last
    _insert(breaks[1:], kinks + 2, typical)
    breaks[0], breaks[kinks + 4] = min(first, typical - margin), max(last, typical + margin)
    if len(model) > FACTOR and model[FROM_NOTHING] > 0.0:
        breaks[0] = 0.0
    count = kinks + 5
    for j in range(count):
        if is_sum:
            breaks[j] = max(np.rint(breaks[j]), 0.0)
    if is_sum:
        breaks[count - 1] += 1.0
    return count


@vectorised
def spread(model: Floats, n: float, position: float) -> float:
    """As ``NoisySums.spread``; it rises with positions."""
    if model[FAMILY] == POISSON:
        return max(math.sqrt(position), 1.0)
    if model[FAMILY] == NEGATIVE_BINOMIAL:
        return max(math.sqrt(position * (1.0 + position / (model[SHAPE] * n))), 1.0)
    return 1.0 / math.sqrt(model[SHAPE] * n)


@vectorised
def noise_of_none(values: Floats, rates: Floats) -> float:
    """Log of the noise's distribution where N and A are 0."""
    distance = 0.0
    for j in range(len(values)):
        distance += rates[j] * abs(values[j])
    return -distance


@vectorised
def profiles(
    model: Floats, values: Floats, reaches: Floats, rates: Floats, n_prior: Floats, count: int, n: Floats,
    table: Floats, row: Integers, work: Floats, more_row: Integers, more_work: Floats, out: Floats,
) -> None:  # fmt: skip
    """As ``NoisySums.profile`` at so many N; ``n_prior``: a constant, and whether N + 1 divides it."""
    position, amount, scratch, density, noise = work[0], work[1], work[2], work[3], work[4]
    breaks, columns = work[5], len(rates) + 5
    is_sum, places = model[FAMILY] != GAMMA, count * columns
    for i in range(count):
        out[i] = 0.0
    set_rows(model, values, reaches, count, n, out, table)
    for i in range(count):
        set_breaks(model, rates, table, i, breaks)
        if not is_sum:
            breaks[0], breaks[columns - 1] = breaks[1], breaks[columns - 2]
        for j in range(columns):
            place = breaks[j]
            if is_sum:
                place = min(place, breaks[columns - 1] - 1.0)
            # The first of all rows come first, as loops over rows are faster.
            position[j * count + i], row[j * count + i] = place, i
    if not is_sum:
        # Logarithms of breaks.
        for i in range(places):
            position[i] = log(max(position[i], LEAST_AMOUNT))
    for i in range(places):
        density[i] = 0.0
    log_noise(model, rates, table, places, row, position, amount, noise)
    add_density(model, table, places, row, position, amount, scratch, density)
    best, likeliest, nearest, low, high = work[5], work[6], work[7], work[8], work[9]
    for i in range(count):
        best[i], likeliest[i], nearest[i] = density[i] + noise[i], density[i], noise[i]
        low[i], high[i] = table[KINKS, i], table[KINKS, i]
    for j in range(1, columns):
        for i in range(count):
            best[i] = max(best[i], density[j * count + i] + noise[j * count + i])
            likeliest[i] = max(likeliest[i], density[j * count + i])
            nearest[i] = max(nearest[i], noise[j * count + i])
    for j in range(1, len(rates)):
        for i in range(count):
            low[i], high[i] = min(low[i], table[KINKS + j, i]), max(high[i], table[KINKS + j, i])
    apart = 0
    for i in range(count):
        if likeliest[i] + nearest[i] - best[i] > _CLOSE and n[i] >= 1.0:
            at = 0
            while density[at * count + i] + noise[at * count + i] != best[i] and at < columns - 1:
                at += 1
            likeliest[apart] = position[max(at - 1, 0) * count + i]
            nearest[apart] = position[min(at + 1, columns - 1) * count + i]
            best[apart] = i
            apart += 1
    if apart > 0:
        _set_modes(model, rates, table, apart, best, likeliest, nearest, more_row, more_work)
        for i in range(apart):
            more_work[0, i], more_row[i], more_work[3, i] = likeliest[i], int(best[i]), 0.0
        log_noise(model, rates, table, apart, more_row, more_work[0], more_work[1], more_work[4])
        add_density(model, table, apart, more_row, more_work[0], more_work[1], more_work[2], more_work[3])
        for i in range(apart):
            at = more_row[i]
            position[at], density[at], noise[at] = likeliest[i], more_work[3, i], more_work[4, i]
    fall = 0.0
    for j in range(len(rates)):
        fall += rates[j]
    for i in range(count):
        best[i] = log(high[i] - low[i] + 2.0 / fall)
    for i in range(places):
        scratch[i] = best[row[i]]
    if not is_sum:
        for i in range(places):
            scratch[i] -= position[i]
    for i in range(places):
        scarce = -density[i] - scratch[i]
        density[i] = noise[i] - max(scarce, 0.0) - log1p(exp(-abs(scarce)))
    for i in range(count):
        likeliest[i], nearest[i] = density[i], 0.0
    for j in range(1, columns):
        for i in range(count):
            likeliest[i] = max(likeliest[i], density[j * count + i])
    for j in range(columns):
        for i in range(count):
            nearest[i] += exp(density[j * count + i] - likeliest[i])
    none = noise_of_none(values, rates)
    for i in range(count):
        # A prior that is even, or falls as one over N + 1.
        out[i] = n_prior[0] - n_prior[1] * log1p(n[i])
    for i in range(count):
        out[i] += likeliest[i] + log(nearest[i]) if n[i] >= 1.0 else none


@vectorised
def _set_modes(
    model: Floats, rates: Floats, table: Floats, count: int, of: Floats, left: Floats, right: Floats,
    row: Integers, work: Floats,
) -> None:  # fmt: skip
    """As ``NoisySums._mode``, of so many rows, between positions; ``left`` gets the modes."""
    position, amount, scratch, density = work[0], work[1], work[2], work[3]
    first, last, which = work[5], work[6], work[7]
    for i in range(count):
        first[i], last[i], which[i] = left[i], right[i], i
    active = count
    for _ in range(_SECTIONS):
        for k in range(_PARTS):
            for i in range(active):
                position[k * active + i] = first[i] + (last[i] - first[i]) * (0.125 * k)
                row[k * active + i] = int(of[int(which[i])])
        log_noise(model, rates, table, _PARTS * active, row, position, amount, density)
        add_density(model, table, _PARTS * active, row, position, amount, scratch, density)
        left_open = 0
        for i in range(active):
            best = 0
            for k in range(1, _PARTS):
                if density[k * active + i] > density[best * active + i]:
                    best = k
            start, stop = max(best - 1, 0), min(best + 1, _PARTS - 1)
            at, end = position[start * active + i], position[stop * active + i]
            number = int(which[i])
            left[number] = 0.5 * (at + end)
            lowest = min(density[start * active + i], density[stop * active + i])
            if not density[best * active + i] - lowest < _LEVEL:
                first[left_open], last[left_open], which[left_open] = at, end, which[i]
                left_open += 1
        active = left_open
        if active == 0:
            break
