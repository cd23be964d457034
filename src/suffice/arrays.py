"""Arrow arrays of Python and NumPy values, made of their buffers.

`pyarrow.array` and `pyarrow.scalar` import pandas, where it is installed, to look whether they got some.
That takes longer than a small release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def number_array(values: NDArray[Any]) -> pa.Array:
    """Return numbers of a fixed width as an array of their type, without a copy where they lie together."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)], null_count=0
    )


def masked_array(values: NDArray[Any], is_null: NDArray[np.bool_]) -> pa.Array:
    """Return numbers of a fixed width as an array of their type, null where a mask says so."""
    values = np.ascontiguousarray(values)
    valid = np.packbits(~is_null, bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def null_scalar(kind: pa.DataType) -> pa.Scalar:
    """Return null as a scalar of a type."""
    return pa.nulls(1, kind)[0]


def text_scalar(value: str) -> pa.Scalar:
    """Return a text as a scalar of ``string``."""
    return text_array([value])[0]


def text_array(values: Sequence[str], kind: pa.DataType | None = None) -> pa.Array:
    """Return texts as an array of ``string``, or of ``large_string`` where that is asked for."""
    return bytes_array([value.encode() for value in values], kind or pa.string())


def bytes_array(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """Return bytes as an array of ``binary``, ``string`` or their large variants."""
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    offsets = np.zeros(len(values) + 1, np.int64 if is_large else np.int32)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers, null_count=0)


def decimal_array(unscaled: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Return decimals of a type, given their digits as integers."""
    width = kind.bit_width // 8
    data = b"".join(int(value).to_bytes(width, "little", signed=True) for value in unscaled)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(data)], null_count=0)


def frame_table(frame: Any) -> pa.Table | None:
    """Return a frame of Arrow, pandas or Polars, or a mapping of columns, as a table; None of all else."""
    try:
        if isinstance(frame, Mapping):
            return pa.table({name: pa.array(values, from_pandas=True) for name, values in frame.items()})
        if isinstance(frame, pa.Table):
            return frame
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, AttributeError):
        return None
