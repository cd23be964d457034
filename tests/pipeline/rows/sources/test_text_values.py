"""What texts are read as, and that nothing fails because of one."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.sources.column_values import TEXT_TYPES, read_texts
from suffice.pipeline.terms.declaration.source_specs import CsvType

PARTS = [*"0123456789+-.eEtTzZ:/ _", "nan", "inf", "true", "2013-01-05", "17:30", "\u0661", "\0", "9" * 18]
TEXTS = st.one_of(st.text(max_size=12), st.lists(st.sampled_from(PARTS), max_size=8).map("".join))


def read(text: str | None, kind: str) -> object:
    return read_texts(pa.array([text], pa.string()), CsvType(kind))[0].as_py()


@pytest.mark.slow
@given(texts=st.lists(st.one_of(st.none(), TEXTS), max_size=5), kind=st.sampled_from(CsvType))
@settings(max_examples=150)
def test_every_text_is_a_value_or_null_by_itself(texts: list[str | None], kind: CsvType) -> None:
    values = read_texts(pa.array(texts, pa.string()), kind)
    values.validate(full=True)
    assert values.type == TEXT_TYPES[kind]
    assert len(values) == len(texts)
    alone = [read_texts(pa.array([text], pa.string()), kind) for text in texts]
    assert repr(values.to_pylist()) == repr([value for one in alone for value in one.to_pylist()])


@given(st.floats(allow_nan=False))
@settings(max_examples=60)
def test_numbers_are_the_nearest(number: float) -> None:
    assert read(repr(number), "number") == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+1.5e3", 1500.0),
        (" .5\t", 0.5),
        ("5.", 5.0),
        ("1e400", math.inf),
        ("-1E999999999999", -math.inf),
        ("1e-400", 0.0),
        ("-INF", -math.inf),
        ("Infinity", math.inf),
        ("0.1000000000000000055511151231257827021181583404541015625", 0.1),
        ("1_000", None),
        ("1,5", None),
        ("0x10", None),
        (".", None),
        ("e5", None),
        ("\u0661", None),
        ("", None),
    ],
)
def test_numbers(text: str, number: float | None) -> None:
    assert read(text, "number") == number


def test_nan_is_no_error() -> None:
    assert math.isnan(read("NaN", "number"))  # type: ignore[arg-type]


@given(st.integers(-(2**65), 2**65))
@settings(max_examples=60)
def test_integers_of_64_bits(number: int) -> None:
    assert read(f"{number:+d}", "integer") == (number if -(2**63) <= number < 2**63 else None)


@pytest.mark.parametrize("text", ["1.5", "1.", "1e3", "--1", "+", "", "0x10", "9" * 39])
def test_what_is_no_integer_is_null(text: str) -> None:
    assert read(text, "integer") is None


def test_zeros_after_a_point_are_an_integer() -> None:
    """One null in a column lets pandas write all of its integers so."""
    assert [read(text, "integer") for text in ("1.0", "-7.000", "+3.0")] == [1, -7, 3]


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("FALSE", False), ("1", True), (" 0 ", False), ("yes", None), ("2", None), ("", None)],
)
def test_truth_values(text: str, *, value: bool | None) -> None:
    assert read(text, "boolean") is value


@given(st.dates())
@settings(max_examples=60)
def test_dates(day: dt.date) -> None:
    assert read(day.isoformat(), "date") == day


@pytest.mark.parametrize(
    "text", ["2013-02-29", "2013-13-01", "2013-00-01", "2013-01-00", "2013-1-5", "20130105", "x2013-01-05"]
)
def test_what_is_in_no_calendar_is_null(text: str) -> None:
    assert read(text, "date") is None
    assert read(f"{text} 00:00", "timestamp") is None


@given(st.datetimes(), st.sampled_from([" ", "T", "t"]))
@settings(max_examples=60)
def test_timestamps(instant: dt.datetime, between: str) -> None:
    assert read(instant.isoformat(sep=between), "timestamp") == instant


@given(
    st.datetimes().filter(lambda instant: 1 < instant.year < 9999),
    st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))),
)
@settings(max_examples=60)
def test_timestamps_with_offset(instant: dt.datetime, zone: dt.timezone) -> None:
    there = instant.replace(tzinfo=zone)
    assert read(there.isoformat(), "timestamp_with_offset") == there
    assert read(there.isoformat(), "timestamp") is None
    assert read(instant.isoformat(), "timestamp_with_offset") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2013-01-05 17:30:00.123456789Z", dt.datetime(2013, 1, 5, 17, 30, 0, 123456, dt.UTC)),
        ("2013-01-05T17:30+01", dt.datetime(2013, 1, 5, 16, 30, tzinfo=dt.UTC)),
        ("2013-01-05T17:30-0130", dt.datetime(2013, 1, 5, 19, 0, tzinfo=dt.UTC)),
        ("2013-01-05T24:00Z", None),
        ("2013-01-05T17:60Z", None),
        ("2013-01-05T17:30:60Z", None),
        ("2013-01-05T17:30+24:00", None),
        ("2013-01-05T17:30+01:60", None),
        ("2013-01-05", None),
    ],
)
def test_times_at_the_edges(text: str, value: dt.datetime | None) -> None:
    assert read(text, "timestamp_with_offset") == value
