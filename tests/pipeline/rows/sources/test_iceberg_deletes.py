"""Delete files of Iceberg: what is left is what a reader of the format's rules would leave, bit for bit."""

from __future__ import annotations

import datetime as dt
import json
import random
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import FileFormat

from suffice.errors import StageFailedError, SufficeError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.contract import pack, unpack
from suffice.pipeline.spec.spec import load_spec
from support.hostile import categorical, normal
from support.iceberg_deletes import append_partitioned, delete_places, delete_values
from support.table_makers import CATALOG, TABLE, URI, iceberg_table, write_iceberg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

KINDS = ["a", "b", None]
FIRST = dt.datetime(2012, 2, 27, tzinfo=dt.UTC)
NIGHTS = [FIRST, dt.datetime(2012, 3, 9, tzinfo=dt.UTC)]
"""Around a leap day, and a night in which clocks change in New York."""
N_ROWS = 300


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(URI, "")
    return tmp_path


def rows_of(rng: random.Random, n_rows: int = N_ROWS) -> pa.Table:
    """Return rows of days around two nights, some at a midnight, some without a time."""
    seconds = [0, 1, 86_399, 5 * 3600, 5 * 3600 - 1, 10 * 3600]
    moments = [
        rng.choice(NIGHTS)
        + dt.timedelta(days=rng.randrange(4), seconds=rng.choice([*seconds, rng.randrange(86_400)]))
        for _ in range(n_rows)
    ]
    return pa.table(
        {
            "x": pa.array([rng.choice([rng.uniform(0, 100), None]) for _ in range(n_rows)], pa.float64()),
            "kind": pa.array([rng.choice(KINDS) for _ in range(n_rows)], pa.string()),
            "n": pa.array([rng.choice([*range(8), None]) for _ in range(n_rows)], pa.int32()),
            "at": pa.array(
                [None if rng.random() < 0.05 else moment for moment in moments], pa.timestamp("us", "UTC")
            ),
        }
    )


def spec_of(source: dict[str, Any], zone: str = "UTC", **parts: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": source,
            "window": {"column": "at", "every": "day", "time_zone": zone},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal("x", "0", "100"), "kind": categorical("kind", ["a"], other=True)},
            **parts,
        }
    )


ICEBERG = {"iceberg": TABLE, "catalog": CATALOG}


def totals(spec: Spec, window: str, cluster: Cluster) -> dict[str, list[Any]]:
    with closing(sources.pin(spec, window)) as pin:
        splits = sources.splits(pin)
        assert unpack(pack(splits)) == splits
        sums = exact_sums(chunk_job(spec, window), splits, cluster).open_totals()
        sources.check(pin)
    return {name: values.tolist() for name, values in to_python(sums).items()}


