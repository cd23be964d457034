"""A privacy unit that is a column's value: how many of its rows enter, and what rows without one do."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

from pydantic import PlainValidator, ValidationInfo, field_validator

from suffice.pipeline.terms.declaration.contribution import Contribution
from suffice.pipeline.terms.declaration.fields import Column, Count, SpecModel
from suffice.pipeline.terms.declaration.scalars import read_choice


class UnitNulls(StrEnum):
    """What becomes of rows whose unit is null.

    ``drop``: they enter nothing. ``own_unit``: each is a unit of its own. Rows whose unit is a floating-point
    number that may have been rounded enter nothing under both.
    """

    DROP = "drop"
    OWN_UNIT = "own_unit"


class UnitType(StrEnum):
    """What a unit column holds, where the spec declares it."""

    INTEGER = "integer"
    TEXT = "text"


class ColumnUnit(SpecModel):
    """A privacy unit: all rows with one value of a column, of which at most `max_rows` enter.

    Where `max_rows_per_cell` is stated, at most so many of them enter a cell of a statistic.
    """

    column: Column
    max_rows: Count
    max_rows_per_cell: Count | None = None
    type: Annotated[UnitType | None, PlainValidator(partial(read_choice, kind=UnitType))] = None
    nulls: Annotated[UnitNulls, PlainValidator(partial(read_choice, kind=UnitNulls))] = UnitNulls.DROP

    @field_validator("max_rows_per_cell")
    @classmethod
    def _below_max_rows(cls, value: int | None, info: ValidationInfo) -> int | None:
        """Take what is no bound beside `max_rows` for unstated: it is the same plan."""
        max_rows = info.data.get("max_rows")
        if value is None or max_rows is None or value < max_rows:
            return value
        if value > max_rows:
            message = f"a unit keeps max_rows, {max_rows}, in all: state as many at most, or raise max_rows"
            raise ValueError(message)
        return None

    def contribution(self, n_cells: int) -> Contribution:
        """Return how many rows of a unit enter a statistic of so many cells."""
        return Contribution(max_rows=self.max_rows, max_rows_per_cell=self.max_rows_per_cell, n_cells=n_cells)

    @property
    def without(self) -> str:
        """What becomes of rows without a unit, in words."""
        return f"rows without one {'enter nothing' if self.nulls is UnitNulls.DROP else 'are a unit each'}"

    def __str__(self) -> str:
        in_cell = "" if self.max_rows_per_cell is None else f", at most {self.max_rows_per_cell} in a cell"
        return f"at most {self.max_rows} rows of each{in_cell}; {self.without}"
