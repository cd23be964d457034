"""Values clipped to their bounds: each row's lattice value, and the side on which it lay beyond them.

Transformation, clipping, rounding and null rules happen here. `Quantiser` and `Transform` say what is
computed, and are the reference: the compiled loops give the same bits.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.jit import called, compiled
from suffice.pipeline.rows.chunk.paged_columns import ColumnReader
from suffice.pipeline.rows.sources.column_values import as_float64, validity
from suffice.pipeline.terms.statistics.lattice import (
    EXP,
    LN2_HIGH,
    LN2_LOW,
    LOG_EVEN,
    LOG_FIRST,
    LOG_ODD,
    SMALLEST_EXPONENT,
    Shape,
)
from suffice.pipeline.terms.statistics.measure import ABOVE, BELOW, NOT_MOVED, SideColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domain_lookup import Codes
    from suffice.pipeline.terms.statistics.lattice import Transform
    from suffice.pipeline.terms.statistics.measure import LatticeColumn

_ABSOLUTE, _SQUARE, _LOG = int(Shape.ABSOLUTE), int(Shape.SQUARE), int(Shape.LOG)
_ROOT_HALF = math.sqrt(0.5)


def lattice_values(column: pa.Array, of: LatticeColumn) -> Codes:
    """Return the lattice value of every row; `kernels.NOTHING` where it does not enter."""
    missing = kernels.NOTHING if of.fallback is None else of.fallback
    quantiser = of.quantiser
    numbers = as_float64(column)
    if numbers is None:
        return np.full(len(column), missing, np.int32)
    values, source = _transformed(numbers[0], of.transform), numbers[1]
    lattice = np.empty(len(values), np.int32)
    quantise(
        values,
        quantiser.centre,
        quantiser.half_range,
        quantiser.steps,
        quantiser.lowest,
        quantiser.highest,
        missing,
        lattice,
    )
    if source.null_count:
        kernels.fill_nulls(lattice, *validity(source), missing)
    return lattice


def sides(column: pa.Array, of: SideColumn) -> Codes:
    """Return the side on which every row's value lies beyond its bounds: `BELOW`, `ABOVE` or `NOT_MOVED`.

    Bounds are read as the column's own type reads them, so that a value written as the bound is at it.
    """
    numbers = as_float64(column)
    if numbers is None:
        return np.full(len(column), of.fallback, np.int32)
    values, source = numbers
    lower, upper = (_as_column_reads(column.type, bound) for bound in (of.lower, of.upper))
    side = np.empty(len(values), np.int32)
    beyond(values, lower, upper, of.fallback, side)
    if source.null_count:
        kernels.fill_nulls(side, *validity(source), of.fallback)
    return side


def _as_column_reads(kind: pa.DataType, bound: float) -> float:
    """Return the float64 that a bound written in a column of this type becomes; itself where it cannot be."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):  # Arrow's cast to float64 may be a last digit off
        try:
            written = pa.array([Decimal(repr(bound))]).cast(kind)
        except pa.ArrowInvalid:
            return bound
        return float(pc.cast(written, pa.float64(), safe=False)[0].as_py())
    if not pa.types.is_floating(kind):
        return bound
    with np.errstate(over="ignore", under="ignore"):
        nearest = float(np.asarray(bound).astype(kind.to_pandas_dtype()))
    return nearest if nearest and np.isfinite(nearest) else bound


def _transformed(values: NDArray[np.float64], by: Transform | None) -> NDArray[np.float64]:
    if by is None:
        return values
    out = np.empty(len(values), np.float64)
    transform(values, by.shape, by.centre, by.unit, by.exponent, out)
    return out


@called
def _log(z: float) -> float:
    if z <= 0.0:
        return -np.inf
    if not z < np.inf:  # NaN too
        return z
    mantissa, exponent = math.frexp(z)
    if mantissa < _ROOT_HALF:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    f, k = mantissa - 1.0, float(exponent)
    s = f / (2.0 + f)
    z2 = s * s
    w = z2 * z2
    odd = z2 * (LOG_FIRST + w * (LOG_ODD[0] + w * (LOG_ODD[1] + w * LOG_ODD[2])))
    even = w * (LOG_EVEN[0] + w * (LOG_EVEN[1] + w * LOG_EVEN[2]))
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f)


@called
def _exp(y: float) -> float:
    if y >= 0.0:
        return 1.0
    if y <= SMALLEST_EXPONENT:
        return 0.0
    if y != y:  # noqa: PLR0124 - NaN
        return y
    k = np.rint(y / (LN2_HIGH + LN2_LOW))
    high, low = y - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (EXP[0] + t * (EXP[1] + t * (EXP[2] + t * (EXP[3] + t * EXP[4]))))
    return math.ldexp(1.0 - ((low - (r * c) / (2.0 - c)) - high), int(k))


@compiled(
    read_only(types.float64),
    types.int64,
    types.float64,
    types.float64,
    types.float64,
    writable(types.float64),
)
def transform(
    values: NDArray[np.float64],
    shape: int,
    centre: float,
    unit: float,
    exponent: float,
    out: NDArray[np.float64],
) -> None:
    """Transform values as `Transform.apply` does, bit for bit; NaN stays NaN."""
    for row in range(len(values)):
        z = (values[row] - centre) / unit
        if shape == _ABSOLUTE:
            out[row] = abs(z)
        elif shape == _SQUARE:
            out[row] = z * z
        elif shape == _LOG:
            out[row] = _log(z)
        else:
            out[row] = _exp(_log(z) * exponent)


@compiled(
    read_only(types.float64),
    types.float64,
    types.float64,
    types.float64,
    types.float64,
    types.float64,
    types.int32,
    writable(types.int32),
)
def quantise(
    values: NDArray[np.float64],
    centre: float,
    half_range: float,
    steps: float,
    lowest: float,
    highest: float,
    missing: int,
    out: NDArray[np.int32],
) -> None:
    """Map values to the lattice as `Quantiser.quantise` does, bit for bit; NaN becomes `missing`."""
    for row in range(len(values)):
        value = values[row]
        scaled = np.rint(((value - centre) / half_range) * steps)
        clipped = min(max(scaled, lowest), highest)
        out[row] = np.int32(clipped) if value == value else missing  # noqa: PLR0124 - NaN


@compiled(read_only(types.float64), types.float64, types.float64, types.int32, writable(types.int32))
def beyond(
    values: NDArray[np.float64], lower: float, upper: float, missing: int, out: NDArray[np.int32]
) -> None:
    """Write on which side values lie strictly beyond bounds; NaN becomes `missing`."""
    for row in range(len(values)):
        value = values[row]
        side = ABOVE if value > upper else BELOW if value < lower else NOT_MOVED
        out[row] = side if value == value else missing  # noqa: PLR0124 - NaN


class LatticeReader(ColumnReader):
    """A column's lattice value in every row, `kernels.NOTHING` where it does not enter."""

    def __init__(self, of: LatticeColumn) -> None:
        self.column, self.codes = of.column, partial(lattice_values, of=of)


class SideReader(ColumnReader):
    """The side of its bounds on which every row's value lies beyond them, -1 where it does not."""

    def __init__(self, of: SideColumn) -> None:
        self.column, self.codes = of.column, partial(sides, of=of)
