r"""Compiled rows of pairs, all S at an N, by vectors: how likely they are, and what their nodes stand for.

``pair_kernel`` says what is summed, and has the symbols. A node stands for a piece of N and S in which log
weights are straight. What of pieces is worked out goes through a list of ``HELD`` of them, whose columns are
so many numbers apart that loops over a column become vectors without checks of what overlaps.

- ``held``: N, S, weight, slopes along S and along N, length and middle in S, length in N and how far its
  middle is away, and the share by which S moves and the length grows with N; then N, S, weight, centre,
  scatter and squared width as ``merge`` takes them, and the scatter that is N's
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from suffice.pipeline.math.distributions.machine_code import inner, reordered, vectorised
from suffice.pipeline.math.distributions.mixture_functions import BETA
from suffice.pipeline.math.distributions.vector_functions import exp, log
from suffice.pipeline.math.engines.one_sum.tilted_pieces import tilted_mass, tilted_mean, tilted_variance

if TYPE_CHECKING:
    import numpy as np

    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

HELD, HELD_COLUMNS = 256, 11
_N, _TOTAL, _WEIGHT, _ALONG, _ACROSS, _LENGTH, _MIDDLE, _N_LENGTH, _N_AWAY, _SHARE, _GROWTH = (
    HELD * column for column in range(HELD_COLUMNS)
)
_CENTRE, _SCATTER, _WIDTH, _OF_N = _ALONG, _ACROSS, _LENGTH, _MIDDLE


@inner
def log_rising(c: float, x: float, log_gamma_c: float) -> float:
    """Log of (c)_x / x!, of real x >= 0."""
    if c == 1.0:
        return 0.0
    delta = c - 1.0
    middle = x + 0.5 * c
    half = 0.5 * delta
    if middle < 6.0 + 4.0 * abs(half):
        return math.lgamma(c + x) - math.lgamma(x + 1.0) - log_gamma_c
    # DLMF 5.11.8 at w + 1/2 + t and w + 1/2 - t, w the middle: Bernoulli polynomials of odd degree are left.
    square = 1.0 / (middle * middle)
    t2 = half * half
    series = (t2 - 0.25) / 3.0
    series += square * ((t2 - 5.0 / 6.0) * t2 + 7.0 / 48.0) / 10.0
    series += square * square * (((t2 - 1.75) * t2 + 49.0 / 48.0) * t2 - 31.0 / 192.0) / 21.0
    return delta * math.log(middle) - half * square * series - log_gamma_c


@vectorised
def set_log_weights(
    count: int, kinks: Floats, falls: Floats, prior: Floats, constant: float, top: float, number: int,
    nodes: Floats, total: Floats, distance: Floats, log_weight: Floats,
) -> None:  # fmt: skip
    """Set S, the noise's distance and the log weight of each node but for its own weight."""
    for j in range(number):
        total[j] = max(nodes[j, 0], 0.0)
        distance[j] = 0.0
    for i in range(count):
        kink, fall = kinks[i], falls[i]
        for j in range(number):
            distance[j] += fall * abs(kink - total[j])
    for j in range(number):
        log_weight[j] = constant - distance[j]
    if prior[0] != 1.0:
        for j in range(number):
            log_weight[j] += log_rising(prior[0], total[j], prior[3])
    if prior[1] != 1.0:
        for j in range(number):
            log_weight[j] += log_rising(prior[1], max(top - total[j], 0.0), prior[4])


@reordered
def sum_row(
    line: int, update: Floats, n: float, reference: float, centre: float, least: float, number: int,
    nodes: Floats, total: Floats, distance: Floats, weight: Floats, sums: Floats,
) -> float:  # fmt: skip
    """Turn log weights into weights; add the row to ``sums``, and return its mass.

    Sums are of the mass, its first and second moment about the centre, and its distance beyond the least.
    """
    for j in range(number):
        weight[j] = exp(weight[j] - reference) * nodes[j, 1]
    whole, first, second, depth = 0.0, 0.0, 0.0, 0.0
    alpha_of_n, beta_of_n = update[0] + update[1] * n, update[3] + update[4] * n
    alpha_of_total, beta_of_total = update[2], update[5]
    if line == BETA:
        for j in range(number):
            alpha, beta = alpha_of_n + alpha_of_total * total[j], beta_of_n + beta_of_total * total[j]
            by_both = 1.0 / (alpha + beta)
            mean = alpha * by_both
            variance = mean * beta * by_both / (alpha + beta + 1.0)
            w, away = weight[j], mean - centre
            whole += w
            first += w * away
            second += w * (away * away + variance)
            depth += w * (distance[j] - least)
    else:
        for j in range(number):
            alpha, beta = alpha_of_n + alpha_of_total * total[j], beta_of_n + beta_of_total * total[j]
            by_rate = 1.0 / beta
            mean = alpha * by_rate
            w, away = weight[j], mean - centre
            whole += w
            first += w * away
            second += w * (away * away + mean * by_rate)
            depth += w * (distance[j] - least)
    sums[0] += whole
    sums[1] += first
    sums[2] += second
    sums[3] += depth
    return whole


