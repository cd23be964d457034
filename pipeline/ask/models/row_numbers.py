"""Columns of rows that a caller has, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.errors import UsageError

if TYPE_CHECKING:
    from suffice.typing import Floats


def numbers_of(name: str, column: pa.Array) -> Floats:
    """Return a numeric column, (n_rows,); not a number where a value is missing or infinite.

    Raises
    ------
    UsageError
        Where the column holds no numbers.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        message = f"the column {name!r} must hold numbers, and is of type {kind}"
        raise UsageError(message)
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    numbers = pc.cast(column, pa.float64(), safe=False)
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)
