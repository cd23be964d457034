"""Units and cells read a second time, row by row in plain Python, by what the reference of the spec says.

It imports nothing of the rooms that read, encode or bound rows: only how a spec is declared. So a mistake
that both share would have to be made twice.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from suffice.pipeline.terms.declaration.derived_columns import (
    Arithmetic,
    Constant,
    DatePart,
    PublicMap,
    UniformText,
)
from suffice.pipeline.terms.declaration.derived_conditions import (
    ColumnComparison,
    Combination,
    Membership,
    Negation,
    Presence,
    TextMatch,
)
from suffice.pipeline.terms.declaration.derived_values import (
    Bins,
    Coalesced,
    CoalesceTo,
    Cut,
    Parse,
    ParsedText,
)
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, Every, period_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn

    Row = Mapping[str, Any]


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


_YEARS = range(1, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """How many rows may enter at most.

    Attributes
    ----------
    cells : dict of int to int
        By cell, whatever else the units have.
    whole : int
        In all cells together.
    clean : bool
        Whether no unit has more rows than it may keep, and no row lacks a unit, so that `cells` are exact.
    """

    cells: dict[int, int]
    whole: int
    clean: bool


def allowed(spec: Spec, groups: Mapping[str, Domain], rows: Iterable[Row], window: str) -> Allowed:
    """Count the rows that may enter each cell, at most so many of each unit.

    Parameters
    ----------
    spec : Spec
    groups : mapping of str to Domain
        Of a statistic.
    rows : iterable of mapping
        As they are stored, column by column; None for null.
    window : str
    """
    unit = spec.privacy.column_unit
    by_unit: dict[object, Counter[int]] = {}
    clean = True
    for number, row in enumerate(rows):
        cell = cell_of(spec, groups, row, window)
        if cell is None:
            continue
        who: object = ("row", number)
        if unit is not None:
            value = _value(spec, unit.column, row)
            if is_null(value):
                clean = False
                if str(unit.nulls) == "drop":
                    continue
            elif may_be_rounded(value):
                clean = False
                continue
            else:
                who = identity(value)
        by_unit.setdefault(who, Counter())[cell] += 1
    most = unit.max_rows if unit is not None else 1
    in_cell = most if unit is None else unit.max_rows_per_cell or most
    cells: Counter[int] = Counter()
    whole = 0
    for counts in by_unit.values():
        kept = {cell: min(count, in_cell) for cell, count in counts.items()}
        clean &= kept == counts and sum(kept.values()) <= most
        whole += min(sum(kept.values()), most)
        cells.update(kept)
    return Allowed(cells=dict(cells), whole=whole, clean=clean)


def is_null(value: object) -> bool:
    """Tell whether a stored value is null, as NaN is."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def may_be_rounded(value: object) -> bool:
    """Tell whether a floating-point number may stand for an integer that it is not."""
    return isinstance(value, float) and not (value.is_integer() and abs(value) < 2**53)


def identity(value: object) -> object:
    """Return what two stored values of one unit have in common."""
    if isinstance(value, bool):
        return ("number", int(value))
    if isinstance(value, int | float):
        return ("number", Fraction(value))
    return (type(value).__name__, value)


def cell_of(spec: Spec, groups: Mapping[str, Domain], row: Row, window: str) -> int | None:
    """Return the number of the cell of some groups that a row belongs to, None where it belongs to none."""
    if spec.window is not None:
        day = day_in_windows(spec, row)
        if day is None or period_label(day, spec.window.every) != window:
            return None
    if spec.where is not None and _holds(spec, spec.where, row) is not True:
        return None
    cell = 0
    for column, domain in groups.items():
        code = _code(domain, _value(spec, column, row))
        if code is None:
            return None
        cell = cell * len(domain) + code
    return cell


def _holds(spec: Spec, condition: Any, row: Row) -> Any:
    return _value(spec, condition, row) if isinstance(condition, str) else _derived(spec, condition, row)


def _value(spec: Spec, column: str, row: Row) -> Any:
    return _derived(spec, spec.derived[column], row) if column in spec.derived else row[column]


def _code(domain: Domain, value: Any) -> int | None:
    if is_null(value):
        return None
    if domain.kind is DomainKind.PERIOD:
        day = day_of(value, domain.time_zone)
        label = None if day is None else period_label(day, domain.every or Every.DAY)
        return next((code for code, key in enumerate(domain.keys) if key == label), None)
    if domain.kind is DomainKind.RANGE:
        number, keys = _number(value), domain.keys
        if not isinstance(keys, range) or number is None or number not in keys:
            return None
        return int(number) - keys.start
    return next((code for code, key in enumerate(domain.keys) if _is_key(value, str(key))), None)


def _number(value: Any) -> Fraction | None:
    if isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    try:
        return Fraction(value)
    except (TypeError, ValueError):
        return None


def _is_key(value: Any, key: str) -> bool:  # noqa: PLR0911 - a type each
    if isinstance(value, bool):
        return key == str(value).lower()
    if isinstance(value, str):
        return value == key
    if isinstance(value, dt.datetime):
        return value.isoformat() == key
    if isinstance(value, dt.date):
        return value.isoformat() == key
    try:
        wanted = Fraction(key)
    except ValueError:
        return False
    if isinstance(value, float):
        return value == float(wanted)
    return _number(value) == wanted


