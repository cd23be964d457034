"""Windows of texts and integers hold the rows that they hold once the column is converted beforehand."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.date_formats import DateFormat
from suffice.pipeline.terms.declaration.derived_columns import read_derived
from suffice.pipeline.terms.declaration.derived_values import ParsedText

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec

at = partial(dt.datetime, tzinfo=None)
"""A time of no zone, as texts write it."""

FORMATS = (
    ("%d-%b-%y %H:%M:%S", "timestamp", 1950),
    ("%d-%b-%y", "date", 1993),
    ("%m/%d/%Y %I:%M %p", "timestamp", None),
    ("%d. %B %Y", "date", None),
    ("%Y%m%d%H%M%S%f", "timestamp", None),
)
LABELS = ("1993-11", "1993-12", "2012-02", "2012-03", "2013-03", "2013-11", "2049-12", "2050-01")
MOMENTS = st.one_of(
    st.datetimes(at(1993, 10, 30), at(1994, 1, 2)),
    st.sampled_from(
        [
            at(2012, 2, 29),
            at(2012, 2, 29, 23, 59, 59, 999_999),
            at(2012, 3, 1),
            at(2013, 3, 10, 2, 30),  # no such time in New York
            at(2013, 11, 3, 1, 30),  # twice in New York
            at(2013, 11, 30, 23, 59),
            at(2049, 12, 31, 23, 59, 59),
            at(2050, 1, 1),
        ]
    ),
)
GARBAGE = st.sampled_from(
    ["", "x", "30-FEB-12", "14-NOV-93", "31-NOV-93 00:00:00", "14-MAI-93", "24:00", None]
)
ZONES = st.sampled_from(["UTC", "America/New_York", "Europe/Berlin"])


def spec_of(zone: str, derived: dict[str, Any], column: str) -> Spec:
    return load_spec(
        {
            "name": "parsed",
            "dataset": "parsed",
            "window": {"column": column, "every": "month", "time_zone": zone},
            "privacy": {"epsilon": 1, "neighboring": "add_or_remove_one"},
            "derived": derived,
            "statistics": {"x": {"family": "normal", "column": "x", "lower": 0, "upper": 1000}},
        }
    )


def sums(spec: Spec, label: str, columns: dict[str, pa.Array]) -> list[list[int]]:
    n_rows = len(next(iter(columns.values())))
    batch = pa.RecordBatch.from_pydict({**columns, "x": pa.array(range(n_rows), pa.int64())})
    found: list[list[int]] = to_python(sum_batches([batch], chunk_job(spec, label)))["x"].tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("stated", "parse", "pivot"), FORMATS)
@given(rows=st.lists(st.one_of(MOMENTS, GARBAGE), min_size=1, max_size=30), zone=ZONES, plain=st.booleans())
def test_sums_of_windows_are_those_of_a_converted_column(
    stated: str,
    parse: str,
    pivot: int | None,
    rows: list[Any],
    zone: str,
    *,
    plain: bool,
) -> None:
    """`DateFormat.moment` reads one text in Python, apart from what reads arrays."""
    written = DateFormat(stated, pivot)
    texts = [written.text(row) if isinstance(row, dt.datetime) else row for row in rows]
    if not plain:
        texts = [None if text is None else f" {text.lower()}\t" for text in texts]
    moments = [None if text is None else written.moment(text.strip(" \t")) for text in texts]
    entry = {"column": "raw", "parse": parse, "format": stated, **({} if pivot is None else {"pivot": pivot})}
    raw = pa.array(texts, pa.string())
    parsed = spec_of(zone, {"day": entry}, "day")
    converted = spec_of(zone, {}, "day")
    kind = pa.timestamp("us") if parse == "timestamp" else pa.date32()
    days = [moment if moment is None or parse == "timestamp" else moment.date() for moment in moments]
    entered = 0
    for label in LABELS:
        found = sums(parsed, label, {"raw": raw.dictionary_encode() if plain else raw})
        assert found == sums(converted, label, {"day": pa.array(days, kind)})
        entered += found[0][0]
    months = [f"{moment:%Y-%m}" for moment in moments if moment is not None]
    assert entered == sum(month in LABELS for month in months), "each row is in one window at most"


@given(
    seconds=st.lists(st.one_of(st.integers(750_000_000, 760_000_000), st.none()), min_size=1, max_size=30),
    zone=ZONES,
)
def test_counted_instants_lie_where_the_zones_midnights_put_them(seconds: list[Any], zone: str) -> None:
    entry = {"column": "raw", "parse": "timestamp", "epoch": "milliseconds"}
    spec = spec_of(zone, {"at": entry}, "at")
    raw = pa.array([None if second is None else 1000 * second + 7 for second in seconds], pa.int64())
    for label in ("1993-10", "1993-11", "1994-01"):
        inside = [
            number
            for number, second in enumerate(seconds)
            if second is not None and f"{dt.datetime.fromtimestamp(second, ZoneInfo(zone)):%Y-%m}" == label
        ]
        assert sums(spec, label, {"raw": raw})[0][0] == len(inside)


@pytest.mark.parametrize(("stated", "parse", "pivot"), FORMATS)
@given(moment=st.datetimes(at(1950, 1, 1), at(2049, 12, 31)))
def test_what_is_written_reads_as_it(stated: str, parse: str, pivot: int | None, moment: dt.datetime) -> None:
    written = DateFormat(stated, 1950 if pivot else None)
    again = written.moment(written.text(moment))
    assert again is not None
    assert again.date() == moment.date()
    if parse == "timestamp":
        assert again.replace(second=0, microsecond=0) == moment.replace(second=0, microsecond=0)


@pytest.mark.parametrize("epoch", ["days", "seconds", "milliseconds", "microseconds", "nanoseconds"])
def test_what_is_counted_reads_as_it(epoch: str) -> None:
    of = read_derived("at", {"column": "raw", "parse": "timestamp", "epoch": epoch}, None)
    assert isinstance(of, ParsedText)
    texts = pa.array([of.text(day) for day in (at(1969, 12, 31), at(2012, 2, 29))])
    spec = spec_of("UTC", {"at": {"column": "raw", "parse": "timestamp", "epoch": epoch}}, "at")
    assert [sums(spec, label, {"raw": texts})[0][0] for label in ("1969-12", "2012-02", "2012-03")] == [
        1,
        1,
        0,
    ]
