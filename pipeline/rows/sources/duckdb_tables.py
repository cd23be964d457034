"""Tables and views in a DuckDB file, opened only to be read, in ranges of row ids or slices of a window.

The file is pinned like any other, by its size and time of modification, and no changes may wait beside it
to be written. DuckDB's own lock keeps writers out while somebody reads. Nothing spills, nothing is installed,
no other file is touched.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from suffice.errors import MissingExtraError, StageFailedError, UsageError
from suffice.pipeline.rows.sources.checksums import require_listed
from suffice.pipeline.rows.sources.contract import (
    PartSchema,
    Pin,
    Split,
    exact_data,
    spec_columns,
    split_rows,
)
from suffice.pipeline.rows.sources.file_access import PinnedFile, status
from suffice.pipeline.rows.sources.window_condition import STANDARD, window_condition
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import DuckdbSpec
from suffice.pipeline.terms.declaration.table_names import quoted, quoted_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

_CONFIGURATION = {
    "temp_directory": "",  # rows and sums stay in memory
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a name never is a variable of Python
    "threads": "1",  # the cluster's threads are the parallelism
}
_SETTINGS = (
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
    "SET search_path = 'system.main'",  # a macro of the file never stands in for sum() or +
)


def driver() -> Any:
    """Import DuckDB.

    Raises
    ------
    MissingExtraError
        Where it is not installed.
    """
    try:
        import duckdb  # an extra
    except ModuleNotFoundError:
        feature = "source.duckdb"
        raise MissingExtraError(feature, "duckdb") from None
    return duckdb


@contextmanager
def opened(path: str) -> Iterator[tuple[Any, str]]:
    """Give a connection to a file, for as long as the block lasts, and the name that DuckDB gives the file.

    All connections of a process have the same configuration: DuckDB refuses to mix them. Queries name tables
    by file, schema and table; functions and operators are DuckDB's own, whatever macros the file defines.

    Raises
    ------
    MissingExtraError
        Where DuckDB is not installed.
    """
    duckdb = driver()
    with closing(duckdb.connect(path, read_only=True, config=dict(_CONFIGURATION))) as connection:
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
        files = "SELECT database_name FROM duckdb_databases() WHERE NOT internal"
        ((name,),) = connection.execute(files).fetchall()
        yield connection, name


def read_errors() -> tuple[type[Exception], ...]:
    """Return what goes wrong in DuckDB, whose texts may quote rows, or at the file."""
    return (driver().Error, OSError)


def has_unwritten_changes(path: str) -> bool:
    """Tell whether changes stand beside the file, which were not written into it yet."""
    return Path(f"{path}.wal").exists()


KIND = DuckdbSpec.kind

_PLACE = f"source.{KIND}"
_UNREAD = pa.time64("us")
_GROUP_ROWS = 122_880
"""Rows that DuckDB stores together: a task begins at a multiple of it, so that none is decoded twice."""


@exact_data(travels=True)
class RowRange:
    """Rows of a table by their ids, of a slice of a window, or all rows of a view.

    Parameters
    ----------
    file : PinnedFile
        The database.
    table : str
        Schema and table.
    condition : str
        What chooses the rows in SQL; empty for all, where ids are not to be had.
    n_rows : int
        Rows in it; of a slice one, as nobody has counted them.
    is_counted : bool
        Whether so many rows have to arrive.
    """

    file: PinnedFile
    table: str
    condition: str
    n_rows: int
    is_counted: bool


@exact_data(travels=False)
class _PinnedTable:
    """The private part of a pin."""

    file: PinnedFile
    table: str
    columns: pa.Schema
    ranges: tuple[RowRange, ...]


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:  # noqa: ARG001 - see below
    """Look at the spec's file and table; count rows by ranges of ids.

    Parameters
    ----------
    spec : Spec
        Its ``source.duckdb`` is a file, its ``source.table`` a table or a view in it.
    window : str
        The window that will be read, or ``all``: rows of others are left out, where that is to be had.
    contract : DataContract, optional
        Checked by whoever asks for the columns.

    Raises
    ------
    UsageError
        Where the file or the table is not there, cannot be read, or is being written.
    """
    source = spec.source
    assert isinstance(source, DuckdbSpec)  # noqa: S101 - the registry's
    driver()
    path, table = source.file(spec.directory), source.table
    try:
        file = status(path)
    except OSError:
        message = f"{_PLACE}: {path} is not there, or cannot be read"
        raise UsageError(message) from None
    if has_unwritten_changes(path):
        message = f"{_PLACE}: {path} has changes in {path}.wal: let its writer close it, or run CHECKPOINT"
        raise UsageError(message)
    try:
        with ExitStack() as stack:
            connection, catalog = stack.enter_context(opened(path))
            columns = _columns(connection.sql(f"SELECT * FROM {_named(catalog, table)} LIMIT 0"))  # noqa: S608
            slices = window_condition(spec, window, columns, STANDARD)
            ranges = tuple(
                RowRange(file=file, table=table, condition=each, n_rows=1, is_counted=False)
                for each in slices
            ) or _ranges(connection, catalog, file, table, len(spec_columns(spec)))
            # Of a window the catalogue takes longer to load than its rows: a task beside it has it already.
            held = stack.pop_all() if slices else ExitStack()
    except read_errors():
        message = (
            f"{_PLACE}: {table} in {path} cannot be read: the file is no database, a writer has it open, "
            "or it holds no such table, or no such view of its own rows"
        )
        raise UsageError(message) from None
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": spec.source_address},
        private=_PinnedTable(file=file, table=table, columns=columns, ranges=ranges),
        close=held.close,
    )


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns of the table."""
    pinned: _PinnedTable = pin.private
    return (PartSchema(part=f"{pinned.file.address}/{pinned.table}", columns=pinned.columns),)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Return the ranges of row ids, each a task."""
    pinned: _PinnedTable = pin.private
    return tuple(Split.of(KIND, [each]) for each in pinned.ranges)


def read(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read columns of a split.

    Raises
    ------
    StageFailedError
        Where the file cannot be read, or is not the pinned one.
    """
    listed = ", ".join(map(quoted, columns))
    for piece in split.pieces:
        _check_pinned(piece.file)
        where = f" WHERE {piece.condition}" if piece.condition else ""
        n_rows = 0
        try:
            with opened(piece.file.address) as (connection, catalog):
                query = f"SELECT {listed} FROM {_named(catalog, piece.table)}{where}"  # noqa: S608
                for batch in connection.sql(query).to_arrow_reader(block_rows):
                    n_rows += batch.num_rows
                    yield batch
        except MissingExtraError as error:  # a worker lacks what the caller has
            raise _failure(piece.file, f"cannot be read by a worker: {error}") from None
        except read_errors():
            raise _failure(piece.file, "cannot be read: it is damaged, or in use by a writer") from None
        _check_pinned(piece.file)
        if piece.is_counted and n_rows != piece.n_rows:
            raise _failure(piece.file, "cannot be read: it is damaged, or a view's rows are not fixed")


