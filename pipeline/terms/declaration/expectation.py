"""What a spec expects of its data: how many rows or units are counted, and paid for, before the rest."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import PlainValidator, model_validator

from suffice.pipeline.terms.declaration.fields import Column, Count, Epsilon, SpecModel, read_column

SUFFIX = ".expect"
"""The count is released under the spec's name and this."""
ROW_FITS = "row_fits"
"""The derived column that says which rows are counted."""


def _columns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        message = "needs a list of columns that a row has values of, as [origin, arr_delay]"
        raise ValueError(message)
    columns = tuple(map(read_column, value))
    if len(set(columns)) < len(columns):
        message = "a column is named twice"
        raise ValueError(message)
    return columns


class Expectation(SpecModel):
    """The least that a window is expected to hold; it is no term of what is released.

    Attributes
    ----------
    rows, units : int or None
        The floor, of rows where the unit is a row, else of units.
    epsilon : Fraction
        What the count is charged.
    columns : tuple of str or None
        The columns of which a row that counts has values; None: every column that the statistics read.
    """

    rows: Count | None = None
    units: Count | None = None
    epsilon: Epsilon
    columns: Annotated[tuple[Column, ...] | None, PlainValidator(_columns)] = None

    @model_validator(mode="after")
    def _has_one_floor(self) -> Self:
        if (self.rows is None) == (self.units is None):
            message = "needs rows: N, or units: N where the unit is a column's value"
            raise ValueError(message)
        return self

    @property
    def floor(self) -> int:
        """The least count for which the rest is charged."""
        return self.rows or self.units or 0

    @property
    def counts(self) -> str:
        """What is counted: ``rows`` or ``units``."""
        return "rows" if self.units is None else "units"
