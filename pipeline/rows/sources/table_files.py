"""The Parquet files of a table whose format only lists them: what Delta and Iceberg have in common.

A table's files are pinned, checked and read as other Parquet files are. Messages name the table and no
file: the paths of partitions hold values.
"""

from __future__ import annotations

import datetime as dt
import posixpath
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from suffice.arrays import null_scalar
from suffice.errors import UsageError
from suffice.pipeline.rows.sources import parquet_files
from suffice.pipeline.rows.sources.checksums import require_listed
from suffice.pipeline.rows.sources.contract import PartSchema, Pin, exact_data, spec_columns
from suffice.pipeline.rows.sources.contracted_columns import FileColumns, contracted
from suffice.pipeline.rows.sources.file_access import PinnedFile, status
from suffice.pipeline.rows.sources.times_of_96_bits import WALL_TIME, is_of_96_bits
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.domains import period_end, period_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.rows.sources.contracted_columns import ColumnsOf
    from suffice.pipeline.rows.sources.deletion_vectors import Deletes
    from suffice.pipeline.rows.sources.parquet_files import RowDeletes
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

_FIELD_ID = b"PARQUET:field_id"
_BLOCK_ROWS = 1 << 16
_EPOCH = dt.date(1970, 1, 1).toordinal()


@exact_data(travels=True)
class TableColumn:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its name at the pinned snapshot.
    type : pyarrow.DataType
        Its type there.
    field_id : int or None
        What identifies it in files, whose names for it may be older; None where a name does.
    stored : str or None
        What files call it, where that is another name.
    """

    name: str
    type: pa.DataType
    field_id: int | None = None
    stored: str | None = None


@exact_data(travels=True)
class TableColumns:
    """How the columns of a table's file become the table's: known when the file's own are.

    Parameters
    ----------
    columns : tuple of TableColumn
        Those of the table.
    partition : tuple of (str, pyarrow.Scalar)
        Columns whose one value the table's log states for the file.
    stored_ids : tuple of (str, int)
        Ids of a file's columns by name, of files without ids.
    """

    columns: tuple[TableColumn, ...]
    partition: tuple[tuple[str, pa.Scalar], ...] = ()
    stored_ids: tuple[tuple[str, int], ...] = ()

    def of(self, stored: pa.Schema) -> FileColumns | None:
        """Return how the columns of a file become the table's; None where a file tells no ids.

        A column that the file lacks was added later, and is null in it.
        """
        by_id = any(column.field_id is not None for column in self.columns)
        names = self._by_id(stored) if by_id else {name: name for name in stored.names}
        if by_id and len(stored) and not names:
            return None
        partition = dict(self.partition)
        renamed, constants, wall_times, held = [], [], [], set()
        for column in self.columns:
            name = names.get(column.field_id if by_id else column.stored or column.name)
            if name is None or (not by_id and column.name in partition):
                constants.append((column.name, partition.get(column.name, null_scalar(column.type))))
                continue
            held.add(name)
            if name != column.name:
                renamed.append((column.name, name))
            # The table says of its column that it has no zone, as a contract does.
            if column.type == WALL_TIME and is_of_96_bits(stored.field(name)):
                wall_times.append(column.name)
        return FileColumns(
            renamed=tuple(renamed),
            constants=tuple(constants),
            wall_times=tuple(wall_times),
            dropped=tuple(name for name in stored.names if name not in held),
        )

    def _by_id(self, stored: pa.Schema) -> dict[object, str]:
        known = dict(self.stored_ids)
        ids: dict[object, str] = {}
        for field in stored:
            text = (field.metadata or {}).get(_FIELD_ID)
            field_id = known.get(field.name) if text is None else int(text)
            if field_id is not None:
                ids[field_id] = field.name
        return ids


@exact_data(travels=False)
class ListedFile:
    """A file that a table's log lists.

    Parameters
    ----------
    address : str
        Its path or URL.
    columns : TableColumns
        How its columns become the table's.
    deletes : Deletes or None
        Which of its rows the table no longer has; None where it has all of them.
    values : RowDeletes or None
        What deletes rows of it by their values.
    deleting : tuple of PinnedFile
        The files that say so.
    """

    address: str
    columns: TableColumns
    deletes: Deletes | None = None
    values: RowDeletes | None = None
    deleting: tuple[PinnedFile, ...] = ()


@exact_data(travels=False)
class PinnedTable:
    """The private part of a pin.

    Parameters
    ----------
    files : PinnedFiles
        The files of the pinned snapshot that the release needs.
    deleting : tuple of PinnedFile
        The files that say which of their rows are deleted.
    columns : pyarrow.Schema
        The table's columns, which it has without a file too.
    root : str or None
        Below which files of other snapshots may stand.
    is_contracted : bool
        Whether a contract, and no file, says what its columns are read as.
    """

    files: parquet_files.PinnedFiles
    deleting: tuple[PinnedFile, ...]
    columns: pa.Schema
    root: str | None
    is_contracted: bool


def pin_table(
    kind: str,
    spec: Spec,
    listed: Sequence[ListedFile],
    columns: Sequence[TableColumn],
    root: str | None,
    contract: DataContract | None,
) -> Pin:
    """Pin the files that a table's log listed.

    Raises
    ------
    UsageError
        Where one is gone, is no Parquet file, or is listed twice.
    """
    address = spec.source_address
    ordered = sorted(listed, key=lambda file: file.address)
    if len({posixpath.normpath(file.address) for file in ordered}) < len(ordered):
        message = f"source.{kind}: {address} lists a file twice, so its rows would count twice"
        raise UsageError(message)
    statuses = parquet_files.surveyed(_statuses, [file.address for file in ordered])
    files: list[tuple[PinnedFile, ColumnsOf]] = [
        (file, of.columns if contract is None else contracted(of.columns, spec, contract))
        for file, of in zip(statuses, ordered, strict=True)
        if file is not None
    ]
    if len(files) < len(ordered):
        message = (
            f"source.{kind}: a file that {address} lists is gone or cannot be read: name a later version or "
            "snapshot, or none, and keep files as long as releases need them"
        )
        raise UsageError(message)
    pinned = parquet_files.pin_files(
        files,
        spec_columns(spec),
        place=f"source.{kind}",
        root=address,
        deletes=[file.deletes for file in ordered],
        values=[file.values for file in ordered],
    )
    deleting = {file.address: file for of in ordered for file in of.deleting}
    schema = pa.schema([(column.name, column.type) for column in columns])
    columns_read = spec_columns(spec)[:1]

    def count_rows() -> int:
        pieces = (piece for split in parquet_files.file_splits(kind, pinned) for piece in split.pieces)
        return sum(
            batch.num_rows
            for piece in pieces
            for batch in parquet_files.read_piece(piece, columns_read, _BLOCK_ROWS)
        )

    return Pin(
        kind=kind,
        public={"kind": kind, "address": address},
        count_rows=count_rows if any(file.values for file in ordered) else None,
        private=PinnedTable(
            files=pinned,
            deleting=tuple(deleting[path] for path in sorted(deleting)),
            columns=schema,
            root=root,
            is_contracted=contract is not None,
        ),
    )


def _statuses(addresses: Sequence[str]) -> list[PinnedFile | None]:
    """Look at files; None for what is not there, or cannot be looked at."""
    return [_status(address) for address in addresses]


def _status(address: str) -> PinnedFile | None:
    try:
        return status(address)
    except (OSError, ValueError):  # a log may hold names that no file system takes
        return None


def table_schemas(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the table's columns as its files have them; as the table has them where it has no file.

    By a contract only the table's own columns count.
    """
    table: PinnedTable = pin.private
    of_table = (PartSchema(part=pin.public["address"], columns=table.columns),)
    return of_table if table.is_contracted else parquet_files.file_schemas(table.files) or of_table