def data_files(table: Table) -> list[DataFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    entries = [
        entry
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    files = [entry.data_file for entry in entries if not entry.data_file.content.value]
    return sorted(files, key=lambda file: file.file_path)


class Reference:
    """The rows of data files, and what is left of them."""

    def __init__(self) -> None:
        self.rows: dict[str, pa.Table] = {}
        self.left: dict[str, np.ndarray[Any, Any]] = {}

    def look(self, table: Table) -> list[DataFile]:
        files = data_files(table)
        for file in files:
            if file.file_path not in self.rows:
                # Not as a dataset, which reads columns from the names of folders.
                rows = pq.ParquetFile(file.file_path.removeprefix("file://")).read()
                self.rows[file.file_path] = rows
                self.left[file.file_path] = np.ones(rows.num_rows, bool)
        return files

    def delete_values(self, values: list[dict[str, Any]], files: list[DataFile]) -> None:
        for file in files:
            rows = self.rows[file.file_path].to_pylist()
            for number, row in enumerate(rows):
                if any(all(row[name] == of[name] for name in of) for of in values):
                    self.left[file.file_path][number] = False

    def plain(self, place: Path) -> dict[str, str]:
        place.mkdir()
        kept = [rows.filter(pa.array(self.left[path])) for path, rows in self.rows.items()]
        pq.write_table(pa.concat_tables(kept).replace_schema_metadata(None), place / "rows.parquet")
        return {"parquet": str(place)}


def partitioned(place: Path, transform: str) -> Table:
    write_iceberg(place, rows_of(random.Random(0)).slice(0, 0))  # noqa: S311 - chosen rows
    table = iceberg_table(place)
    if transform != "none":
        from pyiceberg.transforms import (
            BucketTransform,
            DayTransform,
            HourTransform,
            MonthTransform,
            YearTransform,
        )

        kinds: dict[str, Any] = {
            "day": DayTransform(),
            "month": MonthTransform(),
            "year": YearTransform(),
            "hour": HourTransform(),
        }
        with table.update_spec() as update:
            if transform == "bucket":
                update.add_field("n", BucketTransform(3), "n_bucket")
            elif transform == "identity":
                update.add_identity("kind")
            else:
                update.add_field("at", kinds[transform], "at_part")
    return iceberg_table(place)


TRANSFORMS = ["none", "day", "month", "year", "bucket", "identity"]


@pytest.mark.slow
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_sums_are_those_of_the_rows_that_are_left(place: Path, threads: Cluster, transform: str) -> None:
    rng = random.Random(transform)  # noqa: S311 - chosen rows
    reference = Reference()
    table = partitioned(place, transform)
    for _ in range(3):
        append_partitioned(table, place, rows_of(rng))
        files = reference.look(table)
        by_partition: dict[Any, list[DataFile]] = {}
        for file in files:
            by_partition.setdefault(file.partition, []).append(file)
        for partition in rng.sample(sorted(by_partition, key=repr), min(2, len(by_partition))):
            of_partition = by_partition[partition]
            listed = {
                file.file_path: rng.sample(range(file.record_count), min(file.record_count, 9))
                for file in of_partition
            }
            delete_places(table, place, listed, partition=partition)
            for path, places in listed.items():
                reference.left[path][places] = False
            values = rows_of(rng, 4).select(rng.choice([["n"], ["kind", "n"], ["at"], ["n", "kind", "at"]]))
            if rng.random() < 0.7:
                some = rng.choice(of_partition)
                values = (
                    reference.rows[some.file_path].slice(0, 5).select(values.schema.names).cast(values.schema)
                )
            delete_values(table, place, values, partition=partition)
            reference.delete_values(values.to_pylist(), of_partition)
        if transform != "none":
            values = rows_of(rng, 3).select(["n"])
            delete_values(table, place, values, spec_id=0)
            reference.delete_values(values.to_pylist(), files)
    plain = reference.plain(place / "plain")
    gone = sum(int((~left).sum()) for left in reference.left.values())
    assert 20 < gone < 3 * N_ROWS - 100
    days = [
        (night + dt.timedelta(days=number)).date().isoformat() for night in NIGHTS for number in range(-1, 5)
    ]
    for zone in ("UTC", "Pacific/Kiritimati", "America/New_York"):
        for window in rng.sample(days, 6):
            found = totals(spec_of(ICEBERG, zone), window, threads)
            assert found == totals(spec_of(plain, zone), window, threads), (zone, window)


def test_a_public_number_counts_the_rows_that_are_left(place: Path) -> None:
    table = partitioned(place, "none")
    table.append(rows_of(random.Random(1)))  # noqa: S311 - chosen rows
    (file,) = data_files(table)
    delete_places(table, place, {file.file_path: [3, 5, 5, 299]})
    privacy = {"epsilon": "1", "neighboring": "replace_one"}
    spec = load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": ICEBERG,
            "privacy": privacy,
            "statistics": {"x": normal("x", "0", "1", nulls={"value": "0"})},
        }
    )
    with closing(sources.pin(spec)) as pin:
        assert sources.row_count(pin, sources.splits(pin)) == N_ROWS - 3
    delete_values(table, place, pa.table({"n": pa.array([1, None], pa.int32())}))
    rows = pq.ParquetFile(file.file_path.removeprefix("file://")).read()["n"].to_pylist()
    left = [n for number, n in enumerate(rows) if number not in {3, 5, 299} and n not in {1, None}]
    with closing(sources.pin(spec)) as pin:
        splits = sources.splits(pin)
        assert sources.row_count(pin, splits) == len(left)
        batches = [batch for split in splits for batch in sources.read(split, ("x",), 64)]
    assert all(batch.schema.names == ["x"] for batch in batches), "what is compared is not given"
    assert sum(batch.num_rows for batch in batches) == len(left)


