"""Texts compared letter by letter, and read as dates, times and numbers in the ways that a spec states.

Each function takes an array and returns one as long, of which each value follows from its own alone. A text
that does not read, whatever its bytes, is null.
"""

from __future__ import annotations

import re
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import masked_array, null_scalar, text_scalar
from suffice.pipeline.rows.sources.column_values import (
    as_family,
    as_float64,
    days_of,
    fixed_width,
    null_mask,
    read_texts,
)
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.date_formats import SHORT_MONTHS
from suffice.pipeline.terms.declaration.derived_values import Epoch, Parse
from suffice.pipeline.terms.declaration.source_specs import CsvType

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.date_formats import DateFormat
    from suffice.pipeline.terms.declaration.derived_conditions import TextMatch
    from suffice.pipeline.terms.declaration.derived_values import ParsedText

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_SPACES = " \t"
_PER_SECOND = 10**6
_PER_DAY = 86_400 * _PER_SECOND
_FIRST = -719_162 * _PER_DAY
"""The first microsecond of year 1, and below the first one after year 9999."""
_LAST = 2_932_897 * _PER_DAY
_UNITS = {
    Epoch.DAYS: (_PER_DAY, 1),
    Epoch.SECONDS: (_PER_SECOND, 1),
    Epoch.MILLISECONDS: (1000, 1),
    Epoch.MICROSECONDS: (1, 1),
    Epoch.NANOSECONDS: (1, 1000),
}
"""Microseconds in a unit, and units in a microsecond."""
_TYPES = {
    Parse.DATE: pa.date32(),
    Parse.TIMESTAMP: pa.timestamp("us"),
    Parse.NUMBER: pa.float64(),
}
_INSTANTS = pa.timestamp("us", "UTC")


def parsed_type(of: ParsedText) -> pa.DataType:
    """Return the type of what is read."""
    return _INSTANTS if of.has_zone else _TYPES[of.parse]


def matches(column: pa.Array, of: TextMatch) -> pa.Array:
    """Tell which texts begin or end with one of several, or have one in them; null of null."""
    compare = {
        "starts_with": pc.starts_with,
        "ends_with": pc.ends_with,
        "contains": pc.match_substring,
    }[of.match]
    return reduce(pc.or_, [compare(column, pattern=text) for text in of.texts])


def parsed(column: pa.Array, of: ParsedText) -> pa.Array:
    """Read texts, or numbers, in a stated way."""
    if of.parse is Parse.NUMBER:
        return _numbers(column, of)
    written = of.date_format
    if written is not None:
        moments, there = _written(_texts(column), written)
    else:
        moments, there = _counted(column, of.epoch or Epoch.SECONDS)
    if of.parse is Parse.DATE:
        days = np.where(there, moments, 0) // _PER_DAY
        return masked_array(days.astype(np.int32), ~there).cast(pa.date32())
    return masked_array(np.where(there, moments, 0), ~there).cast(parsed_type(of))


def _texts(column: pa.Array) -> pa.Array:
    """Return texts without spaces around them; of numbers the digits of integers."""
    return pc.ascii_trim(pc.cast(as_family(column, ColumnFamily.TEXT), pa.string()), _SPACES)


def _written(texts: pa.Array, written: DateFormat) -> tuple[Numbers, Flags]:
    """Return microseconds since 1970 of the times that texts name, and which do."""
    parts = pc.extract_regex(pc.ascii_lower(texts), written.pattern)
    there = ~null_mask(parts)
    number = partial(_part, parts, written)
    year = number("year")
    if "short_year" in written.names:
        pivot = written.pivot or 0
        year = pivot + (number("short_year") - pivot) % 100
    month = number("month")
    if "month_name" in written.names:
        names = pc.utf8_slice_codeunits(pc.struct_field(parts, "month_name"), 0, 3)
        month = _positions(names, SHORT_MONTHS) + 1
    there = there & (year >= 1)
    days, there = days_of(year, month, number("day"), there)
    hour = number("hour")
    if "half_hour" in written.names:
        half = number("half_hour")
        there = there & (half >= 1) & (half <= 12)
        hour = half % 12 + 12 * (_positions(pc.struct_field(parts, "half"), ("am", "pm")) == 1)
    minute, second = number("minute"), number("second")
    there = there & (hour < 24) & (minute < 60) & (second < 60)
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    fraction = _part(parts, written, "fraction", digits=6)
    return seconds * _PER_SECOND + fraction, there


def _part(parts: pa.Array, written: DateFormat, name: str, digits: int = 1) -> Numbers:
    """Return a part of the texts as integers; 0 where it is absent."""
    if name not in written.names:
        return np.zeros(len(parts), np.int64)
    texts = pc.fill_null(pc.struct_field(parts, name), text_scalar(""))
    padded = pc.utf8_rpad(texts, digits, "0") if digits > 1 else pc.utf8_lpad(texts, 1, "0")
    return fixed_width(pc.cast(padded, pa.int64()))


