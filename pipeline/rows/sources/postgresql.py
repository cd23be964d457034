"""Tables and views in PostgreSQL, read over ADBC under one exported snapshot.

A connection in the calling process, the leader, exports its snapshot and holds it until the pin is closed.
Every task opens a connection of its own, takes the snapshot over, and reads ranges of pages. Whatever
others commit meanwhile, all tasks see the rows of one moment. The leader's lock lets others read and
write; what would take the table away (DROP, TRUNCATE, ALTER) waits until the pin is closed.
"""

from __future__ import annotations

import contextlib
import math
import re
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from suffice.errors import InputNotVerifiedError, MissingExtraError, UsageError
from suffice.pipeline.rows.sources import databases
from suffice.pipeline.rows.sources import postgresql_catalog as catalog
from suffice.pipeline.rows.sources.contract import (
    PartSchema,
    Pin,
    Split,
    exact_data,
    spec_columns,
    split_rows,
)
from suffice.pipeline.rows.sources.postgresql_catalog import batch_of
from suffice.pipeline.rows.sources.window_condition import STANDARD, window_condition
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import PostgresqlSpec, RowPolicies
from suffice.pipeline.terms.declaration.table_names import quoted, quoted_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from suffice.errors import StageFailedError
    from suffice.pipeline.rows.sources.postgresql_catalog import ServerColumn
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.pipeline.terms.declaration.table_names import KeyRanges

KIND = PostgresqlSpec.kind
VARIABLE = "SUFFICE_POSTGRESQL"
LOST = "is no longer at its snapshot: the connection that held it ended, or this is another server"

_EXTRA = "postgres-source"

_SETTINGS = (
    "search_path = ''",
    "client_encoding = 'UTF8'",
    "TimeZone = 'UTC'",
    "lock_timeout = '60s'",
    "idle_in_transaction_session_timeout = 0",
    "jit = off",
)
"""Of a transaction: what names mean, how texts and times arrive, and how long it waits and may wait."""

_DRIVER_OPTIONS = {"adbc.postgresql.type_resolver_mode": "builtin"}
"""The driver knows PostgreSQL's own types, and no others are asked for. Else it fetches the catalogue of all
types for every connection, which takes longer than all other queries of a small window."""

_ROW_SECURITY = {RowPolicies.REFUSED: "row_security = off", RowPolicies.ACCEPTED: "row_security = on"}
"""Off, a query that policies would filter fails: no row is left out in silence, whatever `PGOPTIONS` say."""

_REASONS = {
    "42501": (
        "cannot be read: the role lacks the privilege, or row-level policies choose what it sees (which "
        "source.row_policies: accepted allows)"
    ),
    "55P03": "is locked by another session: try again later",
    "57014": "cannot be read: the server cancelled a query, which may have taken longer than it allows",
    "57P01": "cannot be read: the server ended the connection",
    "57P03": "cannot be read: the server starts up or shuts down",
    "53300": "cannot be read: the server has no connection left for it",
}
"""Causes that do not depend on a value, by SQLSTATE; all others have one text."""
_UNREADABLE = (
    "cannot be read: the connection was lost, or a query failed or took longer than the server allows"
)


@exact_data(travels=True)
class Snapshot:
    """A moment of one database, as workers find it again.

    Parameters
    ----------
    exported : str
        The exported snapshot's id.
    database : str
        Tells one server's database from all others.
    """

    exported: str
    database: str


