"""Nights with every real part, and with a death in each: what is published, what is spent, what is told.

Prefect's server and worker, a Dask scheduler and a reading process with TLS between them, PostgreSQL as
source and as ledger, releases in S3. A schedule of seconds goes by itself; then the flow, the worker, the
server and the scheduler are killed in turn; then the budget runs out.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import signal
import subprocess
import sys
import time
import zoneinfo
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import make_url

from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.release_store import open_store
from support.buckets import BUCKET, s3_server, variables
from support.canaries import CANARY_NUMBER, CANARY_TEXT, FORMS, holds_canary
from support.making import flights, mapping
from support.night import Night
from support.postgres import VARIABLE, connect, execute
from support.postgres_tables import write_postgresql
from support.prefect_server import FINAL, Webhook, waited_for
from support.zones import zone_with_midnight_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.postgres import Server
    from support.prefect_server import PrefectServer

pytestmark = [pytest.mark.audit, pytest.mark.timeout(900)]

RELEASE = "suffice.flows.release.release_statistics"
HELD = "support.held_flow.release_statistics"
RECOVER = "suffice.flows.recover.recover_charges"
REHEARSAL = "suffice.flows.rehearsal.rehearse_release"
ZONE = "Test/MidnightSoon"
EVERY_S = 20
GRANTS = {"passengers": 2, "flow": 1, "worker": 1, "server": 1, "scheduler": 1}
"""Two nights by schedule; one for each that dies, in an account of its own: a run that was killed holds its
dataset for minutes, and none waits for another's."""

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Story:
    """What happens in the nights, one method each, and what came of it.

    Attributes
    ----------
    zones : Path
        Where processes look for time zones first.
    specs : dict of str to str
        For each account, the path of its spec of a window for each day.
    scheduled : list of dict
        The runs that the schedule made.
    states : dict of str to str
        Of the run of each death, the name of its last state.
    failures : dict of str to str
        Of each step that did not come to its end, why; the others went on.
    """

    night: Night
    zones: Path
    specs: dict[str, str]
    ledger: str
    store: str
    webhook: Webhook
    automation: str
    today: dt.date
    scheduled: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def server(self) -> PrefectServer:
        """The Prefect server."""
        return self.night.prefect_server

    def live(self) -> None:
        """Start everything, and take each step; log how long it took."""
        steps = (
            self.rehearse,
            self.go_by_schedule,
            self.kill_flow,
            self.kill_worker,
            self.kill_server,
            self.kill_scheduler,
            self.exhaust,
        )
        self.start()
        for step in steps:
            begin = time.monotonic()
            try:
                step()
            except (AssertionError, OSError) as error:
                self.failures[step.__name__] = str(error)
            _log.info("%s: %.0f s", step.__name__, time.monotonic() - begin)

    def start(self) -> None:
        """Start everything, and make the automation that is shipped."""
        self.night.start()
        subprocess.run(
            [sys.executable, "-m", "support.budget_alert", self.automation, self.webhook.url],
            env=self.server.environment(),
            check=True,
        )

    def rehearse(self) -> None:
        """Rehearse a day over all of this: the books say later that it cost nothing."""
        run = self.night.run(self.night.deploy(REHEARSAL, self.asked("passengers")))
        self.states["rehearsal"] = self.server.ended(run)["name"]

    def go_by_schedule(self) -> None:
        """Wait until the schedule has published two days, with midnight between them, and found one again."""
        now = dt.datetime.now(dt.UTC)
        midnight = now + dt.timedelta(seconds=1.5 * EVERY_S)
        (self.zones / ZONE).write_bytes(zone_with_midnight_at(midnight))
        deployment = self.night.deploy(
            RELEASE,
            {"release": {"spec": self.specs["passengers"], "window": "latest-complete"}},
            schedules=[{"schedule": {"interval": EVERY_S, "anchor_date": now.isoformat()}}],
        )

        def three_runs() -> list[dict[str, Any]] | None:
            ended = [run for run in self.night.runs_of(deployment) if run["state"]["type"] == "COMPLETED"]
            names = [run["state"]["name"] for run in ended]
            return ended if names.count("Published") == 2 and "Already published" in names else None

        self.scheduled = waited_for(three_runs, "two windows, and one that was found")
        self.server.post(f"/deployments/{deployment}/pause_deployment", {})

    def kill_flow(self) -> None:
        """Kill the process that has drawn; the flow that recovers publishes what it left."""
        run = self.drawn("flow")
        pid = self.server.run(run)["infrastructure_pid"].rpartition(":")[2]
        os.kill(int(pid), signal.SIGKILL)
        self.states["flow"] = self.server.ended(run)["name"]
        assert self.is_published("flow") is None
        self.server.ended(self.night.run(self.night.deploy(RECOVER, {})), names={"Recovered"})
        assert self.is_published("flow")

    def kill_worker(self) -> None:
        """Kill the worker while its flow has drawn."""
        run = self.drawn("worker")
        self.night.worker.kill()
        (self.night.directory / "go").touch()
        self.states["worker"] = self.server.ended(run)["name"]
        self.night.worker.start()

    def kill_server(self) -> None:
        """Kill the server while a flow has drawn; it is back before the flow gives up telling it."""
        run = self.drawn("server")
        self.night.server.kill()
        (self.night.directory / "go").touch()
        waited_for(lambda: self.is_published("server"), "the publication without a server")
        self.night.server.start()
        self.night.wait_for_server()
        self.states["server"] = self.server.ended(run)["name"]

    def kill_scheduler(self) -> None:
        """Kill the scheduler and who reads, while a task reads; both are started again."""
        (self.night.directory / "hold").touch()
        run = self.night.run(self.night.deploy(RELEASE, self.asked("scheduler", reading_attempts=5)))
        self.wait_for_file("reading", run)
        self.night.scheduler.kill()
        self.night.reader.kill()
        (self.night.directory / "hold").unlink()
        self.night.scheduler.start()
        self.night.reader.start()
        self.states["scheduler"] = self.server.ended(run)["name"]

    def exhaust(self) -> None:
        """Ask for one more than was granted."""
        run = self.night.run(self.night.deploy(RELEASE, self.asked("passengers")))
        self.states["budget"] = self.server.ended(run)["name"]
        waited_for(lambda: self.webhook.posted or None, "the automation")

    def asked(self, account: str, **more: Any) -> dict[str, Any]:
        """Return the parameters of a release of a day that has long ended."""
        return {"release": {"spec": self.specs[account], "window": self.past_day, "reading_pause": 1, **more}}

    @property
    def past_day(self) -> str:
        """The label of a day that no schedule asks for."""
        return (self.today - dt.timedelta(days=5)).isoformat()

    def is_published(self, account: str) -> bool | None:
        """Whether the ledger has an account's past day as published; None where not."""
        with open_ledger(self.ledger) as ledger:
            charge = ledger.find(account, f"nightly-{account}", self.past_day)
        return True if charge is not None and str(charge.state) == "published" else None

    def drawn(self, account: str) -> str:
        """Start a run that is held between its draw and its publication, and return its id."""
        for name in ("drawn", "go"):
            (self.night.directory / name).unlink(missing_ok=True)
        run = self.night.run(self.night.deploy(HELD, self.asked(account)))
        self.wait_for_file("drawn", run)
        return run

    def wait_for_file(self, name: str, run: str) -> None:
        """Wait until a held run has made a file; fail at once where the run has ended."""

        def made() -> bool | None:
            state = self.server.run(run)["state"]
            assert state["type"] not in FINAL, f"{state['name']}: {state['message']}"
            return True if (self.night.directory / name).exists() else None

        waited_for(made, name)


