"""Transactions of a ledger: durable when they return, else without any effect, else `CommitUnknownError`.

A change that certainly had no effect is made again: the database ended it for the sake of another
transaction, or its connection broke before the commit. Nothing but the transaction is repeated; noise is
drawn between transactions, never in one. Errors are named from a closed table: a driver may quote rows.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from suffice.errors import CommitUnknownError, LedgerCorruptError, LedgerError, SufficeError
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import appended_entry, forget_entry, read_head

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESTORE = "stop all runs, and restore the newest backup; `suffice ledger verify` names what differs"
DAMAGED = f"the ledger is damaged: {_RESTORE}"
_LOCKED = "is one stopped in a transaction? Nothing was changed; run again once it is free"

_OTHER_TABLES = (
    "the ledger's tables are not as this version of suffice made them: was it migrated meanwhile? Then run "
    f"again with the version that migrated it; else {_RESTORE}"
)

_SQLITE = {
    "SQLITE_FULL": "no space is left on the disk of the ledger's file: free some, and run again",
    "SQLITE_READONLY": "the ledger's file, or its directory, cannot be written: check rights and mount",
    "SQLITE_IOERR": "the disk of the ledger's file failed, or is full",
    "SQLITE_CANTOPEN": "the ledger's file, or those beside it, cannot be opened: check path and rights",
    "SQLITE_PERM": "access to the ledger's file is denied",
    "SQLITE_BUSY": f"another process kept the ledger locked for a minute: {_LOCKED}",
    "SQLITE_LOCKED": f"another process kept the ledger locked for a minute: {_LOCKED}",
    "SQLITE_PROTOCOL": "the ledger's file cannot be locked: use a local disk",
    "SQLITE_NOLFS": "the disk cannot hold files as large as the ledger's",
    "SQLITE_CONSTRAINT": "the ledger refused a row that breaks its rules",
    "SQLITE_ERROR": _OTHER_TABLES,
}
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_SCHEMA", "SQLITE_MISMATCH")

_SERVER = {
    "08": "the server of the ledger cannot be reached: check the host and the network",
    "23": "the ledger refused a row that breaks its rules",
    "28": "the server of the ledger refused the login: check the user and the password file",
    "3D": "the server has no such database: create it first",
    "25006": "the server of the ledger takes no writes now: is it a standby?",
    "42P07": "the database holds tables of something else: make the ledger in a database of its own",
    "42501": "permission denied: this role may not do that to the ledger",
    "42": _OTHER_TABLES,
    "53100": "no space is left on the disk of the ledger's server",
    "53": "the server of the ledger has too few resources: too many connections, or no memory",
    "55P03": f"another session kept the ledger locked for a minute: {_LOCKED}",
    "57": "the server of the ledger is shutting down, or ended the session",
    "58": "the server of the ledger failed to read or write its files",
    "XX": f"the server found the ledger damaged: {_RESTORE}",
    "": "the server cannot be reached, ended the session, or refused the database or the login",
}
_OWN_RULE = "23000"
"""The SQLSTATE that the ledger's own triggers raise; what they say is ours."""


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn a database's errors into ours, and what a damaged row does to its reader."""
    try:
        yield
    except SufficeError:
        raise
    except SQLAlchemyError as error:
        raise failure_of(getattr(error, "orig", None)) from None
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError):
        raise LedgerCorruptError(DAMAGED) from None


def failure_of(origin: BaseException | None) -> LedgerError:
    """Return our error for a driver's."""
    if hasattr(origin, "sqlstate"):
        return LedgerError(f"the ledger's database failed: {_said_by_a_server(origin)}")
    name = getattr(origin, "sqlite_errorname", None)
    if name is None or name.startswith(_DAMAGE):  # without a code: text that is no UTF-8
        return LedgerCorruptError(DAMAGED)
    if name == "SQLITE_CONSTRAINT_TRIGGER":
        return LedgerError(f"the ledger refused: {origin}")
    kind = "_".join(name.split("_")[:2])
    text = _SQLITE.get(kind, f"SQLite's code is {kind}")
    return LedgerError(f"the ledger's database failed: {text}")


def _said_by_a_server(origin: object) -> str:
    state = getattr(origin, "sqlstate", None) or ""
    primary = getattr(getattr(origin, "diag", None), "message_primary", None)
    if state == _OWN_RULE and primary:
        return str(primary)
    text = _SERVER.get(state, _SERVER.get(state[:2]))
    return text or f"its code is {state}"


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from suffice.storage.ledger.chain import Entry

    Turn = Callable[[], AbstractContextManager[None]]

Result = TypeVar("Result")