class Leader:
    """The connection that holds the snapshot: closed at the latest when nobody refers to it any more."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.close = weakref.finalize(self, _close, connection)

    @contextlib.contextmanager
    def cursor(self) -> Iterator[Any]:
        """Give a cursor of the connection."""
        if not self.close.alive:
            message = "the pin is closed"
            raise OSError(message)
        with self._connection.cursor() as cursor:
            yield cursor

    def fetch(self, query: str) -> tuple[Any, ...]:
        """Return the first row of a query in the snapshot."""
        with self.cursor() as cursor:
            return first_row(cursor, query)


def connection() -> Any:
    """Open a connection to the server that the environment names.

    Raises
    ------
    UsageError
        Where the environment names none.
    """
    uri = addressed(databases.credentials(VARIABLE, KIND))
    driver = databases.driver("adbc_driver_postgresql.dbapi", KIND, _EXTRA)
    return driver.connect(uri, _DRIVER_OPTIONS, autocommit=True)


def addressed(uri: str) -> str:
    """Return a connection's URI so that ``PGHOSTADDR`` and ``PGPORT`` do not replace the host that it names.

    A URI without a host is left to the environment as a whole, and so is text that is no URI.
    """
    parts = urlsplit(uri)
    stated = dict(parse_qsl(parts.query, keep_blank_values=True))
    place = parts.netloc.rpartition("@")[2]
    if parts.scheme not in {"postgresql", "postgres"} or not (place or "host" in stated):
        return uri
    has_port = re.search(r":\d+$", place) is not None
    added = [
        *(["hostaddr="] if "hostaddr" not in stated else []),
        *(["port=5432"] if not has_port and "port" not in stated else []),
    ]
    return "&".join([uri if parts.query else f"{uri.removesuffix('?')}?", *added]).replace("?&", "?")


def connect_leader() -> Leader:
    """Open the connection that will hold a snapshot.

    Raises
    ------
    UsageError
        Where the server cannot be reached, or the environment names none.
    """
    try:
        return Leader(connection())
    except databases.driver_errors():
        message = f"source.{KIND}: the server that {VARIABLE} names is not reached, or refuses to connect"
        raise UsageError(message) from None


def begin(cursor: Any, row_policies: RowPolicies, exported: str | None = None) -> None:
    """Begin a transaction that only reads, in an exported snapshot where there is one.

    All settings end with it, so that a pool of connections hands nothing on. No name is looked up in a
    schema of somebody's choice.
    """
    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    if exported is not None:
        cursor.execute(f"SET TRANSACTION SNAPSHOT {catalog.literal(exported)}")
    for setting in (*_SETTINGS, _ROW_SECURITY[row_policies]):
        cursor.execute(f"SET LOCAL {setting}")


def take_over(cursor: Any, snapshot: Snapshot, table: str, row_policies: RowPolicies) -> None:
    """Begin a transaction in a snapshot of the same database.

    Raises
    ------
    StageFailedError
        Where the snapshot is gone, or this is another database.
    """
    try:
        begin(cursor, row_policies, snapshot.exported)
        row = first_row(cursor, f"SELECT {catalog.DATABASE}")
    except databases.driver_errors():
        raise databases.not_read(named(table), LOST) from None
    if row != (snapshot.database,):
        raise databases.not_read(named(table), LOST)


def first_row(cursor: Any, query: str) -> tuple[Any, ...]:
    """Return the first row of a query."""
    return catalog.rows_of(cursor, query)[0]


def _close(connection: Any) -> None:
    with contextlib.suppress(*databases.driver_errors()):
        connection.close()


def named(table: str) -> str:
    """Return what messages call a table."""
    return f"the PostgreSQL table or view {table}"


def reason(error: Exception) -> str:
    """Return a fixed text about a driver's error."""
    return _REASONS.get(getattr(error, "sqlstate", None) or "", _UNREADABLE)


def failed(table: str, error: Exception) -> StageFailedError:
    """Return the error for a table whose rows were not read."""
    return databases.not_read(named(table), reason(error))


_PLACE = f"source.{KIND}"


@exact_data(travels=True)
class PostgresqlRows:
    """Rows of one table or view: a range of pages, or of public keys.

    Parameters
    ----------
    snapshot : Snapshot
        The moment.
    table : str
        The name that the spec states, for messages.
    relation : str
        What is read, as SQL names it.
    condition : str
        What chooses the rows in SQL; empty for all.
    n_rows : int
        An estimate.
    row_policies : RowPolicies
        What becomes of rows that policies hide.
    unit : str or None
        The column whose values are the privacy units.
    """

    snapshot: Snapshot
    table: str
    relation: str
    condition: str
    n_rows: int
    row_policies: RowPolicies
    unit: str | None


