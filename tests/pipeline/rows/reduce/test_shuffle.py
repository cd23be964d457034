"""Bounding by unit over a cluster: the same bits however rows lie, and no unit beyond its bound."""

from __future__ import annotations

import dataclasses
import pickle
from typing import TYPE_CHECKING, Any

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import ClusterError, StageFailedError
from suffice.pipeline.rows.chunk.exact_sums import Sums, to_python
from suffice.pipeline.rows.chunk.partition import ChunkJob, chunk, chunk_job
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.rows.reduce import shuffle
from suffice.pipeline.rows.reduce.shuffle import bounded_sums
from suffice.pipeline.rows.reduce.tree import READING_FAILED, exact_sums, open_cluster_for_sums
from suffice.pipeline.spec.plan import compile_plan
from support.hostile import categorical, make_spec, normal
from support.splits import row_count, splits_of
from support.units import KEY, OTHER_KEY, by_customer, partitions_of, sum_tasks
from support.workers import FragileJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

CANARY = "CANARY-77cd"
MAX_ROWS = 4
N_UNITS = 60


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with open_cluster_for_sums("local") as cluster:
        yield cluster


def customers(n_rows: int = 3000, *, seed: int = 3) -> pa.Table:
    """Return rows of 60 units, few with many rows and many with few; a tenth have none."""
    rng = np.random.default_rng(seed)
    units = np.minimum(rng.geometric(0.06, n_rows) - 1, N_UNITS - 1)
    return pa.table(
        {
            "u": pa.array(units, mask=rng.random(n_rows) < 0.1),
            "g": rng.choice(["a", "b", "other"], n_rows),
            "k": pa.array(rng.choice(["p", "q", CANARY], n_rows), mask=rng.random(n_rows) < 0.2),
            "x": rng.normal(size=n_rows),
        }
    )


def unit_spec(directory: Path, *, clustered: bool = False, **unit: str) -> Spec:
    spec = make_spec(
        directory,
        {"k": categorical("k", ["p", "q"], other="true"), "x": normal("x", "-1", "1")},
        groups={"g": ["a", "b"]},
        privacy={"epsilon": "1", "neighboring": "add_or_remove_one", "unit": by_customer(MAX_ROWS, **unit)},
    )
    source = spec.source.model_copy(update={"clustered_by": "u" if clustered else None})
    return spec.model_copy(update={"source": source})


def as_lists(sums: Sums) -> dict[str, list[list[int]]]:
    return {name: table.tolist() for name, table in to_python(sums).items()}


