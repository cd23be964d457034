"""A charge's moves in an SQL database, each within the transaction that `connection` is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert

from suffice.errors import ReadingsExhaustedError
from suffice.storage.ledger.chain import EntryKind
from suffice.storage.ledger.charge import LIVE, Charge, ChargeState, SpoolName, check_epsilon
from suffice.storage.ledger.replay import sha256
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.balance import shift
from suffice.storage.ledger.sql.entries import append_entry
from suffice.storage.ledger.sql.failed_readings import count_failed
from suffice.storage.ledger.sql.reservation import move
from suffice.storage.ledger.sql.rows import read_account_row, read_charge
from suffice.storage.ledger.sql.stores import follow_marker

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from suffice.storage.ledger.sql.reservation import Holder


def draw(
    connection: Connection,
    holder: Holder,
    charge: Charge,
    spool: SpoolName | None = None,
    *,
    zone_data: str | None = None,
) -> Charge:
    """Spend a reserved charge's epsilon: from here on noise may exist."""
    micro = check_epsilon(charge.epsilon)
    kept = {"spool_id": spool.spool_id, "spool_host": spool.host} if spool else {}
    row = read_account_row(connection, charge.dataset, lock=True)
    before = (ChargeState.RESERVED,)
    move(connection, holder, charge, before, state=ChargeState.DRAWING, drew=True, **kept)
    shift(connection, row, charge.window, reserved=-micro, spent=micro)
    payload = {**_step(charge), **kept, "zone_data": zone_data}
    entry = append_entry(connection, EntryKind.DRAWING, holder.clock(), payload)
    follow_marker(connection, charge)
    named = {"drawing_sequence": entry.sequence, "drawing_hash": entry.hash}
    move(connection, holder, charge, (ChargeState.DRAWING,), **named)
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def stage(connection: Connection, holder: Holder, charge: Charge, manifest: bytes) -> Charge:
    """Keep the bytes to publish of a charge that has drawn."""
    named = {"manifest_sha256": sha256(manifest)}
    move(connection, holder, charge, (ChargeState.DRAWING,), state=ChargeState.STAGED, **named)
    connection.execute(insert(tables.staged_manifests).values(charge_id=charge.charge_id, content=manifest))
    append_entry(connection, EntryKind.STAGED, holder.clock(), {**_step(charge), **named})
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def publish(connection: Connection, holder: Holder, charge: Charge) -> Charge:
    """End a staged charge with its release; one that is published already is returned as it is."""
    current = read_charge(connection, holder.ledger_id, charge.charge_id, lock=True)
    if current.state is ChargeState.PUBLISHED:
        return current
    move(connection, holder, charge, (ChargeState.STAGED,), state=ChargeState.PUBLISHED)
    _forget_manifest(connection, charge)
    append_entry(connection, EntryKind.PUBLISHED, holder.clock(), _step(charge))
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def abandon(connection: Connection, holder: Holder, charge: Charge, reason: str) -> Charge:
    """End a charge without a release; its epsilon returns if and only if it never drew."""
    row = read_account_row(connection, charge.dataset, lock=True)
    current = read_charge(connection, holder.ledger_id, charge.charge_id, lock=True)
    if not current.drew and count_failed(connection, current) >= row.failed_readings:
        raise ReadingsExhaustedError(current.label, row.failed_readings)
    move(connection, holder, charge, LIVE, state=ChargeState.ABANDONED)
    _forget_manifest(connection, charge)
    returned = 0 if current.drew else check_epsilon(current.epsilon)
    if returned:
        shift(connection, row, charge.window, reserved=-returned, spent=0)
    payload = {**_step(charge), "micro_returned": returned, "reason": reason}
    append_entry(connection, EntryKind.ABANDONED, holder.clock(), payload)
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def _forget_manifest(connection: Connection, charge: Charge) -> None:
    """Let the bytes go of a charge that ends in the same transaction."""
    staged = tables.staged_manifests
    connection.execute(delete(staged).where(staged.c.charge_id == charge.charge_id))


def _step(charge: Charge) -> dict[str, object]:
    """Return what every entry of a charge's move states."""
    return {"charge_id": charge.charge_id, "epoch": charge.epoch}
