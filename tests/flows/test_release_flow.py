"""The flow on a real Prefect server: what it publishes and returns; no data value reaches Prefect."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import suffice
from suffice.flows.embedded import embedded_environment, run_embedded
from suffice.storage.ledger.opening import open_ledger
from support.canaries import CANARY_NUMBER, CANARY_TEXT, holds_canary
from support.making import Workspace, flights, make_workspace, mapping
from support.prefect_server import Webhook, waited_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.prefect_server import PrefectServer

pytestmark = pytest.mark.timeout(1800)  # the first test waits for a Prefect server


RUNS = """
import json, sys
from pathlib import Path
import pytest, yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.utilities.asyncutils import run_coro_as_sync
from suffice.flows.release import release_statistics
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from support.leaking import leaks, sought_in

def fail(*_):
    raise RuntimeError

async def automate(file, webhook):
    block = CustomWebhookNotificationBlock(
        name="alerts", url=webhook, json_data={"subject": "{{subject}}", "body": "{{body}}"}
    )
    block_id = await block.save("suffice-alerts")
    text = Path(file).read_text().replace("BLOCK_ID", str(block_id))
    async with get_client() as client:
        await client.create_automation(AutomationCore.model_validate(yaml.safe_load(text)))

request = json.loads(sys.argv[1])
run_coro_as_sync(automate(request["automation"], request["webhook"]))
parameters_of = request["parameters"]
sought = sought_in(load_spec(parameters_of["good"]["spec"]))
sought.add_noise(pytest.MonkeyPatch())
outcomes = {}
for name, parameters in parameters_of.items():
    patch = pytest.MonkeyPatch()
    if name == "staging":
        patch.setattr(SqlLedger, "stage", fail)
    try:
        outcomes[name] = {"uri": release_statistics(parameters)}
    except Exception as error:
        outcomes[name] = {"error": str(error), "context": repr(error.__context__)}
        outcomes[name]["leaks"] = leaks(error, sought, without=("/prefect/", "<string>"))
    patch.undo()
