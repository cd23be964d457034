"""Windows that advance: which is released, which are left, and what a monitor is told."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import suffice
from suffice.errors import (
    AccountMissingError,
    ChargeSpentError,
    GuaranteeError,
    ReleaseInterruptedError,
    SpecChangedError,
    SpecError,
    StageFailedError,
    UsageError,
)
from suffice.monitoring.standing import standing
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import first_window
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.domains import Every, period_labels
from suffice.releasing import backfill as backfilling
from suffice.releasing import release as releasing
from suffice.releasing.gap_report import WindowState
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.operations.withdrawing import withdraw
from support.making import Workspace, make_workspace, mapping

if TYPE_CHECKING:
    from pathlib import Path

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
MONTHLY = {"column": "day", "every": "month"}
SCHEDULED = "2013-04-05T02:00:00Z"


def monthly(workspace: Workspace, **terms: Any) -> suffice.Spec:
    """Return a spec of one Bernoulli column by month, for epsilon 1 each."""
    return workspace.spec(statistics=STATISTICS, groups=None, window={**MONTHLY, **terms})


def where(workspace: Workspace) -> dict[str, Any]:
    return {"store": workspace.store, "ledger": workspace.ledger}


def unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every source fail as soon as it is opened."""

    def fail(*_: object) -> None:
        message = "the source was opened"
        raise AssertionError(message)

    monkeypatch.setattr(sources, "pin", fail)


def test_the_latest_complete_window_follows_from_the_scheduled_time(tmp_path: Path) -> None:
    """A late start and a retry are about the same window, which is charged once."""
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace, lag="3 days")
    outcomes = [
        releasing.carry_out(spec, **where(workspace), window="latest-complete", as_of=SCHEDULED)
        for _ in range(2)
    ]
    assert [(outcome.release.window, outcome.status) for outcome in outcomes] == [
        ("2013-03", "published"),
        ("2013-03", "already_published"),
    ]
    earlier = suffice.release(
        spec, **where(workspace), window="latest-complete", as_of=dt.datetime(2013, 4, 3, 23, tzinfo=dt.UTC)
    )
    assert earlier.window == "2013-02"


def test_the_calendar_is_asked_before_anything_is_opened(tmp_path: Path) -> None:
    spec = load_spec(mapping(tmp_path / "nothing", window=MONTHLY))
    nowhere: dict[str, Any] = {"store": str(tmp_path / "none"), "ledger": f"sqlite:///{tmp_path}/none.db"}
    for window in ("2050-01", "9999-12"):
        with pytest.raises(SpecError, match="has not ended"):
            suffice.release(spec, **nowhere, window=window)
        with pytest.raises(SpecError, match=r"--to: .* has not ended"):
            suffice.backfill(spec, "2013-01", window, **nowhere)
    with pytest.raises(UsageError, match="ahead of this host's clock"):
        suffice.release(spec, **nowhere, window="2050-01", as_of="2060-01-01T00:00Z")
    assert not any(tmp_path.iterdir())


def test_an_open_window_is_released_where_that_is_said(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    opened = suffice.release(monthly(workspace), **where(workspace), window="2050-01", allow_open=True)
    assert opened.window == "2050-01"


def test_a_backfill_releases_each_window_once_and_skips_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace)
    releasing.carry_out(spec, **where(workspace), window="2013-02")
    said: list[str] = []
    done = suffice.backfill(spec, "2013-01", as_of=SCHEDULED, notice=said.append, **where(workspace))
    assert [(window.window, window.status) for window in done.windows] == [
        ("2013-01", "published"),
        ("2013-02", "already_published"),
        ("2013-03", "published"),
    ]
    assert (done.refusal, done.needed) == (None, None)
    assert said == ["2013-01: published (2 of 3 releases)", "2013-03: published (3 of 3 releases)"]
    assert workspace.account().spent == 3
    unopened(monkeypatch)
    again = suffice.backfill(spec, "2013-01", "2013-03", **where(workspace))
    assert {window.status for window in again.windows} == {"already_published"}
    changed = workspace.spec(statistics=STATISTICS, window=MONTHLY)
    with pytest.raises(SpecChangedError):
        suffice.backfill(changed, "2013-01", "2013-03", **where(workspace))


