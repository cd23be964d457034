r"""Compiled sums over latent pairs (N, S), cell by cell; ``nested_pairs`` says which cells and how exact.

Model, W(N, S) and symbols as in ``noisy_sum``, of successes among M N trials. With the noise's distance

.. math:: e(N, S) = \sum_i \rho_i |k_i(N) - S|, \qquad e^*(N) = \min_{0 \le S \le M N} e(N, S) \qquad (1)

both are piecewise linear, and :math:`e^*` is convex. N is summed by Gauss rules on panels between the kinks
of :math:`e^*`, and for each of its nodes S on panels between the kinks :math:`k_i(N)`. A panel's nodes stand
for consecutive integers, the first of them at a kink: at an N that is no integer the sum over S is what the
sums at integers are values of, a function without ripples.

Symbols:

- N, S: ``n``, ``total``; rho: ``rates``; M: ``most``
- k: ``kinks``, y_i or R_i N - y_i; R: ``reaches``, 0 of the first kind
- W over that of the first pair: ``weight``
- a, b: the prior's concentrations; ``alpha`` and ``beta``, natural parameters given a pair

Machine code is kept beside this module while it stays as it is: whoever changes ``node_lists``,
``pair_rows``, ``mixture_kernel`` or ``integer_rules`` alone removes ``__pycache__``.
"""

