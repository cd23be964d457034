"""Deletion vectors: bitmaps of every form, logs of every form, and what is damaged."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
import shutil
import struct
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap

from suffice.errors import InputNotVerifiedError, StageFailedError, SufficeError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.deletion_vectors import from_base85, kept_rows, vectors_of
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import ALL
from support.buckets import variables
from support.deletion_vectors import delete_rows, in_file, in_z85, inline, vector_of
from support.hostile import categorical, normal
from support.source_makers import upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

DELETABLE = {"delta.enableDeletionVectors": "true"}
N_ROWS = 200_000
"""More than three blocks of a bitmap, in one file of each city."""


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_bitmaps_of_every_form_are_read_as_their_library_does(seed: int, *, runs: bool) -> None:
    rng = np.random.default_rng(seed)
    n_rows = int(rng.choice([1, 10, 65_536, 65_537, 200_000, 500_000]))
    density = float(rng.choice([0.0, 1e-4, 0.05, 0.5, 0.999, 1.0]))
    deleted = rng.random(n_rows) < density
    if rng.random() < 0.5:
        for start in rng.integers(0, n_rows, 5):
            deleted[start : start + int(rng.integers(1, 70_000))] = True
    positions = np.flatnonzero(deleted)
    vector = vector_of(positions.tolist(), runs=runs)
    assert np.array_equal(kept_rows(vector, n_rows, len(positions)), ~deleted)
    assert from_base85(in_z85(vector))[: len(vector)] == vector
    for others in (len(positions) - 1, len(positions) + 1):
        with pytest.raises(ValueError, match="malformed"):
            kept_rows(vector, n_rows, others)
    if len(positions):
        with pytest.raises(ValueError, match="malformed"):
            kept_rows(vector, int(positions[-1]), len(positions))


def test_what_a_vector_states_of_itself_is_not_believed() -> None:
    """Sizes that would take all memory are refused before anything of their size is made."""
    bitmap = BitMap([5]).serialize()
    for vector in (
        b"",
        struct.pack("<I", 1681511376),
        struct.pack("<IQ", 1681511377, 2**63),
        struct.pack("<IQI", 1681511377, 1, 2**31) + bitmap,
        struct.pack("<IQI", 1681511377, 1, 0) + struct.pack("<II", 12346, 2**32 - 1),
        struct.pack("<IQI", 1681511377, 1, 0) + struct.pack("<I", 12347 | 0xFFFF << 16),
        struct.pack("<IQI", 1681511377, 2, 0) + bitmap + struct.pack("<I", 0) + bitmap,
        struct.pack("<IQI", 1681511377, 1, 0) + bitmap + b"\0",
    ):
        with pytest.raises(ValueError, match="malformed"):
            kept_rows(vector, 100, 1)


def rows_of(city: str) -> pa.Table:
    rng = np.random.default_rng(len(city))
    x = pa.array(rng.integers(-100, 1100, N_ROWS) / 8, pa.float64(), mask=rng.random(N_ROWS) < 0.1)
    kind = pa.array(rng.choice(["a", "b", "c"], N_ROWS))
    return pa.table({"x": x, "kind": kind, "city": [city] * N_ROWS})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two cities, a file of many row groups each."""
    root = tmp_path_factory.mktemp("written") / "table"
    for city in ("Oslo", "Bergen"):
        write_deltalake(root, rows_of(city), partition_by=["city"], configuration=DELETABLE, mode="append")
    return root


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "table")


def spec_of(source: dict[str, Any], **parts: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": source,
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "groups": {"city": ["Oslo", "Bergen"]},
            "statistics": {"x": normal("x", "0", "100"), "kind": categorical("kind", ["a", "b"])},
            **parts,
        }
    )


def totals(spec: Spec, cluster: Cluster, window: str = ALL) -> dict[str, list[Any]]:
    with closing(sources.pin(spec, window)) as pin:
        sums = exact_sums(chunk_job(spec, window), sources.splits(pin), cluster).open_totals()
        sources.check(pin)
    return {name: values.tolist() for name, values in to_python(sums).items()}


def as_parquet(root: Path, **deleted: np.ndarray[Any, Any]) -> Spec:
    """Write the rows that are left as plain Parquet."""
    root.mkdir()
    for city in ("Oslo", "Bergen"):
        kept = np.ones(N_ROWS, bool)
        kept[deleted.get(city, np.array([], int))] = False
        pq.write_table(rows_of(city).filter(pa.array(kept)), root / f"{city}.parquet")
    return spec_of({"parquet": str(root)})