@pytest.mark.parametrize("per_window", [False, True])
def test_a_backfill_stops_at_the_budget_and_says_what_it_takes_to_go_on(
    tmp_path: Path, *, per_window: bool
) -> None:
    grid = {"per_window": "day:month:UTC"} if per_window else {}
    workspace = make_workspace(tmp_path, granted="0.5" if per_window else "2.5", **grid)
    spec = monthly(workspace)
    done = suffice.backfill(spec, "2013-01", "2013-04", **where(workspace))
    reached = 0 if per_window else 2
    assert [window.status for window in done.windows] == ["published"] * reached + ["left"] * (4 - reached)
    assert "asks for 1" in str(done.refusal)
    assert done.needed == (1 if per_window else 4)
    assert document(done)["needed_grant"] == ("1" if per_window else "4")
    with open_ledger(workspace.ledger) as ledger:
        ledger.grant("passengers", epsilon=done.needed, reason="as told")
    again = suffice.backfill(spec, "2013-01", "2013-04", **where(workspace))
    assert again.refusal is None
    assert [window.status for window in again.windows].count("published") == 4 - reached


@pytest.mark.parametrize("drawn", [False, True])
def test_an_interrupted_backfill_says_the_state_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, drawn: bool
) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace)
    carry_out = releasing.carry_out

    def interrupted(*arguments: Any, **terms: Any) -> Any:
        if terms["window"] != "2013-02":
            return carry_out(*arguments, **terms)
        if drawn:
            carry_out(*arguments, **terms)
        raise KeyboardInterrupt

    monkeypatch.setattr(backfilling, "carry_out", interrupted)
    with pytest.raises(ReleaseInterruptedError) as caught:
        suffice.backfill(spec, "2013-01", "2013-03", **where(workspace))
    state = "is published; 2 of 3" if drawn else "was not charged; 1 of 3"
    assert f"2013-02 {state} releases are published" in str(caught.value)
    assert caught.value.__context__ is None
    monkeypatch.setattr(backfilling, "carry_out", carry_out)
    again = suffice.backfill(spec, "2013-01", "2013-03", **where(workspace))
    assert [window.status for window in again.windows].count("published") == (1 if drawn else 2)
    assert workspace.account().spent == 3


@pytest.mark.slow
def test_a_window_that_is_spent_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace)

    def fail(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("suffice.pipeline.rows.mechanism.mechanism.privatize", fail)
        with pytest.raises(StageFailedError):
            suffice.backfill(spec, "2013-01", "2013-02", **where(workspace))
    done = backfilling.carry_out_backfill(spec, "2013-01", "2013-03", **where(workspace))
    assert [window.status for window in done.windows] == ["failed", "published", "published"]
    assert isinstance(done.failure, ChargeSpentError)
    assert workspace.account().spent == 3
    with pytest.raises(ChargeSpentError, match="2013-01"):
        suffice.backfill(spec, "2013-01", "2013-03", **where(workspace))


def test_what_is_left_is_asked_of_the_ledger_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace, first="2013-02", amend=["7 days"])
    labels = ("2013-02", "2013-03")
    as_of = dt.datetime(2013, 4, 5, tzinfo=dt.UTC)

    def left() -> bool:
        return backfilling.is_anything_left(spec, labels, ledger=workspace.ledger, as_of=as_of)

    assert first_window(spec) == "2013-02"
    with pytest.raises(SpecError, match="no first window"):
        first_window(monthly(workspace))
    assert left()
    suffice.backfill(spec, "2013-02", "2013-03", as_of=as_of, **where(workspace))
    unopened(monkeypatch)
    assert not left(), "what was read after an amendment fell due needs none"


