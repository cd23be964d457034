"""The runbook: each accident is made, its commands are run as they stand there, and do what they promise."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING
from urllib.error import HTTPError

import pytest

from suffice.storage.ledger.charge import ChargeState, SpoolName
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.markers import put_marker
from suffice.storage.operations.witness import make_witness
from suffice.storage.releases.release_store import open_store
from support.black_hole import black_hole
from support.ledger_sql import tamper
from support.making import flights, mapping, write_parts
from support.paid import Books, pay
from support.postgres import program, with_database
from support.prefect_server import PLACE, REPORTING, waited_for
from support.runbook import PAGE, Page, read_blocks
from support.running import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.ledger.charge import Charge
    from support.prefect_server import PrefectServer

pytestmark = pytest.mark.audit

FLOW = "suffice.flows.release.release_statistics"
HELD = "support.held_flow.release_statistics"
NOT_RUN = {("A wrong clock", "not-run", 0)}
FOLLOWED = {
    ("Backups", "", 0),
    ("Backups", "postgresql", 0),
    ("A lost ledger", "", 0),
    ("A lost ledger", "postgresql", 0),
    *(("A lost ledger", "restored", number) for number in range(3)),
    *(("A lost store", label, 0) for label in ("moved", "gone", "retired")),
    ("A lost spool", "", 0),
    ("A lost key", "", 0),
    ("A rotated key", "", 0),
    ("A wrong clock", "", 0),
    ("An exhausted budget", "", 0),
    ("A killed run", "", 0),
    ("A host that does not come back", "", 0),
    ("Leftovers of killed runs", "", 0),
    ("Runs that pile up", "", 0),
    ("Runs that end before they begin", "", 0),
    ("A stuck worker", "", 0),
    ("A server of Prefect that was gone", "", 0),
    ("A server of Prefect that was gone", "prefect", 0),
    ("Missed windows", "", 0),
    ("An upgrade", "", 0),
    ("An upgrade", "", 1),
}


@pytest.fixture
def page(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Page:
    """The runbook on a machine of its own: its ledger on SQLite, its store a directory."""
    for name in ("srv", "backup"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("SUFFICE_LEDGER", f"sqlite:///{tmp_path}/srv/ledger.db")
    monkeypatch.setenv("SUFFICE_STORE", f"{tmp_path}/srv/releases")
    monkeypatch.setenv("SUFFICE_SPOOL", f"{tmp_path}/spool")
    for name in ("SUFFICE_SIGNING_KEY", "SUFFICE_PUBLIC_KEYS"):
        monkeypatch.setenv(name, "")  # so that what a block exports goes with the test
        monkeypatch.delenv(name)
    places = {"/srv/suffice": f"{tmp_path}/srv", "/backup": f"{tmp_path}/backup"}
    blocks = read_blocks((repository / PAGE).read_text(encoding="utf-8"))
    return Page(blocks=blocks, run=Runner(capsys), repository=repository, places=places)


@contextmanager
def books(page: Page, *, granted: int = 10) -> Iterator[Books]:
    """Give the ledger and the store that the environment names."""
    with create_ledger(os.environ["SUFFICE_LEDGER"]) as ledger:
        ledger.grant("passengers", epsilon=Fraction(granted), reason="first")
        store = open_store(os.environ["SUFFICE_STORE"], ledger_id=ledger.ledger_id, create=True)
        yield Books(directory=Path(page.places["/srv/suffice"]), ledger=ledger, store=store)


def spent() -> Fraction:
    with open_ledger(os.environ["SUFFICE_LEDGER"]) as ledger:
        return ledger.account("passengers").spent


def write_spec(page: Page, **changes: object) -> None:
    """Write the spec that the runbook names, over data of the test's own."""
    import json

    place = Path(page.places["/srv/suffice"])
    data = place / "data"
    if not data.exists():
        write_parts(flights(), data)
    (place / "spec.json").write_text(json.dumps(mapping(data, **changes)), encoding="utf-8")


