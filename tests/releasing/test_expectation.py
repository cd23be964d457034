"""What a spec expects is counted and charged first; below the floor nothing else is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.errors import BudgetExceededError, ChargeSpentError, ExpectationNotMetError, SpecChangedError
from suffice.pipeline.rows import sources
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.releasing import backfill as backfilling
from suffice.releasing import release as releasing
from suffice.releasing.expectation import Expected
from suffice.releasing.gap_report import WindowState
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from support.making import Workspace, make_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeSummary

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
EMPTY = "2014-01"
FULL = "2013-01"


def expecting(workspace: Workspace, floor: int = 50, epsilon: str = "1", **terms: Any) -> suffice.Spec:
    """Return a monthly spec for epsilon 1 that expects rows: at most e^-50 of its decisions go otherwise."""
    return workspace.spec(
        statistics=STATISTICS,
        groups=None,
        window={"column": "day", "every": "month", **terms},
        expect={"rows": str(floor), "epsilon": epsilon},
    )


def release(workspace: Workspace, spec: suffice.Spec, window: str, **options: Any) -> releasing.Outcome:
    return releasing.carry_out(spec, store=workspace.store, ledger=workspace.ledger, window=window, **options)


def charges(workspace: Workspace) -> list[ChargeSummary]:
    with open_ledger(workspace.ledger) as ledger:
        return list(ledger.charges("passengers"))


def labels(workspace: Workspace) -> list[str]:
    return [f"{charge.name}@{charge.edition}" for charge in charges(workspace)]


def test_a_full_window_is_counted_then_released(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = expecting(workspace)
    assert release(workspace, spec, FULL).status == "published"
    assert labels(workspace) == ["flights.expect@2013-01", "flights@2013-01"]
    counted = suffice.open_release(f"flights.expect@{FULL}", store=workspace.store)
    assert counted.loss.epsilon == 1
    assert release(workspace, spec, FULL).status == "already_published"
    assert len(labels(workspace)) == 2


def test_an_empty_window_is_charged_for_its_count_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    spec = expecting(workspace)
    with pytest.raises(ExpectationNotMetError, match="epsilon 1 was charged, for the count") as caught:
        release(workspace, spec, EMPTY)
    assert caught.value.exit_status == 8
    assert labels(workspace) == ["flights.expect@2014-01"]

    def fail(*_: object) -> None:
        message = "the source was opened"
        raise AssertionError(message)

    with monkeypatch.context() as patch:
        patch.setattr(sources, "pin", fail)
        with pytest.raises(ExpectationNotMetError, match="nothing was charged"):
            release(workspace, spec, EMPTY)
    assert labels(workspace) == ["flights.expect@2014-01"]


def test_a_stopped_window_is_counted_again_on_demand(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = expecting(workspace)
    for options in ({}, {"new_attempt": True}, {}):
        with pytest.raises(ExpectationNotMetError):
            release(workspace, spec, EMPTY, **options)
    assert labels(workspace) == ["flights.expect@2014-01", "flights.expect@2014-01.1"]


def test_a_lower_floor_is_held_against_the_same_count(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    with pytest.raises(ExpectationNotMetError):
        release(workspace, expecting(workspace, 10_000), FULL)
    assert release(workspace, expecting(workspace, 50), FULL).status == "published"
    assert labels(workspace) == ["flights.expect@2013-01", "flights@2013-01"]


def test_another_epsilon_is_another_count(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    with pytest.raises(ExpectationNotMetError):
        release(workspace, expecting(workspace), EMPTY)
    with pytest.raises(SpecChangedError):
        release(workspace, expecting(workspace, epsilon="2"), EMPTY)


def test_the_account_covers_both_or_neither_is_charged(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="1.5")
    with pytest.raises(BudgetExceededError):
        release(workspace, expecting(workspace), FULL)
    assert labels(workspace) == []


def test_a_window_is_not_counted_again_where_no_release_could_follow(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="2.5")
    spec = expecting(workspace)
    with pytest.raises(
        ExpectationNotMetError, match=r"a larger grant is needed: .* take epsilon 2, and 1\.5 is left"
    ):
        release(workspace, spec, EMPTY)
    with pytest.raises(BudgetExceededError):
        release(workspace, spec, EMPTY, new_attempt=True)
    assert labels(workspace) == ["flights.expect@2014-01"]


def test_a_rehearsal_asks_the_account_for_the_count_and_the_release(tmp_path: Path) -> None:
    short = make_workspace(tmp_path / "short", granted="1.5")
    failed = suffice.rehearse(expecting(short), store=short.store, ledger=short.ledger, window=FULL)
    assert isinstance(failed.failure, BudgetExceededError)
    workspace = make_workspace(tmp_path / "enough")
    spec = expecting(workspace)

    def tried() -> str:
        done = suffice.rehearse(spec, store=workspace.store, ledger=workspace.ledger, window=EMPTY)
        return {stage.name: stage.tried for stage in done.stages}["account"]

    assert tried().endswith("; epsilon 1 for the count before it remains as well")
    with pytest.raises(ExpectationNotMetError):
        release(workspace, spec, EMPTY)
    assert tried().endswith("; flights.expect@2014-01 is published, and decides whether it is charged")


def test_a_released_window_is_found_whatever_is_expected_later(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    plain = expecting(workspace).model_copy(update={"expect": None})
    release(workspace, plain, FULL)
    assert release(workspace, expecting(workspace, 10_000), FULL).status == "already_published"
    assert labels(workspace) == ["flights@2013-01"]


@pytest.mark.parametrize("move", ["enter_drawing", "stage", "publish"])
def test_a_count_that_died_is_settled_by_the_rules_of_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move: str
) -> None:
    """At each move of the count's charge; no second draw follows a first one without being asked for."""
    workspace = make_workspace(tmp_path)
    spec = expecting(workspace)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SqlLedger, move, die)
        with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever a run that dies ends in
            release(workspace, spec, FULL)
    died = charges(workspace)
    assert {charge.name for charge in died} == {"flights.expect"}
    try:
        assert release(workspace, spec, FULL).status == "published"
    except ChargeSpentError:
        assert release(workspace, spec, FULL, new_attempt=True).status == "published"
    counts = [charge for charge in charges(workspace) if charge.name == "flights.expect"]
    assert sum(charge.state is ChargeState.PUBLISHED for charge in counts) == 1
    releases = [charge for charge in charges(workspace) if charge.name == "flights"]
    assert [charge.state for charge in releases] == [ChargeState.PUBLISHED]


