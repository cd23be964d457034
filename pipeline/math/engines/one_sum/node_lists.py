r"""Compiled lists of nodes: of N, and at an N of S, on panels that end at kinks; see ``pair_kernel``.

A panel spans some nats of the noise where it is likeliest and more where it lies deeper; it is no longer than
some times its distance from a pole of the prior, or than what given the parameter a sum varies by.

Columns of a list of nodes: place, weight, middle and length of what a node stands for, by how much the place
moves with N, as the kinks do between which it lies, and the share by which the length grows with N.
"""

# ruff: noqa: C901, PLR0912, PLR0915, FBT003 - compiled loops, which know no keywords

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.integer_rules import integer_rule
from suffice.pipeline.math.distributions.machine_code import inner

if TYPE_CHECKING:
    from suffice.typing import Floats

COLUMNS = 6
_SINGLE = 24.0
"""Numbers of records up to which a panel has all of them for nodes, where there are several releases."""
_REST = 1.35
"""Panels up to which a rest is one."""
_SMALL = 1e-9


@inner
def _towards(widths: float, away: float) -> float:
    """Length of a panel towards an end of S, so many roots of the distance from it where the panel ends."""
    # L = w sqrt(away + 1 - L), solved for L.
    return widths * (math.sqrt(away + 1.0 + 0.25 * widths * widths) - 0.5 * widths)


@inner
def _segment(
    left: float, right: float, depth_left: float, depth_right: float, nats: float, points: int, pole: float,
    bend: float, top: float, top_pole: float, top_bend: float, widths: float, share_left: float,
    share_of: float, split_left: bool, single: float, places: Floats, count: int, offset: Floats,
    weight: Floats,
) -> int:  # fmt: skip
    """Add nodes of left, left + 1, ... up to right - 1, from the shallow end outwards; -1 if too many.

    ``widths`` bounds panels by roots of sums. What a length has beyond
    whole numbers is in the panel at the left end if ``split_left``, and else in that at the right one.
    """
    length = right - left
    if length <= _SMALL:
        return count
    forward = depth_left <= depth_right
    slope = abs(depth_right - depth_left) / length
    depth = min(depth_left, depth_right)
    start, stop = left, right
    beyond = length - math.floor(length) if split_left == forward else 0.0
    while stop - start > _SMALL:
        # What a panel is off by falls with its own weight: it may be longer the deeper it lies.
        allowed = nats * math.exp(min(max(depth, 0.0), 40.0) / (2.0 * points))
        rest = stop - start
        panel = allowed / slope if slope * rest > allowed else rest
        if forward:
            panel = min(panel, bend * (start + pole))
            if top < math.inf:
                panel = min(panel, top_bend / (1.0 + top_bend) * (top - start + top_pole))
                panel = min(panel, _towards(widths, top - start))
            panel = min(panel, widths * math.sqrt(start + 1.0))
        else:
            panel = min(panel, bend / (1.0 + bend) * (stop + pole))
            if top < math.inf:
                panel = min(panel, top_bend * (top - stop + 1.0 + top_pole))
                panel = min(panel, widths * math.sqrt(top - stop + 2.0))
            if widths < math.inf:
                panel = min(panel, _towards(widths, stop))
        panel = rest if _REST * panel >= rest else max(math.floor(panel), 1.0) + beyond
        beyond = 0.0
        whole = abs(panel - round(panel)) < _SMALL
        number = points
        if panel <= (single if whole else points):
            if whole:
                panel = float(round(panel))
                number = int(panel)
            else:
                number = max(int(panel), 1)
        if count + number > places.shape[0]:
            return -1
        if number == 1 or number > points:
            for i in range(number):
                offset[i], weight[i] = i - 0.5 * (number - 1.0), panel / number
        else:
            integer_rule(panel, number, offset, weight)
        first = start if forward else stop - panel
        below = 0.0
        for i in range(number):
            place = first + 0.5 * (panel - 1.0) + offset[i]
            places[count, 0], places[count, 1] = place, weight[i]
            places[count, 2] = first - 0.5 + below + 0.5 * weight[i]
            places[count, 3] = weight[i]
            places[count, 4] = share_left + share_of * (places[count, 2] + 0.5 - left)
            places[count, 5] = share_of
            below += weight[i]
            count += 1
        depth += slope * panel
        if forward:
            start += panel
        else:
            stop -= panel
    return count


