"""Derived columns: what each declares, and those that are true, false or null.

These are comparisons, membership, parts of texts, presence, and combinations of them.
"""

from __future__ import annotations

import datetime as dt
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from suffice.pipeline.terms.declaration.column_types import (
    ANY_FAMILY,
    BOOLEANS,
    DATES,
    NUMBERS,
    TEXTS,
    TypeFamily,
)
from suffice.pipeline.terms.declaration.domain_entries import parse_domain
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import Boolean, Column, SpecModel, read_bound, read_column
from suffice.pipeline.terms.declaration.known_keys import read_as
from suffice.pipeline.terms.declaration.scalars import read_boolean, read_text
from suffice.pipeline.terms.declaration.time_zones import TimeZone
from suffice.pipeline.terms.declaration.wording import is_safe, shown

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A column that another is computed from.

    Attributes
    ----------
    column : str
        Of the source, or derived.
    families : frozenset of TypeFamily
        What it may be.
    needs_zone : bool
        Whether its times need a time zone of their own.
    """

    column: str
    families: frozenset[TypeFamily]
    needs_zone: bool = False


class DerivedColumn(SpecModel, ABC):
    """A column computed from others of the same row, by a public and total function."""

    section: ClassVar[str] = "derived"
    """The key of a spec that it stands below."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Input, ...]:
        """The columns that it is computed from, in order."""

    @property
    @abstractmethod
    def family(self) -> TypeFamily:
        """What it is: boolean, numeric or text."""

    @property
    def time_zones(self) -> tuple[str, ...]:
        """The names of the time zones that it needs."""
        return ()

    @property
    def has_zone(self) -> bool:
        """Whether it is of instants, which lie in every time zone."""
        return False

    @abstractmethod
    def __str__(self) -> str:
        """Say what it is, in a line."""


def one_of(model: SpecModel, names: Sequence[str], what: str) -> str:
    """Return which of several keys is stated.

    Raises
    ------
    ValueError
        Where it is none, or more than one.
    """
    stated = [name for name in names if getattr(model, name) is not None]
    if len(stated) != 1:
        message = f"needs exactly one of {what}"
        raise ValueError(message)
    return stated[0]


class _Condition(DerivedColumn):
    """A column that is true, false or null."""

    @property
    def family(self) -> TypeFamily:
        """Boolean."""
        return TypeFamily.BOOLEAN


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOST_CONDITIONS = 100


def _constant(value: object) -> Fraction | str:
    """Return a number, or a date as it is written."""
    text = read_text(value)
    if _DATE.fullmatch(text):
        try:
            dt.date.fromisoformat(text)
        except ValueError:
            message = f"{text!r} is no date"
            raise ValueError(message) from None
        return text
    return read_bound(text)


def _range(value: object) -> tuple[Fraction | str, Fraction | str]:
    if not isinstance(value, list) or len(value) != 2:
        message = "a range is written as [lowest, highest]"
        raise ValueError(message)
    lowest, highest = (_constant(end) for end in value)
    if isinstance(lowest, str) != isinstance(highest, str):
        message = "both ends of a range are numbers, or both are dates"
        raise ValueError(message)
    if highest < lowest:  # type: ignore[operator] # both are numbers, or both are texts
        message = f"the range ends at {written(highest)}, before it begins at {written(lowest)}"
        raise ValueError(message)
    return lowest, highest


Constant = Annotated[Fraction | str | None, PlainValidator(_constant)]