@pytest.mark.slow
def test_sums_are_those_of_the_rows_that_are_left(table: Path, tmp_path: Path, threads: Cluster) -> None:
    rng = np.random.default_rng(3)
    oslo, bergen = np.flatnonzero(rng.random(N_ROWS) < 0.3), np.array([0, 1, 65_535, 65_536, N_ROWS - 1])
    first = in_file(table, vector_of(oslo[:50].tolist()), 50)
    delete_rows(table, 2, {"city=Oslo": first})
    delete_rows(
        table,
        3,
        {
            "city=Oslo": in_file(table, vector_of(oslo.tolist()), len(oslo), prefix="ab", before=b"others"),
            "city=Bergen": inline(vector_of(bergen.tolist()), len(bergen)),
        },
    )
    expected = {
        "1": as_parquet(tmp_path / "1"),
        "2": as_parquet(tmp_path / "2", Oslo=oslo[:50]),
        "3": as_parquet(tmp_path / "3", Oslo=oslo, Bergen=bergen),
    }
    found = {
        version: totals(spec_of({"delta": str(table), "version": version}), threads) for version in expected
    }
    assert found == {version: totals(spec, threads) for version, spec in expected.items()}
    assert len({repr(sums) for sums in found.values()}) == 3
    assert totals(spec_of({"delta": str(table)}), threads) == found["3"]


@pytest.mark.parametrize("form", ["checkpoint", "parts", "v2 of JSON", "v2 of Parquet"])
def test_a_checkpoint_describes_vectors_too(table: Path, form: str) -> None:
    deleted = np.arange(0, N_ROWS, 7)
    delete_rows(table, 2, {"city=Oslo": in_file(table, vector_of(deleted.tolist()), len(deleted))})
    paths = DeltaTable(table).get_add_actions(flatten=True)
    paths = pa.RecordBatchReader.from_stream(paths).read_all()["path"].to_pylist()
    expected = vectors_of(str(table), 2, paths)
    assert len(expected) == 1
    log = table / "_delta_log"
    checkpoint = log / f"{2:020}.checkpoint.parquet"
    DeltaTable(table).create_checkpoint()
    assert checkpoint.exists()
    if form == "parts":
        entries = pq.read_table(checkpoint)
        for part in (1, 2):
            half = entries.slice((part - 1) * 2, 2 if part == 1 else None)
            pq.write_table(half, log / f"{2:020}.checkpoint.{part:010}.{2:010}.parquet")
    elif form.startswith("v2"):
        (log / "_sidecars").mkdir()
        pq.write_table(pq.read_table(checkpoint, columns=["add"]), log / "_sidecars" / "one.parquet")
        sidecar = {"sidecar": {"path": "one.parquet", "sizeInBytes": 1, "modificationTime": 1}}
        name = f"{2:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
        if form == "v2 of JSON":
            (log / f"{name}.json").write_text(f"{json.dumps(sidecar)}\n")
        else:
            pq.write_table(pa.table({"sidecar": [sidecar["sidecar"]]}), log / f"{name}.parquet")
    if form != "checkpoint":
        checkpoint.unlink()
    for number in range(3):
        (log / f"{number:020}.json").unlink()
    (log / f"{3:020}.json").write_text('{"commitInfo": {"timestamp": 1}}\n')
    assert vectors_of(str(table), 3, paths) == expected
    with pytest.raises(OSError, match="No such file"):
        vectors_of(str(table), 1, paths)
    with pytest.raises(ValueError, match="malformed"):
        vectors_of(str(table), 3, [*paths, "city=Oslo/other.parquet"])


