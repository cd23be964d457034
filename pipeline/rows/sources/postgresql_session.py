"""Connections to PostgreSQL: the leader that holds a snapshot, whoever takes it over, and what failed."""

from __future__ import annotations

import contextlib
import re
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from suffice.errors import UsageError
from suffice.pipeline.rows.sources import postgresql_catalog as catalog
from suffice.pipeline.rows.sources.adbc import credentials, driver, driver_errors, not_read
from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.terms.declaration.source_specs import PostgresqlSpec, RowPolicies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.errors import StageFailedError

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
    uri = addressed(credentials(VARIABLE, KIND))
    return driver("adbc_driver_postgresql.dbapi", KIND, _EXTRA).connect(uri, autocommit=True)


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
    except driver_errors():
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
    except driver_errors():
        raise not_read(named(table), LOST) from None
    if row != (snapshot.database,):
        raise not_read(named(table), LOST)


def first_row(cursor: Any, query: str) -> tuple[Any, ...]:
    """Return the first row of a query."""
    return catalog.rows_of(cursor, query)[0]


def _close(connection: Any) -> None:
    with contextlib.suppress(*driver_errors()):
        connection.close()


def named(table: str) -> str:
    """Return what messages call a table."""
    return f"the PostgreSQL table or view {table}"


def reason(error: Exception) -> str:
    """Return a fixed text about a driver's error."""
    return _REASONS.get(getattr(error, "sqlstate", None) or "", _UNREADABLE)


def failed(table: str, error: Exception) -> StageFailedError:
    """Return the error for a table whose rows were not read."""
    return not_read(named(table), reason(error))