def verify(pin: Pin, checksums: str) -> None:
    """Hash the file, and compare with the owner's list.

    Raises
    ------
    InputNotVerifiedError
        Where the file is not in the list, has another SHA-256, or there is no list.
    """
    address = pin.private.file.address
    require_listed([address], checksums, check=partial(check, pin), place=_PLACE, address=address)


def check(pin: Pin) -> None:
    """Check the file's size and time of modification, and that no changes wait beside it.

    Raises
    ------
    StageFailedError
        Where it is not so.
    """
    pinned: _PinnedTable = pin.private
    _check_pinned(pinned.file)


def _named(catalog: str, table: str) -> str:
    """Return a table's full name; a schema may be called as the file is."""
    return f"{quoted(catalog)}.{quoted_name(table)}"


def _columns(relation: Any) -> pa.Schema:
    """Return the columns as Arrow has them.

    Of ``UHUGEINT`` DuckDB hands over other numbers in silence, negative ones, where Arrow has none so large:
    it is given out as a type that no statistic reads.
    """
    kinds = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    schema = relation.to_arrow_reader().read_all().schema
    return pa.schema(
        [field.with_type(_UNREAD) if kinds[field.name] == "UHUGEINT" else field for field in schema]
    )


def _ranges(
    connection: Any, catalog: str, file: PinnedFile, table: str, n_columns: int
) -> tuple[RowRange, ...]:
    """Count rows in ranges of ids that are tasks.

    A view is one task: it has no ids. So is a table with a column of that name, which hides them.
    """
    name = _named(catalog, table)
    ((n_rows,),) = connection.execute(f"SELECT count(*) FROM {name}").fetchall()  # noqa: S608
    schema_name, table_name = table.split(".")
    ((has_ids,),) = connection.execute(
        "SELECT count(*) FROM duckdb_tables() t WHERE schema_name = $1 AND table_name = $2"
        " AND database_name = $3"
        " AND NOT EXISTS (FROM duckdb_columns() c WHERE c.table_oid = t.table_oid"
        " AND c.database_oid = t.database_oid AND lower(c.column_name) = 'rowid')",
        [schema_name, table_name, catalog],
    ).fetchall()
    if not has_ids:
        whole = RowRange(file=file, table=table, condition="", n_rows=n_rows, is_counted=True)
        return (whole,) if n_rows else ()
    step = -(-split_rows(n_rows, n_columns) // _GROUP_ROWS) * _GROUP_ROWS
    counted = f"SELECT rowid // {step} AS range, count(*) FROM {name} GROUP BY range ORDER BY range"  # noqa: S608
    return tuple(
        RowRange(
            file=file,
            table=table,
            condition=f"rowid >= {number * step} AND rowid < {(number + 1) * step}",
            n_rows=n_rows,
            is_counted=True,
        )
        for number, n_rows in connection.execute(counted).fetchall()
    )


def _check_pinned(file: PinnedFile) -> None:
    try:
        current = status(file.address)
    except OSError:
        raise _failure(file, "cannot be read: it is gone, or access to it was lost") from None
    if current != file or has_unwritten_changes(file.address):
        raise _failure(file, "has changed since it was pinned") from None


def _failure(file: PinnedFile, what: str) -> StageFailedError:
    return StageFailedError("reading", f"the DuckDB file {file.address} {what}")
