"""``--window latest-complete``, ``backfill`` and ``status``, as people and monitors run them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from suffice.cli.monitor import OVERDUE
from suffice.pipeline.rows.reduce import tree
from suffice.releasing import backfill as backfilling
from suffice.releasing.release import carry_out
from support.making import Workspace, make_workspace
from support.running import Runner, spec_file

STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
WINDOW = {"column": "day", "every": "month", "time_zone": "Europe/Berlin", "lag": "3 days"}
AS_OF = ("--as-of", "2013-04-04T00:00:00+02:00")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    place = make_workspace(tmp_path, granted="2.5")
    monkeypatch.setenv("SUFFICE_LEDGER", place.ledger)
    monkeypatch.setenv("SUFFICE_STORE", place.store)
    return place


@pytest.fixture
def spec(workspace: Workspace) -> str:
    return spec_file(workspace, statistics=STATISTICS, groups=None, window=WINDOW)


@pytest.fixture
def suffice(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


def states(document: dict[str, Any], key: str = "status") -> dict[str, str]:
    return {window["window"]: window[key] for window in document["windows"]}


def test_a_schedule_with_one_command_advances(spec: str, suffice: Runner) -> None:
    words = ("release", spec, "--window", "latest-complete", "--as-of")
    first = suffice.json(*words, "2013-04-03T23:59:00+02:00")
    second = suffice.json(*words, "2013-04-04T00:00:00+02:00")
    again = suffice.json(*words, "2013-04-05T00:00:00+02:00")
    assert [(document["window"], document["status"]) for document in (first, second, again)] == [
        ("2013-02", "published"),
        ("2013-03", "published"),
        ("2013-03", "already_published"),
    ]


def test_a_release_says_when_its_window_was_closed(spec: str, suffice: Runner) -> None:
    suffice.json("release", spec, "--window", "2013-01")
    shown = suffice.json("show", "flights@2013-01")
    assert (shown["closed"], shown["window_ended"]) == (True, "2013-01-31T23:00Z")
    text = suffice.text("show", "flights@2013-01")
    assert f"released after its window ended at 2013-01-31T23:00Z, as of {shown['released']}" in text
    assert "rows that came later are not in it" in text
    refused = suffice.json("release", spec, "--window", "2050-01", status=2)["error"]["message"]
    assert "may be released from 2050-02-01T00:00+01:00 (Europe/Berlin) on" in refused
    suffice.json("release", spec, "--window", "2050-01", "--allow-open")
    assert "released before its window ended" in suffice.text("show", "flights")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("release", "--window", "2013-01", "--as-of", "2013-04-04"), "--as-of"),
        (("release", "--window", "2013-01", "--as-of", "2099-04-04T00:00Z"), "--as-of"),
        (("release", "--window", "2013-01", "--window", "2013-02"), "--window is given more than once"),
        (("release", "--window", "latest"), "--window"),
        (("backfill", "--from", "2013"), "--from"),
        (("backfill", "--from", "2013-03", "--to", "2013-02"), "--to"),
        (("backfill",), "--from"),
        (("status", "--from", "2013"), "--from"),
    ],
)
def test_a_window_that_is_none_is_refused(
    spec: str, suffice: Runner, words: tuple[str, ...], place: str
) -> None:
    command, *options = words
    assert place in suffice.json(command, spec, *options, status=2)["error"]["message"]
    assert suffice.json("ledger", "show")["accounts"][0]["spent"] == "0"


def test_a_dry_run_says_what_is_left_and_charges_nothing(spec: str, suffice: Runner) -> None:
    suffice.json("release", spec, "--window", "2013-02")
    words = ("backfill", spec, "--from", "2013-01", *AS_OF, "--dry-run")
    text = suffice.text(*words)
    assert "published 0, already published 1, failed 0, left 2; epsilon 1 each" in text
    assert "a grant of epsilon 3 in all covers what is left" in text
    assert "nothing was charged or read" in text
    document = suffice.json(*words)
    assert states(document) == {"2013-01": "left", "2013-02": "already_published", "2013-03": "left"}
    assert document["needed_grant"] == "3"
    assert suffice.json("ledger", "show")["accounts"][0]["spent"] == "1"
    only = suffice.text("backfill", spec, "--from", "2013-02", "--to", "2013-02", *AS_OF, "--dry-run")
    assert "nothing is left" in only


@pytest.mark.slow
def test_a_backfill_stops_at_the_budget_with_a_table(spec: str, suffice: Runner) -> None:
    suffice.json("release", spec, "--window", "2013-02")
    text = suffice.text("backfill", spec, "--from", "2013-01", *AS_OF, status=3)
    assert "published 1, already published 1, failed 0, left 1; epsilon 1 each" in text
    assert "the release asks for 1" in text
    assert "to go on: a grant of epsilon 3 in all" in text
    document = suffice.json("backfill", spec, "--from", "2013-01", *AS_OF, status=3)
    assert states(document) == {
        "2013-01": "already_published",
        "2013-02": "already_published",
        "2013-03": "left",
    }
    assert document["needed_grant"] == "3"
    suffice.json(
        "ledger",
        "grant",
        "passengers",
        "--epsilon",
        document["needed_grant"],
        "--reason",
        "more",
        "--unwitnessed",
    )
    done = suffice.json("backfill", spec, "--from", "2013-01", *AS_OF)
    assert states(done)["2013-03"] == "published"
    assert done["refusal"] is None
    assert suffice.json("status", spec, "--from", "2013-01", *AS_OF)["ok"]


def test_an_interrupted_backfill_is_130_and_names_the_state(
    spec: str, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupted(*arguments: Any, **terms: Any) -> Any:
        outcome = carry_out(*arguments, **terms)
        os.kill(os.getpid(), signal.SIGTERM)
        return outcome

    monkeypatch.setattr(backfilling, "carry_out", interrupted)
    document = suffice.json("backfill", spec, "--from", "2013-01", "--to", "2013-02", status=130)
    assert states(document) == {"2013-01": "published", "2013-02": "left"}
    assert document["error"] == {
        "type": "ReleaseInterruptedError",
        "message": "interrupted: 2013-01 is published; 1 of 2 releases are published; run it again to go on",
        "exit_status": 130,
    }


@pytest.mark.slow
def test_a_backfill_whose_window_fails_prints_its_table_and_the_errors_status(
    spec: str, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("backfill", spec, "--from", "2013-01", *AS_OF)
    work = tree.exact_sums
    calls: list[int] = []

    def fail_from_the_second_on(*arguments: Any, **terms: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError
        return work(*arguments, **terms)

    monkeypatch.setattr(tree, "exact_sums", fail_from_the_second_on)
    text = suffice.text(*words, status=1)
    assert "published 1, already published 0, failed 2, left 0; epsilon 1 each" in text
    assert "suffice: the data could not be read; nothing was drawn, and its epsilon was returned" in text
    document = suffice.json(*words, status=1)
    assert states(document) == {"2013-01": "already_published", "2013-02": "failed", "2013-03": "failed"}
    assert document["error"]["type"] == "StageFailedError"
    assert suffice.json("ledger", "show")["accounts"][0]["spent"] == "1"


def test_a_monitor_is_told_what_is_overdue(spec: str, suffice: Runner) -> None:
    fresh = suffice.json("status", spec, "--from", "2013-03", "--as-of", "2013-03-31T12:00Z")
    assert (fresh["windows"], fresh["ok"]) == ([], True)
    assert "no window has ended" in suffice.text(
        "status", spec, "--from", "2013-03", "--as-of", "2013-03-31T12:00Z"
    )
    early = suffice.json("status", spec, "--from", "2013-03", "--as-of", "2013-04-03T12:00Z")
    assert states(early, "state") == {"2013-03": "missing"}
    late = suffice.json("status", spec, "--from", "2013-02", *AS_OF, status=OVERDUE)
    assert late["windows"] == [
        {
            "window": "2013-02",
            "state": "overdue",
            "ends": "2013-02-28T23:00:00Z",
            "complete": "2013-03-03T23:00:00Z",
            "charge": None,
            "amendment": 0,
            "rows": None,
        },
        {
            "window": "2013-03",
            "state": "overdue",
            "ends": "2013-03-31T22:00:00Z",
            "complete": "2013-04-03T22:00:00Z",
            "charge": None,
            "amendment": 0,
            "rows": None,
        },
    ]
    assert (late["covered"], late["further"]) == (2, 0)
    text = suffice.text("status", spec, "--from", "2013-02", *AS_OF, status=OVERDUE)
    assert "0 published, 0 missing, 2 overdue, 0 withdrawn, 0 not in store" in text
    assert "epsilon 1 each, 2.5 left: covers 2 of 2 to come, and 0 further ones" in text


def test_a_grant_per_window_states_its_time_zone_and_names_its_sources(
    workspace: Workspace, suffice: Runner
) -> None:
    ledger = ("--ledger", f"sqlite:///{workspace.directory}/monthly.db", "--create")
    words = (
        "ledger",
        "grant",
        "monthly",
        "--epsilon",
        "1",
        "--reason",
        "x",
        "--unwitnessed",
        *ledger,
        "--per-window",
    )

    def refused(*more: str, status: int) -> str:
        return str(suffice.json(*words, *more, status=status)["error"]["message"])

    source = ("--source", str(workspace.data))
    assert "--source" in refused("day:month", status=2)
    assert "--per-window" in refused("day:month:Nowhere/City", *source, status=2)
    assert suffice.json(*words, "day:month", *source)["per_window"] == "day:month:UTC"
    assert suffice.json(*words, "day:month:UTC", *source)["per_window"] == "day:month:UTC"
    assert "fixed per window" in refused("day:month:Europe/Berlin", *source, status=3)
    assert "fixed its windows" in refused("day:month", "--source", "/", status=3)


def test_the_page_on_exit_statuses_has_the_monitors() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "exit-statuses.md"
    assert f"| {OVERDUE} | `suffice status`" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_amendment_is_asked_for_by_its_number_and_shown(workspace: Workspace, suffice: Runner) -> None:
    spec = spec_file(
        workspace, statistics=STATISTICS, groups=None, window={**WINDOW, "amend": ["7 days", "4 weeks"]}
    )
    planned = suffice.json("plan", spec)
    assert (planned["amend"], planned["epsilon_per_window"]) == (["7 days", "28 days"], "3")
    assert "amended 7 days and 28 days after a window is complete" in suffice.text("plan", spec)
    words = ("release", spec, "--window", "2013-01")
    refused = suffice.json(*words, "--amendment", "1", status=2)["error"]
    assert "would amend nothing" in refused["message"]
    first = suffice.json(*words)
    assert (first["amendment"], first["amends"], first["amended_by"]) == (0, None, None)
    early = suffice.json(*words, "--amendment", "1", "--as-of", "2013-02-10T00:00Z", status=2)["error"]
    assert "falls due at 2013-02-11T00:00+01:00 (Europe/Berlin)" in early["message"]
    second = suffice.json(*words, "--amendment", "1")
    assert (second["amendment"], second["amends"]) == (1, first["release_id"])
    assert suffice.json("show", "flights@2013-01")["release_id"] == second["release_id"]
    old = suffice.json("show", "flights@2013-01.0")
    assert (old["release_id"], old["amended_by"]) == (first["release_id"], second["release_id"])
    assert f"amended by         release {second['release_id']}, which replaces it" in suffice.text(
        "show", "flights@2013-01.0"
    )
    assert f"amends             release {first['release_id']}, as amendment 1" in suffice.text(
        "show", "flights"
    )
    pooled = ("pool", "cancelled", "--same-data", "flights@2013-01.0", "--same-data", "flights@2013-01")
    for more in ((), ("--vouched",)):
        error = suffice.json(*pooled, *more, status=2)["error"]
        assert "flights@2013-01 (" in error["message"]
        assert "are editions of one release" in error["message"]
    (account,) = suffice.json("ledger", "show")["accounts"]
    assert [(charge["window"], charge["amendment"]) for charge in account["charges"]] == [
        ("2013-01", 0),
        ("2013-01", 1),
    ]
    verified = suffice.json("verify", "flights@2013-01.1", "--ledger", workspace.ledger)
    assert verified["ok"]
