"""Windows of a spec and their amendments: what it declares, when each falls due, and which a run is about.

A window has a first edition, and amendments that replace it. All here are pure functions of the spec and of a
moment. Nothing asks a clock or opens a source, so a run's window follows from its scheduled time alone: a
retry and a late start are about the same window.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Protocol, Self
from zoneinfo import ZoneInfo

from pydantic import Field, PlainValidator, model_validator

from suffice.errors import SpecError, UsageError
from suffice.pipeline.terms.declaration.domains import period_end, period_label, period_labels, period_start
from suffice.pipeline.terms.declaration.fields import Column, EveryField, SpecModel, Text
from suffice.pipeline.terms.declaration.files_by_window import any_name, names_of, read_pattern
from suffice.pipeline.terms.declaration.scalars import Duration, DurationField, read_duration, read_text
from suffice.pipeline.terms.declaration.time_zones import UTC, TimeZone, day_start

LATEST_COMPLETE = "latest-complete"
"""Instead of a label: the last window whose end and lag have passed."""
FARTHEST_AHEAD = dt.timedelta(minutes=5)
"""How far `as_of` may lie ahead of this host's clock: schedulers and hosts have clocks of their own."""

MOST_AMENDMENTS = 99
"""Of one window."""
ALL = "all"
"""The window label of a spec without windows."""

