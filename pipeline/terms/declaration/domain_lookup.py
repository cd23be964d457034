"""Declared keys in a column's own type: how a domain is looked up by one Arrow type."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from suffice.arrays import decimal_array, text_array
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, period_end, period_start
from suffice.pipeline.terms.declaration.exact_numbers import parse_decimal
from suffice.pipeline.terms.declaration.time_zones import UTC, period_boundaries

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Codes = NDArray[np.int32]

UNSIGNED_SHIFT = 1 << 63
"""uint64 values are shifted down by this, in order, into int64."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECONDS_PER_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_WIDEST_DENSE = 1 << 20
"""Integer keys that span less are found by their position in a table, others by searching."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """Codes of consecutive integers from `first` on, -1 between keys; values are first divided."""

    first: int
    codes: Codes
    divisor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """Sorted int64 keys and their codes; with `of_bits` the keys are the bits of float64 numbers."""

    keys: NDArray[np.int64]
    codes: Codes
    divisor: int = 1
    of_bits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The one key of a window of instants: from `begins` on, and before `ends`; values are first divided."""

    begins: int
    ends: int
    divisor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Keys as an array of the column's own type, and their codes; of texts also the codes by text."""

    keys: pa.Array
    codes: Codes
    by_text: dict[str, int] | None = None


@lru_cache(maxsize=32)
def lookup(domain: Domain, kind: pa.DataType) -> Dense | Sparse | Interval | Listed:
    """Return how values of an Arrow type are found in a domain.

    Keys that the type cannot hold are left out: what an integer or decimal column cannot hold exactly,
    what no floating-point number is nearest to, what is no date. Of two keys that become the same value,
    the one declared first counts.

    Parameters
    ----------
    domain : Domain
        The declared keys.
    kind : pyarrow.DataType
        Text, boolean, integer, floating-point, decimal, date or timestamp; nothing is found in others.
    """
    if domain.kind is DomainKind.PERIOD:
        return _periods(domain, kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = {str(key): code for code, key in enumerate(domain)}
        return _listed(text_array(list(texts), kind), texts, texts)
    if pa.types.is_decimal(kind):
        unscaled = _numbers(domain, lambda number: _unscaled(number, kind))
        return _listed(decimal_array(list(unscaled), kind), unscaled)
    if isinstance(domain.keys, range):
        return _range(domain.keys, kind)
    if pa.types.is_floating(kind):
        return _floats(_numbers(domain, lambda number: nearest(number, np.dtype(kind.to_pandas_dtype()))))
    return _integers(_codes_by_integer(domain, kind), units_per_day(kind) if pa.types.is_date(kind) else 1)


def _codes_by_integer(domain: Domain, kind: pa.DataType) -> dict[int, int]:
    """Return codes by the keys as the int64 numbers that stand in a column's buffer, or days for dates."""
    if pa.types.is_integer(kind):
        return _numbers(domain, lambda number: _integer(number, kind))
    if pa.types.is_boolean(kind):
        return _read(domain, {"false": 0, "true": 1}.get)
    if pa.types.is_date(kind):
        return _read(domain, _day)
    if pa.types.is_timestamp(kind):
        return _read(domain, lambda text: _instant(text, kind))
    return {}


def units_per_day(kind: pa.DataType) -> int:
    """Return by what a date or timestamp is divided to give days since 1970-01-01."""
    if pa.types.is_timestamp(kind):
        return _SECONDS_PER_DAY * _PER_SECOND[kind.unit]
    return _SECONDS_PER_DAY * 1000 if pa.types.is_date64(kind) else 1


def _read(domain: Domain, read: Callable[[str], Any]) -> dict[Any, int]:
    """Return codes by what the keys mean, leaving out keys that mean nothing."""
    codes: dict[Any, int] = {}
    for code, key in enumerate(domain):
        value = read(str(key))
        if value is not None:
            codes.setdefault(value, code)
    return codes


def _numbers(domain: Domain, convert: Callable[[Fraction], Any]) -> dict[Any, int]:
    """Return codes by the keys as numbers of a column's type; false and true are 0 and 1."""

    def read(text: str) -> Any:
        if domain.kind is DomainKind.BOOLEAN:
            return convert(Fraction(text == "true"))
        try:
            return convert(parse_decimal(text))
        except ValueError:
            return None

    return _read(domain, read)


def _integer(number: Fraction, kind: pa.DataType) -> int | None:
    unsigned = pa.types.is_unsigned_integer(kind)
    lowest = 0 if unsigned else -(1 << (kind.bit_width - 1))
    if number.denominator != 1 or not lowest <= number < lowest + (1 << kind.bit_width):
        return None
    return int(number) - (UNSIGNED_SHIFT if kind.bit_width == 64 and unsigned else 0)


def _unscaled(number: Fraction, kind: pa.DataType) -> int | None:
    """Return a number as the integer that stands in a decimal column's buffer."""
    unscaled = number * Fraction(10) ** kind.scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**kind.precision:
        return None
    return int(unscaled.numerator)


def nearest(number: Fraction, dtype: np.dtype[Any]) -> float | None:
    """Return the number of a floating-point type that is nearest, ties to even; None beyond its range."""
    try:
        near = float(number)
    except OverflowError:
        return None
    if dtype.itemsize == 8:
        return near
    with np.errstate(over="ignore", under="ignore"):
        middle = dtype.type(near)
    if not math.isfinite(middle):
        return None
    # Rounding to float64 first may have made or hidden a tie: decide it on the exact number.
    around = [middle, *(np.nextafter(middle, dtype.type(end)) for end in (-math.inf, math.inf))]
    integer = np.dtype(f"int{8 * dtype.itemsize}")
    finite = [candidate for candidate in around if math.isfinite(candidate)]
    best = min(finite, key=lambda value: (abs(Fraction(float(value)) - number), int(value.view(integer)) & 1))
    return float(best)


def _day(text: str) -> int | None:
    if len(text) != len("2013-01-05") or not _INSTANT.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text).toordinal() - _EPOCH.toordinal()
    except ValueError:
        return None


