"""The ledger in an SQLite file: how it is opened, made, locked, and read where nobody may write.

``BEGIN IMMEDIATE`` takes the write lock before anything is read, so that a transaction never decides
on what another is changing; ``synchronous=FULL`` makes every commit durable before it returns.

SQLite gives its lock to whoever asks at the right moment. Writers therefore take a ticket first, in a file
beside the ledger, and wait until all earlier tickets are gone. A ticket is a lock on a byte of that file: the
kernel takes it back from whoever dies. Only fairness rests on it. SQLite's own lock keeps writers apart, and
a writer that sees no progress passes the ticket in its way.

To read a file in WAL mode, SQLite writes an index beside it. Where it cannot, a file without a log is the
whole ledger; a file with a log is copied together with it, and the copy is read. Nothing that was committed
is left out, and what others write meanwhile is noticed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import sqlite3
import struct
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import QueuePool, StaticPool, create_engine, event

from suffice.errors import LedgerError, LedgerMissingError
from suffice.storage.ledger.amounts import no_ledger
from suffice.storage.ledger.sql.examining import has_ledger, make_ledger
from suffice.storage.ledger.sql.migrating import migrate
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.ledger.sql.transactions import database_errors, failure_of, no_turn
from suffice.storage.objects.local_files import network_file_system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Engine

    from suffice.storage.ledger.sql.transactions import Turn

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
        connection, is_unchanged = _open_for_reading(path)
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


def _open_for_reading(path: Path) -> tuple[sqlite3.Connection, Callable[[], bool]]:
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
    states = []
    for name in (path.name, f"{path.name}-wal"):
        with suppress(FileNotFoundError):
            status = path.with_name(name).stat()
            states.append((status.st_size, status.st_mtime_ns, status.st_ino))
    return states


_OFFERED = hasattr(fcntl, "F_OFD_SETLK")
"""Whether this system has locks that belong to an open file: threads of one process are told apart."""
_LOCK = "hhqqi4x"
_COUNTERS = struct.Struct("=QQ")
"""What the file holds: the last ticket given out, and the last one that was served."""
_DOOR = 0
_FIRST = 16
"""The byte of ticket 0; the door, behind which tickets are given out, is byte 0."""
_SHORTEST, _LONGEST = 0.0005, 0.02
"""Seconds between two looks at the queue: for the next in turn, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPatience:
    """How long to wait, in seconds.

    Attributes
    ----------
    door : float
        For a ticket; without one, a writer goes for SQLite's lock as it is.
    standstill : float
        While nobody is served and SQLite's lock is free: then the tickets in the way are passed.
    turn : float
        At most for one's turn.
    """

    door: float = 1.0
    standstill: float = 2.0
    turn: float = 60.0


PATIENCE = TurnPatience()


@contextmanager
def turn(path: Path, *, is_free: Callable[[], bool], patience: TurnPatience = PATIENCE) -> Iterator[None]:
    """Wait for one's turn, and keep it until the context ends.

    Parameters
    ----------
    path : Path
        The file of the queue; made where there is none. Where it cannot be made, there are no turns.
    is_free : callable
        Tells whether SQLite's own lock could be had now.
    patience : TurnPatience
    """
    descriptor = _open_tickets(path) if _OFFERED else None
    if descriptor is None:
        yield
        return
    try:
        ticket = _take_ticket(descriptor, patience)
        if ticket is not None:
            _wait(descriptor, ticket, is_free, patience)
        try:
            yield
        finally:
            if ticket is not None:
                _note_served(descriptor, ticket)
    finally:
        os.close(descriptor)  # gives the ticket back


def _open_tickets(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None


def _take_ticket(descriptor: int, patience: TurnPatience) -> int | None:
    deadline = time.monotonic() + patience.door
    while not _lock(descriptor, _DOOR):
        if time.monotonic() > deadline:
            return None
        time.sleep(_SHORTEST)
    try:
        given, served = _counters(descriptor)
        ticket = max(given, served) + 1
        if not _lock(descriptor, _FIRST + ticket):  # a counter that went back: its owner still waits
            return None
        os.pwrite(descriptor, _COUNTERS.pack(ticket, served), 0)
    except OSError:  # a full disk
        return None
    else:
        return ticket
    finally:
        _unlock(descriptor, _DOOR)


def _wait(descriptor: int, ticket: int, is_free: Callable[[], bool], patience: TurnPatience) -> None:
    begun = moved = time.monotonic()
    _, served = _counters(descriptor)
    while _anyone_in(descriptor, served + 1, ticket):
        time.sleep(min(_LONGEST, _SHORTEST * max(1, ticket - served - 1)))
        last, (_, served) = served, _counters(descriptor)
        now = time.monotonic()
        if served != last:
            moved = now
        if now - begun > patience.turn:
            return
        if now - moved > patience.standstill and is_free():
            _note_served(descriptor, ticket - 1)  # whoever comes later need not wait for them again
            return


def _note_served(descriptor: int, ticket: int) -> None:
    with contextlib.suppress(OSError):
        given, served = _counters(descriptor)
        if ticket > served:
            os.pwrite(descriptor, _COUNTERS.pack(given, ticket)[8:], 8)


def _counters(descriptor: int) -> tuple[int, int]:
    content = os.pread(descriptor, _COUNTERS.size, 0)
    given, served = _COUNTERS.unpack(content) if len(content) == _COUNTERS.size else (0, 0)
    limit = 2**62  # whatever a damaged file says
    return given % limit, served % limit


def _anyone_in(descriptor: int, first: int, end: int) -> bool:
    """Tell whether a ticket from `first` up to, not with, `end` is held."""
    if first >= end:
        return False
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _FIRST + first, end - first, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
    return bool(struct.unpack(_LOCK, answer)[0] != fcntl.F_UNLCK)


def _lock(descriptor: int, position: int) -> bool:
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, position, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, asked)
    except OSError:
        return False
    return True


def _unlock(descriptor: int, position: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_LOCK, fcntl.F_UNLCK, os.SEEK_SET, position, 1, 0))


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
        raise LedgerMissingError(no_ledger(f"at {path}"))
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


def migrate_sqlite_ledger(path: Path) -> str | None:
    """Bring the ledger in a file to this version's schema.

    As :func:`suffice.storage.ledger.opening.migrate_ledger` does.
    """
    _refuse_network(path)
    if not path.exists():
        message = f"there is no ledger at {path}: nothing was migrated"
        raise LedgerMissingError(message)
    engine = make_engine(path)
    try:
        with database_errors(), _turns(path)(), engine.begin() as connection:
            return migrate(connection, str(path))
    finally:
        engine.dispose()


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
