"""Writers of a publication that are killed anywhere, and writers that race."""

from __future__ import annotations

import multiprocessing
import signal
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from suffice.storage.publications.publication_store import PublicationStore
from support.publications import FILES, POINTS, id_of, publish, publish_racing, publish_until, request_of

if TYPE_CHECKING:
    from pathlib import Path

_FORK = multiprocessing.get_context("spawn")
_ROUNDS = 20


@pytest.mark.parametrize("point", POINTS)
def test_a_writer_that_is_killed_leaves_all_or_nothing_visible(tmp_path: Path, point: str) -> None:
    store, publication_id = PublicationStore.open(tmp_path), id_of(request_of())
    process = _FORK.Process(target=publish_until, args=(str(tmp_path), point))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == -signal.SIGKILL
    left = {file.name: file for file in store.files(publication_id)}
    publication = store.find(publication_id)
    assert (publication is not None) == (point == "after manifest")
    made = publish(store)
    assert {file.name: made.read(file.name) for file in made.files} == FILES
    assert all(left[name].path in {file.path for file in made.files} for name in left)
    assert len(left) == {"before file 1": 0, "inside file 1": 0, "after file 1": 1}.get(point, 2)


@pytest.mark.slow
def test_of_racing_writers_one_wins_and_both_get_its_publication(tmp_path: Path) -> None:
    barrier, results = _FORK.Barrier(2), _FORK.SimpleQueue()
    writers = [
        _FORK.Process(target=publish_racing, args=(str(tmp_path), writer, _ROUNDS, barrier, results))
        for writer in range(2)
    ]
    for process in writers:
        process.start()
    got = defaultdict(set)
    for _ in range(2 * _ROUNDS):
        number, _, content = results.get()
        got[number].add(content)
    for process in writers:
        process.join(timeout=60)
    assert [process.exitcode for process in writers] == [0, 0]
    assert len(got) == _ROUNDS
    assert all(len(contents) == 1 for contents in got.values()), "one round, two publications"
