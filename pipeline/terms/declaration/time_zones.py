"""Time zones by their IANA names: offsets as a table that every machine reads alike; days as instants.

A day begins at the first instant whose date there is that day: where clocks jump over midnight, at the
jump; where midnight comes twice, at the first. So days tile time whatever the clocks do.
"""

from __future__ import annotations

import datetime as dt
import importlib
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import TZPATH, ZoneInfo

from pydantic import PlainValidator, ValidationInfo

from suffice.pipeline.terms.declaration.domains import Every, period_end, period_start
from suffice.pipeline.terms.declaration.scalars import read_choice, read_text
from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EPOCH = dt.date(1970, 1, 1).toordinal()


def day_start(ordinal: int, time_zone: str) -> int:
    """Return when a day begins in a time zone.

    Parameters
    ----------
    ordinal : int
        The day as :meth:`datetime.date.toordinal` counts it; one beyond the last that there is serves, too.
    time_zone : str
        A zone that this host knows.

    Returns
    -------
    int
        Seconds since 1970-01-01T00:00Z.
    """
    midnight = (ordinal - _EPOCH) * _DAY
    if time_zone == UTC:
        return midnight
    zone = ZoneInfo(time_zone)
    day = dt.date.fromordinal(min(ordinal, dt.date.max.toordinal()))
    earlier, later = (
        midnight - _seconds(dt.datetime.combine(day, dt.time(fold=fold), zone).utcoffset()) for fold in (0, 1)
    )
    if earlier <= later:
        return earlier
    before, after = later, earlier  # the clocks jump over midnight between the two
    while after - before > 1:
        middle = (before + after) // 2
        if middle + _offset(zone, middle) >= midnight:
            after = middle
        else:
            before = middle
    return after


def period_boundaries(labels: Iterable[str], every: Every, time_zone: str) -> list[int]:
    """Return when consecutive periods begin in a time zone, and when the last of them ends.

    Parameters
    ----------
    labels : iterable of str
        Canonical labels of consecutive periods, at least one.
    every : Every
    time_zone : str

    Returns
    -------
    list of int
        Seconds since 1970-01-01T00:00Z, one more than there are labels, never falling.
    """
    starts = [period_start(label, every) for label in labels]
    ordinals = [*(start.toordinal() for start in starts), period_end(starts[-1], every)]
    return [day_start(ordinal, time_zone) for ordinal in ordinals]


def window_grid(column: str, every: Every, time_zone: str) -> str:
    """Write a window grid as accounts do: ``flight_date:month:Europe/Berlin``."""
    return f"{column}:{every}:{time_zone}"


def read_grid(text: str) -> str:
    """Return a window grid with its time zone: UTC where ``COLUMN:EVERY`` names none.

    Raises
    ------
    ValueError
        Where the text is not ``COLUMN:EVERY`` or ``COLUMN:EVERY:TIME_ZONE``.
    """
    column, _, last = text.rpartition(":")
    time_zone = UTC
    if last not in set(Every):
        time_zone = known_time_zone(last)
        column, _, last = column.rpartition(":")
    if not column:
        message = "a window grid is written as COLUMN:EVERY or COLUMN:EVERY:TIME_ZONE"
        raise ValueError(message)
    return window_grid(column, read_choice(last, kind=Every), time_zone)


def _seconds(offset: dt.timedelta | None) -> int:
    return 0 if offset is None else offset // dt.timedelta(seconds=1)


