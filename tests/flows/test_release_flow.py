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
from support.making import Workspace, flights, make_workspace, mapping

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(1800)  # the first test waits for a Prefect server

CANARY_TEXT = "canary-7f3a9c51"
CANARY_NUMBER = 918273645

RUNS = """
import json, sys
from pathlib import Path
import pytest
from suffice.flows.release import ReleaseFlowError, release_statistics
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from support.leaking import leaks, sought_in

def fail(*_):
    raise RuntimeError

parameters_of = json.loads(sys.argv[1])
sought = sought_in(load_spec(parameters_of["good"]["spec"]))
sought.add_noise(pytest.MonkeyPatch())
outcomes = {}
for name, parameters in parameters_of.items():
    patch = pytest.MonkeyPatch()
    if name == "staging":
        patch.setattr(SqlLedger, "stage", fail)
    try:
        outcomes[name] = {"uri": release_statistics(**parameters)}
    except ReleaseFlowError as error:
        outcomes[name] = {"error": str(error), "context": repr(error.__context__)}
        outcomes[name]["leaks"] = leaks(error, sought, without=("/prefect/", "<string>"))
    patch.undo()
outcomes["sought"] = sorted(set(sought.numbers.values()))
print(json.dumps(outcomes))
"""


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
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the flow in one process with one embedded server: once well, once for each way of failing."""
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
    parameters = {}
    for name, spec in specs.items():
        path = directory / f"{name}.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        parameters[name] = {"spec": str(path), "store": workspace.store, "ledger": workspace.ledger}
    parameters["again"] = parameters["good"]
    other = make_workspace(directory / "other", table=canary_table())
    parameters["staging"] = {**parameters["good"], "store": other.store, "ledger": other.ledger}
    parameters["password"] = {**parameters["good"], "ledger": "postgresql://owner:hunter2@db/ledger"}
    home = directory / "prefect"
    home.mkdir()
    environment = {
        **embedded_environment(home),
        # The worst settings a team could have: everything persisted, everything printed is logged.
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
        "PREFECT_LOGGING_LOG_PRINTS": "true",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "suffice,dask,distributed",
        "PREFECT_LOGGING_LEVEL": "DEBUG",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    finished = subprocess.run(
        [sys.executable, "-c", RUNS, json.dumps(parameters)],
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
        "home": home,
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
    outside = [path for path in runs["directory"].rglob("*") if path.is_file()]
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


def test_what_prefect_stores_is_public(runs: dict[str, Any]) -> None:
    """Parameters and states are there, so the scan above looked at the real thing."""
    with sqlite3.connect(f"file:{runs['home'] / 'prefect.db'}?mode=ro", uri=True) as connection:
        parameters = connection.execute("select parameters from flow_run").fetchall()
        states = connection.execute("select type from flow_run_state").fetchall()
    connection.close()
    assert len(parameters) == 7
    assert {"COMPLETED", "FAILED"} <= {state for (state,) in states}


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
    assert validator.is_valid({"spec": "release.yaml"})
    assert validator.is_valid({"spec": "release.yaml", "ledger": "postgresql://owner@db/ledger"})
    assert validator.is_valid({"spec": "release.yaml", "ledger": None, "store": "s3://bucket/releases"})
    for url in ("postgresql://owner:hunter2@db/ledger", "postgresql://db/ledger?user=a&password=b"):
        assert not validator.is_valid({"spec": "release.yaml", "ledger": url})
    assert set(schema["properties"]) == {"spec", "window", "store", "ledger", "cluster", "publish_timeout"}


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


def holds_canary(path: Path) -> bool:
    """Scan a file's bytes, and the decoded columns of Parquet, for either canary in every form."""
    if path.suffix == ".parquet":
        try:
            columns = pa.parquet.read_table(path).to_pydict()
        except (pa.ArrowException, OSError):
            columns = {}
        if any(value in {CANARY_TEXT, CANARY_NUMBER} for column in columns.values() for value in column):
            return True
    content = path.read_bytes()
    text = CANARY_TEXT.encode()
    shifted = [base64.b64encode(b"." * shift + text)[4:-4] for shift in range(3)]
    forms = [text, CANARY_TEXT.encode("utf-16-le"), text.hex().encode(), *shifted]
    numbers = [
        str(CANARY_NUMBER).encode(),
        CANARY_NUMBER.to_bytes(8, "little"),
        np.float64(CANARY_NUMBER).tobytes(),
    ]
    return any(form in content for form in [*forms, *numbers])
