"""Recovery that is itself killed, that runs twice at once, and that runs beside live runs."""

from __future__ import annotations

import signal
from threading import Barrier, Thread
from typing import TYPE_CHECKING

import pytest

from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.recovery import Action
from support.faults import POINTS, PUBLISHED, RECOVERY_POINTS, RETURNED
from support.judging import EPSILON, Scene, problems

if TYPE_CHECKING:
    from collections.abc import Iterable

LEFTOVERS = ("after reserve", "inside the files", "after staged", "after manifest")


REACHED = {
    "after reserve": ("after taking over", "inside abandoned", "after abandoned"),
    "inside the files": (
        "after taking over",
        "inside tombstone or manifest",
        "after tombstone or manifest",
        "inside abandoned",
        "after the files of the draw",
        "after returned",
    ),
    "after staged": (
        "after taking over",
        "inside tombstone or manifest",
        "after tombstone or manifest",
        "inside published",
        "after published",
    ),
}
"""By where a run was killed, the steps that a recovery of it comes to, in order."""


def leave(scene: Scene, points: tuple[str, ...], prefix: str = "r") -> dict[str, str]:
    """Kill a run at each of some points; return the points by name of the release."""
    left = {f"{prefix}{index}": point for index, point in enumerate(points)}
    for name, point in left.items():
        scene.run(name, point=point, number=signal.SIGKILL, expired=True)
    return left


def check_ends(scene: Scene, left: dict[str, str], judged: Iterable[str]) -> None:
    """Hold the account and every charge to what was left, and those judged to all rules."""
    with open_ledger(scene.ledger) as ledger:
        account = ledger.account("passengers")
        states = {charge.name: charge.state for charge in ledger.charges("passengers")}
    assert states == {
        name: "published" if point in PUBLISHED else "abandoned" for name, point in left.items()
    }
    assert account.reserved == 0
    assert account.spent == EPSILON * sum(point in PUBLISHED for point in left.values())
    for name in judged:
        assert problems(scene, name) == []


@pytest.mark.slow
@pytest.mark.parametrize("point", REACHED)
def test_a_recovery_may_die_anywhere(scene: Scene, point: str) -> None:
    assert die_at(scene, point, REACHED[point]) == REACHED[point]


@pytest.mark.audit
@pytest.mark.parametrize("point", REACHED)
def test_recoveries_come_to_no_other_step(scene: Scene, point: str) -> None:
    assert die_at(scene, point, tuple(RECOVERY_POINTS)) == REACHED[point]


def die_at(scene: Scene, point: str, steps: tuple[str, ...]) -> tuple[str, ...]:
    """Kill runs at a point and a recovery of each at a step, and let the next one end it."""
    order = {"ledger": scene.ledger, "spool": str(scene.spool)}
    died = []
    left: dict[str, str] = {}
    for index, step in enumerate(steps):
        new = leave(scene, (point,), f"r{index}-")
        left |= new
        if scene.forks.run(**order, point=step).signal == signal.SIGKILL:
            died.append(step)
        scene.observe()
        scene.forks.run(**order, point="")  # the first one's lease of no length has passed
        scene.observe()
        assert scene.recover().charges == ()
        check_ends(scene, left, new)
    check_ends(scene, left, left)
    return tuple(died)


def recover_at_once(scene: Scene, n_recoveries: int) -> list[str]:
    """Recover in several threads, each with a ledger object of its own; return all reported actions."""
    barrier = Barrier(n_recoveries)
    actions: list[str] = []

    def work() -> None:
        barrier.wait(timeout=60)
        actions.extend(charge.action for charge in scene.recover().charges)

    threads = [Thread(target=work) for _ in range(n_recoveries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return actions


@pytest.mark.slow
def test_recoveries_at_once_settle_each_charge_once(scene: Scene) -> None:
    left = leave(scene, LEFTOVERS * 2)
    actions = recover_at_once(scene, 3)
    check_ends(scene, left, left)
    assert actions.count(Action.ABANDONED) == sum(point in RETURNED for point in left.values())
    assert Action.LEFT not in actions
    assert str(scene.recover()) == "nothing to recover: every charge is final"


@pytest.mark.audit
@pytest.mark.timeout(600)
def test_many_recoveries_at_once(scene: Scene) -> None:
    left: dict[str, str] = {}
    for round_number in range(10):
        left |= leave(scene, tuple(POINTS)[2:], f"r{round_number}-")
        recover_at_once(scene, 4)
        check_ends(scene, left, left)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after reserve", "after the draw", "after staged", "after manifest"])
def test_a_live_run_is_left_alone(scene: Scene, point: str) -> None:
    stopped = scene.run("live", point=point, number=signal.SIGSTOP)
    assert stopped.stopped
    leave(scene, ("inside the files",), "dead")
    actions = {charge.name: charge.action for charge in scene.recover().charges}
    # What is staged is fixed: whoever comes first publishes it.
    live = Action.PUBLISHED if point in PUBLISHED else Action.IN_PROGRESS
    assert actions == {"live": live, "dead0": Action.ABANDONED}
    ended = scene.forks.go_on(stopped.process)
    assert ended.result["status"] == "published"
    assert problems(scene, "live") == []
