"""Derived columns that clean what is stored: texts read as dates and numbers, bins, and first values."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import PlainValidator, model_validator

from suffice.pipeline.terms.declaration import column_types, fields
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from suffice.pipeline.terms.declaration.date_formats import DateFormat
from suffice.pipeline.terms.declaration.derived_conditions import (
    DerivedColumn,
    Input,
    listed,
    read_safe_text,
    written,
)
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.scalars import read_choice, read_text
from suffice.pipeline.terms.declaration.wording import shown


class Parse(StrEnum):
    """What texts, or numbers, are read as."""

    DATE = "date"
    TIMESTAMP = "timestamp"
    NUMBER = "number"


class Epoch(StrEnum):
    """What is counted since 1970-01-01 00:00 UTC."""

    DAYS = "days"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


DIGITS_OF_A_DAY = "%Y%m%d"
"""The format whose integers rise with the day."""
NANOSECONDS = {
    Epoch.DAYS: 86_400 * 10**9,
    Epoch.SECONDS: 10**9,
    Epoch.MILLISECONDS: 10**6,
    Epoch.MICROSECONDS: 10**3,
    Epoch.NANOSECONDS: 1,
}
"""In one unit of what is counted."""

_OF_NUMBERS = ("suffixes", "decimal", "thousands")
_MOST_SUFFIXES = 100
_LONGEST_SUFFIX = 20
_DECIMALS = (".", ",")
_THOUSANDS = (",", ".", "'", "_", "space")


def _format(value: object) -> str:
    return read_text(value)


def _suffixes(value: object) -> dict[str, Fraction]:
    if not isinstance(value, dict) or not 1 <= len(value) <= _MOST_SUFFIXES:
        message = f"suffixes map 1 to {_MOST_SUFFIXES} texts to numbers, as {{K: 1000, M: 1000000}}"
        raise ValueError(message)
    return {_suffix(text): fields.read_bound(factor) for text, factor in value.items()}


def _suffix(value: object) -> str:
    text = read_safe_text(value)
    has_signs = any(sign.isdigit() or sign.isspace() or sign in "+-.,'_" for sign in text)
    if not 1 <= len(text) <= _LONGEST_SUFFIX or has_signs:
        message = (
            f"a suffix has 1 to {_LONGEST_SUFFIX} characters, none of them a digit, a space, a sign or what "
            f"divides digits: not '{shown(text)}'"
        )
        raise ValueError(message)
    return text


def _divider(value: object, signs: tuple[str, ...]) -> str:
    text = read_text(value)
    if text not in signs:
        message = f"{text!r} is not one of {' '.join(signs)}"
        raise ValueError(message)
    return text


class ParsedText(DerivedColumn):
    """A text, or a number, read as a date, a time or a number in a stated way; else null."""

    column: fields.Column
    parse: Annotated[Parse, PlainValidator(partial(read_choice, kind=Parse))]
    format: Annotated[str | None, PlainValidator(_format)] = None
    pivot: fields.Integer | None = None
    epoch: Annotated[Epoch | None, PlainValidator(partial(read_choice, kind=Epoch))] = None
    suffixes: Annotated[dict[str, Fraction] | None, PlainValidator(_suffixes)] = None
    decimal: Annotated[str | None, PlainValidator(partial(_divider, signs=_DECIMALS))] = None
    thousands: Annotated[str | None, PlainValidator(partial(_divider, signs=_THOUSANDS))] = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.parse is Parse.NUMBER:
            if (self.format, self.pivot, self.epoch) != (None, None, None):
                message = "format, pivot and epoch are of dates and times: of a number leave them out"
                raise ValueError(message)
            if (self.decimal or ".") == self.thousands:
                message = "decimal and thousands are two different signs; decimal is . where it is not stated"
                raise ValueError(message)
            return self
        if any(getattr(self, key) is not None for key in _OF_NUMBERS):
            message = "suffixes, decimal and thousands are of numbers: a date or a time has format, or epoch"
            raise ValueError(message)
        if (self.format is None) == (self.epoch is None):
            message = "needs format, as '%d-%b-%y', or epoch, as seconds"
            raise ValueError(message)
        if self.format is not None:
            DateFormat(self.format, self.pivot)
        elif self.pivot is not None:
            message = "a pivot is for %y of a format"
            raise ValueError(message)
        return self

    @property
    def date_format(self) -> DateFormat | None:
        """How dates and times are written, where a format is stated."""
        return None if self.format is None else DateFormat(self.format, self.pivot)

    def text(self, moment: dt.datetime) -> str:
        """Write a time, in UTC where it is counted, as a text that reads as it, as far as the text goes.

        Raises
        ------
        ValueError
            Where numbers are read.
        """
        if self.date_format is not None:
            return self.date_format.text(moment)
        if self.epoch is None:
            message = "a number is no time"
            raise ValueError(message)
        microseconds = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001 - naive
        return str(microseconds * 1000 // NANOSECONDS[self.epoch])

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of texts, or of numbers: a format reads an integer's digits."""
        return (Input(column=self.column, families=column_types.TEXTS | column_types.NUMBERS),)

    @property
    def family(self) -> TypeFamily:
        """Date, timestamp or numeric."""
        return _PARSED[self.parse]

    @property
    def rises(self) -> bool:
        """Whether what is later is the larger integer, where integers are stored."""
        return self.epoch is not None or self.format == DIGITS_OF_A_DAY

    @property
    def has_zone(self) -> bool:
        """Whether it is of instants: what is counted since 1970 is, and what a format has is not."""
        return self.epoch is not None and self.parse is Parse.TIMESTAMP

    def __str__(self) -> str:
        if self.epoch is not None:
            return f"{self.column} as {self.parse}, in {self.epoch} since 1970"
        if self.format is not None:
            return f"{self.column} as {self.parse}, written {self.date_format}"
        signs = (f"{key} '{sign}'" for key in ("decimal", "thousands") if (sign := getattr(self, key)))
        factors = (f"{text} times {format_number(factor)}" for text, factor in (self.suffixes or {}).items())
        return ", ".join([f"{self.column} as number", *signs, *factors])


