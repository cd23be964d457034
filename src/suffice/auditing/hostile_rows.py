"""Rows that follow from a spec alone, hostile ones among them, and neighbouring data sets made of them.

Who a row belongs to is known here by the unit's true value; how a writer then stores that value is another
matter. Neighbours differ in all rows of one such unit.

Nothing here looks at data.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.column_types import (
    TypeFamily,
)
from suffice.pipeline.terms.declaration.derived_values import Parse, ParsedText
from suffice.pipeline.terms.declaration.domains import period_end, period_label, period_start
from suffice.pipeline.terms.declaration.row_rules import stored_column
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from suffice.auditing.implied_columns import ImpliedColumn
    from suffice.pipeline.spec.spec import Spec

    Row = dict[str, Any]
    Use = tuple[str, frozenset[TypeFamily], TypeFamily | None, list[Any]]

_TODAY = dt.date(2013, 3, 10)
"""Of a spec without a first window; clocks changed in New York on it."""

HOSTILE: dict[TypeFamily, tuple[Any, ...]] = {
    TypeFamily.TEXT: (
        *("", " ", "null", "NaN", "other", "TRUE", "01", "1.0", "Łódź", "e\u0301", "\U0001d11e"),
        *("zero\u200bwidth", "a,b", 'a"b', "'; --", "x" * 3000),
    ),
    TypeFamily.BOOLEAN: (True, False),
    TypeFamily.DATE: (dt.date.min, dt.date.max, dt.date(1969, 12, 31), dt.date(2000, 2, 29)),
    TypeFamily.TIMESTAMP: (
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001 - given a zone where the column has one
        dt.datetime(2013, 3, 10, 6, 59, 59, 999_999),  # noqa: DTZ001
        dt.datetime(2013, 3, 10, 7, 0),  # noqa: DTZ001
        dt.datetime(2013, 10, 27, 0, 59, 59),  # noqa: DTZ001
        dt.datetime(2013, 10, 27, 1, 0),  # noqa: DTZ001
    ),
}
_REALS = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 2.0**53, 0.1)
_WHOLE = (0, 1, -1, 2, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
LARGE_IDS = (1734567890123456789, 2**53 + 1, 2**63 - 1, -(2**63), 2**53, 2**24 + 1)
"""Units that floating-point numbers cannot hold, or only some of them."""
_TEXT_IDS = ("a", "A", "1", "01", "1.0", " 1", "", "Łódź", "x" * 100)

MOST_ROWS = 600
"""Rows of a unit that are made to see whether they are cut; where a unit may keep more, that is not tried."""

MODES: tuple[tuple[str, ...], ...] = (
    ("spark", "pandas", "duckdb"),
    ("pandas", "pandas"),
    ("duckdb",),
    ("postgres", "postgres"),
    ("single", "single"),
)
"""Who writes the files of a data set, each in its own types."""


@dataclass(frozen=True, kw_only=True)
class WrittenPart:
    """The rows of one file, and who writes it."""

    writer: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Rows by file.

    Attributes
    ----------
    parts : tuple of Part
    what : str
        What it differs in from the one before.
    """

    parts: tuple[WrittenPart, ...]
    what: str = "rows"

    @property
    def n_rows(self) -> int:
        """How many rows all files have."""
        return sum(len(part.rows) for part in self.parts)


def window_of(spec: Spec) -> str:
    """Return the window that is audited: the first, or one in which clocks change."""
    if spec.window is None:
        return ALL
    return spec.window.first or period_label(_TODAY, spec.window.every)


