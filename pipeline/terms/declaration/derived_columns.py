"""Columns that a spec derives from others of the same row: every kind, and the order of computing them.

Numbers and texts are here: parts of dates, texts in one form, public maps, arithmetic.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import partial
from graphlib import CycleError, TopologicalSorter
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import PlainValidator, ValidationInfo, model_validator

from suffice.pipeline.terms.declaration import column_types, fields
from suffice.pipeline.terms.declaration.derived_conditions import (
    CONDITIONS,
    DerivedColumn,
    Input,
    listed,
    one_of,
    read_safe_text,
    written,
)
from suffice.pipeline.terms.declaration.derived_values import Bins, Coalesced, Cut, ParsedText
from suffice.pipeline.terms.declaration.domain_entries import read_pairs
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, duplicate
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.known_keys import read_as
from suffice.pipeline.terms.declaration.scalars import read_choice, read_text
from suffice.pipeline.terms.declaration.time_zones import TimeZone
from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate, as_derived
from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_ARITHMETIC = ("sum", "difference", "product", "ratio")


class Part(StrEnum):
    """A part of a date or time: all are integers, a week and its day as ISO 8601 counts them."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    WEEKDAY = "weekday"
    HOUR = "hour"


class DatePart(DerivedColumn):
    """A part of a date or time, in a time zone where one is stated."""

    column: fields.Column
    part: Annotated[Part, PlainValidator(partial(read_choice, kind=Part))]
    time_zone: TimeZone | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of dates or times."""
        needed = column_types.TIMESTAMPS if self.part is Part.HOUR else column_types.DATES
        return (Input(column=self.column, families=needed, needs_zone=self.time_zone is not None),)

    @property
    def family(self) -> column_types.TypeFamily:
        """Numeric."""
        return column_types.TypeFamily.NUMERIC

    @property
    def time_zones(self) -> tuple[str, ...]:
        """The zone, where it is stated."""
        return (self.time_zone,) if self.time_zone else ()

    def __str__(self) -> str:
        return f"{self.part} of {self.column}" + (f" in {self.time_zone}" if self.time_zone else "")


class Case(StrEnum):
    """The case that letters are put in."""

    LOWER = "lower"
    UPPER = "upper"


class NormalForm(StrEnum):
    """The form of Unicode that texts are put in: one text for what looks alike."""

    NFC = "NFC"
    NFD = "NFD"
    NFKC = "NFKC"
    NFKD = "NFKD"


class UniformText(DerivedColumn):
    """A text in one normal form, without spaces around it, with all letters in one case: in this order."""

    column: fields.Column
    normalize: Annotated[NormalForm | None, PlainValidator(partial(read_choice, kind=NormalForm))] = None
    trim: fields.IfTrue | None = None
    case: Annotated[Case | None, PlainValidator(partial(read_choice, kind=Case))] = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.normalize is None and self.trim is None and self.case is None:
            message = "needs normalize: NFC, trim: true, or case: lower or upper; or several of them"
            raise ValueError(message)
        return self

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of texts."""
        return (Input(column=self.column, families=column_types.TEXTS),)

    @property
    def family(self) -> column_types.TypeFamily:
        """Text."""
        return column_types.TypeFamily.TEXT

    def misfit(self, text: str) -> str | None:
        """Say why no row has a text; None where one may have it: only what is plain in ASCII is looked at."""
        other = {Case.LOWER: ascii_uppercase, Case.UPPER: ascii_lowercase}.get(self.case) if self.case else ""
        if other and set(text).intersection(other):
            return f"its texts are in {self.case} case"
        if self.trim and text != text.strip(" "):
            return "its texts are trimmed"
        return None

    def __str__(self) -> str:
        how = [
            *([f"in form {self.normalize}"] if self.normalize else []),
            *(["trimmed"] if self.trim else []),
            *([f"in {self.case} case"] if self.case else []),
        ]
        return f"{self.column} {', '.join(how)}"


class MapTo(StrEnum):
    """What a public map leads to."""

    TEXT = "text"
    NUMBER = "number"


def _target(value: object, info: ValidationInfo) -> str | Fraction:
    if info.data.get("type") is MapTo.NUMBER:
        return fields.read_bound(value)
    return read_safe_text(value)


