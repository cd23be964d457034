"""Arrow arrays as NumPy arrays: views of their buffers where the types allow, never a Python object a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fixed_width(column: pa.Array) -> NDArray[Any]:
    """Return a view of a fixed-width array's values, whatever stands under its nulls.

    Dates are days or milliseconds, timestamps are in their own unit.
    """
    kind = column.type
    if pa.types.is_temporal(kind):
        dtype = np.dtype(f"int{kind.bit_width}")
    else:
        dtype = np.dtype(kind.to_pandas_dtype())
    return np.frombuffer(column.buffers()[1], dtype, count=len(column), offset=column.offset * dtype.itemsize)


def validity(column: pa.Array) -> tuple[NDArray[np.uint8], int]:
    """Return the validity bitmap of an array that has nulls, and the bit at which the array begins."""
    return np.frombuffer(column.buffers()[0], np.uint8), column.offset


def null_mask(column: pa.Array) -> NDArray[np.bool_]:
    """Return which values of an array are null, shape (n_rows,)."""
    return fixed_width(pc.cast(pc.is_null(column), pa.uint8())).view(np.bool_)


def as_float64(column: pa.Array) -> tuple[NDArray[np.float64], pa.Array] | None:
    """Return a numeric array's values as float64, and the array whose nulls are theirs.

    Integers and decimals beyond 2**53 are rounded. None where the array holds nulls alone.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type) or column.null_count == len(column):
        return None
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64(), safe=False)
    return fixed_width(column).astype(np.float64, copy=False), column


def comparable(column: pa.Array) -> pa.Array:
    """Return the same values in a type that Arrow can look up."""
    kind = column.type
    if pa.types.is_string_view(kind):
        return pc.cast(column, pa.large_string())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pc.cast(column, pa.decimal128(38, kind.scale))
    return column


def decimal_is_readable(kind: pa.DataType) -> bool:
    """Tell whether decimals of a type have at most 38 digits on each side of the point."""
    return bool(kind.scale <= 38 and kind.precision - kind.scale <= 38)