@pytest.mark.parametrize("drawn", [False, True])
def test_a_backfill_whose_window_fails_says_what_was_done_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, drawn: bool
) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace)
    place: tuple[Any, str] = (SqlLedger, "stage") if drawn else (tree, "exact_sums")
    work = getattr(*place)
    calls: list[int] = []

    def fail_the_second(*arguments: Any, **terms: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError
        return work(*arguments, **terms)

    monkeypatch.setattr(place[0], place[1], fail_the_second)
    done = backfilling.carry_out_backfill(spec, "2013-01", "2013-03", **where(workspace))
    others = "left" if drawn else "published"
    assert [window.status for window in done.windows] == ["published", "failed", others]
    assert isinstance(done.failure, StageFailedError)
    assert (done.refusal, done.needed) == (None, None)
    assert document(done)["error"] == {
        "type": "StageFailedError",
        "message": str(done.failure),
        "exit_status": 1,
    }
    assert workspace.account().spent + workspace.account().reserved == 2
    calls.clear()
    calls.append(1)  # the next call is the second: what `suffice.backfill` raises
    with pytest.raises(StageFailedError) as caught:
        suffice.backfill(spec, "2013-02" if not drawn else "2013-03", "2013-03", **where(workspace))
    assert caught.value.__context__ is None
    again = suffice.backfill(spec, "2013-01", "2013-03", **where(workspace))
    assert again.failure is None
    assert [window.status for window in again.windows].count("published") == (2 if drawn else 1)
    assert workspace.account().spent == 3


def test_a_report_of_gaps_never_opens_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path, granted="3.5")
    spec = monthly(workspace, lag="3 days")
    fresh = suffice.status(spec, **where(workspace), as_of=SCHEDULED)
    assert fresh.first_from == "calendar"
    assert [(each.window, each.state) for each in fresh.windows] == [("2013-03", "overdue")]
    for window in ("2013-01", "2013-03"):
        releasing.carry_out(spec, **where(workspace), window=window)
    unopened(monkeypatch)
    report = suffice.status(spec, **where(workspace), as_of="2013-05-02T00:00Z")
    assert report.first_from == "ledger"
    assert [(each.window, each.state, each.charge) for each in report.windows] == [
        ("2013-01", WindowState.PUBLISHED, "published"),
        ("2013-02", WindowState.OVERDUE, None),
        ("2013-03", WindowState.PUBLISHED, "published"),
        ("2013-04", WindowState.MISSING, None),
    ]
    assert (report.ok, report.covered, report.further, report.remaining.amount) == (
        False,
        1,
        0,
        Fraction(3, 2),
    )
    whole = suffice.status(
        monthly(workspace, first="2013-03", lag="3 days"), **where(workspace), as_of=SCHEDULED
    )
    assert (whole.first_from, whole.ok, len(whole.windows)) == ("spec", True, 1)
    assert suffice.status(spec, "2013-02", **where(workspace), as_of=SCHEDULED).first_from == "parameter"
    later = suffice.status(spec, "2013-06", **where(workspace), as_of=SCHEDULED)
    assert (later.windows, later.ok) == ((), True)


@pytest.mark.slow
def test_a_release_that_is_gone_from_the_store_is_reported(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace)
    release = releasing.carry_out(spec, **where(workspace), window="2013-03").release
    assert suffice.status(spec, **where(workspace), as_of=SCHEDULED).ok
    (workspace.directory / "releases" / "flights" / "2013-03" / release.release_id / "manifest.json").unlink()
    report = suffice.status(spec, **where(workspace), as_of=SCHEDULED)
    assert [window.state for window in report.windows] == ["not_in_store"]
    assert not report.ok


