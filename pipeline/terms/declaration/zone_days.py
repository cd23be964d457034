"""The days and periods of a time zone as instants, to the second.

A day begins at the first instant whose date there is that day: where clocks jump over midnight, at the
jump; where midnight comes twice, at the first. So days tile time whatever the clocks do.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from suffice.pipeline.terms.declaration.domains import Every, period_end, period_start
from suffice.pipeline.terms.declaration.scalars import read_choice
from suffice.pipeline.terms.declaration.time_zones import UTC, known_time_zone

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECONDS_PER_DAY = 86_400
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
    midnight = (ordinal - _EPOCH) * _SECONDS_PER_DAY
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
        if middle + _seconds(dt.datetime.fromtimestamp(middle, zone).utcoffset()) >= midnight:
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
