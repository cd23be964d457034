"""Values of a file's column: as NumPy arrays, as its contract's family, and as what their texts say.

Arrow arrays become views of their buffers where the types allow, never a Python object a row.

What a writer typed a file as follows from single records: pandas makes a column without a value one of
doubles, integers beside a null doubles too, and a column of numbers beside one text a column of texts. So a
value means the same in whatever type its file holds it, and no file, row or type is an error.

A value that does not read as its family is null, and so is a text that is no number, truth value, date or
time. The forms of texts are fixed here, and read by every format without types. Spaces and tabs around a
text do not count. Nothing fails because of a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import masked_array, null_scalar, text_scalar
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.domain_lookup import units_per_day
from suffice.pipeline.terms.declaration.source_specs import CsvType

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Convert = Callable[[pa.Array], pa.Array]


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


_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"^[+-]?(nan|inf|infinity)$"
_INTEGER = r"^[+-]?[0-9]{1,38}(\.0+)?$"
_BOOLEAN = r"^(true|false|1|0)$"
_DAY = r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = (
    r"[t ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
)
_OFFSET = r"(?:z|(?P<sign>[+-])(?P<ahead_hour>[0-9]{2})(?::?(?P<ahead_minute>[0-9]{2}))?)"
_MICROSECONDS_PER_SECOND = 10**6

TEXT_TYPES: dict[CsvType, pa.DataType] = {
    CsvType.TEXT: pa.string(),
    CsvType.NUMBER: pa.float64(),
    CsvType.INTEGER: pa.int64(),
    CsvType.BOOLEAN: pa.bool_(),
    CsvType.DATE: pa.date32(),
    CsvType.TIMESTAMP: pa.timestamp("us"),
    CsvType.TIMESTAMP_WITH_OFFSET: pa.timestamp("us", "UTC"),
}
"""The Arrow type that holds what texts are read as."""


def read_texts(texts: pa.Array, kind: CsvType) -> pa.Array:
    """Return texts as values of a type.

    Parameters
    ----------
    texts : pyarrow.StringArray
        The texts.
    kind : CsvType
        ``number``: decimal text, ``nan`` or ``inf``, as the nearest float64; beyond its range infinity.
        ``integer``: a sign and digits, within 64 bits; zeros after a point too, as writers add to all
        integers of a column that has one null. ``boolean``: ``true``, ``false``, ``1`` or ``0``.
        ``date``: as ``2013-01-05``. ``timestamp``: as ``2013-01-05 17:30:00.5``, also with ``T``, without an
        offset; digits beyond microseconds are dropped. ``timestamp_with_offset``: the same with ``Z``,
        ``+01:00``, ``+0100`` or ``+01``. Letter case does not count.

    Returns
    -------
    pyarrow.Array
        Of the type that `TEXT_TYPES` names.
    """
    if kind is CsvType.TEXT:
        return texts
    return _READERS[kind](pc.ascii_lower(pc.ascii_trim(texts, " \t")))


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    """Return the texts that match; null instead of others."""
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, null_scalar(pa.string()))


def _numbers(texts: pa.Array) -> pa.Array:
    return pc.cast(_matching(texts, f"{_NUMBER}|{_NOT_FINITE}"), pa.float64())


def _integers(texts: pa.Array) -> pa.Array:
    digits = pc.replace_substring_regex(_matching(texts, _INTEGER), r"^\+|\.0+$", "")
    wide = pc.cast(digits, pa.decimal128(38, 0))
    first, last = (text_scalar(str(bound)).cast(wide.type) for bound in (-(2**63), 2**63 - 1))
    fits = pc.and_(pc.greater_equal(wide, first), pc.less_equal(wide, last))
    return pc.cast(pc.if_else(fits, wide, null_scalar(wide.type)), pa.int64())


def _booleans(texts: pa.Array) -> pa.Array:
    known = _matching(texts, _BOOLEAN)
    return pc.or_(*(pc.equal(known, text_scalar(text)) for text in ("true", "1")))


def _dates(texts: pa.Array) -> pa.Array:
    parts = pc.extract_regex(texts, f"{_DAY}$")
    days, is_day = _days_written(parts)
    return masked_array(days.astype(np.int32), ~is_day).cast(pa.date32())


def _timestamps(texts: pa.Array) -> pa.Array:
    parts = pc.extract_regex(texts, f"{_DAY}{_TIME}$")
    seconds, is_time = _seconds(parts)
    return _instants(parts, seconds, is_time).cast(pa.timestamp("us"))


def _timestamps_with_offset(texts: pa.Array) -> pa.Array:
    parts = pc.extract_regex(texts, f"{_DAY}{_TIME}{_OFFSET}$")
    seconds, is_time = _seconds(parts)
    hours, minutes = _number(parts, "ahead_hour"), _number(parts, "ahead_minute")
    is_behind = _flags(pc.equal(_part(parts, "sign"), text_scalar("-")))
    ahead = hours * 3600 + minutes * 60
    is_time &= (hours < 24) & (minutes < 60)
    return _instants(parts, seconds - np.where(is_behind, -ahead, ahead), is_time).cast(
        pa.timestamp("us", "UTC")
    )


def _number(parts: pa.Array, name: str) -> Numbers:
    """Return a part of the texts as integers; 0 where it is absent."""
    return fixed_width(pc.cast(pc.utf8_lpad(_part(parts, name), 1, "0"), pa.int64()))


def _part(parts: pa.Array, name: str) -> pa.Array:
    """Return a part of the texts; an empty text where it is absent."""
    return pc.fill_null(pc.struct_field(parts, name), text_scalar(""))


def _flags(values: pa.Array) -> Flags:
    return fixed_width(pc.cast(values, pa.uint8())).view(np.bool_)


def _days_written(parts: pa.Array) -> tuple[Numbers, Flags]:
    """Return days since 1970-01-01, and which there are in the calendar."""
    year, month, day = (_number(parts, name) for name in ("year", "month", "day"))
    return days_of(year, month, day, _flags(parts.is_valid()))


def days_of(year: Numbers, month: Numbers, day: Numbers, is_stated: Flags) -> tuple[Numbers, Flags]:
    """Return days since 1970-01-01, and which of those that are stated there are in the calendar."""
    is_month = is_stated & (month >= 1) & (month <= 12)
    months = np.where(is_month, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[D]").astype(np.int64)
    days = first + day - 1
    return days, is_month & (day >= 1) & (days < following)


def _seconds(parts: pa.Array) -> tuple[Numbers, Flags]:
    """Return whole seconds since 1970-01-01 00:00, and which there are."""
    days, is_time = _days_written(parts)
    hour, minute, second = (_number(parts, name) for name in ("hour", "minute", "second"))
    is_time = is_time & (hour < 24) & (minute < 60) & (second < 60)
    return ((days * 24 + hour) * 60 + minute) * 60 + second, is_time


def _instants(parts: pa.Array, seconds: Numbers, is_time: Flags) -> pa.Array:
    """Return microseconds since 1970-01-01 00:00."""
    fraction = pc.utf8_rpad(_part(parts, "fraction"), 6, "0")
    fractions = fixed_width(pc.cast(pc.utf8_slice_codeunits(fraction, 0, 6), pa.int64()))
    return masked_array(seconds * _MICROSECONDS_PER_SECOND + fractions, ~is_time)


_READERS: dict[CsvType, Callable[[pa.Array], pa.Array]] = {
    CsvType.NUMBER: _numbers,
    CsvType.INTEGER: _integers,
    CsvType.BOOLEAN: _booleans,
    CsvType.DATE: _dates,
    CsvType.TIMESTAMP: _timestamps,
    CsvType.TIMESTAMP_WITH_OFFSET: _timestamps_with_offset,
}


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
        return lambda column: column
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
