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
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.machine_code import uncounted
from suffice.pipeline.math.engines.normal.node_tables import put_line, put_parts, put_point
from suffice.pipeline.math.engines.normal.node_weights import (
    BLOCK,
    BOUND,
    CONSTANT,
    KINK,
    LEVEL,
    LOC,
    LONGER,
    MOST_NODES,
    N_AFTER,
    N_BEST,
    N_CONSTANT,
    N_FALLS,
    N_MEAN,
    N_OVER,
    N_PRECISION,
    N_RHO,
    N_SHRUNK,
    N_SQUARE,
    N_WIDTH,
    OVER,
    RHO,
    SLOPE,
    START,
    add_line,
    bounds,
    log_moments,
    noise_of,
    place_nodes,
    weigh,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.node_weights import Integers
    from suffice.typing import Floats

ROWS = 16
"""The most components that a cell may have."""
SUMS = 14
"""Sums over nodes of 1, mean, its square, variance, its square, N, log variance, its square; least noise; of
heavy tails the mass, and both squares; noise; noise from which on panels are longer, where it is not the
least."""
MERGED = 16.0
"""From so many records on, parts of the prior are one at a node, by two moments of their scales."""
FIRST_CUT = 45.0
"""Nats below the least noise at which it is cut off while no mass is known."""
_STIRLING = 16.0
_LONG_TAILS = 3.5
"""Exponent of a part's tail over log E up to which panels of four standard deviations resolve it."""
_FALLING = 2.0
"""Times the nats of a panel that a steeper tail may fall within one."""
MOST_PANELS = 300
_LOG_5 = math.log(5.0)
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@uncounted
def _tail(x: float) -> float:
    """Stirling's series beyond its leading terms."""
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x


@uncounted
def noise_at(y: Floats, rows: Floats, n: float, m: float, e: float) -> float:
    """Nats that the noise takes."""
    total = 0.0
    second = m * m + e
    for j in range(len(y)):
        total += abs(y[j] - n * (rows[j, 0] + rows[j, 1] * m + rows[j, 2] * second))
    return total


@uncounted
def graded(nats: float, excess: float) -> float:
    """Nats that a panel may span where the noise takes so many more than at its best: little is there."""
    return nats * min(max(1.0 + excess / 4.0, 1.0), 4.0)


@uncounted
def least_noise(y: Floats, rows: Floats, n: float, m: float) -> float:
    """The least noise over E >= 0: at 0 or at a kink, as it is convex and linear between kinks."""
    best: float = noise_at(y, rows, n, m, 0.0)
    for j in range(len(y)):
        if rows[j, 2] != 0.0:
            e = (y[j] / n - rows[j, 0] - rows[j, 1] * m) / rows[j, 2] - m * m
            if e > 0.0:
                best = min(best, noise_at(y, rows, n, m, e))
    return best


@uncounted
def sort(values: Floats, count: int) -> None:
    """Sort the first of the values."""
    for i in range(1, count):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@uncounted
def widest_panel(prior: Floats, m: float) -> float:
    """How wide a panel in m may be, so that it resolves the prior."""
    widest = math.inf
    for k in range(prior.shape[1]):
        # Student's t of the mean under a part has this width.
        width = math.sqrt(prior[4, k] / (prior[3, k] * prior[2, k]))
        widest = min(widest, 0.5 * width + 0.35 * abs(m - prior[1, k]))
    return widest


@uncounted
def set_n(n: float, prior: Floats, n_terms: Floats, of_n: Floats) -> float:
    """Fill in what depends on N alone, (N_ROWS, n_parts); return the log of a bound of p(N, m) over all m."""
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
        of_n[N_CONSTANT + k], of_n[N_RHO + k], of_n[N_OVER + k] = constant, 2.0 * scale / whole, over_n
        of_n[N_PRECISION + k], of_n[N_SHRUNK + k] = precision + n, n / (precision + n)
        of_n[N_AFTER + k] = after
        of_n[N_MEAN + k] = 1.0 / (after - 1.0) if after > 1.0 else 0.0
        of_n[N_SQUARE + k] = 1.0 / (after - 2.0) if after > 2.0 else 0.0
        if n >= 2.0:
            # The best density over E, at E = rho alpha / delta, but for -delta log(rho).
            of_n[N_BEST + k] = (
                constant - (alpha + delta) * math.log1p(delta / alpha) - delta * math.log(alpha / delta)
            )
            of_n[N_FALLS + k] = math.log1p(alpha / delta)
            # Four standard deviations of a part with long tails over log E, three of a steep one.
            of_n[N_WIDTH + k] = (3.0 + min(_LONG_TAILS / delta, 1.0)) * math.sqrt(1.0 / alpha + 1.0 / delta)
        # Given N the mean is Student's t, whose density is at most that of its middle, and that below 1 / sd.
        width = math.sqrt(scale / concentration * (1.0 / precision + 1.0 / whole))
        best = prior[0, k] + log_n_prior - math.log(width)
        if best > top:
            total = total * math.exp(top - best) + 1.0 if total > 0.0 else 1.0
            top = best
        else:
            total += math.exp(best - top)
    return float(top + math.log(total))


@uncounted
def add_point(
    w: float, n: float, loc: float, shift: float, length: float, k: int, scale: float, of_n: Floats,
    sums: Floats, about: Floats, store: bool, merging: Floats, tables: Floats, keys: Integers, picked: Floats,
) -> bool:  # fmt: skip
    """Add a point of one part where E is 0; ``loc`` is from the middle that is known."""
    after, over = of_n[N_AFTER + k], 1.0 / of_n[N_PRECISION + k]
    centre = scale * of_n[N_MEAN + k]
    sums[0] += w
    sums[1] += w * loc
    sums[2] += w * (loc * loc + centre * over)
    away = centre - about[1]
    sums[3] += w * away
    sums[4] += w * (away * away + centre * centre * of_n[N_SQUARE + k])
    sums[5] += w * n
    if not w > about[6]:
        return True
    position = math.log(scale / after) - about[2]
    sums[6] += w * position
    sums[7] += w * (position * position + 1.0 / after)
    return not store or put_point(
        w, loc + shift, length, scale, over, after, about, merging, tables, keys, picked
    )


@uncounted
def integrate_line(  # noqa: C901, PLR0911, PLR0912, PLR0915 - one compiled loop
    n: float, m: float, weight: float, span_m: float, shift_m: float, mass: float, rule: Integers,
    nats: Floats, y: Floats, rows: Floats, prior: Floats, of_n: Floats, ref: float, sums: Floats,
    about: Floats, store: bool, merging: Floats, tables: Floats, keys: Integers, picked: Floats,
    nodes: Floats, of_parts: Floats, blocks: Integers, weights: Floats, kinks: Floats, noise: Floats,
) -> bool:  # fmt: skip
    """Integrate over log E, given N >= 2 and m."""
    parts = prior.shape[1]
    alpha, delta = (n - 1.0) / 2.0, prior[3, 0] + 0.5
    away = m - prior[1, 0]
    least_rho, most_rho = math.inf, 0.0
    for k in range(parts):
        of_parts[CONSTANT + k] = of_n[N_CONSTANT + k]
        of_parts[RHO + k] = of_n[N_RHO + k] + of_n[N_OVER + k] * away * away
        of_parts[LOC + k] = of_n[N_SHRUNK + k] * away + prior[1, 0] - about[0]
        of_parts[OVER + k] = 1.0 / of_n[N_PRECISION + k]
        least_rho = min(least_rho, of_parts[RHO + k])
        most_rho = max(most_rho, of_parts[RHO + k])
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
    # The length in log E of a nat, beside the best density over E.
    bounds(parts, delta, of_n, of_parts)
    bound = -math.inf
    for k in range(parts):
        bound = max(bound, of_parts[BOUND + k])
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
    # Below, even the narrowest part leaves too little. With x = alpha log(1 + rho / E) its density is below
    # its best by x - delta (1 + log(x / delta)) or more, and log t <= t / 5 + log 5 - 1.
    dropped = cut - lowest + 1.0
    dropped = min(1.25 * (dropped + _LOG_5 * delta), dropped + delta * (1.0 + of_n[N_FALLS]))
    low = max(low, least_rho / math.expm1(min(dropped / alpha, 500.0)))
    width = of_n[N_WIDTH]
    points = rule[2]
    panels = 0
    for i in range(count):
        start = max(kinks[i], low)
        end = min(kinks[i + 1], high) if i + 1 < count else high
        if not end > start * (1.0 + 1e-15):
            continue
        slope = outer if i + 1 == count else (noise[i + 1] - noise[i]) / (kinks[i + 1] - kinks[i])
        here, per_slope = noise[i] + slope * (start - kinks[i]) - 4.0, 1.0 / abs(slope)
        here -= max(sums[8], sums[13])
        if slope < 0.0:
            here -= 2.0 * nats[2]
        before = panels
        while start < end:
            stop = end
            if slope != 0.0:
                stop = min(stop, start + graded(nats[2], here) * per_slope)
            step = width
            rises = (alpha * least_rho - delta * start) / (start + least_rho)
            if rises > 0.0:
                step = nats[2] / rises
                if step > width:
                    step = min(width * (1.0 + 0.5 * math.log(1.0 + least_rho / start)), step)
            elif delta > _LONG_TAILS:
                falls = (delta * start - alpha * most_rho) / (start + most_rho)
                if falls > 0.0:
                    fallen = delta * math.log(delta * start / (alpha * most_rho))
                    step = min(
                        width * max(fallen / 8.0, 1.0), graded(_FALLING * nats[2], fallen - 8.0) / falls
                    )
            # An exponential is above its tangent.
            if stop > start * (1.0 + step):
                stop = min(stop, start * math.exp(step))
            if stop + 0.3 * (stop - start) > end:
                stop = end
            if (panels + 1) * points + BLOCK > MOST_NODES:
                return False
            nodes[START + panels], nodes[LONGER + panels] = start, (stop - start) / start
            panels += 1
            here += slope * (stop - start)
            start = stop
        for node in range(before * points, panels * points):
            nodes[KINK + node], nodes[LEVEL + node], nodes[SLOPE + node] = kinks[i], noise[i], slope
    used = panels * points
    if used == 0:
        return True
    place_nodes(panels, points, nodes)
    apart = store and n < about[7]
    weigh(used, n, delta, middle, ref, weight, parts, apart, nodes, of_parts, blocks, weights)
    add_line(n, middle, parts, of_n, of_parts, about, sums)
    if not store:
        first_of, second_of = log_moments(used, 0.5 * n, of_n[N_AFTER], about[2], nodes)
        sums[6] += first_of
        sums[7] += second_of
        sums[12] += noise_of(used, ref, delta, nodes)
        return True
    if not apart:
        return put_line(
            n,
            used,
            points,
            shift_m,
            span_m,
            parts,
            of_n,
            of_parts,
            nodes,
            about,
            merging,
            tables,
            keys,
            picked,
        )
    return put_parts(
        n,
        used,
        points,
        shift_m,
        span_m,
        parts,
        of_n,
        of_parts,
        nodes,
        weights,
        about,
        merging,
        tables,
        keys,
        picked,
    )
