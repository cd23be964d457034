"""Intervals of integers between whose ends a real lies: products, roots and roundings, towards the outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Interval(NamedTuple):
    """A non-negative real lies between `low` and `high`, in units that its user states."""

    low: int
    high: int


Signed = tuple[Interval, bool]
"""A magnitude, and whether the real is negative."""


def inner_product(left: Sequence[Signed], right: Sequence[Signed]) -> tuple[Interval, Interval]:
    """Return the sums of the products that are positive, and of the magnitudes of those that are negative."""
    # proof: intervals
    sums = [[0, 0], [0, 0]]
    for (x, x_is_negative), (y, y_is_negative) in zip(left, right, strict=True):
        ends = sums[x_is_negative != y_is_negative]
        ends[0] += x.low * y.low
        ends[1] += x.high * y.high
    return Interval(*sums[0]), Interval(*sums[1])


def rounded_difference(
    positive: Interval, negative: Interval, numerator: Interval, denominator: Interval
) -> int | None:
    """Return ``(positive - negative) * numerator / denominator``, rounded; None where it is undecided."""
    # proof: rounding
    if negative.low > positive.low:
        value = rounded_difference(negative, positive, numerator, denominator)
        return None if value is None else -value
    low = max(positive.low - negative.high, 0)
    high = positive.high - negative.low
    least = (2 * low * numerator.low // denominator.high + 1) // 2
    most = (2 * high * numerator.high // denominator.low + 1) // 2
    # Where the sign is open the real lies between -beyond and high.
    beyond = max(negative.high - positive.low, 0)
    is_open = 2 * beyond * numerator.high >= denominator.low
    return least if least == most and not is_open else None
