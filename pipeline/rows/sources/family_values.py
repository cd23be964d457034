"""Values of a file's column as its contract's family: value by value, and null where one does not read so.

What a writer typed a file as follows from single records: pandas makes a column without a value one of
doubles, integers beside a null doubles too, and a column of numbers beside one text a column of texts. So a
value means the same in whatever type its file holds it, and no file, row or type is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import masked_array
from suffice.pipeline.rows.sources.arrow_arrays import as_float64, comparable, fixed_width, null_mask
from suffice.pipeline.rows.sources.text_values import read_texts
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.domain_lookup import units_per_day
from suffice.pipeline.terms.declaration.source_specs import CsvType

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Convert = Callable[[pa.Array], pa.Array]

# proof: typed-files

NUMERIC = frozenset({ColumnFamily.INTEGER, ColumnFamily.FLOATING, ColumnFamily.DECIMAL})

ARROW_TYPES: dict[ColumnFamily, pa.DataType] = {
    ColumnFamily.INTEGER: pa.int64(),
    ColumnFamily.FLOATING: pa.float64(),
    ColumnFamily.DECIMAL: pa.decimal128(38, 0),
    ColumnFamily.TEXT: pa.string(),
    ColumnFamily.BOOLEAN: pa.bool_(),
    ColumnFamily.DATE: pa.date32(),
    ColumnFamily.TIMESTAMP: pa.timestamp("us"),
    ColumnFamily.TIMESTAMP_WITH_ZONE: pa.timestamp("us", "UTC"),
}
"""The Arrow type that stands for a family."""

_TEXTS = {
    ColumnFamily.INTEGER: CsvType.INTEGER,
    ColumnFamily.FLOATING: CsvType.NUMBER,
    ColumnFamily.DECIMAL: CsvType.NUMBER,
    ColumnFamily.BOOLEAN: CsvType.BOOLEAN,
    ColumnFamily.DATE: CsvType.DATE,
    ColumnFamily.TIMESTAMP: CsvType.TIMESTAMP,
    ColumnFamily.TIMESTAMP_WITH_ZONE: CsvType.TIMESTAMP_WITH_OFFSET,
}
_MICROSECONDS_PER_DAY = 86_400 * 10**6
_MOST_DAYS = (2**63 - 1) // _MICROSECONDS_PER_DAY


def stored_family(kind: pa.DataType) -> ColumnFamily | None:
    """Return the family of an Arrow type; None for null, and for what no statistic reads."""
    types = pa.types
    if types.is_dictionary(kind):
        return stored_family(kind.value_type)
    if types.is_timestamp(kind):
        return ColumnFamily.TIMESTAMP if kind.tz is None else ColumnFamily.TIMESTAMP_WITH_ZONE
    tests = {
        ColumnFamily.INTEGER: (types.is_integer,),
        ColumnFamily.FLOATING: (types.is_floating,),
        ColumnFamily.DECIMAL: (types.is_decimal,),
        ColumnFamily.TEXT: (types.is_string, types.is_large_string, types.is_string_view),
        ColumnFamily.BOOLEAN: (types.is_boolean,),
        ColumnFamily.DATE: (types.is_date,),
    }
    return next((family for family, of in tests.items() if any(test(kind) for test in of)), None)


def converter(kind: pa.DataType, family: ColumnFamily) -> Convert | None:
    """Return what turns values of a file's type into a family's; None where no value reads so.

    Where the type is one of the family, or one of numbers where the family is, values stay as they are, but
    for nanoseconds: texts of times are read to the microsecond, and times of one instant have to be equal.
    """
    stored = stored_family(kind)
    if stored is family and has_nanoseconds(kind):
        return _microseconds
    if pa.types.is_null(kind) or stored is family or (stored in NUMERIC and family in NUMERIC):
        return _unchanged
    if stored is ColumnFamily.TEXT:
        return lambda column: read_texts(pc.cast(comparable(column), pa.string()), _TEXTS[family])
    if stored is ColumnFamily.BOOLEAN and family in NUMERIC:
        target = pa.int64() if family is ColumnFamily.INTEGER else pa.float64()
        return lambda column: pc.cast(pc.cast(column, pa.uint8()), target)
    return _CONVERTERS.get((stored, family))


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Tell whether values of a type are times that are counted in nanoseconds."""
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def as_family(column: pa.Array, family: ColumnFamily) -> pa.Array:
    """Return a column's values as a family's; one that does not read so is null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    convert = converter(column.type, family)
    return pa.nulls(len(column), ARROW_TYPES[family]) if convert is None else convert(column)


def as_numbers(column: pa.Array) -> pa.Array:
    """Return numbers as the nearest float64, of whatever type."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.cast(column, pa.float64(), safe=False)


