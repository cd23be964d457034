"""Columns of rows that a caller has: mappings of arrays, tables of Arrow, data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.typing import Floats

_HOW = "rows are a mapping of columns, each an array of one type, or a table of Arrow, pandas or Polars"


def columns_of(rows: object, names: Iterable[str]) -> dict[str, pa.Array]:
    """Return those of some columns that rows have, all of one length.

    Parameters
    ----------
    rows : mapping of str to array, or table
        A mapping of arrays of one dimension, or what Arrow takes for a table: its own, a data frame.
    names : iterable of str
        The columns that are asked for; others are not looked at.

    Raises
    ------
    UsageError
        Where a column is no array of one dimension and one type, or columns differ in length.
    """
    if isinstance(rows, Mapping):
        found = {name: array_of(name, rows[name]) for name in names if name in rows}
    else:
        try:
            table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        except (pa.ArrowException, TypeError, ValueError):
            raise UsageError(_HOW) from None
        for name in names:
            if table.column_names.count(name) > 1:
                message = f"rows have more than one column {name!r}: leave one"
                raise UsageError(message)
        found = {name: table[name].combine_chunks() for name in names if name in table.column_names}
    if len({len(column) for column in found.values()}) > 1:
        message = f"the columns {', '.join(found)} are not all of one length"
        raise UsageError(message)
    return found


def array_of(name: str, values: Any) -> pa.Array:
    """Return the values of one column as an Arrow array, NaN among objects as null.

    Raises
    ------
    UsageError
        Where they have no one type, or more than one dimension.
    """
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    try:
        found = None if isinstance(values, str | bytes) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        message = f"the column {name!r} is no array of one dimension and one type: {_HOW}"
        raise UsageError(message)
    return found


def require_columns(found: Mapping[str, pa.Array], names: Iterable[str], what: str) -> None:
    """Refuse rows without a column that is needed.

    Raises
    ------
    UsageError
    """
    absent = [name for name in names if name not in found]
    if absent:
        message = f"rows have no column {', '.join(absent)}, which {what}"
        raise UsageError(message)


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


def texts_of(column: pa.Array) -> pa.Array:
    """Return a column of keys as texts; null where a value is missing or has no text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowException:
        return pa.nulls(len(column), pa.string())
