"""Epsilon reserved in an SQL database: charges begun, taken over, moved on.

Each runs inside a transaction, and locks the charge's row after its account's, before the chain's head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import insert, update

from suffice.errors import ChargeLostError
from suffice.storage.ledger.chain import EntryKind, coarse, format_time
from suffice.storage.ledger.charge import LIVE, Charge, ChargeRequest, ChargeState, check_epsilon, release_id
from suffice.storage.ledger.holder import is_held
from suffice.storage.ledger.rerun import in_progress_error
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.balance import exceeded_error, take
from suffice.storage.ledger.sql.entries import append_entry
from suffice.storage.ledger.sql.rows import check_owner, insert_unless_there, read_charge
from suffice.storage.ledger.sql.stores import remember_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Row

    from suffice.pipeline.spec.editions import AmendedRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who moves charges: one open ledger object.

    Attributes
    ----------
    ledger_id : str
    token : str
        Written into every charge that it holds, so that reading a charge gives no right to move it.
    process : str
        Of :func:`suffice.storage.ledger.holder.this_process`, written beside it.
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
