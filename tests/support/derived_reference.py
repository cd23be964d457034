"""Derived columns in plain Python, a row at a time, from what the spec's reference says of them."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from suffice.auditing.second_reading import parsed
from suffice.pipeline.terms.declaration.derived_columns import read_derived

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def derived_value(entry: Mapping[str, Any], row: Mapping[str, pa.Scalar]) -> Any:
    """Return what a spec's entry makes of a row; None for null."""
    if "any_of" in entry or "all_of" in entry:
        return _combined(entry, row)
    if "not" in entry:
        inner = entry["not"]
        value = row[inner].as_py() if isinstance(inner, str) else derived_value(inner, row)
        return None if value is None else not value
    if "coalesce" in entry:
        return _first(entry, row)
    if "lower" in entry:
        return _computed(entry, row)
    value = plain(row[entry["column"]])
    if "is_null" in entry:
        return (value is None) == (entry["is_null"] == "true")
    return None if value is None else _of_value(entry, value)


def _of_value(entry: Mapping[str, Any], value: Any) -> Any:  # noqa: PLR0911 - a kind each
    if "parse" in entry:
        if isinstance(value, bytes):
            return None
        return parsed(cast("Any", read_derived("x", entry, None)), value)
    if "bins" in entry or "cut" in entry:
        return _divided(value, entry)
    match = next((key for key in _MATCHES if key in entry), None)
    if match is not None:
        data = value.encode() if isinstance(value, str) else value
        return any(_MATCHES[match](data, text.encode()) for text in entry[match])
    if "part" in entry:
        return _part(value, entry["part"], entry.get("time_zone", "UTC"))
    if entry.keys() & {"normalize", "trim", "case"}:
        if isinstance(value, bytes):
            return None
        text = unicodedata.normalize(entry["normalize"], value) if "normalize" in entry else value
        text = text.strip() if "trim" in entry else text
        return {"lower": text.lower(), "upper": text.upper(), None: text}[entry.get("case")]
    if "map" in entry:
        mapped = next((to for key, to in entry["map"].items() if is_key(value, key)), entry.get("otherwise"))
        return float(mapped) if mapped is not None and entry.get("type") == "number" else mapped
    if "in" in entry or "equals" in entry:
        return any(is_key(value, key) for key in entry.get("in", [entry.get("equals")]))
    return _compared(value, entry)


_MATCHES: dict[str, Callable[[bytes, bytes], bool]] = {
    "starts_with": bytes.startswith,
    "ends_with": bytes.endswith,
    "contains": bytes.__contains__,
}


def _first(entry: Mapping[str, Any], row: Mapping[str, pa.Scalar]) -> Any:
    is_number = entry.get("type") == "number"
    for column in entry["coalesce"]:
        if plain(row[column]) is not None:
            return _float(row[column]) if is_number else plain(row[column])
    value = entry.get("otherwise")
    return float(value) if is_number and value is not None else value


def _divided(value: Any, entry: Mapping[str, Any]) -> Any:
    edges = entry.get("bins") or entry["cut"]
    reached = sum(bool(_compared(value, {"at_least": edge})) for edge in edges)
    if "cut" in entry:
        return entry["labels"][reached]
    if not reached or _compared(value, {"above": edges[-1]}):
        return None
    return float(edges[min(reached, len(edges) - 1) - 1])


class Instant(int):
    """A time in its own unit since 1970; `per_second` and whether it has a zone are attributes."""

    per_second: int
    has_zone: bool


def plain(scalar: pa.Scalar) -> Any:
    """Return a value as Python has it, times as `Instant`, what is no text as bytes; None for null, NaN."""
    if isinstance(scalar, pa.DictionaryScalar):
        scalar = scalar.value
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_temporal(kind):
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        value = Instant(scalar.cast(width).as_py() * (86_400 if pa.types.is_date32(kind) else 1))
        value.per_second = 1 if pa.types.is_date32(kind) else 1000 if pa.types.is_date64(kind) else 0
        value.per_second = value.per_second or _UNITS[kind.unit]
        return value
    if pa.types.is_floating(kind):
        number = float(scalar.as_py())
        return None if math.isnan(number) else np.dtype(kind.to_pandas_dtype()).type(number)
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes()


