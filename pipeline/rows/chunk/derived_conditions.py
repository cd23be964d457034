"""Comparisons and membership of one column's values: true, false, or null where there is no value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.rows.chunk.date_parts import dates
from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.terms.declaration.domain_lookup import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.derived_conditions import Comparison
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.declaration.time_zones import ZoneOffsets

_EPOCH = dt.date(1970, 1, 1).toordinal()


def compared(column: pa.Array, of: Comparison, zone: ZoneOffsets) -> pa.Array:
    """Compare numbers, or dates, with public constants.

    Integers, decimals and dates are compared exactly. For a floating-point column a constant is the nearest
    number of the column's type, as keys of groups are. NaN is a null.
    """
    if of.is_of_dates:
        column = dates(column, zone)
    if pa.types.is_floating(column.type):
        return _floats(column, of)
    return _integers(column, of)


def _floats(column: pa.Array, of: Comparison) -> pa.Array:
    kind = np.dtype(column.type.to_pandas_dtype())
    column = pc.cast(column, pa.float64())
    within = None
    for end, including, excluding in (
        (of.lowest, pc.greater_equal, pc.greater),
        (of.highest, pc.less_equal, pc.less),
    ):
        if end is not None:
            is_within = (including if end[1] else excluding)(column, _float(end[0], kind))
            within = is_within if within is None else pc.and_(within, is_within)
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.bool_()), within)


def _float(end: Fraction | str, kind: np.dtype[Any]) -> pa.Scalar:
    """Return a constant as the nearest number of a type; beyond its range as that of float64."""
    number = Fraction(end)
    near = nearest(number, kind)
    return pa.scalar(float(number) if near is None else near, pa.float64())


def _integers(column: pa.Array, of: Comparison) -> pa.Array:
    """Compare integers, or decimals as integers of their scale."""
    kind = column.type
    is_decimal = pa.types.is_decimal(kind)
    unit = Fraction(10) ** (kind.scale if is_decimal else 0)
    if is_decimal:
        lowest, highest = 1 - 10**kind.precision, 10**kind.precision - 1
    else:
        limits = np.iinfo(kind.to_pandas_dtype())
        lowest, highest = int(limits.min), int(limits.max)
    first, last = lowest, highest
    if of.lowest is not None:
        number = _number(of.lowest[0]) * unit
        first = math.ceil(number) if of.lowest[1] else math.floor(number) + 1
    if of.highest is not None:
        number = _number(of.highest[0]) * unit
        last = math.floor(number) if of.highest[1] else math.ceil(number) - 1
    if first > min(last, highest) or last < lowest:
        return pc.not_equal(column, column)

    def scalar(value: int) -> pa.Scalar:
        if not is_decimal:
            return pa.scalar(value, kind)
        return pa.scalar(Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -kind.scale)), kind)

    within = [pc.greater_equal(column, scalar(first))] if first > lowest else []
    within += [pc.less_equal(column, scalar(last))] if last < highest else []
    if not within:
        return pc.equal(column, column)
    return within[0] if len(within) == 1 else pc.and_(*within)


def _number(end: Fraction | str) -> Fraction:
    if isinstance(end, str):
        return Fraction(dt.date.fromisoformat(end).toordinal() - _EPOCH)
    return end


def is_member(column: pa.Array, domain: Domain) -> pa.Array:
    """Tell whether values are among public ones, compared as keys of groups are."""
    return pa.array(Encoder(domain).codes(column) >= 0, mask=no_value(column))


def has_value(column: pa.Array) -> pa.Array:
    """Tell which values are there, neither null nor NaN; of an array without a type none is."""
    absent = no_value(column)
    return pa.array(np.ones(len(column), np.bool_) if absent is None else ~absent)


def no_value(column: pa.Array) -> NDArray[np.bool_] | None:
    """Tell which rows are null or NaN, shape (n_rows,); None where none can be."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    found: NDArray[np.bool_] = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    return found
