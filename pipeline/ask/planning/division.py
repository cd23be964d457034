r"""Dividing one amount among several needs: the mathematics of shares, whatever the amount is.

Noise adds :math:`c_j / a_j^p` to the squared inflation of need j, with an amount :math:`a_j` of the whole
:math:`\sum_j a_j = A`: p is 2 of Laplace noise in epsilon, and 1 of noise in rho. With weights
:math:`w_j`,

.. math::
    \min \sum_j w_j c_j a_j^{-p} &: \quad a_j \propto (w_j c_j)^{1 / (p + 1)} \\
    \min \max_j w_j c_j a_j^{-p} &: \quad a_j \propto (w_j c_j)^{1 / p}

by the derivatives of the sum being equal, and by the terms of the maximum being equal. Where p differs
between needs both have one level :math:`\lambda` for all, which is found by bisection:
:math:`a_j = (p_j w_j c_j / \lambda)^{1 / (p_j + 1)}` and :math:`a_j = (w_j c_j / \lambda)^{1 / p_j}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


class Criterion(StrEnum):
    """What a division makes least: the weighted sum of squared inflations, or the largest of them."""

    SUM = "sum"
    MAXIMUM = "maximum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one statistic's noise costs.

    Attributes
    ----------
    cost : float, > 0
        c: variance that noise adds over that of sampling, with an amount of 1.
    power : float
        p: it goes as ``1 / amount^p``.
    weight : float, > 0
    """

    cost: float
    power: float = 2
    weight: float = 1.0


_DIGITS = range(3, 7)
"""After the point of a share: as many as leave the smallest three that count, where six do."""


def divided(needs: Sequence[Need], whole: float, criterion: Criterion) -> Floats:
    """Return the amounts that make the criterion least, (n_needs,), which add up to the whole.

    Parameters
    ----------
    needs : sequence of Need
        At least one.
    whole : float, > 0
    criterion : Criterion
    """
    power = np.array([need.power for need in needs], dtype=np.float64)
    pull = np.array([need.weight * need.cost for need in needs])
    if criterion is Criterion.SUM:
        pull, exponent = pull * power, 1.0 / (power + 1.0)
    else:
        exponent = 1.0 / power
    logs = exponent * np.log(pull)

    def excess(level: float) -> float:
        return float(np.logaddexp.reduce(logs - exponent * level)) - math.log(whole)

    # Each amount alone is the whole at one of these levels, and an n-th of it at another; both are widened by
    # what rounding may take.
    alone = (logs - math.log(whole)) / exponent
    low, high = float(alone.max()), float((alone + math.log(len(needs)) / exponent).max())
    room = 1e-9 * (1.0 + abs(low) + abs(high))
    level = brentq(excess, low - room, high + room, xtol=1e-13)
    amounts: Floats = np.exp(logs - exponent * level)
    scaled: Floats = amounts * (whole / amounts.sum())
    return scaled


def criterion_of(needs: Sequence[Need], amounts: Sequence[float] | Floats, criterion: Criterion) -> float:
    """Return what a division makes least, of the part that noise adds."""
    added = [
        need.weight * need.cost / amount**need.power for need, amount in zip(needs, amounts, strict=True)
    ]
    return float(sum(added) if criterion is Criterion.SUM else max(added))


def rounded_shares(amounts: Sequence[float] | Floats, least: Sequence[bool]) -> tuple[Fraction, ...]:
    """Round shares of 1 to decimals that add up to exactly 1, by largest remainders.

    Parameters
    ----------
    amounts : sequence of float
        That add up to anything.
    least : sequence of bool
        Which of them a share may not fall short of: those are rounded up, and the others give way. Where the
        others, which keep a unit each, have not enough to give, all give way: first what was rounded up most.
    """
    parts = np.asarray(amounts, dtype=np.float64) / np.sum(amounts)
    digits = next((of for of in _DIGITS if parts.min() >= 10.0 ** (2 - of)), _DIGITS[-1])
    units = 10**digits
    exact = parts * units
    whole = np.where(least, np.ceil(exact - 1e-9), np.floor(exact)).astype(np.int64)
    whole = np.maximum(whole, 1)
    left = units - int(whole.sum())
    free = np.flatnonzero(~np.asarray(least))
    # A share stays at least a unit: the others give what they have beyond it.
    if not free.size or np.sum(whole[free] - 1) < -left:
        free = np.arange(len(parts))
    order = free[np.argsort(-(exact - whole)[free], kind="stable")]
    step = 1 if left > 0 else -1
    place = 0
    while left:
        position = order[place % len(order)] if step > 0 else order[-1 - place % len(order)]
        if step > 0 or whole[position] > 1:
            whole[position] += step
            left -= step
        place += 1
    return tuple(Fraction(int(number), units) for number in whole)
