"""Delta tables: a version lists the files, partitions are in none, features are understood or refused."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.rows.sources.delta import check, pin, read, schema, splits
from suffice.pipeline.spec.spec import load_spec
from support.deletion_vectors import delete_rows, inline, vector_of
from support.hostile import normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.rows.sources.contract import Pin
    from suffice.pipeline.spec.spec import Spec

DAYS = [dt.date(2013, 1, 5), dt.date(2013, 1, 31), dt.date(2013, 2, 1), None]
ROWS = pa.table(
    {"x": [1.0, 2.0, 4.0, 8.0], "day": pa.array(DAYS, pa.date32()), "city": ["a b/%=ü", "b", None, "b"]}
)


def spec_of(root: Path, **source: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"delta": str(root), **source},
            "window": {"column": "day", "every": "month"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal("x", "0", "1")},
        }
    )


def rows_read(pinned: Pin, *columns: str) -> list[tuple[Any, ...]]:
    batches = [batch for split in splits(pinned) for batch in read(split, columns, 2)]
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "table", ROWS, partition_by=["day", "city"])
    return tmp_path / "table"


def test_partitions_are_columns_of_their_types(table: Path) -> None:
    pinned = pin(spec_of(table))
    expected = [tuple(row.values()) for row in ROWS.to_pylist()]
    assert rows_read(pinned, "x", "day", "city") == sorted(expected, key=repr)
    for part in schema(pinned):
        assert part.columns.field("day").type == pa.date32()
        assert part.part == f"below {table}"


def test_a_window_reads_its_partitions_alone(table: Path) -> None:
    for file in DeltaTable(table).file_uris():
        if "day=2013-01" not in file:
            Path(file).write_bytes(b"damaged")
    assert rows_read(pin(spec_of(table), "2013-01"), "x") == [(1.0,), (2.0,)]
    with pytest.raises(UsageError, match=r"^source\.delta: the file below .*/table cannot be read"):
        pin(spec_of(table))


def test_a_date_that_python_does_not_know_is_no_error(tmp_path: Path) -> None:
    days = pa.array([15710, 2932896, 2932897, 3_000_000], pa.int32()).view(pa.date32())
    rows = pa.table({"x": [1.0, 2.0, 4.0, 8.0], "day": days})
    write_deltalake(tmp_path / "table", rows, partition_by=["day"])
    spec = spec_of(tmp_path / "table")
    assert rows_read(pin(spec, "2013-01"), "x") == [(1.0,)]
    assert rows_read(pin(spec, "9999-12"), "x") == [(2.0,)]
    assert len(rows_read(pin(spec), "x")) == 4


def test_a_window_without_a_partition_is_empty(table: Path) -> None:
    pinned = pin(spec_of(table), "2012-12")
    assert splits(pinned) == ()
    assert schema(pinned)[0].columns.names == ROWS.schema.names


def test_a_concurrent_writer_changes_nothing(table: Path) -> None:
    pinned = pin(spec_of(table))
    before = rows_read(pinned, "x")
    write_deltalake(table, ROWS, mode="append")
    DeltaTable(table).delete("x = 1.0")
    assert rows_read(pinned, "x") == before
    check(pinned)
    assert len(rows_read(pin(spec_of(table)), "x")) == 6
    assert rows_read(pin(spec_of(table, version="0")), "x") == before


def test_a_column_that_was_added_later_is_null_in_older_files(table: Path) -> None:
    added = ROWS.append_column("y", pa.array([7, 7, 7, 7], pa.int64()))
    write_deltalake(table, added, mode="append", schema_mode="merge")
    found = rows_read(pin(spec_of(table)), "y")
    assert found == [(7,)] * 4 + [(None,)] * 4


def vacuum(table: Path) -> None:
    DeltaTable(table).delete()
    done = DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert done


def test_a_version_that_was_vacuumed_fails_before_the_draw(table: Path) -> None:
    pinned = pin(spec_of(table, version="0"))
    vacuum(table)
    with pytest.raises(StageFailedError, match=rf"the data file below {table} cannot be read: it is gone"):
        check(pinned)
    with pytest.raises(UsageError, match=r"^source\.delta: a file that .* lists is gone") as caught:
        pin(spec_of(table, version="0"))
    assert "part-" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("./{path}", "lists a file twice, so its rows would count twice"),
        ("{path}/../part.parquet", "outside of its folder"),
        ("a%00b.parquet", "is gone or cannot be read"),
        ("%ff.parquet", "is gone or cannot be read"),
    ],
)
def test_what_a_log_may_not_list(tmp_path: Path, path: str, said: str) -> None:
    write_deltalake(tmp_path / "table", ROWS)
    (log,) = (tmp_path / "table" / "_delta_log").glob("*.json")
    (entry,) = [entry for entry in map(json.loads, log.read_text().splitlines()) if "add" in entry]
    entry["add"]["path"] = path.format(path=entry["add"]["path"])
    log.write_text(f"{log.read_text().strip()}\n{json.dumps(entry)}\n")
    with pytest.raises(UsageError, match=f"^source\\.delta: .* {said}"):
        pin(spec_of(tmp_path / "table"))


def test_a_version_that_never_was_is_refused(table: Path) -> None:
    with pytest.raises(UsageError, match=r"^source\.delta: no readable Delta table with the version 9 at "):
        pin(spec_of(table, version="9"))


@pytest.mark.parametrize(
    ("configuration", "feature"),
    [
        ({"delta.columnMapping.mode": "shape"}, "columnMapping"),
        ({}, "rowsOfTomorrow"),
    ],
)
def test_features_that_are_not_understood_are_refused(
    tmp_path: Path, configuration: dict[str, str], feature: str
) -> None:
    root = tmp_path / "table"
    log = root / "_delta_log"
    write_deltalake(root, ROWS)
    _declare(log / "00000000000000000000.json", configuration, feature)
    with pytest.raises(UsageError, match=rf"^source\.delta: .*({feature}|not understood|maps columns)"):
        pin(spec_of(root))


def test_columns_have_other_names_in_files_by_a_mapping(tmp_path: Path) -> None:
    """Written by deltalake, renamed and given a new column of an old name as others do it."""
    root = tmp_path / "table"
    mapped = {"delta.columnMapping.mode": "name"}
    write_deltalake(root, ROWS, partition_by=["day", "city"], configuration=mapped)
    assert DeltaTable(root).protocol().min_reader_version == 2
    assert all("x" not in pq.read_schema(file).names for file in root.rglob("*.parquet"))
    expected = sorted((tuple(row.values()) for row in ROWS.to_pylist()), key=repr)
    assert rows_read(pin(spec_of(root)), "x", "day", "city") == expected
    assert rows_read(pin(spec_of(root), "2013-01"), "x") == [(1.0,), (2.0,)]
    schema_of(root, lambda fields: [{**fields[0], "name": "amount"}, *fields[1:], _field("x", 9)])
    spec = spec_of(root)
    assert rows_read(pin(spec), "amount") == [(x,) for x, *_ in expected]
    assert rows_read(pin(spec), "x") == [(None,)] * 4, "a new column is not the old one of its name"
    assert rows_read(pin(spec_of(root, version="0")), "x") == [(x,) for x, *_ in expected]


def test_columns_are_found_by_ids_where_the_mapping_says_so(tmp_path: Path) -> None:
    root = tmp_path / "table"
    write_deltalake(root, ROWS, configuration={"delta.columnMapping.mode": "name"})
    log = root / "_delta_log" / f"{0:020}.json"
    log.write_text(
        log.read_text().replace('"delta.columnMapping.mode":"name"', '"delta.columnMapping.mode":"id"')
    )
    (file,) = root.rglob("*.parquet")
    stored = pq.read_table(file)
    ids = {b"PARQUET:field_id": b"1"}, {b"PARQUET:field_id": b"2"}, {b"PARQUET:field_id": b"3"}
    fields = [field.with_metadata(of) for field, of in zip(stored.schema, ids, strict=True)]
    names = [*stored.schema.names[1:], stored.schema.names[0]]  # ids count, whatever names say
    fields = [field.with_name(name) for field, name in zip(fields, names, strict=True)]
    pq.write_table(pa.table(stored.columns, schema=pa.schema(fields)), file)
    assert DeltaTable(root).metadata().configuration["delta.columnMapping.mode"] == "id"
    expected = sorted((tuple(row.values()) for row in ROWS.to_pylist()), key=repr)
    assert rows_read(pin(spec_of(root)), "x", "day", "city") == expected
    pq.write_table(pa.table(stored.columns, names=names), file)
    with pytest.raises(UsageError, match=r"^source\.delta: the file below .*/table cannot be read"):
        pin(spec_of(root))


def schema_of(root: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    """Commit another schema, as whoever renames or adds columns does."""
    log = root / "_delta_log"
    lines = map(json.loads, (log / f"{0:020}.json").read_text().splitlines())
    (metadata,) = [line for line in lines if "metaData" in line]
    stated = json.loads(metadata["metaData"]["schemaString"])
    stated["fields"] = change(stated["fields"])
    metadata["metaData"]["schemaString"] = json.dumps(stated)
    (log / f"{1:020}.json").write_text(f"{json.dumps(metadata)}\n")


def _field(name: str, number: int) -> dict[str, Any]:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": "double", "nullable": True, "metadata": mapping}


CITIES = ["a b/%=ü", "b", None]
DELETABLE = {"delta.enableDeletionVectors": "true"}


def _cities(root: Path) -> pa.Table:
    """Write 90 rows into a table of three partitions, a file of ten row groups each; deletion is allowed."""
    rows = pa.table({"x": pa.array(range(90), pa.float64()), "city": [CITIES[row % 3] for row in range(90)]})
    properties = WriterProperties(max_row_group_size=3)
    write_deltalake(root, rows, partition_by=["city"], configuration=DELETABLE, writer_properties=properties)
    return rows


def test_a_table_whose_rows_could_be_deleted_is_read(tmp_path: Path) -> None:
    _cities(tmp_path / "table")
    assert "deletionVectors" in DeltaTable(tmp_path / "table").protocol().reader_features
    pinned = pin(spec_without_days(tmp_path / "table"))
    assert sorted(x for x, _ in rows_read(pinned, "x", "city")) == list(range(90))


@pytest.mark.parametrize("deleted", [(0,), (29,), (2, 3, 4, 5, 6, 28), tuple(range(30))])
def test_rows_that_deletion_vectors_name_are_gone(tmp_path: Path, deleted: tuple[int, ...]) -> None:
    root = tmp_path / "table"
    rows = _cities(root).to_pylist()
    vectors = {"b": inline(vector_of(deleted), len(deleted)), CITIES[0]: inline(vector_of([7]), 1)}
    delete_rows(root, 1, {f"city={_folder(city)}": vector for city, vector in vectors.items()})
    left = {city: [row["x"] for row in rows if row["city"] == city] for city in CITIES}
    left["b"] = [x for position, x in enumerate(left["b"]) if position not in deleted]
    del left[CITIES[0]][7]
    for version, expected in ((0, 90), (1, sum(map(len, left.values())))):
        pinned = pin(spec_without_days(root, version=str(version)))
        assert len(rows_read(pinned, "x", "city")) == expected
    assert rows_read(pinned, "x", "city") == sorted(
        ((x, city) for city, xs in left.items() for x in xs), key=repr
    )


def test_a_deletion_vector_that_is_gone_is_told(tmp_path: Path) -> None:
    root = tmp_path / "table"
    _cities(root)
    delete_rows(root, 1, {f"city={_folder('b')}": inline(vector_of([1]), 1)})
    log = root / "_delta_log" / "00000000000000000001.json"
    gone = log.read_text().replace('"storageType": "i"', '"storageType": "p"')
    log.write_text(
        re.sub(r'"pathOrInlineDv": "[^"]*"', f'"pathOrInlineDv": "{(root / "x.bin").as_uri()}"', gone)
    )
    with pytest.raises(UsageError, match=r"^source\.delta: a deletion vector of the table .* is gone"):
        pin(spec_without_days(root))


def spec_without_days(root: Path, **source: Any) -> Spec:
    document = {
        "name": "test",
        "dataset": "test",
        "source": {"delta": str(root), **source},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "groups": {"city": CITIES[:2]},
        "statistics": {"x": normal("x", "0", "90")},
    }
    return load_spec(document)


def _folder(city: str | None) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if city is None else quote(quote(city, safe=""), safe="")


def test_a_mapping_that_the_protocol_does_not_have_maps_nothing(tmp_path: Path) -> None:
    """Deltalake writes such tables where deletion is allowed, too, and calls columns by their own names."""
    root = tmp_path / "table"
    mapped = {"delta.columnMapping.mode": "name", **DELETABLE}
    write_deltalake(root, ROWS, partition_by=["day"], configuration=mapped)
    assert "columnMapping" not in DeltaTable(root).protocol().reader_features
    assert rows_read(pin(spec_of(root), "2013-01"), "x", "city") == [(1.0, "a b/%=ü"), (2.0, "b")]


def _declare(entry: Path, configuration: dict[str, str], feature: str) -> None:
    """Write a feature into a table's first log entry, as another writer would."""
    import json

    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": [feature],
                "writerFeatures": [feature],
            }
        if "metaData" in line:
            line["metaData"]["configuration"] = configuration
    entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