@dataclass(frozen=True)
class Log:
    """PostgreSQL's log since the test began: every statement, with its parameters."""

    path: Path
    start: int

    def read(self) -> bytes:
        """Return what was logged."""
        return self.path.read_bytes()[self.start :]


def hostile_rows(now: dt.datetime) -> pa.Table:
    """Return rows around this day, with canaries as keys, categories, values and beyond bounds."""
    table = flights(2000)
    texts = np.array(table["carrier"].to_pylist(), dtype=object)
    texts[::7] = CANARY_TEXT
    origins = np.array(table["origin"].to_pylist(), dtype=object)
    origins[::11] = CANARY_TEXT
    delays = np.asarray(table["arr_delay"]).copy()
    delays[::5] = CANARY_NUMBER
    delays[1::9] = np.inf
    days = [now.date() - dt.timedelta(days=row % 16 - 2) for row in range(2000)]
    return (
        table.set_column(0, "origin", pa.array(origins, pa.string()))
        .set_column(1, "day", pa.array(days))
        .set_column(2, "carrier", pa.array(texts, pa.string()))
        .set_column(4, "arr_delay", pa.array(delays))
        .set_column(5, "stops", pa.array(np.full(2000, CANARY_NUMBER)))
    )


@pytest.fixture(scope="module")
def postgres_log(postgres_server: Server) -> Iterator[Log]:
    """Have our own server log all statements."""
    folder = make_url(postgres_server.url).query.get("host")
    if VARIABLE in os.environ or not folder:
        pytest.skip("the log of a server that somebody else runs cannot be read here")
    path = Path(str(folder)) / "log"
    execute(postgres_server.url, "ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()")
    yield Log(path, path.stat().st_size)
    execute(postgres_server.url, "ALTER SYSTEM RESET log_statement", "SELECT pg_reload_conf()")


