"""Columns of units: what is counted, summed or chosen over all rows of a unit that enter the release."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from pydantic import PlainValidator, model_validator

from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn, Input
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.scalars import read_choice
from suffice.pipeline.terms.declaration.wording import shown


class Aggregate(StrEnum):
    """What is made of a unit's rows."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class ExtremeOf(StrEnum):
    """What the smallest or largest is chosen of."""

    NUMBER = "number"
    DATE = "date"
    TIMESTAMP = "timestamp"


_FAMILIES = {
    ExtremeOf.NUMBER: TypeFamily.NUMERIC,
    ExtremeOf.DATE: TypeFamily.DATE,
    ExtremeOf.TIMESTAMP: TypeFamily.TIMESTAMP,
}
_STEPS_TO_LARGEST = 10**6
_MOST_STEPS = 1 << 29
"""A row's value in steps, so that a record holds it in 32 bits, and sums of 2^31 rows 64 bits."""


class TotalBounds(fields.SpecModel):
    """Public bounds of a unit's sum."""

    lower: fields.Bound
    upper: fields.Bound

    @model_validator(mode="after")
    def _is_ascending(self) -> Self:
        _check_bounds("total: ", self.lower, self.upper)
        return self


def _check_bounds(what: str, lower: Fraction, upper: Fraction) -> None:
    if not lower < upper:
        message = f"{what}lower {format_number(lower)} is not below upper {format_number(upper)}"
        raise ValueError(message)


class UnitAggregate(DerivedColumn):
    """One value a unit: the number of its rows; a clipped sum; or the smallest or largest value."""

    section: ClassVar[str] = "per_unit"

    per_unit: Annotated[Aggregate, PlainValidator(partial(read_choice, kind=Aggregate))]
    column: fields.Column | None = None
    type: Annotated[ExtremeOf | None, PlainValidator(partial(read_choice, kind=ExtremeOf))] = None
    lower: fields.Bound | None = None
    upper: fields.Bound | None = None
    step: fields.Positive | None = None
    total: TotalBounds | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.column is None) != (self.per_unit is Aggregate.COUNT):
            message = "a count is of rows, and takes no column; a sum, min or max is of one"
            raise ValueError(message)
        if (self.type is None) == self.is_extreme:
            message = "min and max, and they alone, state a type: number, date or timestamp"
            raise ValueError(message)
        of_sum = {"lower": self.lower, "upper": self.upper, "step": self.step, "total": self.total}
        if self.per_unit is not Aggregate.SUM:
            stated = [key for key, value in of_sum.items() if value is not None]
            if stated:
                message = f"{stated[0]} is for sums"
                raise ValueError(message)
            return self
        if self.lower is None or self.upper is None:
            message = "a sum needs lower and upper, the public bounds that each row's value is clipped to"
            raise ValueError(message)
        if self.step is None:
            message = "a sum needs step, the public unit that rows' values are rounded to"
            raise ValueError(message)
        _check_bounds("", self.lower, self.upper)
        if max(abs(self.lower), abs(self.upper)) / self.step > _MOST_STEPS:
            message = (
                f"step {format_number(self.step)} is too fine: the bounds are more than 2^29 steps from 0"
            )
            raise ValueError(message)
        ends = [(self.lower, self.upper), *([(self.total.lower, self.total.upper)] if self.total else [])]
        if any(end % self.step for pair in ends for end in pair):
            message = f"bounds are whole numbers of steps, here of {format_number(self.step)}"
            raise ValueError(message)
        return self

    @property
    def is_extreme(self) -> bool:
        """Whether it is the smallest or the largest value."""
        return self.per_unit in {Aggregate.MIN, Aggregate.MAX}

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of rows; none of a count."""
        if self.column is None:
            return ()
        return (Input(column=self.column, families=frozenset({self.family})),)

    @property
    def family(self) -> TypeFamily:
        """What is stated for the smallest and largest, else numeric."""
        return TypeFamily.NUMERIC if self.type is None else _FAMILIES[self.type]

    @property
    def row_bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        """Lower and upper bound of a row's value, and the step: of a sum."""
        if self.lower is None or self.upper is None or self.step is None:
            message = f"a {self.per_unit} has no bounds"
            raise ValueError(message)
        return self.lower, self.upper, self.step

    def __str__(self) -> str:
        if self.per_unit is Aggregate.COUNT:
            return "number of each unit's rows"
        if self.is_extreme:
            return f"{self.per_unit} of {self.column}, a {self.type}, over each unit's rows"
        lower, upper, step = self.row_bounds
        total = "" if self.total is None else f", in total to {_between(self.total.lower, self.total.upper)}"
        return (
            f"sum of {self.column} over each unit's rows, each clipped to {_between(lower, upper)} "
            f"in steps of {format_number(step)}{total}"
        )


def _between(lower: Fraction, upper: Fraction) -> str:
    return f"{format_number(lower)}..{format_number(upper)}"


FORMS = (
    "a column of units is as count, {sum: x, lower: 0, upper: 100, total: {lower: 0, upper: 500}} or "
    "{min: x, type: date}"
)


_KEYS = frozenset({"sum", "min", "max", "lower", "upper", "step", "total", "type"})


def as_derived(entry: object) -> dict[str, Any]:
    """Return what a spec says below ``per_unit`` as the plan states it among derived columns.

    The step of a sum that states none is the largest power of ten of which a million or more lie between 0
    and the bound that is farther from it. A smallest or largest value is of numbers, unless
    it says otherwise.

    Raises
    ------
    ValueError
        Where it is of no form, or a bound is no number.
    """
    if entry == Aggregate.COUNT.value:
        return {"per_unit": "count"}
    if not isinstance(entry, dict):
        raise ValueError(FORMS)  # noqa: TRY004 - as every reader of a spec complains
    stated = [kind for kind in (Aggregate.SUM, Aggregate.MIN, Aggregate.MAX) if kind.value in entry]
    if len(stated) != 1 or {"per_unit", "column"} & entry.keys():
        raise ValueError(FORMS)
    unknown = next((key for key in entry if key not in _KEYS), None)
    if unknown is not None:
        message = f"unknown key '{shown(str(unknown))}': {FORMS}"
        raise ValueError(message)
    (kind,) = stated
    read = {"per_unit": kind.value, "column": entry[kind.value]}
    read |= {key: value for key, value in entry.items() if key != kind.value}
    if kind is not Aggregate.SUM:
        return {"type": ExtremeOf.NUMBER.value, **read}
    if "step" not in read and {"lower", "upper"} <= read.keys():
        largest = max(abs(fields.read_bound(read[key])) for key in ("lower", "upper"))
        if largest:
            read["step"] = format_number(_default_step(largest))
    return read


def _default_step(largest: Fraction) -> Fraction:
    step = Fraction(10) ** math.floor(math.log10(largest / _STEPS_TO_LARGEST))
    # The logarithm may be off by one where it is nearly whole.
    while step * _STEPS_TO_LARGEST > largest:
        step /= 10
    while step * 10 * _STEPS_TO_LARGEST <= largest:
        step *= 10
    return step
