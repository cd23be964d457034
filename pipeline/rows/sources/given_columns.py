"""Columns of data frames, Arrow tables and mappings as Arrow has them: each by itself, and by no guess.

What a library says of a value it cannot convert goes no further: its text may quote the value.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from suffice.errors import SchemaError, UsageError
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.wording import shortened_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_TAKEN = (
    "a DataFrame of pandas or Polars, a pyarrow.Table, anything with __arrow_c_stream__, or a mapping of "
    "column names to arrays"
)
_MOST_INTEGER = 2**63


def require_rows(data: Any) -> None:
    """Refuse what holds no rows that are taken.

    Raises
    ------
    UsageError
        It says what to give.
    """
    library = _library(data)
    if isinstance(data, str | bytes) or hasattr(data, "__fspath__"):
        message = f"data is {_TAKEN}; of files the spec says where they are: source={{'parquet': 'FILE'}}"
        raise UsageError(message)
    if type(data).__name__ == "LazyFrame":
        message = "data is a lazy frame, which holds no rows yet: give data.collect()"
        raise UsageError(message)
    is_frame = library in {"pandas", "polars"} and type(data).__name__.endswith("DataFrame")
    is_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    is_series = type(data).__name__ == "Series" or isinstance(data, pa.Array | pa.ChunkedArray)
    if is_series or not (is_frame or is_arrow or isinstance(data, Mapping)):
        message = f"data is a {type(data).__name__}; give {_TAKEN}"
        raise UsageError(message)


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def columns_of(data: Any, wanted: tuple[str, ...]) -> tuple[list[str], Callable[[int], Any]]:
    """Return the names of all columns, and what gives one by its position."""
    if _library(data) == "pandas" and hasattr(data, "iloc"):
        names = [name if isinstance(name, str) else repr(name) for name in data.columns]
        _check_index(data, names, wanted)
        return names, lambda position: data.iloc[:, position]
    if _library(data) == "polars" and hasattr(data, "get_columns"):
        columns = data.get_columns()
        return [column.name for column in columns], columns.__getitem__
    if isinstance(data, Mapping):
        named = {str(name): values for name, values in data.items()}
        return list(named), list(named.values()).__getitem__
    table = data if isinstance(data, pa.Table) else _of_stream(data, wanted)
    return table.schema.names, table.column


def _check_index(frame: Any, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a frame that has a wanted column as its index: without it rows would lack a value in silence."""
    for name in wanted:
        if name not in names and name in list(frame.index.names):
            message = (
                f"data: {shortened_name(name)!r} is of the frame's index and no column: give "
                "data.reset_index()"
            )
            raise SchemaError(message)


def _of_stream(data: Any, wanted: tuple[str, ...]) -> pa.Table:
    """Read a stream of Arrow batches; of columns that are not wanted the names alone."""
    try:
        if not hasattr(data, "__arrow_c_stream__"):
            data = pa.Table.from_batches([pa.record_batch(data)])
        reader = pa.RecordBatchReader.from_stream(data)
        names = reader.schema.names
        kinds = [field.type if field.name in wanted else pa.null() for field in reader.schema]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        batches = []
        for batch in reader:
            arrays = [
                column if name in wanted else pa.nulls(len(batch))
                for name, column in zip(names, batch.columns, strict=True)
            ]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return pa.Table.from_batches(batches, schema=schema)
    except Exception:  # noqa: BLE001 - a library's text may quote a value
        message = "data: its Arrow stream cannot be read: it failed, or was read before"
        raise UsageError(message) from None


def converted(values: Any) -> tuple[bool, pa.ChunkedArray | None]:
    """Return whether values have one type, and they in it."""
    try:
        if isinstance(values, pa.ChunkedArray):
            array = values
        elif hasattr(values, "__arrow_c_stream__") and _library(values) != "pandas":
            array = pa.chunked_array(values)
        else:
            made = pa.array(values, from_pandas=True)
            array = made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])
        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            return False, None
        if pa.types.is_string_view(kind):  # of which Arrow cannot take values
            array = array.cast(pa.large_string())
        elif pa.types.is_dictionary(kind):
            array = pa.chunked_array(
                [_of_texts(part) for part in array.chunks], _of_texts(pa.nulls(0, kind)).type
            )
        return True, array.unify_dictionaries()
    except Exception:  # noqa: BLE001 - a library's text may quote a value
        return False, None


def _of_texts(part: pa.DictionaryArray) -> pa.Array:
    """Return a dictionary of texts that Arrow can take, or the values of one of anything else."""
    kind = part.type.value_type
    if not is_text(kind):
        return part.dictionary_decode()
    words = part.dictionary.cast(pa.large_string()) if pa.types.is_string_view(kind) else part.dictionary
    return pa.DictionaryArray.from_arrays(part.indices, words)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type is of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def kind_of(values: Any) -> str:
    """Say what values are, for messages: never what they hold."""
    dtype = getattr(values, "dtype", None)
    return f"of dtype {dtype}" if dtype is not None else f"a {type(values).__name__}"


def each_as_text(values: Any, family: ColumnFamily) -> tuple[pa.ChunkedArray, NDArray[np.bool_]]:
    """Return values of several types as the texts that a family is read from, and which have none."""
    texts: list[str | None] = []
    unreadable = np.zeros(len(values), np.bool_)
    for row, value in enumerate(values):
        is_missing = _is_missing(value)
        text = None if is_missing else _text(value, family)
        texts.append(text)
        unreadable[row] = text is None and not is_missing
    return pa.chunked_array([pa.array(texts, pa.large_string())]), unreadable


def _is_missing(value: Any) -> bool:
    """Tell whether an object stands for no value: None, NaN, and pandas' own."""
    if isinstance(value, Decimal):
        return value.is_nan()
    is_nan = isinstance(value, float | np.floating) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}


def _text(value: Any, family: ColumnFamily) -> str | None:  # noqa: PLR0911 - one for each type
    """Return the text of a value that its family is read from; None where it is of no type that is read."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else None
    if isinstance(value, Integral):
        return str(int(value)) if -_MOST_INTEGER <= int(value) < _MOST_INTEGER else None
    if isinstance(value, Real):
        number = float(value)
        if family in {ColumnFamily.TEXT, ColumnFamily.INTEGER}:
            return (
                str(int(number))
                if math.isfinite(number) and number.is_integer() and abs(number) < 2**53
                else None
            )
        return repr(number)
    if isinstance(value, dt.datetime):
        is_day = family is ColumnFamily.DATE
        return value.date().isoformat() if is_day and value.tzinfo is None else value.isoformat(" ")
    if isinstance(value, dt.date):
        return f"{value.isoformat()} 00:00" if family is ColumnFamily.TIMESTAMP else value.isoformat()
    return None