def check_table(pin: Pin) -> None:
    """Check that every file is the pinned one.

    Raises
    ------
    StageFailedError
        Where one is gone, or is not.
    """
    table: PinnedTable = pin.private
    parquet_files.check_files(table.files)
    for file in table.deleting:
        parquet_files.check_file(file, f"below {pin.public['address']}")


def verify_table(pin: Pin, checksums: str) -> None:
    """Hash every pinned file, and compare with the owner's list.

    Raises
    ------
    InputNotVerifiedError
        Where one is not in the list or has another SHA-256, the list names a file of the table that is not in
        the snapshot, or there is no list.
    """
    table: PinnedTable = pin.private
    address = pin.public["address"]

    def is_reached(path: str) -> bool:
        return table.root is not None and path.startswith(f"{table.root}/") and path.endswith(".parquet")

    require_listed(
        [file.address for file in (*table.files.files, *table.deleting)],
        checksums,
        check=partial(check_table, pin),
        place=f"source.{pin.kind}",
        address=address,
        is_reached=is_reached,
    )


def window_days(spec: Spec, window: str) -> tuple[int, int] | None:
    """Return the first day of a window, and the first after it; None where every file is read.

    Days are counted from 1970-01-01: a table may hold dates that Python has none for. Nothing is left out
    where the number of all records is public: it counts them whatever their window.
    """
    if spec.window is None or window == ALL or compile_plan(spec).n_is_public:
        return None
    start = period_start(window, spec.window.every)
    return start.toordinal() - _EPOCH, period_end(start, spec.window.every) - _EPOCH


def may_hold(first: int, following: int, days: tuple[int, int]) -> bool:
    """Tell whether a file may hold rows of a window, given its first day and the first after its last."""
    return first < days[1] and following > days[0]
