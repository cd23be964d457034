"""Epsilon reserved in an SQL database: charges begun, taken over, moved on, amended.

Each function runs inside a transaction. It locks the charge's row after its account's and before the
chain's head. A store's row changes after the head is locked, so that its changes wait in one order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import insert, select, text, update

from suffice.errors import ChargeLostError, UsageError, WrongStoreError
from suffice.storage.ledger.account import KnownStore
from suffice.storage.ledger.chain import EntryKind, coarse, format_time
from suffice.storage.ledger.charge import (
    LIVE,
    Charge,
    ChargeRequest,
    ChargeState,
    check_epsilon,
    is_held,
    release_id,
)
from suffice.storage.ledger.rerun import decide_amended, in_progress_error
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.balance import exceeded_error, take
from suffice.storage.ledger.sql.rows import (
    append_entry,
    charge_of,
    check_owner,
    insert_unless_there,
    read_charge,
    read_plan,
    stream,
    summary_of,
    summary_query,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Row

    from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
    from suffice.storage.ledger.charge import ChargeSummary


def find_amended(connection: Connection, ledger_id: str, request: ChargeRequest) -> AmendedRelease | None:
    """Return the release that a request would replace; None where it is for no amendment.

    Raises
    ------
    AmendmentError, ChargeInProgressError, SpecChangedError, WrongStoreError
        As :func:`suffice.storage.ledger.rerun.decide_amended`.
    """
    if not request.amendment:
        return None
    columns = tables.charges.c
    query = select(tables.charges).where(
        columns.dataset == request.dataset,
        columns.name == request.name,
        columns.window == request.window,
        columns.amendment != request.amendment,
        columns.state != ChargeState.ABANDONED,
    )
    others = [charge_of(connection, row, ledger_id) for row in connection.execute(query)]
    return decide_amended(others, request, plan_of=partial(read_plan, connection))


def read_editions(connection: Connection, dataset: str, name: str) -> dict[str, list[ChargeSummary]]:
    """Return of each window of a name the newest charge of every edition, in the order of amendments."""
    columns = tables.charges.c
    query = summary_query().where(columns.dataset == dataset, columns.name == name)
    newest: dict[tuple[str, int], ChargeSummary] = {}
    order = (columns.amendment, columns.attempt)
    for charge in map(summary_of, stream(connection, query.order_by(*order))):
        newest[charge.window, charge.amendment] = charge
    editions: dict[str, list[ChargeSummary]] = {}
    for charge in newest.values():
        editions.setdefault(charge.window, []).append(charge)
    return editions


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
    sources_by_dataset = {row.dataset: tuple(json.loads(row.sources)) for row in connection.execute(query)}
    return dict(sorted(sources_by_dataset.items()))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who moves charges: one open ledger object.

    Attributes
    ----------
    ledger_id : str
    token : str
        Written into every charge that it holds, so that reading a charge gives no right to move it.
    process : str
        Of :func:`suffice.storage.ledger.charge.this_process`, written beside it.
    clock, lease
        As for :func:`suffice.storage.ledger.opening.open_ledger`.
    """

    ledger_id: str
    token: str
    process: str
    clock: Callable[[], datetime]
    lease: timedelta

    def lease_from_now(self) -> str:
        """Return the moment until which a lease holds that is taken now."""
        return format_time(self.clock() + self.lease)


def start(
    connection: Connection,
    holder: Holder,
    row: Row[Any],
    request: ChargeRequest,
    *,
    attempt: int,
    amends: AmendedRelease | None,
) -> Charge:
    """Reserve a request's epsilon and begin its charge; the account's row is locked.

    Raises
    ------
    BudgetExceededError, NameTakenError, WrongStoreError
    """
    micro = check_epsilon(request.epsilon)
    if not take(connection, row, request.window, micro):
        raise exceeded_error(connection, row, request)
    charge_id = uuid4().hex
    payload = {
        "charge_id": charge_id,
        "release_id": release_id(holder.ledger_id, charge_id),
        "dataset": request.dataset,
        "name": request.name,
        "window": request.window,
        "amendment": request.amendment,
        "amends": None if amends is None else amends.release_id,
        "amended_sha256": None if amends is None else amends.manifest_sha256,
        "attempt": attempt,
        "micro_epsilon": micro,
        "plan_hash": request.plan_hash,
        "store_id": request.store_id,
        "store_uri": request.store_uri,
    }
    return begin(connection, holder, payload, request.plan_json)