class ColumnComparison(_Condition):
    """A column compared with a public constant, or with both ends of a range, which belong to it."""

    column: Column
    above: Constant = None
    at_least: Constant = None
    below: Constant = None
    at_most: Constant = None
    between: Annotated[tuple[Fraction | str, Fraction | str] | None, PlainValidator(_range)] = None
    time_zone: TimeZone | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        one_of(self, _COMPARISONS, ", ".join(_COMPARISONS))
        if self.time_zone is not None and not self.is_of_dates:
            message = "a time_zone says on which date a time lies: the column is compared with a number"
            raise ValueError(message)
        return self

    @property
    def lowest(self) -> tuple[Fraction | str, bool] | None:
        """The lower end, and whether it belongs to what is true; None where there is none."""
        if self.between is not None:
            return self.between[0], True
        return _end(self.above, self.at_least)

    @property
    def highest(self) -> tuple[Fraction | str, bool] | None:
        """The upper end, and whether it belongs to what is true; None where there is none."""
        if self.between is not None:
            return self.between[1], True
        return _end(self.below, self.at_most)

    @property
    def is_of_dates(self) -> bool:
        """Whether dates are compared, not numbers."""
        ends = [end[0] for end in (self.lowest, self.highest) if end is not None]
        return isinstance(ends[0], str)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column compared."""
        needed = DATES if self.is_of_dates else NUMBERS
        return (Input(column=self.column, families=needed, needs_zone=self.time_zone is not None),)

    @property
    def time_zones(self) -> tuple[str, ...]:
        """The zone in which times have their dates, where it is stated."""
        return (self.time_zone,) if self.time_zone else ()

    def __str__(self) -> str:
        key = one_of(self, _COMPARISONS, "")
        value = getattr(self, key)
        ends = " and ".join(map(written, value)) if isinstance(value, tuple) else written(value)
        zone = f" in {self.time_zone}" if self.time_zone else ""
        return f"{self.column} {key.replace('_', ' ')} {ends}{zone}"


_COMPARISONS = ("above", "at_least", "below", "at_most", "between")


def _end(
    without: Fraction | str | None, including: Fraction | str | None
) -> tuple[Fraction | str, bool] | None:
    if without is not None:
        return without, False
    return None if including is None else (including, True)


def written(constant: Fraction | str) -> str:
    """Write a constant, or what a map leads to."""
    return constant if isinstance(constant, str) else format_number(constant)


def _members(value: object, info: ValidationInfo) -> Domain:
    if isinstance(value, dict) and set(value) == {"from", "to", "every"}:
        message = "periods are no members: compare the date, as between: [2013-01-01, 2013-12-31]"
        raise ValueError(message)
    directory = (info.context or {}).get("directory")
    return parse_domain(value, directory=directory, column=str(info.data.get("column", "")))


def read_safe_text(value: object) -> str:
    """Return a text that shows as it is."""
    text = read_text(value)
    if not is_safe(text):
        message = f"'{shown(text)}' has a character that cannot be seen, or turns text around"
        raise ValueError(message)
    return text


class Membership(_Condition):
    """Whether a column's value is among public ones, which are compared with it as keys of groups are."""

    column: Column
    is_in: Annotated[Domain | None, PlainValidator(_members)] = Field(default=None, alias="in")
    equals: Annotated[str | None, PlainValidator(read_safe_text)] = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        one_of(self, ("is_in", "equals"), "in, equals")
        return self

    @property
    def domain(self) -> Domain:
        """The values that are true."""
        if self.is_in is not None:
            return self.is_in
        return Domain(kind=DomainKind.LIST, keys=(self.equals or "",))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column looked up."""
        return (Input(column=self.column, families=ANY_FAMILY),)

    def __str__(self) -> str:
        if self.is_in is None:
            return f"{self.column} equals {shown(self.equals or '')}"
        keys = self.is_in.keys
        if isinstance(keys, range):
            return f"{self.column} in {keys[0]}..{keys[-1]}"
        return f"{self.column} in {listed(keys)}"


class Presence(_Condition):
    """Whether a column has a value: nulls and NaN are none. It is never null itself.

    ``is_null: true`` is another way to write ``present: false``, and the same plan.
    """

    column: Column
    present: Boolean = True
    is_null: Annotated[bool | None, PlainValidator(read_boolean)] = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _as_present(cls, entry: Any) -> Any:
        if not isinstance(entry, dict):
            return entry
        if ("present" in entry) == ("is_null" in entry):
            message = "needs exactly one of present, is_null"
            raise ValueError(message)
        if "present" in entry:
            return entry
        others = {key: value for key, value in entry.items() if key != "is_null"}
        return {**others, "present": str(not read_boolean(entry["is_null"])).lower()}

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column looked at."""
        return (Input(column=self.column, families=ANY_FAMILY),)

    def __str__(self) -> str:
        return f"{self.column} has {'a' if self.present else 'no'} value"


_MOST_TEXTS = 100
_MATCHES = ("starts_with", "ends_with", "contains")


def _texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    texts = tuple(map(read_safe_text, values))
    if not 1 <= len(texts) <= _MOST_TEXTS or "" in texts or len(set(texts)) < len(texts):
        message = f"needs a text, or a list of 1 to {_MOST_TEXTS} different ones, none of them empty"
        raise ValueError(message)
    return texts