@pytest.fixture(scope="module")
def story(
    postgres_server: Server,
    postgres_log: Log,  # noqa: ARG001 - from the first statement on
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    """Live through the nights, and return what came of them."""
    directory = tmp_path_factory.mktemp("night")
    ledger, source = postgres_server.new_database(), postgres_server.new_database()
    store = f"s3://{BUCKET}/releases"
    zones = directory / "zones"
    (zones / ZONE).parent.mkdir(parents=True)
    now = dt.datetime.now(dt.UTC)
    (zones / ZONE).write_bytes(zone_with_midnight_at(now))
    window = {"column": "day", "every": "day", "time_zone": ZONE}
    with ExitStack() as stack:
        s3, _ = stack.enter_context(s3_server())
        webhook = stack.enter_context(Webhook())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        environment = {
            **variables(s3),
            "SUFFICE_LEDGER": ledger,
            "SUFFICE_STORE": store,
            "SUFFICE_POSTGRESQL": source,
            "PYTHONTZPATH": os.pathsep.join([str(zones), *zoneinfo.TZPATH]),
        }
        for name, text in environment.items():
            patch.setenv(name, text)
        source_entry = write_postgresql(hostile_rows(now))
        specs = {account: directory / f"{account}.json" for account in GRANTS}
        with create_ledger(ledger) as opened:
            for account, epsilon in GRANTS.items():
                asked = mapping(source_entry, name=f"nightly-{account}", dataset=account, window=window)
                specs[account].write_text(json.dumps(asked), encoding="utf-8")
                opened.grant(account, epsilon=Fraction(epsilon), reason="nights")
        settings = repository / "deploy/prefect/server.env"
        night = Night(directory=directory, variables=environment, server_settings=settings)
        stack.callback(night.end)
        lived = Story(
            night=night,
            zones=zones,
            specs={account: str(path) for account, path in specs.items()},
            ledger=ledger,
            store=store,
            webhook=webhook,
            automation=str(repository / "deploy/prefect/budget-automation.yaml"),
            today=now.date(),
        )
        lived.live()
        yield lived


def test_a_schedule_publishes_two_windows_and_finds_one_again(story: Story) -> None:
    published = sorted(run["name"] for run in story.scheduled if run["state"]["name"] == "Published")
    first, second = (dt.date.fromisoformat(name.partition("@")[2]) for name in published)
    assert second - first == dt.timedelta(days=1)
    again = {run["name"] for run in story.scheduled if run["state"]["name"] == "Already published"}
    assert again <= set(published)
    assert {run["auto_scheduled"] for run in story.scheduled} == {True}


def test_every_death_ends_in_a_release(story: Story) -> None:
    assert story.failures == {}
    assert story.states == {
        "rehearsal": "Rehearsed",
        "flow": "Crashed",
        "worker": "Published",
        "server": "Published",
        "scheduler": "Published",
        "budget": "Refused: budget",
    }


def test_no_dataset_stays_taken(story: Story) -> None:
    """Also where the flow was killed, or the server that knew of its lease."""
    for dataset in GRANTS:
        waited_for(
            lambda dataset=dataset: True if story.night.taken_slots(dataset) == 0 else None,  # type: ignore[misc]
            f"the end of the lease of {dataset}",
        )


def test_the_automation_tells_of_the_budget_once(story: Story) -> None:
    (alert,) = story.webhook.posted
    assert "refused for lack of epsilon" in alert["subject"]


def test_the_ledger_is_right(story: Story) -> None:
    """Each release is paid for once; the reading that died was given back; books and store agree."""
    with open_ledger(story.ledger) as ledger:
        for name, granted in GRANTS.items():
            account = ledger.account(name)
            assert (account.spent, account.reserved) == (Fraction(granted), Fraction(0))
            charges = list(ledger.charges(name))
            counted = [str(charge.state) for charge in charges if charge.counts_as == "spent"]
            assert counted == ["published"] * granted
            returned = {str(charge.state) for charge in charges if charge.counts_as == "returned"}
            assert returned == ({"abandoned"} if name == "scheduler" else set())
        assert ledger.examine(full=True).problems == ()
        store = open_store(story.store)
        assert compare_with_store(ledger, store).problems == ()
        verified = verify_store(store, ledger=ledger)
    assert verified.problems == ()
    assert verified.releases == sum(GRANTS.values())


def test_no_canary_is_anywhere(story: Story, postgres_log: Log) -> None:
    """In Prefect's database and results, in all logs at their loudest, in the spool, in PostgreSQL's log."""
    written = [path for path in story.night.directory.rglob("*") if path.is_file()]
    assert {"prefect.db", "server.log", "worker.log", "scheduler.log", "reader.log"} <= {
        path.name for path in written
    }
    assert [path.name for path in written if holds_canary(path)] == []
    logged = postgres_log.read()
    assert b"REPEATABLE READ" in logged, "the statements of the source are logged"
    assert b"entries" in logged, "the statements of the ledger are logged"
    assert not any(form in logged for form in FORMS)


def test_the_scan_finds_what_is_planted(story: Story, postgres_log: Log, tmp_path: Path) -> None:
    """A canary in Prefect's log over its API, in a service's log, and in PostgreSQL's by a failed cast."""
    night = story.night
    moment = dt.datetime.now(dt.UTC).isoformat()
    planted = {"name": "x", "level": 20, "message": CANARY_TEXT, "timestamp": moment}
    night.prefect_server.post("/logs/", [planted])  # type: ignore[arg-type]
    home = night.prefect_server.home
    waited_for(lambda: any(map(holds_canary, home.glob("prefect.db*"))) or None, "the planted log")
    log = tmp_path / "reader.log"
    log.write_bytes(night.reader.log.read_bytes() + CANARY_TEXT.encode())
    assert holds_canary(log)
    with connect(story.ledger) as connection, pytest.raises(psycopg.DataError):
        connection.execute("SELECT carrier::int FROM (VALUES (%s)) v (carrier)", (CANARY_TEXT,))
    assert CANARY_TEXT.encode() in postgres_log.read()