outcomes["sought"] = sorted(set(sought.numbers.values()))
print(json.dumps(outcomes))
"""

ENDINGS = {
    "good": ("Published", "COMPLETED"),
    "again": ("Already published", "COMPLETED"),
    "corrupt": ("Failed", "FAILED"),
    "schema": ("Refused: spec", "FAILED"),
    "budget": ("Refused: budget", "FAILED"),
    "password": ("Refused: spec", "FAILED"),
    "staging": ("Spent, not published", "FAILED"),
}


def canary_table() -> pa.Table:
    """Return rows in which the canaries stand as keys, categories, values and group keys."""
    table = flights(400)
    texts = np.array(table["carrier"].to_pylist(), dtype=object)
    texts[::7] = CANARY_TEXT
    origins = np.array(table["origin"].to_pylist(), dtype=object)
    origins[::11] = CANARY_TEXT
    delays = np.asarray(table["arr_delay"]).copy()
    delays[::5] = CANARY_NUMBER
    return (
        table.set_column(2, "carrier", pa.array(texts, type=pa.string()))
        .set_column(0, "origin", pa.array(origins, type=pa.string()))
        .set_column(4, "arr_delay", pa.array(delays))
        .set_column(5, "stops", pa.array(np.full(400, CANARY_NUMBER)))
    )


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    """Return an address that keeps what is posted to it."""
    with Webhook() as made:
        yield made


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
    prefect_server: PrefectServer,
    webhook: Webhook,
    repository: Path,
) -> dict[str, Any]:
    """Run the flow in one process: once well, once for each way of failing."""
    directory = tmp_path_factory.mktemp("flow")
    workspace = make_workspace(directory, table=canary_table())
    corrupt = directory / "corrupt"
    corrupt.mkdir()
    good = next(iter(sorted(workspace.data.iterdir()))).read_bytes()
    (corrupt / "a.parquet").write_bytes(
        good[:4] + CANARY_TEXT.encode() * 20 + good[4 + 20 * len(CANARY_TEXT) :]
    )
    specs = {
        "good": mapping(workspace.data),
        "corrupt": mapping(corrupt, name="corrupt"),
        "schema": mapping(
            workspace.data, name="schema", statistics={"x": {"family": "bernoulli", "column": "carrier"}}
        ),
        "budget": mapping(
            workspace.data, name="budget", privacy={"epsilon": "11", "neighboring": "add_or_remove_one"}
        ),
    }
    parameters: dict[str, dict[str, Any]] = {}
    for name, spec in specs.items():
        path = directory / f"{name}.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        parameters[name] = {"spec": str(path), "store": workspace.store, "ledger": workspace.ledger}
    parameters["again"] = parameters["good"]
    other = make_workspace(directory / "other", table=canary_table())
    parameters["staging"] = {**parameters["good"], "store": other.store, "ledger": other.ledger}
    parameters["password"] = {**parameters["good"], "ledger": "postgresql://owner:hunter2@db/ledger"}
    parameters["corrupt"] |= {"reading_attempts": 2, "reading_pause": 0}
    request = {
        "parameters": parameters,
        "automation": str(repository / "deploy/prefect/budget-automation.yaml"),
        "webhook": webhook.url,
    }
    environment = {
        **prefect_server.environment(),
        # The worst settings a team could have: everything persisted, everything printed is logged.
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
        "PREFECT_LOGGING_LOG_PRINTS": "true",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "suffice,dask,distributed",
        "PREFECT_LOGGING_LEVEL": "DEBUG",
    }
    finished = subprocess.run(
        [sys.executable, "-c", RUNS, json.dumps(request)],
        env=environment,
        capture_output=True,
        check=False,
        cwd=directory,
    )
    assert finished.returncode == 0, finished.stderr.decode()
    (directory / "stdout.log").write_bytes(finished.stdout)
    (directory / "stderr.log").write_bytes(finished.stderr)
    return {
        "outcomes": json.loads(finished.stdout.decode().splitlines()[-1]),
        "place": workspace,
        "home": prefect_server.home,
        "server": prefect_server,
        "directory": directory,
    }


def test_the_flow_publishes_and_returns_the_uri(runs: dict[str, Any]) -> None:
    uri = runs["outcomes"]["good"]["uri"]
    release = suffice.open_release(uri)
    assert release.name == "flights"
    assert runs["outcomes"]["again"]["uri"] == uri
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
    assert {"an exact total", "an exact sum", "noise", "a noisy value"} <= set(runs["outcomes"]["sought"])


def test_a_canary_in_the_data_is_found_nowhere_else(runs: dict[str, Any]) -> None:
    workspace: Workspace = runs["place"]
    places = [runs["directory"], runs["home"]]
    outside = [path for place in places for path in place.rglob("*") if path.is_file()]
    outside = [
        path
        for path in outside
        if not {workspace.data, runs["directory"] / "other/data"} & set(path.parents)
        and path.parent.name != "corrupt"
    ]
    assert any(path.name == "prefect.db" for path in outside)
    assert any(path.name == "ledger.db" for path in outside)
    found = [path.name for path in outside if holds_canary(path)]
    assert found == []


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
    found = flow_runs(runs)
    ended = [(run["state"]["name"], run["state"]["type"]) for run in found]
    assert sorted(ended) == sorted(ENDINGS.values())


def test_runs_are_named_and_tagged_by_what_they_release(runs: dict[str, Any]) -> None:
    named = {run["name"]: run["tags"] for run in flow_runs(runs)}
    assert named["flights"] == ["flights", "passengers"]
    assert named["budget"] == ["budget", "passengers"]


def test_what_is_spent_is_said(runs: dict[str, Any]) -> None:
    messages = {run["state"]["name"]: run["state"]["message"] for run in flow_runs(runs)}
    assert messages["Published"].endswith("epsilon 1 was charged, 9 remains")
    assert messages["Already published"].endswith("epsilon 0 was charged, 9 remains")
    assert messages["Spent, not published"].endswith("epsilon 1 is spent")
    assert "nothing was drawn, and its epsilon was returned" in messages["Failed"]


def test_only_reading_is_tried_again(runs: dict[str, Any]) -> None:
    """The corrupt file was read twice, each time for a charge of its own that was given back."""
    with open_ledger(runs["place"].ledger) as ledger:
        attempts = [one for one in ledger.charges("passengers") if one.name == "corrupt"]
    assert [(one.attempt, str(one.state), one.counts_as) for one in attempts] == [
        (1, "abandoned", "returned"),
        (2, "abandoned", "returned"),
    ]
    other = f"sqlite:///{runs['directory'] / 'other/ledger.db'}"
    with open_ledger(other) as ledger:
        assert ledger.count_charges("passengers") == 1


def test_every_ending_has_its_event(runs: dict[str, Any]) -> None:
    found = runs["server"].events("suffice.release.")
    ours = {
        (event["event"].removeprefix("suffice.release."), event["resource"]["prefect.resource.id"])
        for event in found
    }
    assert {
        ("published", "suffice.release.passengers.flights.all"),
        ("already-published", "suffice.release.passengers.flights.all"),
        ("refused-budget", "suffice.release.passengers.budget.all"),
        ("refused-spec", "suffice.release.passengers.schema.all"),
        ("refused-spec", "suffice.release"),
        ("failed", "suffice.release.passengers.corrupt.all"),
        ("spent-not-published", "suffice.release.passengers.flights.all"),
    } <= ours
    published = next(event for event in found if event["event"] == "suffice.release.published")
    assert published["payload"]["uri"] == runs["outcomes"]["good"]["uri"]
    assert (published["payload"]["epsilon"], published["payload"]["remaining"]) == ("1", "9")


def test_the_automation_tells_of_an_exhausted_budget_and_of_nothing_else(
    runs: dict[str, Any], webhook: Webhook
) -> None:
    (told,) = waited_for(lambda: webhook.posted or None, "the automation")
    assert told["subject"] == "budget: refused for lack of epsilon"
    assert "epsilon 9 left of 10, the release asks for 11" in told["body"]
    with open_ledger(runs["place"].ledger) as ledger:
        assert ledger.account("passengers").spent == 1


def test_a_page_shows_the_release_and_a_table_the_account(runs: dict[str, Any]) -> None:
    found = runs["server"].post("/artifacts/filter", {"limit": 100})
    (page,) = {one["data"] for one in found if one["key"] == "release-flights" and "Published" in one["data"]}
    uri = runs["outcomes"]["good"]["uri"]
    release = suffice.open_release(uri)
    for text in (
        uri,
        "| epsilon | 1 |",
        "| remaining epsilon | 9 |",
        *(one["path"] for one in release.files),
    ):
        assert text in page
    tables = [json.loads(one["data"]) for one in found if one["key"] == "account-passengers"]
    row = {"account": "passengers", "window": "all time", "granted": "10", "spent": "1", "reserved": "0"}
    assert [{**row, "remaining": "9"}] in tables


def flow_runs(runs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return this module's runs, as the server has them."""
    found = runs["server"].post("/flow_runs/filter", {"limit": 200})
    return [run for run in found if str(runs["directory"]) in json.dumps(run["parameters"])]


