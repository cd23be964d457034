"""Workers that are stopped: others take over, or the run ends by itself; the sums are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

import dask
import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import ClusterError
from suffice.pipeline.cluster import clients, connection, workers
from suffice.pipeline.cluster.connection import DistributedCluster
from suffice.pipeline.cluster.workers import (
    HANGS,
    Stalled,
    Stalls,
    ThreadsThatMayHang,
    WorkerStanding,
    by_threads,
    goes_on,
    within_deadline,
)
from suffice.pipeline.rows.chunk.exact_sums import combine, to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.storage.ledger.charge import ChargeState
from support.black_hole import black_hole
from support.dask_clusters import NO_SPILLING, by_address, in_processes
from support.hostile import make_spec, normal
from support.making import make_workspace, mapping
from support.splits import splits_of
from support.workers import FragileJob

DaskClient: Any = distributed.Client  # untyped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.sources.contract import Split

PATIENCE, COLD_SECONDS, SECONDS = 60.0, 20.0, 6.0
"""Deadlines: where none is to be missed; of workers that compile their kernels, whose heartbeats are late;
and of those that have: heartbeats come twice a second, and a task takes milliseconds."""
ENDED_WITHIN = 150.0
"""Several times what it takes: Dask starts and stops processes meanwhile."""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FragileJob, FragileJob, list[Split], Sums]:
    """A job that stops one worker, one that stops all, the partitions, and what is right."""
    monkeypatch.setattr(tree, "TASK_VALUES", 1)
    data = tmp_path / "rows"
    data.mkdir()
    values = np.random.default_rng(2).normal(size=4000)
    pq.write_table(pa.table({"x": values}), data / "a.parquet", row_group_size=100)
    spec = make_spec(data, {"x": normal("x", "-1", "1")})
    job, partitions = chunk_job(spec), list(splits_of(spec, 1))
    stalling, everyone = (
        FragileJob(
            measures=job.measures, groups=job.groups, action=action, marker=str(tmp_path / f"{action} marker")
        )
        for action in ("stop", "stop all")
    )
    return stalling, everyone, partitions, combine([chunk(partition, job) for partition in partitions])


@contextmanager
def warm_cluster(
    place: Any, rows: tuple[FragileJob, FragileJob, list[Split], Sums], notice: Callable[[str], None]
) -> Iterator[DistributedCluster]:
    """Open a cluster whose workers have summed the rows before, and give it the short deadline."""
    job, _, partitions, _ = rows
    with open_cluster_for_sums(place, None, PATIENCE, notice) as cluster:
        assert isinstance(cluster, DistributedCluster)
        exact_sums(replace(job, action="none"), partitions, cluster)
        yield replace(cluster, stall_seconds=SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_stopped_worker_is_named_and_others_read_what_it_had(
    rows: tuple[FragileJob, FragileJob, list[Split], Sums], tmp_path: Path
) -> None:
    job, _, partitions, expected = rows
    notices: list[str] = []
    with warm_cluster("local", rows, notices.append) as cluster:
        addresses = set(cluster.client.scheduler_info()["workers"])
        began = time.monotonic()
        sums = exact_sums(job, partitions, cluster).open_totals()
        assert time.monotonic() - began < ENDED_WITHIN
    assert to_python(sums)["x"].tolist() == to_python(expected)["x"].tolist()
    assert (tmp_path / "stop marker").exists(), "a worker was stopped"
    named = {address for address in addresses for notice in notices if address in notice}
    assert len(named) == len(notices) == 1


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_stopped_worker_of_a_client_is_named_and_the_client_goes_on(
    rows: tuple[FragileJob, FragileJob, list[Split], Sums],
) -> None:
    job, _, partitions, expected = rows
    notices: list[str] = []
    with (
        dask.config.set(NO_SPILLING),
        by_address(2) as processes,
        DaskClient(processes, set_as_default=False) as client,
    ):
        with warm_cluster(client, rows, notices.append) as cluster:
            sums = exact_sums(job, partitions, cluster).open_totals()
        assert client.status == "running"
    assert to_python(sums)["x"].tolist() == to_python(expected)["x"].tolist()
    assert len(notices) == 1


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("action", ["hang", "hang all"])
def test_a_disk_that_does_not_answer_holds_up_nobody_for_long(
    rows: tuple[FragileJob, FragileJob, list[Split], Sums], tmp_path: Path, action: str
) -> None:
    """Heartbeats come all the time. One worker's is routed around; one that all read from ends the run."""
    job, _, partitions, expected = rows
    job = replace(job, action=action, marker=str(tmp_path / "hangs"))
    notices: list[str] = []
    with warm_cluster("local", rows, notices.append) as cluster:
        began = time.monotonic()
        if action == "hang":
            sums = exact_sums(job, partitions, cluster).open_totals()
            assert to_python(sums)["x"].tolist() == to_python(expected)["x"].tolist()
            assert len(notices) == 1
        else:
            with pytest.raises(ClusterError, match="no worker of the cluster ended a task"):
                exact_sums(job, partitions, cluster)
        assert time.monotonic() - began < ENDED_WITHIN
    assert (tmp_path / "hangs").exists() == (action == "hang")


