"""What a database's failures are called: a closed table, never a driver's text, which may quote rows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from suffice.errors import LedgerCorruptError, LedgerError, SufficeError

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESTORE = "stop all runs, and restore the newest backup; `suffice ledger verify` names what differs"
DAMAGED = f"the ledger is damaged: {_RESTORE}"

_SQLITE = {
    "SQLITE_FULL": "no space is left on the disk of the ledger's file: free some, and run again",
    "SQLITE_READONLY": "the ledger's file, or its directory, cannot be written: check rights and mount",
    "SQLITE_IOERR": "the disk of the ledger's file failed, or is full",
    "SQLITE_CANTOPEN": "the ledger's file, or those beside it, cannot be opened: check path and rights",
    "SQLITE_PERM": "access to the ledger's file is denied",
    "SQLITE_BUSY": "another process kept the ledger locked for a minute: is one stopped in a transaction?",
    "SQLITE_LOCKED": "another process kept the ledger locked for a minute: is one stopped in a transaction?",
    "SQLITE_PROTOCOL": "the ledger's file cannot be locked: use a local disk",
    "SQLITE_NOLFS": "the disk cannot hold files as large as the ledger's",
    "SQLITE_CONSTRAINT": "the ledger refused a row that breaks its rules",
    "SQLITE_ERROR": f"the ledger's tables are not as this version of suffice made them: {_RESTORE}",
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
    "42": f"the ledger's tables are not as this version of suffice made them: {_RESTORE}",
    "53100": "no space is left on the disk of the ledger's server",
    "53": "the server of the ledger has too few resources: too many connections, or no memory",
    "55P03": "another session kept the ledger locked for a minute: is one stopped in a transaction?",
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
