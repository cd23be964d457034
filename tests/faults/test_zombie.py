"""Runs that are stopped past their lease and go on after recovery decided: they publish nothing."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from suffice.storage.operations import recovery, settling
from suffice.storage.operations.recovery import Action
from suffice.storage.releases.release_store import ReleaseStore
from suffice.storage.releases.spool import Spool
from support.faults import POINTS, PUBLISHED
from support.judging import Scene, problems

if TYPE_CHECKING:
    from pathlib import Path

STOPS = tuple(
    point
    for point, (what, *_) in POINTS.items()
    if what != "entry" and point not in {"before reserve", "after published"}
)
"""Not inside a transaction: a run that is stopped there keeps its locks, and everybody waits."""


def manifests(scene: Scene) -> dict[Path, tuple[int, bytes]]:
    """Return every manifest and tombstone with the file's inode: nobody may replace one by an equal one."""
    return {path: (path.stat().st_ino, path.read_bytes()) for path in scene.store.glob("*/*/*/manifest.json")}


def stop_and_go_on(scene: Scene, name: str, point: str, mutant: str = "") -> bool:
    """Stop a run, recover, let it go on; tell whether it wrote a manifest then."""
    stopped = scene.run(name, point=point, number=signal.SIGSTOP, expired=True, mutant=mutant)
    assert stopped.stopped
    report = scene.recover()
    assert [charge.action for charge in report.charges if charge.name == name] == [
        Action.PUBLISHED if point in PUBLISHED else Action.ABANDONED
    ]
    before = manifests(scene)
    ended = scene.forks.go_on(stopped.process)
    scene.observe()
    assert not ended.stopped
    assert (ended.result["status"] == "published") == (manifests(scene) != before or point in PUBLISHED)
    return manifests(scene) != before


def check_zombie(scene: Scene, name: str, point: str) -> None:
    assert not stop_and_go_on(scene, name, point)
    scene.recover()  # files that it wrote after it woke up
    assert problems(scene, name) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_zombie_never_publishes(scene: Scene) -> None:
    for index, point in enumerate(STOPS):
        check_zombie(scene, f"r{index}", point)


@pytest.mark.audit
@pytest.mark.timeout(600)
def test_a_hundred_zombies(scene: Scene) -> None:
    for number in range(100):
        check_zombie(scene, f"r{number}", STOPS[number % len(STOPS)])


def leave_the_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a zombie wrote into the spool: else it finds no place there."""
    monkeypatch.setattr(settling, "forget", lambda *_: None)
    monkeypatch.setattr(Spool, "take_back", lambda *_: False)


def test_the_tombstone_holds_where_the_ledger_does_not(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_the_spool(monkeypatch)
    assert not stop_and_go_on(scene, "r", "before the marker", mutant="no fence in the ledger")


@pytest.mark.slow
def test_without_either_fence_a_zombie_publishes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReleaseStore, "put_tombstone", lambda *_: None)
    monkeypatch.setattr(recovery, "remove_orphans", lambda *_: ())
    leave_the_spool(monkeypatch)
    published = stop_and_go_on(scene, "r", "before the marker", mutant="no fence in the ledger")
    # PostgreSQL has a third: an epsilon that was returned is not among those reserved.
    assert published == scene.ledger.startswith("sqlite")
