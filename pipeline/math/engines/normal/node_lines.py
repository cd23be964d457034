r"""Compiled parts of the nested rule: noise, prior, sums over nodes and lines of log E; see ``nested_rule``.

Every function is plain Python that numba compiles for exactly stated arguments, without the interpreter's
lock. Sums are added in one order, so that threads change no digit. The symbols are those of
``moment_weights``: with :math:`\rho = 2 R / N` the integrand of a part of the prior is, for N >= 2,

.. math:: \exp\bigl(\text{base}(N) - (\alpha + \delta) \log(1 + \rho / E) - \delta \log E
    - \textstyle\sum_j |y_j - L_j|\bigr), \qquad \alpha = (N - 1) / 2 \qquad (1)

The noise is convex in E, its least over E >= 0 convex in m, and the least of that convex in N, as they are
of (N, t, q) over the cone q >= t^2 / N: outside of the interval in which one is below T nats, all is above.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.machine_code import inner

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

ROWS, PARTS = 16, 40
"""The most components and parts of a prior that a cell may have."""
SLOTS, FIELDS = 4096, 4
"""Slots of a table of merged components, and sums in each."""
SUMS = 9
"""Sums over nodes of 1, mean, its square, variance, its square, N, log variance, its square; least noise."""
MERGED = 32.0
"""From so many records on, parts of the prior are one at a node, by two moments of their scales."""
FIRST_CUT = 45.0
"""Nats below the least noise at which it is cut off while no mass is known."""
_PART = 12.0
"""Nats below the best part of the prior at a node, at which another is left out there."""
_STIRLING = 16.0
_EXACT = 1e8
"""Below this many records, log(1 + x) is as good as log1p(x), which takes twice as long."""
MOST_PANELS = 300
_FAR = 30000.0
_FEW = 64.0
"""Below this concentration an inverse gamma is too skew to be widened: it is repeated along an interval."""
_LONG = 0.5
"""Of log variances: longer intervals are several pieces."""
_SCATTERED = 0.005
"""Relative variance of a part's scales in a panel from which on its nodes stay apart."""
_TOLD = 4.0
"""Spreads from the middle beyond which locations are told apart by their logarithm."""
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


def _gauss_table() -> tuple[Floats, Floats, Floats]:
    """Gauss-Legendre nodes and weights on 0..1 by number, and where the weights so far end."""
    nodes, weights, ends = np.zeros((3, 7, 8))
    for number in range(1, 7):
        x, w = np.polynomial.legendre.leggauss(number)
        nodes[number, :number], weights[number, :number] = (1.0 + x) / 2.0, w / 2.0
        ends[number, 1 : number + 1] = np.cumsum(w / 2.0)
    return nodes, weights, ends


NODES, WEIGHTS, ENDS = _gauss_table()


@inner
def _tail(x: float) -> float:
    """Stirling's series beyond its leading terms."""
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x


@inner
def noise_at(y: Floats, rows: Floats, n: float, m: float, e: float) -> float:
    """Nats that the noise takes."""
    total = 0.0
    second = m * m + e
    for j in range(len(y)):
        total += abs(y[j] - n * (rows[j, 0] + rows[j, 1] * m + rows[j, 2] * second))
    return total


@inner
def graded(nats: float, excess: float) -> float:
    """Nats that a panel may span where the noise takes so many more than at its best: little is there."""
    return nats * min(max(1.0 + excess / 4.0, 1.0), 4.0)


@inner
def least_noise(y: Floats, rows: Floats, n: float, m: float) -> float:
    """The least noise over E >= 0: at 0 or at a kink, as it is convex and linear between kinks."""
    best: float = noise_at(y, rows, n, m, 0.0)
    for j in range(len(y)):
        if rows[j, 2] != 0.0:
            e = (y[j] / n - rows[j, 0] - rows[j, 1] * m) / rows[j, 2] - m * m
            if e > 0.0:
                best = min(best, noise_at(y, rows, n, m, e))
    return best


@inner
def sort(values: Floats, count: int) -> None:
    """Sort the first of the values."""
    for i in range(1, count):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@inner
