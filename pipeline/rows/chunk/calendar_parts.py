"""Parts of dates and times in a time zone's own calendar, by compiled loops total on every 64-bit value."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from suffice.arrays import masked_array
from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.jit import called, compiled
from suffice.pipeline.rows.sources.column_values import fixed_width, validity
from suffice.pipeline.terms.declaration.derived_columns import Part
from suffice.pipeline.terms.declaration.domain_lookup import units_per_day

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.time_zones import ZoneOffsets

_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY = 86_400
_LOWEST = (1 - _EPOCH) * _DAY
"""The first second of year 1, and below the first one after year 9999."""
_HIGHEST = (dt.date.max.toordinal() + 1 - _EPOCH) * _DAY
_NO_TIME = -(2**63)
_FIRST_DAY = 1 - _EPOCH
_CYCLE_DAYS = 146_097
_YEAR, _QUARTER, _MONTH, _WEEK, _DAY_OF_MONTH, _WEEKDAY, _HOUR, _DATE = range(8)
_CODES = {
    Part.YEAR: _YEAR,
    Part.QUARTER: _QUARTER,
    Part.MONTH: _MONTH,
    Part.WEEK: _WEEK,
    Part.DAY: _DAY_OF_MONTH,
    Part.WEEKDAY: _WEEKDAY,
    Part.HOUR: _HOUR,
}


def date_part(column: pa.Array, part: Part, zone: ZoneOffsets) -> pa.Array:
    """Return a part of every date or time, int32; null outside of years 1 to 9999, in UTC or there."""
    return _numbers(column, _CODES[part], zone)


def dates(column: pa.Array, zone: ZoneOffsets) -> pa.Array:
    """Return the date of every date or time, in days since 1970, int32; null as in `date_part`."""
    return _numbers(column, _DATE, zone)


def _numbers(column: pa.Array, part: int, zone: ZoneOffsets) -> pa.Array:
    per_day = units_per_day(column.type)
    local, out = np.empty(len(column), np.int64), np.empty(len(column), np.int32)
    local_seconds(
        fixed_width(column).astype(np.int64, copy=False),
        _DAY if per_day == 1 else 1,
        max(1, per_day // _DAY),
        np.array(zone.starts, np.int64),
        np.array(zone.seconds, np.int64),
        zone.repeats_from,
        zone.cycle,
        local,
    )
    part_of(local, part, _calendar(part), out)
    if column.null_count:
        kernels.fill_nulls(out, *validity(column), kernels.NOTHING)
    return masked_array(out, out == kernels.NOTHING)


@compiled(
    read_only(types.int64),
    types.int64,
    types.int64,
    read_only(types.int64),
    read_only(types.int64),
    types.int64,
    types.int64,
    writable(types.int64),
)
def local_seconds(
    values: NDArray[np.int64],
    times: int,
    per_second: int,
    starts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    repeats_from: int,
    cycle: int,
    out: NDArray[np.int64],
) -> None:
    """Return days, or instants in their own unit, as seconds since 1970 in the local calendar."""
    at, n_starts = 0, len(starts)
    for row in range(len(values)):
        value = values[row]
        if times == 1:
            second = value // per_second
        elif -(2**40) < value < 2**40:
            second = value * times
        else:
            second = _NO_TIME
        out[row] = _NO_TIME
        if not _LOWEST <= second < _HIGHEST:
            continue
        instant = second
        if instant >= repeats_from + cycle:
            instant -= (instant - repeats_from) // cycle * cycle
        # Neighbouring rows mostly have one offset.
        if starts[at] > instant or (at + 1 < n_starts and starts[at + 1] <= instant):
            at, end = 0, n_starts
            while end - at > 1:
                middle = (at + end) >> 1
                if starts[middle] <= instant:
                    at = middle
                else:
                    end = middle
        local = second + offsets[at]
        if _LOWEST <= local < _HIGHEST:
            out[row] = local


@called
def _civil(day: int) -> tuple[int, int, int]:
    """Return year, month and day of the month of a date from year 1 on, in days since 1970.

    Years begin in March here, in eras of 400 years, as in Hinnant's algorithms.
    """
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day_of_month = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return 400 * era + year + (month <= 2), month, day_of_month


@called
def _part_of_day(day: int, part: int) -> int:
    weekday = (day + 3) % 7 + 1  # 1970 began on a Thursday
    if part == _WEEKDAY:
        return weekday
    if part == _WEEK:  # a week belongs to the year of its Thursday
        day += 4 - weekday
        before = _civil(day)[0] - 1
        first = 365 * before + before // 4 - before // 100 + before // 400 + _FIRST_DAY
        return (day - first) // 7 + 1
    year, month, day_of_month = _civil(day)
    return (year, (month + 2) // 3, month, 0, day_of_month)[part]  # in the order of their codes


@lru_cache(maxsize=8)
def _calendar(part: int) -> NDArray[np.int32]:
    """Return a part of every day of years 1 to 400, after which all but the year repeats."""
    days = np.zeros(0 if part in {_HOUR, _DATE} else _CYCLE_DAYS, np.int32)
    tabulate(part, days)
    return days


@compiled(types.int64, writable(types.int32))
def tabulate(part: int, out: NDArray[np.int32]) -> None:
    """Write a part of every day from the first of year 1 on, by the proleptic Gregorian calendar."""
    for row in range(len(out)):
        out[row] = _part_of_day(row + _FIRST_DAY, part)


@compiled(read_only(types.int64), types.int64, read_only(types.int32), writable(types.int32))
def part_of(local: NDArray[np.int64], part: int, calendar: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """Return a part of local times, given the calendar of days in which they lie."""
    for row in range(len(local)):
        second = local[row]
        day = second // _DAY
        if second == _NO_TIME:
            out[row] = kernels.NOTHING
        elif part == _HOUR:
            out[row] = (second - day * _DAY) // 3600
        elif part == _DATE:
            out[row] = day
        else:
            cycle, position = divmod(day - _FIRST_DAY, _CYCLE_DAYS)
            out[row] = calendar[position] + (400 * cycle if part == _YEAR else 0)
