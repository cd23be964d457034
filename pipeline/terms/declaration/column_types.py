"""What columns hold: families of types, wherever a column is stored, and columns that folders state.

Folders are as ``year=1993/month=06``; a spec declares the types of their values.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from suffice.pipeline.terms.declaration.date_formats import DateFormat
from suffice.pipeline.terms.declaration.documents import LEFT_OUT
from suffice.pipeline.terms.declaration.fields import read_column
from suffice.pipeline.terms.declaration.scalars import read_choice, read_integer, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping


class TypeFamily(StrEnum):
    """What a column is to the schema check.

    ``numeric``: integers, floating-point numbers and decimals. ``null``: a column without a value in its
    file, which serves wherever another family does.
    """

    NUMERIC = "numeric"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NULL = "null"


ANY_FAMILY = frozenset(TypeFamily)
BOOLEANS = frozenset({TypeFamily.BOOLEAN})
DATES = frozenset({TypeFamily.DATE, TypeFamily.TIMESTAMP})
NUMBERS = frozenset({TypeFamily.NUMERIC})
TEXTS = frozenset({TypeFamily.TEXT})
TIMESTAMPS = frozenset({TypeFamily.TIMESTAMP})


class ColumnFamily(StrEnum):
    """What a contract says that a column holds: a family, not a type. ``int32`` and ``int64`` are one.

    ``timestamp`` has no time zone, ``timestamp_with_zone`` is an instant.
    """

    INTEGER = "integer"
    FLOATING = "floating"
    DECIMAL = "decimal"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_WITH_ZONE = "timestamp_with_zone"

    @property
    def read_as(self) -> TypeFamily:
        """What it is to statistics and derived columns."""
        return _READ_AS[self]


_READ_AS = {
    ColumnFamily.INTEGER: TypeFamily.NUMERIC,
    ColumnFamily.FLOATING: TypeFamily.NUMERIC,
    ColumnFamily.DECIMAL: TypeFamily.NUMERIC,
    ColumnFamily.TEXT: TypeFamily.TEXT,
    ColumnFamily.BOOLEAN: TypeFamily.BOOLEAN,
    ColumnFamily.DATE: TypeFamily.DATE,
    ColumnFamily.TIMESTAMP: TypeFamily.TIMESTAMP,
    ColumnFamily.TIMESTAMP_WITH_ZONE: TypeFamily.TIMESTAMP,
}
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder whose rows have null."""
_INTEGER = re.compile(r"-?\d{1,19}", re.ASCII)
_DATE = re.compile(
    r"(?P<year>\d{4})(?:(?P<month>\d\d)(?P<day>\d\d)"
    r"|-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d)(?:[ T]([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d)?)?)?)?)",
    re.ASCII,
)
_PARTS = ("year", "month", "day")
_DIGITS = re.compile(r"\d{1,4}", re.ASCII)


class HiveType(StrEnum):
    """What the values of a folder's key are; what does not convert is null."""

    INTEGER = "integer"
    TEXT = "text"
    DATE = "date"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveColumn:
    """A column that folders state.

    Parameters
    ----------
    type : HiveType
        What its values are.
    keys : tuple of str
        The folders' keys that state it: one; or of a date made of several its year, month and day, the last
        of which may be absent and are then the first.
    is_made : bool
        Whether the keys are the numbers of a date's year, month and day.
    format : DateFormat or None
        How a date is written, where it is not as ``2013-01-05``, ``2013-01``, ``20130105``, or the first of
        these with a time of day.
    """

    type: HiveType
    keys: tuple[str, ...]
    is_made: bool = False
    format: Annotated[DateFormat | None, Field(json_schema_extra={LEFT_OUT: True})] = None

    def value(self, texts: Mapping[str, str | None]) -> int | str | dt.date | bool | None:
        """Return the value that folders state, given the texts of their keys; null where they state none."""
        stated = [texts.get(key) for key in self.keys]
        known = [text for text in stated if text is not None]
        if len(known) < len(stated):
            return None
        if self.format is not None:
            return self.format.date(known[0])
        return _made_date(known) if self.is_made else _CONVERT[self.type](known[0])

    def dates(self, texts: Mapping[str, str | None]) -> tuple[dt.date, dt.date] | None:
        """Return the first and the last date that folders below these may state; None where all may be.

        Where the year is no number there are none: the first is after the last.
        """
        year = self.keys[0]
        if not self.is_made or year not in texts:
            return None
        start = _made_date([texts[year] or ""])
        if start is None:
            return dt.date.max, dt.date.min
        return start, start.replace(month=12, day=31)


def read_hive(value: object) -> dict[str, HiveColumn]:
    """Read the entry ``hive``: types of folders' keys, and dates made of several.

    Raises
    ------
    ValueError
        Naming the column and the rule.
    """
    if not isinstance(value, dict) or not value:
        message = "hive maps the keys of folders to types, as {year: integer, month: integer}"
        raise ValueError(message)
    return {read_column(name): _read_entry(name, entry) for name, entry in value.items()}


def _read_entry(name: str, entry: object) -> HiveColumn:
    if not isinstance(entry, dict):
        try:
            return HiveColumn(type=read_choice(entry, kind=HiveType), keys=(_key(name),))
        except ValueError as error:
            message = f"{name}: {error}"
            raise ValueError(message) from None
    if "date" in entry:
        return _read_format(name, entry)
    parts = [part for part in _PARTS if part in entry]
    if set(entry) != set(parts) or parts != list(_PARTS[: len(parts)]) or not parts:
        message = f"{name}: a date is made of {{year: KEY}}, {{year: KEY, month: KEY}}, or these and day"
        raise ValueError(message)
    return HiveColumn(type=HiveType.DATE, keys=tuple(_key(entry[part]) for part in parts), is_made=True)


def _read_format(name: str, entry: dict[str, object]) -> HiveColumn:
    """Read a date whose format is stated."""
    if not entry.keys() <= {"date", "pivot"}:
        message = f"{name}: a stated format is as {{date: '%d-%b-%y', pivot: 1970}}"
        raise ValueError(message)
    try:
        pivot = read_integer(entry["pivot"]) if "pivot" in entry else None
        written = DateFormat(read_text(entry["date"]), pivot)
    except ValueError as error:
        message = f"{name}: {error}"
        raise ValueError(message) from None
    return HiveColumn(type=HiveType.DATE, keys=(_key(name),), format=written)


def _key(value: object) -> str:
    if not isinstance(value, str) or not value or "=" in value or "/" in value:
        message = "the key of a folder is a text without = and /"
        raise ValueError(message)
    return value


def _integer(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _text(text: str) -> str | None:
    return text


def _date(text: str) -> dt.date | None:
    """Return a day, whatever the time of day beside it, or the first day of a month."""
    parts = _DATE.fullmatch(text)
    if parts is None:
        return None
    month, day = parts["month"] or parts["iso_month"], parts["day"] or parts["iso_day"] or "1"
    try:
        return dt.date(int(parts["year"]), int(month), int(day))
    except ValueError:
        return None


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _made_date(texts: list[str]) -> dt.date | None:
    if not all(map(_DIGITS.fullmatch, texts)):
        return None
    try:
        return dt.date(*[*map(int, texts), 1, 1][:3])
    except ValueError:
        return None


_CONVERT = {
    HiveType.INTEGER: _integer,
    HiveType.TEXT: _text,
    HiveType.DATE: _date,
    HiveType.BOOLEAN: _boolean,
}
