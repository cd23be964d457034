"""A real server and a real worker: schedules, cancellations, and a server that vanishes."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pyarrow as pa
import pytest

import suffice
from suffice.flows.running import limit_name
from suffice.storage.ledger.opening import open_ledger
from support.black_hole import black_hole
from support.making import flights, make_workspace
from support.prefect_server import PLACE, REPORTING, WAITING, Gate, waited_for
from support.scheduled import POOL, ZONE
from support.zones import zone_with_midnight_at

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.prefect_server import PrefectServer

pytestmark = pytest.mark.timeout(900)

FLOW = "suffice.flows.release.release_statistics"
HELD = "support.held_flow.release_statistics"
REPORTING_S = 45.0
"""As the flows have it: reading it there while tests are collected would import Prefect, for a second."""
EVERY_S = 10
SETTLED_S = 8.0
ENDED_S = 15.0
"""Seconds beyond its bound in which a process is gone."""


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_schedule_of_seconds_publishes_two_consecutive_windows_by_itself(
    prefect_server: PrefectServer, zones: Path, tmp_path: Path
) -> None:
    """Midnight falls between two runs that the server makes and the worker starts; nobody triggers them."""
    workspace = days_around_now(tmp_path)
    window = {"column": "day", "every": "day", "time_zone": ZONE}
    spec = workspace.write_spec(name="nightly", window=window)
    asked = {"spec": str(spec), "store": workspace.store, "ledger": workspace.ledger}
    now = dt.datetime.now(dt.UTC)
    (zones / ZONE).write_bytes(zone_with_midnight_at(now + dt.timedelta(seconds=1.5 * EVERY_S)))
    deployment = deploy(
        prefect_server,
        FLOW,
        {"release": {**asked, "window": "latest-complete"}},
        schedules=[{"schedule": {"interval": EVERY_S, "anchor_date": now.isoformat()}}],
    )

    def two_windows() -> list[dict[str, Any]] | None:
        runs = runs_of(prefect_server, deployment)
        ended = [run for run in runs if run["state"]["name"] == "Published"]
        return ended if len(ended) > 1 else None

    runs = waited_for(two_windows, "two windows")
    prefect_server.post(f"/deployments/{deployment}/pause_deployment", {})
    published = windows_of(workspace)
    first, second = (dt.date.fromisoformat(label) for label in published)
    assert second - first == dt.timedelta(days=1)
    assert {run["auto_scheduled"] for run in runs} == {True}
    names = {run["name"] for run in runs}
    assert names == {f"nightly@{label}" for label in published}
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == 2
        assert ledger.count_charges("passengers") == 2


@pytest.mark.slow
def test_cancelled_after_the_draw_says_that_it_is_published(
    prefect_server: PrefectServer, worker: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path)
    asked = {"spec": str(workspace.write_spec()), "store": workspace.store, "ledger": workspace.ledger}
    deployment = deploy(prefect_server, HELD, {"release": asked})
    (worker / "drawn").unlink(missing_ok=True)
    run = prefect_server.post(f"/deployments/{deployment}/create_flow_run", {"state": {"type": "SCHEDULED"}})[
        "id"
    ]
    waited_for(lambda: True if (worker / "drawn").exists() else None, "the draw")
    prefect_server.post(
        f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}}
    )

    prefect_server.ended(run, names={"Interrupted, published"})
    time.sleep(SETTLED_S)  # the runner may write over it, and the hook writes it again
    ended = prefect_server.ended(run, names={"Interrupted, published"})
    assert (ended["name"], ended["type"]) == ("Interrupted, published", "CANCELLED")
    assert ended["message"] == (
        "ReleaseInterruptedError: interrupted after the draw: the charge is published; epsilon 1 is spent"
    )
    assert workspace.account().spent == 1
    assert suffice.open_release("flights", store=workspace.store).loss.epsilon == Fraction(1)

    def ours(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [event for event in events if run in json.dumps(event["related"])]

    (event,) = ours(prefect_server.events("suffice.release.interrupted-published", ours))
    assert event["resource"]["prefect.resource.id"] == "suffice.release.passengers.flights.all"


def test_a_run_has_less_than_a_minute_to_report_its_end() -> None:
    from suffice.flows import running

    assert running.REPORTING_S == REPORTING_S
    assert REPORTING_S + ENDED_S <= 60


@pytest.mark.slow
@pytest.mark.parametrize("bound", [4.0, pytest.param(REPORTING_S, marks=pytest.mark.audit)])
def test_a_run_whose_server_vanishes_ends_in_time_after_publishing(
    prefect_server: PrefectServer, tmp_path: Path, bound: float
) -> None:
    """Without a bound, Prefect's client goes on for minutes: it took 220 s when it was measured."""
    workspace = make_workspace(tmp_path)
    asked = {"spec": str(workspace.write_spec()), "store": workspace.store, "ledger": workspace.ledger}
    run = prefect_server.new_run("release-statistics", {"release": asked})
    gate = Gate(prefect_server)
    environment = prefect_server.environment(
        PREFECT__FLOW_RUN_ID=run,
        PREFECT__FLOW_ENTRYPOINT=HELD,
        **{PLACE: str(tmp_path), REPORTING: str(bound)},
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect.engine"],
        env={**environment, "PREFECT_API_URL": gate.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        waited_for(lambda: True if (tmp_path / "drawn").exists() else None, "the draw")
        gate.shut()
        (tmp_path / "go").touch()
        waited_for(
            lambda: True if str(getattr(workspace.charge(), "state", "")) == "published" else None, "it"
        )
        published = time.monotonic()
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    # Prefect had its time: this is the bound at work.
    assert max(bound - 10, bound / 2) < time.monotonic() - published < bound + ENDED_S
    assert process.returncode == 0
    assert b"Prefect's server did not take this run's end" in errors
    assert workspace.account().spent == 1


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["vanishes", "hangs"])
def test_an_orphan_that_waits_for_its_dataset_ends_in_its_stated_time(
    prefect_server: PrefectServer, tmp_path: Path, loss: str
) -> None:
    """Another run holds the dataset, and nobody ever says that it let go: one lived for 43 minutes so."""
    longest, reporting = 20.0, 8.0
    workspace = make_workspace(tmp_path)
    dataset = f"orphans-{loss}"  # no other test waits for it
    with open_ledger(workspace.ledger) as ledger:
        ledger.grant(dataset, epsilon=Fraction(1), reason="tests")
    asked = {
        "spec": str(workspace.write_spec(dataset=dataset)),
        "store": workspace.store,
        "ledger": workspace.ledger,
    }
    run = prefect_server.new_run("release-statistics", {"release": asked})
    name = limit_name(dataset)
    limit = {"names": [name], "slots": 1, "mode": "concurrency"}
    with suppress(HTTPError):  # another test has made it
        prefect_server.post("/v2/concurrency_limits/", {"name": name, "limit": 1})
    prefect_server.post("/v2/concurrency_limits/increment", limit)
    (tmp_path / "go").touch()
    with black_hole() as hole:
        host, port = prefect_server.url.removesuffix("/api").rsplit(":", 1)
        environment = prefect_server.environment(
            PREFECT__FLOW_RUN_ID=run,
            PREFECT__FLOW_ENTRYPOINT=HELD,
            **{PLACE: str(tmp_path), REPORTING: str(reporting), WAITING: str(longest)},
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect.engine"],
            env={**environment, "PREFECT_API_URL": f"{host}:{hole.lead_to(int(port))}/api"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            waited_for(lambda: prefect_server.run(run)["name"] == "flights" or None, "the run's name")
            time.sleep(SETTLED_S / 4)
            assert process.poll() is None
            with open_ledger(workspace.ledger) as ledger:
                assert ledger.find(dataset, "flights", "all") is None, "it waits"
            lost = time.monotonic()
            if loss == "hangs":
                hole.swallows.set()
            else:
                hole.close()
            process.wait(120)
            assert time.monotonic() - lost < longest + reporting + ENDED_S
        finally:
            process.kill()
            prefect_server.post("/v2/concurrency_limits/decrement", {**limit, "occupancy_seconds": 1})
    assert process.returncode == 0
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account(dataset).spent == 1
    assert suffice.open_release("flights", store=workspace.store).loss.epsilon == Fraction(1)


def deploy(server: PrefectServer, entrypoint: str, parameters: dict[str, Any], **more: Any) -> str:
    """Make a deployment in the worker's pool, and return its id."""
    flow = server.post("/flows/", {"name": "release-statistics"})["id"]
    asked = {
        "name": f"test-{time.monotonic_ns()}",
        "flow_id": flow,
        "work_pool_name": POOL,
        "entrypoint": entrypoint,
        "path": ".",
        "parameters": parameters,
        **more,
    }
    return str(server.post("/deployments/", asked)["id"])


def runs_of(server: PrefectServer, deployment: str) -> list[dict[str, Any]]:
    """Return the runs of a deployment."""
    runs: list[dict[str, Any]] = server.post(
        "/flow_runs/filter", {"deployments": {"id": {"any_": [deployment]}}}
    )
    return runs


def windows_of(workspace: Workspace) -> list[str]:
    """Return the windows that are published, in order."""
    with open_ledger(workspace.ledger) as ledger:
        charges = list(ledger.charges("passengers"))
    return sorted(charge.window for charge in charges if str(charge.state) == "published")


def days_around_now(directory: Path) -> Workspace:
    """Make a place whose rows lie in the days around this one."""
    table = flights(600)
    today = dt.datetime.now(dt.UTC).date().toordinal()
    days = [dt.date.fromordinal(today - 3 + row % 6) for row in range(600)]
    return make_workspace(directory, table=table.set_column(1, "day", pa.array(days)))
