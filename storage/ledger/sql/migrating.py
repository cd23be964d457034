"""Ledgers of earlier schemas, brought to this version's: in one transaction, or not at all.

The chain is left as it is: no entry is written, and none changes. What the tables say then is held against it
before anything is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import LedgerCorruptError, LedgerMissingError
from suffice.storage.ledger.sql import migrations
from suffice.storage.ledger.sql.examining import EARLIER, Examiner, has_ledger, read_revision
from suffice.storage.ledger.sql.rows import read_head

if TYPE_CHECKING:
    from sqlalchemy import Connection


def migrate(connection: Connection, location: str) -> str | None:
    """Bring a ledger to this version's schema, in the transaction that `connection` is in.

    Parameters
    ----------
    connection : Connection
        No other transaction migrates at the same time.
    location : str
        The database as messages name it.

    Returns
    -------
    str or None
        The schema that it had; None where it had this version's.

    Raises
    ------
    LedgerMissingError
        Where there is none.
    LedgerError
        Where it is a newer version's, or another program's.
    LedgerCorruptError
        Where it is not what its chain says.
    """
    before = read_revision(connection, location)
    if before not in EARLIER:
        if not has_ledger(connection, location):
            message = f"there is no ledger in {location}: nothing was migrated"
            raise LedgerMissingError(message)
        return None
    migrations.upgrade(connection)
    read_head(connection, lock=True)  # no entry is appended while the chain is followed
    problems = Examiner(connection, full=False).examine().problems
    if problems:
        message = (
            f"the ledger {location} is not what its chain says: {problems[0]}. Nothing was migrated; "
            "`suffice ledger verify` of the version that wrote it names all"
        )
        raise LedgerCorruptError(message)
    return before
