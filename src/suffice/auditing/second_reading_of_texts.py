"""Texts read as dates, times and numbers a second time, by what the reference of the spec says."""

from __future__ import annotations

import datetime as dt
import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.derived_values import Parse

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.derived_values import ParsedText

_PER_DAY = 86_400 * 10**6
_MICROSECONDS = {"days": _PER_DAY, "seconds": 10**6, "milliseconds": 1000, "microseconds": 1}


def parsed(of: ParsedText, value: Any) -> Any:
    """Return what a value that is there is read as, None where it does not read so."""
    text = value.strip(" \t") if isinstance(value, str) else None
    if of.parse is Parse.NUMBER:
        return float(value) if text is None else _parsed_number(of, text)
    if text is None and of.date_format is not None:
        if isinstance(value, float) and not (value.is_integer() and abs(value) < 2**53):
            return None
        if value != int(value):
            return None
        text = str(int(value))
    if of.date_format is not None:
        moment = of.date_format.moment(text or "")
    else:
        moment = _since_1970(str(of.epoch), value if text is None else text)
    if moment is None or of.parse is Parse.TIMESTAMP:
        return moment
    return moment.date()


def _since_1970(unit: str, value: Any) -> dt.datetime | None:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]{1,38}(\.0+)?", value, re.ASCII):
            return None
        value = Fraction(value)
    if isinstance(value, float) and math.isinf(value):
        return None
    whole = math.floor(value)
    microseconds = whole * _MICROSECONDS[unit] if unit in _MICROSECONDS else whole // 1000
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def _parsed_number(of: ParsedText, text: str) -> float | None:
    factors = of.suffixes or {}
    suffix = max((each for each in factors if text.endswith(each)), key=len, default="")
    digits = text.removesuffix(suffix) if suffix else text
    digits = digits.removesuffix(" ") if suffix else digits
    thousands = " " if of.thousands == "space" else of.thousands
    point = of.decimal or "."
    sign, whole, rest = re.fullmatch(r"([+-]?)([^eE]*)(.*)", digits, re.DOTALL).groups()  # type: ignore[union-attr]
    before, has_point, after = whole.partition(point)
    if thousands and thousands in before:
        first, *groups = before.split(thousands)
        if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
            return None
        before = before.replace(thousands, "")
    is_number = (before + after).isdecimal() and (before + after).isascii()
    is_exponent = re.fullmatch(r"[eE][+-]?[0-9]+", rest, re.ASCII) is not None
    if not is_number or (rest and (suffix or not is_exponent)) or (not before and not has_point):
        return None
    factor = factors.get(suffix, Fraction(1))
    if not suffix:
        return float(f"{sign}{before or 0}.{after or 0}{rest}")
    is_power = str(factor.numerator).strip("0") == "1" and str(factor.denominator).strip("0") == "1"
    number = Fraction(f"{sign}{before or 0}.{after or 0}")
    try:
        return float(number * factor) if is_power else float(number) * float(factor)
    except OverflowError:
        return math.copysign(math.inf, number)