@inner
def set_kinks(
    values: Floats, reaches: Floats, rates: Floats, n: float, kinks: Floats, of_kinks: Floats, falls: Floats
) -> None:
    """Kinks at N in ascending order, with the R and the rate of each."""
    for i in range(len(values)):
        kink = reaches[i] * n - values[i] if reaches[i] > 0.0 else values[i]
        j = i
        while j > 0 and kinks[j - 1] > kink:
            kinks[j], of_kinks[j], falls[j] = kinks[j - 1], of_kinks[j - 1], falls[j - 1]
            j -= 1
        kinks[j], of_kinks[j], falls[j] = kink, reaches[i], rates[i]


@inner
def distance_of(kinks: Floats, falls: Floats, count: int, total: float) -> float:
    """Compute e of (1)."""
    distance = 0.0
    for i in range(count):
        distance += falls[i] * abs(kinks[i] - total)
    return distance


@inner
def least_distance(kinks: Floats, falls: Floats, count: int, top: float) -> float:
    """Compute e* of (1): at the kink at which the slope changes its sign."""
    whole, below = 0.0, 0.0
    for i in range(count):
        whole += falls[i]
    for i in range(count):
        below += falls[i]
        if 2.0 * below >= whole:
            return distance_of(kinks, falls, count, min(max(kinks[i], 0.0), top))
    return math.inf


@inner
def nodes_of_n(
    values: Floats, reaches: Floats, rates: Floats, support: Floats, most: float, rule: Floats, bends: Floats,
    kinks: Floats, of_kinks: Floats, falls: Floats, breaks: Floats, places: Floats, offset: Floats,
    weight: Floats, state: Floats,
) -> int:  # fmt: skip
    """Nodes of N >= 1, how many; ``state`` gets the least distance."""
    count = len(values)
    number = 0
    # Of several releases kinks are close to each other, and at an N between integers sums are short ones.
    single = rule[0] if count <= 2 else _SINGLE
    low, high = max(support[0], 1.0), support[1]
    for i in range(count):
        breaks[number] = values[i]
        number += 1
    for i in range(count):
        for j in range(count):
            if reaches[i] == 0.0 and reaches[j] > 0.0:
                breaks[number] = values[i] + values[j]
                number += 1
    reach = 0.0
    for i in range(count):
        reach = max(reach, reaches[i])
    ordered = breaks[:number]
    for i in range(number):
        ordered[i] = min(max(math.ceil(ordered[i] / reach), low), high)
    ordered.sort()
    depths = breaks[number : 2 * number]
    least = math.inf
    for i in range(number):
        set_kinks(values, reaches, rates, ordered[i], kinks, of_kinks, falls)
        depths[i] = least_distance(kinks, falls, count, most * ordered[i])
        least = min(least, depths[i])
    state[0] = least
    nats = rule[3]
    total = 0
    # Beyond the outermost breaks e* is straight.
    for side in range(2):
        edge = ordered[0] if side == 0 else ordered[number - 1]
        at_edge = depths[0] if side == 0 else depths[number - 1]
        limit = low if side == 0 else high
        if at_edge - least > nats or edge == limit:
            if side == 1 and edge == high and at_edge - least <= nats:
                # The last N itself.
                places[total, 0], places[total, 1], places[total, 2] = high, 1.0, high
                places[total, 3], places[total, 4], places[total, 5] = 1.0, 0.0, 0.0
                total += 1
            continue
        beside = edge - 1.0 if side == 0 else edge + 1.0
        set_kinks(values, reaches, rates, beside, kinks, of_kinks, falls)
        slope = least_distance(kinks, falls, count, most * beside) - at_edge
        away = math.ceil((nats - at_edge + least) / slope) if slope > 0.0 else math.inf
        if side == 0:
            if edge - away <= low:
                away = edge - low
            total = _segment(
                edge - away, edge, at_edge - least + slope * away, at_edge - least, rule[1], int(rule[0]),
                bends[0], bends[1], math.inf, 0.0, 0.0, bends[2], 0.0, 0.0, False, single, places, total,
                offset, weight,
            )  # fmt: skip
        else:
            if edge + away >= high + 1.0:
                away = high + 1.0 - edge
            if not away < 1e16:
                return -1
            total = _segment(
                edge, edge + away, at_edge - least, at_edge - least + slope * away, rule[1], int(rule[0]),
                bends[0], bends[1], math.inf, 0.0, 0.0, bends[2], 0.0, 0.0, False, single, places, total,
                offset, weight,
            )  # fmt: skip
        if total < 0:
            return -1
    for i in range(number - 1):
        left, right = ordered[i], ordered[i + 1]
        here, there = depths[i] - least, depths[i + 1] - least
        if not right > left or min(here, there) > nats:
            continue
        slope = (there - here) / (right - left)
        if here > nats:
            away = math.ceil((here - nats) / -slope) - 1.0
            left, here = left + away, here + slope * away
        elif there > nats:
            away = math.ceil((there - nats) / slope) - 1.0
            right, there = right - away, there - slope * away
        total = _segment(
            left, right, here, there, rule[1], int(rule[0]), bends[0], bends[1], math.inf, 0.0, 0.0,
            bends[2], 0.0, 0.0, False, single, places, total, offset, weight,
        )  # fmt: skip
        if total < 0:
            return -1
    return total


