"""Very many tasks, a few at a time."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ClusterError, UsageError
from suffice.pipeline.ask.batches.part_answer import parts_of
from suffice.pipeline.cluster.connection import Cluster, DistributedCluster, open_cluster
from suffice.pipeline.cluster.stream import AHEAD, stream
from support.workers import stopped_with_its_result

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


@pytest.fixture(scope="module", params=["threads", pytest.param("local", marks=pytest.mark.audit)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with open_cluster(request.param) as opened:
        yield opened


def test_every_result_comes_once(cluster: Cluster) -> None:
    assert sorted(stream(cluster, pow, ((number, 2) for number in range(50)))) == [
        number**2 for number in range(50)
    ]
    assert list(stream(cluster, pow, iter(()))) == []


def test_no_more_arguments_are_taken_than_threads_need(cluster: Cluster) -> None:
    taken = 0

    def arguments() -> Iterator[tuple[int, int]]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number, 2

    for done, _ in enumerate(stream(cluster, pow, arguments()), start=1):
        assert taken <= done + AHEAD * cluster.n_threads


def test_an_error_of_a_task_is_passed_on(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(stream(cluster, int, [("1",), ("2",), ("three",), ("4",)]))
    with pytest.raises(UsageError, match="at most 4000"):
        list(stream(cluster, parts_of, [(2, 2, 1), (10_000, 10_000, 1)]))


def test_who_stops_asking_starts_no_more(cluster: Cluster) -> None:
    started = threading.Semaphore(0)

    def arguments() -> Iterator[tuple[int, int]]:
        for number in range(1000):
            started.release()
            yield number, 2

    results = stream(cluster, pow, arguments())
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert started._value <= 1 + AHEAD * cluster.n_threads


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_worker_that_stops_with_a_result_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered = DistributedCluster.gathered

    def later(cluster: DistributedCluster, futures: Collection[Any]) -> list[Any]:
        time.sleep(3.0)  # until the worker has stopped
        return gathered(cluster, futures)

    notices: list[str] = []
    with open_cluster("local", stall_seconds=60.0, notice=notices.append) as opened:
        assert isinstance(opened, DistributedCluster)
        (tmp_path / "there").touch()
        # Each worker imports what it runs, and sends heartbeats late meanwhile.
        warming = [(number, str(tmp_path / "there")) for number in range(8)]
        assert sorted(stream(opened, stopped_with_its_result, warming)) == list(range(8))
        with monkeypatch.context() as patched:  # workers that are lost: fewer threads than tasks that run
            threads = iter([8])
            patched.setattr(DistributedCluster, "n_threads", property(lambda _: next(threads, 1)))
            squares = stream(opened, pow, ((number, 2) for number in range(30)))
            assert sorted(squares) == [number**2 for number in range(30)]
        monkeypatch.setattr(DistributedCluster, "gathered", later)
        quick = replace(opened, stall_seconds=6.0)
        assert list(stream(quick, stopped_with_its_result, [(1, str(tmp_path / "marker"))])) == [1]
    assert len(notices) == 1


@pytest.mark.audit
def test_workers_that_die_again_and_again_end_in_a_fixed_text() -> None:
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        open_cluster("local") as opened,
        pytest.raises(ClusterError, match="computed one part died repeatedly"),
    ):
        list(stream(opened, os._exit, [(1,)]))
