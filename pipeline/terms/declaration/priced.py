"""Entries of a spec that state a privacy loss: what it is about, and the count that is paid for before it."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Self

from pydantic import PlainValidator, model_validator

from suffice.pipeline.terms.declaration.exact_numbers import parse_epsilon, parse_rho
from suffice.pipeline.terms.declaration.fields import Column, Count, SpecModel, read_column
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.scalars import read_text

SUFFIX = ".expect"
"""The count is released under the spec's name and this."""
ROW_FITS = "row_fits"
"""The derived column that says which rows are counted."""

Epsilon = Annotated[Fraction | None, PlainValidator(lambda value: parse_epsilon(read_text(value)))]
Rho = Annotated[Fraction | None, PlainValidator(lambda value: parse_rho(read_text(value)))]


class PricedModel(SpecModel):
    """An entry that states a privacy loss: ``epsilon`` or ``rho``, one of the two."""

    epsilon: Epsilon = None
    rho: Rho = None

    @model_validator(mode="before")
    @classmethod
    def _states_no_delta(cls, content: object) -> object:
        if isinstance(content, dict) and "delta" in content:
            message = (
                "takes no delta: a spec states rho, which has an epsilon at every delta (suffice plan shows "
                "them); suffice ledger grant turns an epsilon and a delta into rho"
            )
            raise ValueError(message)
        return content

    @model_validator(mode="after")
    def _states_a_loss(self) -> Self:
        if (self.epsilon is None) == (self.rho is None):
            message = "needs epsilon: E, or rho: R where the account counts rho; not both"
            raise ValueError(message)
        return self

    @property
    def loss(self) -> PrivacyLoss:
        """What is stated."""
        if self.epsilon is not None:
            return PrivacyLoss.of_epsilon(self.epsilon)
        return PrivacyLoss.of_rho(self.rho or Fraction(0))


def _columns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        message = "needs a list of columns that a row has values of, as [origin, arr_delay]"
        raise ValueError(message)
    columns = tuple(map(read_column, value))
    if len(set(columns)) < len(columns):
        message = "a column is named twice"
        raise ValueError(message)
    return columns


class Expectation(PricedModel):
    """The least that a window is expected to hold; it is no term of what is released.

    Attributes
    ----------
    rows, units : int or None
        The floor, of rows where the unit is a row, else of units.
    epsilon, rho : Fraction or None
        What the count is charged: one of the two.
    columns : tuple of str or None
        The columns of which a row that counts has values; None: every column that the statistics read.
    """

    rows: Count | None = None
    units: Count | None = None
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