def widest_panel(prior: Floats, m: float) -> float:
    """How wide a panel in m may be, so that it resolves the prior."""
    widest = math.inf
    for k in range(prior.shape[1]):
        # Student's t of the mean under a part has this width.
        width = math.sqrt(prior[4, k] / (prior[3, k] * prior[2, k]))
        widest = min(widest, 0.5 * width + 0.35 * abs(m - prior[1, k]))
    return widest


@inner
def set_n(n: float, prior: Floats, n_terms: Floats, of_n: Floats) -> float:
    """Fill in what depends on N alone, (9, n_parts); return the log of a bound of p(N, m) over all m."""
    whole = max(n, 1.0)
    log_n_prior = n_terms[0] - n_terms[1] * math.log1p(n)
    alpha = max(n - 1.0, 0.0) / 2.0
    top, total = -math.inf, 0.0
    for k in range(prior.shape[1]):
        precision, concentration, scale = prior[2, k], prior[3, k], prior[4, k]
        delta = concentration + 0.5
        constant = prior[0, k] + log_n_prior
        if n > 0.0:
            if n <= 1.0:
                ratio, side = math.lgamma(delta), delta * math.log(2.0)
            else:
                far = alpha + delta
                if alpha >= _STIRLING:
                    ratio = (far - 0.5) * math.log1p(delta / alpha) - delta + _tail(far) - _tail(alpha)
                else:
                    ratio = math.lgamma(far) - math.lgamma(alpha) - delta * math.log(alpha)
                side = delta * math.log1p(-1.0 / n)
            constant += ratio + side + concentration * math.log(scale) - math.lgamma(concentration)
            constant += 0.5 * math.log(whole * precision / (precision + whole)) - _HALF_LOG_2_PI
        over_n = precision / (precision + whole)
        after = concentration + n / 2.0
        of_n[0, k], of_n[1, k], of_n[2, k] = constant, 2.0 * scale / whole, over_n
        of_n[3, k], of_n[4, k], of_n[5, k] = precision + n, n / (precision + n), after
        of_n[6, k] = 1.0 / (after - 1.0) if after > 1.0 else 0.0
        of_n[7, k] = 1.0 / (after - 2.0) if after > 2.0 else 0.0
        # Given N the mean is Student's t, whose density is at most that of its middle, and that below 1 / sd.
        width = math.sqrt(scale / concentration * (1.0 / precision + 1.0 / whole))
        best = prior[0, k] + log_n_prior - math.log(width)
        if best > top:
            total = total * math.exp(top - best) + 1.0 if total > 0.0 else 1.0
            top = best
        else:
            total += math.exp(best - top)
    return float(top + math.log(total))


