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

TEMPLATES = {
    "pinned": Path("deploy/prefect/process-pool.json"),
    "docker": Path("deploy/prefect/docker-pool.json"),
    "kubernetes": Path("deploy/prefect/kubernetes-pool.json"),
    "kubernetes-dask": Path("deploy/prefect/kubernetes-dask-pool.json"),
}
FREE = ("name", "labels", "stream_output")


@pytest.fixture
def outcomes(answer: dict[str, Any]) -> dict[str, Any]:
    """Return how each run ended."""
    by_kind: dict[str, Any] = answer["outcomes"]
    return by_kind


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
    runs: dict[str, dict[str, Any]] = {
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
    for pool in ("docker", "kubernetes", "kubernetes-dask"):
        runs[pool] = {**runs["variables"], "pool": pool, "parameters": spec(place, pool)}
    templates = {
        pool: json.loads((repository / path).read_text(encoding="utf-8")) for pool, path in TEMPLATES.items()
    }
    request = {
        "pools": {"open": None, **templates},
        "runs": runs,
        "attack": {**runs["variables"]["job_variables"], "image": "attacker/image:1", "namespace": "other"},
    }
    finished = subprocess.run(
        [sys.executable, "-m", "support.prefect_pool", json.dumps(request)],
        env=prefect_server.environment(SUFFICE_CONFIG=str(place.directory / "suffice.toml")),
        capture_output=True,
        text=True,
        check=False,
        cwd=place.directory,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    document: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return document


@pytest.mark.slow
def test_the_attack_works_where_variables_are_open(place: Workspace, outcomes: dict[str, Any]) -> None:
    assert outcomes["control"]["state"] == "COMPLETED", outcomes
    assert charged(other_ledger(place)) == ["control"]


def test_a_callers_variables_are_refused(place: Workspace, outcomes: dict[str, Any]) -> None:
    """By the server, for every kind of pool; Kubernetes' and Docker's need no worker to show it."""
    for name in ("variables", "docker", "kubernetes", "kubernetes-dask"):
        assert outcomes[name]["state"] == "REFUSED", outcomes
        assert "Additional properties are not allowed" in outcomes[name]["message"]
    assert charged(place.ledger) == []
    assert charged(other_ledger(place)) == ["control"]
    assert not (place.directory / "intruded").exists()


def test_variables_that_got_past_the_server_would_have_no_effect(
    place: Workspace, answer: dict[str, Any]
) -> None:
    """No template takes them up; with Prefect's own, the control, a run is started with them."""
    filled = answer["filled"]
    telling = (other_ledger(place), "intruded", "attacker/image:1", "stolen", '"other"')
    control = json.dumps(filled.pop("open"))
    assert all(text in control for text in telling[:2])
    assert set(filled) == set(TEMPLATES)
    for pool, configuration in filled.items():
        assert not any(text in json.dumps(configuration) for text in telling), pool
        assert (configuration["env"], configuration["command"]) == ({}, None), pool


def test_a_callers_ledger_is_refused(place: Workspace, outcomes: dict[str, Any]) -> None:
    assert outcomes["parameter"]["state"] == "FAILED", outcomes
    assert "PinnedError: ledger: this lies outside" in outcomes["parameter"]["message"]
    assert "parameter" not in charged(other_ledger(place)) + charged(place.ledger)


def test_the_template_is_prefects_without_what_callers_may_not_set(
    repository: Path, answer: dict[str, Any]
) -> None:
    """Held against Prefect's own template, so that a new version's variables are looked at."""
    theirs = answer["default_template"]
    ours = json.loads((repository / TEMPLATES["pinned"]).read_text(encoding="utf-8"))
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
