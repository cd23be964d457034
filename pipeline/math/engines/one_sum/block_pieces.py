r"""Compiled pieces of blocks, for which nodes stand in a mixture, and their merging; see ``block_kernel``.

With few nodes a mixture has gaps. So a node stands for as many positions as its weight l, from where what
the nodes before it stand for ends. Log weights rise there by the slope s that they have between neighbours:

.. math:: \text{mass} \propto w \, e^{s (m - x)} \, \frac{\sinh u}{u}, \quad \text{mean} = m + h L(u), \quad
    \text{variance} = h^2 L'(u), \qquad u = s h, \; L(u) = \coth u - \frac 1 u \qquad (1)

with m the piece's middle, x the node, w its weight in the mixture, and h = l / 2, or of integers
:math:`\sqrt{l^2 - 1} / 2`. All of a block are scaled and moved to have its nodes' mass and mean.
"""

# ruff: noqa: C901, PLR0912 - compiled loops

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from suffice.pipeline.math.distributions.machine_code import vectorised
from suffice.pipeline.math.distributions.vector_functions import exp, log
from suffice.pipeline.math.engines.one_sum.tilted_pieces import tilted_mass, tilted_mean, tilted_variance

if TYPE_CHECKING:
    import numpy as np

    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

NATS, LOG_OF_N, LOG_OF_TOTAL, FEW, FEWEST, PARTS, HAS_PIECES = range(7)
LIGHT, PER_SPREAD, PER_WIDTH, PER_OCTAVE = range(7, 11)
"""How fine all is: see ``Fineness``."""
BETA_LINE, GAMMA_LINE = range(2)
"""Distributions of the parameter."""
LEVELS, POSITIONS = 72, 2048.0
"""As in ``merged``."""
KEYS = 2 * 2048 + 1
_ROUNDING = 6755399441055744.0
"""A sum with 3 * 2^51 is rounded to an integer."""


@vectorised
def set_pieces(
    is_sum: bool, count: int, number: int, starts: Integers, lefts: Floats, work: Floats, pieces: Floats,
) -> None:  # fmt: skip
    """What nodes stand for: pieces of their blocks, as long as their weights, in which weights are tilted.

    A block's pieces have its mass and mean. ``starts`` has the first node of each block, and one more.
    """
    position, density, weight, length = work[0], work[3], work[5], pieces[0]
    mass, place, variance, slope = pieces[1], pieces[2], pieces[3], pieces[4]
    for i in range(count - 1):
        slope[i] = (density[i + 1] - density[i]) / (position[i + 1] - position[i])
    for b in range(number):
        first, last, at = starts[b], starts[b + 1] - 1, lefts[b]
        beside = slope[first] if last > first else 0.0
        for i in range(first, last):
            here = slope[i]
            slope[i] = 0.5 * (beside + here)
            beside = here
            place[i] = at + 0.5 * length[i]
            at += length[i]
        slope[last], place[last] = beside, at + 0.5 * length[last]
    # (1). A loop that writes more than an array or two becomes no vectors.
    least = 1.0 if is_sum else 0.0
    for i in range(count):
        variance[i] = max(0.25 * (length[i] * length[i] - least), 0.0)
    for i in range(count):
        u2, z = slope[i] * slope[i] * variance[i], slope[i] * (place[i] - position[i])
        mass[i] = weight[i] * tilted_mass(u2, z)
    for i in range(count):
        place[i] += slope[i] * variance[i] * tilted_mean(slope[i] * slope[i] * variance[i])
    for i in range(count):
        variance[i] *= tilted_variance(slope[i] * slope[i] * variance[i])
    for b in range(number):
        whole, moment, of_pieces, sum_of_pieces = 0.0, 0.0, 0.0, 0.0
        for i in range(starts[b], starts[b + 1]):
            whole += weight[i]
            moment += weight[i] * position[i]
            of_pieces += mass[i]
            sum_of_pieces += mass[i] * place[i]
        if of_pieces > 0.0 and whole > 0.0:
            share, shift = whole / of_pieces, moment / whole - sum_of_pieces / of_pieces
            for i in range(starts[b], starts[b + 1]):
                mass[i] *= share
                place[i] += shift