@inner
def _put(table: Floats, keys: Integers, key: int, w: float, loc: float, square: float, heavy: float) -> bool:
    """Add to a merged component; false where the table is full."""
    slot = ((key * 0x9E3779B97F4A7C1) >> 20) & (SLOTS - 1)
    for _ in range(SLOTS // 2):
        if keys[slot] == key or keys[slot] == -1:
            keys[slot] = key
            table[slot, 0] += w
            table[slot, 1] += w * loc
            table[slot, 2] += w * (loc * loc + square)
            table[slot, 3] += w * heavy
            return True
        slot = (slot + 1) & (SLOTS - 1)
    return False


@inner
def _key(loc: float, square: float, degrees: float) -> int:
    """Components alike in width, in location as far as it matters, and in tails have one key."""
    # By factors of 2 of the width: log2(width) = log2(square) / 2.
    alike = min(max((math.frexp(square)[1] + 1) >> 1, -4), 60)
    step = max(0.35 * 2.0**alike, 0.06) if alike < 0 else 0.35 * 2.0**alike
    away = abs(loc)
    if away > _TOLD:
        loc *= _TOLD * (1.0 + math.log(away / _TOLD)) / away
    position = min(max(math.floor(loc / step + 0.5), -_FAR), _FAR)
    # By halves of a factor of 2 of the degrees of freedom.
    fraction, power = math.frexp(degrees)
    tails = min(max(2 * power + int(4.0 * fraction) - 2, -40), 12)
    return ((alike + 200) * 128 + tails + 40) * 65536 + int(position) + 32768


@inner
def put_mean(
    w: float, loc: float, loc_square: float, scale: float, over: float, length: float, k: int,
    of_n: Floats, about: Floats, tables: Floats, keys: Integers,
) -> bool:  # fmt: skip
    """Add Student distributions of the mean, about an interval of this length; ``over`` is 1 / precision."""
    after = of_n[5, k]
    square = (scale / after * over + loc_square + length * length / 12.0) / (about[4] * about[4])
    at = (loc - about[3]) / about[4]
    # Student distributions differ less than inverse gammas do: by whole factors of 2.
    key = _key(at, square, math.ldexp(0.5, math.frexp(2.0 * after)[1]))
    is_stored: bool = _put(tables[0], keys[0], key, w, at, square, 0.5 / after)
    return is_stored


@inner
def add(
    w: float, n: float, loc: float, loc_square: float, e: float, span_u: float, shift_u: float, k: int,
    scale: float, scatter: float, over: float, of_n: Floats, sums: Floats, about: Floats, store: bool,
    tables: Floats, keys: Integers,
) -> bool:  # fmt: skip
    """Add a node of one part, or of all with these variances of their locs and scales, to sums and variance.

    ``loc`` is from the middle that is known, ``over`` 1 / precision.
    """
    scale += 0.5 * n * e
    scatter /= scale * scale
    after = of_n[5, k]
    centre = scale * of_n[6, k]
    sums[0] += w
    sums[1] += w * loc
    sums[2] += w * (loc * loc + loc_square + centre * over)
    away = centre - about[1]
    sums[3] += w * away
    sums[4] += w * (away * away + centre * centre * (of_n[7, k] + scatter * (1.0 + of_n[7, k])))
    sums[5] += w * n
    if w > about[6]:
        position = math.log(scale / after) - 0.5 * scatter - about[2]
        sums[6] += w * position
        sums[7] += w * (position * position + 1.0 / after + scatter)
        if store:
            slope = 0.5 * n * e / scale
            length = slope * span_u
            square, pieces = 1.0 / after + scatter, 1
            if after >= _FEW:
                pieces = min(int(length / _LONG) + 1, 4)
                position += slope * shift_u
                length /= pieces
                square += length * length / 12.0
            elif length * length * after > 0.5:
                # Equal steps with the interval's variance.
                pieces = min(int(math.sqrt(length * length * after)) + 2, 6)
                position += slope * shift_u
                length /= math.sqrt(pieces * pieces - 1.0)
            square /= about[5] * about[5]
            for piece in range(pieces):
                at = position + (length * (piece - 0.5 * (pieces - 1.0)) if pieces > 1 else 0.0)
                at /= about[5]
                key = _key(at, square, 2.0 * after)
                if not _put(tables[1], keys[1], key, w / pieces, at, square, 0.5 / after):
                    return False
    return True


@inner
def integrate_line(  # noqa: C901, PLR0911, PLR0912, PLR0915 - one compiled loop
    n: float, m: float, weight: float, span_m: float, shift_m: float, mass: float, rule: Integers,
    nats: Floats, y: Floats, rows: Floats, prior: Floats, of_n: Floats, ref: float, sums: Floats,
    about: Floats, store: bool, tables: Floats, keys: Integers,
) -> bool:  # fmt: skip
    """Integrate over log E, given N >= 2 and m."""
    parts = prior.shape[1]
    rho, scales, locs, overs = np.empty(PARTS), np.empty(PARTS), np.empty(PARTS), np.empty(PARTS)
    kinks, noise, panel = np.empty(ROWS + 1), np.empty(ROWS + 1), np.empty((8, PARTS))
    alpha = (n - 1.0) / 2.0
    least_rho, least_delta, most_delta = math.inf, math.inf, 0.0
    for k in range(parts):
        square = (m - prior[1, k]) * (m - prior[1, k])
        rho[k] = of_n[1, k] + of_n[2, k] * square
        scales[k] = prior[4, k] + 0.5 * prior[2, k] * of_n[4, k] * square
        locs[k] = of_n[4, k] * (m - prior[1, k]) + prior[1, k] - about[0]
        overs[k] = 1.0 / of_n[3, k]
        delta = prior[3, k] + 0.5
        least_rho = min(least_rho, rho[k])
        least_delta, most_delta = min(least_delta, delta), max(most_delta, delta)
    kinks[0], count, outer = 0.0, 1, 0.0
    for j in range(len(y)):
        if rows[j, 2] != 0.0:
            outer += n * abs(rows[j, 2])
            e = (y[j] / n - rows[j, 0] - rows[j, 1] * m) / rows[j, 2] - m * m
            if e > 0.0:
                kinks[count] = e
                count += 1
    sort(kinks, count)
    lowest = math.inf
    first, last, middle = -1, -1, 0.0
    for i in range(count):
        noise[i] = noise_at(y, rows, n, m, kinks[i])
        if noise[i] < lowest:
            lowest, middle = noise[i], kinks[i]
    # The best density over E, at E = rho alpha / delta of each part, and the length in log E of a nat.
    bound = -math.inf
    for k in range(parts):
        delta = prior[3, k] + 0.5
        best = of_n[0, k] - (alpha + delta) * math.log1p(delta / alpha)
        bound = max(bound, best - delta * math.log(rho[k] * alpha / delta))
    short = min(2.0, 4.0 / (outer * max(middle, least_rho)))
    cut = lowest + FIRST_CUT
    if mass > 0.0:
        cut = bound - ref + math.log(weight * short / mass) + nats[3] + 3.0
    if lowest > cut:
        return True
    for i in range(count):
        if noise[i] <= cut:
            if first < 0:
                first = i
            last = i
    if first < 0:
        return True
    low, high = 0.0, 0.0
    if first > 0:
        low = kinks[first] - (kinks[first] - kinks[first - 1]) * (cut - noise[first]) / (
            noise[first - 1] - noise[first]
        )
    if last == count - 1:
        high = kinks[last] + (cut - noise[last]) / outer
    else:
        high = kinks[last] + (kinks[last + 1] - kinks[last]) * (cut - noise[last]) / (
            noise[last + 1] - noise[last]
        )
    # Below, even the narrowest part leaves too little: alpha log(1 + rho / E) = cut - noise.
    low = max(low, least_rho / math.expm1(min((cut - lowest + 1.0) / alpha, 500.0)))
    width = 4.0 * math.sqrt(1.0 / alpha + 1.0 / most_delta)
    points = rule[2]
    merged = n >= about[7]
    panels = 0
    for i in range(count):
        start = max(kinks[i], low)
        end = min(kinks[i + 1], high) if i + 1 < count else high
        if not end > start * (1.0 + 1e-15):
            continue
        slope = outer if i + 1 == count else (noise[i + 1] - noise[i]) / (kinks[i + 1] - kinks[i])
        while start < end:
            rises = (alpha * least_rho - least_delta * start) / (start + least_rho)
            step = width
            if rises > 0.0:
                step = min(width * (1.0 + 0.5 * math.log1p(least_rho / start)), nats[2] / rises)
            stop = min(end, start * math.exp(step))
            if slope > 0.0:
                here = noise[i] + slope * (start - kinks[i]) - sums[8]
                stop = min(stop, start + graded(nats[2], here - 4.0) / slope)
            elif slope < 0.0:
                here = noise[i] + slope * (start - kinks[i]) - sums[8]
                allowed = graded(nats[2], here - 4.0 - 2.0 * nats[2])
                stop = min(stop, start - allowed / slope)
            if stop + 0.3 * (stop - start) > end:
                stop = end
            length, log_start = math.log1p((stop - start) / start), math.log(start)
            best, heaviest = -math.inf, 0
            panel_mass, panel_scale, panel_loc, panel_square, panel_over = 0.0, 0.0, 0.0, 0.0, 0.0
            if not merged:
                panel[:, :parts] = 0.0
            for node in range(points):
                e = start * math.exp(length * NODES[points, node])
                u = log_start + length * NODES[points, node]
                here = noise[i] + slope * (e - kinks[i])
                scale_of_node = weight * length * WEIGHTS[points, node]
                span = length * WEIGHTS[points, node]
                shift = length * (0.5 * (ENDS[points, node] + ENDS[points, node + 1]) - NODES[points, node])
                total, first_of, second_of = 0.0, 0.0, 0.0
                loc, loc_square, over = 0.0, 0.0, 0.0
                most_weight = 0.0
                for k in range(parts):
                    delta = prior[3, k] + 0.5
                    plain = of_n[0, k] - delta * u
                    if plain < best - _PART:
                        continue
                    x = rho[k] / e
                    # log(1 + x) >= x / (1 + x).
                    if plain - (alpha + delta) * x / (1.0 + x) < best - _PART:
                        continue
                    log_density = plain - (alpha + delta) * (
                        math.log(1.0 + x) if alpha < _EXACT else math.log1p(x)
                    )
                    best = max(best, log_density)
                    if log_density < best - _PART:
                        continue
                    w = scale_of_node * math.exp(log_density - here - ref)
                    if merged:
                        total += w
                        first_of += w * scales[k]
                        second_of += w * scales[k] * scales[k]
                        loc += w * locs[k]
                        loc_square += w * locs[k] * locs[k]
                        over += w * overs[k]
                        if w > most_weight:
                            heaviest, most_weight = k, w
                    else:
                        panel[node, k] = w
                if merged and total > 0.0:
                    first_of /= total
                    second_of = max(second_of / total - first_of * first_of, 0.0)
                    loc /= total
                    loc_square = max(loc_square / total - loc * loc, 0.0)
                    over /= total
                    if not add(
                        total, n, loc, loc_square, e, span, shift, heaviest, first_of, second_of, over, of_n,
                        sums, about, store, tables, keys,
                    ):  # fmt: skip
                        return False
                    panel_mass += total
                    panel_scale += total * (first_of + 0.5 * n * e)
                    panel_loc += total * loc
                    panel_square += total * (loc_square + loc * loc)
                    panel_over += total * over
                # The next node of a panel is at most some nats off.
                best -= 3.0 * nats[2]
            if store and panel_mass > about[6]:
                loc = panel_loc / panel_mass
                loc_square = max(panel_square / panel_mass - loc * loc, 0.0)
                if not put_mean(
                    panel_mass, loc + shift_m, loc_square, panel_scale / panel_mass, panel_over / panel_mass,
                    span_m, heaviest, of_n, about, tables, keys,
                ):  # fmt: skip
                    return False
            for k in range(0 if merged else parts):
                w, first_of, second_of = 0.0, 0.0, 0.0
                for node in range(points):
                    e = start * math.exp(length * NODES[points, node])
                    w += panel[node, k]
                    first_of += panel[node, k] * e
                    second_of += panel[node, k] * e * e
                if not w > 0.0:
                    continue
                middle = first_of / w
                scatter = 0.25 * n * n * max(second_of / w - middle * middle, 0.0)
                scale = scales[k] + 0.5 * n * middle
                shrunk = of_n[4, k]
                apart = store and scatter > _SCATTERED * scale * scale
                for node in range(points if apart else 1):
                    span, shift = 0.0, 0.0
                    if apart:
                        w, scatter = panel[node, k], 0.0
                        if not w > 0.0:
                            continue
                        middle = start * math.exp(length * NODES[points, node])
                        span = length * WEIGHTS[points, node]
                        shift = length * (
                            0.5 * (ENDS[points, node] + ENDS[points, node + 1]) - NODES[points, node]
                        )
                        scale = scales[k] + 0.5 * n * middle
                    if not add(
                        w, n, locs[k], 0.0, middle, span, shift, k, scales[k], scatter, overs[k], of_n, sums,
                        about, store, tables, keys,
                    ):  # fmt: skip
                        return False
                    if store and w > about[6] and not put_mean(
                        w, locs[k] + shrunk * shift_m, 0.0, scale, overs[k], shrunk * span_m, k, of_n, about,
                        tables, keys,
                    ):  # fmt: skip
                        return False
            start = stop
            panels += 1
            if panels > MOST_PANELS:
                return False
    return True
