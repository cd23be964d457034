"""Backfill, recovery, audit and models on a real Prefect server: their states, events and pages."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import suffice
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.publications.publication_store import PublicationStore

if TYPE_CHECKING:
    from suffice.storage.publications.publication import Publication

pytestmark = pytest.mark.timeout(1800)  # the first test waits for a Prefect server

ENDINGS = {
    "broken": ("Spent, not published", "FAILED"),
    "unsettled": ("Not recovered", "FAILED"),
    "resumed": ("Backfilled", "COMPLETED"),
    "short": ("Refused: budget", "FAILED"),
    "in rho": ("Backfilled", "COMPLETED"),
    "secret": ("Refused: spec", "FAILED"),
    "recovered": ("Recovered", "COMPLETED"),
    "unrecovered": ("Failed", "FAILED"),
    "audited": ("Verified", "COMPLETED"),
    "unaudited": ("Not verified", "FAILED"),
    "fitted": ("Fitted", "COMPLETED"),
    "fitted again": ("Not fitted", "FAILED"),
    "posted": ("Published", "COMPLETED"),
    "posted again": ("Already published", "COMPLETED"),
    "unposted": ("Not published", "FAILED"),
    "unfitted": ("Not fitted", "FAILED"),
}
BROKEN = "suffice.backfill.passengers.broken.2013-01..2013-03"
SHORT = "suffice.backfill.passengers.short.2013-01..2013-05"
EVENTS = {
    "broken": ("suffice.backfill.spent-not-published", BROKEN),
    "unsettled": ("suffice.ledger.not-recovered", "suffice.ledger"),
    "resumed": ("suffice.backfill.completed", BROKEN),
    "short": ("suffice.backfill.refused-budget", SHORT),
    "in rho": ("suffice.backfill.completed", "suffice.backfill.passengers.in-rho.2013-01..2013-03"),
    "secret": ("suffice.backfill.refused-spec", "suffice.backfill"),
    "recovered": ("suffice.ledger.recovered", "suffice.ledger"),
    "unrecovered": ("suffice.ledger.failed", "suffice.ledger"),
    "audited": ("suffice.ledger.verified", "suffice.ledger"),
    "unaudited": ("suffice.ledger.not-verified", "suffice.ledger"),
    "fitted": ("suffice.model.fitted", "suffice.model.crashes.crashes"),
    "fitted again": ("suffice.model.failed", "suffice.model"),
    "posted": ("suffice.publication.published", "suffice.publication.crashes.crashes.{publication_id}"),
    "posted again": (
        "suffice.publication.already-published",
        "suffice.publication.crashes.crashes.{publication_id}",
    ),
    "unposted": ("suffice.publication.failed", "suffice.publication"),
    "unfitted": ("suffice.model.failed", "suffice.model"),
}


def event(runs: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the one event of a run."""
    run = runs["others"][name]["run"]

    def ours(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [each for each in events if run in json.dumps(each["related"])]

    (of_run,) = ours(runs["server"].events("suffice.", ours))
    return of_run


def publication(runs: dict[str, Any]) -> Publication:
    """Return the one that the flow published."""
    (only_publication,) = PublicationStore.open(runs["directory"] / "other/posteriors").all()
    return only_publication


def tables(runs: dict[str, Any], name: str) -> dict[str, list[dict[str, str]]]:
    """Return the tables on a run's page, by key."""
    asked = {"flow_runs": {"id": {"any_": [runs["others"][name]["run"]]}}}
    artifacts = runs["server"].post("/artifacts/filter", asked)
    return {
        artifact["key"]: json.loads(artifact["data"]) for artifact in artifacts if artifact["type"] == "table"
    }


def statuses(runs: dict[str, Any], name: str, key: str) -> list[str]:
    return [row["status"] for row in tables(runs, name)[key]]


@pytest.mark.parametrize("name", ENDINGS)
def test_every_ending_is_a_state_with_an_event(runs: dict[str, Any], name: str) -> None:
    outcome = runs["others"][name]
    state = runs["server"].run(outcome["run"])["state"]
    assert (state["name"], state["type"]) == ENDINGS[name] == tuple(outcome["ended"]), outcome
    emitted = event(runs, name)
    subject = EVENTS[name][1].format(publication_id=publication(runs).publication_id)
    assert (emitted["event"], emitted["resource"]["prefect.resource.id"]) == (EVENTS[name][0], subject)
    assert emitted["payload"]["message"] == outcome["message"] == state["message"]
    assert "hunter2" not in json.dumps(emitted) + outcome["message"]


def test_a_backfill_whose_window_drew_and_failed_shows_what_was_done(runs: dict[str, Any]) -> None:
    message = runs["others"]["broken"]["message"]
    assert message.startswith(
        "3 releases for epsilon 1 each: 1 published, 0 already published, 1 failed, 1 left; "
        "2013-02 failed; StageFailedError: "
    )
    assert statuses(runs, "broken", "backfill-broken") == ["published", "failed", "left"]
    (account,) = tables(runs, "broken")["account-passengers"]
    assert (account["spent"], account["remaining"]) == ("1", "4.5")  # that of the draw is reserved yet
    assert event(runs, "broken")["payload"] | {"message": ""} == {
        "message": "",
        "published": "1",
        "already_published": "0",
        "failed": "1",
        "left": "1",
    }


def test_the_same_backfill_again_goes_on_without_another_draw(runs: dict[str, Any]) -> None:
    assert statuses(runs, "resumed", "backfill-broken") == ["already published", "published", "published"]
    assert [bool(row["release"]) for row in tables(runs, "resumed")["backfill-broken"]] == [False, True, True]
    with open_ledger(runs["windows"].ledger) as ledger:
        attempts = [
            (charge.window, charge.attempt)
            for charge in ledger.charges("passengers")
            if charge.name == "broken"
        ]
    assert attempts == [("2013-01", 1), ("2013-02", 1), ("2013-03", 1)]


def test_a_backfill_at_the_end_of_the_budget_says_what_covers_the_rest(runs: dict[str, Any]) -> None:
    assert statuses(runs, "short", "backfill-short") == ["published"] * 3 + ["left"] * 2
    message = runs["others"]["short"]["message"]
    assert "3 published, 0 already published, 0 failed, 2 left" in message
    assert message.endswith(
        "epsilon 0.5 left of 6.5, the release asks for 1; a grant of epsilon 8 in all covers what is left"
    )
    run = runs["server"].run(runs["others"]["short"]["run"])
    assert (run["name"], run["tags"]) == ("short@2013-01..2013-05", ["passengers", "short"])


def test_a_backfill_of_an_account_in_rho_says_rho(runs: dict[str, Any]) -> None:
    message = runs["others"]["in rho"]["message"]
    assert message.startswith("3 releases for rho 0.02 each: 3 published, ")
    assert "epsilon" not in message
    (account,) = tables(runs, "in rho")["account-passengers"]
    assert (account["spent"], account["remaining"]) == ("0.06", "0.01")
    assert runs["in rho"].account().remaining == Fraction("0.01")


def test_a_recovery_says_what_it_did_about_each_charge(runs: dict[str, Any]) -> None:
    assert runs["others"]["recovered"]["message"] == "1 charge looked at, 1 published, 0 left"
    (row,) = tables(runs, "recovered")["recovery"]
    assert (row["action"], row["before"], row["after"]) == ("published", "drawing", "published")
    assert runs["others"]["unsettled"]["message"] == "1 charge looked at, 0 published, 1 left"
    (row,) = tables(runs, "unsettled")["recovery"]
    assert (row["name"], row["window"], row["action"]) == ("broken", "2013-02", "left")
    assert row["problem"]
    assert runs["others"]["unrecovered"]["message"].startswith("LedgerMissingError: ")
    assert tables(runs, "unrecovered") == {}


def test_an_audit_tells_what_is_wrong_and_where(runs: dict[str, Any]) -> None:
    assert runs["others"]["audited"]["message"].endswith(" and 1 store examined: all is well")
    assert tables(runs, "audited") == {}
    assert runs["others"]["unaudited"]["message"].endswith(" and 1 store examined: 2 problems")
    rows = tables(runs, "unaudited")["audit"]
    assert {row["where"] for row in rows} == {str(runs["directory"] / "other/releases")}
    missing, left = (row["problem"].partition(": ")[2] for row in rows)
    assert missing == "its charge is published, and no manifest stands there"
    assert left.startswith("no manifest names what stands there")


def test_a_model_is_fitted_once_and_its_folder_is_there_whole(runs: dict[str, Any]) -> None:
    folder = runs["directory"] / "other/models/crashes@all-2-states"
    assert sorted(path.name for path in folder.iterdir()) == [
        "cells.parquet",
        "emissions.png",
        "parameters.parquet",
        "states.png",
        "summary.json",
        "trace.png",
        "transitions.png",
    ]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert (summary["states"], summary["statistics"]) == (2, ["drunk"])
    assert str(folder) in runs["others"]["fitted"]["message"]
    shown = tables(runs, "fitted")
    assert [row["state"] for row in shown["hidden-states-crashes"]] == ["1", "2"]
    assert "it exists, and is not replaced" in runs["others"]["fitted again"]["message"]
    assert "holds a password" in runs["others"]["unfitted"]["message"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.slow
def test_a_publication_is_what_the_command_line_publishes(runs: dict[str, Any]) -> None:
    """Under the same id; its page says what was asked, and Prefect holds no number of it."""
    published = publication(runs)
    store = runs["directory"] / "other/crashes"
    again = suffice.publish(
        "crashes",
        "drunk",
        prior="Beta(1, 3)",
        where={"STATE": "AK", "YEAR": "2013"},
        draws=100,
        store=next(
            place
            for place in (store, store / "releases")
            if (place / "suffice.json").exists() or (place / "crashes").exists()
        ),
        to=runs["directory"] / "elsewhere",
    )
    assert again.publication_id == published.publication_id
    assert {file.sha256 for file in again.files if file.format == "parquet"} == {
        file.sha256 for file in published.files if file.format == "parquet"
    }
    asked = {"flow_runs": {"id": {"any_": [runs["others"]["posted"]["run"]]}}}
    (page,) = [
        artifact["data"]
        for artifact in runs["server"].post("/artifacts/filter", asked)
        if artifact["type"] == "markdown"
    ]
    assert "Beta(1, 3)" in page
    assert published.publication_id in page
    (summaries,) = [file for file in published.files if file.role == "summaries" and file.format == "parquet"]
    mean = pq.read_table(io.BytesIO(published.read(summaries.name)))["mean"][0].as_py()
    run = runs["server"].run(runs["others"]["posted"]["run"])
    for digits in (f"{mean:.4f}", f"{mean:.6g}"):
        assert digits not in page + json.dumps(run)
    assert runs["others"]["unposted"]["message"].startswith("PriorError: ")
