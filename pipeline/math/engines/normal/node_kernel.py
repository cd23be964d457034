"""Compiled loops of the nested rule over N and m, and over cells; see ``nested_rule`` and ``node_lines``.

Machine code is kept beside this module while it stays as it is: whoever changes only what it calls removes
``__pycache__``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.integer_rules import integer_rule
from suffice.pipeline.math.distributions.machine_code import compiled, inner, read, uncounted, written
from suffice.pipeline.math.engines.normal.node_lines import (
    FIRST_CUT,
    MERGED,
    MOST_PANELS,
    ROWS,
    SUMS,
    add_point,
    graded,
    integrate_line,
    least_noise,
    noise_at,
    set_n,
    sort,
    widest_panel,
)
from suffice.pipeline.math.engines.normal.node_picks import NUMBER, PICK_FIELDS, SPARE, start_picking
from suffice.pipeline.math.engines.normal.node_tables import FIELDS, MERGING_ROWS, MOST_MERGED, SLOTS
from suffice.pipeline.math.engines.normal.node_weights import (
    MIDDLES,
    MOST_NODES,
    N_AFTER,
    N_CONSTANT,
    N_OVER,
    N_RHO,
    N_ROWS,
    N_SHRUNK,
    NODE_ROWS,
    NODES,
    PART_ROWS,
    PARTS,
    WEIGHTS,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.node_weights import Integers
    from suffice.typing import Floats

__all__ = ["NUMBER", "PICK_FIELDS", "RULES", "SPARE", "cells"]

_MOST_SLICES = 3000
_GOLDEN, _SECTIONS = 0.5 * (3.0 - math.sqrt(5.0)), 25
_TRUSTED = 0.3
"""Of the tolerance: nothing smaller is stated, as rules are off alike by some of it."""
_NEAR = 16.0
"""Below this many records all of them are nodes."""
_KEPT = 1e-7
"""Share of the mass that a component of a marginal has at least."""
_NONE, _HEAVY = 2.0, 4.0
"""Concentrations up to which an inverse gamma has no second moment, and a large one."""
_DEEPER = 10.0
"""Nats farther down that a single record is looked for where it has none."""
_CONTRADICTED = 8.0
"""Nats by which most mass is above the least noise, from which on panels there are not longer."""
_LEAST_MASS = math.exp(-600.0)
"""Of a cell, beside its reference: weights below e^-700 count as that, and would be all that is seen."""
_UNLIKELY = 0.002
"""Of a squared deviation: heavy tails that have less say nothing of what records within bounds can have."""

# Levels of fineness: nodes a panel in N, m and log E, nats that a panel of each spans where most mass is, and
# nats below the mass at which the rest is cut off. Given N and m the noise is linear in E between kinks, so
# nats say all; over m and N what is integrated is a sum of exponentials with up to three times the slope of
# the least noise, and panels have to be shorter.
RULES: tuple[tuple[tuple[int, int, int], tuple[float, float, float, float]], ...] = (
    ((2, 3, 3), (2.5, 2.25, 3.0, 14.0)),
    ((3, 4, 4), (2.5, 2.25, 3.0, 16.0)),
    ((4, 5, 5), (2.5, 2.25, 3.0, 18.0)),
    ((5, 6, 6), (2.0, 1.5, 2.5, 20.0)),
)


@uncounted
def _slice(  # noqa: C901, PLR0912, PLR0915 - one compiled loop
    n: float, weight: float, rule: Integers, nats: Floats, y: Floats, rows: Floats, prior: Floats,
    n_terms: Floats, of_n: Floats, nats_of_n: float, known: float, ref: float, sums: Floats, about: Floats,
    store: bool, merging: Floats, tables: Floats, keys: Integers, picked: Floats, nodes: Floats,
    of_parts: Floats, blocks: Integers, weights: Floats, state: Floats, kinks: Floats, noise: Floats,
    at: Floats,
) -> bool:  # fmt: skip
    """Integrate over m and log E, given N >= 2; ``state`` gets the least noise and whether it was cut."""
    bound = set_n(n, prior, n_terms, of_n)
    count, bend, curve = 0, 0.0, 0.0
    for j in range(len(y)):
        a, b, c = rows[j, 0], rows[j, 1], rows[j, 2]
        if c == 0.0:
            if b != 0.0:
                at[count] = (y[j] / n - a) / b
                count += 1
            continue
        bend += abs(c) * b / c
        curve += abs(c)
        level = (y[j] / n - a) / c
        root = b * b / (4.0 * c * c) + level
        if root >= 0.0:
            at[count], at[count + 1] = -b / (2.0 * c) - math.sqrt(root), -b / (2.0 * c) + math.sqrt(root)
            count += 2
        for other in range(j):
            if rows[other, 2] != 0.0:
                slope = b / c - rows[other, 1] / rows[other, 2]
                if slope != 0.0:
                    at[count] = (level - (y[other] / n - rows[other, 0]) / rows[other, 2]) / slope
                    count += 1
    at[count] = -bend / (2.0 * curve)
    count += 1
    sort(at, count)
    index, least = 0, math.inf
    for i in range(count):
        value = least_noise(y, rows, n, at[i])
        if value < least:
            index, least = i, value
    middle = at[index]
    # Golden sections: the least noise is convex in m, so its minimum is beside the best of these.
    left, right = at[max(index - 1, 0)], at[min(index + 1, count - 1)]
    inner_left, inner_right = left + _GOLDEN * (right - left), right - _GOLDEN * (right - left)
    value_left, value_right = least_noise(y, rows, n, inner_left), least_noise(y, rows, n, inner_right)
    for _ in range(_SECTIONS):
        if value_left < value_right:
            if value_left < least:
                middle, least = inner_left, value_left
            right, inner_right, value_right = inner_right, inner_left, value_left
            inner_left = left + _GOLDEN * (right - left)
            value_left = least_noise(y, rows, n, inner_left)
        else:
            if value_right < least:
                middle, least = inner_right, value_right
            left, inner_left, value_left = inner_left, inner_right, value_right
            inner_right = right - _GOLDEN * (right - left)
            value_right = least_noise(y, rows, n, inner_right)
    state[0], state[1] = least, 0.0
    sums[8] = min(sums[8], least)
    # By convexity what is farther than m from the middle has at most e^-noise times |m - middle| over the
    # nats that it lost; where the slice's noise is least it is some nats wide.
    wide = 0.0
    mass = max(known, sums[0])
    if mass == 0.0:
        cut = least + FIRST_CUT
    else:
        wide = bound - ref - math.log(mass) + nats[3] + 1.0 + math.log(weight)
        cut = wide + math.log(min(1.0, 4.0 / (n * nats_of_n))) if nats_of_n > 0.0 else wide
        cut = max(cut, least + 3.0) if nats_of_n == 0.0 else cut
    if least > cut:
        state[1] = 1.0
        return True
    points = rule[1]
    for direction in (-1.0, 1.0):
        position, here = middle, least
        panels = 0
        while True:
            if mass == 0.0:
                if here > cut:
                    break
            elif here > least + 2.0 and here > wide + math.log(
                min(abs(position - middle) / (here - least), 1.0)
            ):
                break
            edge = math.inf
            for i in range(count):
                away = direction * (at[i] - position)
                if away > 1e-13 * (1.0 + abs(position)):
                    edge = min(edge, away)
            length = min(edge, widest_panel(prior, position))
            allowed = graded(nats[1], here - max(sums[8], sums[13]))
            after = least_noise(y, rows, n, position + direction * length)
            if after - here > allowed:
                short, long = 0.0, length
                for _ in range(40):
                    # By convexity a chord's share stays below what is allowed.
                    rise = after - here
                    length = max(short + 0.1 * (long - short), min(length * allowed / rise, 0.9 * long))
                    if length >= 0.9 * long and rise > 0.0:
                        length = 0.5 * (short + long)
                    after = least_noise(y, rows, n, position + direction * length)
                    if after - here > allowed:
                        long = length
                    else:
                        short = length
                        if after - here > 0.5 * allowed:
                            break
                length = short if short > 0.0 else length
                after = least_noise(y, rows, n, position + direction * length)
            if not length > 0.0:
                return False
            if edge < 1.3 * length:
                length = edge
                after = least_noise(y, rows, n, position + direction * length)
            for node in range(points):
                m = position + direction * length * NODES[points, node]
                span = length * WEIGHTS[points, node]
                shift = direction * length * MIDDLES[points, node]
                if not integrate_line(
                    n, m, weight * span, span, shift, mass, rule, nats, y, rows, prior, of_n, ref, sums,
                    about, store, merging, tables, keys, picked, nodes, of_parts, blocks, weights, kinks,
                    noise,
                ):  # fmt: skip
                    return False
            position += direction * length
            here = after
            panels += 1
            if panels > MOST_PANELS:
                return False
    return True


@inner
def _few(  # noqa: C901, PLR0912, PLR0915 - one compiled loop
    n: float, rule: Integers, nats: Floats, y: Floats, rows: Floats, prior: Floats, n_terms: Floats,
    of_n: Floats, known: float, ref: float, sums: Floats, about: Floats, store: bool, merging: Floats,
    tables: Floats, keys: Integers, picked: Floats,
) -> bool:  # fmt: skip
    """N = 0, a point, and N = 1, a curve in m: E is 0."""
    bound = set_n(n, prior, n_terms, of_n)
    parts = prior.shape[1]
    if n == 0.0:
        here = noise_at(y, rows, 0.0, 0.0, 0.0)
        for k in range(parts):
            w = math.exp(of_n[N_CONSTANT + k] - here - ref)
            loc = prior[1, k] - about[0]
            if not add_point(
                w, 0.0, loc, 0.0, 0.0, k, prior[4, k], of_n, sums, about, store, merging, tables, keys, picked
            ):
                return False
        return True
    at = np.empty(2 * ROWS + 3)
    count, bend, curve, level, least = 0, 0.0, 0.0, 0.0, math.inf
    for j in range(len(y)):
        a, b, c = rows[j, 0], rows[j, 1], rows[j, 2]
        if c == 0.0:
            if b != 0.0:
                at[count] = (y[j] - a) / b
                count += 1
            continue
        bend += abs(c) * b / c
        curve += abs(c)
        level += abs(c) * (y[j] - a) / c
        root = b * b / (4.0 * c * c) + (y[j] - a) / c
        if root >= 0.0:
            at[count], at[count + 1] = -b / (2.0 * c) - math.sqrt(root), -b / (2.0 * c) + math.sqrt(root)
            count += 2
    at[count] = -bend / (2.0 * curve)
    count += 1
    for i in range(count):
        least = min(least, noise_at(y, rows, 1.0, at[i], 0.0))
    cut = least + FIRST_CUT
    if max(known, sums[0]) > 0.0:
        deeper = _DEEPER if of_n[N_AFTER] <= _NONE else 0.0
        cut = min(cut, bound - ref - math.log(max(known, sums[0])) + nats[3] + deeper)
    if least > cut:
        return True
    # Beyond all roots the noise is at least curve m^2 + bend m - level.
    reach = math.sqrt(max(bend * bend / (4.0 * curve * curve) + (cut + level) / curve, 0.0))
    low, high = at[count - 1] - reach, at[count - 1] + reach
    at[count], at[count + 1] = low, high
    count += 2
    sort(at, count)
    points, panels = rule[1], 0
    for i in range(count - 1):
        start, end = max(at[i], low), min(at[i + 1], high)
        while start < end:
            stop = min(end, start + widest_panel(prior, start), start + widest_panel(prior, end))
            steepest = 0.0
            for edge in (start, stop):
                total = 0.0
                for j in range(len(y)):
                    total += abs(rows[j, 1] + 2.0 * rows[j, 2] * edge)
                steepest = max(steepest, total)
            stop = min(stop, start + nats[1] / steepest)
            length = stop - start
            for node in range(points):
                m = start + length * NODES[points, node]
                here = noise_at(y, rows, 1.0, m, 0.0)
                if here > cut:
                    continue
                span = length * WEIGHTS[points, node]
                shift = length * MIDDLES[points, node]
                for k in range(parts):
                    square = (m - prior[1, k]) * (m - prior[1, k])
                    scale = prior[4, k] + 0.5 * prior[2, k] * of_n[N_SHRUNK + k] * square
                    log_density = of_n[N_CONSTANT + k] - (prior[3, k] + 0.5) * math.log(
                        of_n[N_RHO + k] + of_n[N_OVER + k] * square
                    )
                    w = span * math.exp(log_density - here - ref)
                    shrunk = of_n[N_SHRUNK + k]
                    loc = shrunk * (m - prior[1, k]) + prior[1, k] - about[0]
                    if not add_point(
                        w, 1.0, loc, shrunk * shift, shrunk * span, k, scale, of_n, sums, about, store,
                        merging, tables, keys, picked,
                    ):  # fmt: skip
                        return False
            start = stop
            panels += 1
            if panels > 20 * MOST_PANELS:
                return False
    return True


@inner
def _all_n(  # noqa: C901, PLR0912 - one compiled loop
    estimate: float, nats_of_n: float, support: Floats, rule: Integers, nats: Floats, y: Floats, rows: Floats,
    prior: Floats, n_terms: Floats, of_n: Floats, known: float, ref: float, sums: Floats, about: Floats,
    store: bool, merging: Floats, tables: Floats, keys: Integers, picked: Floats, nodes: Floats,
    of_parts: Floats, blocks: Integers, weights: Floats,
) -> bool:  # fmt: skip
    """Sum over N: from what was observed outward, integers one by one where they are few."""
    least, most = max(support[0], 2.0), support[1]
    offset, weight, state = np.empty(8), np.empty(8), np.empty(2)
    kinks, noise, at = np.empty(ROWS + 1), np.empty(ROWS + 1), np.empty(ROWS * ROWS + 3 * ROWS + 2)
    if most >= 2.0:
        centre = min(max(math.floor(estimate), least), most)
        for direction in (1.0, -1.0):
            start = centre if direction > 0.0 else centre - 1.0
            before = math.inf
            slices = 0
            while least <= start <= most:
                away = abs(start - estimate) * nats_of_n if sums[13] < math.inf else 0.0
                number = float(math.floor(graded(nats[0], away) / nats_of_n))
                number = min(number, math.floor((start if direction > 0.0 else 0.7 * start) / 3.0))
                if start < _NEAR:
                    number = 1.0
                number = max(number, 1.0)
                number = min(number, most - start + 1.0 if direction > 0.0 else start - least + 1.0)
                middle = start + direction * (number - 1.0) / 2.0
                of_mean, of_variance = sums[2], sums[4]
                points = integer_rule(number, rule[0], offset, weight)
                skipped = True
                for i in range(points):
                    if not _slice(
                        middle + direction * offset[i], weight[i], rule, nats, y, rows, prior, n_terms, of_n,
                        nats_of_n, known, ref, sums, about, store, merging, tables, keys, picked, nodes,
                        of_parts, blocks, weights, state, kinks, noise, at,
                    ):  # fmt: skip
                        return False
                    skipped = skipped and state[1] > 0.0
                    slices += 1
                if start < _NEAR and of_n[N_AFTER] <= _HEAVY:
                    sums[10] += sums[2] - of_mean
                    sums[11] += sums[4] - of_variance
                # Convex in N: once it rises and nothing is left, nothing follows.
                if skipped and state[0] >= before:
                    break
                before = state[0]
                start += direction * number
                if slices > _MOST_SLICES:
                    return False
    for few in range(2):
        if not support[0] <= few <= support[1]:
            continue
        mass, of_mean, of_variance = sums[0], sums[2], sums[4]
        if not _few(
            float(few), rule, nats, y, rows, prior, n_terms, of_n, known, ref, sums, about, store, merging,
            tables, keys, picked,
        ):  # fmt: skip
            return False
        if of_n[N_AFTER] <= _NONE:
            sums[9] += sums[0] - mass
        if of_n[N_AFTER] <= _HEAVY:
            sums[10] += sums[2] - of_mean
            sums[11] += sums[4] - of_variance
    return True


@inner
def _moments(sums: Floats, about: Floats, ref: float, moments: Floats) -> None:
    """Mean and sd of the mean, of the variance, log evidence and N; of the log variance; unlikely tails."""
    total = sums[0]
    moments[4] = ref + math.log(total)
    moments[5] = sums[5] / total
    for i in range(3):
        first, second = (1, 2) if i == 0 else (3, 4) if i == 1 else (6, 7)
        away = sums[first] / total
        moments[2 * i if i < 2 else 6] = about[i] + away
        moments[2 * i + 1 if i < 2 else 7] = math.sqrt(max(sums[second] / total - away * away, 0.0))
    of_mean, of_variance = _UNLIKELY * moments[1] * moments[1], _UNLIKELY * moments[3] * moments[3]
    # Within bounds both are at most 2 from their middles, in half ranges.
    is_unlikely = 4.0 * sums[9] <= total * min(of_mean, of_variance)
    is_unlikely = is_unlikely and sums[10] <= total * of_mean and sums[11] <= total * of_variance
    moments[8] = 1.0 if is_unlikely else 0.0


def _cells(  # noqa: C901, PLR0912, PLR0915 - one compiled loop
    observed: Floats, rows: Floats, prior: Floats, n_terms: Floats, support: Floats, estimates: Floats,
    nats_of_n: float, rules: Integers, nats: Floats, checked: Integers, tolerance: Floats, moments: Floats,
    errors: Floats, status: Integers, counts: Integers, components: Floats, picks: Floats,
) -> None:  # fmt: skip
    """Integrate some cells; ``status`` is the level that was enough, or -1."""
    of_n, of_parts = np.zeros(N_ROWS * PARTS), np.zeros(PART_ROWS * PARTS)
    nodes, weights = np.ones(NODE_ROWS * MOST_NODES), np.empty(PARTS * MOST_NODES)
    blocks = np.empty((2, PARTS), dtype=np.int64)
    merging = np.empty(MERGING_ROWS * MOST_MERGED)
    tables, keys = np.empty((2, SLOTS, FIELDS)), np.empty((2, SLOTS), dtype=np.int64)
    sums, about = np.empty(SUMS), np.empty(8)
    before = np.empty(9)
    merged_from = MERGED
    for k in range(prior.shape[1]):
        merged_from = max(merged_from, 100.0 * prior[2, k])
    for cell in range(len(observed)):
        y, picked = observed[cell], picks[cell]
        status[cell] = -1
        n = min(max(estimates[cell, 0], support[0], 1.0), support[1])
        m = min(max(estimates[cell, 1] / max(n, 1.0), -2.0), 2.0)
        spread = max(estimates[cell, 2] / max(n, 1.0) - m * m, 1e-6)
        about[0], about[1], about[2] = m, spread, math.log(spread)
        about[3], about[4], about[5] = 0.0, 1.0, 1.0
        about[6], about[7] = 0.0, merged_from
        ref = set_n(max(n, min(2.0, support[1])), prior, n_terms, of_n)
        ref -= least_noise(y, rows, max(n, 1.0), m) if n >= 2.0 else noise_at(y, rows, n, m, 0.0)
        known, known_least, graded_from = 0.0, math.inf, 0.0
        for level in range(len(rules)):
            sums[:] = 0.0
            sums[8], sums[13] = known_least, graded_from
            store = level > 0
            if store:
                tables[:] = 0.0
                keys[:] = -1
                start_picking(known, picked)
            if not _all_n(
                estimates[cell, 0], nats_of_n, support, rules[level], nats[level], y, rows, prior, n_terms,
                of_n, known, ref, sums, about, store, merging, tables, keys, picked, nodes, of_parts,
                blocks, weights,
            ):  # fmt: skip
                break
            if not _LEAST_MASS < sums[0] < math.inf:
                break
            _moments(sums, about, ref, moments[cell])
            if level > 0:
                largest = 0.0
                for i in range(5):
                    here, last = moments[cell, i], before[i]
                    if i == 4:
                        error = abs(here - last)
                    elif i % 2 == 0:
                        error = abs(here - last) / moments[cell, i + 1]
                    else:
                        error = abs(math.log(here / last))
                    errors[cell, i] = error
                    if checked[i] > 0 or moments[cell, 8] > 0.0:
                        # What is no number is not small either.
                        largest = max(largest, error / tolerance[i] if error < math.inf else math.inf)
                if largest <= 1.0:
                    status[cell] = level
                    # Two rules may agree in one number by chance, and are no nearer in it than in the others.
                    for i in range(5):
                        errors[cell, i] = max(errors[cell, i], max(largest, _TRUSTED) * tolerance[i])
                    break
            before[:] = moments[cell]
            known, known_least = sums[0], sums[8]
            if not store and sums[12] > (sums[8] + _CONTRADICTED) * sums[0]:
                graded_from = math.inf
            # Next time components are told apart in units of the spread, which is known by now.
            about[0] += sums[1] / sums[0]
            about[1] += sums[3] / sums[0]
            about[4] = moments[cell, 1] if checked[1] > 0 or moments[cell, 8] > 0.0 else 1.0
            if not store:
                about[2], about[5] = moments[cell, 6], moments[cell, 7]
            about[6] = _KEPT * known
        if status[cell] < 0:
            continue
        for parameter in range(2):
            count, total = 0, 0.0
            for slot in range(SLOTS):
                if keys[parameter, slot] != -1:
                    total += tables[parameter, slot, 0]
            for slot in range(SLOTS):
                if keys[parameter, slot] == -1:
                    continue
                if count == components.shape[2]:
                    status[cell] = -1
                    break
                w = tables[parameter, slot, 0]
                loc = tables[parameter, slot, 1] / w
                square = tables[parameter, slot, 2] / w - loc * loc
                unit = about[4 + parameter]
                if parameter == 1:
                    # An inverse gamma as wide as those that it stands for has a larger mean of logarithms,
                    # by half of what its square is larger: E[log] is about log(b / a) + 1 / (2 a).
                    narrow = 2.0 * tables[parameter, slot, 3] / (w * unit * unit)
                    loc -= 0.5 * unit * max(square - narrow, 0.0)
                centre = about[0] if parameter == 0 else about[2]
                components[cell, parameter, count, 0] = w / total
                components[cell, parameter, count, 1] = centre + unit * loc
                components[cell, parameter, count, 2] = unit * math.sqrt(max(square, 1e-300))
                components[cell, parameter, count, 3] = w / tables[parameter, slot, 3]
                count += 1
            counts[cell, parameter] = count


cells = compiled(
    _cells,
    read(2), read(2), read(2), read(1), read(1), read(2), types.float64, read(2, types.int64), read(2),
    read(1, types.int64), read(1), written(2), written(2), written(1, types.int64), written(2, types.int64),
    written(4), written(3),
)  # fmt: skip
