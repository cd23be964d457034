"""A restored ledger takes up the charges that it lacks, in one transaction of an SQL database.

Each goes through the states of any charge, so that every rule of the database holds for it too.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from suffice.errors import BudgetExceededError, ChargeInProgressError, LedgerCorruptError
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.storage.ledger.chain import SALT, EntryKind
from suffice.storage.ledger.charge import LIVE, ChargeState
from suffice.storage.ledger.reconciliation import Reconciled
from suffice.storage.ledger.sql import moves, tables
from suffice.storage.ledger.sql.balance import take
from suffice.storage.ledger.sql.entries import append_entry, read_head
from suffice.storage.ledger.sql.reservation import begin, claim
from suffice.storage.ledger.sql.rows import (
    epsilon_of,
    find_charge,
    read_account_row,
    read_newest,
    remaining_in,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.reconciliation import LostCharge
    from suffice.storage.ledger.sql.reservation import Holder

_REASON = "found in a store, without a release, by a ledger that lacked it"


def reconcile(
    connection: Connection, holder: Holder, lost: Sequence[LostCharge], *, beyond: int, reason: str
) -> tuple[Charge, ...]:
    """Do what :meth:`suffice.storage.ledger.ledger.Ledger.reconcile` says.

    Accounts are locked before the head of the chain, in the order of their names.
    """
    for dataset in sorted({str(one.reserved["dataset"]) for one in lost}):
        read_account_row(connection, dataset, lock=True)
    for _ in range(read_head(connection, lock=True).sequence, beyond):
        append_entry(connection, EntryKind.SKIPPED, holder.clock(), {"reason": reason})
    return tuple(_take_up(connection, holder, one, reason) for one in lost)


def read_reconciled(connection: Connection) -> tuple[Reconciled, ...]:
    """Return what the entries of this kind name, in order."""
    entries = tables.entries.c
    query = select(entries.payload).where(entries.kind == EntryKind.RECONCILED).order_by(entries.sequence)
    left_out = {SALT, "reason"}
    return tuple(
        Reconciled(**{name: value for name, value in json.loads(payload).items() if name not in left_out})
        for payload in connection.scalars(query)
    )


def _take_up(connection: Connection, holder: Holder, lost: LostCharge, reason: str) -> Charge:
    charge = find_charge(connection, holder.ledger_id, lost.named.charge_id)
    charge = _begin(connection, holder, lost) if charge is None else claim(connection, holder, charge)
    payload = {**asdict(lost.named), "reason": reason}
    append_entry(connection, EntryKind.RECONCILED, holder.clock(), payload)
    charge = moves.draw(connection, holder, charge)
    if lost.manifest is None:
        return moves.abandon(connection, holder, charge, _REASON)
    return moves.publish(connection, holder, moves.stage(connection, holder, charge, lost.manifest))


def _begin(connection: Connection, holder: Holder, lost: LostCharge) -> Charge:
    """Reserve what a charge took that this copy never had."""
    stated: dict[str, Any] = dict(lost.reserved)
    key = (stated["dataset"], stated["name"], stated["window"], stated["amendment"])
    newest = read_newest(connection, holder.ledger_id, key)
    if newest is not None and newest.state in LIVE:
        message = (
            f"{newest.label} is {newest.state} here, and a later charge of it stands in the store: let "
            "`suffice ledger recover` end it, and reconcile again"
        )
        raise ChargeInProgressError(message)
    if newest is not None and newest.state is ChargeState.PUBLISHED:
        message = (
            f"{newest.label} is published here as {newest.release_id}, and another charge of it stands in "
            "the store: two copies of the ledger went on. Nothing was reconciled"
        )
        raise LedgerCorruptError(message)
    row = read_account_row(connection, stated["dataset"])
    if not take(connection, row, stated["window"], stated["micro_epsilon"]):
        epsilon, remaining = (
            epsilon_of(stated["micro_epsilon"]),
            remaining_in(connection, row, stated["window"]),
        )
        message = (
            f"the account {row.dataset} has epsilon {format_epsilon(remaining)} left in this copy of the "
            f"ledger, and {format_epsilon(epsilon)} more was spent: its owner grants what was granted before "
            "the ledger was lost, then reconcile again. Nothing was reconciled"
        )
        raise BudgetExceededError(message, requested=epsilon, remaining=remaining)
    attempt = 1 if newest is None else newest.attempt + 1
    return begin(connection, holder, {**stated, "attempt": attempt}, lost.plan_json)