def write(directory: Path, table: pa.Table, *, row_group_size: int = 100, **options: Any) -> Path:
    directory.mkdir(exist_ok=True)
    pq.write_table(table, directory / "data.parquet", row_group_size=row_group_size, **options)
    return directory


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, list[list[int]]]:
    """The sums, all rows in one task and one bucket."""
    spec = unit_spec(write(tmp_path / "expected", customers(), row_group_size=10**6), nulls="own_unit")
    (partition,) = partitions_of(spec)
    return as_lists(sum_tasks(chunk_job(spec), [partition], n_buckets=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_same_bits_however_rows_lie(
    tmp_path: Path,
    threads: Cluster,
    expected: dict[str, list[list[int]]],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Row order, files, row groups, types, buckets, rounds, tables of units and a declared clustering."""
    rng = np.random.default_rng(seed)
    table = customers()
    if seed % 3:
        order = (
            rng.permutation(len(table)) if seed % 3 == 1 else np.argsort(table["u"].to_numpy(), kind="stable")
        )
        table = table.take(pa.array(order))
    cuts = np.sort(rng.integers(0, len(table), 3))
    types = [pa.int64(), pa.int32(), pa.float64(), pa.uint8()]
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        piece = table.slice(start, end - start)
        units = piece["u"].cast(types[(number + seed) % 4])
        piece = piece.set_column(0, "u", units.combine_chunks().dictionary_encode() if number == 1 else units)
        size = int(rng.integers(1, 400))
        pq.write_table(
            piece, tmp_path / f"{number}.parquet", row_group_size=size, use_dictionary=bool(number % 2)
        )
    spec = unit_spec(tmp_path, nulls="own_unit", clustered=bool(seed % 4))
    assert chunk_job(spec).is_clustered == bool(seed % 4)
    monkeypatch.setattr(shuffle, "RECORD_BYTES_PER_THREAD", int(rng.choice([5_000, 20_000, 10**9])))
    monkeypatch.setattr(shuffle, "_BUCKETS_PER_THREAD", int(rng.integers(1, 5)))
    monkeypatch.setattr(shuffle, "_MOST_EDGES", int(rng.integers(8, 300)))
    monkeypatch.setattr(shuffle, "_MOST_BITS", int(rng.choice([64, 2**20])))
    partitions = list(partitions_of(spec))
    rng.shuffle(partitions)
    calls: list[tuple[int, int]] = []
    sums = bounded_sums(
        chunk_job(spec), partitions, threads, KEY, progress=lambda done, total: calls.append((done, total))
    ).open_totals()
    assert as_lists(sums) == expected
    total = calls[-1][1]
    assert calls == [(number, total) for number in range(1, total + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_processes_give_the_same_bits(
    tmp_path: Path,
    local: Cluster,
    expected: dict[str, list[list[int]]],
    monkeypatch: pytest.MonkeyPatch,
    clustered: bool,
) -> None:
    monkeypatch.setattr(shuffle, "RECORD_BYTES_PER_THREAD", 20_000)
    directory = write(tmp_path / "data", customers(), row_group_size=500)
    spec = unit_spec(directory, nulls="own_unit", clustered=clustered)
    assert as_lists(bounded_sums(chunk_job(spec), partitions_of(spec), local, KEY).open_totals()) == expected


@pytest.mark.slow
def test_a_cluster_by_address(tmp_path: Path, expected: dict[str, list[list[int]]]) -> None:
    import dask

    settings = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}
    directory = write(tmp_path / "data", customers(), row_group_size=500)
    spec = unit_spec(directory, nulls="own_unit")
    with (
        dask.config.set(settings),
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=1,
            threads_per_worker=2,
            host="127.0.0.1",
            protocol="tcp://",
            dashboard_address="127.0.0.1:0",
        ) as processes,
        open_cluster_for_sums(processes.scheduler_address) as cluster,
    ):
        assert cluster.n_threads == 2
        assert (
            as_lists(bounded_sums(chunk_job(spec), partitions_of(spec), cluster, KEY).open_totals())
            == expected
        )


def test_another_key_keeps_other_rows_and_as_many(tmp_path: Path, threads: Cluster) -> None:
    spec = unit_spec(write(tmp_path / "data", customers()))
    job, partitions = chunk_job(spec), partitions_of(spec)
    sums = [to_python(bounded_sums(job, partitions, threads, key).open_totals()) for key in (KEY, OTHER_KEY)]
    assert (sums[0]["k"] != sums[1]["k"]).any()
    assert sums[0]["k"].sum() == sums[1]["k"].sum()
    runs = [to_python(exact_sums(job, partitions, threads).open_totals()) for _ in range(2)]
    assert (runs[0]["x"] != runs[1]["x"]).any(), "each run draws a key of its own"
    assert runs[0]["k"].sum() == sums[0]["k"].sum()


@pytest.mark.parametrize("nulls", ["drop", "own_unit"])
def test_every_unit_keeps_as_many_rows_as_it_may(tmp_path: Path, threads: Cluster, nulls: str) -> None:
    """The unit as a group shows what each kept, and that these are rows of its own."""
    table = customers()
    directory = write(tmp_path / "data", table)
    spec = make_spec(
        directory,
        {"k": categorical("k", ["p", "q"], other="true")},
        groups={"u": {"range": ["0", str(N_UNITS - 1)]}},
        privacy={"epsilon": "1", "neighboring": "replace_one", "unit": by_customer(MAX_ROWS, nulls=nulls)},
    )
    kept = to_python(exact_sums(chunk_job(spec), partitions_of(spec), threads).open_totals())["k"].astype(int)
    codes = {"p": 0, "q": 1}
    held = np.zeros((N_UNITS, 3), int)
    for unit, value in zip(table["u"].to_pylist(), table["k"].to_pylist(), strict=True):
        if unit is not None:
            held[unit, codes.get(value, 2)] += 1
    assert (kept.sum(axis=1) == np.minimum(held.sum(axis=1), MAX_ROWS)).all()
    assert (kept <= held).all()
    assert held.sum(axis=1).max() > 100


def test_content_does_not_steer_what_is_kept(tmp_path: Path) -> None:
    """Each of a unit's rows is as likely as any other: of 10 rows, 3 of one kind and 7 alike, 2 are kept.

    Over 2000 units the number kept of the first kind is hypergeometric with mean 0.6 and variance 0.3733
    each; a deviation of 5.5 standard deviations has probability below 1e-7. A rank by content alone, which
    identical rows would share, keeps both of one kind and is caught.
    """
    n_units = 2000
    kinds = ["rare"] * 3 + ["common"] * 7
    table = pa.table({"u": np.repeat(np.arange(n_units), 10), "k": kinds * n_units})
    spec = make_spec(
        write(tmp_path / "data", table, row_group_size=5000),
        {"k": categorical("k", ["rare", "common"])},
        groups={"u": {"range": ["0", str(n_units - 1)]}},
        privacy={"epsilon": "1", "neighboring": "add_or_remove_one", "unit": by_customer(2)},
    )
    kept = to_python(sum_tasks(chunk_job(spec), partitions_of(spec)))["k"].astype(int)
    assert (kept.sum(axis=1) == 2).all()
    variance = 2 * 0.3 * 0.7 * 8 / 9
    assert abs(kept[:, 0].sum() - 0.6 * n_units) < 5.5 * np.sqrt(n_units * variance)
    mixed = 2 * 3 * 7 / 90  # the probability of one of each
    assert abs((kept[:, 0] == 1).sum() - mixed * n_units) < 5.5 * np.sqrt(n_units * mixed * (1 - mixed))


@pytest.mark.slow
def test_a_unit_with_a_million_rows_in_every_file_moves_no_cell_by_more_than_its_bound(
    tmp_path: Path, threads: Cluster
) -> None:
    n_files, n_heavy, n_others = 4, 1_000_000, 40_000
    rng = np.random.default_rng(8)
    sums = {}
    for name, heavy in (("with", n_heavy // n_files), ("without", 0)):
        directory = tmp_path / name
        directory.mkdir()
        others = np.random.default_rng(9)
        for number in range(n_files):
            n_rows = n_others // n_files
            table = pa.table(
                {
                    "u": np.concatenate([others.integers(1, 3000, n_rows), np.zeros(heavy, np.int64)]),
                    "g": np.concatenate([others.choice(["a", "b"], n_rows), rng.choice(["a", "b"], heavy)]),
                    "k": np.concatenate(
                        [others.choice(["p", "q"], n_rows), rng.choice(["p", "q", "z"], heavy)]
                    ),
                    "x": np.concatenate([others.normal(size=n_rows), np.full(heavy, 9.0)]),
                }
            )
            table = table.take(pa.array(rng.permutation(len(table))))
            pq.write_table(table, directory / f"{number}.parquet", row_group_size=100_000)
        spec = unit_spec(directory)
        splits = splits_of(spec, 400_000)
        assert row_count(splits) == n_others + n_files * heavy
        sums[name] = to_python(bounded_sums(chunk_job(spec), splits, threads, KEY).open_totals())
    counts = sums["with"]["k"] - sums["without"]["k"]
    assert counts.sum() == MAX_ROWS
    assert counts.min() >= 0, "the others keep what they kept"
    powers = sums["with"]["x"] - sums["without"]["x"]
    steps = 1 << 16
    assert powers.sum(axis=0).tolist() == [MAX_ROWS, MAX_ROWS * steps, MAX_ROWS * steps**2]
    assert compile_plan(spec).statistics[1].l1_sensitivity == MAX_ROWS * 4 * steps**2


def test_the_number_of_edges_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write(tmp_path / "data", customers(), row_group_size=10)
    spec = unit_spec(directory)
    graphs: list[dict[str, Any]] = []

    class Recorder:
        is_distributed = False
        n_threads = 2

        def compute(self, graph: dict[str, Any], _keys: list[str], _watched: object) -> list[None]:
            graphs.append(graph)
            raise ClusterError

    partitions = partitions_of(spec)
    assert len(partitions) == 300
    monkeypatch.setattr(shuffle, "_MOST_EDGES", 200)
    with pytest.raises(ClusterError):
        bounded_sums(chunk_job(spec), partitions, Recorder(), KEY)  # type: ignore[arg-type]
    edges = [name for name in graphs[0] if name.startswith("piece-")]
    assert 100 <= len(edges) <= 200
    reads = [task for name, task in graphs[0].items() if name.startswith("read-")]
    pieces = [piece for task in reads for piece in task[1].pieces]
    assert len(reads) <= len(partitions) // 2
    assert sorted(number for piece in pieces for number in piece.row_groups) == list(range(300))


def test_the_key_is_not_shown() -> None:
    key = UnitKey.fresh()
    assert key != UnitKey.fresh()
    numbers = [str(number) for pair in dataclasses.astuple(key) for number in pair]
    assert len(set(numbers)) == 6
    assert not any(number in repr(key) for number in numbers)
    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301 - it travels with the tasks
    job = ChunkJob(measures={}, groups={})
    assert "key" not in repr(shuffle.Round(job=job, key=key, number=0, n_rounds=1, n_buckets=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "local"])
def test_failures_come_back_as_fixed_texts(
    tmp_path: Path, kind: str, threads: Cluster, local: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = unit_spec(write(tmp_path / "data", customers()))
    job = chunk_job(spec)
    fragile = FragileJob(
        measures=job.measures, groups=job.groups, unit=job.unit, action="raise", canary=CANARY
    )
    with pytest.raises(StageFailedError) as caught:
        bounded_sums(fragile, partitions_of(spec), threads if kind == "threads" else local, KEY)
    assert str(caught.value) == READING_FAILED
    assert CANARY not in repr([caught.value, caught.value.__context__, capfd.readouterr()])


def test_what_fails_while_rows_are_gathered_is_a_fixed_text(
    tmp_path: Path, threads: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quoting(*_: object) -> None:
        raise ValueError(CANARY)

    spec = unit_spec(write(tmp_path / "data", customers()))
    monkeypatch.setattr(shuffle, "sum_bucket", quoting)
    with pytest.raises(StageFailedError) as caught:
        bounded_sums(chunk_job(spec), partitions_of(spec), threads, KEY)
    assert str(caught.value) == shuffle._GATHERING_FAILED
    assert CANARY not in repr([caught.value, caught.value.__context__])


def test_a_file_that_changed_is_named(tmp_path: Path, threads: Cluster) -> None:
    directory = write(tmp_path / "data", customers())
    for clustered in (False, True):
        spec = unit_spec(directory, clustered=clustered)
        partitions = partitions_of(spec)
        write(directory, customers(seed=4 + clustered))
        with pytest.raises(StageFailedError, match="has changed since"):
            bounded_sums(chunk_job(spec), partitions, threads, KEY)


def test_a_worker_that_dies_changes_no_bit(
    tmp_path: Path, local: Cluster, expected: dict[str, list[list[int]]]
) -> None:
    spec = unit_spec(write(tmp_path / "data", customers(), row_group_size=500), nulls="own_unit")
    job = chunk_job(spec)
    marker = tmp_path / "died"
    fragile = FragileJob(
        measures=job.measures, groups=job.groups, unit=job.unit, action="die once", marker=str(marker)
    )
    assert as_lists(bounded_sums(fragile, partitions_of(spec), local, KEY).open_totals()) == expected
    assert marker.exists()


@pytest.mark.slow
def test_nothing_adds_the_rows_of_a_unit_one_by_one(tmp_path: Path) -> None:
    spec = unit_spec(write(tmp_path / "data", customers()))
    with pytest.raises(ValueError, match="are bounded before"):
        chunk(partitions_of(spec)[0], chunk_job(spec))