_EDITION = re.compile(r"([A-Za-z0-9-]{1,32})(?:\.(0|[1-9]\d?))?", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST, _LAST = (end.replace(tzinfo=dt.UTC) for end in (dt.datetime.min, dt.datetime.max))  # noqa: DTZ901
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendedRelease:
    """The release that an amendment replaces.

    Attributes
    ----------
    release_id : str
        16 hex digits.
    manifest_sha256 : str
        Of its manifest's bytes, in hex.
    """

    release_id: str
    manifest_sha256: str


def edition(window: str, amendment: int) -> str:
    """Name an edition: the window alone for its first release, ``2013-01.2`` for its second amendment.

    Examples
    --------
    >>> edition("2013-01", 0), edition("2013-01", 2)
    ('2013-01', '2013-01.2')
    """
    return f"{window}.{amendment}" if amendment else window


def amended_of(release_id: str | None, manifest_sha256: str | None) -> AmendedRelease | None:
    """Return what two columns of a charge name; None where it amends nothing."""
    if release_id is None or manifest_sha256 is None:
        return None
    return AmendedRelease(release_id=release_id, manifest_sha256=manifest_sha256)


def read_edition(text: str) -> tuple[str, int | None] | None:
    """Read a window and the number of an amendment; None where no edition has that name.

    Returns
    -------
    tuple of (str, int or None), or None
        The number is None where none is written, and 0 for ``2013-01.0``, the first release.

    Examples
    --------
    >>> read_edition("2013-01"), read_edition("2013-01.0"), read_edition("2013-01.2")
    (('2013-01', None), ('2013-01', 0), ('2013-01', 2))
    """
    match = _EDITION.fullmatch(text)
    if match is None:
        return None
    return match[1], None if match[2] is None else int(match[2])


def _amendments(value: object) -> tuple[Duration, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_AMENDMENTS:
        message = f"amendments are a list of 1 to {MOST_AMENDMENTS} lengths of time, as [7 days, 30 days]"
        raise ValueError(message)
    durations = tuple(map(read_duration, value))
    if any(duration.hours or not duration.days for duration in durations):
        message = "an amendment falls due whole days or weeks after its window is complete, and at least one"
        raise ValueError(message)
    if any(later.days <= earlier.days for earlier, later in pairwise(durations)):
        message = "the lengths of time of amendments increase"
        raise ValueError(message)
    return durations


def _files(value: object) -> str:
    return read_pattern(read_text(value))


class Window(SpecModel):
    """Releases per period of a date column: ``--window 2013-01`` selects those rows.

    `lag`, `first` and `amend` say when releases are expected, and not what is in them: they are no terms.

    Attributes
    ----------
    column : str
    every : Every
    time_zone : str
        Whose midnights divide windows: the column's instants are converted, and its dates and timestamps
        without a zone are taken as they are.
    files_by_window : str or None
        How names of the source's files state a day, a month or a year, as ``{yyyy}/{mm}/{dd}``: then a row is
        in a window if its file's name shares a day with it, and its date lies in it.
    lag : Duration
        How long after its end a window counts as complete.
    first : str or None
        The label of the first window that is expected; none before it is released.
    amend : tuple of Duration
        How long after a window is complete its amendments fall due, each a release of the whole window anew
        and a charge of its own; increasing.
    """

    column: Column
    every: EveryField
    time_zone: TimeZone = UTC
    files_by_window: Annotated[str, PlainValidator(_files)] | None = None
    lag: DurationField = Field(default=Duration(), exclude=True)
    first: Text | None = Field(default=None, exclude=True)
    amend: Annotated[tuple[Duration, ...], PlainValidator(_amendments)] = Field(default=(), exclude=True)

    @model_validator(mode="after")
    def _first_is_a_label(self) -> Self:
        if self.first is not None:
            period_start(self.first, self.every)
        return self

    def file_names(self, window: str) -> tuple[str, ...] | None:
        """Return what files of a window, or of ``all``, are called below their source's address.

        In them ``*`` stands for any signs, and ``[0-9]`` for a digit. None where names say nothing.
        """
        if self.files_by_window is None:
            return None
        if window == ALL:
            return (any_name(self.files_by_window),)
        return names_of(self.files_by_window, period_start(window, self.every), self.every)


class Windowed(Protocol):
    """Terms that may be released by window."""

    @property
    def window(self) -> Window | None: ...  # noqa: D102


def check_window(spec: Windowed, window: str, place: str = "--window") -> str:
    """Check a window label against the spec, and return it; a message names `place`.

    Raises
    ------
    SpecError
        Where the spec has windows and none is named, or the reverse, or the label is not canonical.
    """
    if spec.window is None:
        if window != ALL:
            raise SpecError(place, f"{window!r} is given, but the spec has no window key", "leave it out")
        return ALL
    if window == ALL:
        raise SpecError(place, "the spec releases by window, and none is named", f"as {place} 2013-01")
    try:
        period_start(window, spec.window.every)
    except ValueError as error:
        raise SpecError(place, str(error)) from None
    return window


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTimes:
    """When a window begins and ends, and when it counts as complete.

    Attributes
    ----------
    label : str
    begins, ends : datetime, UTC
        The first instant of its first day, and of the day after its last, in the window's time zone.
    complete : datetime, UTC
        `ends` and the lag; from then on ``latest-complete`` may name the window.
    amendments : tuple of datetime, UTC
        When each amendment of the spec falls due; so long after `complete`.
    """

    label: str
    begins: dt.datetime
    ends: dt.datetime
    complete: dt.datetime
    amendments: tuple[dt.datetime, ...]


def window_times(window: Window, label: str) -> WindowTimes:
    """Return the times of a window; `label` is canonical."""
    start = period_start(label, window.every)
    end = period_end(start, window.every)

    def later(days: int) -> dt.datetime:
        """Return the instant so many days of the calendar after the end, and the hours of the lag."""
        return _instant(day_start(end + window.lag.days + days, window.time_zone) + 3600 * window.lag.hours)

    return WindowTimes(
        label=label,
        begins=_instant(day_start(start.toordinal(), window.time_zone)),
        ends=_instant(day_start(end, window.time_zone)),
        complete=later(0),
        amendments=tuple(later(duration.days) for duration in window.amend),
    )


def latest_complete(window: Window, as_of: dt.datetime) -> str:
    """Return the label of the last window whose end and lag have passed.

    Raises
    ------
    SpecError
        Where there is none since year 1.
    """
    label = _around(window, as_of, days=1 - window.lag.days)
    while window_times(window, label).complete > as_of:
        label = _before(window, label)
    return label


def last_ended(window: Window, as_of: dt.datetime) -> str:
    """Return the label of the last window that has ended, whatever the lag.

    Raises
    ------
    SpecError
        Where there is none since year 1.
    """
    label = _around(window, as_of, days=1)
    while window_times(window, label).ends > as_of:
        label = _before(window, label)
    return label


def resolve_window(
    spec: Windowed, window: str, *, as_of: dt.datetime, allow_open: bool = False, place: str = "--window"
) -> str:
    """Return the label of the window that a run is about.

    Parameters
    ----------
    spec : Spec
    window : str
        A canonical label, ``latest-complete``, or ``all`` for a spec without windows.
    as_of : datetime
        The run's scheduled time; with a time zone.
    allow_open : bool
        Whether a window that has not ended by then may be released. Its later rows are in no release.
    place : str
        What a message names.

    Raises
    ------
    SpecError
        Where the window is none of the spec's, lies before its ``first``, or has not ended; the text says
        when it may be released.
    """
    if spec.window is None:
        return check_window(spec, window, place)
    is_latest = window == LATEST_COMPLETE
    label = latest_complete(spec.window, as_of) if is_latest else check_window(spec, window, place)
    first = spec.window.first
    if first is not None and period_start(label, spec.window.every) < period_start(first, spec.window.every):
        rule = f"{label} lies before {first}, the first window of the spec"
        raise SpecError(place, rule, "change window.first if it is to be released")
    if not is_latest and not allow_open:
        ends = window_times(spec.window, label).ends
        if ends > as_of:
            raise SpecError(
                place,
                f"{label} has not ended: it may be released from {_written(ends, spec.window)} on",
                "--allow-open releases it for good without the rows that are still to come",
            )
    return label


def amendment_due(times: WindowTimes, as_of: dt.datetime, *, newest: int, charged: dt.datetime | None) -> int:
    """Return the number of the amendment of a window that is to be released; 0 where none is.

    That is the last that has fallen due: the ones before it would read the same rows. None is where the
    newest edition is that amendment or a later one, or was charged, and so read, after it fell due.

    Parameters
    ----------
    times : WindowTimes
    as_of : datetime
    newest : int
        The number of the newest edition that is published; 0 for the first release.
    charged : datetime or None
        When that was charged; None where that is not to count.
    """
    last = sum(due <= as_of for due in times.amendments)
    if last <= newest:
        return 0
    return last if charged is None or times.amendments[last - 1] > charged else 0


def check_amendment(spec: Windowed, label: str, amendment: int, *, as_of: dt.datetime) -> None:
    """Refuse an amendment that the spec's calendar does not have, or not yet; 0 is the first release.

    Raises
    ------
    SpecError
        Where the spec states no such amendment, or it has not fallen due; the text says when it does.
    """
    if amendment == 0:
        return
    if spec.window is None or not 1 <= amendment <= len(spec.window.amend):
        rule = f"the spec states no amendment {amendment}"
        raise SpecError("--amendment", rule, "as amend: [7 days, 30 days] below window; the first is 1")
    due = window_times(spec.window, label).amendments[amendment - 1]
    if due > as_of:
        when = _written(due, spec.window)
        raise SpecError("--amendment", f"amendment {amendment} of {label} falls due at {when}")


def first_window(spec: Windowed) -> str:
    """Return the label of the first window that a spec is released for.

    Raises
    ------
    SpecError
        Where the spec states none.
    """
    if spec.window is None or spec.window.first is None:
        rule = "the spec states no first window to go back to"
        raise SpecError("window.first", rule, 'state one, as first: "2013-01", or name the first window')
    return spec.window.first


def windows_between(
    spec: Windowed, first: str, last: str, *, as_of: dt.datetime, allow_open: bool = False
) -> tuple[str, ...]:
    """Return the labels of consecutive windows, both ends included, oldest first.

    Parameters
    ----------
    spec : Spec
    first, last : str
        As `resolve_window` takes them.
    as_of : datetime
    allow_open : bool

    Raises
    ------
    SpecError
        As `resolve_window`; where the spec has no windows, or `last` lies before `first`.
    """
    if spec.window is None:
        raise SpecError("window", "the spec has no window key", "as window: {column: day, every: month}")
    ends = [
        resolve_window(spec, label, as_of=as_of, allow_open=allow_open, place=place)
        for place, label in (("--from", first), ("--to", last))
    ]
    try:
        return period_labels(ends[0], ends[1], spec.window.every)
    except ValueError as error:
        raise SpecError("--to", str(error)) from None


def read_instant(text: str | dt.datetime) -> dt.datetime:
    """Return a moment, in UTC.

    Parameters
    ----------
    text : str or datetime
        ISO 8601 with its offset from UTC, ``2013-02-04T02:00:00+01:00``; a datetime with a time zone.

    Raises
    ------
    UsageError
    """
    try:
        if isinstance(text, str):
            text = dt.datetime.fromisoformat(text if _INSTANT.fullmatch(text) else "")
        if text.utcoffset() is not None:
            return text.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        pass
    message = "--as-of: a moment is written with its offset from UTC, as 2013-02-04T02:00:00Z or ...+01:00"
    raise UsageError(message)


def moment(as_of: str | dt.datetime | None, now: dt.datetime) -> dt.datetime:
    """Return the moment that a run goes by: `as_of`, or `now` where it is None.

    Raises
    ------
    UsageError
        Where `as_of` is no moment, or lies more than `FARTHEST_AHEAD` after `now`.
    """
    if as_of is None:
        return now
    instant = read_instant(as_of)
    if instant > now + FARTHEST_AHEAD:
        message = "--as-of: the moment lies ahead of this host's clock; --allow-open releases an open window"
        raise UsageError(message)
    return instant


def _before(window: Window, label: str) -> str:
    start = period_start(label, window.every)
    if start == dt.date.min:
        raise SpecError("--window", "no window of the spec has ended", "name one")
    return period_label(start - dt.timedelta(days=1), window.every)


def _around(window: Window, as_of: dt.datetime, *, days: int) -> str:
    """Return the label of the window so many days after a moment; by a day too late rather than too early."""
    with contextlib.suppress(OverflowError):  # its day there has no name: a day off is near enough
        as_of = as_of.astimezone(_zone(window))
    ordinal = as_of.date().toordinal() + days
    return period_label(dt.date.fromordinal(min(max(1, ordinal), dt.date.max.toordinal())), window.every)


def _zone(window: Window) -> dt.tzinfo:
    return dt.UTC if window.time_zone == UTC else ZoneInfo(window.time_zone)


def _instant(seconds: int) -> dt.datetime:
    """Return an instant; the first or the last that there is, where it lies beyond."""
    try:
        return _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def _written(instant: dt.datetime, window: Window) -> str:
    """Write an instant in the window's time zone, with its offset."""
    with contextlib.suppress(OverflowError):
        instant = instant.astimezone(_zone(window))
    return f"{instant.isoformat(timespec='minutes')} ({window.time_zone})"
