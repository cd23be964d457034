"""What the tests of the flows share: one process that runs every flow once, and one worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zoneinfo
from typing import TYPE_CHECKING, Any

import pytest

from support.canaries import CANARY_TEXT, canary_table
from support.flow_runs import PUBLISHED_ALL_THE_SAME
from support.hidden_states import publish_crashes
from support.making import make_workspace, mapping
from support.prefect_server import PLACE, Webhook, running_worker
from support.samples import drawn
from support.scheduled import POOL, ZONE, Scheduled, as_the_how_to_says

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.making import Workspace
    from support.prefect_server import PrefectServer

WINDOWS = {
    "statistics": {
        "carrier": {"family": "categorical", "column": "carrier", "categories": ["UA", "DL"], "other": True},
        "stops": {"family": "poisson", "column": "stops", "upper": 5},
    },
    "groups": None,
    "window": {"column": "day", "every": "month"},
}


@pytest.fixture(scope="package")
def webhook() -> Iterator[Webhook]:
    """Return an address that keeps what is posted to it."""
    with Webhook() as made:
        yield made


@pytest.fixture(scope="package")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
    prefect_server: PrefectServer,
    webhook: Webhook,
    repository: Path,
) -> dict[str, Any]:
    """Run every flow in one process: well, and once for each way of failing."""
    directory = tmp_path_factory.mktemp("flow")
    workspace = make_workspace(directory, table=canary_table())
    other = make_workspace(directory / "other", table=canary_table())
    windows = make_workspace(directory / "windows", granted="6.5", table=canary_table())
    in_rho = make_workspace(directory / "rho", granted="0.07", measure="rho", table=canary_table())
    run = prefect_server.new_run("release-statistics", {})
    for state in (PUBLISHED_ALL_THE_SAME, {"type": "CANCELLED", "name": "Cancelled"}):
        prefect_server.post(f"/flow_runs/{run}/set_state", {"state": state, "force": True})
    request = {
        "releases": releases(workspace, other),
        "others": others(other, windows, in_rho),
        "cancelled": run,
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
        "SUFFICE_LOG": "json",
        "SUFFICE_METRICS": str(directory / "counts"),
    }
    finished = subprocess.run(
        [sys.executable, "-m", "support.flow_runs", json.dumps(request)],
        env=environment,
        capture_output=True,
        check=False,
        cwd=directory,
    )
    assert finished.returncode == 0, finished.stderr.decode()
    (directory / "stdout.log").write_bytes(finished.stdout)
    (directory / "stderr.log").write_bytes(finished.stderr)
    document = json.loads(finished.stdout.decode().splitlines()[-1])
    return {
        "outcomes": document["releases"],
        "others": document["others"],
        "place": workspace,
        "windows": windows,
        "in rho": in_rho,
        "home": prefect_server.home,
        "server": prefect_server,
        "directory": directory,
        "cancelled": run,
    }


def releases(workspace: Workspace, other: Workspace) -> dict[str, dict[str, Any]]:
    """Return the parameters of releases by what becomes of them."""
    corrupt = workspace.directory / "corrupt"
    corrupt.mkdir()
    good = next(iter(sorted(workspace.data.iterdir()))).read_bytes()
    (corrupt / "a.parquet").write_bytes(
        good[:4] + CANARY_TEXT.encode() * 20 + good[4 + 20 * len(CANARY_TEXT) :]
    )
    specs = {
        "good": mapping(
            workspace.data, statistics={**mapping("")["statistics"], "drawn": drawn("cancelled", draws="3")}
        ),
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
        path = workspace.directory / f"{name}.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        parameters[name] = {"spec": str(path), "store": workspace.store, "ledger": workspace.ledger}
    parameters["again"] = parameters["good"]
    parameters["staging"] = {**parameters["good"], "store": other.store, "ledger": other.ledger}
    parameters["password"] = {**parameters["good"], "ledger": "postgresql://owner:hunter2@db/ledger"}
    parameters["corrupt"] |= {"reading_attempts": 2, "reading_pause": 0}
    return parameters


def others(other: Workspace, windows: Workspace, in_rho: Workspace) -> dict[str, dict[str, Any]]:
    """Return what the other flows are asked for, in their order, and what breaks meanwhile."""
    asked = {}
    for name, last in (("broken", "2013-03"), ("short", "2013-05")):
        path = windows.directory / f"{name}.json"
        path.write_text(json.dumps(mapping(windows.data, name=name, **WINDOWS)), encoding="utf-8")
        place = {"store": windows.store, "ledger": windows.ledger}
        asked[name] = {"spec": str(path), "first": "2013-01", "last": last, **place}
    privacy = {"rho": "0.02", "neighboring": "add_or_remove_one"}
    rho_spec = in_rho.write_spec(name="in-rho", privacy=privacy, **WINDOWS)
    asked["in rho"] = {
        "spec": str(rho_spec),
        "first": "2013-01",
        "last": "2013-03",
        "store": in_rho.store,
        "ledger": in_rho.ledger,
    }
    at_other = {"store": other.store, "ledger": other.ledger}
    nowhere = {"ledger": f"sqlite:///{windows.directory}/none.db"}
    model = {
        "release": "crashes",
        "chain": ["STATE"],
        "time": ["YEAR", "MONTH"],
        "statistics": ["drunk"],
        "states": 2,
        "out": str(other.directory / "models"),
        "store": publish_crashes(other.directory / "crashes")[0],
    }
    question = {
        "release": "crashes@latest",
        "statistics": ["drunk"],
        "prior": "Beta(1, 3)",
        "where": {"STATE": "AK", "YEAR": "2013"},
        "draws": 100,
        "store": model["store"],
        "to": str(other.directory / "posteriors"),
    }
    secret = {**asked["short"], "ledger": "postgresql://owner:hunter2@db/ledger"}
    return {
        "broken": {"flow": "backfill", "parameters": asked["broken"], "broken": "second staging"},
        "unsettled": {"flow": "recover", "parameters": place, "broken": "store"},
        "resumed": {"flow": "backfill", "parameters": asked["broken"]},
        "short": {"flow": "backfill", "parameters": asked["short"]},
        "in rho": {"flow": "backfill", "parameters": asked["in rho"]},
        "secret": {"flow": "backfill", "parameters": secret},
        "recovered": {"flow": "recover", "parameters": at_other},
        "unrecovered": {"flow": "recover", "parameters": nowhere},
        "audited": {"flow": "audit", "parameters": {"ledger": windows.ledger, "full": True}},
        "unaudited": {"flow": "audit", "parameters": at_other, "broken": "manifest"},
        "fitted": {"flow": "model", "parameters": model},
        "fitted again": {"flow": "model", "parameters": model},
        "posted": {"flow": "publication", "parameters": question},
        "posted again": {"flow": "publication", "parameters": question},
        "unposted": {"flow": "publication", "parameters": {**question, "prior": "/etc/passwd"}},
        "unfitted": {"flow": "model", "parameters": {**model, "store": "s3://key:hunter2@bucket/releases"}},
    }


@pytest.fixture(scope="package")
def zones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder where the worker's runs look for time zones first."""
    folder = tmp_path_factory.mktemp("zones")
    (folder / ZONE).parent.mkdir()
    return folder


@pytest.fixture(scope="package")
def scheduled(
    prefect_server: PrefectServer, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Scheduled:
    """Do what the how-to says up to its worker."""
    return as_the_how_to_says(prefect_server, repository, tmp_path_factory.mktemp("scheduled"))


@pytest.fixture(scope="package")
def worker(
    prefect_server: PrefectServer,
    scheduled: Scheduled,
    zones: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """Run a worker of the how-to's pool, and return the folder that holds what its held flows wait for."""
    place = tmp_path_factory.mktemp("worker")
    more = {
        PLACE: str(place),
        "PYTHONTZPATH": os.pathsep.join([str(zones), *zoneinfo.TZPATH]),
        "SUFFICE_LEDGER": scheduled.place.ledger,
        "SUFFICE_STORE": scheduled.place.store,
    }
    with running_worker(prefect_server, POOL, place / "worker.log", **more):
        yield place
