"""Stated formats of dates: what they read, that nothing else is an error, and what is no format."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.terms.declaration.date_formats import DateFormat

JANUARY = dt.date(2013, 1, 5)


@pytest.mark.parametrize(
    ("written", "text", "date"),
    [
        ("%Y-%m-%d", "2013-01-05", JANUARY),
        ("%Y-%m-%d", "2013-1-5", JANUARY),
        ("%Y%m%d", "20130105", JANUARY),
        ("%Y%m%d", "2013015", None),
        ("%m/%d/%Y", "1/5/2013", JANUARY),
        ("%d %B %Y", "5 january 2013", JANUARY),
        ("%d %B %Y", "5 jan 2013", None),
        ("%d.%m.%Y %H:%M", "05.01.2013 23:59", JANUARY),
        ("%d.%m.%Y %H:%M", "05.01.2013 24:00", None),
        ("%d.%m.%Y %I:%M %p", "05.01.2013 12:59 PM", JANUARY),
        ("%d.%m.%Y %I:%M %p", "05.01.2013 13:59 PM", None),
        ("%Y-%m-%d", "2013-02-29", None),
        ("%Y-%m-%d", "2013-01-05\n", None),
        ("%Y-%m-%d", "\u0662013-01-05", None),
        ("%Y%%%m%%%d", "2013%01%05", JANUARY),
    ],
)
def test_a_text_is_read(written: str, text: str, date: dt.date | None) -> None:
    assert DateFormat(written).date(text) == date


@pytest.mark.parametrize(("pivot", "year"), [(1970, 1993), (1994, 2093), (1, 93)])
def test_the_pivot_says_the_century(pivot: int, year: int) -> None:
    assert DateFormat("%d-%b-%y", pivot).date("14-NOV-93") == dt.date(year, 11, 14)


@pytest.mark.parametrize(
    ("written", "pivot"),
    [
        *[("", None), ("%Y-%m", None), ("%Y-%m-%d-%d", None), ("%Y-%m-%b-%d", None), ("%Y-%m-%d %q", None)],
        *[
            ("%Y-%m-%d %", None),
            ("%y-%m-%d", None),
            ("%Y-%m-%d", 1970),
            ("%y-%m-%d", 0),
            ("%Y-%m-%d %I", None),
        ],
        *[("%Y-%m-%d %M", None), ("%Y-%m-%d\u00e4", None), ("%Y-%m-%d %H:%S", None)],
    ],
)
def test_what_is_no_format_is_refused(written: str, pivot: int | None) -> None:
    with pytest.raises(ValueError, match=r"format|pivot"):
        DateFormat(written, pivot)


@pytest.mark.slow
@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    DateFormat("%d-%b-%y %H:%M:%S.%f", 1970).date(text)


@given(st.dates())
def test_what_is_written_is_read(date: dt.date) -> None:
    assert DateFormat("%d.%b.%Y").date(f"{date:%d}.{date:%b}.{date.year:04}") == date