@vectorised
def merge_pairs(
    fineness: Floats, line: int, update: Floats, count: int, pairs: Floats, work: Floats, turn: int,
    keys: Integers, slots: Integers, sums: Floats, merged: Floats,
) -> int:  # fmt: skip
    """Merge pairs of N, S, weight and scatter as ``Components.of``; how many are left, or -1."""
    n, total, weight = pairs[0], pairs[1], pairs[2]
    centre, width, place, scatter = work[0], work[1], work[2], pairs[3]
    of_second = 1.0 if line == BETA_LINE else 0.0
    for i in range(count):
        first = update[0] + update[1] * n[i] + update[2] * total[i]
        second = update[3] + update[4] * n[i] + update[5] * total[i]
        centre[i] = log(first / second)
    for i in range(count):
        first = update[0] + update[1] * n[i] + update[2] * total[i]
        second = update[3] + update[4] * n[i] + update[5] * total[i]
        width[i] = math.sqrt(1.0 / first + of_second / second + scatter[i])
    middle, square, narrowest, whole = 0.0, 0.0, math.inf, 0.0
    for i in range(count):
        middle += weight[i] * centre[i]
        narrowest = min(narrowest, width[i])
        whole += weight[i]
    for i in range(count):
        centre[i] -= middle
    for i in range(count):
        square += weight[i] * centre[i] * centre[i]
    unit = max(math.sqrt(square) / fineness[PER_SPREAD], narrowest / fineness[PER_WIDTH])
    per_unit, per_least = 1.0 / unit, 1.0 / (fineness[PER_WIDTH] * unit)
    per_log2, octave = fineness[PER_OCTAVE] / math.log(2.0), math.log(2.0) / fineness[PER_OCTAVE]
    for i in range(count):
        # Rounded downwards: half a level less, to the nearest.
        level = min(per_log2 * log(max(width[i] * per_least, 1.0)), LEVELS - 1.0)
        below = (level + _ROUNDING) - _ROUNDING
        width[i] = below - 1.0 if below > level else below
    for i in range(count):
        point = centre[i] * per_unit * exp(-octave * width[i])
        point /= 1.0 + abs(point) / POSITIONS
        place[i] = width[i] * KEYS + ((point + _ROUNDING) - _ROUNDING) + POSITIONS
    for i in range(count):
        keys[i] = int(place[i])
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
        of = sums[at]
        of[0] += w
        of[1] += w * n[i]
        of[2] += w * total[i]
        of[3] += w * away
        of[4] += w * (away * away + scatter[i])
    for at in range(number):
        w = sums[at, 0]
        shift = sums[at, 3] / w
        merged[at, 0], merged[at, 1], merged[at, 2] = sums[at, 1] / w, sums[at, 2] / w, w / whole
        merged[at, 3] = max(sums[at, 4] / w - shift * shift, 0.0)
    return number


@vectorised
def merge_heavy(
    fineness: Floats, line: int, update: Floats, heavy: int, evidence: float, light: float, pairs: Floats,
    work: Floats, turn: int, keys: Integers, slots: Integers, sums: Floats, merged: Floats,
) -> int:  # fmt: skip
    """Merge pairs that weigh more than so much of a cell's evidence; how many are left, or -1."""
    by_evidence, count = 1.0 / evidence, 0
    for i in range(heavy):
        w = pairs[2, i] * by_evidence
        if w > light:
            pairs[0, count], pairs[1, count], pairs[2, count] = pairs[0, i], pairs[1, i], w
            pairs[3, count] = pairs[3, i]
            count += 1
    return int(merge_pairs(fineness, line, update, count, pairs, work, turn, keys, slots, sums, merged))


@vectorised
def set_answers(top: float, moments: Floats, answers: Floats) -> None:
    """Mean, standard deviation, log evidence and largest N, of moments about a centre."""
    shift = moments[1] / moments[0]
    answers[0] = moments[3] + shift
    answers[1] = math.sqrt(max(moments[2] / moments[0] - shift * shift, 0.0))
    answers[2], answers[3] = top + math.log(moments[0]), moments[4]
