"""Time zones by their IANA names, and their offsets as a table that every machine reads alike."""

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

from suffice.pipeline.terms.declaration.safe_text import shown
from suffice.pipeline.terms.declaration.scalars import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    offset = dt.datetime.fromtimestamp(instant, zone).utcoffset()
    return int((offset or dt.timedelta()).total_seconds())


def zone_data_version() -> str:
    """Return the version of this host's time zone database, as ``2026a``; ``unknown`` where it states none.

    Rules of zones change: with other data a window's midnight, or a derived hour, may be another. Data of the
    system come first, as :mod:`zoneinfo` looks them up, then the package ``tzdata``.
    """
    for folder in map(Path, TZPATH):
        for name, pattern in (("tzdata.zi", r"# version (\w{5,8})\s"), ("+VERSION", r"(\w{5,8})\s")):
            with suppress(OSError), (folder / name).open(encoding="ascii", errors="replace") as file:
                if found := re.match(pattern, file.readline(64), re.ASCII):
                    return found[1]
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
