"""Who may submit runs to a work pool chooses neither the ledger nor the profile, on a real Prefect server.

The control is a pool with Prefect's own template: there a caller's variables do reach the run, so the
same attack moves the charge to the caller's ledger.
"""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.making import make_workspace
from support.profiles import pinning, write_profile

if TYPE_CHECKING:
    from support.making import Workspace
    from support.prefect_server import PrefectServer

pytestmark = pytest.mark.timeout(900)  # a server and three runs start Python and Prefect five times

TEMPLATE = Path("deploy/prefect/process-pool.json")
FREE = ("name", "labels", "stream_output")


@pytest.fixture
def outcomes(answer: dict[str, Any]) -> dict[str, Any]:
    """Return how each run ended."""
    found: dict[str, Any] = answer["outcomes"]
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A deployment whose ledger is pinned, beside a caller's ledger with an account of the same name."""
    workspace = make_workspace(tmp_path_factory.mktemp("pool"))
    with create_ledger(other_ledger(workspace)) as ledger:
        ledger.grant("passengers", epsilon=Fraction(100), reason="a way around the budget")
    write_profile(workspace.directory / "suffice.toml", **pinning(workspace))
    return workspace


@pytest.fixture(scope="module")
def answer(place: Workspace, repository: Path, prefect_server: PrefectServer) -> dict[str, Any]:
    """Submit the attacks, and work them off with a worker whose environment names the profile."""
    attack = {
        "env": {
            "SUFFICE_LEDGER": other_ledger(place),
            "SUFFICE_CONFIG": "",
            "SUFFICE_STORE": f"{place.directory}/stolen",
        },
        "env.SUFFICE_LEDGER": other_ledger(place),
    }
    intrusion = f"{sys.executable} -c \"open('{place.directory}/intruded', 'w')\""
    runs = {
        "control": {"pool": "open", "job_variables": attack, "parameters": spec(place, "control")},
        "variables": {
            "pool": "pinned",
            "job_variables": {**attack, "command": intrusion, "working_dir": "/"},
            "parameters": spec(place, "variables"),
        },
        "parameter": {
            "pool": "pinned",
            "job_variables": {},
            "parameters": {"release": {**spec(place, "parameter")["release"], "ledger": other_ledger(place)}},
        },
    }
    template = json.loads((repository / TEMPLATE).read_text(encoding="utf-8"))
    request = {"pools": {"open": None, "pinned": template}, "runs": runs}
    finished = subprocess.run(
        [sys.executable, "-m", "support.prefect_pool", json.dumps(request)],
        env=prefect_server.environment(SUFFICE_CONFIG=str(place.directory / "suffice.toml")),
        capture_output=True,
        text=True,
        check=False,
        cwd=place.directory,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return found


def test_the_attack_works_where_variables_are_open(place: Workspace, outcomes: dict[str, Any]) -> None:
    assert outcomes["control"]["state"] == "COMPLETED", outcomes
    assert charged(other_ledger(place)) == ["control"]


def test_a_callers_variables_have_no_effect(place: Workspace, outcomes: dict[str, Any]) -> None:
    assert outcomes["variables"]["state"] in {"COMPLETED", "REFUSED"}, outcomes
    assert "variables" not in charged(other_ledger(place))
    if outcomes["variables"]["state"] == "COMPLETED":
        assert charged(place.ledger) == ["variables"]
    assert not (place.directory / "intruded").exists()


def test_a_callers_ledger_is_refused(place: Workspace, outcomes: dict[str, Any]) -> None:
    assert outcomes["parameter"]["state"] == "FAILED", outcomes
    assert "PinnedError: ledger: this lies outside" in outcomes["parameter"]["message"]
    assert "parameter" not in charged(other_ledger(place)) + charged(place.ledger)


def test_the_template_is_prefects_without_what_callers_may_not_set(
    repository: Path, answer: dict[str, Any]
) -> None:
    """Held against Prefect's own template, so that a new version's variables are looked at."""
    theirs = answer["default_template"]
    ours = json.loads((repository / TEMPLATE).read_text(encoding="utf-8"))
    closed = {"env", "command", "working_dir"}
    assert set(theirs["variables"]["properties"]) == {*FREE, *closed}
    assert ours["variables"]["properties"] == {name: theirs["variables"]["properties"][name] for name in FREE}
    # `env` does not even stand there empty: Prefect merges a caller's into one that does.
    assert ours["job_configuration"] == {name: theirs["job_configuration"][name] for name in FREE}


def other_ledger(place: Workspace) -> str:
    """Return the URL of the caller's ledger."""
    return f"sqlite:///{place.directory}/other.db"


def spec(place: Workspace, name: str) -> dict[str, dict[str, str]]:
    """Write a spec of this name, and return the parameters of its release."""
    path = place.directory / f"{name}.json"
    path.write_text(place.write_spec(name=name).read_text(encoding="utf-8"), encoding="utf-8")
    return {"release": {"spec": str(path)}}


def charged(ledger: str) -> list[str]:
    """Return the names of the releases that a ledger was charged for."""
    with open_ledger(ledger) as opened:
        return [charge.name for charge in opened.charges("passengers")]