def _entries(value: object, info: ValidationInfo) -> dict[str, str | Fraction]:
    directory = (info.context or {}).get("directory")
    if directory is not None and isinstance(value, dict) and set(value) == {"file"}:
        value = read_pairs(read_text(value["file"]), directory, str(info.data.get("column", "")))
    if not isinstance(value, dict) or not value:
        message = "a map is written as {from: to, ...} with at least one entry, or {file: name.csv}"
        raise ValueError(message)
    keys = [read_safe_text(key) for key in value]
    pair = duplicate(keys)
    if pair is not None:
        first, second = (keys[position] for position in pair)
        message = f"the entries '{shown(first)}' and '{shown(second)}' are duplicates, as text or as numbers"
        raise ValueError(message)
    return {key: _target(target, info) for key, target in value.items()}


class PublicMap(DerivedColumn):
    """What a public map leads to from a value, which is compared with its keys as groups' keys are."""

    column: fields.Column
    type: Annotated[MapTo, PlainValidator(partial(read_choice, kind=MapTo))] = MapTo.TEXT
    map: Annotated[dict[str, str | Fraction], PlainValidator(_entries)]
    otherwise: Annotated[str | Fraction | None, PlainValidator(_target)] = None

    @property
    def domain(self) -> Domain:
        """The map's keys."""
        return Domain(kind=DomainKind.LIST, keys=tuple(self.map))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column looked up."""
        return (Input(column=self.column, families=column_types.ANY_FAMILY),)

    @property
    def family(self) -> column_types.TypeFamily:
        """Text or numeric."""
        return column_types.TypeFamily.NUMERIC if self.type is MapTo.NUMBER else column_types.TypeFamily.TEXT

    def __str__(self) -> str:
        targets = listed(tuple(dict.fromkeys(written(target) for target in self.map.values())))
        otherwise = "" if self.otherwise is None else f", otherwise {written(self.otherwise)}"
        return f"{self.column} mapped to {targets}{otherwise}"


class Constant(fields.SpecModel):
    """A public number in the place of a column."""

    number: fields.Bound

    def __str__(self) -> str:
        return format_number(self.number)


def _operand(value: object) -> str | Constant:
    return Constant.model_validate(value) if isinstance(value, dict) else fields.read_column(value)


def _operands(value: object) -> tuple[str | Constant, str | Constant]:
    if not isinstance(value, list) or len(value) != 2:
        message = "needs a list of two columns, or of one and a constant, as [x, {number: 2.5}]"
        raise ValueError(message)
    first, second = map(_operand, value)
    if isinstance(first, Constant) and isinstance(second, Constant):
        message = "one of the two is a column"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    return first, second


Operands = Annotated[tuple[str | Constant, str | Constant] | None, PlainValidator(_operands)]


class Arithmetic(DerivedColumn):
    """A number computed of two columns, or one and a constant, moved to the nearest of two public bounds."""

    sum: Operands = None
    difference: Operands = None
    product: Operands = None
    ratio: Operands = None
    lower: fields.Bound
    upper: fields.Bound

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        one_of(self, _ARITHMETIC, ", ".join(_ARITHMETIC))
        if not self.lower < self.upper:
            message = f"lower {format_number(self.lower)} is not below upper {format_number(self.upper)}"
            raise ValueError(message)
        return self

    @property
    def operation(self) -> str:
        """What is computed: ``sum``, ``difference``, ``product`` or ``ratio``."""
        return one_of(self, _ARITHMETIC, "")

    @property
    def operands(self) -> tuple[str | Constant, str | Constant]:
        """The two columns, or a column and a constant, in order."""
        operands: tuple[str | Constant, str | Constant] = getattr(self, self.operation)
        return operands

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns."""
        columns = (each for each in self.operands if isinstance(each, str))
        return tuple(Input(column=column, families=column_types.NUMBERS) for column in columns)

    @property
    def family(self) -> column_types.TypeFamily:
        """Numeric."""
        return column_types.TypeFamily.NUMERIC

    def __str__(self) -> str:
        first, second = self.operands
        bounds = f"{format_number(self.lower)}..{format_number(self.upper)}"
        return f"{self.operation} of {first} and {second}, clipped to {bounds}"


