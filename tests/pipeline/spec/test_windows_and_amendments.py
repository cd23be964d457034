"""Windows and time: what has ended, what is complete, and which window a run is about."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import SpecError, UsageError
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.spec.windows_and_amendments import (
    LATEST_COMPLETE,
    Window,
    last_ended,
    latest_complete,
    moment,
    read_instant,
    resolve_window,
    window_times,
    windows_between,
)
from suffice.pipeline.terms.declaration.domains import Every, next_period, period_label, period_start
from support.making import mapping

YEAR = 365 * 86_400
ZONES = ["UTC", "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu"]
LAGS = ["0 days", "3 days", "1 day", "12 hours", "36 hours", "2 weeks", "400 days"]


def at(text: str) -> dt.datetime:
    return read_instant(text)


def window_of(**terms: Any) -> Window:
    return Window.model_validate({"column": "day", "every": "month", **terms})


def spec_of(**terms: Any) -> Spec:
    return load_spec(mapping("data", window={"column": "day", "every": "month", **terms}))


@given(
    instant=st.integers(-20 * YEAR, 180 * YEAR),
    every=st.sampled_from(list(Every)),
    zone=st.sampled_from(ZONES),
    lag=st.sampled_from(LAGS),
)
def test_the_latest_complete_window_is_the_last_one(instant: int, every: Every, zone: str, lag: str) -> None:
    """Its end and its lag have passed, and those of the next have not."""
    as_of = dt.datetime.fromtimestamp(instant, dt.UTC)
    window = window_of(every=str(every), time_zone=zone, lag=lag)
    label = latest_complete(window, as_of)
    following = period_label(next_period(period_start(label, every), every), every)
    times, after = window_times(window, label), window_times(window, following)
    assert times.begins <= times.ends <= times.complete <= as_of < after.complete
    assert times.ends == after.begins
    ended = last_ended(window, as_of)
    assert ended >= label
    assert window_times(window, ended).ends <= as_of


def test_a_lag_counts_days_of_the_calendar() -> None:
    """Clocks go forward in between: three days are 71 hours, and end at midnight."""
    window = window_of(every="day", time_zone="Europe/Berlin", lag="3 days")
    times = window_times(window, "2013-03-29")
    assert times.ends == at("2013-03-30T00:00+01:00")
    assert times.complete == at("2013-04-02T00:00+02:00")
    hours = window_times(window_of(every="day", time_zone="Europe/Berlin", lag="72 hours"), "2013-03-29")
    assert hours.complete == at("2013-04-02T01:00+02:00")


def test_a_window_follows_from_the_scheduled_time_in_its_time_zone() -> None:
    scheduled = at("2013-02-04T00:30:00+01:00")  # still February 3 in UTC
    lag = {"lag": "3 days"}
    assert resolve_window(spec_of(**lag), LATEST_COMPLETE, as_of=scheduled) == "2012-12"
    berlin = spec_of(time_zone="Europe/Berlin", **lag)
    assert resolve_window(berlin, LATEST_COMPLETE, as_of=scheduled) == "2013-01"
    weeks = spec_of(every="week", time_zone="Europe/Berlin")
    assert resolve_window(weeks, LATEST_COMPLETE, as_of=scheduled) == "2013-W05"


def test_a_window_that_has_not_ended_is_refused() -> None:
    spec = spec_of(time_zone="Europe/Berlin", lag="3 days")
    as_of = at("2013-02-01T00:00+01:00")
    assert resolve_window(spec, "2013-01", as_of=as_of) == "2013-01"  # the lag is for `latest-complete`
    early = as_of - dt.timedelta(microseconds=1)
    rule = r"2013-01 has not ended: it may be released from 2013-02-01T00:00\+01:00 \(Europe/Berlin\) on"
    with pytest.raises(SpecError, match=rule):
        resolve_window(spec, "2013-01", as_of=early)
    assert resolve_window(spec, "2013-01", as_of=early, allow_open=True) == "2013-01"
    for far in ("2050-01", "9999-12"):
        with pytest.raises(SpecError, match="has not ended"):
            resolve_window(spec, far, as_of=as_of)
    assert resolve_window(spec, "0001-01", as_of=as_of) == "0001-01"


def test_before_every_window_there_is_none() -> None:
    with pytest.raises(SpecError, match="no window of the spec has ended"):
        latest_complete(window_of(every="year"), at("0001-06-01T00:00Z"))
    with pytest.raises(SpecError, match="no window of the spec has ended"):
        latest_complete(window_of(every="day", time_zone="America/New_York"), at("0001-01-01T00:00Z"))


def test_no_window_before_the_first_is_released() -> None:
    spec = spec_of(first="1990-01")
    as_of = at("2013-02-01T00:00Z")
    for label in ("1948-01", "1989-12", "0001-01"):
        for allow_open in (False, True):
            with pytest.raises(SpecError, match=f"{label} lies before 1990-01, the first window"):
                resolve_window(spec, label, as_of=as_of, allow_open=allow_open)
    assert resolve_window(spec, "1990-01", as_of=as_of) == "1990-01"
    with pytest.raises(SpecError, match="1989-12 lies before 1990-01"):
        resolve_window(spec, LATEST_COMPLETE, as_of=at("1990-01-20T00:00Z"))
    assert resolve_window(spec, LATEST_COMPLETE, as_of=at("1990-02-01T00:00Z")) == "1990-01"


def test_what_has_no_windows_has_no_latest() -> None:
    spec = load_spec(mapping("data"))
    assert resolve_window(spec, "all", as_of=at("2013-01-01T00:00Z")) == "all"
    with pytest.raises(SpecError, match="no window key"):
        resolve_window(spec, LATEST_COMPLETE, as_of=at("2013-01-01T00:00Z"))
    with pytest.raises(SpecError, match="no window key"):
        windows_between(spec, "2013-01", "2013-02", as_of=at("2013-01-01T00:00Z"))


def test_windows_between_two_labels() -> None:
    spec = spec_of(lag="3 days")
    as_of = at("2013-03-02T00:00Z")
    assert windows_between(spec, "2012-11", LATEST_COMPLETE, as_of=as_of) == ("2012-11", "2012-12", "2013-01")
    assert windows_between(spec, "2013-01", "2013-02", as_of=as_of) == ("2013-01", "2013-02")
    for first, last, place in (
        ("2013-02", "2013-01", "--to: '2013-01' lies before"),
        ("2013", "2013-01", "--from"),
        ("2013-01", "2013-03", "--to: 2013-03 has not ended"),
        ("all", "2013-01", "--from"),
    ):
        with pytest.raises(SpecError, match=place):
            windows_between(spec, first, last, as_of=as_of)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2013-02-04",
        "2013-02-04T02:00:00",
        "2013-02-04 02:00:00+01:00",
        "2013-02-30T00:00Z",
        "20130204T020000Z",
        "2013-02-04T25:00Z",
        "0001-01-01T00:00+10:00",
        "2013-02-04T02:00:00Z\n",
    ],
)
def test_a_moment_states_its_offset(text: str) -> None:
    with pytest.raises(UsageError, match="--as-of: a moment is written with its offset"):
        read_instant(text)


def test_a_moment_is_an_instant() -> None:
    now = at("2013-02-04T01:00:00Z")
    assert at("2013-02-04T02:00+01:00") == now
    assert moment(None, now) is now
    assert moment("2013-01-04T02:00:00.5Z", now).microsecond == 500_000
    assert moment(now + dt.timedelta(minutes=4), now) > now
    with pytest.raises(UsageError, match="ahead of this host's clock"):
        moment("2013-02-04T03:00Z", now)
    with pytest.raises(UsageError, match="offset"):
        moment(dt.datetime(2013, 2, 4), now)  # noqa: DTZ001


def test_lag_and_first_are_no_terms() -> None:
    """A window that is published stays published when its schedule changes; its time zone is a term."""
    plain = spec_of()
    assert spec_of(lag="3 days", first="2013-01").plan_hash() == plain.plan_hash()
    assert spec_of(time_zone="UTC").plan_hash() == plain.plan_hash()
    assert spec_of(time_zone="Europe/Berlin").plan_hash() != plain.plan_hash()
    assert plain.grid == "day:month:UTC"
    assert '"window":{"column":"day","every":"month","time_zone":"UTC"}' in plain.canonical_plan()


@pytest.mark.parametrize(
    ("terms", "place"),
    [
        ({"lag": "3"}, "window.lag"),
        ({"lag": "3 months"}, "window.lag"),
        ({"lag": "-1 days"}, "window.lag"),
        ({"lag": "99999 days"}, "window.lag"),
        ({"time_zone": "Berlin"}, "window.time_zone"),
        ({"first": "2013"}, "window"),
        ({"every": "fortnight"}, "window.every"),
    ],
)
def test_a_window_that_breaks_a_rule_names_its_place(terms: dict[str, Any], place: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(**terms)
    assert place in caught.value.location
