"""The chain of entries in an SQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from suffice.storage.ledger.chain import Entry, Head, next_entry
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from suffice.storage.ledger.chain import EntryKind

_APPENDED = "suffice_appended_entry"


def read_head(connection: Connection, *, lock: bool = False) -> Head:
    """Return the end of the chain; with `lock`, no other transaction appends until this one ends."""
    query = select(tables.ledger.c.head_sequence, tables.ledger.c.head_hash)
    row = connection.execute(query.with_for_update() if lock else query).one()
    return Head(sequence=row.head_sequence, hash=row.head_hash)


def read_entries(connection: Connection, *, after: int = 0) -> Iterator[Entry]:
    """Give the chain, or what follows one of its entries, while the database reads it."""
    columns = tables.entries.c
    query = select(tables.entries).order_by(columns.sequence)
    if after:
        query = query.where(columns.sequence > after)
    for row in stream(connection, query):
        yield Entry(**row._mapping)  # noqa: SLF001 - its public name


def read_entry(connection: Connection, sequence: int) -> Entry | None:
    """Return one entry of the chain, if there is such an entry."""
    query = select(tables.entries).where(tables.entries.c.sequence == sequence)
    row = connection.execute(query).one_or_none()
    return None if row is None else Entry(**row._mapping)  # noqa: SLF001 - its public name


def append_entry(
    connection: Connection, kind: EntryKind, moment: datetime, payload: Mapping[str, object]
) -> Entry:
    """Append one entry to the chain, in the transaction that `connection` is in."""
    entry = next_entry(read_head(connection, lock=True), kind, moment, payload)
    connection.execute(
        insert(tables.entries).values(
            sequence=entry.sequence,
            previous_hash=entry.previous_hash,
            kind=entry.kind,
            time=entry.time,
            payload=entry.payload,
            hash=entry.hash,
        )
    )
    connection.execute(update(tables.ledger).values(head_sequence=entry.sequence, head_hash=entry.hash))
    connection.info[_APPENDED] = entry
    return entry


def appended_entry(connection: Connection) -> Entry | None:
    """Return the last entry that was appended through a connection since :func:`forget_entry`."""
    return connection.info.get(_APPENDED)


def forget_entry(connection: Connection) -> None:
    """Begin anew: what the connection, which a pool reuses, appended before is another transaction's."""
    connection.info.pop(_APPENDED, None)