KINDS: tuple[type[DerivedColumn], ...] = (
    *CONDITIONS,
    DatePart,
    UniformText,
    PublicMap,
    Arithmetic,
    ParsedText,
    Bins,
    Cut,
    Coalesced,
    UnitAggregate,
)
"""Every kind of derived column, each known by keys of its own."""
MOST_DERIVED = 1000
_FORMS = (
    "a derived column is as {column: x, above: 15}, {column: x, in: [a, b]}, "
    "{column: x, is_null: true}, {any_of: [...]}, {not: x}, {column: t, part: month}, "
    "{column: x, case: lower}, {column: x, map: {...}}, {column: x, parse: number}, "
    "{column: x, bins: [...]}, {coalesce: [a, b]} or {sum: [a, b], lower: 0, upper: 9}"
)


def read_derived(name: str, entry: object, directory: Path | None) -> DerivedColumn:
    """Read one derived column.

    Parameters
    ----------
    name : str
        Its name.
    entry : object
        What the spec says of it: texts in lists and mappings.
    directory : Path or None
        Where the spec stands, and with it the files of maps and lists. None: a plan, which names no file.

    Raises
    ------
    pydantic.ValidationError, ValueError
        Naming the rule and the value.
    """
    fields.label_name("derived column", fields.read_column(name))
    context: dict[str, Any] = {"directory": directory}
    return read_as(KINDS, entry, context, _FORMS)


def read_per_unit(name: str, entry: object) -> DerivedColumn:
    """Read one column of units, as a spec states it below ``per_unit``.

    Raises
    ------
    pydantic.ValidationError, ValueError
        Naming the rule and the value.
    """
    fields.label_name("column of units", fields.read_column(name))
    return UnitAggregate.model_validate(as_derived(entry))


def of_units(derived: Mapping[str, DerivedColumn]) -> frozenset[str]:
    """Return the derived columns of which a unit has one value: aggregates, and what rests on them."""
    names: set[str] = set()
    for name, of in in_order(derived).items():
        if isinstance(of, UnitAggregate) or any(each.column in names for each in of.inputs):
            names.add(name)
    return frozenset(names)


def row_columns(columns: Iterable[str], derived: Mapping[str, DerivedColumn]) -> tuple[str, ...]:
    """Return columns of rows: in the place of those of units what these are aggregates of, each once."""
    on_units, chosen = of_units(derived), []
    for column in columns:
        resting = needed([column], derived).values() if column in on_units else ()
        aggregated = [of.column for of in resting if isinstance(of, UnitAggregate) and of.column is not None]
        chosen += aggregated if column in on_units else [column]
    return tuple(dict.fromkeys(chosen))


def in_order(derived: Mapping[str, DerivedColumn]) -> dict[str, DerivedColumn]:
    """Return derived columns so that each comes after those that it is computed from.

    Raises
    ------
    ValueError
        Where one is computed from itself, perhaps by way of others.
    """
    graph = {name: {each.column for each in of.inputs} & derived.keys() for name, of in derived.items()}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        message = f"these are computed from each other: {', '.join(error.args[1][:5])}"
        raise ValueError(message) from None
    return {name: derived[name] for name in order}


def needed(columns: Iterable[str], derived: Mapping[str, DerivedColumn]) -> dict[str, DerivedColumn]:
    """Return the derived columns that these columns are or rest on, in the order of computing them."""
    chosen: dict[str, DerivedColumn] = {}
    left = [*columns]
    while left:
        name = left.pop()
        if name in derived and name not in chosen:
            chosen[name] = derived[name]
            left += [each.column for each in derived[name].inputs]
    return in_order(chosen)


def physical(columns: Iterable[str], derived: Mapping[str, DerivedColumn]) -> tuple[str, ...]:
    """Return the columns of the source that these columns are or rest on, each once."""
    columns = tuple(columns)
    inputs = (each.column for of in needed(columns, derived).values() for each in of.inputs)
    return tuple(dict.fromkeys(column for column in (*columns, *inputs) if column not in derived))