# ruff: noqa: C901, PLR0912, PLR0915 - one compiled loop

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.machine_code import compiled, inner, written
from suffice.pipeline.math.distributions.mixture_kernel import (
    NEGLIGIBLE,
    coordinates,
    mean_and_variance,
    merge,
    width_squared,
)
from suffice.pipeline.math.engines.one_sum.node_lists import (
    COLUMNS,
    least_distance,
    nodes_of_n,
    nodes_of_total,
    set_kinks,
)
from suffice.pipeline.math.engines.one_sum.pair_rows import (
    HELD,
    HELD_COLUMNS,
    hold,
    log_rising,
    set_log_weights,
    set_pieces,
    sum_row,
    take_held,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_PAIRS, MOST_NODES, MOST_MERGED = 40_000, 2000, 2500
_BEND = 1.25
"""Length of a panel over its distance from the pole of the prior at 0."""
_LOG_BEND = 2.5
"""Nats that the prior's powers may rise by in a panel."""
_FINENESS, _FINELY, _FEW = 0.5, 1.5, 150
"""Of merging, and where pairs are few: what nodes stand for is part of their scatter."""
_SEVERAL = 400.0
"""Pairs below which pieces may weigh less, in proportion."""
_KEPT = 2e-8
"""Share of what the rule before has in all below which a pair is no component; moments have it."""

# Of the first rule, which only judges, and those that may be kept: nodes a panel, nats of the noise that a
# panel over N and over S spans where most of the mass is, nats below the likeliest noise that are left out,
# standard deviations of a sum given the parameter between two nodes, and a share of what N's poles allow.
# The third and fourth are for cells in which few nodes stand for much, or rules differ.
RULES = (
    (3, 1.75, 2.5, 16.0, 1.5, 1.0),
    (4, 2.4, 3.0, 20.0, 1.8, 1.0),
    (4, 1.7, 2.1, 20.0, 1.25, 0.65),
    (4, 0.8, 0.9, 22.0, 0.6, 0.25),
)
TOLERANCE = 1.5e-3
"""By how much two rules may differ, in standard deviations, logs of them, and log evidence."""
DEEP = 4.0
"""Nats below the likeliest noise, of posterior mean: panels are chosen by the noise."""
COARSE = 0.007
"""Weight of a component, or of an N, by the squared share of its variance that is what nodes stand for."""


@inner
def _sum_up(
    values: Floats, reaches: Floats, rates: Floats, most: float, prior: Floats, n_prior: Floats,
    line: int, update: Floats, rule: Floats, scratch: Floats, list_of_n: Floats, list_of_total: Floats,
    work: Floats, held: Floats, of_row: Integers, rows: Floats, known: float, store: bool, pairs: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Sum over pairs; how many are stored, or -1.

    ``answer``: mean, sd, log evidence, largest N, depth and coarseness. Depth is the mean of how many nats
    the noise is below where it is likeliest; coarseness is as in ``COARSE``, of an N with all of its S;
    ``known`` is about the log evidence.
    """
    count = len(values)
    kinks, of_kinks, falls = scratch[0], scratch[1], scratch[2]
    offset, weight, bends, prior_bends, state = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    a, b = prior[0], prior[1]
    points = rule[0]
    bends[0], bends[1] = 1.0, rule[5] * min(_BEND, 2.0 * _LOG_BEND / (a + b + n_prior[1]))
    bends[2] = math.inf
    number = nodes_of_n(
        values, reaches, rates, n_prior[2:], most, rule, bends, kinks, of_kinks, falls, scratch[8], list_of_n,
        offset, weight, state,
    )  # fmt: skip
    if number < 0:
        return -1
    least = state[0]
    prior_bends[0], prior_bends[1] = min(a, 1.0), min(_BEND, _LOG_BEND / max(abs(a - 1.0), 1.0))
    prior_bends[2], prior_bends[3] = min(b, 1.0), min(_BEND, _LOG_BEND / max(abs(b - 1.0), 1.0))
    # A flat prior has no poles.
    if a == 1.0:
        prior_bends[1] = math.inf
    if b == 1.0:
        prior_bends[3] = math.inf
    prior_bends[4] = rule[4] * points
    total, distance, weights, sums = work[0], work[1], work[2], scratch[9]
    sums[:4] = 0.0
    rows[:number] = 0.0
    largest_n, coarsest = 0.0, 0.0
    pair, waiting, least_weight = 0, 0, 0.0
    reference, centre = math.nan, 0.0
    if n_prior[2] == 0.0:
        # No records have the sum 0 for certain.
        of_none = 0.0
        for i in range(count):
            of_none += rates[i] * abs(values[i])
        if of_none - least <= rule[3]:
            alpha, beta = coordinates(update, 0.0, 0.0)
            centre, variance = mean_and_variance(line, alpha, beta)
            reference = n_prior[0] - of_none
            least_weight = _KEPT * math.exp(min(known - reference, 600.0))
            sums[0], sums[2], sums[3] = 1.0, variance, of_none - least
            if store:
                pairs[0, 0], pairs[0, 1], pairs[0, 2] = 0.0, 0.0, 1.0
                pairs[0, 3], pairs[0, 4] = math.log(alpha / beta), 0.0
                pairs[0, 5] = width_squared(line, alpha, beta)
                pair = 1
    for i in range(number):
        n, of_node = list_of_n[i, 0], list_of_n[i, 1]
        top = most * n
        set_kinks(values, reaches, rates, n, kinks, of_kinks, falls)
        at_least = least_distance(kinks, falls, count, top)
        if at_least - least > rule[3] + 2.0:
            continue
        constant = n_prior[0] + math.log(of_node) - log_rising(a + b, top, prior[5])
        if n_prior[1] > 0.0:
            constant -= math.log1p(n)
        inner_number = nodes_of_total(
            count, kinks, of_kinks, falls, n, top, at_least, at_least - least, rule, prior_bends,
            list_of_total, offset, weight,
        )  # fmt: skip
        if inner_number < 0:
            return -1
        if inner_number == 0:
            continue
        set_log_weights(
            count, kinks, falls, prior, constant, top, inner_number, list_of_total, total, distance, weights
        )
        if math.isnan(reference):
            reference = weights[0]
            alpha, beta = coordinates(update, n, total[0])
            centre, variance = mean_and_variance(line, alpha, beta)
            least_weight = _KEPT * math.exp(min(known - reference, 600.0))
        for j in range(inner_number):
            if weights[j] - reference > 600.0:
                return -1
        if sum_row(
            line, update, n, reference, centre, least, inner_number, list_of_total, total, distance, weights,
            sums,
        ) > 0.0:  # fmt: skip
            largest_n = max(largest_n, n)
        if not store:
            continue
        for j in range(inner_number):
            if weights[j] <= least_weight:
                continue
            if pair + waiting >= pairs.shape[0]:
                return -1
            if waiting == HELD:
                set_pieces(waiting, line, update, most, prior, n_prior[1], held)
                take_held(waiting, held, of_row, pair, pairs, rows)
                pair, waiting = pair + waiting, 0
            hold(
                count, kinks, of_kinks, falls, n, list_of_n[i, 3], list_of_n[i, 2] - n, total[j], weights[j],
                list_of_total[j], waiting, held,
            )  # fmt: skip
            of_row[waiting] = i
            waiting += 1
    if store:
        set_pieces(waiting, line, update, most, prior, n_prior[1], held)
        take_held(waiting, held, of_row, pair, pairs, rows)
        pair += waiting
        for i in range(number):
            if rows[i, 4] > 0.0:
                spread = max(rows[i, 2] - rows[i, 1] * rows[i, 1] / rows[i, 0], 0.0)
                coarse = rows[i, 4] / (rows[i, 3] + spread)
                coarsest = max(coarsest, rows[i, 0] * coarse * coarse)
    whole = sums[0]
    if not 0.0 < whole < math.inf:
        return -1
    first = sums[1] / whole
    answer[0] = centre + first
    answer[1] = math.sqrt(max(sums[2] / whole - first * first, 0.0))
    answer[2] = reference + math.log(whole)
    answer[3] = largest_n
    answer[4] = sums[3] / whole
    answer[5] = coarsest / whole
    return pair


@inner
def difference(first: Floats, second: Floats) -> float:
    """By how much two answers differ; not a number where one is none."""
    by_mean = abs(second[0] - first[0]) / second[1]
    by_sd = abs(math.log(second[1] / first[1]))
    return float(max(by_mean, by_sd, abs(second[2] - first[2])))


@inner
def _coarseness(merged: Floats, count: int) -> float:
    """Of the coarsest component."""
    coarsest = 0.0
    for i in range(count):
        coarsest = max(coarsest, merged[i, 5])
    return coarsest


def _resolve(
    values: Floats, reaches: Floats, rates: Floats, most: float, prior: Floats, n_prior: Floats,
    line: int, update: Floats, rules: Floats, answers: Floats, counts: Integers, merged: Floats,
) -> None:  # fmt: skip
    """Resolve every cell: what the last two rules say, (n_cells, 2, 6), and merged pairs of the last.

    Rules follow each other until two agree and the last is not coarse. Counts are -1 where none is so.
    """
    pairs, scratch = np.empty((MOST_PAIRS, 6)), np.empty((10, 128))
    work, rows = np.empty((3, MOST_NODES)), np.empty((MOST_NODES, 5))
    held, of_row = np.empty(HELD * HELD_COLUMNS), np.empty(HELD, np.int64)
    list_of_n, list_of_total = np.empty((MOST_NODES, COLUMNS)), np.empty((MOST_NODES, COLUMNS))
    keys, table = np.empty((MOST_PAIRS, 2), np.int64), np.empty(1 << 16, np.int64)
    for cell in range(len(values)):
        counts[cell] = -1
        for rule in range(len(rules)):
            answers[cell, 0] = answers[cell, 1]
            number = _sum_up(
                values[cell], reaches, rates, most, prior, n_prior, line, update, rules[rule], scratch,
                list_of_n, list_of_total, work, held, of_row, rows,
                answers[cell, 0, 2] if rule > 0 else -math.inf, rule > 0, pairs, answers[cell, 1],
            )  # fmt: skip
            if number < 0 or answers[cell, 1, 4] > DEEP:
                break
            # A comparison with what is no number is false.
            if rule == 0 or not difference(answers[cell, 0], answers[cell, 1]) <= TOLERANCE:
                continue
            fineness = _FINENESS if number > _FEW else _FINELY
            count = merge(pairs, number, fineness, NEGLIGIBLE, table, keys, merged[cell])
            if count < 0:
                break
            # Where nodes are few their pieces are of a kind, and finer rules cost little.
            limit = COARSE * min(number / _SEVERAL, 1.0)
            if max(_coarseness(merged[cell], count), answers[cell, 1, 5]) <= limit:
                counts[cell] = count
                break


resolve = compiled(
    _resolve,
    written(2), written(1), written(1), types.float64, written(1), written(1), types.int64, written(1),
    written(2), written(3), written(1, types.int64), written(3),
)  # fmt: skip