def test_vectors_in_a_bucket(
    table: Path, threads: Cluster, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables(s3_url).items():
        monkeypatch.setenv(name, value)
    deleted = np.arange(0, N_ROWS, 3)
    delete_rows(
        table, 2, {"city=Oslo": in_file(table, vector_of(deleted.tolist()), len(deleted), prefix="a")}
    )
    found = totals(spec_of({"delta": upload(table.parent, table)}), threads)
    assert found == totals(spec_of({"delta": str(table)}), threads)


def test_a_vectors_file_is_part_of_the_pin(table: Path) -> None:
    delete_rows(table, 2, {"city=Oslo": in_file(table, vector_of([1, 2]), 2)})
    (file,) = table.glob("deletion_vector_*.bin")
    with closing(sources.pin(spec_of({"delta": str(table)}))) as pin:
        sources.check(pin)
        content = file.read_bytes()
        file.write_bytes(content + b"\0")
        with pytest.raises(StageFailedError, match=rf"the data file below {table} has changed"):
            sources.check(pin)
        file.unlink()
        with pytest.raises(
            StageFailedError, match=rf"the data file below {table} cannot be read: it is gone"
        ):
            sources.check(pin)
    with pytest.raises(UsageError, match=r"^source\.delta: a deletion vector of the table .* is gone"):
        sources.pin(spec_of({"delta": str(table)}))


def test_an_owners_checksums_name_the_files_of_vectors(table: Path, tmp_path: Path) -> None:
    delete_rows(table, 2, {"city=Oslo": in_file(table, vector_of([1, 2]), 2)})
    files = [*table.rglob("*.parquet"), *table.glob("*.bin")]
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file}\n" for file in files]
    listed = tmp_path / "checksums"
    with closing(sources.pin(spec_of({"delta": str(table)}))) as pin:
        listed.write_text("".join(lines))
        sources.verify(pin, str(listed))
        listed.write_text("".join(lines[:-1]))
        with pytest.raises(InputNotVerifiedError):
            sources.verify(pin, str(listed))


def test_vectors_of_other_partitions_are_not_read(tmp_path: Path, threads: Cluster) -> None:
    """A window reads the vectors of its own files: another's may be gone."""
    days = [f"2013-01-0{day}" for day in (1, 2)]
    root = tmp_path / "table"
    rows = pa.table({"x": [1.0, 2.0, 4.0, 8.0], "day": pa.array([days[0], days[0], days[1], days[1]])})
    rows = rows.set_column(1, "day", rows["day"].cast(pa.date32()))
    write_deltalake(root, rows, partition_by=["day"], configuration=DELETABLE)
    entries = {f"day={day}": in_file(root, vector_of([0]), 1) for day in days}
    delete_rows(root, 1, entries)
    uuid_of_first = from_base85(entries["day=2013-01-01"]["pathOrInlineDv"]).hex()
    for file in root.glob("deletion_vector_*.bin"):
        if file.name.replace("-", "").endswith(f"{uuid_of_first}.bin"):
            file.unlink()
    window = {"column": "day", "every": "day"}
    spec = spec_of({"delta": str(root)}, window=window, groups={}, statistics={"x": normal("x", "0", "100")})
    with closing(sources.pin(spec, days[1])) as pin:
        (split,) = sources.splits(pin)
        (batch,) = sources.read(split, ("x",), 10)
    assert batch.column("x").to_pylist() == [8.0]
    with pytest.raises(UsageError, match="a deletion vector"):
        sources.pin(spec, days[0])
    del threads


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_windows_are_those_of_plain_files(tmp_path: Path, threads: Cluster, seed: int) -> None:
    """Of partitions by days, one of them without a date, whose rows random vectors delete."""
    rng = random.Random(seed)  # noqa: S311 - chosen rows
    first = dt.date(2012, 2, 27)
    dates = [first + dt.timedelta(days=day) for day in range(5)] + [dt.date(2012, 12, 31), dt.date.max, None]
    root = tmp_path / "table"
    left = []
    configuration = {**DELETABLE, **rng.choice([{}, {"delta.columnMapping.mode": "name"}])}
    for number in range(3):
        rows = pa.table(
            {
                "x": pa.array([rng.choice([rng.uniform(0, 100), None]) for _ in range(200)], pa.float64()),
                "kind": pa.array([rng.choice(["a", "b", None]) for _ in range(200)], pa.string()),
                "day": pa.array([rng.choice(dates) for _ in range(200)], pa.date32()),
            }
        )
        write_deltalake(root, rows, partition_by=["day"], configuration=configuration, mode="append")
        log = (root / "_delta_log" / f"{number:020}.json").read_text().splitlines()
        for add in (entry["add"] for entry in map(json.loads, log) if "add" in entry):
            day = next(iter(add["partitionValues"].values()))
            of_file = rows.filter(pa.array([str(each) == str(day) for each in rows["day"].to_pylist()]))
            left.append((add["path"], of_file))
    vectors = {}
    for place, (path, rows) in enumerate(left):
        deleted = sorted(rng.sample(range(rows.num_rows), rng.randrange(rows.num_rows)))
        if deleted:
            written = rng.random() < 0.5
            vectors[path] = (partial(in_file, root) if written else inline)(
                vector_of(deleted, runs=rng.random() < 0.5), len(deleted)
            )
            keep = np.ones(rows.num_rows, bool)
            keep[deleted] = False
            left[place] = path, rows.filter(pa.array(keep))
    delete_rows(root, 3, vectors)
    (tmp_path / "plain").mkdir()
    pq.write_table(pa.concat_tables([rows for _, rows in left]), tmp_path / "plain" / "rows.parquet")
    for every, windows in {
        "day": ["2012-02-27", "2012-02-29", "2012-03-01", "2012-12-31", "9999-12-31", "2012-03-09"],
        "month": ["2012-02", "2012-03", "2012-12"],
        "year": ["2012", "9999"],
    }.items():
        for window in windows:
            parts = {"window": {"column": "day", "every": every}, "groups": {}}
            found, expected = (
                totals(spec_of(source, **parts), threads, window)
                for source in ({"delta": str(root)}, {"parquet": str(tmp_path / "plain")})
            )
            assert found == expected, window


