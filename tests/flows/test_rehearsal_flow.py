"""The flow of a rehearsal on a real Prefect server: its states, its table, and that nothing was charged."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.making import make_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from support.prefect_server import PrefectServer

pytestmark = pytest.mark.timeout(600)

RUNS = """
import json, sys
from suffice.flows.rehearsal import rehearse_release

for asked in json.loads(sys.argv[1]):
    state = rehearse_release(asked, return_state=True)
    print(json.dumps({"name": state.name, "type": state.type.value, "message": state.message}))
"""


@pytest.mark.slow
def test_a_rehearsal_ends_in_a_state_of_its_own(prefect_server: PrefectServer, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    places = {"store": workspace.store, "ledger": workspace.ledger}
    asked = []
    for name, changes in {"rehearsed": {}, "refused": {"groups": {"gate": ["A"]}}}.items():
        path = tmp_path / f"{name}.json"
        path.write_text(workspace.write_spec(name=name, **changes).read_text(encoding="utf-8"))
        asked.append({"spec": str(path), **places})
    finished = subprocess.run(
        [sys.executable, "-c", RUNS, json.dumps(asked)],
        env=prefect_server.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    rehearsed, refused = (json.loads(line) for line in finished.stdout.splitlines()[-2:])
    assert (rehearsed["name"], rehearsed["type"]) == ("Rehearsed", "COMPLETED")
    assert rehearsed["message"] == "10 stages worked; no row was read, nothing was charged"
    assert (refused["name"], refused["type"]) == ("Rehearsal failed", "FAILED")
    assert refused["message"].startswith("source: SchemaError: groups.gate")
    (table,) = [
        json.loads(artifact["data"])
        for artifact in prefect_server.post("/artifacts/filter", {"limit": 100})
        if artifact["key"] == "rehearsal-refused"
    ]
    assert table[-1] == {"stage": "source", "tried": "failed"}
    events = prefect_server.events("suffice.rehearsal", lambda events: len(events) >= 2)
    assert {event["event"] for event in events} == {
        "suffice.rehearsal.completed",
        "suffice.rehearsal.failed",
    }
    assert workspace.account().spent == workspace.account().reserved == 0
    assert workspace.charge("rehearsed") is None