@pytest.mark.slow
@pytest.mark.parametrize("damages", [150, pytest.param(1000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("kind", ["places", "values"])
def test_damaged_delete_files_are_typed_errors(place: Path, kind: str, damages: int) -> None:
    """Of 150 damages are some with chance 0.99 that befall one in 33, of 1,000 that befall one in 220."""
    rng = random.Random(kind)  # noqa: S311 - chosen bytes
    table = partitioned(place, "none")
    table.append(rows_of(rng))
    (file,) = data_files(table)
    if kind == "places":
        deleting = delete_places(table, place, {file.file_path: list(range(0, 300, 7))})
    else:
        deleting = delete_values(table, place, rows_of(rng, 40).select(["n", "kind"]))
    intact, errors = deleting.read_bytes(), 0
    for _ in range(damages):
        damaged = bytearray(intact)
        for _ in range(rng.choice([1, 2, 8])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        deleting.write_bytes(damaged)
        try:
            with closing(sources.pin(spec_of(ICEBERG))) as pin:
                for split in sources.splits(pin):
                    list(sources.read(split, ("x",), 1000))
        except SufficeError:
            errors += 1
    assert errors > damages / 5


def test_delete_files_are_part_of_the_pin(place: Path) -> None:
    table = partitioned(place, "none")
    table.append(rows_of(random.Random(1)))  # noqa: S311 - chosen rows
    (file,) = data_files(table)
    for deleting in (
        delete_places(table, place, {file.file_path: [3]}),
        delete_values(table, place, pa.table({"n": pa.array([1], pa.int32())})),
    ):
        intact = deleting.read_bytes()
        with closing(sources.pin(spec_of(ICEBERG))) as pin:
            sources.check(pin)
            deleting.write_bytes(intact + b"\0")
            with pytest.raises(StageFailedError, match=r"the data file below iceberg:.* has changed"):
                sources.check(pin)
            deleting.write_bytes(intact)
    deleting.write_bytes(b"PAR1")
    with closing(sources.pin(spec_of(ICEBERG))) as pin:
        (split,) = sources.splits(pin)
        with pytest.raises(StageFailedError, match="cannot be read: it is damaged") as caught:
            list(sources.read(split, ("x",), 100))
    assert caught.value.__suppress_context__
    deleting.unlink()
    with pytest.raises(UsageError, match=r"a delete file is gone, damaged, or deletes rows that"):
        sources.pin(spec_of(ICEBERG))


@pytest.mark.parametrize("kind", ["place", "negative", "no columns", "no file"])
def test_what_a_list_of_places_may_not_be(place: Path, kind: str) -> None:
    table = partitioned(place, "none")
    table.append(rows_of(random.Random(1)))  # noqa: S311 - chosen rows
    (file,) = data_files(table)
    deleting = delete_places(table, place, {file.file_path: [{"place": N_ROWS, "negative": -1}.get(kind, 0)]})
    if kind == "no columns":
        pq.write_table(pa.table({"pos": [1]}), deleting)
    if kind == "no file":
        deleting.write_bytes(b"none")
    with pytest.raises(UsageError, match=r"^source\.iceberg: .*(a delete file|what deletes rows)") as caught:
        sources.pin(spec_of(ICEBERG))
    assert "parquet" not in str(caught.value)


def test_what_is_not_read_is_refused_where_it_is_used_alone(place: Path, threads: Cluster) -> None:
    table = partitioned(place, "day")
    rng = random.Random(1)  # noqa: S311 - chosen rows
    append_partitioned(table, place, rows_of(rng))
    days = {file.partition[0]: file for file in data_files(table) if file.partition[0] is not None}
    used, other = (dt.date(1970, 1, 1) + dt.timedelta(days=day) for day in (min(days), max(days)))
    delete_places(
        table,
        place,
        {days[min(days)].file_path: [0]},
        partition=days[min(days)].partition,
        file_format=FileFormat.PUFFIN,
    )
    with pytest.raises(UsageError, match="has deletion vectors of format 3, which are not read"):
        sources.pin(spec_of(ICEBERG), used.isoformat())
    totals(spec_of(ICEBERG), other.isoformat(), threads)
    delete_values(table, place, pa.table({"x": [1.0]}), partition=days[max(days)].partition)
    with pytest.raises(UsageError, match="delete files of values of columns that are not compared"):
        sources.pin(spec_of(ICEBERG), other.isoformat())


def test_a_table_of_format_3_is_read(place: Path, threads: Cluster) -> None:
    table = partitioned(place, "none")
    table.append(rows_of(random.Random(1)))  # noqa: S311 - chosen rows
    window = FIRST.date().isoformat()
    expected = totals(spec_of(ICEBERG), window, threads)
    metadata = Path(table.metadata_location.removeprefix("file://"))
    stated = json.loads(metadata.read_text())
    stated |= {"format-version": 3, "next-row-id": 0}
    metadata.write_text(json.dumps(stated))
    assert iceberg_table(place).format_version == 3
    assert totals(spec_of(ICEBERG), window, threads) == expected
    stated["schemas"][-1]["fields"][0]["initial-default"] = 1.0
    metadata.write_text(json.dumps(stated))
    with pytest.raises(UsageError, match="columns with defaults of format 3"):
        sources.pin(spec_of(ICEBERG), window)