def begin(connection: Connection, holder: Holder, payload: Mapping[str, Any], plan_json: str) -> Charge:
    """Begin the charge that an entry's payload states, whose epsilon was taken in the same transaction.

    Raises
    ------
    NameTakenError, WrongStoreError
    """
    now, charge_id = holder.clock(), payload["charge_id"]
    insert_unless_there(connection, tables.names, name=payload["name"], dataset=payload["dataset"])
    check_owner(connection, payload["name"], payload["dataset"])
    insert_unless_there(connection, tables.plans, sha256=payload["plan_hash"], content=plan_json)
    entry = append_entry(connection, EntryKind.RESERVED, now, payload)
    remember_store(connection, payload["store_id"], uri=payload["store_uri"], sequence=entry.sequence)
    connection.execute(
        insert(tables.charges).values(
            **payload,
            state=ChargeState.RESERVED,
            marked=False,
            drew=False,
            epoch=1,
            holder=holder.token,
            holder_process=holder.process,
            lease_expires=holder.lease_from_now(),
            reserved_sequence=entry.sequence,
            created_at=format_time(coarse(now)),
        )
    )
    return read_charge(connection, holder.ledger_id, charge_id)


def claim(connection: Connection, holder: Holder, seen: Charge) -> Charge:
    """Take a charge over with the next epoch.

    Raises
    ------
    ChargeInProgressError, ChargeLostError
        As :meth:`suffice.storage.ledger.ledger.Ledger.take_over`.
    """
    charge = read_charge(connection, holder.ledger_id, seen.charge_id, lock=True)
    if charge.epoch != seen.epoch or charge.state not in LIVE:
        raise _lost(charge)
    # The bytes of a staged charge are fixed: two runs that publish it put the same release.
    now = holder.clock()
    if charge.state is not ChargeState.STAGED and is_held(charge, now):
        raise in_progress_error(charge, now)
    connection.execute(
        update(tables.charges)
        .where(tables.charges.c.charge_id == charge.charge_id, tables.charges.c.epoch == charge.epoch)
        .values(
            epoch=charge.epoch + 1,
            holder=holder.token,
            holder_process=holder.process,
            lease_expires=holder.lease_from_now(),
        )
    )
    payload = {"charge_id": charge.charge_id, "epoch": charge.epoch + 1}
    append_entry(connection, EntryKind.TAKEN_OVER, holder.clock(), payload)
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def move(
    connection: Connection, holder: Holder, charge: Charge, before: Sequence[ChargeState], **values: object
) -> None:
    """Change a charge's row if this holder still holds it at that epoch in one of these states.

    Raises
    ------
    ChargeLostError
    """
    columns = tables.charges.c
    done = connection.execute(
        update(tables.charges)
        .where(
            columns.charge_id == charge.charge_id,
            columns.epoch == charge.epoch,
            columns.holder == holder.token,
            columns.state.in_(before),
        )
        .values(**values)
    )
    if done.rowcount != 1:
        raise _lost(read_charge(connection, holder.ledger_id, charge.charge_id))


def let_go(connection: Connection, holder: Holder, charge: Charge) -> None:
    """End the lease of a charge that this holder holds; any other is left as it is."""
    columns = tables.charges.c
    connection.execute(
        update(tables.charges)
        .where(
            columns.charge_id == charge.charge_id,
            columns.holder == holder.token,
            columns.state.in_(LIVE),
        )
        .values(lease_expires=format_time(holder.clock()))
    )


def _lost(charge: Charge) -> ChargeLostError:
    return ChargeLostError(
        f"this run no longer holds {charge.label}: the charge is {charge.state} at epoch {charge.epoch}"
    )
