"""The pinned list of Parquet files, its division into tasks, and reading that notices what changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.rows.sources import contract, contracted_columns, file_access, parquet_files
from suffice.pipeline.rows.sources.contract import pack, unpack
from suffice.pipeline.rows.sources.contracted_columns import AS_STORED
from suffice.pipeline.rows.sources.parquet import check, pin, read, schema, splits
from suffice.pipeline.terms.declaration.source_specs import parse_source
from support.hostile import categorical, make_spec, normal
from support.splits import row_count

if TYPE_CHECKING:
    from suffice.pipeline.rows.sources.contract import Pin
    from suffice.pipeline.spec.spec import Spec

CANARY = "CANARY-7d1f"


def write(path: Path, n_rows: int = 100, *, row_group_size: int = 30) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {"x": np.arange(n_rows) * 1.0, "k": ["a", "b"] * (n_rows // 2), "unused": [CANARY] * n_rows}
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def spec_of(source: Path | str, **others: Any) -> Spec:
    return make_spec(source, {"x": normal("x", "0", "1"), "k": categorical("k", ["a"])}, **others)


def rows_read(pinned: Pin) -> list[float]:
    batches = [batch for split in splits(pinned) for batch in read(split, ("x",), 16)]
    assert all(batch.num_rows <= 16 for batch in batches)
    return [value for batch in batches for value in batch.column("x").to_pylist()]


def test_a_file_a_directory_and_a_pattern(tmp_path: Path) -> None:
    write(tmp_path / "data" / "b.parquet", 10)
    write(tmp_path / "data" / "a.parquet", 20)
    write(tmp_path / "data" / ".hidden.parquet")
    write(tmp_path / "data" / "below" / "c.parquet")
    (tmp_path / "data" / "notes.txt").write_text("no data")
    names = {
        "data/a.parquet": ["a.parquet"],
        "data": ["a.parquet", "b.parquet"],
        "data/": ["a.parquet", "b.parquet"],
        "data/[b]*.parquet": ["b.parquet"],
        "data/**/*.parquet": ["a.parquet", "b.parquet", "c.parquet"],
    }
    for pattern, expected in names.items():
        pinned = pin(spec_of(tmp_path / pattern if pattern[-1] != "/" else f"{tmp_path}/{pattern}"))
        assert [Path(file.address).name for file in pinned.private.files.files] == expected
        assert all(Path(file.address).is_absolute() for file in pinned.private.files.files)
    assert row_count(splits(pin(spec_of(tmp_path / "data")))) == 30
    schemas = schema(pin(spec_of(tmp_path / "data")))
    assert [Path(part.part).name for part in schemas] == ["a.parquet"], "of equal schemas the first file's"
    assert [part.columns.names for part in schemas] == [["x", "k", "unused"]]


def test_a_name_with_brackets_is_a_name_where_it_exists(tmp_path: Path) -> None:
    path = write(tmp_path / "part[1].parquet", 10)
    assert row_count(splits(pin(spec_of(path)))) == 10


@pytest.mark.parametrize("hive", [{}, {"hive": {"year": "integer"}}])
def test_the_files_of_a_delta_table_are_not_read_past_its_log(tmp_path: Path, hive: dict[str, Any]) -> None:
    write(tmp_path / "part.parquet", 10)
    spec = spec_of(tmp_path)
    spec = spec.model_copy(update={"source": parse_source({"parquet": str(tmp_path), **hive})})
    assert row_count(splits(pin(spec))) == 10
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(UsageError, match=r"is a Delta table.*write \{delta"):
        pin(spec)


@pytest.mark.parametrize("name", ["missing.parquet", "empty", "empty/*.parquet"])
def test_no_file_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"^source\.parquet: no Parquet file at "):
        pin(spec_of(tmp_path / name))


def test_what_is_no_parquet_file_is_an_error_that_quotes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_text(CANARY * 100)
    with pytest.raises(UsageError, match="cannot be read as a Parquet file") as caught:
        pin(spec_of(path))
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("store_schema", [True, False])
def test_a_name_of_a_column_that_is_no_text_is_an_error_that_says_so(
    tmp_path: Path, store_schema: bool
) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"x": [1.0], "k": ["a"], CANARY: [1]}), path, store_schema=store_schema)
    path.write_bytes(path.read_bytes().replace(CANARY.encode(), b"\xff" + CANARY[1:].encode()))
    with pytest.raises(UsageError, match=r"data\.parquet has a column whose name is no UTF-8") as caught:
        pin(spec_of(path))
    assert CANARY[1:] not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_one_file_under_two_names_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to(path)
    with pytest.raises(UsageError, match="same file"):
        pin(spec_of(tmp_path))
    (tmp_path / "b.parquet").unlink()
    os.link(path, tmp_path / "c.parquet")
    with pytest.raises(UsageError, match="same file"):
        pin(spec_of(tmp_path))


@pytest.mark.parametrize("split_values", [1, 60, 200, 10**9])
def test_every_row_is_in_one_task_whatever_the_task_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_values: int
) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.parquet", 70)
    write(tmp_path / "9.parquet", 0)
    monkeypatch.setattr(contract, "SPLIT_VALUES", split_values)
    pinned = pin(spec_of(tmp_path))
    assert sorted(rows_read(pinned)) == sorted(list(np.arange(70.0)) * 4)
    divided = splits(pinned)
    assert (
        row_count(divided)
        == sum(group.n_rows for footer in pinned.private.files.footers for group in footer.row_groups)
        == 280
    )
    expected = {1: 12, 60: 9, 200: 3, 10**9: 1}
    assert len(divided) == expected[split_values]
    assert all(split.n_rows for split in divided)
    assert unpack(pack(divided)) == divided


def test_no_rows_give_no_tasks(tmp_path: Path) -> None:
    pinned = pin(spec_of(write(tmp_path / "a.parquet", 0)))
    assert splits(pinned) == ()
    assert len(pinned.private.files.files) == 1


def test_only_columns_stored_as_dictionaries_are_read_as_such(tmp_path: Path) -> None:
    n_rows = 50_000
    table = pa.table(
        {
            "few": ["a", "b"] * (n_rows // 2),
            "many": [f"{number:030}" for number in range(n_rows)],
            "plain": ["a", "b"] * (n_rows // 2),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=["few", "many"])
    statistics = {column: categorical(column, ["a"]) for column in table.column_names}
    pinned = pin(make_spec(tmp_path, statistics))
    assert [piece.dictionaries for split in splits(pinned) for piece in split.pieces] == [("few",)]


def test_columns_whose_names_hold_dots(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0], "a.b": [3.0, 4.0]}), tmp_path / "a.parquet")
    pinned = pin(make_spec(tmp_path, {"x": normal("a.b", "0", "1"), "y": normal("a", "0", "1")}))
    batch = next(read(splits(pinned)[0], ("a.b", "a"), 10))
    assert batch.column("a.b").to_pylist() == [3.0, 4.0]
    assert batch.column("a").to_pylist() == [1.0, 2.0]


def test_memory_is_bounded_by_blocks_and_not_by_row_groups(tmp_path: Path) -> None:
    n_rows, path = 3_000_000, tmp_path / "a.parquet"
    columns = {name: np.random.default_rng(1).normal(size=n_rows) for name in ("x", "y", "z")}
    pq.write_table(pa.table(columns), path, row_group_size=n_rows, use_dictionary=False)
    del columns
    pinned = pin(make_spec(path, {name: normal(name, "0", "1") for name in ("x", "y", "z")}))
    before, most = pa.total_allocated_bytes(), 0
    for _ in read(splits(pinned)[0], ("x", "y", "z"), 1 << 16):
        most = max(most, pa.total_allocated_bytes() - before)
    assert path.stat().st_size > 60 * 2**20
    assert most < 20 * 2**20

    with pq.ParquetFile(path) as file:  # Arrow's defaults
        next(file.iter_batches(1 << 16, use_threads=False))
        assert pa.total_allocated_bytes() - before > 60 * 2**20


def test_a_file_that_changed_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    pinned = pin(spec_of(path))
    assert len(rows_read(pinned)) == 100
    check(pinned)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    for reading in (rows_read, check):
        with pytest.raises(StageFailedError, match=r"has changed since it was pinned$"):
            reading(pinned)
    path.unlink()
    for reading in (rows_read, check):
        with pytest.raises(StageFailedError, match=r"it is gone, or access to it was lost$"):
            reading(pinned)


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", row_group_size=100)
    pinned = pin(spec_of(path))
    assert len(splits(pinned)[0].pieces) == 1
    batches = read(splits(pinned)[0], ("x",), 16)
    next(batches)
    write(tmp_path / "new.parquet").rename(path)
    with pytest.raises(StageFailedError, match="has changed"):
        list(batches)


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_damaged_files_fail_with_a_fixed_text(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.parquet"
    rng = np.random.default_rng(4)
    table = pa.table({"x": rng.normal(size=500), "k": [f"{CANARY}{number % 7}" for number in range(500)]})
    pq.write_table(table, path, compression=compression, write_page_checksum=True)
    healthy = path.read_bytes()
    footer = len(healthy) - 8 - int.from_bytes(healthy[-8:-4], "little")
    outcomes = []
    for position in rng.integers(4, footer, 60):
        damaged = bytearray(healthy)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        pinned = pin(spec_of(path))
        try:
            found = pa.Table.from_batches(read(splits(pinned)[0], ("x", "k"), 100))
        except StageFailedError as error:
            outcomes.append((str(error), error.__suppress_context__))
        else:  # what was hit is no data, as the statistics in a page's header
            assert found.column("x").to_pylist() == table.column("x").to_pylist()
            assert found.column("k").to_pylist() == table.column("k").to_pylist()
    text = f"the data file {path} cannot be read: it is damaged, or access to it was lost"
    assert set(outcomes) == {(text, True)}
    assert len(outcomes) > 50


def test_truncated_files_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    healthy = path.read_bytes()
    for length in (0, 3, 11, len(healthy) // 2, len(healthy) - 1):
        path.write_bytes(healthy[:length])
        with pytest.raises(UsageError, match="cannot be read as a Parquet file"):
            pin(spec_of(path))


def test_footers_are_kept_by_the_memory_that_they_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path / f"{number}.parquet") for number in range(4)]
    assert pin(spec_of(tmp_path)).private.files.footers[0].metadata.value is None, "small: it is read whole"
    monkeypatch.setattr(contracted_columns, "SMALL_BYTES", 0)
    bytes_of_one = pq.read_metadata(files[0]).serialized_size
    monkeypatch.setattr(parquet_files, "_KEPT_BYTES", 2 * parquet_files._DECODED * bytes_of_one)
    monkeypatch.setattr(parquet_files, "_AT_ONCE", 1)
    pinned = pin(spec_of(tmp_path))
    footers = pinned.private.files.footers
    assert [footer.metadata.value is not None for footer in footers] == [True, True, False, False]
    assert len({id(footer.schema) for footer in footers}) == 1
    assert len(rows_read(pinned)) == 4 * len(rows_read(pin(spec_of(files[0]))))


def test_small_files_are_read_together(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.parquet")
    pinned = pin(spec_of(tmp_path))
    (split,) = splits(pinned)
    (block,) = read(split, ("x", "k"), 1 << 17)
    assert block.column(0).to_pylist() == list(range(100)) * 4
    assert block.column(1).to_pylist() == ["a", "b"] * 200
    assert [of.num_rows for of in read(split, ("x",), 50)] == [50] * 8


class OddNumbers:
    """Keeps the rows of odd numbers."""

    stored = ("x",)

    def opened(self, schema: pa.Schema) -> OddNumbers:
        assert "x" in schema.names
        return self

    def kept(self, batch: pa.RecordBatch) -> Any:
        return batch.column("x").to_numpy() % 2 == 1


def test_rows_of_a_small_file_are_deleted_by_their_values(tmp_path: Path) -> None:
    of = file_access.status(str(write(tmp_path / "a.parquet")))
    values: Any = [OddNumbers()]
    pinned = parquet_files.pin_files([(of, AS_STORED)], ("k",), place="here", values=values)
    (split,) = parquet_files.file_splits("parquet", pinned)
    (block,) = read(split, ("k",), 1 << 17)
    assert block.column(0).to_pylist() == ["b"] * 50


@pytest.mark.parametrize(("rows", "length", "is_coded"), [(9000, 20, False), (9000, 9000, True)])
def test_long_texts_of_few_rows_stay_dictionaries(
    tmp_path: Path, rows: int, length: int, is_coded: bool
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": list(range(rows)), "k": ["a" * length] * rows}), path)
    (split,) = splits(pin(spec_of(path)))
    (block,) = read(split, ("k",), 1 << 17)
    assert pa.types.is_dictionary(block.schema.types[0]) is is_coded
    assert block.num_rows == rows
