"""Bins as a spec states them: how many, which edges, or equal ones in the body and wider ones in the tails.

    bins: 128                                          equal from lower to upper
    bins: [-60, -15, 0, 15, 60, 1500]                  all edges, lower and upper among them
    bins: {body: [-60, 180], equal: 96, tail: 32}      equal in the body; beyond, each wider than the last
    bins: {body: [-20, -5, 10, 60], equal: 96, tail: 16}

Between any two numbers of a body there are equally many equal bins: guesses of quantiles make bins narrow
where rows are expected. A tail goes from an end of the body to the bound on its side. Its widths rise by a
constant ratio from that of the bin beside it, so that the last ends at the bound. It has fewer bins where
equal ones of that width suffice.

Edges are rounded to a power of ten that is at most a thousandth of the narrowest bin. They are decimals then,
exact as any bound, and the same on every machine. The canonical plan states them all.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Annotated

from pydantic import PlainValidator, ValidationInfo

from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import read_bound
from suffice.pipeline.terms.declaration.scalars import read_integer, read_mapping
from suffice.pipeline.terms.statistics.histogram_bins import FEWEST_BINS, MOST_BINS

_FORMS = "bins are a number of equal bins, a list of edges, or {body: [-60, 180], equal: 96, tail: 32}"
_DIGITS = decimal.Context(prec=60, rounding=decimal.ROUND_HALF_EVEN)
_HALVINGS = 200
"""Of the interval that holds a ratio of widths: many more than 60 digits need."""


def equal_edges(lower: Fraction, upper: Fraction, count: int) -> list[Fraction]:
    """Return the edges of so many equal bins, both ends among them."""
    return [lower + (upper - lower) * place / count for place in range(count + 1)]


def tail_widths(first: Fraction, length: Fraction, count: int) -> list[Fraction]:
    r"""Return widths that rise by a constant ratio and add up to a length, but for rounding.

    .. math:: w_i = w_0 r^i, \quad \sum_{i=1}^m w_i = L; \qquad
              w_i = L / \lceil L / w_0 \rceil \text{ where } m w_0 \ge L

    Parameters
    ----------
    first : Fraction
        ``w_0``, the width of the bin beside the tail.
    length : Fraction
        ``L``, above 0.
    count : int
        ``m``, at most: where they are enough, bins are equal, and about as wide as the one beside the tail.
    """
    if count * first >= length:
        fitting = math.ceil(length / first)
        return [length / fitting] * fitting
    with decimal.localcontext(_DIGITS):
        wanted = decimal.Decimal((length / first).numerator) / (length / first).denominator

        def total(ratio: decimal.Decimal) -> decimal.Decimal:
            # r + r^2 + ... + r^m
            return ratio * (ratio**count - 1) / (ratio - 1)

        low = high = decimal.Decimal(2)
        while total(high) < wanted:
            low, high = high, 2 * high
        low = decimal.Decimal(1) if low == 2 else low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if middle == 1 or total(middle) < wanted else (low, middle)
        return [first * Fraction(high**place) for place in range(1, count + 1)]


def thinning_edges(
    lower: Fraction, upper: Fraction, body: tuple[Fraction, ...], equal: int, tail: int
) -> list[Fraction]:
    """Return edges that are equally many between the numbers of a body, and thin out to both bounds.

    Parameters
    ----------
    lower, upper : Fraction
    body : tuple of Fraction
        Increasing, from `lower` to `upper`.
    equal : int
        Bins of the body, a multiple of its intervals.
    tail : int
        Bins of each tail that there is, at most.
    """
    each = equal // (len(body) - 1)
    edges = [body[0]]
    for begins, ends in pairwise(body):
        edges += equal_edges(begins, ends, each)[1:]
    if body[0] > lower:
        widths = tail_widths(edges[1] - edges[0], body[0] - lower, tail)
        below = [body[0] - width for width in accumulate(widths)]
        edges = [lower, *reversed(below[:-1]), *edges]
    if body[-1] < upper:
        widths = tail_widths(edges[-1] - edges[-2], upper - body[-1], tail)
        edges += [body[-1] + width for width in list(accumulate(widths))[:-1]]
        edges.append(upper)
    return edges


def rounded(edges: list[Fraction]) -> tuple[Fraction, ...]:
    """Round inner edges to a power of ten that is at most a thousandth of the narrowest bin."""
    narrowest = min(after - before for before, after in pairwise(edges))
    unit = Fraction(1)
    while unit > narrowest / 1000:
        unit /= 10
    while unit * 10 <= narrowest / 1000:
        unit *= 10
    return (edges[0], *(round(edge / unit) * unit for edge in edges[1:-1]), edges[-1])


def _bins(value: object, info: ValidationInfo) -> tuple[Fraction, ...]:
    lower, upper = info.data.get("lower"), info.data.get("upper")
    if lower is None or upper is None or lower >= upper:
        return ()  # refused where the bounds are
    if isinstance(value, dict):
        return _thinning(value, lower, upper)
    if isinstance(value, list):
        return _listed(value, lower, upper)
    try:
        count = read_integer(value)
    except ValueError:
        raise ValueError(_FORMS) from None
    return rounded(equal_edges(lower, upper, _in_range("a number of equal bins", count, FEWEST_BINS)))


def _listed(value: list[object], lower: Fraction, upper: Fraction) -> tuple[Fraction, ...]:
    edges = _increasing("edges", value)
    if (edges[0], edges[-1]) != (lower, upper):
        message = (
            f"the first edge is lower, {format_number(lower)}, and the last is upper, {format_number(upper)}"
        )
        raise ValueError(message)
    return edges


def _thinning(value: dict[str, object], lower: Fraction, upper: Fraction) -> tuple[Fraction, ...]:
    form = "{body: [-60, 180], equal: 96, tail: 32}"
    keys = {"body", "equal", "tail"} if "tail" in value else {"body", "equal"}
    entry = read_mapping(value, keys, f"a number, a list of edges, or as {form}")
    body = _increasing("body", entry["body"])
    if not lower <= body[0] < body[-1] <= upper:
        message = f"body lies from lower, {format_number(lower)}, to upper, {format_number(upper)}"
        raise ValueError(message)
    intervals = len(body) - 1
    equal = _in_range("equal", read_integer(entry["equal"]), 1)
    if equal % intervals:
        message = f"body has {intervals} intervals: equal is a multiple of that, not {equal}"
        raise ValueError(message)
    has_tail = (body[0], body[-1]) != (lower, upper)
    if has_tail != ("tail" in entry):
        message = (
            "tail is the number of bins from body to lower, and from body to upper: state it"
            if has_tail
            else "body goes from lower to upper: leave tail out"
        )
        raise ValueError(message)
    tail = _in_range("tail", read_integer(entry["tail"]), 1) if has_tail else 0
    return rounded(thinning_edges(lower, upper, body, equal, tail))


def _increasing(name: str, value: object) -> tuple[Fraction, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_BINS + 1:
        message = f"{name} is a list of 2 to {MOST_BINS + 1} numbers"
        raise ValueError(message)
    numbers = tuple(map(read_bound, value))
    if any(after <= before for before, after in pairwise(numbers)):
        message = f"each number of {name} is above the one before it"
        raise ValueError(message)
    return numbers


def _in_range(name: str, count: int, fewest: int) -> int:
    if not fewest <= count <= MOST_BINS:
        message = f"{name} lies in {fewest}..{MOST_BINS}, not {count}"
        raise ValueError(message)
    return count


def _atoms(value: object) -> tuple[Fraction, ...]:
    if not isinstance(value, list) or len(value) > MOST_BINS:
        message = "atoms is a list of values with a bin of their own, as [0]"
        raise ValueError(message)
    return tuple(sorted(map(read_bound, value)))


EdgesField = Annotated[tuple[Fraction, ...], PlainValidator(_bins)]
"""After ``lower`` and ``upper``, which it takes."""
AtomsField = Annotated[tuple[Fraction, ...], PlainValidator(_atoms)]