@pytest.mark.slow
def test_the_decision_follows_from_what_is_published(tmp_path: Path) -> None:
    """The floor at the published count passes, and one above it stops: whatever the exact count is."""
    workspace = make_workspace(tmp_path)
    with pytest.raises(ExpectationNotMetError):
        release(workspace, expecting(workspace, 10_000, "0.01"), FULL)
    counted = suffice.open_release(f"flights.expect@{FULL}", store=workspace.store)
    noisy = int(counted.statistic("expected").values[0, 1])
    if noisy < 1:  # at 150 rows and noise of scale 100 about one time in nine
        pytest.skip("the published count admits no floor")
    with pytest.raises(ExpectationNotMetError, match=f"counted {noisy:,} rows"):
        release(workspace, expecting(workspace, noisy + 1, "0.01"), FULL)
    assert release(workspace, expecting(workspace, noisy, "0.01"), FULL).status == "published"


def test_amendments_follow_a_release_that_passed(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = expecting(workspace, amend=["7 days"])
    release(workspace, spec, FULL)
    release(workspace, spec, FULL, amendment=1)
    assert labels(workspace) == ["flights.expect@2013-01", "flights@2013-01", "flights@2013-01.1"]


def test_a_backfill_goes_on_after_a_window_that_is_stopped(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = expecting(workspace)
    done = backfilling.carry_out_backfill(
        spec, "2012-12", "2013-01", store=workspace.store, ledger=workspace.ledger
    )
    assert [(window.window, window.status) for window in done.windows] == [
        ("2012-12", "stopped"),
        ("2013-01", "published"),
    ]
    assert done.stopped is not None
    assert done.failure is None
    assert done.refusal is None
    report = suffice.status(
        spec, "2012-12", store=workspace.store, ledger=workspace.ledger, as_of="2013-03-01T00:00Z"
    )
    assert [window.state for window in report.windows] == [
        WindowState.STOPPED,
        WindowState.PUBLISHED,
        WindowState.OVERDUE,
    ]
    assert not report.ok
    assert report.expected == PrivacyLoss.of_epsilon(Fraction(1))


def test_a_backfill_says_what_counts_and_releases_need(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="1")
    done = backfilling.carry_out_backfill(
        expecting(workspace, epsilon="0.5"),
        "2013-01",
        "2013-02",
        store=workspace.store,
        ledger=workspace.ledger,
    )
    assert done.needed == Fraction(3)
    assert labels(workspace) == []


def test_a_spec_that_expects_nothing_has_no_count(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert Expected.of(expecting(workspace).model_copy(update={"expect": None})) is None


def test_a_flow_ends_in_a_state_of_its_own() -> None:
    from suffice.flows import endings

    error = ExpectationNotMetError("fewer than expected")
    ending = endings.release_ending(error, None)
    assert (ending.name, ending.kind) == ("Stopped: fewer than expected", endings.FAILED)
    assert endings.refused_kind(ending) is None
    assert endings.backfill_ending(error, None).event == "suffice.backfill.stopped"
