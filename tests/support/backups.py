"""Backups of a ledger, and what a restore makes of them, on either engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from psycopg import sql

from support.paid import copy_database, restore_database
from support.postgres import execute, with_database

_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Backup:
    """A ledger's URL, and that of its copy.

    Attributes
    ----------
    restored_url : str
        Of the ledger after the restore: at the same place on SQLite, a new database on PostgreSQL.
    """

    url: str
    copy: str
    restored_url: str


def back_up(url: str, directory: Path) -> Backup:
    """Copy a ledger as it is; no test needs it open meanwhile."""
    if url.startswith(_SQLITE):
        copy_database(Path(url.removeprefix(_SQLITE)), directory / "backup.db")
        return Backup(url=url, copy=str(directory / "backup.db"), restored_url=url)
    name = url.rsplit("/", 1)[1].split("?", maxsplit=1)[0]
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )
    execute(url, end)  # a template may not be in use; pools connect anew
    copy = f"{name}_backup"
    execute(
        with_database(url, "postgres"),
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(copy), sql.Identifier(name)),
    )
    return Backup(url=url, copy=copy, restored_url=with_database(url, copy))


def restored(backup: Backup) -> str:
    """Restore a backup of a ledger that nobody has open; return the ledger's URL."""
    if backup.url.startswith(_SQLITE):
        restore_database(Path(backup.copy), Path(backup.url.removeprefix(_SQLITE)))
    return backup.restored_url
