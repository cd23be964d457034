"""The flow on a real Prefect server: what it publishes and returns; no data value reaches Prefect."""

from __future__ import annotations

import base64
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.flows.embedded import embedded_environment, run_embedded
from suffice.storage.ledger.opening import open_ledger
from support.canaries import CANARY_NUMBER, CANARY_TEXT, holds_canary
from support.flow_runs import PUBLISHED_ALL_THE_SAME
from support.prefect_server import waited_for

if TYPE_CHECKING:
    from pathlib import Path

    from support.prefect_server import Webhook

pytestmark = pytest.mark.timeout(1800)  # the first test waits for a Prefect server

ENDINGS = {
    "good": ("Published", "COMPLETED"),
    "again": ("Already published", "COMPLETED"),
    "corrupt": ("Failed", "FAILED"),
    "schema": ("Refused: spec", "FAILED"),
    "budget": ("Refused: budget", "FAILED"),
    "password": ("Refused: spec", "FAILED"),
    "staging": ("Spent, not published", "FAILED"),
}


def test_the_flow_publishes_and_returns_the_uri(runs: dict[str, Any]) -> None:
    uri = runs["outcomes"]["good"]["uri"]
    release = suffice.open_release(uri)
    assert release.name == "flights"
    # Another run holds the dataset meanwhile: what is published is found without it.
    assert runs["outcomes"]["again"]["uri"] == uri
    assert list(release.statistics) == ["carrier", "cancelled", "stops", "arr_delay"]
    sample = release.samples("drawn")
    assert sample.values.shape == (3, 3)
    assert ((sample.indices >= 0) & (sample.indices < 33)).all()
    with open_ledger(runs["place"].ledger) as ledger:
        assert ledger.account("passengers").spent == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("corrupt", "StageFailedError"),
        ("schema", "SchemaError"),
        ("budget", "BudgetExceededError"),
        ("password", "change the password"),
        ("staging", "StageFailedError"),
    ],
)
def test_failures_are_typed_and_without_context(runs: dict[str, Any], name: str, text: str) -> None:
    outcome = runs["outcomes"][name]
    assert text in outcome["error"]
    assert outcome["context"] == "None"
    assert "hunter2" not in outcome["error"]
    assert outcome["leaks"] == []


def test_what_was_sought_in_the_flows_errors_is_exact(runs: dict[str, Any]) -> None:
    assert {"an exact total", "an exact sum", "noise", "a noisy value", "a score"} <= set(
        runs["outcomes"]["sought"]
    )


def test_a_canary_in_the_data_is_found_nowhere_else(runs: dict[str, Any]) -> None:
    places = [runs["directory"], runs["home"]]
    outside = [path for place in places for path in place.rglob("*") if path.is_file()]
    outside = [path for path in outside if path.parent.name not in {"data", "corrupt"}]
    assert any(path.name == "prefect.db" for path in outside)
    assert any(path.name == "ledger.db" for path in outside)
    leaking = [path.name for path in outside if holds_canary(path)]
    assert leaking == []


def test_the_scan_sees_a_canary_where_there_is_one(runs: dict[str, Any], tmp_path: Path) -> None:
    """The positive control: plain, UTF-16, base64, hex, compressed inside Parquet, and inside a database."""
    assert any(holds_canary(path) for path in runs["place"].data.iterdir())
    for index, content in enumerate(
        [
            CANARY_TEXT.encode(),
            CANARY_TEXT.encode("utf-16-le"),
            base64.b64encode(b"x" + CANARY_TEXT.encode()),
            CANARY_TEXT.encode().hex().encode(),
            str(CANARY_NUMBER).encode(),
            CANARY_NUMBER.to_bytes(8, "little"),
        ]
    ):
        path = tmp_path / str(index)
        path.write_bytes(b"before" + content + b"after")
        assert holds_canary(path)
    database = tmp_path / "x.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create table t (a text)")
        connection.execute("insert into t values (?)", (CANARY_TEXT,))
    connection.close()
    assert holds_canary(database)


def test_every_ending_is_a_state_of_its_own(runs: dict[str, Any]) -> None:
    """Parameters and states are there, so the scan above looked at the real thing."""
    ended = [(run["state"]["name"], run["state"]["type"]) for run in release_runs(runs)]
    assert sorted(ended) == sorted(ENDINGS.values())


def test_runs_are_named_and_tagged_by_what_they_release(runs: dict[str, Any]) -> None:
    named = {run["name"]: run["tags"] for run in release_runs(runs)}
    assert named["flights"] == ["flights", "passengers"]
    assert named["budget"] == ["budget", "passengers"]


def test_what_is_spent_is_said(runs: dict[str, Any]) -> None:
    messages = {run["state"]["name"]: run["state"]["message"] for run in release_runs(runs)}
    assert messages["Published"].endswith("epsilon 1 was charged, 9 remains")
    assert messages["Already published"].endswith("epsilon 0 was charged, 9 remains")
    assert messages["Spent, not published"].endswith("epsilon 1 is spent")
    assert "nothing was drawn, and its epsilon was returned" in messages["Failed"]


