"""Iceberg tables: a snapshot lists the files, and columns are found by id."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.rows.sources import iceberg
from suffice.pipeline.rows.sources.iceberg import check, pin, read, schema, splits
from suffice.pipeline.rows.sources.table_files import TableColumn
from suffice.pipeline.spec.spec import load_spec
from support.hostile import normal
from support.table_makers import CATALOG, TABLE, URI, catalog_of, iceberg_files, iceberg_table, write_iceberg

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.rows.sources.contract import Pin
    from suffice.pipeline.spec.spec import Spec

EPOCH = dt.date(1970, 1, 1).toordinal()
DAYS = [dt.date(2013, 1, 5), dt.date(2013, 1, 31), dt.date(2013, 2, 1), None]
ROWS = pa.table(
    {
        "x": [1.0, 2.0, 4.0, 8.0],
        "day": pa.array(DAYS, pa.date32()),
        "city": ["a b/%=ü", "b", None, "b"],
        "n": pa.array([1, 2, 3, 4], pa.int32()),
    }
)


def spec_of(column: str = "x", **source: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"iceberg": TABLE, "catalog": CATALOG, **source},
            "window": {"column": "day", "every": "month"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {column: normal(column, "0", "1")},
        }
    )


def rows_read(pinned: Pin, *columns: str) -> list[tuple[Any, ...]]:
    batches = [batch for split in splits(pinned) for batch in read(split, columns, 2)]
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of one file."""
    monkeypatch.setenv(URI, "")
    write_iceberg(tmp_path, ROWS.slice(0, 0))
    iceberg_table(tmp_path).append(ROWS)
    return tmp_path


@pytest.fixture
def partitioned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of a file for each day and city."""
    monkeypatch.setenv(URI, "")
    write_iceberg(tmp_path, ROWS.slice(0, 0))
    table = iceberg_table(tmp_path)
    with table.update_spec() as update:
        update.add_identity("day")
        update.add_identity("city")
    table.append(ROWS)
    return tmp_path


def test_columns_are_found_by_their_ids(made: Path) -> None:
    from pyiceberg.types import LongType

    table = iceberg_table(made)
    with table.update_schema() as update:
        update.rename_column("x", "y")
        update.update_column("n", LongType())
    with table.update_schema() as update:
        update.add_column("x", LongType())
    table.append(pa.table({"y": [16.0], "day": DAYS[:1], "city": ["c"], "n": [2**40], "x": [5]}))
    pinned = pin(spec_of("y"))
    found = rows_read(pinned, "y", "x", "n")
    assert found == sorted(
        [(1.0, None, 1), (2.0, None, 2), (4.0, None, 3), (8.0, None, 4), (16.0, 5, 2**40)], key=repr
    )
    for part in schema(pinned):
        assert sorted(part.columns.names) == ["city", "day", "n", "x", "y"]
        assert part.part == f"below iceberg:{CATALOG}/{TABLE}"


def test_a_dropped_column_is_not_the_new_one_of_its_name(made: Path) -> None:
    from pyiceberg.types import LongType

    table = iceberg_table(made)
    with table.update_schema() as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", LongType())
    assert rows_read(pin(spec_of()), "n") == [(None,)] * 4


def test_a_window_reads_its_partitions_alone(partitioned: Path) -> None:
    for file in iceberg_files(partitioned):
        if "day=2013-01" not in str(file):
            file.write_bytes(b"damaged")
    assert rows_read(pin(spec_of(), "2013-01"), "x", "city") == [(1.0, "a b/%=ü"), (2.0, "b")]
    with pytest.raises(UsageError, match=r"^source\.iceberg: the file below iceberg:"):
        pin(spec_of())


def test_a_date_without_a_following_one_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last day that has a name often stands for none."""
    monkeypatch.setenv(URI, "")
    rows = ROWS.set_column(1, "day", pa.array([*DAYS[:3], dt.date.max], pa.date32()))
    write_iceberg(tmp_path, rows.slice(0, 0))
    table = iceberg_table(tmp_path)
    with table.update_spec() as update:
        update.add_identity("day")
    table.append(rows)
    assert rows_read(pin(spec_of(), "2013-01"), "x") == [(1.0,), (2.0,)]
    assert rows_read(pin(spec_of(), "9999-12"), "x") == [(8.0,)]