@exact_data(travels=False)
class _PinnedSnapshot:
    """The private part of a pin."""

    leader: Leader
    snapshot: Snapshot
    table: str
    row_policies: RowPolicies
    unit: str | None
    columns: tuple[ServerColumn, ...]
    leaves: tuple[catalog.Leaf, ...] | None
    conditions: tuple[str, ...]
    n_columns: int


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:  # noqa: ARG001 - see below
    """Export a snapshot of the spec's table, and hold it.

    Parameters
    ----------
    spec : Spec
        Its ``source.postgresql`` names a table, a partitioned table, a view or a materialized view.
    window : str
        The window that will be read, or ``all``: the server leaves out rows of others, where it can.
    contract : DataContract, optional
        Checked by whoever asks for the columns.

    Raises
    ------
    UsageError
        Where there is no such table, or it cannot be read.
    """
    source = spec.source
    assert isinstance(source, PostgresqlSpec)  # noqa: S101 - the registry's
    leader = connect_leader()
    try:
        pinned = _pinned(leader, spec, window, spec.stored_unit)
    except BaseException:
        leader.close()
        raise
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": spec.source_address},
        private=pinned,
        close=leader.close,
        count_rows=lambda: _count(leader, source.postgresql),
    )


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns of the table."""
    pinned: _PinnedSnapshot = pin.private
    return (PartSchema(part=pinned.table, columns=catalog.schema_of(pinned.columns)),)


def splits(pin: Pin) -> tuple[Split, ...]:
    """Divide the pages of every table that holds rows, or the public keys; numbers of rows are estimates."""
    pinned: _PinnedSnapshot = pin.private
    if any(pinned.conditions) or pinned.leaves is None:
        whole = quoted_name(pinned.table)
        pieces = (_rows(pinned, whole, condition, 1) for condition in pinned.conditions)
        return tuple(Split.of(KIND, [piece]) for piece in pieces)
    n_rows = int(sum(leaf.n_pages * leaf.rows_per_page for leaf in pinned.leaves))
    enough = split_rows(n_rows, pinned.n_columns)
    splits_found: list[Split] = []
    batch: list[PostgresqlRows] = []
    for leaf in pinned.leaves:
        for piece in _page_ranges(pinned, leaf, enough):
            batch.append(piece)
            if sum(each.n_rows for each in batch) >= enough:
                splits_found.append(Split.of(KIND, batch))
                batch = []
    return (*splits_found, Split.of(KIND, batch)) if batch else tuple(splits_found)


def read(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Read columns of a split in the snapshot, over a connection of its own.

    Raises
    ------
    StageFailedError
        Where the server cannot be reached, a query fails, or the snapshot is gone.
    """
    table = split.pieces[0].table
    try:
        with databases.connected(connection) as cursor:
            first = split.pieces[0]
            take_over(cursor, first.snapshot, table, first.row_policies)
            wanted = _wanted(cursor, table, columns, first.unit)
            listed = ", ".join(f"{column.expression} AS {quoted(column.name)}" for column in wanted)
            enters = [column.enters for column in wanted if column.enters]
            for piece in split.pieces:
                conditions = " AND ".join([*([f"({piece.condition})"] if piece.condition else []), *enters])
                query = f"SELECT {listed} FROM {piece.relation}{conditions and ' WHERE '}{conditions}"  # noqa: S608
                for batch in databases.blocks(cursor, query, block_rows):
                    yield batch_of(batch, wanted)
    except databases.driver_errors() as error:
        raise failed(table, error) from None
    except (MissingExtraError, UsageError) as error:  # a worker lacks what the caller has
        raise databases.not_read(named(table), f"cannot be read by a worker: {error}") from None


def verify(pin: Pin, checksums: str) -> None:  # noqa: ARG001 - the contract's
    """Refuse: a database has no files of which an owner could list checksums.

    Raises
    ------
    InputNotVerifiedError
        Always.
    """
    message = f"{_PLACE}: the account demands checksums of its input, and a table in a database has none"
    raise InputNotVerifiedError(message)


def check(pin: Pin) -> None:
    """Check that the leader still holds the snapshot.

    Raises
    ------
    StageFailedError
        Where it does not.
    """
    pinned: _PinnedSnapshot = pin.private
    try:
        (database,) = pinned.leader.fetch(f"SELECT {catalog.DATABASE} WHERE pg_export_snapshot() IS NOT NULL")
    except databases.driver_errors():
        raise databases.not_read(named(pinned.table), LOST) from None
    if database != pinned.snapshot.database:
        raise databases.not_read(named(pinned.table), LOST)