def _unchanged(column: pa.Array) -> pa.Array:
    return column


def _truths(column: pa.Array) -> pa.Array:
    """Return 1 as true and 0 as false, and null for any other number."""
    numbers = as_float64(column)
    if numbers is None:
        return pa.nulls(len(column), pa.bool_())
    values, source = numbers
    is_other = ~((values == 0.0) | (values == 1.0)) | _nulls(source)
    return pc.cast(masked_array((values == 1.0).astype(np.uint8), is_other), pa.bool_())


def _digits(column: pa.Array) -> pa.Array:
    """Return integers as their digits; a floating-point number where it is an integer that is exact."""
    if pa.types.is_floating(column.type):
        below = 2.0 ** (np.finfo(column.type.to_pandas_dtype()).nmant + 1)
        numbers = as_float64(column)
        if numbers is None:
            return pa.nulls(len(column), pa.string())
        values, source = numbers
        is_exact = (values == np.floor(values)) & (np.abs(values) < below) & ~_nulls(source)
        column = masked_array(np.where(is_exact, values, 0.0).astype(np.int64), ~is_exact)
    return pc.cast(column, pa.string())


def _whole_decimals(column: pa.Array) -> pa.Array:
    """Return the digits of decimals that are integers; null for others."""
    texts = pc.cast(comparable(column), pa.string())
    whole = pc.replace_substring_regex(texts, r"\.0*$", "")
    is_whole = pc.match_substring_regex(whole, r"^-?[0-9]+$")
    return pc.if_else(is_whole, whole, pa.nulls(1, pa.string())[0])


def _days(column: pa.Array) -> pa.Array:
    """Return the days of times without a zone."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.date32())
    days = fixed_width(column) // units_per_day(column.type)
    is_beyond = np.abs(days) >= 2**31
    return masked_array(np.where(is_beyond, 0, days).astype(np.int32), is_beyond | _nulls(column)).cast(
        pa.date32()
    )


def _midnights(column: pa.Array) -> pa.Array:
    """Return the midnights that dates begin with."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.timestamp("us"))
    days = fixed_width(column).astype(np.int64) // units_per_day(column.type)
    is_beyond = np.abs(days) > _MOST_DAYS
    instants = np.where(is_beyond, 0, days) * _MICROSECONDS_PER_DAY
    return masked_array(instants, is_beyond | _nulls(column)).cast(pa.timestamp("us"))


def _microseconds(column: pa.Array) -> pa.Array:
    """Return times as of the microsecond that they lie in, as texts of times are read."""
    kind = pa.timestamp("us", column.type.tz)
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    return masked_array(fixed_width(column) // 1000, _nulls(column)).cast(kind)


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    return null_mask(column) if column.null_count else np.zeros(len(column), np.bool_)


def _as_text(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.string())


_CONVERTERS: dict[tuple[ColumnFamily | None, ColumnFamily], Convert] = {
    **{(stored, ColumnFamily.BOOLEAN): _truths for stored in NUMERIC},
    (ColumnFamily.INTEGER, ColumnFamily.TEXT): _digits,
    (ColumnFamily.FLOATING, ColumnFamily.TEXT): _digits,
    (ColumnFamily.DECIMAL, ColumnFamily.TEXT): _whole_decimals,
    (ColumnFamily.BOOLEAN, ColumnFamily.TEXT): _as_text,
    (ColumnFamily.DATE, ColumnFamily.TEXT): _as_text,
    (ColumnFamily.TIMESTAMP, ColumnFamily.DATE): _days,
    (ColumnFamily.DATE, ColumnFamily.TIMESTAMP): _midnights,
}