def test_statistics_of_columns_leave_out_no_file(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window in which no row is reads the file all the same, and no plan by statistics is made."""
    from pyiceberg.table import DataScan

    monkeypatch.delattr(DataScan, "plan_files")
    assert len(rows_read(pin(spec_of(), "1999-01"), "x")) == 4
    del made


@pytest.mark.parametrize(
    ("kind", "transform", "value", "window_days", "expected"),
    [
        (pa.date32(), "month", 516, ("2013-01-01", "2013-02-01"), True),
        (pa.date32(), "month", 517, ("2013-01-01", "2013-02-01"), False),
        (pa.date32(), "year", 43, ("2013-12-01", "2014-01-01"), True),
        (pa.date32(), "year", 44, ("2013-12-01", "2014-01-01"), False),
        (pa.date32(), "day", 15706, ("2013-01-01", "2013-01-02"), True),
        (pa.date32(), "identity", 15705, ("2013-01-01", "2013-01-02"), False),
        (pa.timestamp("us", "UTC"), "day", 15705, ("2013-01-01", "2013-01-02"), True),
        (pa.timestamp("us", "UTC"), "day", 15704, ("2013-01-01", "2013-01-02"), False),
        (pa.timestamp("us"), "hour", 1, ("2013-01-01", "2013-01-02"), True),
        (pa.date32(), "identity", 2932896, ("9999-12-01", "9999-12-31"), False),
        (pa.date32(), "day", 2932896, ("2013-01-01", "2013-01-02"), False),
        (pa.date32(), "month", 96359, ("9999-12-01", "9999-12-31"), True),
        (pa.timestamp("us", "UTC"), "year", 2**31 - 1, ("2013-01-01", "2013-01-02"), False),
        (pa.timestamp("us", "UTC"), "day", -719162, ("0001-01-01", "0001-01-02"), True),
        (pa.date32(), "month", None, ("2013-01-01", "2013-02-01"), False),
        (pa.date32(), "bucket[16]", None, ("2013-01-01", "2013-02-01"), True),
    ],
)
def test_a_partition_is_left_out_where_no_time_zone_has_a_row_of_it(
    kind: pa.DataType, transform: str, value: int | None, window_days: tuple[str, str], *, expected: bool
) -> None:
    first, following = (dt.date.fromisoformat(day).toordinal() - EPOCH for day in window_days)
    column = TableColumn(name="day", type=kind, field_id=2)
    assert iceberg._may_hold(column, transform, value, (first, following)) is expected


def test_a_concurrent_writer_changes_nothing(made: Path) -> None:
    table = iceberg_table(made)
    first = table.current_snapshot()
    pinned = pin(spec_of())
    before = rows_read(pinned, "x")
    table.append(ROWS)
    table.delete("x == 1.0")
    with table.update_schema() as update:
        update.rename_column("x", "y")
    assert rows_read(pinned, "x") == before
    check(pinned)
    assert first is not None
    assert rows_read(pin(spec_of(snapshot=str(first.snapshot_id))), "x") == before
    assert len(rows_read(pin(spec_of("y")), "y")) == 6


def test_a_lost_snapshot_fails_before_the_draw(made: Path) -> None:
    pinned = pin(spec_of())
    iceberg_files(made)[0].unlink()
    with pytest.raises(StageFailedError, match=r"the data file below iceberg:.* cannot be read: it is gone"):
        check(pinned)
    with pytest.raises(UsageError, match=r"^source\.iceberg: a file that .* lists is gone"):
        pin(spec_of())


def test_an_expired_snapshot_is_refused(made: Path) -> None:
    table = iceberg_table(made)
    first = table.current_snapshot()
    assert first is not None
    table.append(ROWS)
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    with pytest.raises(UsageError, match=rf"has no snapshot {first.snapshot_id}: it has expired"):
        pin(spec_of(snapshot=str(first.snapshot_id)))


def test_what_a_catalog_raises_is_not_shown(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URI, "postgresql://someone:SECRET-77c1@nowhere.invalid/db")
    with pytest.raises(
        UsageError, match=r"^source\.iceberg: iceberg:warehouse/sales\.orders cannot be read"
    ) as caught:
        pin(spec_of())
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    del made


def test_a_table_without_a_snapshot_has_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URI, "")
    catalog_of(tmp_path).create_namespace("sales")
    catalog_of(tmp_path).create_table(TABLE, schema=ROWS.schema)
    pinned = pin(spec_of())
    assert splits(pinned) == ()
    assert schema(pinned)[0].columns.names == ROWS.schema.names
