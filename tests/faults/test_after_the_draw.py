"""What fails after noise was drawn: no epsilon is lost, whatever the store, the disk or the process does.

Every fault begins right after the charge is in ``drawing``, when nothing that was tried beforehand helps any
more. The clock of publication runs `SCALE` times as fast as the operator's.
"""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.buckets import connect
from suffice.errors import (
    ChargeLostError,
    ChargeSpentError,
    SpoolElsewhereError,
    StageFailedError,
    StoreError,
)
from suffice.releasing import release as releasing
from suffice.releasing import run as release_run
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.objects import bucket
from suffice.storage.objects.object_store import Patience
from suffice.storage.operations import publishing
from suffice.storage.operations.recovery import recover
from suffice.storage.operations.settling import abandon_lost, settle
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.releases.release_store import open_release, open_store
from suffice.storage.releases.spool import find_spool, open_spool, spool_path
from support.bucket_server import BucketServer, bucket_server
from support.buckets import variables
from support.faults import STATISTICS
from support.judging import EPSILON, Scene, make_scene, problems
from support.making import Workspace, flights, make_workspace
from support.small_disk import SmallDisk, small_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.storage.ledger.charge import Charge

SCALE = 600
"""The operator's seconds in one of ours."""
TEN_MINUTES = 600 / SCALE
FEW, MANY = 8, 200
COUNTS = (
    pytest.param(FEW, id="few"),
    pytest.param(MANY, id="many", marks=[pytest.mark.audit, pytest.mark.timeout(3600)]),
)


@dataclass
class Faults:
    """Releases whose store fails after the draw.

    Attributes
    ----------
    workspace : Workspace
    begin, end : callable
        Start a fault, and repair it.
    publish_timeout : float
        In the operator's seconds.
    """

    workspace: Workspace
    begin: Callable[[], None]
    end: Callable[[], None]
    publish_timeout: float = 3.0

    def run(self, name: str, **options: Any) -> str:
        """Carry a release out, and return its status, or the text of what failed after the draw."""
        try:
            return releasing.carry_out(
                self.workspace.spec(
                    name=name,
                    privacy={"epsilon": "0.01", "neighboring": "add_or_remove_one", "unit": "row"},
                    statistics=STATISTICS,
                ),
                store=self.workspace.store,
                ledger=self.workspace.ledger,
                publish_timeout=self.publish_timeout,
                **options,
            ).status
        except StageFailedError as error:
            return f"{error.stage}: {error}"

    def lost(self, count: int, reason: str) -> Fraction:
        """Have `count` releases meet the fault, each published in the end; return the epsilon lost."""
        for index in range(count):
            self.begin()
            text = self.run(f"r{index}")
            assert reason in text
            assert text.startswith("publishing: ")
            assert "nothing is lost" in text
            assert len(text) <= 500
            self.end()
            assert self.run(f"r{index}") == "published"
        return self.spent_in_vain(count)

    def spent_in_vain(self, count: int) -> Fraction:
        """Return what is spent less what the readable releases paid for, of `count` names."""
        store = open_store(self.workspace.store)
        released = store.releases()
        assert {release.name for release in released} == {f"r{index}" for index in range(count)}
        paid = sum((open_release(release.uri).loss.amount for release in released), Fraction(0))
        with open_ledger(self.workspace.ledger) as ledger:
            assert ledger.verify() == ()
            assert compare_with_store(ledger, store).problems == ()
            account = ledger.account("passengers")
        spool = find_spool(spool_path(self.workspace.ledger, None))
        assert spool is not None
        assert spool.charge_ids() == ()
        assert account.reserved == 0
        return account.spent - paid


@pytest.fixture(autouse=True)
def fast_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let publication live `SCALE` times as fast."""

    def sleep(seconds: float) -> bool:
        time.sleep(seconds / SCALE)
        return True

    def patience(run: Any, _: object) -> Patience:
        return Patience(
            seconds=run.publish_timeout,
            sleep=sleep,
            clock=lambda: time.monotonic() * SCALE,
            notice=run.notice,
        )

    monkeypatch.setattr(release_run.ReleaseRun, "_patience", patience)


def after_the_draw_began(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Have something done whenever a charge has entered ``drawing``."""
    enter = SqlLedger.enter_drawing

    def enter_drawing(ledger: SqlLedger, charge: Charge, **options: Any) -> Charge:
        drawing = enter(ledger, charge, **options)
        action()
        return drawing

    monkeypatch.setattr(SqlLedger, "enter_drawing", enter_drawing)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


