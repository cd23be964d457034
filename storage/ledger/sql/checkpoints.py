"""Checkpoints: the state that a full replay had reached, sealed by an entry of the chain.

What an entry seals cannot be changed without changing every hash after it, those that published manifests
hold among them; and whoever recomputes everything later names a checkpoint that was false, for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from suffice.storage.ledger.chain import ChainCheck, Entry, EntryKind, Head
from suffice.storage.ledger.replay import sha256
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.entries import append_entry, read_head

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from suffice.storage.ledger.replay import Books


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where an examination goes on: the checkpoint's own entry."""

    head: Head


def find_checkpoint(connection: Connection, books: Books) -> tuple[Checkpoint | None, str]:
    """Let books go on from the last checkpoint, if there is one.

    Returns
    -------
    tuple
        The checkpoint, or None; and what is wrong with it, or nothing.
    """
    kept = connection.execute(select(tables.checkpoints)).one_or_none()
    if kept is None:
        return None, ""
    row = connection.execute(
        select(tables.entries).where(tables.entries.c.sequence == kept.sequence)
    ).one_or_none()
    entry = None if row is None else Entry(**row._mapping)  # noqa: SLF001 - its public name
    sealed = None
    if entry is not None and entry.kind == EntryKind.CHECKPOINT:
        before = Head(sequence=entry.sequence - 1, hash=entry.previous_hash)
        sealed = ChainCheck(before).follow(entry)
    damaged = "the last checkpoint was altered, or its entry: everything was recomputed"
    if entry is None or sealed is None or sealed.get("state_sha256") != sha256(kept.state.encode()):
        return None, damaged
    try:
        books.go_on_from(kept.state)
    except (LookupError, TypeError, ValueError):
        return None, damaged
    return Checkpoint(head=Head(sequence=entry.sequence, hash=entry.hash)), ""


def write_checkpoint(connection: Connection, examined: Head, books: Books, now: datetime) -> Head | None:
    """Seal the state of books that were posted up to `examined`, in one transaction.

    Returns
    -------
    Head or None
        The checkpoint's entry; None where entries were appended meanwhile.
    """
    if read_head(connection, lock=True) != examined:
        return None
    state = books.state()
    entry = append_entry(connection, EntryKind.CHECKPOINT, now, {"state_sha256": sha256(state.encode())})
    values = {"sequence": entry.sequence, "state": state}
    if connection.execute(update(tables.checkpoints).values(**values)).rowcount == 0:
        connection.execute(insert(tables.checkpoints).values(id=1, **values))
    return Head(sequence=entry.sequence, hash=entry.hash)
