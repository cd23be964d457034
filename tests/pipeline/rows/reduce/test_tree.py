"""The graph: any number of partitions, failures as fixed texts, progress that counts each task once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import StageFailedError
from suffice.pipeline.cluster.connection import Cluster, ThreadCluster
from suffice.pipeline.cluster.stall_limits import STALL_SECONDS
from suffice.pipeline.cluster.workers import ThreadsThatMayHang
from suffice.pipeline.rows.chunk.exact_sums import Sums, combine, to_python
from suffice.pipeline.rows.chunk.partition import ChunkJob, chunk, chunk_job
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.reduce.tree import (
    PartialSums,
    exact_sums,
    open_cluster_for_sums,
    sums_bytes,
    zero_sums,
)
from suffice.pipeline.rows.sources.contract import Split, join
from support.hostile import categorical, make_spec, normal
from support.splits import splits_of
from support.workers import FragileJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CANARY = "CANARY-90ab"
Splits = tuple[Split, ...]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every split a task, however few rows it has."""
    monkeypatch.setattr(tree, "TASK_VALUES", 1)


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.fixture
def many(tmp_path: Path) -> tuple[ChunkJob, Splits]:
    rng = np.random.default_rng(2)
    table = pa.table({"x": rng.normal(size=1400), "k": rng.choice(["a", "b", "c"], 1400)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    spec = make_spec(
        tmp_path, {"x": normal("x", "-1", "1"), "k": categorical("k", ["a"])}, groups={"k": ["a", "b"]}
    )
    splits = splits_of(spec, 1)
    assert len(splits) == 140
    return chunk_job(spec), splits


def as_lists(sums: Sums) -> dict[str, list[list[int]]]:
    return {name: table.tolist() for name, table in to_python(sums).items()}


@pytest.mark.parametrize("n_partitions", [0, 1, 2, 7, 8, 9, 64, 65, 73, 140])
def test_any_number_of_partitions(many: tuple[ChunkJob, Splits], threads: Cluster, n_partitions: int) -> None:
    job, splits = many
    partitions = splits[:n_partitions]
    alone = combine([zero_sums(job), *(chunk(partition, job) for partition in partitions)])
    assert as_lists(exact_sums(job, partitions, threads).open_totals()) == as_lists(alone)
    n = to_python(alone)["x"][:, 0].sum()
    assert (n > 0) == (n_partitions > 0)


def test_the_graph_is_a_tree_and_its_last_addition_is_the_callers(
    many: tuple[ChunkJob, Splits],
) -> None:
    job, splits = many
    graphs = []

    class Recorder:
        is_distributed = False
        n_threads = 1

        def compute(self, graph: dict[str, object], keys: list[str], _watched: object) -> list[PartialSums]:
            graphs.append((graph, keys))
            return [PartialSums(zero_sums(job))]

    exact_sums(job, splits, Recorder()).open_totals()  # type: ignore[arg-type]
    exact_sums(job, splits, Recorder()).open_totals()  # type: ignore[arg-type]
    (graph, keys), (other, _) = graphs
    assert len(keys) == 3  # 140 -> 18 -> 3
    assert len(graph) == 1 + 140 + 18 + 3
    assert not set(graph) & set(other)


@pytest.mark.parametrize(("room", "n_threads", "n_reads"), [(0, 2, 2), (0, 3, 3), (5, 2, 10), (1000, 2, 140)])
def test_large_tables_are_few_whatever_the_number_of_partitions(
    many: tuple[ChunkJob, Splits],
    monkeypatch: pytest.MonkeyPatch,
    room: int,
    n_threads: int,
    n_reads: int,
) -> None:
    job, splits = many
    assert sums_bytes(job) == sum(
        table.low.nbytes + (0 if table.high is None else table.high.nbytes)
        for table in zero_sums(job).values()
    )
    monkeypatch.setattr(tree, "PARTIAL_BYTES", room * sums_bytes(job))
    calls: list[tuple[int, int]] = []
    with ThreadsThatMayHang(n_threads, STALL_SECONDS) as pool:
        cluster = ThreadCluster(pool, n_threads)
        sums = exact_sums(
            job, splits, cluster, progress=lambda done, total: calls.append((done, total))
        ).open_totals()
    alone = combine([chunk(partition, job) for partition in splits])
    assert as_lists(sums) == as_lists(alone)
    assert calls[-1] == (n_reads, n_reads)


@pytest.mark.parametrize(
    ("task_values", "n_threads", "n_reads"),
    [
        (10**9, 2, 8),  # little data: four tasks a thread
        (10**9, 50, 140),  # fewer splits than that
        (100, 2, 28),  # 1,400 rows of two columns
        (1, 2, 70),  # no more than most, of data that are many
        (1, 20, 80),  # unless threads are that many
    ],
)
def test_threads_have_four_tasks_each_and_large_data_no_more_than_most(
    many: tuple[ChunkJob, Splits],
    monkeypatch: pytest.MonkeyPatch,
    task_values: int,
    n_threads: int,
    n_reads: int,
) -> None:
    job, splits = many
    monkeypatch.setattr(tree, "TASK_VALUES", task_values)
    monkeypatch.setattr(tree, "MOST_TASKS", 70)
    seen: list[int] = []

    class Recorder:
        is_distributed = False

        def __init__(self) -> None:
            self.n_threads = n_threads

        def compute(self, graph: dict[str, object], _keys: list[str], _watched: object) -> list[PartialSums]:
            seen.append(sum(key.startswith("read-") for key in graph))
            return [PartialSums(zero_sums(job))]

    exact_sums(job, splits, Recorder()).open_totals()  # type: ignore[arg-type]
    assert seen == [n_reads]


def test_joined_partitions_hold_every_row_group_once_in_order(many: tuple[ChunkJob, Splits]) -> None:
    _, splits = many
    for most in (1, 2, 3, 7, 139, 140, 141):
        joined = join(splits, most)
        assert len(joined) == min(most, 140)
        pieces = [piece for partition in splits for piece in partition.pieces]
        assert [piece for partition in joined for piece in partition.pieces] == pieces
        rows = [partition.n_rows for partition in joined]
        assert sum(rows) == 1400
        assert max(rows) - min(rows) <= 10  # no more than one partition's rows


def test_progress_counts_every_task_once(many: tuple[ChunkJob, Splits], threads: Cluster) -> None:
    job, splits = many
    calls: list[tuple[int, int]] = []
    exact_sums(job, splits, threads, progress=lambda done, total: calls.append((done, total))).open_totals()
    assert calls == [(number, 140) for number in range(1, 141)]


def test_a_failure_comes_back_as_the_text_of_its_stage(
    many: tuple[ChunkJob, Splits], threads: Cluster, tmp_path: Path
) -> None:
    job, splits = many
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [CANARY]}), path)
    with pytest.raises(StageFailedError) as caught:
        exact_sums(job, splits, threads)
    assert str(caught.value) == f"the data file {path} has changed since it was pinned"
    assert caught.value.stage == "reading"
    assert caught.value.__context__ is None


def test_no_exceptions_text_leaves_a_task(
    many: tuple[ChunkJob, Splits], threads: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    job, splits = many
    fragile = FragileJob(measures=job.measures, groups=job.groups, action="raise", canary=CANARY)
    with caplog.at_level(logging.DEBUG), pytest.raises(StageFailedError) as caught:
        exact_sums(fragile, splits, threads)
    assert str(caught.value) == tree.READING_FAILED
    assert caught.value.__context__ is None
    assert CANARY not in caplog.text


def test_a_lack_of_memory_is_named(
    many: tuple[ChunkJob, Splits], threads: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> Sums:
        raise MemoryError(CANARY)

    job, splits = many
    monkeypatch.setattr(tree, "chunk", exhausted)
    with pytest.raises(StageFailedError, match=r"^a worker ran out of memory"):
        exact_sums(job, splits, threads)
