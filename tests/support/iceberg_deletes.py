"""Files of Iceberg tables, written by hand: pyiceberg writes no delete files, nor hidden partitions here."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyiceberg.table import Table


class DeleteManifest(ManifestWriterV2):  # type: ignore[misc]  # pyiceberg has no types
    """Writes manifests of delete files."""

    def content(self) -> ManifestContent:
        """Return what it lists."""
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def delete_places(table: Table, directory: Path, places: Mapping[str, Sequence[int]], **others: Any) -> Path:
    """Delete rows of data files by their places, in one file of one partition."""
    listed = [(path, place) for path, of_file in sorted(places.items()) for place in of_file]
    ids = ({b"PARQUET:field_id": b"2147483546"}, {b"PARQUET:field_id": b"2147483545"})
    fields = [
        pa.field("file_path", pa.string(), nullable=False, metadata=ids[0]),
        pa.field("pos", pa.int64(), nullable=False, metadata=ids[1]),
    ]
    rows = pa.table(
        [pa.array([path for path, _ in listed], pa.string()), pa.array([at for _, at in listed], pa.int64())],
        schema=pa.schema(fields),
    )
    return _commit(table, directory, rows, DataFileContent.POSITION_DELETES, **others)


def delete_values(table: Table, directory: Path, rows: pa.Table, **others: Any) -> Path:
    """Delete rows that have the values of one of these, in columns of the table."""
    of_table = {field.name: field.field_id for field in table.schema().fields}
    ids = [of_table[name] for name in rows.schema.names]
    fields = [
        field.with_metadata({b"PARQUET:field_id": str(field_id).encode()})
        for field, field_id in zip(rows.schema, ids, strict=True)
    ]
    rows = pa.table(rows.columns, schema=pa.schema(fields))
    return _commit(table, directory, rows, DataFileContent.EQUALITY_DELETES, equality_ids=ids, **others)


def append_partitioned(table: Table, directory: Path, rows: pa.Table) -> None:
    """Append rows, a file for each value of the table's partition spec."""
    schema, spec = table.schema(), table.spec()
    makers = [
        (
            schema.find_column_name(field.source_id),
            field.transform.transform(schema.find_type(field.source_id)),
        )
        for field in spec.fields
    ]
    by_partition: dict[Record, list[int]] = {}
    for number, row in enumerate(rows.to_pylist()):
        values = [(make, _internal(row[name])) for name, make in makers]
        by_partition.setdefault(Record(*(make(value) for make, value in values)), []).append(number)
    ids = {field.name: str(field.field_id).encode() for field in schema.fields}
    fields = [field.with_metadata({b"PARQUET:field_id": ids[field.name]}) for field in rows.schema]
    rows = pa.table(rows.columns, schema=pa.schema(fields))
    for partition, numbers in by_partition.items():
        _commit(table, directory, rows.take(numbers), DataFileContent.DATA, partition=partition)


def _internal(value: Any) -> Any:
    """Return a value as transforms take it."""
    if isinstance(value, dt.datetime):
        return round((value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(microseconds=1))
    return value


def _commit(
    table: Table,
    directory: Path,
    rows: pa.Table,
    content: DataFileContent,
    *,
    equality_ids: list[int] | None = None,
    partition: Record | None = None,
    file_format: FileFormat = FileFormat.PARQUET,
    spec_id: int | None = None,
) -> Path:
    spec = table.spec() if spec_id is None else table.specs()[spec_id]
    path = directory / f"{content.name.lower()}-{uuid.uuid4()}.parquet"
    pq.write_table(rows, path, row_group_size=100)
    parent = table.current_snapshot()
    before = [] if parent is None else parent.manifests(table.io)
    parent_id = None if parent is None else parent.snapshot_id
    number = uuid.uuid4().int >> 66
    io = table.io
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{path}",
        file_format=file_format,
        partition=Record() if partition is None else partition,
        record_count=rows.num_rows,
        file_size_in_bytes=path.stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        key_metadata=None,
        split_offsets=None,
        equality_ids=equality_ids,
        sort_order_id=None,
    )
    place = f"{directory}/manifest-{uuid.uuid4()}.avro"
    manifest = ManifestWriterV2 if content is DataFileContent.DATA else DeleteManifest
    with manifest(spec, table.schema(), io.new_output(f"file://{place}"), number, "gzip") as writer:
        writer.add_entry(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=number, sequence_number=None, data_file=file
            )
        )
    sequence = table.metadata.last_sequence_number + 1
    listing = f"file://{directory}/snap-{number}.avro"
    with write_manifest_list(2, io.new_output(listing), number, parent_id, sequence, "gzip") as manifests:
        manifests.add_manifests([*before, writer.to_manifest_file()])
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent_id,
        sequence_number=sequence,
        manifest_list=listing,
        summary=Summary(Operation.DELETE),
        schema_id=table.schema().schema_id,
    )
    with table.transaction() as change:
        change._apply(
            (
                AddSnapshotUpdate(snapshot=snapshot),
                SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=number),
            )
        )
    return path
