"""An Iceberg table at a snapshot: its manifests list the files, and our reader of Parquet files reads them.

Columns are found in files by their ids, not by their names. Manifests are read without a filter, so that no
statistic of a column leaves out a file; which files a window needs follows from partition values alone.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from suffice.errors import MissingExtraError, SufficeError, UsageError
from suffice.pipeline.rows.sources import table_files
from suffice.pipeline.rows.sources.iceberg_deletes import (
    DeletedValues,
    DeleteFiles,
    ValuesOfFile,
    unreadable,
)
from suffice.pipeline.rows.sources.parquet_files import file_splits, read_files
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import IcebergSpec, source_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.rows.sources.contract import Pin, Split
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

KIND = IcebergSpec.kind

_PLACE = f"source.{KIND}"
_NEWEST_FORMAT = 3
_READERS = 8
_UNITS: dict[str, Literal["D", "M", "Y"]] = {"identity": "D", "day": "D", "month": "M", "year": "Y"}
"""What partition values of dates count, from 1970 on, by transform."""
_ZONE_DAYS = 1
"""More than any time zone is away from UTC, in which partitions of instants are."""

read = read_files
check = table_files.check_table
verify = table_files.verify_table
schema = table_files.table_schemas


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:
    """List the files of a snapshot and pin them. Reads the table's metadata and footers.

    Parameters
    ----------
    spec : Spec
        Its ``source.iceberg`` is the table, and ``source.catalog`` the catalog's name in the environment.
    window : str
        The window that will be read, or ``all``: files of partitions outside of it are left out.
    contract : DataContract, optional
        What its files are read as, by a total rule.

    Raises
    ------
    UsageError
        Where catalog or table is not there, the snapshot has expired, a file of it is gone, or the table has
        other files than Parquet, or what of its format is not read.
    MissingExtraError
        Where pyiceberg is not installed.
    """
    source = spec.source
    if not isinstance(source, IcebergSpec):
        message = f"{_PLACE}: the source is of another kind"
        raise TypeError(message)
    try:
        import pyiceberg  # noqa: F401 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError(f"a source of kind {KIND}", "iceberg") from None
    address = spec.source_address
    try:
        columns, listed, root = _planned(source, spec, window)
    except SufficeError:
        raise
    except Exception:  # noqa: BLE001 - whatever a catalog, its database or its network raises
        message = (
            f"{_PLACE}: {address} cannot be read: the catalog or the table is not there, access is denied, "
            "or the environment does not say where the catalog is "
            f"(PYICEBERG_CATALOG__{source.catalog.upper()}__URI)"
        )
        raise UsageError(message) from None
    return table_files.pin_table(KIND, spec, listed, columns, root, contract)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Batch consecutive row groups into tasks; a row group is never divided."""
    return file_splits(KIND, pin.private.files)


def _planned(
    source: IcebergSpec, spec: Spec, window: str
) -> tuple[tuple[table_files.TableColumn, ...], list[table_files.ListedFile], str | None]:
    """Return the table's columns, the files that a window needs, and where the table's files stand."""
    from pyiceberg.catalog import load_catalog  # an extra
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.utils.config import Config

    settings = Config().get_catalog_config(source.catalog) or {}
    table = load_catalog(source.catalog, **settings).load_table(source.iceberg)
    address = spec.source_address
    if table.format_version > _NEWEST_FORMAT:
        message = f"{_PLACE}: {address} is of a format above {_NEWEST_FORMAT}, which is not read"
        raise UsageError(message)
    if source.snapshot is not None and table.snapshot_by_id(source.snapshot) is None:
        message = f"{_PLACE}: {address} has no snapshot {source.snapshot}: it has expired, or never was"
        raise UsageError(message)
    current = table.current_snapshot()
    snapshot = source.snapshot if source.snapshot is not None else current and current.snapshot_id
    of_table = table.schema() if source.snapshot is None else table.scan(snapshot_id=snapshot).projection()
    if any(field.initial_default is not None for field in of_table.fields):
        message = f"{_PLACE}: {address} has columns with defaults of format 3, which are not read"
        raise UsageError(message)
    arrow = schema_to_pyarrow(of_table, include_field_ids=False)
    columns = tuple(
        table_files.TableColumn(name=field.name, type=arrow.field(field.name).type, field_id=field.field_id)
        for field in of_table.fields
    )
    if snapshot is None:
        return columns, [], None
    listed = _listed(table, table.snapshot_by_id(snapshot), columns, spec, window)
    location = _file_address(table.location(), address)
    return columns, listed, location if "://" in location else os.path.realpath(location)


