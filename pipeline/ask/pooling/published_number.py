"""One published number: the noisy numbers that it may have come from, by its column's declared law.

Rounding, clamping and suppression are undone step by step; what the law makes impossible is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from suffice.pipeline.terms.declaration.declared_law import (
    ABSENT,
    EMPTY,
    ByLevel,
    OfColumn,
    Rounded,
)
from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.published_counts import PublishedCount
    from suffice.pipeline.terms.declaration.declared_law import PublishedColumn

Columns: TypeAlias = dict[str, list[str | None]]
"""A table as texts, column by column; None where it has no value."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was published of one count, in words and as the noisy numbers that it may have come from.

    Attributes
    ----------
    text : str
        As published; empty where nothing was.
    status : str
        ``published``, ``rounded``, ``clamped`` or ``suppressed``.
    count : PublishedCount
    """

    text: str
    status: str
    count: PublishedCount


def read_published(columns: Columns, column: str, declared: PublishedColumn, row: int) -> Published:
    """Return what was published in a row.

    Raises
    ------
    ValueError
        Where the law makes it impossible.
    """
    from suffice.pipeline.math.engines.noise_laws import LAWS
    from suffice.pipeline.math.engines.published_counts import PublishedCount

    noise = declared.noise
    spread = _amount(columns, noise.spread, row, "the spread of the noise")
    if not 0.0 < spread <= 1e12:
        message = f"the spread of the noise is {spread:g}, and must be above 0"
        raise ValueError(message)
    law = LAWS[noise.law](math.sqrt(spread) if noise.variance is not None else spread)
    text = columns[column][row]
    before, after = _around_noise(declared.order)
    below, is_hidden = -math.inf, False
    if declared.suppressed is not None:
        below = _amount(columns, declared.suppressed.below, row, "the threshold")
        shown_as = declared.suppressed.shown_as
        is_hidden = text == shown_as or (text is None and shown_as in {ABSENT, EMPTY})
    value = None if is_hidden else number_in(text)
    if not is_hidden and (value is None or abs(value) > 1e15):
        message = "there is no value" if text is None else f"{shown(text)!r} is no number up to 1e15"
        hint = (
            "" if declared.suppressed is not None else ": where that means suppressed, the law has to say so"
        )
        raise ValueError(message + hint)
    every = _Range(-math.inf, math.inf)
    counts = every
    if "threshold" in before:
        at = before[: before.index("threshold")]
        wanted = _Range(-math.inf, below, has_high=False) if is_hidden else _Range(below, math.inf)
        counts = _undone(declared, at, wanted, text, below).whole("no count is suppressed by the threshold")
    if is_hidden:
        noisy, status = every, "suppressed"
        if "threshold" in after:
            at = after[: after.index("threshold")]
            noisy = _undone(declared, at, _Range(-math.inf, below, has_high=False), text, below)
    else:
        assert value is not None  # noqa: S101 - refused above
        if law.is_whole and declared.rounded is None and not value.is_integer():
            kind = declared.noise.law.replace("_", " ")
            message = f"{text} was published, and {kind} noise leaves whole numbers"
            raise ValueError(message)
        noisy = _undone(declared, after, _Range(value, value), text, below)
        status = "rounded" if declared.rounded is not None else "published"
        status = "clamped" if noisy.low == -math.inf else status
    if law.is_whole:
        noisy = noisy.whole(f"no whole number is rounded to {text}")
    first, last = max(counts.low, 0.0), counts.high
    if first > last:
        message = "it was suppressed, and no count is below the threshold"
        raise ValueError(message)
    rounded = declared.rounded if "round" in before and not ("threshold" in before and is_hidden) else None
    return Published(
        str(text or ""), status, PublishedCount(law, noisy.low, noisy.high, first, last, rounded)
    )


@dataclass(frozen=True, slots=True)
class _Range:
    """Numbers between two ends, each of which is in or not."""

    low: float
    high: float
    has_low: bool = True
    has_high: bool = True

    def whole(self, rule: str) -> _Range:
        """Return its first and last whole number; refuse where there is none."""
        low, high = self.low, self.high
        if math.isfinite(low):
            low = float(math.ceil(low - 1e-9))
            low += float(abs(low - self.low) < 1e-9 and not self.has_low)
        if math.isfinite(high):
            high = float(math.floor(high + 1e-9))
            high -= float(abs(high - self.high) < 1e-9 and not self.has_high)
        if low > high:
            raise ValueError(rule)
        return _Range(low, high)


def _around_noise(order: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the steps before the noise, and those after it."""
    at = list(order).index("noise")
    return list(order[:at]), list(order[at + 1 :])