def _positions(texts: pa.Array, listed: tuple[str, ...]) -> Numbers:
    """Return where texts are in a list; -1 where they are not."""
    places = pc.fill_null(pc.index_in(texts, value_set=pa.array(listed)), pa.scalar(-1, pa.int32()))
    return fixed_width(places).astype(np.int64)


def _counted(column: pa.Array, epoch: Epoch) -> tuple[Numbers, Flags]:
    """Return microseconds since 1970 of what is counted in a unit, whole units alone, and which are times."""
    times, divisor = _UNITS[epoch]
    values, there = _integers(column)
    first, last = -(-_FIRST // times) * divisor, _LAST // times * divisor
    there = there & (values >= first) & (values < last)
    return np.where(there, values, 0) * times // divisor, there


def _integers(column: pa.Array) -> tuple[Numbers, Flags]:
    """Return numbers rounded down, and which there are: integers of 64 bits, or others that may be exact.

    A double of 2^53 or more may have been rounded, and lie in another window than the integer that it was.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = read_texts(pc.cast(column, pa.string()), CsvType.INTEGER)
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    there = ~null_mask(column) if column.null_count else np.ones(len(column), np.bool_)
    if pa.types.is_integer(column.type):
        values = fixed_width(column)
        if values.dtype == np.uint64:
            there = there & (values < np.uint64(2**63))
        return values.astype(np.int64), there
    numbers = as_float64(column)
    if numbers is None:
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    with np.errstate(invalid="ignore"):
        floors = np.floor(numbers[0])
        there = there & (np.abs(numbers[0]) < 2.0**53)
    return np.where(there, floors, 0.0).astype(np.int64), there


def _numbers(column: pa.Array, of: ParsedText) -> pa.Array:
    """Return numbers, or what texts say in stated signs and suffixes, as the nearest float64."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        numbers = as_float64(column)
        if numbers is None:
            return pa.nulls(len(column), pa.float64())
        values, source = numbers
        absent = np.isnan(values)
        return masked_array(values, absent | null_mask(source) if source.null_count else absent)
    suffixes = list((of.suffixes or {}).items())
    parts = pc.extract_regex(_texts(column), _pattern(of, [text for text, _ in suffixes]))
    mantissa = pc.struct_field(parts, "number")
    if of.thousands is not None:
        mantissa = pc.replace_substring(mantissa, _sign(of.thousands), "")
    if of.decimal == ",":
        mantissa = pc.replace_substring(mantissa, ",", ".")
    exponent = pc.struct_field(parts, "exponent")
    if not suffixes:
        return pc.cast(_joined(mantissa, exponent), pa.float64())
    place = pc.index_in(pc.struct_field(parts, "suffix"), value_set=pa.array([text for text, _ in suffixes]))
    powers = [_power_of_ten(factor) for _, factor in suffixes]
    # A power of ten is an exponent, so that 2.55M is the number nearest to 2550000.
    stated = pa.array(["" if power is None else f"e{power}" for power in powers])
    exponent = pc.coalesce(stated.take(place), exponent)
    factors = [
        float(factor) if power is None else 1.0 for (_, factor), power in zip(suffixes, powers, strict=True)
    ]
    values = pc.cast(_joined(mantissa, exponent), pa.float64())
    product = pc.multiply(values, pc.fill_null(pa.array(factors).take(place), pa.scalar(1.0)))
    return pc.if_else(pc.is_nan(product), null_scalar(pa.float64()), product)


def _joined(mantissa: pa.Array, exponent: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(mantissa, pc.fill_null(exponent, text_scalar("")), text_scalar(""))


def _sign(thousands: str) -> str:
    return " " if thousands == "space" else thousands


def _pattern(of: ParsedText, suffixes: list[str]) -> str:
    """Return the expression of texts that are numbers: a suffix or an exponent, not both."""
    whole = "[0-9]+"
    if of.thousands is not None:
        whole = f"(?:[0-9]{{1,3}}(?:{re.escape(_sign(of.thousands))}[0-9]{{3}})+|[0-9]+)"
    point = re.escape(of.decimal or ".")
    number = f"(?P<number>[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+))"
    longest_first = sorted(suffixes, key=len, reverse=True)
    suffix = "|".join(map(re.escape, longest_first))
    ends = "(?P<exponent>[eE][+-]?[0-9]+)" + (f"|[ ]?(?P<suffix>{suffix})" if suffix else "")
    return f"^{number}(?:{ends})?$"


def _power_of_ten(factor: Fraction) -> int | None:
    """Return k where a factor is 10 to the k-th."""
    digits, power = factor, 0
    while digits > 1:
        digits, power = digits / 10, power + 1
    while 0 < digits < 1:
        digits, power = digits * 10, power - 1
    return power if digits == 1 else None
