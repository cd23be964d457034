"""What columns hold: families of types, wherever a column is stored, and columns that folders state.

Folders are as ``year=1993/month=06``; a spec declares the types of their values.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.fields import read_column
from suffice.pipeline.terms.declaration.scalars import read_choice

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
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?", re.ASCII)
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
    """

    type: HiveType
    keys: tuple[str, ...]
    is_made: bool = False

    def value(self, texts: Mapping[str, str | None]) -> int | str | dt.date | bool | None:
        """Return the value that folders state, given the texts of their keys; null where they state none."""
        stated = [texts.get(key) for key in self.keys]
        known = [text for text in stated if text is not None]
        if len(known) < len(stated):
            return None
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
    parts = [part for part in _PARTS if part in entry]
    if set(entry) != set(parts) or parts != list(_PARTS[: len(parts)]) or not parts:
        message = f"{name}: a date is made of {{year: KEY}}, {{year: KEY, month: KEY}}, or these and day"
        raise ValueError(message)
    return HiveColumn(type=HiveType.DATE, keys=tuple(_key(entry[part]) for part in parts), is_made=True)


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
    """Return a day, or the first day of a month."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text if len(text) == len("2013-01-05") else f"{text}-01")
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
