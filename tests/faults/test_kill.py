"""kill -9 at every step of a release, then a recovery or a rerun: every charge comes to its right end."""

from __future__ import annotations

import signal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.recovery import Action
from support.faults import FREE, IN_THE_DRAW, ON_A_CONE, POINTS, PUBLISHED, RETURNED, STATISTICS
from support.judging import EPSILON, Scene, make_scene, problems

if TYPE_CHECKING:
    from pathlib import Path

    from support.forking import Forks

RECOVER, RERUN = "recover", "rerun"


def spent(scene: Scene) -> Fraction:
    with open_ledger(scene.ledger) as ledger:
        account = ledger.account("passengers")
    assert account.reserved == 0
    return account.spent


def kill_and_end(
    scene: Scene, name: str, point: str, ending: str, cost: Fraction = EPSILON, **edition: Any
) -> None:
    """Kill a run at a point, end it, and hold what is there to the rules; then make the release after all."""
    before = spent(scene)
    ended = scene.run(name, point=point, number=signal.SIGKILL, expired=True, **edition)
    assert (ended.signal, ended.stopped) == (signal.SIGKILL, False)
    if ending == RECOVER:
        report = scene.recover()
        assert report.ok
        actions = [charge.action for charge in report.charges]
        if point in (*FREE, "after published"):
            assert actions == []
        else:
            assert actions == [Action.PUBLISHED if point in PUBLISHED else Action.ABANDONED]
        assert [charge.returned for charge in report.charges if charge.returned] == (
            [cost] if point in RETURNED else []
        )
        assert spent(scene) - before == (cost if point in PUBLISHED else 0)
        assert str(scene.recover()) == "nothing to recover: every charge is final"
    else:
        ended = scene.run(name, **edition)
        if point == "after published":
            assert ended.result["status"] == "already_published"
        else:
            assert ended.result["status"] == "published"
        assert spent(scene) - before == cost
    assert problems(scene, name) == []
    again = scene.run(name, **edition)  # a draw that was returned needs no new attempt
    assert again.result["status"] in {"published", "already_published"}
    assert spent(scene) - before == cost
    assert problems(scene, name) == []


@pytest.mark.timeout(1800)
@pytest.mark.slow
def test_a_kill_at_any_step(scene: Scene) -> None:
    endings = [RECOVER, RERUN] * len(POINTS)
    for index, point in enumerate(POINTS):  # each engine ends each point the other's other way
        kill_and_end(scene, f"r{index}", point, endings[index + scene.ledger.startswith("sqlite")])


@pytest.mark.slow
def test_a_kill_in_the_middle_of_an_amendment(sqlite_scene: Scene) -> None:
    scene = sqlite_scene
    for index, point in enumerate(["after reserve", "after the draw", "after file 1", "inside published"]):
        name, window = f"r{index}", "2013-01"
        first = scene.run(name, window=window)
        kill_and_end(scene, name, point, [RECOVER, RERUN][index % 2], window=window, amendment=1)
        newest = suffice.open_release(f"{name}@{window}", store=scene.store)
        assert newest.manifest["amends"]["release_id"] == first.result["release_id"]


@pytest.mark.slow
def test_a_kill_among_charges_of_epsilon_and_of_rho(tmp_path: Path, forks: Forks) -> None:
    scene = make_scene(tmp_path, f"sqlite:///{tmp_path}/ledger.db", forks, PrivacyMeasure.RHO)
    scene.loss = {"rho": "0.000123456789"}
    stated = Fraction(123_456_789, 10**12)
    points = ["after reserve", "after the noise", "between samples", "after the draw", "after file 1"]
    for index, point in enumerate(points):
        kill_and_end(scene, f"r{index}", point, [RECOVER, RERUN][index % 2], stated)
    scene.loss = {"epsilon": "0.01"}
    cost = compile_plan(scene.order("e")["spec"]).rho
    assert 0 < cost < Fraction(1, 10**4) / 2
    kill_and_end(scene, "e", "after file 1", RERUN, cost)
    assert spent(scene) == len(points) * stated + cost


@pytest.mark.slow
def test_a_kill_of_noise_on_a_cone(sqlite_scene: Scene) -> None:
    """Another sampler draws it; the charge, the one draw and what is returned are those of any release.

    Points are named after the files of `STATISTICS`, so the columns stand under the name of one of them.
    """
    columns = {"arr_delay": {"lower": -60, "upper": 180}, "stops": {"lower": 0, "upper": 6}}
    sqlite_scene.statistics = {
        **STATISTICS,
        "cancelled": {"family": "multivariate_normal", "columns": columns, "noise": "cone"},
    }
    points = [
        "after reserve",
        *ON_A_CONE,
        "after the noise",
        "between samples",
        "after the draw",
        "after file 1",
    ]
    for index, point in enumerate(points):
        kill_and_end(sqlite_scene, f"r{index}", point, [RECOVER, RERUN][index % 2])


@pytest.mark.audit
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", POINTS)
def test_fifty_kills_at_any_step(scene: Scene, point: str) -> None:
    for repetition in range(50):
        kill_and_end(scene, f"r{repetition}", point, [RECOVER, RERUN][repetition % 2])


@pytest.mark.slow
def test_the_rules_find_a_charge_that_is_made_after_publishing(scene: Scene) -> None:
    right = scene.run("right", mutant="charge after publishing")
    assert right.result["status"] == "published"
    assert problems(scene, "right") == []
    killed = scene.run("r", point="after manifest", number=signal.SIGKILL, mutant="charge after publishing")
    assert killed.signal == signal.SIGKILL
    scene.recover()
    assert "a release without a charge" in problems(scene, "r")


@pytest.mark.slow
def test_the_rules_find_noise_that_is_drawn_again(scene: Scene) -> None:
    right = scene.run("right", mutant="redraw on rerun")
    assert right.result["status"] == "published"
    assert problems(scene, "right") == []
    for index, point in enumerate(IN_THE_DRAW):
        name = f"r{index}"
        scene.run(name, point=point, number=signal.SIGKILL, expired=True, mutant="redraw on rerun")
        again = scene.run(name, mutant="redraw on rerun")
        assert again.result["status"] == "published"
        told = problems(scene, name)
        if point.endswith("drawing"):  # nothing had been drawn yet
            assert told == []
        else:
            assert any("noise was drawn 2 times" in problem for problem in told)
