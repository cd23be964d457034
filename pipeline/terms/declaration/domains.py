"""Public domains: the keys of a group, the categories of a statistic. They come from the spec alone."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum

import numpy as np

from suffice.pipeline.terms.declaration.wording import counted

MOST_CELLS = 10**7
MOST_PERIODS = 10**5
"""Of all date ranges of a spec: each is listed wherever the spec or a manifest is read."""


class DomainKind(StrEnum):
    """Where the keys come from, and so how a column's values are compared with them.

    ``list``: texts, compared in the column's own type. ``range``: consecutive integers. ``period``:
    consecutive days, ISO weeks, months or years of a date column. ``boolean``: false and true, also as 0
    and 1.
    """

    LIST = "list"
    RANGE = "range"
    PERIOD = "period"
    BOOLEAN = "boolean"


class Every(StrEnum):
    """The length of a period."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    @property
    def form(self) -> str:
        """How a period's canonical label is written: ``2013-01-05``, ``2013-W05``, ``2013-01``, ``2013``.

        A week is one of ISO 8601: from Monday on, of the year that its Thursday lies in.
        """
        return _FORMS[self]

    @property
    def label_length(self) -> int:
        """Characters of a period's canonical label."""
        return len(self.form)


_FORMS = {Every.DAY: "YYYY-MM-DD", Every.WEEK: "YYYY-Www", Every.MONTH: "YYYY-MM", Every.YEAR: "YYYY"}
_DAYS = {Every.DAY: 1, Every.WEEK: 7}
"""Periods that are a number of days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain(Sequence[str | int]):
    """Declared keys in declared order.

    Parameters
    ----------
    kind : DomainKind
        How values are compared with the keys.
    keys : tuple of str, or range
        Texts; for ``range`` consecutive integers.
    every : Every or None
        The period of a ``period`` domain, whose keys are canonical labels.
    time_zone : str
        Whose days count for timestamps that are instants; others, and dates, are taken as they are. Only a
        window, a ``period`` domain of one key, has another one than UTC.
    """

    kind: DomainKind
    keys: tuple[str, ...] | range
    every: Every | None = None
    time_zone: str = "UTC"

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.keys)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        return self.keys[index]

    def canonical(self) -> object:
        """Return the domain as it stands in the canonical plan."""
        if self.kind is DomainKind.RANGE:
            return {"range": [str(self.keys[0]), str(self.keys[-1])]}
        if self.kind is DomainKind.PERIOD:
            return {"from": self.keys[0], "to": self.keys[-1], "every": str(self.every)}
        return list(self.keys)


def cell_count(groups: Mapping[str, Domain]) -> int:
    """Return the number of cells: the product of the groups' sizes."""
    return math.prod(len(domain) for domain in groups.values())


def key_columns(all_groups: Iterable[Mapping[str, Domain]]) -> dict[str, list[Domain]]:
    """Return the columns of several groups, each with its domains, no two of them equal."""
    columns: dict[str, list[Domain]] = {}
    for groups in all_groups:
        for column, domain in groups.items():
            domains = columns.setdefault(column, [])
            domains += [domain] if domain not in domains else []
    return columns


def cells_in_words(all_groups: Mapping[str, Mapping[str, Domain]]) -> str:
    """Return how many cells statistics have; where they differ, of which and by which columns."""
    names: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for name, groups in all_groups.items():
        names.setdefault((cell_count(groups), tuple(groups)), []).append(name)
    if len(names) == 1:
        ((count, _),) = names
        return counted(count, "cell")
    return "; ".join(
        f"{counted(count, 'cell')}{' by ' + ', '.join(columns) if columns else ''}: {', '.join(of)}"
        for (count, columns), of in names.items()
    )


def boolean_domain() -> Domain:
    """Return the domain of a Bernoulli column."""
    return Domain(kind=DomainKind.BOOLEAN, keys=("false", "true"))


def period_start(label: str, every: Every) -> dt.date:
    """Return the first day of a canonical period label.

    Raises
    ------
    ValueError
        Where `label` is not canonical: ``2013-1`` for ``2013-01``, say.
    """
    rest = {Every.DAY: "", Every.WEEK: "-1", Every.MONTH: "-01", Every.YEAR: "-01-01"}[every]
    try:
        start = dt.date.fromisoformat(label + rest)
    except ValueError:
        start = None
    if start is None or period_label(start, every) != label:
        message = f"{label!r} is not a {every} written as {every.form}"
        raise ValueError(message)
    return start


def is_period(label: str, every: Every) -> bool:
    """Tell whether a text is a canonical period label."""
    try:
        period_start(label, every)
    except ValueError:
        return False
    return True


def period_label(day: dt.date, every: Every) -> str:
    """Return the canonical label of the period that a day lies in."""
    if every is Every.WEEK:
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: every.label_length]


def next_period(start: dt.date, every: Every) -> dt.date:
    """Return the first day after the period that begins at `start`; past year 9999 an OverflowError."""
    if every in _DAYS:
        return start + dt.timedelta(days=_DAYS[every])
    if start.year == dt.MAXYEAR and (every is Every.YEAR or start.month == 12):
        message = "the period ends after year 9999"
        raise OverflowError(message)
    if every is Every.YEAR:
        return dt.date(start.year + 1, 1, 1)
    return dt.date(start.year + start.month // 12, start.month % 12 + 1, 1)


def period_end(start: dt.date, every: Every) -> int:
    """Return the ordinal of the first day after the period that begins at `start`; in year 10000, too."""
    try:
        return next_period(start, every).toordinal()
    except OverflowError:
        return dt.date.max.toordinal() + 1


def period_count(first: str, last: str, every: Every) -> int:
    """Return how many periods there are from `first` to `last`, both included, without listing them.

    Raises
    ------
    ValueError
        Where a label is not canonical, or `last` lies before `first`.
    """
    start, end = period_start(first, every), period_start(last, every)
    if end < start:
        message = f"{last!r} lies before {first!r}"
        raise ValueError(message)
    if every in _DAYS:
        return (end - start).days // _DAYS[every] + 1
    years = end.year - start.year
    return years + 1 if every is Every.YEAR else 12 * years + end.month - start.month + 1


def period_labels(first: str, last: str, every: Every) -> tuple[str, ...]:
    """Return the canonical labels from `first` to `last`, both included.

    Raises
    ------
    ValueError
        Where a label is not canonical, `last` lies before `first`, or there are more than `MOST_PERIODS`.
    """
    count = period_count(first, last, every)
    if count > MOST_PERIODS:
        raise ValueError(too_many_periods(count))
    if every is Every.WEEK:
        start = period_start(first, every)
        return tuple(period_label(start + dt.timedelta(days=7 * week), every) for week in range(count))
    first_period = np.datetime64(first)  # in the unit of the label
    labels = np.datetime_as_string(first_period + np.arange(count)).astype(f"U{every.label_length}")
    return tuple(labels.tolist())


def too_many_cells(count: int) -> str:
    """Return the text that refuses so many cells."""
    return f"{count} cells are declared, at most {MOST_CELLS} are released"


def too_many_periods(count: int) -> str:
    """Return the text that refuses so many periods."""
    return f"{count} periods are declared, at most {MOST_PERIODS} are released together"


def duplicate(keys: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the first two keys that are equal as text or as numbers, if any."""
    seen: dict[str | Decimal, int] = {}
    for position, key in enumerate(keys):
        value: str | Decimal = key
        try:
            number = Decimal(key)
            if key.isascii() and "_" not in key and number.is_finite():
                value = number
        except InvalidOperation:
            pass
        if value in seen:
            return seen[value], position
        seen[value] = position
    return None
