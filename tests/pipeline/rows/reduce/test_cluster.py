"""Clusters: what is opened, what is refused, and what a lost worker changes: nothing, or a fixed text."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import dask
import distributed
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed.utils import get_ip

from suffice.errors import ClusterError, StageFailedError, UsageError
from suffice.pipeline.cluster import clients
from suffice.pipeline.cluster import connection as clusters
from suffice.pipeline.cluster.admission import Admission
from suffice.pipeline.cluster.connection import DistributedCluster
from suffice.pipeline.cluster.workers import is_loopback
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import Sums, combine, to_python
from suffice.pipeline.rows.chunk.partition import ChunkJob, chunk, chunk_job
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.reduce.survey import surveyed_on
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from support.dask_clusters import NO_SPILLING, by_address
from support.hostile import categorical, make_spec, normal
from support.splits import splits_of
from support.workers import FragileJob

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from suffice.pipeline.rows.sources.contract import Split

CANARY = "CANARY-33ff"
ADDRESS: str = get_ip()  # type: ignore[no-untyped-call]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every split a task, however few rows it has."""
    monkeypatch.setattr(tree, "TASK_VALUES", 1)


@pytest.fixture(scope="module")
def local() -> Iterator[DistributedCluster]:
    with open_cluster_for_sums("local") as cluster:
        assert isinstance(cluster, DistributedCluster)
        yield cluster


@pytest.mark.slow
def test_workers_read_the_footers_of_many_files(
    local: DistributedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0], "k": ["a", CANARY]}), tmp_path / "0.parquet")
    for number in range(1, 300):
        (tmp_path / f"{number}.parquet").write_bytes((tmp_path / "0.parquet").read_bytes())
    spec = make_spec(tmp_path, {"x": normal("x", "-1", "1"), "k": categorical("k", ["a"], other="true")})
    expected = sources.splits(sources.pin(spec))

    def refuse(*_: object) -> None:
        pytest.fail("this process reads footers")

    monkeypatch.setattr("suffice.pipeline.rows.sources.parquet_files.by_threads", refuse)
    with surveyed_on(local):
        pin = sources.pin(spec)
    assert sources.splits(pin) == expected
    assert all(footer.metadata.value is None for footer in pin.private.files.footers), "values stay there"
    totals = exact_sums(chunk_job(spec), sources.splits(pin), local).open_totals()
    assert_same(totals, combine([chunk(split, chunk_job(spec)) for split in expected]))
    (tmp_path / "7.parquet").write_text(CANARY * 100)
    with pytest.raises(UsageError, match="cannot be read as a Parquet file") as caught, surveyed_on(local):
        sources.pin(spec)
    assert CANARY not in str(caught.value)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[ChunkJob, list[Split], Sums]:
    directory = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(2)
    table = pa.table({"x": rng.normal(size=4000), "k": rng.choice(["a", "b", CANARY], 4000)})
    pq.write_table(table, directory / "a.parquet", row_group_size=100)
    spec = make_spec(directory, {"x": normal("x", "-1", "1"), "k": categorical("k", ["a"], other="true")})
    partitions = list(splits_of(spec, 1))
    assert len(partitions) == 40
    job = chunk_job(spec)
    return job, partitions, combine([chunk(partition, job) for partition in partitions])


def fragile(job: ChunkJob, action: str, marker: Path | str = "") -> FragileJob:
    return FragileJob(
        measures=job.measures, groups=job.groups, action=action, marker=str(marker), canary=CANARY
    )


def assert_same(ours: Sums, theirs: Sums) -> None:
    for name, table in to_python(theirs).items():
        assert to_python(ours)[name].tolist() == table.tolist()


