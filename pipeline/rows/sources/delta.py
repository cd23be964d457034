"""A Delta table at a version: its log lists the files, and our reader of Parquet files reads them.

Statistics of columns, which a log holds too, decide nothing. Which files a window needs follows from the
values of partition columns alone, as in folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.rows.sources import table_files
from suffice.pipeline.rows.sources.parquet_files import file_splits, read_files
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import DeltaSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.rows.sources.contract import Pin, Split
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

KIND = DeltaSpec.kind

_PLACE = f"source.{KIND}"
_DELETION_VECTORS = "deletionVectors"
_UNDERSTOOD = frozenset(
    {_DELETION_VECTORS, "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType"}
)
"""Reader features that are obeyed, or change neither the rows of a file nor columns of types that we read."""

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
    columns = tuple(
        table_files.TableColumn(name=field.name, type=field.type)
        for field in pa.schema(table.schema().to_arrow())
    )
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
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    unknown = sorted(features - _UNDERSTOOD - {"columnMapping"})
    if mapping != "none":
        unknown.append("columnMapping")
    if unknown or protocol.min_reader_version > 3:
        named = ", ".join(unknown) or f"reader version {protocol.min_reader_version}"
        message = (
            f"{_PLACE}: the table {address} has features that are not read: {named}; write it without them, "
            "or read a copy"
        )
        raise UsageError(message[:500])


def _listed(
    table: Any, address: str, columns: tuple[table_files.TableColumn, ...], spec: Spec, window: str
) -> Iterator[table_files.ListedFile]:
    """List the files of partitions that may hold rows of a window."""
    days = table_files.window_days(spec, window)
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=False)).read_all()
    partitions = table.metadata().partition_columns
    kept = _kept_rows(table, address)
    values = {
        name: pa.chunked_array([chunk.field(name) for chunk in actions["partition"].chunks])
        for name in partitions
    }
    for number, path in enumerate(actions["path"].to_pylist()):
        constants = tuple((name, values[name][number]) for name in partitions)
        if days is not None and spec.window is not None and spec.window.column in values:
            value = values[spec.window.column][number]
            if not _may_hold(value, days):
                continue
        yield table_files.ListedFile(
            address=_file_address(address, path),
            columns=table_files.TableColumns(columns=columns, partition=constants),
            kept=kept.get(path),
        )


def _kept_rows(table: Any, address: str) -> dict[str, pa.BooleanArray]:
    """Return which rows the table still has of each file that lost rows, by the file's escaped path."""
    from deltalake.exceptions import DeltaError  # an extra

    if _DELETION_VECTORS not in (table.protocol().reader_features or ()):
        return {}
    try:
        vectors = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()
    except (DeltaError, OSError, ValueError, pa.ArrowException):
        message = (
            f"{_PLACE}: a deletion vector of the table {address} is gone or cannot be read: name a later "
            "version, or none, and keep files as long as releases need them"
        )
        raise UsageError(message) from None
    paths = [path.removeprefix(table.table_uri) for path in vectors["filepath"].to_pylist()]
    return {path: kept.values for path, kept in zip(paths, vectors["selection_vector"], strict=True)}


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
