"""What is walked over: a column in order, or the windows of a series, and how steps are drawn."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from suffice.errors import UsageError
from suffice.pipeline.math.engines.pooled.ordered_law import OrderedLaw
from suffice.pipeline.terms.declaration.domains import Every, is_period, period_start

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW = "window"
"""The column of a series of releases that says whose cells they are."""
JUMPS, STEP = 0.01, 0.3
KINDS = ("walk", "ar1")
MOST_TIMES = 5_000
_LONGEST_SEASON = 366


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How cells that are next to each other in order are alike.

    Attributes
    ----------
    over : str
        A group column whose keys are in order, or ``"window"`` of a series of releases.
    order : {1, 2}, optional
        Whether positions take random steps, or slopes do, too: a local linear trend.
    season : int, optional
        How many times a season lasts, as 12 months or 7 days: as many effects are added that add up to 0, and
        are the same each time. Two seasons at least.
    jumps : float, optional
        The share of steps that are jumps, in 0..0.5; 0.01 otherwise. Jumps are of levels: slopes and seasons
        have none.
    kind : {"walk", "ar1"}, optional
        A random walk, or a process that returns to a level of each series, which is estimated.
    step : float, optional
        The scale of the half-normal hyperprior of steps, on the log scale of odds or rates: of one time.
    """

    over: str
    order: int = 1
    season: int | None = None
    jumps: float | None = None
    kind: str = "walk"
    step: float = STEP

    def __post_init__(self) -> None:
        """Check what a person states.

        Raises
        ------
        UsageError
        """
        for name, holds, rule in (
            ("over", _is_text(self.over), "a group column, or window"),
            ("kind", self.kind in KINDS, f"one of {', '.join(KINDS)}"),
            ("order", _is_number(self.order, whole=True) and self.order in {1, 2}, "1 or 2"),
            (
                "season",
                self.season is None
                or (_is_number(self.season, whole=True) and 2 <= self.season <= _LONGEST_SEASON),
                f"a number of times from 2 to {_LONGEST_SEASON}",
            ),
            (
                "jumps",
                self.jumps is None or (_is_number(self.jumps) and 0.0 <= self.jumps <= 0.5),
                "a share from 0 to 0.5",
            ),
            ("step", _is_number(self.step) and 0.0 < self.step <= 10.0, "a scale above 0, at most 10"),
        ):
            if not holds:
                message = f"over: {name} is {rule}, not {getattr(self, name)!r}"
                raise UsageError(message)
        if self.kind == "ar1" and self.order == 2:
            message = "over: kind=ar1 returns to a mean, and has no order=2: leave one of them out"
            raise UsageError(message)

    @property
    def is_on_a_line(self) -> bool:
        """Whether it is of first order, without a season: recursions on a line are exact."""
        return self.order == 1 and self.season is None

    @property
    def law(self) -> OrderedLaw:
        """The normal law of it, but for jumps."""
        return OrderedLaw(
            scale=self.step, has_slope=self.order == 2, returns=self.kind == "ar1", season=self.season
        )

    @property
    def share_of_jumps(self) -> float:
        """The share of steps that are jumps."""
        return JUMPS if self.jumps is None else float(self.jumps)

    @classmethod
    def of(cls, over: str | Walk) -> Self | Walk:
        """Read ``month``, or ``month order=2 season=12 jumps=0 kind=ar1 step=0.5``.

        Raises
        ------
        UsageError
            Where a word is no term, or a term has no such value.
        """
        if isinstance(over, Walk):
            return over
        if not _is_text(over):
            message = f"over is a group column, window, or a suffice.Walk, not {over!r}"
            raise UsageError(message)
        column, *words = over.split()
        terms: dict[str, object] = {}
        for word in words:
            name, equals, text = word.partition("=")
            if not equals or name not in _READERS or name in terms:
                message = f"over {over!r}: after the column come {', '.join(f'{key}=' for key in _READERS)}"
                raise UsageError(message)
            try:
                terms[name] = _READERS[name](text)
            except ValueError:
                message = f"over {over!r}: {name} is no number"
                raise UsageError(message) from None
        return cls(over=column, **terms)  # type: ignore[arg-type]

    def __str__(self) -> str:
        stated = [
            f"{each.name}={getattr(self, each.name)}"
            for each in fields(self)
            if each.name != "over" and getattr(self, each.name) != each.default
        ]
        return " ".join([self.over, *stated])


_READERS = {"order": int, "season": int, "jumps": float, "kind": str, "step": float}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.split())


def _is_number(value: object, *, whole: bool = False) -> bool:
    kinds = (int,) if whole else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)


def times_of(
    column: str, declared: Sequence[str | int], *, by_unit: bool = False
) -> tuple[dict[str | int, int], str]:
    """Return the time of every key, from 0 on, and in which order they are, in words.

    Integers and days, weeks, months or years are in their own order, with gaps; other keys in the order that
    the spec declares, one after the other.

    Parameters
    ----------
    column : str
    declared : sequence of str or int
        Its keys, each once, in declared order.
    by_unit : bool
        Whether a day, week, month, year or 1 is a time even where no two keys are next to each other.

    Raises
    ------
    UsageError
        Where they span too many times.
    """
    texts = [str(key) for key in declared]
    every = next((each for each in Every if all(is_period(text, each) for text in texts)), None)
    if every is not None:
        places, words = [_period_number(text, every) for text in texts], f"{every}s"
    elif all(re.fullmatch(r"-?(0|[1-9]\d*)", text, re.ASCII) for text in texts):
        places, words = [int(text) for text in texts], "integers"
    else:
        places, words = list(range(len(texts))), "the spec's keys"
    first = min(places)
    unit = 1 if by_unit else math.gcd(*(place - first for place in places)) or 1
    places = [(place - first) // unit for place in places]
    if max(places) >= MOST_TIMES:
        message = (
            f"over {column}: its keys span {max(places) + 1} times, at most {MOST_TIMES} are walked over"
        )
        raise UsageError(message)
    return dict(zip(declared, places, strict=True)), words


def _period_number(label: str, every: Every) -> int:
    start = period_start(label, every)
    if every is Every.YEAR:
        return start.year
    if every is Every.MONTH:
        return 12 * start.year + start.month
    return start.toordinal() // (7 if every is Every.WEEK else 1)