def _instant(text: str, kind: pa.DataType) -> int | None:
    """Return an ISO date (its midnight) or time in the unit of a timestamp column."""
    if not _INSTANT.fullmatch(text):
        return None
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=dt.UTC)
    elif kind.tz is None:
        return None
    units = Fraction((instant - _EPOCH) // dt.timedelta(microseconds=1), 10**6) * _PER_SECOND[kind.unit]
    return units.numerator if units.denominator == 1 and -(2**63) <= units < 2**63 else None


def _listed(keys: pa.Array, codes: dict[Any, int], by_text: dict[str, int] | None = None) -> Listed:
    return Listed(keys=keys, codes=np.array(list(codes.values()), np.int32), by_text=by_text)


def _range(keys: range, kind: pa.DataType) -> Dense:
    codes = np.arange(len(keys), dtype=np.int32)
    if kind != pa.uint64():
        return Dense(first=keys.start, codes=codes)
    below_zero = min(max(-keys.start, 0), len(keys))
    return Dense(first=max(keys.start, 0) - UNSIGNED_SHIFT, codes=codes[below_zero:])


def _integers(codes: dict[int, int], divisor: int = 1) -> Dense | Sparse:
    if codes and max(codes) - min(codes) < _WIDEST_DENSE:
        first = min(codes)
        table = np.full(max(codes) - first + 1, -1, np.int32)
        table[[value - first for value in codes]] = list(codes.values())
        return Dense(first=first, codes=table, divisor=divisor)
    keys = np.array(sorted(codes), np.int64)
    return Sparse(keys=keys, codes=np.array([codes[key] for key in keys.tolist()], np.int32), divisor=divisor)


def _floats(codes: dict[float, int]) -> Dense | Sparse:
    if all(value.is_integer() and abs(value) < 2**63 for value in codes):
        return _integers({int(value): code for value, code in codes.items()})
    by_bits = {int(np.float64(value + 0.0).view(np.int64)): code for value, code in codes.items()}
    keys = np.array(sorted(by_bits), np.int64)
    return Sparse(keys=keys, codes=np.array([by_bits[key] for key in keys.tolist()], np.int32), of_bits=True)


def _periods(domain: Domain, kind: pa.DataType) -> Dense | Interval:
    every = domain.every
    if every is None:
        message = "a period domain states its period"
        raise ValueError(message)
    if domain.time_zone != UTC and pa.types.is_timestamp(kind) and kind.tz is not None:
        (label,) = domain
        begins, ends = period_boundaries([str(label)], every, domain.time_zone)
        return Interval(begins=begins, ends=ends, divisor=_PER_SECOND[kind.unit])
    starts = [period_start(str(label), every) for label in domain]
    days = [*(start.toordinal() for start in starts), period_end(starts[-1], every)]
    codes = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(days))
    return Dense(first=days[0] - _EPOCH.toordinal(), codes=codes, divisor=units_per_day(kind))
