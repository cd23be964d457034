"""Ledgers by their URLs: which database serves one; its library loads only then."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import MissingExtraError, UsageError
from suffice.storage.ledger.ledger import LEASE, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, timedelta
    from types import ModuleType

    from suffice.storage.ledger.ledger import Ledger

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgresql+psycopg://")


def open_ledger(
    url: str,
    *,
    clock: Callable[[], datetime] | None = None,
    lease: timedelta = LEASE,
    reading_only: bool = False,
) -> Ledger:
    """Open the ledger at a URL.

    Parameters
    ----------
    url : str
        ``sqlite:///ledger.db`` (relative to the current directory), ``sqlite:////srv/ledger.db``, or
        ``postgresql://USER@HOST/DATABASE``.
    clock : callable, optional
        Gives the present moment in UTC. Otherwise this machine's clock for a file, the server's for a
        database that has one.
    lease : timedelta
        How long a charge stays held without :meth:`Ledger.renew`.
    reading_only : bool
        Whether nothing will be changed. A file is then also read where its disk is full, or neither it nor
        its directory can be written.

    Returns
    -------
    Ledger
        To be closed, best by ``with``.

    Raises
    ------
    LedgerMissingError
        Where there is none; says how to make one.
    LedgerError
        Where the database is no ledger, was made by another version, or cannot keep what it is told.
    UsageError
        Where the URL names a database that is not supported.
    MissingExtraError
        Where its database's library is not installed.
    """
    if _is_postgres(url):
        opened = _postgres().open_postgres_ledger(url, clock=clock, lease=lease, reading_only=reading_only)
    else:
        path = _sqlite_path(url)
        opened = _sqlite().open_sqlite_ledger(
            path, clock=clock or utc_now, lease=lease, reading_only=reading_only
        )
    return opened  # type: ignore[no-any-return]


def check_ledger_url(url: str) -> None:
    """Refuse a text that names no ledger that could be opened; whether one stands there is not asked.

    Raises
    ------
    UsageError
    """
    if not _is_postgres(url):
        _sqlite_path(url)


def create_ledger(
    url: str, *, clock: Callable[[], datetime] | None = None, lease: timedelta = LEASE
) -> Ledger:
    """Open the ledger at a URL, after making one if there is none.

    Parameters, results and errors as for :func:`open_ledger`.
    """
    if _is_postgres(url):
        _postgres().create_postgres_ledger(url, clock=clock)
    else:
        path = _sqlite_path(url)
        _sqlite().create_sqlite_ledger(path, clock=clock or utc_now)
    return open_ledger(url, clock=clock, lease=lease)


def migrate_ledger(url: str) -> str | None:
    """Bring the ledger at a URL from an earlier version's schema to this one's, or leave it as it is.

    Its entries and their hashes do not change; charges in any state go on. Only the role that made the ledger
    can do it. No run of an earlier version goes on then: all should have been stopped.

    Returns
    -------
    str or None
        The schema that it had; None where it had this version's.

    Raises
    ------
    LedgerMissingError
        Where there is none.
    LedgerCorruptError
        Where the ledger is not what its chain says.
    LedgerError
        Where it is a newer version's, another program's, or cannot be changed.
    """
    if _is_postgres(url):
        before = _postgres().migrate_postgres_ledger(url)
    else:
        before = _sqlite().migrate_sqlite_ledger(_sqlite_path(url))
    return before  # type: ignore[no-any-return]


def _is_postgres(url: str) -> bool:
    return url.startswith(_POSTGRES)


def _sqlite_path(url: str) -> Path:
    """Return the path in a SQLite URL; no other text of a URL, which may hold a password, is shown."""
    database = url.removeprefix(_SQLITE)
    if database == url or not database or database == ":memory:" or "?" in database:
        scheme = url.partition("://")[0] if "://" in url else ""
        message = (
            f"the ledger's URL{f' ({scheme}://...)' if scheme else ''} names no supported database: "
            "write sqlite:///PATH, as sqlite:///ledger.db, or postgresql://USER@HOST/DATABASE"
        )
        raise UsageError(message)
    try:
        Path(database).exists()
    except (OSError, ValueError):
        message = (
            "the ledger's URL names a file that cannot be looked at: write sqlite:///PATH of one that can"
        )
        raise UsageError(message) from None
    return Path(database)


def _sqlite() -> ModuleType:
    with _extra("the ledger", "ledger"):
        from suffice.storage.ledger.sql import sqlite
    return sqlite


def _postgres() -> ModuleType:
    with _extra("the ledger on PostgreSQL", "postgres"):
        from suffice.storage.ledger.sql import postgres
    return postgres


@contextmanager
def _extra(feature: str, extra: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:  # psycopg raises no ModuleNotFoundError where only libpq is missing
        if (error.name or "psycopg").partition(".")[0] in {"sqlalchemy", "alembic", "psycopg"}:
            raise MissingExtraError(feature, extra) from None
        raise