def test_a_window_whose_release_was_withdrawn_is_reported_and_raises_no_alarm(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = monthly(workspace)
    for window in ("2013-02", "2013-03"):
        release = releasing.carry_out(spec, **where(workspace), window=window).release
    withdraw(release.uri, reason="wrong unit", created=dt.datetime(2026, 2, 1, tzinfo=dt.UTC))
    report = suffice.status(spec, **where(workspace), as_of=SCHEDULED)
    assert [each.state for each in report.windows] == [WindowState.PUBLISHED, WindowState.WITHDRAWN]
    assert report.ok


def test_a_grant_per_window_covers_every_further_one(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="1", per_window="day:month:UTC")
    spec = monthly(workspace)
    releasing.carry_out(spec, **where(workspace), window="2013-02")
    report = suffice.status(spec, "2013-01", **where(workspace), as_of=SCHEDULED)
    assert (report.covered, report.remaining.amount) == (2, Fraction(1))
    assert report.further is None
    path = workspace.write_spec(statistics=STATISTICS, groups=None, window={**MONTHLY, "first": "2013-01"})
    (series,) = standing([path], **where(workspace), as_of=SCHEDULED).series
    assert (series.due, series.covered) == (2, None)
    shared = {"name": "others", "statistics": STATISTICS, "groups": None}
    path = workspace.write_spec(**shared, window={**MONTHLY, "first": "2013-01"})
    (series,) = standing([path], **where(workspace), as_of=SCHEDULED).series
    assert (series.due, series.covered) == (3, 2), "2013-02 is spent by the other series: a monitor is told"
    with pytest.raises(AccountMissingError):
        suffice.status(workspace.spec(dataset="others", window=MONTHLY), **where(workspace), as_of=SCHEDULED)


def test_a_grant_per_window_fixes_time_zone_and_source(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="1", per_window="day:month:Europe/Berlin")
    berlin = monthly(workspace, time_zone="Europe/Berlin")
    assert suffice.release(berlin, **where(workspace), window="2013-01").window == "2013-01"
    with pytest.raises(
        GuaranteeError, match="per window of day:month:Europe/Berlin, the spec has day:month:UTC"
    ):
        suffice.release(
            workspace.spec(name="utc", statistics=STATISTICS, window=MONTHLY),
            **where(workspace),
            window="2013-01",
        )
    with open_ledger(workspace.ledger) as ledger:
        with pytest.raises(GuaranteeError, match="fixed its windows and their sources"):
            ledger.grant("passengers", epsilon=Fraction(2), sources=["/elsewhere"], reason="x")
        with pytest.raises(UsageError, match="names its sources"):
            ledger.grant("others", epsilon=Fraction(1), per_window="day:month:UTC", reason="x")


def instants(start: str, hours: int) -> pa.Table:
    """Return a row every half hour from a UTC time on, as an instant and as a timestamp without a zone."""
    times = np.datetime64(start, "us") + np.arange(2 * hours) * np.timedelta64(30, "m")
    return pa.table(
        {
            "instant": pa.array(times, pa.timestamp("us", "UTC")),
            "elsewhere": pa.array(times, pa.timestamp("ns", "America/New_York")),
            "naive": pa.array(times),
            "cancelled": pa.array(np.ones(2 * hours, bool)),
        }
    )


def rows(sums: Any) -> int:
    """Return how many rows entered."""
    return int(to_python(sums)["cancelled"].sum())


@pytest.mark.parametrize(
    ("column", "every", "zone", "label", "hours"),
    [
        ("instant", "day", "Europe/Berlin", "2013-03-31", 23),
        ("elsewhere", "day", "Europe/Berlin", "2013-03-31", 23),
        ("instant", "day", "UTC", "2013-03-31", 24),
        ("naive", "day", "Europe/Berlin", "2013-03-31", 24),
        ("instant", "week", "Europe/Berlin", "2013-W13", 167),
        ("naive", "week", "Europe/Berlin", "2013-W13", 168),
    ],
)
def test_instants_are_windowed_by_the_days_of_the_time_zone(
    column: str, every: str, zone: str, label: str, hours: int
) -> None:
    window = {"column": column, "every": every, "time_zone": zone}
    spec = load_spec(mapping("data", statistics=STATISTICS, groups=None, window=window))
    table = instants("2013-03-20", 24 * 20)
    sums = sum_batches(table.to_batches(), chunk_job(spec, label))
    assert rows(sums) == 2 * hours


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
def test_each_row_is_in_one_window(zone: str) -> None:
    """Whatever the clocks do: the windows of a span of time add up to its rows."""
    table = instants("2006-10-20", 24 * 15)
    labels = period_labels("2006-10-18", "2006-11-06", Every.DAY)
    counts = []
    for label in labels:
        window = {"column": "instant", "every": "day", "time_zone": zone}
        spec = load_spec(mapping("data", statistics=STATISTICS, groups=None, window=window))
        sums = sum_batches(table.to_batches(), chunk_job(spec, label))
        counts.append(rows(sums))
    assert sum(counts) == table.num_rows


def test_a_name_that_was_released_before_it_had_windows_is_reported_on(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.run()
    report = suffice.status(monthly(workspace), **where(workspace), as_of=SCHEDULED)
    assert report.first_from == "calendar"
    assert [(window.window, window.state) for window in report.windows] == [("2013-03", "overdue")]
