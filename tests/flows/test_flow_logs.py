"""What flows write as lines of JSON: from start to end of each run, with its charge, and refusals counted."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from suffice.monitoring.records import COUNTS_FOLDER, FIELDS, read_counts
from suffice.storage.ledger.opening import open_ledger

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def logs(runs: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each flow run; what else is there, Prefect wrote."""
    directory: Path = runs["directory"]
    by_run = defaultdict(list)
    for line in (directory / "stderr.log").read_text(encoding="utf-8").splitlines():
        if line.startswith('{"event"'):
            document = json.loads(line)
            by_run[document["run"]].append(document)
    return dict(by_run)


@pytest.mark.slow
def test_every_run_has_its_lines_from_start_to_end(logs: dict[str, list[dict[str, Any]]]) -> None:
    assert len(logs) >= 20
    for lines in logs.values():
        assert (lines[0]["event"], lines[-1]["event"]) == ("started", "ended")
        assert [line["line"] for line in lines] == list(range(1, len(lines) + 1))
        assert {line["started"] for line in lines} == {lines[0]["started"]}
        assert {name for line in lines for name in line} <= FIELDS.keys()
        assert lines[-1]["ending"]


def test_a_releases_last_line_names_its_charge(
    runs: dict[str, Any], logs: dict[str, list[dict[str, Any]]]
) -> None:
    with open_ledger(runs["place"].ledger) as ledger:
        charge = ledger.find("passengers", "flights", "all")
    assert charge is not None
    ended = [lines[-1] for lines in logs.values() if lines[-1].get("charge") == charge.charge_id]
    assert {line["ending"] for line in ended} == {"Published", "Already published"}
    assert {line["release_id"] for line in ended} == {charge.release_id}
    assert {line["command"] for line in ended} == {"release-statistics"}
    assert {(line["dataset"], line["name"], line["window"]) for line in ended} == {
        ("passengers", "flights", "all")
    }


def test_refusals_and_the_last_audit_are_counted(
    runs: dict[str, Any], logs: dict[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COUNTS_FOLDER, str(runs["directory"] / "counts"))
    counted = read_counts()
    assert counted is not None
    ended = [lines[-1]["ending"] for lines in logs.values()]
    assert counted.refusals == {
        kind: ended.count(f"Refused: {kind}") for kind in ("budget", "account", "spec")
    }
    assert counted.refusals["budget"] >= 2
    assert counted.audit is not None
    assert not counted.audit.ok, "the last audit missed a manifest"