@inner
def nodes_of_total(
    count: int, kinks: Floats, of_kinks: Floats, falls: Floats, n: float, top: float, least: float,
    depth_of_n: float, rule: Floats, prior_bends: Floats, places: Floats, offset: Floats,
    weight: Floats,
) -> int:  # fmt: skip
    """Nodes of S at this N, how many; the fifth column is how S moves with N where the kinks do."""
    nats, number = rule[3], 0
    end = top + 1.0 if top < math.inf else math.inf
    before, of_before = 0.0, 0.0
    at_before = distance_of(kinks, falls, count, 0.0) - least + depth_of_n
    for i in range(count + 1):
        is_last = i == count
        after = end if is_last else min(max(kinks[i], 0.0), end)
        of_after = 0.0
        if not is_last and 0.0 < kinks[i] < end:
            of_after = of_kinks[i]
        elif after >= end and top < math.inf:
            of_after = top / n
        if not is_last and after <= before:
            if kinks[i] >= before:
                of_before = of_after
            continue
        if after == math.inf:
            fall = 0.0
            for j in range(count):
                fall += falls[j]
            if at_before > nats:
                break
            after = before + max(math.ceil((nats - at_before) / fall), 1.0)
            of_after = of_before
        if not after > before:
            continue
        at_after = distance_of(kinks, falls, count, after) - least + depth_of_n
        left, right, here, there = before, after, at_before, at_after
        share_left, share_right = of_before, of_after
        if min(here, there) <= nats:
            slope = (there - here) / (right - left)
            # Pieces are stretched evenly; the first begins half an integer below.
            share_of = (share_right - share_left) / (right - left)
            if here > nats:
                # The end that matters less is cut by whole numbers.
                kept = min(math.ceil((nats - there) / -slope) + 1.0, right - left)
                share_left += share_of * (right - left - kept)
                left, here = right - kept, there - slope * kept
            elif there > nats:
                kept = min(math.ceil((nats - here) / slope) + 1.0, right - left)
                right, there = left + kept, here + slope * kept
            # Next to an end of S the prior may have a pole beyond it: there nodes are whole numbers away.
            middle = right
            if left == 0.0 and right == end:
                middle = math.floor(0.5 * right)
            for half in range(2):
                if half == 0:
                    first, last = left, middle
                else:
                    first, last = middle, right
                if not last > first:
                    continue
                number = _segment(
                    first, last, here + slope * (first - left), here + slope * (last - left), rule[2],
                    int(rule[0]), prior_bends[0], prior_bends[1], top, prior_bends[2], prior_bends[3],
                    prior_bends[4], share_left + share_of * (first - left), share_of, last == end,
                    rule[0], places, number, offset, weight,
                )  # fmt: skip
                if number < 0:
                    return -1
        before, at_before, of_before = after, at_after, of_after
        if after >= end:
            break
    return number