@pytest.mark.audit
@pytest.mark.timeout(300)
def test_a_worker_whose_network_swallows_everything_is_left_out(
    rows: tuple[FragileJob, FragileJob, list[Split], Sums], tmp_path: Path
) -> None:
    """No connection is closed, and no error comes: heartbeats alone tell."""
    job, _, partitions, expected = rows
    job = replace(job, action="none")
    notices: list[str] = []
    with (
        black_hole() as hole,
        in_processes(tmp_path, behind=hole) as (address, _),
        open_cluster_for_sums(address, None, COLD_SECONDS, notices.append) as cluster,
    ):
        cluster.client.wait_for_workers(2, timeout=ENDED_WITHIN)  # type: ignore[union-attr]
        hole.swallows.set()
        began = time.monotonic()
        sums = exact_sums(job, partitions, cluster).open_totals()
        assert time.monotonic() - began < ENDED_WITHIN
    assert to_python(sums)["x"].tolist() == to_python(expected)["x"].tolist()
    assert len(notices) == 1


@pytest.mark.audit
@pytest.mark.timeout(300)
def test_a_run_whose_workers_are_all_stopped_ends(
    rows: tuple[FragileJob, FragileJob, list[Split], Sums], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job, partitions, _ = rows
    began = time.monotonic()
    with open_cluster_for_sums("local", None, COLD_SECONDS) as cluster:
        monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)  # how long it is tried to tidy up
        with pytest.raises(ClusterError) as caught:
            exact_sums(job, partitions, cluster)
    assert str(caught.value) == connection._STALLED
    assert time.monotonic() - began < ENDED_WITHIN


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("when", [pytest.param("before a task", marks=pytest.mark.audit), "after a task"])
def test_a_scheduler_that_is_stopped_ends_the_run(
    rows: tuple[FragileJob, FragileJob, list[Split], Sums],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    """Its connections stay, and it sends nothing."""
    job, _, partitions, _ = rows
    job = replace(job, action="none")
    with in_processes(tmp_path) as (address, scheduler):

        def stop(*_: int) -> None:
            scheduler.send_signal(signal.SIGSTOP)

        with open_cluster_for_sums(address, None, PATIENCE) as cluster:
            monkeypatch.setattr(workers, "ANSWER_SECONDS", SECONDS)
            monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)  # how long it is tried to tidy up
            if when == "before a task":
                stop()
            began = time.monotonic()
            with pytest.raises(ClusterError) as caught:
                exact_sums(job, partitions, cluster, progress=stop)
        assert str(caught.value) == connection.LOST
        assert time.monotonic() - began < ENDED_WITHIN


HANGING = """
import sys
from importlib import import_module
from suffice.cli.app import main
from suffice.storage.ledger.sql.sql_ledger import SqlLedger

pipe, charged, module, name = sys.argv[1:5]
del sys.argv[1:5]
reserve = SqlLedger.reserve

def hang():
    setattr(import_module(module), name, lambda *_: open(pipe, "rb"))

def reserved(*arguments, **options):
    hang()
    return reserve(*arguments, **options)

if charged == "charged":
    SqlLedger.reserve = reserved
else:
    hang()
main(sys.argv[1:])
"""
"""A release whose files are behind a pipe that nobody writes into: to open it hangs, in the kernel."""
SOURCES = "suffice.pipeline.rows.sources"


def hung(directory: Path, spec: Path, *where: str) -> subprocess.CompletedProcess[str]:
    """Carry out a release that hangs there, and return how it ended by itself."""
    os.mkfifo(directory / "pipe")
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", HANGING, str(directory / "pipe"), *where, "release", str(spec)],
        env={
            **os.environ,
            "SUFFICE_STALL_SECONDS": "1",
            "SUFFICE_LEDGER": f"sqlite:///{directory}/ledger.db",
            "SUFFICE_STORE": f"{directory}/releases",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert time.monotonic() - began < ENDED_WITHIN
    assert (ended.returncode, ended.stdout) == (1, "")
    assert HANGS in ended.stderr
    return ended


@pytest.mark.slow
def test_a_read_that_hangs_ends_the_run_and_costs_nothing(tmp_path: Path) -> None:
    """Threads cannot be ended: the charge is settled, and the process ends without them."""
    work = make_workspace(tmp_path)
    ended = hung(tmp_path, work.write_spec(), "charged", f"{SOURCES}.parquet_files", "opened")
    assert "its epsilon was returned" in ended.stderr
    assert work.account().remaining == work.account().granted
    charge = work.charge()
    assert charge is not None
    assert charge.state is ChargeState.ABANDONED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [
        ("parquet", "contracted_columns", "opened"),
        ("csv", "file_access", "opened_text"),
        ("parquet", "parquet", "pin"),
        ("csv", "csv_files", "_check_pinned"),
    ],
    ids=["a footer", "a first line", "a listing", "a count of lines"],
)
def test_what_hangs_before_the_reading_ends_the_run_before_any_charge(
    tmp_path: Path, kind: str, module: str, name: str
) -> None:
    work = make_workspace(tmp_path)
    source: dict[str, Any] = {"parquet": str(work.data)}
    if kind == "csv":
        (tmp_path / "a.csv").write_text("cancelled\ntrue\n", encoding="utf-8")
        source = {"csv": str(tmp_path / "a.csv"), "columns": {"cancelled": "boolean"}}
    statistics = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(mapping(source, groups=None, statistics=statistics)), encoding="utf-8")
    hung(tmp_path, spec, "uncharged", f"{SOURCES}.{module}", name)
    assert work.charge() is None