def listening(process: psutil.Process) -> set[str]:
    return {
        connection.laddr.ip
        for member in [process, *process.children(recursive=True)]
        for connection in member.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def memory_limits(dask_worker: distributed.Worker) -> tuple[float | Literal[False] | None, ...]:
    memory = dask_worker.memory_manager
    return memory.memory_target_fraction, memory.memory_spill_fraction, memory.memory_pause_fraction


def test_local_processes_are_encrypted_on_the_loopback_and_never_spill(local: DistributedCluster) -> None:
    workers = local.client.scheduler_info()["workers"]
    assert workers
    assert local.n_threads == len(workers)
    assert all(address.startswith("tls://127.0.0.1:") for address in workers)
    assert local.client.scheduler.address.startswith("tls://127.0.0.1:")
    assert listening(psutil.Process()) <= {"127.0.0.1"}
    assert set(local.client.run(memory_limits).values()) == {(False, False, False)}


def test_local_equals_one_chunk_after_the_other_and_reports_progress(
    local: DistributedCluster, rows: tuple[ChunkJob, list[Split], Sums]
) -> None:
    job, partitions, expected = rows
    calls: list[tuple[int, int]] = []
    ours = exact_sums(
        job, partitions, local, progress=lambda done, total: calls.append((done, total))
    ).open_totals()
    assert_same(ours, expected)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
    assert calls[-1] == (40, 40)


def test_tasks_report_only_where_somebody_watches(
    local: DistributedCluster, rows: tuple[ChunkJob, list[Split], Sums]
) -> None:
    job, partitions, _ = rows

    def reported(dask_scheduler: distributed.Scheduler) -> dict[str, int]:
        events = dask_scheduler.get_events()
        return {topic: len(told) for topic, told in events.items() if topic.startswith("suffice-")}

    before = local.client.run_on_scheduler(reported)
    exact_sums(job, partitions, local).open_totals()
    assert local.client.run_on_scheduler(reported) == before
    exact_sums(job, partitions, local, progress=lambda _done, _total: None).open_totals()
    (more,) = local.client.run_on_scheduler(reported).items() - before.items()
    assert more[1] == len(partitions)


def test_nothing_of_a_run_stays_on_the_cluster(
    local: DistributedCluster, rows: tuple[ChunkJob, list[Split], Sums]
) -> None:
    job, partitions, _ = rows
    exact_sums(job, partitions, local).open_totals()

    def left(dask_scheduler: distributed.Scheduler) -> list[str]:
        return [str(key) for key in dask_scheduler.tasks]

    for _ in range(100):
        if not local.client.run_on_scheduler(left):
            break
    assert local.client.run_on_scheduler(left) == []
    assert not any(local.client.run(lambda dask_worker: list(dask_worker.data)).values())


@pytest.mark.slow
def test_a_worker_that_dies_changes_no_bit(
    local: DistributedCluster, rows: tuple[ChunkJob, list[Split], Sums], tmp_path: Path
) -> None:
    job, partitions, expected = rows
    marker = tmp_path / "died"
    assert_same(exact_sums(fragile(job, "die once", marker), partitions, local).open_totals(), expected)
    assert marker.exists()
    local.client.wait_for_workers(2, timeout=30)
    assert set(local.client.run(memory_limits).values()) == {(False, False, False)}


@pytest.mark.slow
def test_workers_that_die_again_and_again_end_in_a_fixed_text(
    rows: tuple[ChunkJob, list[Split], Sums],
) -> None:
    job, partitions, _ = rows
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        open_cluster_for_sums("local") as cluster,
        pytest.raises(StageFailedError) as caught,
    ):
        exact_sums(fragile(job, "die"), partitions[:1], cluster)
    assert str(caught.value) == clusters._WORKERS_DIED
    assert caught.value.__context__ is None


def test_no_data_reach_a_workers_log(
    local: DistributedCluster, rows: tuple[ChunkJob, list[Split], Sums], capfd: pytest.CaptureFixture[str]
) -> None:
    job, partitions, _ = rows
    with pytest.raises(StageFailedError) as caught:
        exact_sums(fragile(job, "raise"), partitions, local)
    logs = [
        local.client.get_worker_logs(),
        local.client.get_scheduler_logs(),
        capfd.readouterr(),
        caught.value,
    ]
    assert CANARY not in repr(logs)

    def quoting() -> None:
        raise ValueError(CANARY)

    with pytest.raises(ValueError, match=CANARY):  # what Dask does with a text that is not held back
        local.client.submit(quoting, pure=False).result()
    assert CANARY in repr(local.client.get_worker_logs())


