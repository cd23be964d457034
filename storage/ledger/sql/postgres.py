"""The ledger in a PostgreSQL database: how it is opened, made and locked.

Transactions run at READ COMMITTED and take row locks in one order
(:mod:`suffice.storage.ledger.sql.sql_ledger`), so that each decides on what is committed, and none is ended
for another's sake. A commit is on the server's disk before it returns; a session that lost its client gives
its locks back after half a minute.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError

from suffice.errors import LedgerError, LedgerMissingError, UsageError
from suffice.storage.ledger.amounts import no_ledger
from suffice.storage.ledger.sql.examining import has_ledger, make_ledger
from suffice.storage.ledger.sql.migrating import migrate
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.ledger.sql.transactions import database_errors, no_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import URL, Connection, Engine

_OLDEST_VERSION = 13
DEFAULT_PORT = 5432
_MAKERS_LOCK = 0x5FF1CE
"""Key of the advisory lock that lets one maker of a ledger go first."""

_CONNECTION: dict[str, str | int] = {
    "fallback_application_name": "suffice",
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Without these, a connection that the network lost would be waited for during hours."""

SILENCE_SECONDS = 120.0
"""Seconds that a server has for each answer: a proxy takes what is sent, also where nobody is behind it.

Longer than any statement waits for a lock.
"""

_SESSION = (
    ("search_path", "public"),  # no table of the same name in a schema of the user's own
    ("lock_timeout", "60s"),
    ("idle_in_transaction_session_timeout", "30s"),  # a run that was stopped must not stop all others
)
_MOST_KEPT = 64 * 2**20
"""Bytes of a staged charge's files that the ledger keeps, so that any host can publish them."""
_NEEDED = (("fsync", "on"), ("full_page_writes", "on"), ("server_encoding", "UTF8"))


class _Connection(psycopg.Connection[Any]):
    """A connection that is lost where its server says nothing for too long."""

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
        """Do what psycopg does with each question."""
        return super().wait(self._answered(gen), *arguments, **options)

    def _answered(self, asked: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        heard = time.monotonic()
        try:
            state = next(asked)
            while True:
                ready = yield state
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_SECONDS:
                    self.close()
                    raise psycopg.errors.ConnectionException
                state = asked.send(ready)
        except StopIteration as ended:
            return ended.value


def open_postgres_ledger(
    url: str, *, clock: Callable[[], datetime] | None, lease: timedelta, reading_only: bool
) -> SqlLedger:
    """Open the ledger at a URL; as :func:`suffice.storage.ledger.opening.open_ledger` does."""
    address = parse_address(url)
    engine = make_engine(address)
    reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    try:
        with database_errors(), reading.connect() as connection, connection.begin():
            _require_ledger(connection, _place(address))
            clock = clock or server_clock(connection)
        turn = no_turn if reading_only else nullcontext
        return SqlLedger(engine, reading=reading, clock=clock, lease=lease, turn=turn, most_kept=_MOST_KEPT)
    except BaseException:
        engine.dispose()
        raise


def create_postgres_ledger(url: str, *, clock: Callable[[], datetime] | None) -> None:
    """Make a ledger in an existing database, unless it holds one; whole, or not at all.

    Raises
    ------
    LedgerError
        Where the database is not there, or its role may not make tables.
    """
    address = parse_address(url)
    engine = make_engine(address)
    try:
        with database_errors(), engine.begin() as connection:
            connection.execute(select(func.pg_advisory_xact_lock(_MAKERS_LOCK)))
            if not has_ledger(connection, _place(address)):
                make_ledger(connection, (clock or server_clock(connection))())
    finally:
        engine.dispose()


def migrate_postgres_ledger(url: str) -> str | None:
    """Bring the ledger at a URL to this version's schema.

    As :func:`suffice.storage.ledger.opening.migrate_ledger` does.
    """
    address = parse_address(url)
    engine = make_engine(address)
    try:
        with database_errors(), engine.begin() as connection:
            connection.execute(select(func.pg_advisory_xact_lock(_MAKERS_LOCK)))
            return migrate(connection, _place(address))
    finally:
        engine.dispose()


def parse_address(url: str) -> URL:
    """Read the URL of a database; no error shows any part of it, which may be a password.

    Raises
    ------
    UsageError
    """
    try:
        address = make_url(url).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        message = "the ledger's URL cannot be read: write postgresql://USER@HOST/DATABASE"
        raise UsageError(message) from None
    if not address.database:
        message = "the ledger's URL names no database: write postgresql://USER@HOST/DATABASE"
        raise UsageError(message)
    if any("password" in name.lower() for name in address.query):
        message = (
            "the ledger's URL holds a password among its options, where programs show it: "
            "write it before the @, or better in the file that PGPASSFILE names"
        )
        raise UsageError(message)
    return address


def make_engine(address: URL) -> Engine:
    """Return an engine on a database: durable transactions at READ COMMITTED."""
    defaults = {name: value for name, value in _CONNECTION.items() if name not in address.query}
    if address.host or "host" in address.query:
        # What is stated, also as nothing, no variable of the environment replaces: the host named is asked.
        stated: dict[str, str | int] = {"hostaddr": "", "port": address.port or DEFAULT_PORT}
        defaults |= {name: value for name, value in stated.items() if name not in address.query}
    engine = create_engine(
        address,
        connect_args=defaults,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        hide_parameters=True,
    )

    @event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, _record: object, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> psycopg.Connection:
        return _Connection.connect(*arguments, **options)

    @event.listens_for(engine, "connect")
    def configure(connection: psycopg.Connection, _record: object) -> None:
        try:
            _configure(connection, _place(address))
        except BaseException:
            connection.close()
            raise

    return engine


def server_clock(connection: Connection) -> Callable[[], datetime]:
    """Return a clock that goes with the server's, whatever the clocks of the machines that ask."""
    asked = time.monotonic()
    at_server = connection.execute(select(func.clock_timestamp())).scalar_one().astimezone(UTC)
    heard = time.monotonic()

    def clock() -> datetime:
        now: datetime = at_server + timedelta(seconds=time.monotonic() - (asked + heard) / 2)
        return now

    return clock


def _require_ledger(connection: Connection, location: str) -> None:
    if not has_ledger(connection, location):
        raise LedgerMissingError(no_ledger(f"in {location}"))


def _configure(connection: psycopg.Connection, location: str) -> None:
    if connection.info.server_version < _OLDEST_VERSION * 10_000:
        message = f"{location} is served by a PostgreSQL before {_OLDEST_VERSION}, which a ledger needs"
        raise LedgerError(message)
    with connection.cursor() as cursor:
        for name, value in _SESSION:
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        # Whatever waits for a disk is right: a role may be set up to wait for a standby's as well.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') = 'off'"
        )
        for name, needed in _NEEDED:
            cursor.execute("SELECT current_setting(%s)", (name,))
            row = cursor.fetchone()
            if row != (needed,):
                message = f"{location} is served with {name} other than {needed}, which a ledger needs"
                raise LedgerError(message)
    connection.commit()


def _place(address: URL) -> str:
    return f"the database {address.database} on {address.host or address.query.get('host') or 'this machine'}"