def test_a_public_number_counts_the_rows_that_are_left(table: Path) -> None:
    delete_rows(table, 2, {"city=Oslo": in_file(table, vector_of([1, 2, N_ROWS - 1]), 3)})
    spec = spec_of(
        {"delta": str(table)},
        groups={},
        privacy={"epsilon": "1", "neighboring": "replace_one"},
        statistics={"x": normal("x", "0", "1", nulls={"value": "0"})},
    )
    with closing(sources.pin(spec)) as pin:
        assert sources.row_count(pin, sources.splits(pin)) == 2 * N_ROWS - 3


@pytest.mark.slow
@pytest.mark.parametrize("damages", [250, pytest.param(1000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("where", ["file", "inline", "log"])
def test_damaged_vectors_are_typed_errors_or_the_same_rows(table: Path, where: str, damages: int) -> None:
    """Random bytes are changed: in a vector's file nothing passes; elsewhere no other error ends a run.

    Of 250 damages are some with chance 0.99 that befall one in 54, of 1,000 that befall one in 217.
    """
    rng = random.Random(where)  # noqa: S311 - chosen bytes
    small = table.parent / "small"
    rows = rows_of("Oslo").slice(0, 300)
    write_deltalake(small, rows, configuration=DELETABLE)
    deleted = sorted(rng.sample(range(300), 40))
    vector = vector_of(deleted)
    entry = inline(vector, 40) if where == "inline" else in_file(small, vector, 40)
    delete_rows(small, 1, {"part-": entry})
    log = small / "_delta_log" / f"{1:020}.json"
    target = log if where != "file" else next(small.glob("deletion_vector_*.bin"))
    intact = target.read_bytes()
    if where == "inline":
        start = intact.index(b'"pathOrInlineDv": "') + 19
        places = range(start, intact.index(b'"', start))
    elif where == "log":
        places = range(intact.index(b'"deletionVector"'), len(intact))
    else:
        places = range(len(intact))
    spec = spec_of({"delta": str(small)})
    outcomes: dict[str, int] = {}
    for _ in range(damages):
        damaged = bytearray(intact)
        for _ in range(rng.choice([1, 1, 2, 8])):
            damaged[rng.choice(places)] = rng.randrange(256)
        if rng.random() < 0.1:
            del damaged[rng.choice(places) :]
        target.write_bytes(damaged)
        try:
            with closing(sources.pin(spec)) as pin:
                n_rows = sum(
                    batch.num_rows
                    for split in sources.splits(pin)
                    for batch in sources.read(split, ("x",), 1000)
                )
            outcome = "same" if bytes(damaged) == intact else f"read {n_rows}"
        except SufficeError as error:
            outcome = type(error).__name__ if "part-" not in str(error) else "a file's name"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    target.write_bytes(intact)
    assert outcomes["UsageError"] > damages / 2
    assert "a file's name" not in outcomes
    if where == "file":
        assert outcomes.keys() <= {"UsageError", "same"}