def test_a_scheduler_with_other_certificates(
    local: DistributedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 2)
    with (
        pytest.raises(ClusterError, match="certificates"),
        open_cluster_for_sums(local.client.scheduler.address),
    ):
        pass


@pytest.mark.slow
def test_a_cluster_by_address(rows: tuple[ChunkJob, list[Split], Sums]) -> None:
    job, partitions, expected = rows
    with (
        dask.config.set(NO_SPILLING),
        by_address() as processes,
        open_cluster_for_sums(processes.scheduler_address) as cluster,
    ):
        assert_same(exact_sums(job, partitions, cluster).open_totals(), expected)


@asynccontextmanager
async def joining(scheduler: str, log: list[str], **options: Any) -> AsyncIterator[distributed.Worker]:
    """Start a worker in this process, and note the keys of tasks that it hears of."""

    class Noting(distributed.Worker):
        def handle_stimulus(self, *stims: Any) -> None:
            log.extend(str(stim.key) for stim in stims if type(stim).__name__ == "ComputeTaskEvent")
            super().handle_stimulus(*stims)

    worker = Noting(scheduler, nthreads=1, dashboard=False, **options)
    try:
        await worker
        yield worker
    finally:
        await worker.close()


UNFIT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "spills": ({}, {"host": "127.0.0.1"}),
    "open link": (NO_SPILLING, {"host": ADDRESS}),
}


@pytest.mark.slow
@pytest.mark.parametrize("unfit", [*UNFIT, "fit"])
def test_a_worker_that_joins_later_is_checked_like_the_first(
    rows: tuple[ChunkJob, list[Split], Sums], unfit: str
) -> None:
    job, partitions, expected = rows
    if unfit == "open link" and is_loopback(ADDRESS):
        pytest.skip("this machine has no address but the loopback's")
    settings, options = UNFIT.get(unfit, (NO_SPILLING, {"host": "127.0.0.1"}))
    heard: list[str] = []

    async def run(address: str) -> tuple[Sums, bool]:
        with dask.config.set(settings):
            async with joining(address, heard, **options) as worker:
                sums = await asyncio.to_thread(exact_sums, job, partitions, cluster)
                return sums.open_totals(), worker.status is distributed.Status.running

    with dask.config.set(NO_SPILLING):
        processes = by_address()
    with processes, open_cluster_for_sums(processes.scheduler_address) as cluster:
        sums, is_running = asyncio.run(run(processes.scheduler_address))
    assert_same(sums, expected)
    assert is_running == (unfit == "fit")
    assert bool(heard) == (unfit == "fit"), "a control: whoever is fit takes part"


@pytest.mark.slow
def test_without_admission_an_unfit_worker_would_hear_of_tasks(
    rows: tuple[ChunkJob, list[Split], Sums], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: the plugin lets everybody in, and only the tasks themselves see that a worker may spill."""
    job, partitions, _ = rows

    async def setup(_self: Admission, _worker: distributed.Worker) -> None: ...

    monkeypatch.setattr(Admission, "setup", setup)
    heard: list[str] = []

    async def run(address: str) -> None:
        async with joining(address, heard, host="127.0.0.1"):
            await asyncio.to_thread(exact_sums, job, partitions, cluster)

    with dask.config.set(NO_SPILLING):
        processes = by_address()
    with (
        processes,
        open_cluster_for_sums(processes.scheduler_address) as cluster,
        pytest.raises(ClusterError, match="write its memory to disk"),
    ):
        asyncio.run(run(processes.scheduler_address))
    assert heard