def _listed(
    table: Any, snapshot: Any, columns: tuple[table_files.TableColumn, ...], spec: Spec, window: str
) -> list[table_files.ListedFile]:
    """List the files of partitions that may hold rows of a window, and what is deleted of them."""
    address = spec.source_address
    mapping = table.name_mapping() or ()
    stored_ids = tuple((name, each.field_id) for each in mapping for name in each.names if each.field_id)
    specs = table.specs()
    deletes = DeleteFiles(
        refuse=lambda rule: UsageError(f"{_PLACE}: {address} {rule}"),
        is_unpartitioned=lambda spec_id: not specs[spec_id].fields,
        address_of=lambda location: _file_address(location, address),
    )
    data: list[tuple[Any, int, list[Any]]] = []
    for entry in _entries(table, snapshot):
        file, sequence = entry.data_file, entry.sequence_number or 0
        if file.content is not file.content.DATA:
            is_of_values = file.content is file.content.EQUALITY_DELETES
            deletes.add(file, sequence, is_of_values=is_of_values)
            continue
        partition = _partition(file, specs, columns)
        if _is_needed(partition, spec, window):
            data.append((file, sequence, partition))
    try:
        places = deletes.places([(file, sequence) for file, sequence, _ in data])
        pinned = {
            of.file_path: deletes.pinned(of)
            for file, sequence, _ in data
            for of in deletes.of_values(file, sequence)
        }
    except SufficeError:
        raise
    except (OSError, ValueError, pa.ArrowException):
        raise unreadable(f"{_PLACE}: {address}") from None
    listed = []
    for file, sequence, partition in data:
        if file.file_format.value.upper() != "PARQUET" or file.key_metadata is not None:
            message = f"{_PLACE}: {address} has data files that are no Parquet files, or encrypted"
            raise UsageError(message)
        constants = tuple(
            (column.name, pa.scalar(value, column.type))
            for column, transform, value in partition
            if column is not None and transform == "identity" and value is not None
        )
        of_file = table_files.TableColumns(columns=columns, partition=constants, stored_ids=stored_ids)
        of_values = tuple(
            DeletedValues(
                file=pinned[of.file_path],
                names=deletes.compared(of, columns),
                columns=table_files.TableColumns(columns=columns, stored_ids=stored_ids),
            )
            for of in deletes.of_values(file, sequence)
        )
        of_places, deleting = places.get(file.file_path, (None, ()))
        listed.append(
            table_files.ListedFile(
                address=_file_address(file.file_path, address),
                columns=of_file,
                deletes=of_places,
                values=ValuesOfFile(lists=of_values, columns=of_file) if of_values else None,
                deleting=(*deleting, *(each.file for each in of_values)),
            )
        )
    return listed


def _entries(table: Any, snapshot: Any) -> Iterator[Any]:
    """Give the entries of a snapshot's manifests that are not deleted."""
    with ThreadPoolExecutor(_READERS) as pool:
        for entries in pool.map(
            lambda manifest: manifest.fetch_manifest_entry(table.io), snapshot.manifests(table.io)
        ):
            yield from entries


def _partition(
    file: Any, specs: Any, columns: tuple[table_files.TableColumn, ...]
) -> list[tuple[table_files.TableColumn | None, str, Any]]:
    """Return the columns by which a file is partitioned, with transforms and values."""
    by_id = {column.field_id: column for column in columns}
    return [
        (by_id.get(field.source_id), str(field.transform), file.partition[position])
        for position, field in enumerate(specs[file.spec_id].fields)
    ]


def _is_needed(
    partition: list[tuple[table_files.TableColumn | None, str, Any]], spec: Spec, window: str
) -> bool:
    days = table_files.window_days(spec, window)
    if days is None or spec.window is None:
        return True
    of_window = [part for part in partition if part[0] and part[0].name == spec.window.column]
    return all(_may_hold(column, transform, value, days) for column, transform, value in of_window)


def _may_hold(
    column: table_files.TableColumn | None, transform: str, value: Any, days: tuple[int, int]
) -> bool:
    """Tell whether a partition of the window's column may hold rows of the window."""
    if column is None or transform not in _UNITS:
        return True
    if value is None:
        return False
    is_date = pa.types.is_date(column.type)
    if transform == "identity" and not is_date:
        return True
    # NumPy's calendar has no last year: what a row holds is no reason to fail.
    unit = _UNITS[transform]
    first, following = (
        int(np.datetime64(number, unit).astype("datetime64[D]").astype(np.int64))
        for number in (value, value + 1)
    )
    around = 0 if is_date else _ZONE_DAYS
    return table_files.may_hold(first - around, following + around, days)


def _file_address(location: str, address: str) -> str:
    """Return a path or URL as files are opened by."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location
    if scheme == "file":
        return rest
    try:
        return source_path(f"{'s3' if scheme in {'s3a', 's3n'} else scheme}://{rest}")
    except ValueError:
        message = f"{_PLACE}: {address} has files where they cannot be read: local paths, s3, gs and az are"
        raise UsageError(message) from None
