"""Texts as numbers, truth values, dates and times: what does not read so is null, whatever it is.

The forms are fixed here, and read by every format without types. Spaces and tabs around a text do not
count. Nothing fails because of a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import masked_array, null_scalar, text_scalar
from suffice.pipeline.rows.sources.arrow_arrays import fixed_width
from suffice.pipeline.terms.declaration.source_specs import CsvType

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

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

ARROW_TYPES: dict[CsvType, pa.DataType] = {
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
        Of the type that `ARROW_TYPES` names.
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
    days, is_day = _days(parts)
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


def _days(parts: pa.Array) -> tuple[Numbers, Flags]:
    """Return days since 1970-01-01, and which there are in the calendar."""
    year, month, day = (_number(parts, name) for name in ("year", "month", "day"))
    is_month = _flags(parts.is_valid()) & (month >= 1) & (month <= 12)
    months = np.where(is_month, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[D]").astype(np.int64)
    days = first + day - 1
    return days, is_month & (day >= 1) & (days < following)


def _seconds(parts: pa.Array) -> tuple[Numbers, Flags]:
    """Return whole seconds since 1970-01-01 00:00, and which there are."""
    days, is_time = _days(parts)
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
