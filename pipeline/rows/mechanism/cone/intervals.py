"""Intervals of integers between whose ends a real lies: roots, products, roundings, towards the outside."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Interval(NamedTuple):
    """A non-negative real lies between `low` and `high`, in units that its user states."""

    low: int
    high: int


Signed = tuple[Interval, bool]
"""A magnitude, and whether the real is negative."""


def slack(length: int) -> int:
    """Return how much wider than its root's low end an interval is made, in units of ``2**-length``."""
    return 1 << (length // 4)


def root_of_quotient(energy: int, square: Interval, length: int) -> Interval | None:
    """Return ``sqrt(E / s)`` in units of ``2**-length``; None where the interval is not narrow.

    E lies between `energy` and ``energy + 1``, and s in `square`, in the same units.
    """
    # proof: intervals
    low = isqrt((energy << 2 * length) // square.high)
    high = low + slack(length)
    return Interval(low, high) if high * high * square.low >= (energy + 1) << 2 * length else None


def root(square: Interval, n_terms: int, length: int) -> Interval | None:
    """Return the root in units of ``2**-length``, its square in units of ``4**-length``; None as above.

    The square is a sum of so many squares of intervals that are about `slack` wide.
    """
    # proof: intervals
    low = isqrt(square.low)
    high = low + n_terms * slack(length)
    return Interval(low, high) if low > 0 and high * high >= square.high else None


def inner_product(left: Sequence[Signed], right: Sequence[Signed]) -> tuple[Interval, Interval]:
    """Return the sums of the products that are positive, and of the magnitudes of those that are negative."""
    # proof: intervals
    sums = [[0, 0], [0, 0]]
    for (x, x_is_negative), (y, y_is_negative) in zip(left, right, strict=True):
        ends = sums[x_is_negative != y_is_negative]
        ends[0] += x.low * y.low
        ends[1] += x.high * y.high
    return Interval(*sums[0]), Interval(*sums[1])


def rounded_quotient(
    positive: Interval, negative: Interval, numerator: Interval, denominator: Interval
) -> int | None:
    """Return the integer nearest to ``(positive - negative) numerator / denominator``; None if undecided."""
    # proof: rounding
    above, below = positive.low - negative.high, negative.low - positive.high
    low = max(above, below, 0)
    high = max(positive.high - negative.low, negative.high - positive.low)
    nearest = (2 * low * numerator.low // denominator.high + 1) // 2
    if 2 * high * numerator.high >= (2 * nearest + 1) * denominator.low:
        return None
    return -nearest if below > 0 else nearest