@inner
def hold(
    count: int, kinks: Floats, of_kinks: Floats, falls: Floats, n: float, n_length: float, n_away: float,
    total: float, weight: float, node: Floats, at: int, held: Floats,
) -> None:  # fmt: skip
    """Put a pair into the list."""
    share = node[4]
    along, across = 0.0, 0.0
    for i in range(count):
        slope = falls[i] if total < kinks[i] else -falls[i]
        along += slope
        across += slope * (share - of_kinks[i])
    held[at + _N], held[at + _TOTAL], held[at + _WEIGHT] = n, total, weight
    held[at + _ALONG], held[at + _ACROSS] = along, across
    held[at + _LENGTH], held[at + _MIDDLE] = node[3], node[2] - node[0]
    held[at + _N_LENGTH], held[at + _N_AWAY] = n_length, n_away
    held[at + _SHARE], held[at + _GROWTH] = share, node[5]


@vectorised
def set_pieces(
    number: int, line: int, update: Floats, most: float, prior: Floats, fall: float, held: Floats
) -> None:
    """Turn nodes of the list into their pieces: S moves with N as the kinks do between which it lies."""
    a1, b1 = prior[0] - 1.0, prior[1] - 1.0
    of_n = a1 + b1 + 1.0 + fall
    alpha_0, alpha_n, alpha_s, beta_0, beta_n, beta_s = (
        update[0], update[1], update[2], update[3], update[4], update[5],
    )  # fmt: skip
    is_beta = 1.0 if line == BETA else 0.0
    for k in range(min(number, HELD)):
        n, total, share = held[k + _N], held[k + _TOTAL], held[k + _SHARE]
        by_true, by_false = a1 / (total + 1.0), b1 / (max(most * n - total, 0.0) + 1.0)
        along = held[k + _ALONG] + by_true - by_false
        across = held[k + _ACROSS] + by_true * share + by_false * (most - share) - of_n / (n + 1.0)
        # Of integers whose log weights have a slope. A single one stands for itself.
        length = held[k + _N_LENGTH]
        n_away, squared = held[k + _N_AWAY], max(0.25 * (length * length - 1.0), 0.0)
        u2 = across * across * squared
        mass = tilted_mass(u2, across * n_away if length > 1.0 else 0.0)
        n_spread = tilted_variance(u2) * squared
        n_shift = n_away + across * squared * tilted_mean(u2)
        # Over N the piece gets longer as well: by 1 + g x, x from the node.
        growth = held[k + _GROWTH]
        longer = max(1.0 + growth * n_shift, 0.1)
        n_shift += growth * n_spread / longer
        length = held[k + _LENGTH]
        away, squared = held[k + _MIDDLE], max(0.25 * (length * length - 1.0), 0.0)
        u2 = along * along * squared
        mass *= tilted_mass(u2, along * away if length > 1.0 else 0.0)
        spread = tilted_variance(u2) * squared
        moved = total + away + along * squared * tilted_mean(u2) + share * n_shift
        moved_n = n + n_shift
        alpha, beta = (
            alpha_0 + alpha_n * moved_n + alpha_s * moved,
            beta_0 + beta_n * moved_n + beta_s * moved,
        )
        is_one = (moved >= 0.0) & (alpha > 0.0) & (beta > 0.0)
        moved, moved_n = moved if is_one else total, moved_n if is_one else n
        alpha, beta = (
            alpha_0 + alpha_n * moved_n + alpha_s * moved,
            beta_0 + beta_n * moved_n + beta_s * moved,
        )
        by_alpha, by_beta = 1.0 / alpha, 1.0 / beta
        # d log(alpha / beta) for a step of S, and for one of N along with S.
        of_total = alpha_s * by_alpha - beta_s * by_beta
        of_both = share * of_total + alpha_n * by_alpha - beta_n * by_beta
        spread_of_n = of_both * of_both * n_spread
        held[k + _N], held[k + _TOTAL] = moved_n, moved
        held[k + _WEIGHT] *= mass * longer
        held[k + _CENTRE] = log(alpha * by_beta)
        held[k + _SCATTER] = of_total * of_total * spread + spread_of_n
        held[k + _WIDTH] = by_alpha + is_beta * by_beta
        held[k + _OF_N] = spread_of_n


@inner
def take_held(number: int, held: Floats, of_row: Integers, first: int, pairs: Floats, rows: Floats) -> None:
    """Copy pieces to ``pairs``, from the first on; add those that are long in N to their rows.

    Rows have a mass, the sum and the squares of centres, and what is given the piece, and N's of it.
    """
    for k in range(number):
        at = first + k
        w, centre = held[k + _WEIGHT], held[k + _CENTRE]
        pairs[at, 0], pairs[at, 1], pairs[at, 2] = held[k + _N], held[k + _TOTAL], w
        pairs[at, 3], pairs[at, 4], pairs[at, 5] = centre, held[k + _SCATTER], held[k + _WIDTH]
        if held[k + _N_LENGTH] > 1.0:
            row = of_row[k]
            rows[row, 0] += w
            rows[row, 1] += w * centre
            rows[row, 2] += w * centre * centre
            rows[row, 3] += w * (held[k + _SCATTER] + held[k + _WIDTH])
            rows[row, 4] += w * held[k + _OF_N]