def test_every_block_is_followed_by_a_test_or_says_that_it_is_not(repository: Path) -> None:
    text = (repository / PAGE).read_text(encoding="utf-8")
    assert read_blocks(text).keys() == FOLLOWED | NOT_RUN
    assert text.count("<!-- not run: ") == len(NOT_RUN)
    assert text.count("```sh") * 2 == text.count("```")


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_lost_ledger(
    page: Page, engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drill: a backup that is older than the store."""
    label = "" if engine == "sqlite" else "postgresql"
    if label:
        url = str(request.getfixturevalue("postgres_url"))
        monkeypatch.setenv("SUFFICE_LEDGER", url)
        name = url.rsplit("/", 1)[1].split("?", maxsplit=1)[0]
        server = request.getfixturevalue("postgres_server")
        request.addfinalizer(lambda: server.drop(with_database(url, f"{name}_restored")))
        page.places["suffice_restored"] = f"{name}_restored"
        monkeypatch.setenv("MAINTENANCE", with_database(url, "postgres"))
        monkeypatch.setenv("RESTORED", with_database(url, f"{name}_restored"))
        monkeypatch.setenv("PATH", f"{program('psql').parent}:{os.environ['PATH']}")
    with books(page, granted=5) as made:
        pay(made, "a")
        page.follow("Backups", label)
        pay(made, "b")
        pay(made, "c", until="drawing")
    page.follow("A lost ledger", label)
    assert spent() == 1, "the copy has forgotten two"
    whole, lacking = page.follow("A lost ledger", "restored", 0)
    assert whole.startswith("ok")
    assert "older copy" in lacking
    write_spec(page, name="d", privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    release = ("release", f"{page.places['/srv/suffice']}/spec.json")
    assert "older copy" in page.run.text(*release, status=5)
    (said,) = page.follow("A lost ledger", "restored", 1)
    assert "2 charges taken up" in said
    checked = page.follow("A lost ledger", "restored", 2)
    assert [text.split(" ")[0] for text in checked[:2]] == ["ok", "ok"]
    assert spent() == 3
    page.run.text(*release)
    with books(page, granted=5) as made:
        pay(made, "e")
        assert made.ledger.account("passengers").remaining == 0
    write_spec(page, name="f", privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    page.run.text(*release, status=3)
    assert spent() == 5


def test_a_lost_store(page: Page, tmp_path: Path) -> None:
    with books(page) as made:
        pay(made, "a")
        page.follow("Backups")
        lost = pay(made, "b")
    (tmp_path / "srv/releases").rename(tmp_path / "srv/moved")
    (tmp_path / "srv/moved/suffice.json").unlink()
    adopted, verified = page.follow("A lost store", "moved")
    assert "its suffice.json was put back" in adopted
    assert verified.startswith("ok")
    (tmp_path / "srv/moved").rename(tmp_path / "srv/releases")
    page.run.text("store", "adopt", str(tmp_path / "srv/releases"))
    shutil.rmtree(tmp_path / "srv/releases")
    named, _ = page.follow("A lost store", "gone")
    assert lost.release_id in named
    assert spent() == 2, "what was released stays spent"
    shutil.rmtree(tmp_path / "srv/releases")
    assert "yes" in page.follow("A lost store", "retired")[1]


def test_a_lost_spool(page: Page) -> None:
    with books(page) as made:
        for step, charge in _reserved(made):
            assert step == "reserved"
            put_marker(made.ledger, made.store, charge)
            drawing = made.ledger.enter_drawing(charge, spool=SpoolName(spool_id="0" * 32, host="worker-3"))
            made.ledger.let_go(drawing)
            page.places["CHARGE"] = drawing.charge_id
            break
    left, _, after = page.follow("A lost spool")
    assert "worker-3" in left
    assert "nothing to recover" in after
    assert spent() == 1


def _reserved(made: Books) -> Iterator[tuple[str, Charge]]:
    from support.paid import steps

    return steps(made, "a")


def test_keys_are_lost_and_rotated(page: Page) -> None:
    with books(page):
        pass
    place = page.places["/srv/suffice"]
    page.run.text("keys", "new", "--out", f"{place}/old.pem")
    os.environ["SUFFICE_SIGNING_KEY"] = f"{place}/old.pem"
    write_spec(page, name="first")
    page.run.text("release", f"{place}/spec.json")
    write_spec(page, name="second")
    *_, second, first = page.follow("A lost key")
    assert second.startswith("ok")
    assert first.startswith("ok")
    refused, genuine = page.follow("A rotated key")
    assert "not ok" in refused
    assert genuine.startswith("ok")


def test_an_exhausted_budget(page: Page) -> None:
    with books(page, granted=1) as made:
        pay(made, "a")
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    refused, *_ = page.follow("An exhausted budget")
    assert "has epsilon 0 left" in refused
    assert spent() == 2


def test_a_killed_run(page: Page) -> None:
    """As a run leaves its charge that is killed while it reads and draws; tests/faults kills real ones."""
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page) as made:
        made.ledger.let_go(pay(made, "killed", until="reserved"))
    settled, _ = page.follow("A killed run")
    assert "returned" in settled
    assert spent() == 1


KILLED = """
import os, signal, sys
from suffice.cli.app import main
from suffice.releasing import run

setattr(run, sys.argv.pop(1), lambda *_: os.kill(os.getpid(), signal.SIGKILL))
main(sys.argv[1:])
"""
"""A release that dies where it would call a function."""


def kill_release(page: Page, at: str, state: ChargeState, **places: str) -> None:
    """Have a release die where it would call a function, and see how far it came."""
    words = ("release", f"{page.places['/srv/suffice']}/spec.json")
    environment = {**os.environ, **places}
    command = [sys.executable, "-c", KILLED, at, *words]
    killed = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    with open_ledger(os.environ["SUFFICE_LEDGER"]) as ledger:
        assert [charge.state for charge in ledger.charges("passengers")] == [state]


def test_a_run_that_was_killed_in_its_draw(page: Page) -> None:
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page):
        pass
    kill_release(page, "spool_files", ChargeState.DRAWING)
    settled, _ = page.follow("A killed run")
    assert "nobody saw what was drawn: epsilon 1 is returned" in settled
    assert spent() == 1


def test_a_host_that_does_not_come_back(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a run of another machine leaves its charge in its draw; benchmarks/crashes.py kills real ones."""
    witness = f"{tmp_path}/backup/ledger.witness"
    monkeypatch.setenv("SUFFICE_WITNESS", witness)
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page) as made:
        make_witness(made.ledger, witness)
        made.ledger.grant("passengers", epsilon=Fraction(1), witness=witness, reason="a witness")
        charge = pay(made, "gone", until="reserved")
        put_marker(made.ledger, made.store, charge)
        drawing = made.ledger.enter_drawing(charge, spool=SpoolName(spool_id="0" * 32, host="worker-3"))
        made.ledger.let_go(drawing)
    settled, _ = page.follow("A host that does not come back")
    assert "nobody saw what was drawn: epsilon 1 is returned" in settled
    assert spent() == 1