def _pinned(leader: Leader, spec: Spec, window: str, unit: str | None) -> _PinnedSnapshot:
    """Lock the table, export the snapshot, and ask the catalogue."""
    source = spec.source
    assert isinstance(source, PostgresqlSpec)  # noqa: S101 - the registry's
    table = source.postgresql
    try:
        with leader.cursor() as cursor:
            kind = catalog.relation_kind(cursor, table)
            if kind not in catalog.READABLE:
                complaint = "is a foreign table" if kind else "is not there, or the role does not see it"
                message = f"{_PLACE}: {table} {complaint}: name a {', a '.join(catalog.READABLE.values())}"
                raise UsageError(message)
            begin(cursor, source.row_policies)
            name = quoted_name(table)
            # A lock before the snapshot: TRUNCATE shows itself to snapshots that are older.
            if kind != "m":
                cursor.execute(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
            # Reads no row, and fails where the role or its policies would stop the reading of rows.
            cursor.execute(f"SELECT FROM {name} LIMIT 0")
            query = f"SELECT pg_export_snapshot(), {catalog.DATABASE}, current_setting('server_encoding')"
            exported, database, encoding = first_row(cursor, query)
            if encoding != "UTF8":
                message = f"{_PLACE}: the database's encoding is not UTF8: texts may fail to be converted"
                raise UsageError(message)
            columns = catalog.columns(cursor, table, unit)
            leaves = catalog.leaves(cursor, table)
    except databases.driver_errors() as error:
        message = f"{_PLACE}: {table} {reason(error)}"
        raise UsageError(message) from None
    if source.split_by is not None:
        _check_keys(source.split_by, columns, table)
    return _PinnedSnapshot(
        leader=leader,
        snapshot=Snapshot(exported=exported, database=database),
        table=table,
        row_policies=source.row_policies,
        unit=unit,
        columns=columns,
        leaves=leaves,
        conditions=databases.crossed(
            source.split_by.conditions() if source.split_by else (),
            window_condition(spec, window, catalog.schema_of(columns), STANDARD),
        ),
        n_columns=len(spec_columns(spec)),
    )


def _check_keys(ranges: KeyRanges, columns: Sequence[ServerColumn], table: str) -> None:
    if not any(
        column.name == ranges.column and databases.keys_fit(ranges, column.kind) for column in columns
    ):
        message = f"{_PLACE}: split_by: {table} has no column {ranges.column!r} of {ranges.needed}"
        raise UsageError(message)


def _wanted(cursor: Any, table: str, columns: Sequence[str], unit: str | None) -> tuple[ServerColumn, ...]:
    columns_by_name = {column.name: column for column in catalog.columns(cursor, table, unit)}
    if any(name not in columns_by_name or not columns_by_name[name].is_read for name in columns):
        raise databases.not_read(named(table), "lacks a column that was there")
    return tuple(columns_by_name[name] for name in columns)


def _page_ranges(pinned: _PinnedSnapshot, leaf: catalog.Leaf, enough: int) -> Iterator[PostgresqlRows]:
    """Divide a table's pages; the last range has no end, and each row is in one of them."""
    step = math.ceil(enough / leaf.rows_per_page)
    for start in range(0, leaf.n_pages, step):
        condition = f"ctid >= '({start},0)'::tid"
        if start + step < leaf.n_pages:
            condition += f" AND ctid < '({start + step},0)'::tid"
        n_rows = int(min(step, leaf.n_pages - start) * leaf.rows_per_page)
        yield _rows(pinned, f"ONLY {leaf.name}", condition, max(1, n_rows))


def _rows(pinned: _PinnedSnapshot, relation: str, condition: str, n_rows: int) -> PostgresqlRows:
    return PostgresqlRows(
        snapshot=pinned.snapshot,
        table=pinned.table,
        relation=relation,
        condition=condition,
        n_rows=n_rows,
        row_policies=pinned.row_policies,
        unit=pinned.unit,
    )


def _count(leader: Leader, table: str) -> int:
    """Count the rows in the snapshot; asked for only where their number is public."""
    try:
        return int(leader.fetch(f"SELECT count(*) FROM {quoted_name(table)}")[0])  # noqa: S608
    except databases.driver_errors() as error:
        raise failed(table, error) from None