@dataclass(kw_only=True)
class Maker:
    """Makes rows of one spec.

    Attributes
    ----------
    spec : Spec
    schema : mapping of str to ImpliedColumn
    rng : numpy.random.Generator
        What is drawn here decides which data are tried, and no noise.
    """

    spec: Spec
    schema: Mapping[str, ImpliedColumn]
    rng: np.random.Generator
    _number: int = field(default=0)

    def good_row(self, place: int | None = None) -> Row:
        """Return a row that lies in a cell, as far as a spec implies one: the same one for one place."""
        row = {}
        for name, column in self.schema.items():
            stated = [
                value for value in (coerced(each, column) for each in column.stated) if value is not None
            ]
            if name == self._window_column:
                row[name] = self._moment(inside=True)
            elif not stated:
                row[name] = coerced(self._chosen((1, 2, 3)), column) or self._any(column)
            elif place is not None and name in self.spec.key_columns:
                row[name] = stated[place % len(stated)]
            else:
                row[name] = self._chosen(stated)
        return row

    def hostile_row(self) -> Row:
        """Return a row of any kind."""
        row = self.good_row()
        for name, column in self.schema.items():
            dice = self.rng.random()
            if dice < 0.15:
                row[name] = None
            elif dice < 0.4:
                row[name] = self._any(column)
        if self._window_column is not None and self.rng.random() < 0.3:
            row[self._window_column] = self._moment(inside=bool(self.rng.random() < 0.5))
        return row

    @property
    def _window_column(self) -> str | None:
        """The stored column of the windows."""
        window = self.spec.window
        return None if window is None else stored_column(window.column, self.spec.derived)

    def ends(self) -> Iterator[Row]:
        """Yield pairs of rows whose numbers lie at opposite ends, in one cell each."""
        for lowest in (True, False):
            row = self.good_row(0)
            for name, column in self.schema.items():
                numbers = [
                    value
                    for value in (coerced(each, column) for each in column.stated)
                    if isinstance(value, int | float) and not isinstance(value, bool)
                ]
                if numbers and name not in self.spec.key_columns:
                    row[name] = min(numbers) if lowest else max(numbers)
                elif column.family is TypeFamily.BOOLEAN and name not in self.spec.key_columns:
                    row[name] = not lowest
                elif column.stated and name not in self.spec.key_columns:
                    row[name] = coerced(column.stated[0 if lowest else -1], column)
            yield row

    def unit_id(self) -> Any:
        """Return a unit that was not there before, often one that doubles cannot hold."""
        unit = self.spec.privacy.column_unit
        if unit is None:
            return None
        self._number += 1
        number, column = self._number, self.schema[self.spec.stored_unit or unit.column]
        of = self.spec.derived.get(unit.column)
        if isinstance(of, ParsedText):
            day = dt.datetime.combine(_TODAY, dt.time()) + dt.timedelta(days=number)
            return f"{number}" if of.parse is Parse.NUMBER else of.text(day)
        if column.family is TypeFamily.NUMERIC:
            if self.rng.random() < 0.5:
                return number
            large = int(self._chosen(LARGE_IDS))
            return large - 8 * number if large > 0 else large + 8 * number  # so that no two are equal
        made: dict[TypeFamily, Any] = {
            TypeFamily.TEXT: f"{self._chosen(_TEXT_IDS)}{number}",
            TypeFamily.BOOLEAN: bool(number % 2),
            TypeFamily.DATE: _TODAY + dt.timedelta(days=number),
            TypeFamily.TIMESTAMP: dt.datetime.combine(_TODAY, dt.time(0, number // 60 % 60, number % 60)),
        }
        return coerced(made[column.family], column)

    def unit_rows(self, *, strong: bool, place: int | None = None) -> list[Row]:
        """Return all rows of one new unit: many good ones, or some of any kind."""
        unit = self.spec.privacy.column_unit
        if unit is None:
            return [self.good_row(place) if strong else self.hostile_row()]
        n_rows = (unit.max_rows if unit.max_rows <= MOST_ROWS else 40) + 3
        who = self.unit_id()
        if not strong:
            rows = [self.hostile_row() for _ in range(int(self.rng.integers(1, 6)))]
        elif self.rng.random() < 0.5:
            rows = [self.good_row(place)] * n_rows  # identical rows, too, are each a row
        else:
            spread = place if unit.max_rows_per_cell is None else None  # a unit's most is in several cells
            rows = [self.good_row(spread) for _ in range(min(n_rows, 12))] * (1 + n_rows // 12)
        return [{**row, self.spec.stored_unit or unit.column: who} for row in rows]

    def chains(self, n_pairs: int, modes: tuple[tuple[str, ...], ...] = MODES) -> Iterator[list[DataSet]]:
        """Yield chains of data sets in which each is the neighbour of the next, `n_pairs` pairs in all."""
        made, number = 0, 0
        while made < n_pairs:
            length = min(8, n_pairs - made)
            yield list(self._chain(modes[number % len(modes)], length, strong=number % 2 == 0))
            made, number = made + length, number + 1

    def _chain(self, writers: tuple[str, ...], length: int, *, strong: bool) -> Iterator[DataSet]:
        """Yield `length` + 1 data sets; units come and go, or are replaced."""
        files = self._others(writers)
        replaces = self.spec.privacy.neighboring is NeighboringRelation.REPLACE_ONE
        present: list[object] = []

        def come(rows: list[Row]) -> None:
            present.append(object())
            self._put(files, present[-1], rows)

        for _ in range(2 * replaces):
            come(self.unit_rows(strong=strong, place=0))
        yield _data_set(writers, files, "rows")
        if replaces and self.spec.privacy.column_unit is None and strong and length > 1:
            for row in self.ends():
                length -= 1
                self._take(files, present.pop())
                come([row])
                yield _data_set(writers, files, "a record at one end in place of another")
        for step in range(length):
            leaves = bool(present) and (replaces or self.rng.random() < 0.4)
            if leaves:
                self._take(files, present.pop(int(self.rng.integers(len(present)))))
            if replaces or not leaves:
                come(self.unit_rows(strong=strong, place=step % 3 if strong else None))
            change = "a unit less" if leaves else "a unit more"
            yield _data_set(writers, files, "a unit in place of another" if replaces else change)

    def _others(self, writers: tuple[str, ...]) -> list[list[tuple[object, Row]]]:
        """Return files with rows of some units that stay, and one of nobody in each.

        Of a column with a null pandas writes integers as doubles.
        """
        files: list[list[tuple[object, Row]]] = [[] for _ in writers]
        for _ in range(int(self.rng.integers(0, 3))):
            self._put(files, object(), self.unit_rows(strong=False))
        unit = self.spec.stored_unit
        if unit is not None:
            for file in files:
                file.append((object(), {**self.hostile_row(), unit: None}))
        return files

    def _put(self, files: list[list[tuple[object, Row]]], who: object, rows: list[Row]) -> None:
        """Put the rows of a unit into files, in several wherever there are some."""
        start = int(self.rng.integers(len(files)))
        for number, row in enumerate(rows):
            files[(start + number) % len(files)].append((who, row))

    @staticmethod
    def _take(files: list[list[tuple[object, Row]]], who: object) -> None:
        for file in files:
            file[:] = [entry for entry in file if entry[0] is not who]

    def _moment(self, *, inside: bool) -> Any:
        """Return a date or time of the window, or just outside of it."""
        window = self.spec.window
        if window is None:
            return None
        of, column = self.spec.derived.get(window.column), self.schema[self._window_column or window.column]
        start = period_start(window_of(self.spec), window.every)
        end = period_end(start, window.every)
        day = int(self.rng.integers(start.toordinal(), end))
        if not inside:
            day = int(self._chosen((start.toordinal() - 1, end)))
        date = dt.date.fromordinal(min(max(day, 1), dt.date.max.toordinal()))
        if column.family is TypeFamily.DATE:
            return date
        moment = dt.datetime.combine(date, dt.time(12 if inside else int(self.rng.integers(24))))
        return coerced(of.text(moment) if isinstance(of, ParsedText) else moment, column)

    def _any(self, column: ImpliedColumn) -> Any:
        if column.family is TypeFamily.NUMERIC:
            return self._chosen(_WHOLE if column.is_whole else _REALS)
        return coerced(self._chosen(HOSTILE[column.family]), column)

    def _chosen(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]


def _data_set(writers: tuple[str, ...], files: list[list[tuple[object, Row]]], what: str) -> DataSet:
    parts = (
        WrittenPart(writer=writer, rows=tuple(row for _, row in file))
        for writer, file in zip(writers, files, strict=True)
    )
    return DataSet(parts=tuple(parts), what=what)


def coerced(value: Any, column: ImpliedColumn) -> Any:
    """Return a stated value as its column has it, None where the column cannot hold it."""
    family = column.family
    try:
        if family is TypeFamily.NUMERIC:
            number = int(float(value)) if column.is_whole and not isinstance(value, int) else value
            return int(number) if column.is_whole else float(number)
        if family is TypeFamily.TEXT:
            return str(value)
        if family is TypeFamily.BOOLEAN:
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value))
        if family is TypeFamily.DATE:
            return value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
        if not isinstance(value, dt.datetime):
            value = dt.datetime.combine(value, dt.time(12))
        return value.replace(tzinfo=dt.UTC) if column.has_zone else value
    except (TypeError, ValueError, OverflowError):
        return None
