"""A table that DuckDB sums, from the command line: plan, rehearse, release, show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from suffice import open_release
from support.hostile import bernoulli, normal
from support.making import Workspace, flights, make_workspace, mapping
from support.running import Runner

if TYPE_CHECKING:
    from pathlib import Path

STATISTICS = {"cancelled": bernoulli("cancelled"), "delay": normal("arr_delay", "-60", "180")}
ROWS = 30_000


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    place = make_workspace(tmp_path, granted="1000", table=flights(ROWS))
    monkeypatch.setenv("SUFFICE_LEDGER", place.ledger)
    monkeypatch.setenv("SUFFICE_STORE", place.store)
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{place.data}/*.parquet'")  # noqa: S608
    return place


def spec_of(workspace: Workspace, **source: Any) -> str:
    named = {"duckdb": str(workspace.directory / "rows.duckdb"), "table": "main.t", **source}
    privacy = {"epsilon": "100", "neighboring": "add_or_remove_one", "unit": "row"}
    content = mapping(named, statistics=STATISTICS, groups=None, privacy=privacy)
    path = workspace.directory / "release.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def test_a_release_is_planned_rehearsed_made_and_shown(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    suffice = Runner(capsys)
    read = suffice.json("plan", spec_of(workspace))
    spec = spec_of(workspace, push_down=True)
    assert suffice.json("plan", spec) == read
    refused = suffice.json("release", spec, "--cluster", "local", status=2)["error"]["message"]
    assert "source.push_down: DuckDB sums the rows in the calling process" in refused
    assert suffice.json("rehearse", spec)["stages"][-1]["stage"] == "publishing"
    assert workspace.account().remaining == 1000
    files = {path.name for path in workspace.directory.iterdir()}
    made = suffice.json("release", spec)
    assert (made["status"], made["remaining_epsilon"]) == ("published", "900")
    shown = suffice.json("show", "flights")
    assert shown["release_id"] == made["release_id"]
    table = open_release("flights", store=workspace.store).table("cancelled")
    (counted,) = (float(row["estimate"]) for row in table if row["quantity"] == "n")
    assert abs(counted - ROWS) < 100
    assert {path.name for path in workspace.directory.iterdir()} == files
    assert suffice.json("release", spec)["status"] == "already_published"
