"""Days and periods of time zones as instants: they tile time, whatever clocks do."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suffice.pipeline.terms.declaration.domains import (
    Every,
    period_count,
    period_label,
    period_labels,
    period_start,
)
from suffice.pipeline.terms.declaration.time_zones import (
    day_start,
    known_time_zone,
    period_boundaries,
    read_grid,
)

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # clocks jumped over midnight
    "America/Havana",  # midnight comes twice
    "America/St_Johns",  # clocks went back at 00:01, into the day before
    "Pacific/Apia",  # 2011-12-30 never was
    "Asia/Kathmandu",
    "Africa/Monrovia",  # offsets of seconds
    "Etc/GMT+12",
]
DAYS = st.dates(dt.date(1850, 1, 1), dt.date(2200, 12, 30))


def local_date(instant: int, zone: str) -> dt.date:
    return dt.datetime.fromtimestamp(instant, dt.UTC if zone == "UTC" else ZoneInfo(zone)).date()


@pytest.mark.parametrize("zone", ZONES)
@given(day=DAYS)
@example(day=dt.date(2011, 12, 30))
@example(day=dt.date(2018, 11, 4))
@example(day=dt.date(2012, 11, 4))
@example(day=dt.date(2006, 10, 29))
def test_a_day_begins_at_the_first_instant_of_its_date(zone: str, day: dt.date) -> None:
    begins = day_start(day.toordinal(), zone)
    assert local_date(begins, zone) >= day
    assert local_date(begins - 1, zone) < day
    assert day_start(day.toordinal() + 1, zone) >= begins


def test_days_of_23_25_and_no_hours() -> None:
    def hours(text: str, zone: str) -> float:
        day = dt.date.fromisoformat(text).toordinal()
        return (day_start(day + 1, zone) - day_start(day, zone)) / 3600

    assert hours("2013-03-31", "Europe/Berlin") == 23
    assert hours("2013-10-27", "Europe/Berlin") == 25
    assert hours("2018-11-04", "America/Sao_Paulo") == 23
    assert hours("2011-12-30", "Pacific/Apia") == 0
    assert hours("2013-10-27", "UTC") == 24


@pytest.mark.parametrize("every", list(Every))
@given(day=DAYS)
@example(day=dt.date(2012, 12, 31))
@example(day=dt.date(2021, 1, 3))
def test_labels_of_periods_go_there_and_back(every: Every, day: dt.date) -> None:
    label = period_label(day, every)
    start = period_start(label, every)
    assert start <= day
    assert period_label(start, every) == label
    assert len(label) == every.label_length


@pytest.mark.slow
@pytest.mark.parametrize("every", list(Every))
@given(first=st.dates(dt.date(1900, 1, 1), dt.date(2050, 1, 1)), more=st.integers(0, 1000))
def test_periods_are_listed_without_gap(every: Every, first: dt.date, more: int) -> None:
    start, end = (period_label(day, every) for day in (first, first + dt.timedelta(days=more)))
    labels = period_labels(start, end, every)
    assert len(labels) == period_count(start, end, every)
    days = (first + dt.timedelta(days=day) for day in range(more + 1))
    assert list(labels) == sorted({period_label(day, every) for day in days})


@pytest.mark.parametrize(
    "label",
    ["2013-W00", "2013-W53", "2013-w05", "2013-W5", "2013W05", "2013-05", "2013-W05-1", "２013-W5"],
)
def test_a_week_is_written_in_one_way(label: str) -> None:
    assert period_start("2013-W05", Every.WEEK) == dt.date(2013, 1, 28)
    assert period_start("2020-W53", Every.WEEK) == dt.date(2020, 12, 28)
    with pytest.raises(ValueError, match="not a week written as YYYY-Www"):
        period_start(label, Every.WEEK)


@pytest.mark.parametrize("every", list(Every))
def test_the_ends_of_the_calendar_are_periods(every: Every) -> None:
    for day in (dt.date.min, dt.date.max):
        for zone in ZONES:
            begin, end = period_boundaries([period_label(day, every)], every, zone)
            assert begin < end


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("every", list(Every))
def test_periods_tile_time(every: Every, zone: str) -> None:
    first, last = (period_label(dt.date(year, 1, 1), every) for year in (2010, 2014))
    labels = period_labels(first, last, every)
    boundaries = period_boundaries(labels, every, zone)
    assert len(boundaries) == len(labels) + 1
    assert all(begin <= end for begin, end in pairwise(boundaries))
    ends = [period_boundaries([label], every, zone)[1] for label in labels]
    assert ends == boundaries[1:]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "utc",
        "Europe",
        "Europe/Atlantis",
        "../../etc/passwd",
        "/etc/localtime",
        "right/Europe/Berlin",
        "localtime",
        "Europe/Berlin\n",
        "Europe/Bérlin",
        "Europe/" + "A" * 200,
        "Europe/\x00",
    ],
)
def test_a_name_that_is_no_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        known_time_zone(name)


def test_a_grid_states_its_time_zone() -> None:
    assert read_grid("day:month") == read_grid("day:month:UTC") == "day:month:UTC"
    assert read_grid("day:week:Europe/Berlin") == "day:week:Europe/Berlin"
    assert read_grid("a:month:day") == "a:month:day:UTC"
    assert read_grid(read_grid("a:b:year:Asia/Kolkata")) == "a:b:year:Asia/Kolkata"
    for text in (
        "month",
        ":month",
        ":month:UTC",
        "day:fortnight",
        "day:month:",
        "",
        "UTC",
        "day:Europe/Berlin",
    ):
        with pytest.raises(ValueError, match=r"time zone|grid|one of"):
            read_grid(text)
