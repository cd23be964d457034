"""The window of a release as conditions of SQL, so that a database reads no more than its rows.

A window is public: its bounds follow from the spec's calendar and the label, never from data. Rows are
chosen by `chunk` all the same, one by one, so that no sum depends on what is here. A condition only compares
a column with literals of its own type: a cast would raise in the server, which logs the value.

Statements depend on nothing but the spec and the window. So a window is divided by its calendar into a public
number of slices, and not by pages or row ids: each of those would be scanned for the whole window.
"""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.domains import period_end, period_start
from suffice.pipeline.terms.declaration.table_names import quoted
from suffice.pipeline.terms.declaration.time_zones import day_start

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        Empty where nothing is left out: the spec has no window, its column is derived, or of a type that
        is not compared. A spec with a window has no public number of records, which would be counted.
    """
    if spec.window is None or window == ALL or spec.window.column in spec.derived:
        return ()
    positions = columns.get_all_field_indices(spec.window.column)
    kind = columns.field(positions[0]).type if len(positions) == 1 else None
    if kind is None or _plain(kind) not in literals:
        return ()
    column, literal = quoted(spec.window.column, quote), literals[_plain(kind)]
    first = period_start(window, spec.window.every)
    edges = _edges(kind, first.toordinal(), period_end(first, spec.window.every), spec.window.time_zone)
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
    days = after - first
    if pa.types.is_date(kind):
        slices = min(days, MOST_SLICES)
        return [_date(first + days * k // slices) for k in range(slices + 1)]
    # As chunks compare: a timestamp without a zone by the calendar's days, an instant by the zone's.
    begins, ends = (
        (ordinal - _EPOCH.toordinal()) * _DAY if kind.tz is None else day_start(ordinal, time_zone)
        for ordinal in (first, after)
    )
    slices = min(max(days, _SLICES_OF_A_DAY), MOST_SLICES)
    return [_time(begins + (ends - begins) * k // slices) for k in range(slices + 1)]


def _date(ordinal: int) -> dt.date | None:
    return dt.date.fromordinal(ordinal) if ordinal <= dt.date.max.toordinal() else None


def _time(seconds: int) -> dt.datetime | None:
    try:
        return _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return None
