"""The window of a release as conditions of SQL, so that a database reads no more than its rows.

A window is public: its bounds follow from the spec's calendar and the label, never from data. Rows are
chosen by `chunk` all the same, one by one, so that no sum depends on what is here. A condition only compares
a column with literals of its own type: a cast would raise in the server, which logs the value. Of what a rule
reads, integers alone are compared that rise with the time: counts since 1970, and dates as ``20130105``.

Statements depend on nothing but the spec and the window. So a window is divided by its calendar into a public
number of slices, and not by pages or row ids: each of those would be scanned for the whole window.
"""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.derived_values import DIGITS_OF_A_DAY, NANOSECONDS, Parse, ParsedText
from suffice.pipeline.terms.declaration.domains import period_end, period_start
from suffice.pipeline.terms.declaration.row_rules import stored_column
from suffice.pipeline.terms.declaration.table_names import quoted
from suffice.pipeline.terms.declaration.time_zones import day_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.spec.spec import Spec

MOST_SLICES = 16
_SLICES_OF_A_DAY = 4
_DAY = 86_400
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - naive, or UTC by what its literal says
DATE, NAIVE, INSTANT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
"""The types of columns that are compared."""
STANDARD = {DATE: "DATE '{}'", NAIVE: "TIMESTAMP '{}'", INSTANT: "TIMESTAMPTZ '{}+00'"}
"""How PostgreSQL and DuckDB write a literal of each type that is compared."""


def window_condition(
    spec: Spec, window: str, columns: pa.Schema, literals: Mapping[pa.DataType, str], quote: str = '"'
) -> tuple[str, ...]:
    """Return a condition for each slice of a window: each of its rows fulfils exactly one.

    Parameters
    ----------
    spec : Spec
    window : str
        A canonical label, or ``all``.
    columns : pyarrow.Schema
        The table's, as the catalogue describes them.
    literals : mapping of pyarrow.DataType to str
        How the database writes a literal of a type, the text of a date or a timestamp for ``{}``. A column
        of another type is not compared.
    quote : str
        What stands around an identifier.

    Returns
    -------
    tuple of str
        Empty where nothing is left out: the spec has no window, or its column is not compared, for its type
        or its rule. A spec with a window has no public number of records, which would be counted.
    """
    if spec.window is None or window == ALL:
        return ()
    name, rule = stored_column(spec.window.column, spec.derived), spec.derived.get(spec.window.column)
    positions = columns.get_all_field_indices(name)
    kind = columns.field(positions[0]).type if len(positions) == 1 else pa.null()
    start = period_start(window, spec.window.every)
    first, after, time_zone = start.toordinal(), period_end(start, spec.window.every), spec.window.time_zone
    edges: Sequence[dt.date | int | None] = ()
    literal = "{}"
    if rule is None and _plain(kind) in literals:
        edges, literal = _edges(kind, first, after, time_zone), literals[_plain(kind)]
    elif isinstance(rule, ParsedText) and pa.types.is_signed_integer(kind):
        edges = _numbers(rule, first, after, time_zone)
    column = quoted(name, quote)
    return tuple(
        " AND ".join(
            f"{column} {sign} {literal.format(edge)}"
            for sign, edge in ((">=", low), ("<", high))
            if edge is not None
        )
        for low, high in pairwise(edges)
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of an instant whatever zone it is shown in."""
    return INSTANT if pa.types.is_timestamp(kind) and kind.tz and kind.unit == "us" else kind


def _edges(kind: pa.DataType, first: int, after: int, time_zone: str) -> list[dt.date | None]:
    """Return where slices begin, and where the last one ends, of days `first` up to `after`, as ordinals.

    None where there is no such date, before year 1 or after 9999: then nothing is compared with it.
    """
    if pa.types.is_date(kind):
        return _dates(first, after)
    # As chunks compare: a timestamp without a zone by the calendar's days, an instant by the zone's.
    return [_time(seconds) for seconds in _seconds(first, after, None if kind.tz is None else time_zone)]


def _numbers(rule: ParsedText, first: int, after: int, time_zone: str) -> list[int | None]:
    """Return where slices of integers begin and end that a rule reads; none where integers do not rise so.

    What reads as no date may lie between them, as 20130132 does: `chunk` leaves it out.
    """
    if rule.epoch is not None:
        # v units after 1970 are at s seconds or later where v >= s * units in a second.
        is_dated = rule.parse is Parse.DATE
        seconds = _seconds(first, after, None if is_dated else time_zone)
        edges = [-(-second * 10**9 // NANOSECONDS[rule.epoch]) for second in seconds]
        fits = edges[0] >= -(2**63) and edges[-1] < 2**63
        return [*edges] if fits else []
    if rule.format == DIGITS_OF_A_DAY:
        return [None if date is None else _digits(date) for date in _dates(first, after)]
    return []


def _digits(date: dt.date) -> int:
    return date.year * 10_000 + date.month * 100 + date.day


def _dates(first: int, after: int) -> list[dt.date | None]:
    days = after - first
    slices = min(days, MOST_SLICES)
    return [_date(first + days * k // slices) for k in range(slices + 1)]


def _seconds(first: int, after: int, time_zone: str | None) -> list[int]:
    """Return seconds since 1970 of a zone's midnights, or of the calendar's, and between them."""
    begins, ends = (
        (ordinal - _EPOCH.toordinal()) * _DAY if time_zone is None else day_start(ordinal, time_zone)
        for ordinal in (first, after)
    )
    slices = min(max(after - first, _SLICES_OF_A_DAY), MOST_SLICES)
    return [begins + (ends - begins) * k // slices for k in range(slices + 1)]


def _date(ordinal: int) -> dt.date | None:
    return dt.date.fromordinal(ordinal) if ordinal <= dt.date.max.toordinal() else None


def _time(seconds: int) -> dt.datetime | None:
    try:
        return _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return None