_SERIALIZATION_FAILURE, _DEADLOCK = "40001", "40P01"
_OUTCOME_UNKNOWN = ("08", "40003")
"""How SQLSTATEs begin that leave open whether a commit landed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPatience:
    """How long to go on, in seconds.

    Attributes
    ----------
    repeating : float
        With a change that the database ended, each time without effect.
    asking : float
        With asking what became of a commit; longer than the database keeps a session that lost its client.
    """

    repeating: float = 60.0
    asking: float = 45.0


PATIENCE = TransactionPatience()


class _WithoutEffectError(Exception):
    """A commit that certainly did not land; caught by :func:`change`."""


def change(
    engine: Engine,
    work: Callable[[Connection], Result],
    *,
    patience: TransactionPatience,
    turn: Turn = nullcontext,
) -> Result:
    """Run `work` in one transaction that writes.

    Parameters
    ----------
    engine : Engine
        Its transactions are durable when they return, and exclude or wait for one another.
    work : callable
        Has no effect but through the connection, so that it may run again.
    patience : Patience
    turn : callable
        Gives a context that each try waits for and keeps.

    Returns
    -------
    object
        What `work` returned, once it is durable.

    Raises
    ------
    CommitUnknownError
        Where the commit failed and the ledger cannot be asked whether it landed.
    LedgerError
        Where the database failed; nothing was changed.
    """
    deadline = time.monotonic() + patience.repeating
    with database_errors():
        for pause in _pauses():
            try:
                with turn():
                    return _once(engine, work, patience)
            except _WithoutEffectError as error:
                if time.monotonic() > deadline:
                    message = "the ledger's connection breaks at every commit; nothing was changed"
                    raise LedgerError(message) from error.__cause__
            except DBAPIError as error:
                if not _had_no_effect(error) or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
    raise AssertionError  # pauses do not end


@contextmanager
def no_turn() -> Iterator[None]:
    """Refuse every change: the turn of a ledger that was opened for reading.

    Raises
    ------
    LedgerError
    """
    message = "this ledger was opened for reading: open it for writing first"
    raise LedgerError(message)
    yield


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Run one transaction that only reads, on one snapshot."""
    with database_errors(), engine.connect() as connection, connection.begin():
        yield connection


def _once(engine: Engine, work: Callable[[Connection], Result], patience: TransactionPatience) -> Result:
    with engine.connect() as connection:
        forget_entry(connection)
        transaction = connection.begin()
        result = work(connection)
        entry = appended_entry(connection)
        try:
            transaction.commit()
        except SQLAlchemyError as error:
            failure = error
            connection.invalidate()  # else the pool would keep it, inside its transaction
        else:
            return result
    if isinstance(failure, DBAPIError) and _is_refusal(failure):
        raise failure
    if _landed(engine, entry, failure, patience):
        return result
    raise _WithoutEffectError from failure


def _landed(
    engine: Engine, entry: Entry | None, failure: SQLAlchemyError, patience: TransactionPatience
) -> bool:
    """Ask on a new connection whether a transaction was committed, by the entry that it appended.

    The lost transaction locked the head of the chain before it appended. Whoever gets that lock after it
    knows that it has ended: its entry is there for good, or never will be.
    """
    message = "the ledger's commit failed and may have landed: what it charged counts as spent"
    lost_connection = isinstance(failure, DBAPIError) and failure.connection_invalidated  # from a server
    if entry is None or not lost_connection:
        raise CommitUnknownError(message) from failure
    query = select(tables.entries.c.hash).where(tables.entries.c.sequence == entry.sequence)
    deadline = time.monotonic() + patience.asking
    for pause in _pauses():
        try:
            with engine.connect() as connection, connection.begin():
                left = max(0.1, deadline - time.monotonic())
                connection.execute(select(func.set_config("lock_timeout", f"{left:.1f}s", True)))  # noqa: FBT003
                read_head(connection, lock=True)
                return bool(connection.scalar(query) == entry.hash)
        except SQLAlchemyError:
            if time.monotonic() > deadline:
                raise CommitUnknownError(message) from failure
        time.sleep(pause)
    raise AssertionError  # pauses do not end


def _had_no_effect(error: DBAPIError) -> bool:
    """Tell whether a statement's failure ended its transaction and is no answer to what was asked."""
    return error.connection_invalidated or _sqlstate(error) in {_SERIALIZATION_FAILURE, _DEADLOCK}


def _is_refusal(error: DBAPIError) -> bool:
    """Tell whether the database itself said, at the commit, that it was rolled back."""
    state = _sqlstate(error)
    return not (state == "" or error.connection_invalidated or state.startswith(_OUTCOME_UNKNOWN))


def _sqlstate(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _pauses() -> Iterator[float]:
    """Give pauses that grow to a quarter of a second, spread so that two that collided part."""
    longest = 0.01
    while True:
        yield longest * (0.5 + secrets.randbelow(1000) / 2000)
        longest = min(0.25, 2 * longest)