def workspace_with(directory: Path, store: str) -> Workspace:
    made = make_workspace(directory, granted="1000", table=flights(60))
    return replace(made, store=store)


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_a_full_disk_loses_nothing(
    tmp_path: Path, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    workspace = workspace_with(tmp_path, str(disk.path / "releases"))
    armed: list[bool] = []
    after_the_draw_began(monkeypatch, lambda: disk.fill() if armed.pop() else None)
    faults = Faults(workspace, begin=lambda: armed.append(True), end=disk.free)
    assert faults.lost(count, "no space left (ENOSPC)") == 0


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_a_read_only_store_loses_nothing(
    tmp_path: Path, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    workspace = workspace_with(tmp_path, str(disk.path / "releases"))
    after_the_draw_began(monkeypatch, disk.forbid_writing)
    faults = Faults(workspace, begin=lambda: None, end=disk.allow_writing)
    assert faults.lost(count, "read-only file system (EROFS)") == 0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    with bucket_server() as running:
        for name, value in variables(running.url).items():
            monkeypatch.setenv(name, value)
        # The client's own pauses are the operator's seconds too.
        monkeypatch.setattr(bucket, "connect", lambda *args, retries: connect(*args, retries=0 * retries))
        monkeypatch.setattr(bucket, "_PAUSES", tuple(pause / SCALE for pause in bucket._PAUSES))
        monkeypatch.setattr(bucket.Bucket.__init__, "__kwdefaults__", {"pauses": bucket._PAUSES})
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_an_expired_token_loses_nothing(
    tmp_path: Path, server: BucketServer, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    workspace = workspace_with(tmp_path, "s3://bucket/pre")
    body = b"<Error><Code>ExpiredToken</Code><Message>https://signed?secret=4242</Message></Error>"
    texts: list[str] = []

    armed: list[bool] = []
    after_the_draw_began(monkeypatch, lambda: server.fail(400, body) if armed.pop() else None)
    faults = Faults(workspace, begin=lambda: armed.append(True), end=server.recover)
    run = faults.run

    def noted(name: str, **_: Any) -> str:
        texts.append(run(name))
        return texts[-1]

    monkeypatch.setattr(faults, "run", noted)
    assert faults.lost(count, "credentials have expired (status 400, ExpiredToken)") == 0
    assert not [text for text in texts if "4242" in text or "signed" in text]


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_ten_minutes_of_503_are_waited_for(
    tmp_path: Path, server: BucketServer, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The run itself publishes, once the store is back: nobody has to do anything."""
    workspace = workspace_with(tmp_path, "s3://bucket/pre")
    lasts = TEN_MINUTES if count == MANY else TEN_MINUTES / 10

    after_the_draw_began(monkeypatch, lambda: server.fail(503, b"secret", lasts=lasts))
    faults = Faults(workspace, begin=lambda: None, end=lambda: None, publish_timeout=3600.0)
    notices: list[str] = []
    for index in range(count):
        began = len(notices)
        assert faults.run(f"r{index}", notice=notices.append) == "published"
        assert len(notices) > began
    assert all("unavailable (status 503)" in notice for notice in notices)
    assert faults.spent_in_vain(count) == 0


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_a_kill_after_staged_loses_nothing(sqlite_scene: Scene, count: int) -> None:
    scene = sqlite_scene
    for index in range(count):
        ended = scene.run(f"r{index}", point="after staged", number=signal.SIGKILL)
        assert ended.signal == signal.SIGKILL
        assert scene.run(f"r{index}").result["status"] == "published"
    with open_ledger(scene.ledger) as ledger:
        assert ledger.account("passengers").spent == count * EPSILON
    assert [problem for index in range(count) for problem in problems(scene, f"r{index}")] == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after the files", "inside staged"])
def test_a_kill_between_the_marker_and_staged_loses_nothing(sqlite_scene: Scene, point: str) -> None:
    """The spool is complete, and the ledger does not know: its host stages and publishes it."""
    scene = sqlite_scene
    for index, ending in enumerate(("rerun", "recover")):
        name = f"r{index}"
        assert scene.run(name, point=point, number=signal.SIGKILL).signal == signal.SIGKILL
        if ending == "rerun":
            assert scene.run(name).result["status"] == "published"
        else:
            assert [charge.action for charge in scene.recover().charges] == ["published"]
        assert problems(scene, name) == []
    with open_ledger(scene.ledger) as ledger:
        assert ledger.account("passengers").spent == 2 * EPSILON


@pytest.mark.slow
def test_a_disk_that_is_full_for_ledger_spool_and_store_loses_nothing(
    tmp_path: Path, disk: SmallDisk, forks: Any
) -> None:
    """The spool has its room since before the draw; the ledger follows when there is room again."""
    if not disk.real:
        pytest.skip("only a disk that was mounted can be full for a database")
    place = disk.path / "all"
    place.mkdir()
    scene = make_scene(place, f"sqlite:///{place}/ledger.db", forks)
    for index in range(3):
        name = f"r{index}"
        ended = scene.run(name, fill=str(disk.path), draws=str(tmp_path / "draws"))
        assert ended.result["status"] == "StageFailedError"
        assert "nothing is lost" in ended.result["message"]
        disk.free()
        assert scene.run(name).result["status"] == "published"
        assert problems(scene, name) == []
    with open_ledger(scene.ledger) as ledger:
        assert ledger.account("passengers").spent == 3 * EPSILON


def test_a_full_spool_is_found_before_the_draw(
    tmp_path: Path, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not disk.real:
        pytest.skip("only a disk that was mounted has blocks to run out of")
    workspace = workspace_with(tmp_path, str(tmp_path / "releases"))
    private = disk.path / "spool"
    private.mkdir(mode=0o700)
    monkeypatch.setenv("SUFFICE_SPOOL", str(private))
    open_spool(private)
    disk.fill()
    with pytest.raises(StageFailedError, match=r"no space left .* returned") as caught:
        workspace.run()
    assert caught.value.stage == "preflight"
    assert workspace.account().spent == workspace.account().reserved == 0
    disk.free()
    assert workspace.run().status == "published"


# Implementations that must be caught.


def staged_without_its_files(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Charge:
    """Leave a staged charge whose files are in this host's spool alone."""

    def fail(*_: object) -> None:
        message = "the store is away"
        raise StoreError(message)

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "put_files", fail)
        with pytest.raises(StageFailedError):
            workspace.run()
    charge = workspace.charge()
    assert charge is not None
    assert charge.state == "staged"
    return charge


def publish_from_another_host(workspace: Workspace, charge: Charge, tmp_path: Path) -> None:
    other = open_spool(tmp_path / "other.spool")
    with open_ledger(workspace.ledger) as ledger:
        settle(ledger, open_store(workspace.store, ledger_id=ledger.ledger_id), charge, spool=other)


def test_a_manifest_before_its_files_is_caught(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = staged_without_its_files(workspace, monkeypatch)
    with pytest.raises(SpoolElsewhereError, match=r"in the spool of .* there"):
        publish_from_another_host(workspace, charge, tmp_path)
    current = workspace.charge()
    assert current is not None
    assert current.state == "staged"
    assert open_store(workspace.store).read_manifest("flights", "all", charge.release_id) is None
    assert workspace.run().status == "published"


def test_the_mutant_that_puts_a_manifest_before_its_files_shows(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = staged_without_its_files(workspace, monkeypatch)
    monkeypatch.setattr(publishing, "put_files", lambda *_: None)
    monkeypatch.setattr("suffice.storage.operations.settling.require_files", lambda *_: None)
    publish_from_another_host(workspace, charge, tmp_path)
    with pytest.raises(StoreError, match="is missing"):
        open_release(open_store(workspace.store).release_uri("flights", "all", charge.release_id))


def abandoned_elsewhere(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Charge:
    """Leave a complete spool of a charge that was abandoned, as another host does with ``--spool-lost``."""
    charge = staged_without_its_files(workspace, monkeypatch)
    with open_ledger(workspace.ledger) as ledger:
        store = open_store(workspace.store, ledger_id=ledger.ledger_id)
        ended = abandon_lost(ledger, store, charge, spool=open_spool(tmp_path / "other.spool"))
    assert ended.state == "abandoned"
    spool = find_spool(spool_path(workspace.ledger, None))
    assert spool is not None
    assert spool.complete(charge) is not None
    return charge


def test_the_spool_of_an_abandoned_charge_is_deleted_never_completed(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = abandoned_elsewhere(workspace, monkeypatch, tmp_path)
    with pytest.raises(ChargeSpentError, match=r"^epsilon 1 is spent"):
        workspace.run()
    store = open_store(workspace.store)
    assert store.releases() == ()
    scene_spool = find_spool(spool_path(workspace.ledger, None))
    assert scene_spool is not None
    with open_ledger(workspace.ledger) as ledger:
        recover(ledger, partial(open_store, ledger_id=ledger.ledger_id), spool=scene_spool)
    assert scene_spool.charge_ids() == ()
    assert charge.release_id not in {release.release_id for release in store.releases()}


def test_the_mutant_that_completes_an_abandoned_charge_is_stopped_twice(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the tombstone at the manifest's key, and by the ledger; only without both would it publish."""
    charge = abandoned_elsewhere(workspace, monkeypatch, tmp_path)
    spool = find_spool(spool_path(workspace.ledger, None))
    with open_ledger(workspace.ledger) as ledger:
        store = open_store(workspace.store, ledger_id=ledger.ledger_id)
        with pytest.raises(ChargeLostError):  # the ledger refuses: the charge has ended
            publishing.publish(ledger, store, spool, charge)
        assert store.releases() == ()
        tombstone = Path(store.release_uri("flights", "all", charge.release_id)) / "manifest.json"
        tombstone.unlink()
        publishing.put_files(ledger, store, spool, charge)
        assert charge.manifest is not None
        store.put_manifest("flights", "all", charge.release_id, charge.manifest)
        assert compare_with_store(ledger, store).problems != ()  # and so it is told


def test_a_run_that_died_in_drawing_costs_nothing(sqlite_scene: Scene) -> None:
    scene = sqlite_scene
    assert scene.run("r", point="inside the files", number=signal.SIGKILL).signal == signal.SIGKILL
    assert scene.run("r").result["status"] == "published"  # at once: the process is known to be dead
    with open_ledger(scene.ledger) as ledger:
        assert ledger.account("passengers").spent == EPSILON
    assert problems(scene, "r") == []


def test_a_run_that_died_in_drawing_says_first_what_is_spent(sqlite_scene: Scene) -> None:
    scene = sqlite_scene
    assert scene.run("r", point="inside the files", number=signal.SIGKILL).signal == signal.SIGKILL
    for entry in scene.spool.glob("*.1"):
        shutil.rmtree(entry)  # nothing shows any more that nobody saw what was drawn
    ended = scene.run("r")
    assert ended.result["status"] == "ChargeSpentError"
    assert ended.result["message"].startswith("epsilon 0.01 is spent")
    assert "no witness" in ended.result["message"]
    assert scene.run("r", new_attempt=True).result["status"] == "published"
    assert problems(scene, "r") == []


def test_a_staged_charge_needs_its_files_alone(sqlite_scene: Scene) -> None:
    """The ledger has the manifest: what is damaged of the spool's own is not missed."""
    scene = sqlite_scene
    scene.run("r", point="after staged", number=signal.SIGKILL)
    for kept in scene.spool.glob("*/*.json"):
        kept.write_bytes(b"")
    assert [charge.action for charge in scene.recover().charges] == ["published"]


def test_an_incomplete_spool_is_deleted(sqlite_scene: Scene) -> None:
    scene = sqlite_scene
    scene.run("r", point="inside the files", number=signal.SIGKILL)
    spool = find_spool(scene.spool)
    assert spool is not None
    assert len(spool.charge_ids()) == 1
    assert [charge.action for charge in scene.recover().charges] == ["abandoned"]
    assert spool.charge_ids() == ()
