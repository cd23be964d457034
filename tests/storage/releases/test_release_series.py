"""`open_series`: newest editions, gaps, what is left out and why, and posteriors over windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import suffice
from suffice.errors import ReleaseMissingError, UnknownNameError, UsageError
from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from support.series_store import CANCELLED, SeriesStore, withdraw

if TYPE_CHECKING:
    from pathlib import Path

MONTHS = [f"2013-{month:02d}" for month in range(1, 13)]
POISSON = {"family": "poisson", "column": "cancelled", "upper": "5"}


@pytest.fixture
def store(tmp_path: Path) -> SeriesStore:
    return SeriesStore(tmp_path / "releases")


def opened(store: SeriesStore) -> suffice.Series:
    return suffice.open_series(store.name, store=store.place)


def walked(series: suffice.Series, **terms: object) -> WalkedPosterior:
    answer = series.posterior("cancelled", **terms)  # type: ignore[arg-type]
    assert isinstance(answer, WalkedPosterior)
    return answer


def test_the_newest_edition_counts_and_gaps_are_longer_steps(store: SeriesStore) -> None:
    for month in MONTHS:
        if month not in {"2013-04", "2013-09"}:
            store.publish(month, 0.3)
    store.publish("2013-02", 0.9, size=5000)
    series = opened(store)
    assert series.gaps == ("2013-04", "2013-09")
    assert series.amended == {"2013-02": ["2013-02"]}
    assert [release.window for release in series] == [*series.windows]
    assert len(series) == 10
    assert series["2013-02"].amendment == 1
    assert "1 window amended, of which the newest edition counts: 2013-02" in str(series)
    assert "without 2 windows: 2013-04, 2013-09" in str(series)
    answer = walked(series)
    assert answer.mean()[1] == pytest.approx(0.9, abs=0.03)
    assert sorted(row["window"] for row in answer.jumps()) == ["2013-02", "2013-03"]
    assert answer.steps[0].n_times == 12
    assert "2 of 12 times without a cell" in str(answer.rows_of)
    with pytest.raises(UnknownNameError, match="has no window '2013-04': it has 2013-01 to 2013-12"):
        series["2013-04"]


def test_windows_of_one_population_are_said_to_have_no_order(store: SeriesStore) -> None:
    for month in MONTHS[:6]:
        store.publish(month, 0.3)
    pooled = opened(store).posterior("cancelled", pooled="beta")
    assert "6 windows pooled as cells of one population, in no order: pooled=True walks" in str(pooled)
    assert "in no order" not in str(walked(opened(store)))


def test_what_is_withdrawn_or_is_another_statistic_is_left_out_by_name(store: SeriesStore) -> None:
    for month in MONTHS[:8]:
        if month == "2013-02":
            store.publish(month, 1.3, statistic=POISSON)
        elif month == "2013-03":
            store.publish(month, 0.3, called="delayed")
        elif month == "2013-04":
            store.publish(month, [0.3, 0.3], groups={"origin": ["EWR", "JFK"]})
        elif month == "2013-05":
            withdraw(store.publish(month, 0.99, size=5000), "of test rows")
        elif month == "2013-06":
            store.publish(month, 0.3, dataset="another")
        else:
            store.publish(month, 0.3)
    store.publish("2013", 0.3, every="year")
    series = opened(store)
    reasons = dict(series.left_out)
    assert sorted(reasons) == ["2013", "2013-05", "2013-06"]
    assert "withdrawn" in reasons["2013-05"]
    assert reasons["2013-06"] == "is of dataset another, not simulated"
    assert reasons["2013"] == "has another kind of window (every year, not month)"
    answer = walked(series)
    assert answer.groups["window"] == ["2013-01", "2013-07", "2013-08"]
    for said in (
        "left out 2013-02: has another cancelled: it differs in family, upper",
        "left out 2013-03: has no cancelled",
        "left out 2013-04: has another cancelled: it differs in groups",
        "left out 2013-05: was withdrawn",
    ):
        assert said in str(answer.rows_of)
    table = series.table("cancelled")
    assert {row["window"] for row in table} == {"2013-01", "2013-07", "2013-08"}


def test_a_withdrawn_amendment_takes_its_window_with_it(store: SeriesStore) -> None:
    """As `open_release` of the window: an older edition never stands in its place."""
    for month in MONTHS[:3]:
        store.publish(month, 0.3)
    withdraw(store.publish("2013-02", 0.3), "read too early")
    series = opened(store)
    assert series.windows == ("2013-01", "2013-03")
    assert [label for label, _ in series.left_out] == ["2013-02.1"]


@pytest.mark.slow
def test_windows_of_other_epsilon_keep_their_own_noise(store: SeriesStore) -> None:
    for month in MONTHS:
        store.publish(
            month, [0.3, 0.5], groups={"origin": ["EWR", "JFK"]}, epsilon="1" if month < "2013-07" else "0.02"
        )
    answer = walked(opened(store))
    assert list(answer.groups) == ["window", "origin"]
    assert answer.steps[0].n_series == 2
    alone, together = (
        np.array([row["upper"] - row["lower"] for row in each.summary()]) for each in (answer.alone, answer)
    )
    # Late windows say little by themselves, and are told by the early ones.
    assert np.min(alone[14:]) > 2.0 * np.max(alone[:12])
    assert np.max(together) < 0.6 * np.mean(alone[14:])
    assert np.mean(answer.own_share[14:]) < 0.5 * np.mean(answer.own_share[:10])
    march = opened(store)["2013-03"].posterior("cancelled")
    np.testing.assert_allclose(march.mean(), answer.alone.mean()[4:6], rtol=1e-6)
    assert "24 cells by window, origin" in str(answer.alone)
    of_site = walked(opened(store), where={"origin": "JFK"})
    assert set(of_site.groups["origin"]) == {"JFK"}
    with pytest.raises(UsageError, match="the noise of its windows differs"):
        opened(store).posterior("cancelled", pooled=suffice.Pooling())


def test_daily_windows_open_as_one(store: SeriesStore) -> None:
    days = [f"2013-01-{day:02d}" for day in range(1, 22)]
    for day in days:
        store.publish(day, 0.2, every="day")
    series = opened(store)
    assert repr(series) == "<Series flights: 21 windows, 2013-01-01 to 2013-01-21>"
    answer = walked(series)
    assert answer.releases[0].startswith("flights@2013-01-01 ")
    assert "19 more" in str(answer) or "2013-01-21" in str(answer)
    each = series.posterior("cancelled", pooled=False)
    assert np.mean(each.sd()) > 2.0 * np.mean(answer.sd())


def test_what_is_no_series(store: SeriesStore, tmp_path: Path) -> None:
    store.publish("all", 0.3, every=None)
    with pytest.raises(UsageError, match="flights has no windows"):
        opened(store)
    with pytest.raises(ReleaseMissingError, match="has no release named other"):
        suffice.open_series("other", store=store.place)
    with pytest.raises(UsageError, match="is no name of a series"):
        suffice.open_series("flights@2013-01", store=store.place)
    another = SeriesStore(tmp_path / "another")
    withdraw(another.publish("2013-01", 0.3), "of test rows")
    with pytest.raises(ReleaseMissingError, match="all 1 windows of flights were withdrawn"):
        opened(another)
    single = SeriesStore(tmp_path / "single")
    single.publish("2013-01", 0.3, statistic=CANCELLED)
    with pytest.raises(UsageError, match="no series has two cells over window"):
        opened(single).posterior("cancelled")
    with pytest.raises(UsageError, match="has no such group column"):
        opened(single)["2013-01"].posterior("cancelled", pooled=suffice.Pooling(over="window"))