Texts = Annotated[tuple[str, ...] | None, PlainValidator(_texts)]


class TextMatch(_Condition):
    """Whether a text begins with one of several public ones, ends with one, or has one in it."""

    column: Column
    starts_with: Texts = None
    ends_with: Texts = None
    contains: Texts = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        one_of(self, _MATCHES, ", ".join(_MATCHES))
        return self

    @property
    def match(self) -> str:
        """How it is compared: ``starts_with``, ``ends_with`` or ``contains``."""
        return one_of(self, _MATCHES, "")

    @property
    def texts(self) -> tuple[str, ...]:
        """What it is compared with."""
        texts: tuple[str, ...] = getattr(self, self.match)
        return texts

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of texts."""
        return (Input(column=self.column, families=TEXTS),)

    def __str__(self) -> str:
        return f"{self.column} {self.match.replace('_', ' ')} {listed(self.texts)}"


def listed(keys: tuple[str, ...], most: int = 5) -> str:
    """Write the first of several texts, and how many there are where that is not all."""
    more = f", ... ({len(keys)} in all)" if len(keys) > most else ""
    return ", ".join(map(shown, keys[:most])) + more


def _conditions(value: object, info: ValidationInfo) -> tuple[str | DerivedColumn, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= _MOST_CONDITIONS:
        message = f"needs a list of 2 to {_MOST_CONDITIONS} conditions"
        raise ValueError(message)
    return tuple(read_condition(entry, info) for entry in value)


def read_condition(entry: object, info: ValidationInfo) -> str | DerivedColumn:
    """Read a condition: the name of a boolean column, or what a mapping says.

    Raises
    ------
    pydantic.ValidationError, ValueError
        Where it is neither.
    """
    return _condition(entry, info.context)


def condition_of_plan(entry: object) -> str | DerivedColumn:
    """Read a condition as a canonical plan states it: it names no file."""
    return _condition(entry, None)


def _condition(entry: object, context: dict[str, Any] | None) -> str | DerivedColumn:
    if isinstance(entry, str):
        return read_column(entry)
    return read_as(CONDITIONS, entry, context, _FORMS)


def condition_inputs(of: str | DerivedColumn) -> tuple[Input, ...]:
    """Return the columns of a condition; a name is one of booleans."""
    return (Input(column=of, families=BOOLEANS),) if isinstance(of, str) else of.inputs


Conditions = Annotated[tuple[str | DerivedColumn, ...] | None, PlainValidator(_conditions)]


class Combination(_Condition):
    """Whether any, or all, of several conditions are true: boolean columns by name, or conditions."""

    any_of: Conditions = None
    all_of: Conditions = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        one_of(self, ("any_of", "all_of"), "any_of, all_of")
        return self

    @property
    def conditions(self) -> tuple[str | DerivedColumn, ...]:
        """What is combined, a column by its name."""
        return self.any_of or self.all_of or ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns of all conditions."""
        return tuple(each for of in self.conditions for each in condition_inputs(of))

    @property
    def time_zones(self) -> tuple[str, ...]:
        """The zones of all conditions."""
        return tuple(zone for of in self.conditions if not isinstance(of, str) for zone in of.time_zones)

    def __str__(self) -> str:
        parts = (f"({of})" if isinstance(of, Combination) else str(of) for of in self.conditions)
        return f" {'or' if self.any_of else 'and'} ".join(parts)


class Negation(_Condition):
    """Whether a condition is false: null where it is null."""

    condition: Annotated[str | DerivedColumn, PlainValidator(read_condition)] = Field(alias="not")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns of the condition."""
        return condition_inputs(self.condition)

    @property
    def time_zones(self) -> tuple[str, ...]:
        """The zones of the condition."""
        return () if isinstance(self.condition, str) else self.condition.time_zones

    def __str__(self) -> str:
        return f"not ({self.condition})"


CONDITIONS: tuple[type[DerivedColumn], ...] = (
    ColumnComparison,
    Membership,
    TextMatch,
    Presence,
    Combination,
    Negation,
)
"""Every kind of condition that is written as a mapping."""
_FORMS = (
    "a condition is the name of a boolean column, or as {column: x, above: 15}, {column: x, in: [a, b]}, "
    "{column: x, starts_with: AB}, {column: x, is_null: true}, {not: x} or {any_of: [...]}"
)