UTC = "UTC"
UNKNOWN = "unknown"
_NAME = re.compile(r"UTC|[A-Z][A-Za-z0-9_+-]{0,31}(/[A-Z][A-Za-z0-9_+-]{0,31}){1,2}", re.ASCII)
"""Names as the IANA database has them; not those below ``right``, whose days have leap seconds."""
_DAY = 86_400
_STEP = 2 * _DAY
_LATE_STEP = 7 * _DAY
_CYCLE = 146_097 * _DAY
"""400 years, after which the calendar repeats, weekdays included."""
_FIRST, _LAST = (int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()) for year in (1840, 2100))
"""Local mean times hold before the first; after the last, what holds repeats with the calendar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneOffsets:
    """A zone's offsets from UTC.

    Attributes
    ----------
    starts : tuple of int
        From when each holds, in seconds since 1970 UTC, ascending; the first also holds before.
    seconds : tuple of int
        Local time less UTC.
    repeats_from, cycle : int
        An instant from `repeats_from` + `cycle` on has the offset of that a whole number of cycles earlier.
    """

    starts: tuple[int, ...]
    seconds: tuple[int, ...]
    repeats_from: int = _LAST
    cycle: int = _CYCLE


UTC_OFFSETS = ZoneOffsets(starts=(0,), seconds=(0,))


@lru_cache(maxsize=16)
def zone_offsets(name: str) -> ZoneOffsets:
    """Return the offsets of a zone, as this machine's time zone database has them.

    A change is found where offsets two days apart differ; from 2100 on, where those a week apart do.
    """
    zone = ZoneInfo(name)
    changes = [(_FIRST, _offset(zone, _FIRST))]
    for start in range(_FIRST, _LAST, _STEP):
        changes += _changes(zone, start, min(start + _STEP, _LAST))
    for start in range(_LAST, _LAST + _CYCLE, _LATE_STEP):
        changes += _changes(zone, start, start + _LATE_STEP)
    starts, seconds = zip(*changes, strict=True)
    return ZoneOffsets(starts=starts, seconds=seconds)


def _changes(zone: ZoneInfo, start: int, end: int) -> Iterator[tuple[int, int]]:
    """List the changes after `start`, up to `end`: none where the offsets at both are the same."""
    current, last = _offset(zone, start), _offset(zone, end)
    while current != last:
        before, after = start, end
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if _offset(zone, middle) == current else (before, middle)
        start, current = after, _offset(zone, after)
        yield start, current


def _offset(zone: ZoneInfo, instant: int) -> int:
    return _seconds(dt.datetime.fromtimestamp(instant, zone).utcoffset())


def zone_data_version() -> str:
    """Return the version of this host's time zone database, as ``2026a``; ``unknown`` where it states none.

    Rules of zones change: with other data a window's midnight, or a derived hour, may be another. Data of the
    system come first, as :mod:`zoneinfo` looks them up, then the package ``tzdata``.
    """
    for folder in map(Path, TZPATH):
        for name, pattern in (("tzdata.zi", r"# version (\w{5,8})\s"), ("+VERSION", r"(\w{5,8})\s")):
            with suppress(OSError), (folder / name).open(encoding="ascii", errors="replace") as file:
                if match := re.match(pattern, file.readline(64), re.ASCII):
                    return match[1]
        if (folder / "Europe").is_dir():
            return UNKNOWN
    try:
        return str(importlib.import_module("tzdata").IANA_VERSION)
    except (ImportError, AttributeError):
        return UNKNOWN


def known_time_zone(name: str) -> str:
    """Return the name of a time zone that this host knows, as ``Europe/Berlin``.

    Raises
    ------
    ValueError
        Where it knows none of this name.
    """
    require_zone_name(name)
    try:
        if name != UTC:
            ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # also of a folder's name
        message = (
            f"'{shown(name)}' is no time zone that this host knows: use a name as Europe/Berlin, or UTC (the "
            "package tzdata brings them where the system has none)"
        )
        raise ValueError(message) from None
    return name


def require_zone_name(name: str) -> None:
    """Refuse what cannot be the name of a time zone."""
    if not _NAME.fullmatch(name):
        message = f"'{shown(name)}' is no time zone: use a name as Europe/Berlin, or UTC"
        raise ValueError(message)


def read_time_zone(value: object, info: ValidationInfo) -> str:
    """Return the name of a time zone, as ``Europe/Berlin``.

    A plan that somebody else wrote is read without a directory, and where no zone need be known.
    """
    name = read_text(value)
    if (info.context or {}).get("directory", ...) is None:
        require_zone_name(name)
        return name
    return known_time_zone(name)


TimeZone = Annotated[str, PlainValidator(read_time_zone)]
