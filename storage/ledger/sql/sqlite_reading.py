"""An SQLite ledger that is only read: also from a full disk, a read-only directory or a read-only file.

To read a file in WAL mode, SQLite writes an index beside it. Where it cannot, the file alone is the whole
ledger if there is no log beside it; else file and log are copied together and the copy is read. So nothing
that was committed is ever left out, and what others write meanwhile is noticed.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import StaticPool, create_engine, event

from suffice.errors import LedgerError
from suffice.storage.ledger.sql.failures import database_errors, failure_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

_BUSY_SECONDS = 60
_PLACE_FAILS = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_PERM")
_COPIES = 5
_CHANGED = "the ledger was written while it was read from a place that cannot be written: run again"


def make_reading_engine(path: Path) -> Engine:
    """Return an engine that reads the ledger in a file, and never writes to it.

    Raises
    ------
    LedgerError
        Where it cannot be read, or is no database.
    """
    with database_errors():
        connection, is_unchanged = _open(path)
    engine = create_engine(
        "sqlite://", creator=lambda: connection, poolclass=StaticPool, hide_parameters=True
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    @event.listens_for(engine, "commit")
    def commit(_connection: Connection) -> None:
        if not is_unchanged():
            raise LedgerError(_CHANGED)

    return engine


def unusable(path: Path, error: sqlite3.Error) -> LedgerError:
    """Return the error for a file that SQLite cannot use."""
    failure = failure_of(error)
    return type(failure)(f"{path} cannot be used as a ledger: {failure}")


def _open(path: Path) -> tuple[sqlite3.Connection, Callable[[], bool]]:
    """Open a file in the first way that works; and tell how to see that it was not written meanwhile."""
    for mode in ("mode=rw", "mode=ro"):
        try:
            return _try(path, mode), lambda: True  # SQLite keeps readers and writers apart
        except sqlite3.Error as error:
            if not (getattr(error, "sqlite_errorname", None) or "").startswith(_PLACE_FAILS):
                raise unusable(path, error) from None
            failure = error
    before = _states(path)
    log = path.with_name(f"{path.name}-wal")
    try:
        if log.exists() and log.stat().st_size:
            return _copied(path, log), lambda: True
        return _try(path, "immutable=1"), lambda: _states(path) == before
    except sqlite3.Error as error:
        raise unusable(path, error) from None
    except OSError:
        raise unusable(path, failure) from None


def _try(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _copied(path: Path, log: Path) -> sqlite3.Connection:
    """Return a copy in memory of a file and its log, as they were at one moment."""
    for _ in range(_COPIES):
        before = _states(path)
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "ledger.db"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, copy.with_name("ledger.db-wal"))
            if _states(path) != before:
                continue
            memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            with closing(sqlite3.connect(copy)) as source:
                source.backup(memory)
            memory.execute("PRAGMA query_only = ON")
            return memory
    raise LedgerError(_CHANGED)


def _states(path: Path) -> list[tuple[int, int, int]]:
    """Return what changes when the file or its log does."""
    found = []
    for name in (path.name, f"{path.name}-wal"):
        with suppress(FileNotFoundError):
            status = path.with_name(name).stat()
            found.append((status.st_size, status.st_mtime_ns, status.st_ino))
    return found
