"""The ledger in an SQLite file: how it is opened, made and locked.

``BEGIN IMMEDIATE`` takes the write lock before anything is read, so that a transaction never decides
on what another is changing; ``synchronous=FULL`` makes every commit durable before it returns.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import QueuePool, create_engine, event

from suffice.errors import LedgerError, LedgerMissingError
from suffice.storage.ledger.sql.failures import database_errors
from suffice.storage.ledger.sql.schema import has_ledger, make_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.ledger.sql.sqlite_reading import make_reading_engine, unusable
from suffice.storage.ledger.sql.transactions import no_turn
from suffice.storage.ledger.sql.turns import turn
from suffice.storage.objects.mounts import network_file_system

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from suffice.storage.ledger.sql.transactions import Turn

_BUSY_SECONDS = 60
_READS_ONLY = "ledger_reads_only"
_FULL = 2
_SETTINGS = (
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", _FULL),
    ("foreign_keys", "ON", 1),
    ("busy_timeout", str(_BUSY_SECONDS * 1000), _BUSY_SECONDS * 1000),
)


def open_sqlite_ledger(
    path: Path, *, clock: Callable[[], datetime], lease: timedelta, reading_only: bool = False
) -> SqlLedger:
    """Open the ledger in a file; as :func:`suffice.storage.ledger.opening.open_ledger` does."""
    _refuse_network(path)
    if not path.exists():
        message = (
            f"there is no ledger at {path}: "
            "`suffice ledger grant DATASET --epsilon TOTAL --reason TEXT --create` makes one"
        )
        raise LedgerMissingError(message)
    engine = make_reading_engine(path) if reading_only else make_engine(path)
    try:
        reading = engine.execution_options(**{_READS_ONLY: True})
        with database_errors(), reading.connect() as connection:
            _require_ledger(connection, path)
        turn = no_turn if reading_only else _turns(path)
        return SqlLedger(engine, reading=reading, clock=clock, lease=lease, turn=turn)
    except BaseException:
        engine.dispose()
        raise


def create_sqlite_ledger(path: Path, *, clock: Callable[[], datetime]) -> None:
    """Make a ledger in a new file, unless the file exists.

    It is built under another name and linked to `path` when complete, so that a ledger is whole or
    not there, whoever else makes one at the same time.

    Raises
    ------
    LedgerError
        Where the directory is missing or cannot be written.
    """
    _refuse_network(path)
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            _fill(draft, clock())
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            _sync_directory(path.parent)
        finally:
            draft.unlink()
    except OSError as error:
        if isinstance(error, LedgerError):
            raise
        message = f"a ledger cannot be made at {path}: {error.strerror}"
        raise LedgerError(message) from error


def make_engine(path: Path) -> Engine:
    """Return an engine on an existing file: durable, exclusive transactions; 60 s of waiting."""
    uri = _uri(path)

    def connect() -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise unusable(path, error) from None
        try:
            _configure(connection)
        except sqlite3.Error as error:
            connection.close()
            raise unusable(path, error) from None
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reads_only = connection.get_execution_options().get(_READS_ONLY, False)
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")

    return engine


def _turns(path: Path) -> Turn:
    """Return how writers of a ledger wait for one another: in a queue beside it."""

    def is_free() -> bool:
        try:
            with closing(sqlite3.connect(_uri(path), uri=True, timeout=0, isolation_level=None)) as probe:
                probe.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return False
        return True

    return partial(turn, path.absolute().with_name(f"{path.name}-queue"), is_free=is_free)


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=rw"


def _configure(connection: sqlite3.Connection) -> None:
    for name, value, expected in _SETTINGS:
        if connection.execute(f"PRAGMA {name}").fetchone()[0] != expected:
            connection.execute(f"PRAGMA {name} = {value}")
        if connection.execute(f"PRAGMA {name}").fetchone()[0] != expected:
            message = f"SQLite refuses {name} = {value}, which a ledger needs: use a local file system"
            raise LedgerError(message)


def _require_ledger(connection: Connection, path: Path) -> None:
    if not has_ledger(connection, str(path)):
        message = f"{path} is a database, but not a ledger of suffice"
        raise LedgerError(message)


def _fill(path: Path, now: datetime) -> None:
    engine = make_engine(path)
    try:
        with database_errors(), engine.begin() as connection:
            make_ledger(connection, now)
    finally:
        engine.dispose()


def _refuse_network(path: Path) -> None:
    kind = network_file_system(path)
    if kind is not None:
        message = (
            f"{path} is on a network file system ({kind}), where SQLite cannot keep two writers apart: "
            "put the ledger on a local disk, or in PostgreSQL (postgresql://USER@HOST/DATABASE)"
        )
        raise LedgerError(message)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
