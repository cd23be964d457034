"""Stores in an SQL database: remembered with their first charge, followed by their markers.

A row changes after the head of the chain was locked, so that changes of one store wait in one order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import select, text, update

from suffice.errors import UsageError, WrongStoreError
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import insert_unless_there, summary_of, summary_query
from suffice.storage.ledger.stores import KnownStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from suffice.storage.ledger.charge import Charge, ChargeSummary

_UNFINISHED = "state IN ('reserved', 'drawing')"
"""As the index on them says it: SQLite compares the texts."""


def remember_store(connection: Connection, store_id: str, *, uri: str, sequence: int) -> None:
    """Remember the store that a charge names, with the charge's entry where it is the first.

    Raises
    ------
    WrongStoreError
        Where its owner retired it.
    """
    values = {"store_id": store_id, "uri": uri, "first_sequence": sequence}
    if insert_unless_there(connection, tables.stores, **values, last_marker=0, retired=False):
        return
    columns = tables.stores.c
    if connection.scalar(select(columns.retired).where(columns.store_id == store_id)):
        message = f"the store {store_id} at {uri} was retired by its owner"
        raise WrongStoreError(message)


def follow_marker(connection: Connection, charge: Charge) -> None:
    """Note that a charge's marker stands in its store."""
    columns = tables.stores.c
    connection.execute(
        update(tables.stores)
        .where(columns.store_id == charge.store_id, columns.last_marker < charge.reserved_sequence)
        .values(last_marker=charge.reserved_sequence)
    )


def read_stores(connection: Connection) -> tuple[KnownStore, ...]:
    """Return every store, in the order of their first charges."""
    rows = connection.execute(select(tables.stores).order_by(tables.stores.c.first_sequence)).mappings()
    return tuple(KnownStore(**row) for row in rows)


def change_store(connection: Connection, store_id: str, **values: object) -> bool:
    """Set what an owner may change of a store; tell whether that changed anything.

    Raises
    ------
    UsageError
        Where the ledger never charged for it.
    """
    query = select(tables.stores).where(tables.stores.c.store_id == store_id)
    row = connection.execute(query.with_for_update()).mappings().one_or_none()
    if row is None:
        message = (
            f"this ledger has charged for no store {store_id}: `suffice store list` names those it knows"
        )
        raise UsageError(message)
    if all(row[name] == value for name, value in values.items()):
        return False
    connection.execute(update(tables.stores).where(tables.stores.c.store_id == store_id).values(**values))
    return True


def read_pins(connection: Connection, dataset: str) -> tuple[str, ...]:
    """Return the prefixes of the stores that an account allows; none where there is no account."""
    pins = connection.scalar(select(tables.accounts.c.stores).where(tables.accounts.c.dataset == dataset))
    return tuple(json.loads(pins or "[]"))


def read_sources(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Return what each account allows as sources, by data set."""
    query = select(tables.accounts.c.dataset, tables.accounts.c.sources)
    found = {row.dataset: tuple(json.loads(row.sources)) for row in connection.execute(query)}
    return dict(sorted(found.items()))


def read_stores_of_charges(connection: Connection) -> Sequence[tuple[int, str, str]]:
    """Return of every charge the sequence of its reservation, its release id and its store's id."""
    columns = tables.charges.c
    query = select(columns.reserved_sequence, columns.release_id, columns.store_id)
    return [(row.reserved_sequence, row.release_id, row.store_id) for row in connection.execute(query)]


def read_unfinished(connection: Connection, store_id: str) -> Sequence[ChargeSummary]:
    """Return the charges of a store that are reserved or drawing: those of runs that go on, or died."""
    columns = tables.charges.c
    query = summary_query().where(columns.store_id == store_id, text(_UNFINISHED))
    return [summary_of(row) for row in connection.execute(query.order_by(columns.reserved_sequence))]