def _undone(
    declared: PublishedColumn, steps: Sequence[str], numbers: _Range, text: str | None, below: float
) -> _Range:
    """Return what some steps turn into these numbers, step by step from the last.

    Raises
    ------
    ValueError
        Where nothing becomes any of them.
    """
    for step in reversed(steps):
        if step == "round":
            assert declared.rounded is not None  # noqa: S101 - it is in the order
            numbers = _unrounded(declared.rounded, numbers, text)
        elif step == "clamp":
            if numbers.high < 0.0 or (numbers.high == 0.0 and not numbers.has_high):
                message = f"{text} was published, and numbers below 0 were set to 0"
                if text is None or numbers.low == -math.inf:
                    message = "it was suppressed, and the threshold is not above 0, below which nothing is"
                raise ValueError(message)
            if numbers.low < 0.0 or (numbers.low == 0.0 and numbers.has_low):
                numbers = _Range(-math.inf, numbers.high, has_high=numbers.has_high)
        else:
            # A point that a range shrinks to has no probability where noise is continuous.
            kept = max(numbers.low, below)
            if kept > numbers.high or (numbers.low < numbers.high == kept):
                is_point = declared.noise.is_whole and kept == numbers.high and numbers.has_high
                if not is_point:
                    message = f"{text} was published, and noisy numbers below {below:g} were suppressed"
                    raise ValueError(message)
            has_low = numbers.has_low if numbers.low >= below else True
            numbers = _Range(kept, numbers.high, has_low, numbers.has_high)
    return numbers


def _unrounded(rounded: Rounded, numbers: _Range, text: str | None) -> _Range:
    """Return what is rounded to the multiples in a range."""
    step, (low, has_low), (high, has_high) = rounded.to, (-math.inf, True), (math.inf, True)
    first = last = 0
    if math.isfinite(numbers.low):
        first = _multiple(numbers.low, step, up=True, is_in=numbers.has_low)
        (low, has_low), _ = _ends(rounded, first)
    if math.isfinite(numbers.high):
        last = _multiple(numbers.high, step, up=False, is_in=numbers.has_high)
        _, (high, has_high) = _ends(rounded, last)
    if math.isfinite(numbers.low) and math.isfinite(numbers.high) and first > last:
        message = f"{text} was published, which is no multiple of {step:g}"
        raise ValueError(message)
    return _Range(low, high, has_low, has_high)


def _multiple(number: float, step: float, *, up: bool, is_in: bool) -> int:
    """Return the first multiple from a number on, or the last up to it."""
    scaled = number / step
    nearest = round(scaled)
    if abs(scaled - nearest) <= 1e-9 * max(1.0, abs(scaled)):
        return nearest if is_in else nearest + (1 if up else -1)
    return math.ceil(scaled) if up else math.floor(scaled)


def _ends(rounded: Rounded, multiple: int) -> tuple[tuple[float, bool], tuple[float, bool]]:
    """Return both ends of what is rounded to a multiple, and whether they are."""
    step, value = rounded.to, multiple * rounded.to
    if rounded.direction == "down":
        return (value, True), (value + step, False)
    if rounded.direction == "up":
        return (value - step, False), (value, True)
    has_low = has_high = multiple % 2 == 0
    if rounded.ties == "up":
        has_low, has_high = True, False
    elif rounded.ties == "away_from_zero":
        has_low, has_high = multiple > 0, multiple < 0
    return (value - step / 2.0, has_low), (value + step / 2.0, has_high)


def _amount(columns: Columns, amount: float | OfColumn | ByLevel, row: int, what: str) -> float:
    """Return a number in a row: the constant, the column's, or that of the level.

    Raises
    ------
    ValueError
        Where there is none.
    """
    if isinstance(amount, OfColumn):
        number = number_in(columns[amount.column][row])
        if number is None:
            message = f"{what} is in the column {amount.column!r}, which has no number there"
            raise ValueError(message)
        return number
    if isinstance(amount, ByLevel):
        level = columns[amount.by][row]
        if level not in amount.values:
            message = f"{what} goes by {amount.by!r}, and the law has none for {level!r}"
            raise ValueError(message)
        return amount.values[level]
    return amount


def number_in(text: str | None) -> float | None:
    """Return the number that a text is; None where it is no finite one."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