def is_key(value: Any, key: str) -> bool:
    """Tell whether a value is the public one that a spec writes so."""
    if isinstance(value, bool):
        return key == str(value).lower()
    if isinstance(value, str):
        return value == key
    if isinstance(value, bytes | Instant):
        return False  # keys of times have tests of their own
    try:
        number = Fraction(key)
    except ValueError:
        return False
    if isinstance(value, np.floating):
        with np.errstate(over="ignore"):
            return bool(value == type(value)(float(number)))
    return Fraction(value) == number


def _local(value: Instant, zone: str) -> dt.datetime | None:
    try:
        instant = _EPOCH + dt.timedelta(seconds=int(value) // value.per_second)
        return instant.astimezone(ZoneInfo(zone))
    except OverflowError:
        return None


def _part(value: Instant, part: str, zone: str) -> int | None:
    time = _local(value, zone)
    if time is None:
        return None
    return {
        "year": time.year,
        "quarter": (time.month + 2) // 3,
        "month": time.month,
        "week": time.isocalendar().week,
        "day": time.day,
        "weekday": time.isoweekday(),
        "hour": time.hour,
    }[part]


def _compared(value: Any, entry: Mapping[str, Any]) -> bool | None:
    if isinstance(value, Instant):
        time = _local(value, entry.get("time_zone", "UTC"))
        if time is None:
            return None
        value = time.date()

        def read(text: str) -> Any:
            return dt.date.fromisoformat(text)

    elif isinstance(value, np.floating):
        kind = type(value)
        value = float(value)

        def read(text: str) -> Any:
            with np.errstate(over="ignore"):
                near = float(kind(float(Fraction(text))))
            return near if math.isfinite(near) else float(Fraction(text))
    else:
        value = Fraction(value)

        def read(text: str) -> Any:
            return Fraction(text)

    tests: dict[str, Callable[[Any], bool]] = {
        "above": lambda end: value > read(end),
        "at_least": lambda end: value >= read(end),
        "below": lambda end: value < read(end),
        "at_most": lambda end: value <= read(end),
        "between": lambda ends: read(ends[0]) <= value <= read(ends[1]),
    }
    return next(bool(test(entry[key])) for key, test in tests.items() if key in entry)


def _computed(entry: Mapping[str, Any], row: Mapping[str, pa.Scalar]) -> float | None:
    operation = next(key for key in ("sum", "difference", "product", "ratio") if key in entry)
    numbers = [_operand(each, row) for each in entry[operation]]
    if None in numbers:
        return None
    a, b = numbers
    if operation == "ratio" and b == 0:
        return None
    with np.errstate(all="ignore"):
        x, y = np.float64(a), np.float64(b)
        result = float(
            {"sum": x + y, "difference": x - y, "product": x * y, "ratio": x / (y or 1)}[operation]
        )
    if math.isnan(result):
        return None
    return min(max(result, float(entry["lower"])), float(entry["upper"]))


def _operand(of: Any, row: Mapping[str, pa.Scalar]) -> float | None:
    if isinstance(of, dict):
        return float(of["number"])
    return None if plain(row[of]) is None else _float(row[of])


def _float(scalar: pa.Scalar) -> float:
    """Return a number in float64: a decimal as Arrow has it there, which is not always the nearest."""
    if pa.types.is_decimal(scalar.type):
        return float(scalar.cast(pa.float64(), safe=False).as_py())
    return float(scalar.as_py())


def _combined(entry: Mapping[str, Any], row: Mapping[str, pa.Scalar]) -> bool | None:
    is_any = "any_of" in entry
    values = [
        row[each].as_py() if isinstance(each, str) else derived_value(each, row)
        for each in entry["any_of" if is_any else "all_of"]
    ]
    if is_any in values:
        return is_any
    return None if None in values else not is_any