def test_a_host_that_does_not_come_back_had_staged(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """Its disk is gone with its spool; what it staged is in PostgreSQL."""
    monkeypatch.setenv("SUFFICE_LEDGER", postgres_url)
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page):
        pass
    kill_release(page, "publish_patiently", ChargeState.STAGED, SUFFICE_SPOOL=f"{tmp_path}/gone")
    shutil.rmtree(tmp_path / "gone")
    settled, released = page.follow("A host that does not come back")
    assert "published" in settled
    assert "already" in released
    assert spent() == 1


def test_leftovers_of_killed_runs(page: Page) -> None:
    with books(page) as made:
        pay(made, "a")
    probe = Path(os.environ["SUFFICE_STORE"]) / f"probe-{'0' * 32}"
    probe.write_bytes(bytes(16))
    os.utime(probe, (0, 0))
    named, removed, verified = page.follow("Leftovers of killed runs")
    assert probe.name in named
    assert "removed 1 file that killed runs left" in removed
    assert probe.name not in verified
    assert not probe.exists()


def flow_run(page: Page, server: PrefectServer, entrypoint: str, **places: str) -> tuple[str, Popen[bytes]]:
    """Start a run of a release in a process of its own, as a worker does; return its id and the process."""
    asked = {"release": {"spec": f"{page.places['/srv/suffice']}/spec.json"}}
    run = server.new_run("release-statistics", asked)
    named = {name: os.environ[name] for name in ("SUFFICE_LEDGER", "SUFFICE_STORE", "SUFFICE_SPOOL")}
    started = Popen(
        [sys.executable, "-m", "prefect.engine"],
        env=server.environment(
            PREFECT__FLOW_RUN_ID=run, PREFECT__FLOW_ENTRYPOINT=entrypoint, **named, **places
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return run, started


@pytest.mark.timeout(600)
def test_a_server_of_prefect_that_was_gone(
    page: Page, prefect_server: PrefectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs while a run waits for its dataset, whose limit it has as taken for ever."""
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page):
        pass
    name = "suffice-passengers"
    limit = {"names": [name], "slots": 1, "mode": "concurrency"}
    prefect_server.post("/v2/concurrency_limits/", {"name": name, "limit": 1})
    prefect_server.post("/v2/concurrency_limits/increment", limit)
    with black_hole() as hole:
        host, port = prefect_server.url.removesuffix("/api").rsplit(":", 1)
        places = {"PREFECT_API_URL": f"{host}:{hole.lead_to(int(port))}/api", PLACE: str(tmp_path)}
        run, waiting = flow_run(page, prefect_server, HELD, **{REPORTING: "5"}, **places)
        try:
            waited_for(lambda: prefect_server.run(run)["name"] == "flights" or None, "the run's name")
            hole.swallows.set()
            waiting.terminate()
            assert waiting.wait(120) == 1
        finally:
            waiting.kill()
    settled, _ = page.follow("A server of Prefect that was gone")
    assert "nothing to recover" in settled
    assert spent() == 1
    for variable, value in prefect_server.environment().items():
        if variable.startswith("PREFECT_"):
            monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    page.follow("A server of Prefect that was gone", "prefect")
    with pytest.raises(HTTPError, match="404"):
        prefect_server.get(f"/v2/concurrency_limits/{name}")


def test_missed_windows(page: Page) -> None:
    window = {"column": "day", "every": "month", "first": "2013-01"}
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"}, window=window)
    with books(page):
        pass
    (said,) = page.follow("Missed windows")
    assert said.count("2013-0") >= 4
    assert spent() == 4


def test_runs_that_pile_up(page: Page) -> None:
    """As a schedule makes them that starts a run while others of the same spec still go on."""
    window = {"column": "day", "every": "month", "first": "2013-01"}
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"}, window=window)
    with books(page):
        pass
    spec = f"{page.places['/srv/suffice']}/spec.json"
    words = ["backfill", spec, "--from", "2013-01", "--to", "2013-02", "--wait"]
    piled = [subprocess.Popen([sys.executable, "-m", "suffice", *words]) for _ in range(3)]
    assert [run.wait(timeout=200) for run in piled] == [0, 0, 0]
    verified, said = page.follow("Runs that pile up")
    assert verified.startswith("ok")
    assert said.count("already") >= 2
    assert spent() == 2


@pytest.mark.timeout(600)
def test_runs_that_end_before_they_begin(page: Page, prefect_server: PrefectServer) -> None:
    """As where a deployment was made by another version: its module is not there."""
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page):
        pass
    _, process = flow_run(page, prefect_server, FLOW.replace("release.", "elsewhere."))
    assert process.wait(200) != 0
    verified, rehearsed = page.follow("Runs that end before they begin")
    assert verified.startswith("ok")
    assert rehearsed
    assert spent() == 0
    run, process = flow_run(page, prefect_server, FLOW)
    assert process.wait(200) == 0
    assert prefect_server.ended(run)["name"] == "Published"
    assert spent() == 1


def test_a_stuck_worker(page: Page) -> None:
    """As a killed run leaves it inside its draw; real ones are killed in tests/faults."""
    write_spec(page, privacy={"epsilon": "1", "neighboring": "add_or_remove_one"})
    with books(page) as made:
        charge = pay(made, "stuck", until="drawing")
        made.ledger.let_go(charge)
    settled, verified, _ = page.follow("A stuck worker")
    assert "now abandoned" in settled
    assert verified.startswith("ok")
    assert spent() == 2


def test_a_wrong_clock_and_an_upgrade(page: Page) -> None:
    with books(page) as made:
        assert pay(made, "a").state is ChargeState.PUBLISHED
    write_spec(page, name="b")
    settled, verified = page.follow("A wrong clock")
    assert "nothing to recover" in settled
    assert verified.startswith("ok")
    page.follow("An upgrade", "", 0)
    page.follow("An upgrade", "", 1)
    assert spent() == 1, "a rehearsal costs nothing"
    tamper(os.environ["SUFFICE_LEDGER"], "UPDATE alembic_version SET version_num = '9999'")
    for command in (("ledger", "verify"), ("ledger", "show"), ("ledger", "recover")):
        assert "has the schema 9999" in page.run.text(*command, status=5)
