"""A column read for the side on which its values lie beyond their public bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

N_SIDES = 2
BELOW, ABOVE, NOT_MOVED = 0, 1, -1
"""Codes of a value: clipping moves it up to its lower bound, down to its upper bound, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideColumn:
    """A numeric column read as the side on which a value lies beyond its public bounds.

    Parameters
    ----------
    column : str
        The column read; numeric.
    lower, upper : float
        The bounds, in the column's unit: the nearest numbers in float64. A value at a bound is not beyond it.
    fallback : int
        The code of null and NaN.
    """

    column: str
    lower: float
    upper: float
    fallback: int = NOT_MOVED

    @classmethod
    def of(cls, column: str, lower: Fraction, upper: Fraction, nulls: Fraction | None) -> SideColumn:
        """Return the column where null and NaN count as the value `nulls`, or do not enter."""
        ends = float(lower), float(upper)
        fallback = NOT_MOVED
        if nulls is not None and not ends[0] <= float(nulls) <= ends[1]:
            fallback = BELOW if float(nulls) < ends[0] else ABOVE
        return cls(column=column, lower=ends[0], upper=ends[1], fallback=fallback)
