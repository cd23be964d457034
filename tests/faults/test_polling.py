"""A reader that looks every millisecond while releases are published sees all of one, or none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from suffice.errors import ReleaseMissingError, StoreError
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from support.judging import Scene


def poll(scene: Scene, name: str, mutant: str = "") -> tuple[int, int, int]:
    """Publish a release; return how often a reader found none, a whole one, and anything else."""
    none = whole = partial = 0
    scene.forks.begin(**scene.order(name, mutant=mutant))
    seen = False
    while not (seen and scene.forks.has_ended()):
        try:
            release = open_release(name, store=str(scene.store))
        except ReleaseMissingError:
            none += 1
        except StoreError as error:
            if "there is no release store" in str(error):
                none += 1
            else:
                partial += 1
        else:
            assert {*release.statistics, *release.sampled} == {"cancelled", "stops"}
            whole += 1
        seen = whole > 0
        time.sleep(0.001)
    assert scene.forks.end().result["status"] == "published"
    return none, whole, partial


@pytest.mark.slow
def test_a_reader_never_sees_part_of_a_release(sqlite_scene: Scene) -> None:
    for number in range(4):
        none, whole, partial = poll(sqlite_scene, f"r{number}")
        assert none > 0
        assert whole > 0
        assert partial == 0


@pytest.mark.audit
@pytest.mark.timeout(600)
def test_a_reader_of_five_hundred_releases(sqlite_scene: Scene) -> None:
    assert sum(poll(sqlite_scene, f"r{number}")[2] for number in range(500)) == 0


@pytest.mark.slow
def test_the_reader_would_see_a_manifest_that_comes_first(sqlite_scene: Scene) -> None:
    assert poll(sqlite_scene, "r", mutant="manifest before files")[2] > 0
