"""A Delta table at a version: its log lists the files, and our reader of Parquet files reads them.

Statistics of columns, which a log holds too, decide nothing. Which files a window needs follows from the
values of partition columns alone, as in folders. Deletion vectors are read of those files, and of no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.rows.sources import table_files
from suffice.pipeline.rows.sources.deletion_vectors import vectors_of
from suffice.pipeline.rows.sources.parquet_files import file_splits, read_files
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import DeltaSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from suffice.pipeline.rows.sources.contract import Pin, Split
    from suffice.pipeline.rows.sources.deletion_vectors import DeletionVector
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

KIND = DeltaSpec.kind

_PLACE = f"source.{KIND}"
_DELETION_VECTORS = "deletionVectors"
_UNDERSTOOD = frozenset(
    {_DELETION_VECTORS, "columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType"}
)
"""Reader features that are obeyed, or change neither the rows of a file nor columns of types that we read."""

_MAPPINGS = frozenset({"none", "name", "id"})
_PHYSICAL_NAME, _FIELD_ID = b"delta.columnMapping.physicalName", b"delta.columnMapping.id"

read = read_files
check = table_files.check_table
verify = table_files.verify_table
schema = table_files.table_schemas


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:
    """List the files of a version and pin them. Reads the table's log and footers.

    Parameters
    ----------
    spec : Spec
        Its ``source.delta`` is the table's directory or URL.
    window : str
        The window that will be read, or ``all``: files of partitions outside of it are left out.
    contract : DataContract, optional
        What its files are read as, by a total rule.

    Raises
    ------
    UsageError
        Where no table is there, the version is gone, a file of it is gone, or the table has a feature that
        is not understood.
    MissingExtraError
        Where deltalake is not installed.
    """
    address = spec.source_address
    version = spec.source.version if isinstance(spec.source, DeltaSpec) else None
    table = _opened(address, version)
    _refuse_features(table, address)
    columns = _columns(table, address)
    listed = list(_listed(table, address, columns, spec, window))
    return table_files.pin_table(KIND, spec, listed, columns, address, contract)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Batch consecutive row groups into tasks; a row group is never divided."""
    return file_splits(KIND, pin.private.files)


def _opened(address: str, version: int | None) -> Any:
    try:
        from deltalake import DeltaTable  # an extra
        from deltalake.exceptions import DeltaError
    except ModuleNotFoundError:
        raise MissingExtraError(f"a source of kind {KIND}", "delta") from None
    try:
        return DeltaTable(address, version=version)
    except (DeltaError, OSError, ValueError, OverflowError):
        which = "" if version is None else f" with the version {version}"
        message = (
            f"{_PLACE}: no readable Delta table{which} at {address}: it is not there, its log is no longer "
            "kept, access is denied, or it has features that are not understood"
        )
        raise UsageError(message) from None


def _refuse_features(table: Any, address: str) -> None:
    """Refuse what would make the rows of listed files other than the table's."""
    protocol = table.protocol()
    features = set(protocol.reader_features or ())
    unknown = sorted(features - _UNDERSTOOD)
    if _mapping(table) not in _MAPPINGS:
        unknown.append("columnMapping")
    if unknown or protocol.min_reader_version > 3:
        named = ", ".join(unknown) or f"reader version {protocol.min_reader_version}"
        message = (
            f"{_PLACE}: the table {address} has features that are not read: {named}; write it without them, "
            "or read a copy"
        )
        raise UsageError(message[:500])


def _mapping(table: Any) -> str:
    """Return how columns are found in files; the protocol decides whether what a table says of it counts."""
    protocol = table.protocol()
    if protocol.min_reader_version != 2 and "columnMapping" not in (protocol.reader_features or ()):
        return "none"
    return str(table.metadata().configuration.get("delta.columnMapping.mode", "none"))


def _columns(table: Any, address: str) -> tuple[table_files.TableColumn, ...]:
    """Return the table's columns, and how its files call them: by names of their own, or by ids."""
    mapping = _mapping(table)
    columns = []
    for field in pa.schema(table.schema().to_arrow()):
        of = field.metadata or {}
        stored, field_id = of.get(_PHYSICAL_NAME), of.get(_FIELD_ID)
        if (mapping == "name" and stored is None) or (mapping == "id" and field_id is None):
            message = (
                f"{_PLACE}: the table {address} maps columns, and does not say to what: have it repaired"
            )
            raise UsageError(message)
        columns.append(
            table_files.TableColumn(
                name=field.name,
                type=field.type,
                field_id=int(field_id) if mapping == "id" and field_id is not None else None,
                stored=stored.decode() if mapping == "name" and stored is not None else None,
            )
        )
    return tuple(columns)


def _listed(
    table: Any, address: str, columns: tuple[table_files.TableColumn, ...], spec: Spec, window: str
) -> Iterator[table_files.ListedFile]:
    """List the files of partitions that may hold rows of a window."""
    days = table_files.window_days(spec, window)
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=False)).read_all()
    partitions = table.metadata().partition_columns
    values = {
        name: pa.chunked_array([chunk.field(name) for chunk in actions["partition"].chunks])
        for name in partitions
    }
    of_window = values.get(spec.window.column) if spec.window is not None and days is not None else None
    needed = [
        (number, path)
        for number, path in enumerate(actions["path"].to_pylist())
        if of_window is None or days is None or _may_hold(of_window[number], days)
    ]
    vectors = _deletion_vectors(table, address, {path for _, path in needed})
    for number, path in needed:
        constants = tuple((name, values[name][number]) for name in partitions)
        vector = vectors.get(path)
        yield table_files.ListedFile(
            address=_file_address(address, path),
            columns=table_files.TableColumns(columns=columns, partition=constants),
            deletes=vector,
            deleting=() if vector is None or vector.file is None else (vector.file,),
        )


def _deletion_vectors(table: Any, address: str, paths: Iterable[str]) -> Mapping[str, DeletionVector]:
    """Return the deletion vectors of files, by their escaped paths, as the log describes them."""
    if _DELETION_VECTORS not in (table.protocol().reader_features or ()):
        return {}
    try:
        return vectors_of(address, table.version(), paths)
    except (OSError, ValueError, RecursionError, pa.ArrowException):
        message = (
            f"{_PLACE}: a deletion vector of the table {address}, or the log that describes it, is gone or "
            "cannot be read: name a later version, or none, and keep files as long as releases need them"
        )
        raise UsageError(message) from None


def _file_address(address: str, path: str) -> str:
    """Return the address of a file, given its escaped path in the table's folder."""
    name = unquote(path)
    if "://" in path or name.startswith("/") or ".." in name.split("/"):
        message = f"{_PLACE}: the table {address} lists files outside of its folder, as a shallow clone does"
        raise UsageError(message)
    return f"{address}/{name}"


def _may_hold(value: pa.Scalar, days: tuple[int, int]) -> bool:
    """Tell whether rows of one value in the window's column may be in the window."""
    if not value.is_valid:
        return False
    if not pa.types.is_date(value.type):  # the schema check, or the rows, decide
        return True
    day = value.cast(pa.int32()).as_py()
    return table_files.may_hold(day, day + 1, days)