def _local(value: Any, zone: str) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        try:
            return value.astimezone(ZoneInfo(zone))
        except OverflowError:
            return None
    return value


def day_of(value: Any, zone: str) -> dt.date | None:
    """Return the day of a date or a time in a zone; None where it is neither."""
    if is_null(value):
        return None
    local = _local(value, zone)
    if isinstance(local, dt.datetime):
        return local.date()
    return local if isinstance(local, dt.date) else None


def day_in_windows(spec: Spec, row: Row) -> dt.date | None:
    """Return the day by which a row falls into a window; None where it falls into none."""
    window = spec.window
    return None if window is None else day_of(_value(spec, window.column, row), str(window.time_zone))


def _derived(spec: Spec, of: DerivedColumn, row: Row) -> Any:
    if isinstance(of, Combination | Negation):
        return _combined(spec, of, row)
    if isinstance(of, Arithmetic):
        return _computed(of, *(_operand(spec, each, row) for each in of.operands))
    if isinstance(of, Coalesced):
        values = (_value(spec, each, row) for each in of.coalesce)
        first = next((value for value in values if not is_null(value)), of.otherwise)
        return float(first) if of.type is CoalesceTo.NUMBER and first is not None else first
    if isinstance(of, Presence):
        return is_null(_value(spec, of.column, row)) != of.present
    if not isinstance(of, _OF_ONE_VALUE):
        message = f"a derived column of the kind {type(of).__name__} is not read a second time"
        raise TypeError(message)
    (column,) = (each.column for each in of.inputs)
    value = _value(spec, column, row)
    return None if is_null(value) else _READERS[type(of)](of, value)


def _combined(spec: Spec, of: Combination | Negation, row: Row) -> bool | None:
    conditions = of.conditions if isinstance(of, Combination) else (of.condition,)
    parts = [
        _value(spec, each, row) if isinstance(each, str) else _derived(spec, each, row) for each in conditions
    ]
    if isinstance(of, Negation):
        return None if parts[0] is None else not parts[0]
    is_any = of.any_of is not None
    if is_any in parts:
        return is_any
    return None if None in parts else not is_any


def _operand(spec: Spec, operand: str | Constant, row: Row) -> Any:
    return float(operand.number) if isinstance(operand, Constant) else _value(spec, operand, row)


def _mapped(of: PublicMap, value: Any) -> Any:
    code = _code(of.domain, value)
    to = of.otherwise if code is None else list(of.map.values())[code]
    return float(to) if isinstance(to, Fraction) else to


def _uniform(of: UniformText, value: str) -> str:
    text = value if of.normalize is None else unicodedata.normalize(of.normalize.value, value)
    text = text.strip() if of.trim else text
    return {"lower": text.lower(), "upper": text.upper()}.get(str(of.case), text)


_MATCHES: dict[str, Callable[[str, str], bool]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
}


def _divided(of: Bins | Cut, value: Any) -> Any:
    edges = of.bins if isinstance(of, Bins) else of.cut
    reached = sum(value >= (float(edge) if isinstance(value, float) else edge) for edge in edges)
    if isinstance(of, Cut):
        return of.labels[reached]
    last = float(edges[-1]) if isinstance(value, float) else edges[-1]
    if reached == 0 or value > last:
        return None
    return float(edges[min(reached, len(edges) - 1) - 1])


def _part(local: Any, part: str) -> int | None:
    if local is None or local.year not in _YEARS:
        return None
    parts: dict[str, Callable[[], int]] = {
        "quarter": lambda: (local.month + 2) // 3,
        "week": lambda: int(local.isocalendar().week),
        "weekday": lambda: int(local.isoweekday()),
    }
    return parts[part]() if part in parts else int(getattr(local, part))


def _compared(of: ColumnComparison, value: Any) -> bool | None:
    if of.is_of_dates:
        value = day_of(value, of.time_zone or "UTC")
        if value is None:
            return None
    inside = True
    for end, sign in ((of.lowest, 1), (of.highest, -1)):
        if end is None:
            continue
        limit: Any = dt.date.fromisoformat(end[0]) if isinstance(end[0], str) else end[0]
        if isinstance(value, float):
            limit = float(limit)
        above = value > limit if sign > 0 else value < limit
        inside &= bool(above or (end[1] and value == limit))
    return inside


def _computed(of: Arithmetic, first: Any, second: Any) -> float | None:
    if is_null(first) or is_null(second) or (of.operation == "ratio" and second == 0):
        return None
    x, y = float(first), float(second)
    try:
        result = {
            "sum": lambda: x + y,
            "difference": lambda: x - y,
            "product": lambda: x * y,
            "ratio": lambda: x / y,
        }[of.operation]()
    except OverflowError:
        return None
    return None if math.isnan(result) else min(max(result, float(of.lower)), float(of.upper))


_READERS: dict[type, Callable[[Any, Any], Any]] = {
    ColumnComparison: _compared,
    Membership: lambda of, value: _code(of.domain, value) is not None,
    PublicMap: _mapped,
    UniformText: _uniform,
    DatePart: lambda of, value: _part(_local(value, of.time_zone or "UTC"), str(of.part)),
    TextMatch: lambda of, value: any(_MATCHES[of.match](value, text) for text in of.texts),
    ParsedText: parsed,
    Bins: _divided,
    Cut: _divided,
}
"""How a value that is there is read, by the kind of column that it is read for."""
_OF_ONE_VALUE = tuple(_READERS)