@pytest.mark.slow
def test_a_deadline_begins_anew_with_every_step() -> None:
    """As with many files, each of which is read in time."""

    def look(_: int) -> None:
        time.sleep(0.15)
        goes_on()

    began = time.monotonic()
    assert within_deadline(lambda: by_threads(look, range(16), 2), 0.5) == [None] * 16
    assert time.monotonic() - began > 1
    hung = Event()
    with pytest.raises(ClusterError):
        within_deadline(lambda: by_threads(lambda stuck: stuck and hung.wait(), [False, True], 2), 0.1)
    hung.set()
    with pytest.raises(ZeroDivisionError):
        within_deadline(lambda: by_threads(lambda number: 1 // number, [1, 0], 2), 10.0)


def test_threads_wait_for_what_is_slow() -> None:
    """Ten times the longest that a task took; none is given up because another thread's ended late."""
    pool = ThreadsThatMayHang(2, 0.1)
    with pool, pool.watched():
        assert pool.submit(time.sleep, 0.09).result() is None
        assert list(pool.map(lambda number: number + 1, range(100))) == list(range(1, 101))
    hung = Event()
    pool = ThreadsThatMayHang(2, 0.1)
    began = time.monotonic()
    with pool, pool.watched():
        stuck, fine = pool.submit(hung.wait), pool.submit(int, "1")
        with pytest.raises(Stalled):
            stuck.result()
        assert fine.result() == 1
    assert time.monotonic() - began < 20, "nobody waits for the thread that hangs"
    hung.set()


def test_what_is_done_around_the_reading_has_the_same_deadline() -> None:
    hung = Event()
    with pytest.raises(ClusterError) as caught:
        within_deadline(hung.wait, 0.1)
    hung.set()
    assert str(caught.value) == HANGS
    assert within_deadline(lambda: 7, 10.0) == 7


def standing(*tasks: str, silent: float = 0.0) -> WorkerStanding:
    return WorkerStanding(silent=silent, tasks=frozenset(tasks))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_slow_is_not_stuck() -> None:
    """The deadline is ten times what a worker was seen to take, where that is more than what is stated."""
    clock = Clock()
    stalls = Stalls(100.0, clock)
    assert stalls.look({"a": standing("1", "2"), "b": standing("3")}) == ()
    clock.now = 90.0
    assert stalls.look({"a": standing("2"), "b": standing("3")}) == ()
    assert stalls.deadline == 900.0
    now = {"a": standing("2"), "b": standing("3")}
    clock.now = 890.0
    assert stalls.look(now) == ()
    clock.now = 901.0
    assert stalls.look(now) == ("b",)
    assert stalls.is_left(now, ("b",)), "a has ended a task since"
    clock.now = 1000.0
    assert stalls.look(now) == ("a", "b")
    assert not stalls.is_left(now, ("a", "b")), "as where a disk holds up all of them"
    now = {**now, "c": standing()}
    assert not stalls.is_left(now, ("a", "b")), "often enough"
    assert Stalls(100.0, clock).is_left({"a": standing("1", silent=200.0), "c": standing()}, ("a",))


def test_a_silent_worker_is_given_up_sooner_and_before_those_that_wait_for_it() -> None:
    clock = Clock()
    stalls = Stalls(600.0, clock)
    stalls.look({"a": standing(), "b": standing("2")})
    clock.now = 601.0
    now = {"a": standing(silent=121.0), "b": standing("2")}
    assert stalls.look(now) == ("a",), "it has no task, but perhaps results"
    assert stalls.is_left(now, ("a",))
    clock.now = 1200.0
    assert stalls.look({"b": standing("2")}) == (), "b has its time again"
    clock.now = 1202.0
    assert stalls.look({"b": standing("2")}) == ("b",)
    alone = {"b": standing("2", silent=130.0)}
    assert not stalls.is_left(alone, stalls.look(alone))


def test_a_worker_that_waits_for_work_is_not_stuck() -> None:
    clock = Clock()
    stalls = Stalls(10.0, clock)
    stalls.look({"a": standing()})
    clock.now = 100.0
    assert stalls.look({"a": standing("1")}) == ()
    clock.now = 109.0
    assert stalls.look({"a": standing("1")}) == ()
    clock.now = 111.0
    assert stalls.look({"a": standing("1")}) == ("a",)
    assert stalls.look({}) == ()
    assert stalls.look({"a": standing("1")}) == (), "one that joined again begins anew"