def test_only_reading_is_tried_again(runs: dict[str, Any]) -> None:
    """The corrupt file was read twice, each time for a charge of its own that was given back."""
    with open_ledger(runs["place"].ledger) as ledger:
        attempts = [charge for charge in ledger.charges("passengers") if charge.name == "corrupt"]
    assert [(attempt.attempt, str(attempt.state), attempt.counts_as) for attempt in attempts] == [
        (1, "abandoned", "returned"),
        (2, "abandoned", "returned"),
    ]
    other = f"sqlite:///{runs['directory'] / 'other/ledger.db'}"
    with open_ledger(other) as ledger:
        assert ledger.count_charges("passengers") == 1


def test_every_ending_has_its_event(runs: dict[str, Any]) -> None:
    expected = {
        ("published", "suffice.release.passengers.flights.all"),
        ("already-published", "suffice.release.passengers.flights.all"),
        ("refused-budget", "suffice.release.passengers.budget.all"),
        ("refused-spec", "suffice.release.passengers.schema.all"),
        ("refused-spec", "suffice.release"),
        ("failed", "suffice.release.passengers.corrupt.all"),
        ("spent-not-published", "suffice.release.passengers.flights.all"),
    }

    def has_all(events: list[dict[str, Any]]) -> bool:
        return expected <= {
            (
                event["event"].removeprefix("suffice.release."),
                event["resource"]["prefect.resource.id"],
            )
            for event in events
        }

    seen = runs["server"].events("suffice.release.", has_all)
    published = next(event for event in seen if event["event"] == "suffice.release.published")
    assert published["payload"]["uri"] == runs["outcomes"]["good"]["uri"]
    assert (published["payload"]["epsilon"], published["payload"]["remaining"]) == ("1", "9")


def test_the_automation_tells_of_an_exhausted_budget_and_of_nothing_else(
    runs: dict[str, Any], webhook: Webhook
) -> None:
    waited_for(lambda: len(webhook.posted) > 1 or None, "the automation")
    told = {post["subject"].partition(": refused")[0]: post["body"] for post in webhook.posted}
    assert len(told) == len(webhook.posted)
    assert set(told) == {"budget", "short@2013-01..2013-05"}
    assert "epsilon 9 left of 10, the release asks for 11" in told["budget"]
    assert "a grant of epsilon 8 in all covers what is left" in told["short@2013-01..2013-05"]
    with open_ledger(runs["place"].ledger) as ledger:
        assert ledger.account("passengers").spent == 1


def test_a_page_shows_the_release_and_a_table_the_account(runs: dict[str, Any]) -> None:
    artifacts = runs["server"].post("/artifacts/filter", {"limit": 100})
    (page,) = {
        artifact["data"]
        for artifact in artifacts
        if artifact["key"] == "release-flights" and "Published" in artifact["data"]
    }
    uri = runs["outcomes"]["good"]["uri"]
    release = suffice.open_release(uri)
    for text in (
        uri,
        "| epsilon | 1 |",
        "| remaining epsilon | 9 |",
        *(file["path"] for file in release.files),
    ):
        assert text in page
    tables = [
        json.loads(artifact["data"]) for artifact in artifacts if artifact["key"] == "account-passengers"
    ]
    row = {
        "account": "passengers",
        "measure": "epsilon",
        "window": "all time",
        "granted": "10",
        "spent": "1",
        "reserved": "0",
    }
    assert [{**row, "remaining": "9"}] in tables


def release_runs(runs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return this module's runs of ``release_statistics``, as the server has them."""
    asked = {"flows": {"name": {"any_": ["release-statistics"]}}, "limit": 200}
    flow_runs = runs["server"].post("/flow_runs/filter", asked)
    ours = [run for run in flow_runs if str(runs["directory"]) in json.dumps(run["parameters"])]
    return [run for run in ours if "release" in run["parameters"]]


def test_prefects_own_cancelled_is_written_over(runs: dict[str, Any]) -> None:
    ended = runs["server"].run(runs["cancelled"])["state"]
    assert {key: ended[key] for key in PUBLISHED_ALL_THE_SAME} == PUBLISHED_ALL_THE_SAME


def test_an_embedded_run_inherits_no_prefect_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setenv("PREFECT_API_KEY", "secret")
    environment = embedded_environment(tmp_path)
    assert "PREFECT_API_URL" not in environment
    assert "PREFECT_API_KEY" not in environment
    assert environment["PREFECT_HOME"] == str(tmp_path)
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["home", pytest.param("parameters", marks=pytest.mark.audit)])
def test_a_failed_embedded_run_names_its_log(tmp_path: Path, broken: str) -> None:
    """Prefect refuses a broken home at once; it starts a server before it refuses parameters."""
    (tmp_path / "home").mkdir()
    if broken == "home":
        (tmp_path / "home" / "profiles.toml").write_text("no TOML", encoding="utf-8")
    with pytest.raises(suffice.SufficeError, match=r"flow\.log"):
        run_embedded({"unknown": "parameter"}, tmp_path / "home", log=tmp_path / "flow.log")
    assert (tmp_path / "flow.log").stat().st_size > 0