def test_a_deployments_schema_refuses_passwords() -> None:
    """Asked in a process of its own: importing Prefect here would start its machinery in the test run."""
    script = (
        "import json; from suffice.flows.release import release_statistics as flow;"
        "print(json.dumps(flow.parameters.model_dump()))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"},
    )
    schema = json.loads(finished.stdout.splitlines()[-1])
    import jsonschema  # type: ignore[import-untyped]

    validator = jsonschema.Draft202012Validator(schema)

    def is_valid(**fields: Any) -> bool:
        return bool(validator.is_valid({"release": {"spec": "release.yaml", **fields}}))

    assert is_valid()
    assert is_valid(ledger="postgresql://owner@db/ledger")
    assert is_valid(ledger=None, store="s3://bucket/releases", cluster="tls://scheduler:8786")
    for url in ("postgresql://owner:hunter2@db/ledger", "postgresql://db/ledger?user=a&password=b"):
        assert not is_valid(ledger=url)
    assert not is_valid(unknown=1)
    assert not is_valid(publish_timeout=-1)
    assert not is_valid(reading_attempts=0)
    assert not is_valid(window="2013-1")
    assert not is_valid(cluster="everywhere")
    fields = schema["definitions"]["ReleaseParameters"]["properties"]
    described = {name: field.get("description") for name, field in fields.items()}
    places = {"spec", "window", "store", "ledger", "cluster"}
    patience = {"reading_attempts", "reading_pause", "publish_timeout"}
    assert set(described) == places | patience | {"allow_open"}
    assert all(described.values())


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


def test_a_failed_embedded_run_names_its_log(tmp_path: Path) -> None:
    with pytest.raises(suffice.SufficeError, match=r"flow\.log"):
        run_embedded({"unknown": "parameter"}, tmp_path / "home", log=tmp_path / "flow.log")
    assert (tmp_path / "flow.log").stat().st_size > 0