_PARSED = {
    Parse.DATE: TypeFamily.DATE,
    Parse.TIMESTAMP: TypeFamily.TIMESTAMP,
    Parse.NUMBER: TypeFamily.NUMERIC,
}
_MOST_EDGES = 100


def _edges(value: object, fewest: int) -> tuple[Fraction, ...]:
    if not isinstance(value, list) or not fewest <= len(value) <= _MOST_EDGES:
        message = f"needs a list of {fewest} to {_MOST_EDGES} numbers"
        raise ValueError(message)
    edges = tuple(map(fields.read_bound, value))
    if any(later <= earlier for earlier, later in pairwise(edges)):
        message = "each number is above the one before it"
        raise ValueError(message)
    return edges


class Bins(DerivedColumn):
    """The lower edge of the bin that a number lies in, which begins at it; the last bin has both edges."""

    column: fields.Column
    bins: Annotated[tuple[Fraction, ...], PlainValidator(partial(_edges, fewest=2))]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of numbers."""
        return (Input(column=self.column, families=column_types.NUMBERS),)

    @property
    def family(self) -> TypeFamily:
        """Numeric."""
        return TypeFamily.NUMERIC

    def __str__(self) -> str:
        return f"{self.column} in bins from {listed(tuple(map(format_number, self.bins)))}"


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        message = "needs a list of texts, one more than there are cuts"
        raise ValueError(message)
    labels = tuple(map(read_safe_text, value))
    if len(set(labels)) < len(labels):
        message = "a label occurs twice"
        raise ValueError(message)
    return labels


class Cut(DerivedColumn):
    """A label for what is below the first of several numbers, from each to the next, and from the last on."""

    column: fields.Column
    cut: Annotated[tuple[Fraction, ...], PlainValidator(partial(_edges, fewest=1))]
    labels: Annotated[tuple[str, ...], PlainValidator(_labels)]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if len(self.labels) != len(self.cut) + 1:
            message = f"{len(self.cut)} cuts make {len(self.cut) + 1} parts, each of which needs a label"
            raise ValueError(message)
        return self

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of numbers."""
        return (Input(column=self.column, families=column_types.NUMBERS),)

    @property
    def family(self) -> TypeFamily:
        """Text."""
        return TypeFamily.TEXT

    def __str__(self) -> str:
        cuts = listed(tuple(map(format_number, self.cut)))
        return f"{self.column} cut at {cuts} into {listed(self.labels)}"


class CoalesceTo(StrEnum):
    """What several columns hold, of which the first value counts."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"


_COALESCED = {
    CoalesceTo.TEXT: TypeFamily.TEXT,
    CoalesceTo.NUMBER: TypeFamily.NUMERIC,
    CoalesceTo.BOOLEAN: TypeFamily.BOOLEAN,
    CoalesceTo.DATE: TypeFamily.DATE,
}
_MOST_COLUMNS = 100


def _columns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_COLUMNS:
        message = f"needs a list of 1 to {_MOST_COLUMNS} columns"
        raise ValueError(message)
    return tuple(map(fields.read_column, value))


def _otherwise(value: object, info: Any) -> str | Fraction:
    if info.data.get("type") is CoalesceTo.NUMBER:
        return fields.read_bound(value)
    return read_safe_text(value)


class Coalesced(DerivedColumn):
    """The first of several columns that has a value, or else a public one."""

    coalesce: Annotated[tuple[str, ...], PlainValidator(_columns)]
    type: Annotated[CoalesceTo, PlainValidator(partial(read_choice, kind=CoalesceTo))] = CoalesceTo.TEXT
    otherwise: Annotated[str | Fraction | None, PlainValidator(_otherwise)] = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.otherwise is not None and self.type not in {CoalesceTo.TEXT, CoalesceTo.NUMBER}:
            message = "otherwise is a text or a number: of truth values and dates leave it out"
            raise ValueError(message)
        return self

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns, all of one kind."""
        families = frozenset({_COALESCED[self.type]})
        return tuple(Input(column=column, families=families) for column in self.coalesce)

    @property
    def family(self) -> TypeFamily:
        """What is stated: text, numeric, boolean or date."""
        return _COALESCED[self.type]

    def __str__(self) -> str:
        otherwise = "" if self.otherwise is None else f", otherwise {written(self.otherwise)}"
        return f"the first value of {listed(self.coalesce)}{otherwise}"
