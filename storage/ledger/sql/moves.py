"""A charge's moves in an SQL database: taken over, drawn, staged, published, abandoned, reconciled.

Each is within the transaction that `connection` is in. It locks the charge's row after its account's and
before the chain's head. Failed attempts of a key are counted here, and by a trigger of
``migrations.limits_0001`` as well. Charges that a restored ledger lacks go through the states of any charge,
so that every rule holds for them.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, case, delete, func, insert, literal, select, update

from suffice.errors import (
    BudgetExceededError,
    ChargeInProgressError,
    ChargeLostError,
    DrawsExhaustedError,
    GuaranteeError,
    LedgerCorruptError,
    LedgerError,
    ReadingsExhaustedError,
)
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.storage.ledger.amounts import stated_name
from suffice.storage.ledger.chain import SALT, EntryKind, format_time
from suffice.storage.ledger.charge import (
    LIVE,
    MOST_RETURNED_DRAWS,
    Charge,
    ChargeState,
    KeyCount,
    Reconciled,
    SpoolName,
    is_held,
)
from suffice.storage.ledger.replay import sha256
from suffice.storage.ledger.rerun import in_progress_error
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.charge_fits import begin, shift, take
from suffice.storage.ledger.sql.rows import (
    amount_of,
    append_entry,
    find_charge,
    measure_of,
    read_account_row,
    read_charge,
    read_head,
    read_newest,
    remaining_in,
    stream,
    summary_of,
    summary_query,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from suffice.storage.ledger.charge import ChargeSummary, LostCharge
    from suffice.storage.ledger.sql.charge_fits import Holder


_REASON = "found in a store, without a release, by a ledger that lacked it"


def reconcile(
    connection: Connection, holder: Holder, lost: Sequence[LostCharge], *, beyond: int, reason: str
) -> tuple[Charge, ...]:
    """Do what :meth:`suffice.storage.ledger.ledger.Ledger.reconcile` says.

    Accounts are locked before the head of the chain, in the order of their names.
    """
    for dataset in sorted({str(charge.reserved["dataset"]) for charge in lost}):
        read_account_row(connection, dataset, lock=True)
    for _ in range(read_head(connection, lock=True).sequence, beyond):
        append_entry(connection, EntryKind.SKIPPED, holder.clock(), {"reason": reason})
    return tuple(_take_up(connection, holder, charge, reason) for charge in lost)


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
    charge = draw(connection, holder, charge)
    if lost.manifest is None:
        return abandon(connection, holder, charge, _REASON)
    return publish(connection, holder, stage(connection, holder, charge, lost.manifest))


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
    measure = measure_of(row)
    count = stated.get(stated_name("charged", measure))
    if count is None:
        message = (
            f"the account {row.dataset} counts {measure} in this copy of the ledger, and another measure was "
            "charged: restore the copy again, and have its owner grant what was granted before, in the "
            "measure that it had. Nothing was reconciled"
        )
        raise GuaranteeError(message)
    if not take(connection, row, stated["window"], count):
        lost_amount, remaining = amount_of(row, count), remaining_in(connection, row, stated["window"])
        message = (
            f"the account {row.dataset} has {measure} {format_number(remaining)} left in this copy of the "
            f"ledger, and {format_number(lost_amount)} more was spent: its owner grants what was granted "
            "before the ledger was lost, then reconcile again. Nothing was reconciled"
        )
        raise BudgetExceededError(message, requested=lost_amount, remaining=remaining)
    attempt = 1 if newest is None else newest.attempt + 1
    return begin(connection, holder, {**stated, "attempt": attempt}, measure, lost.plan_json)


def count_failed(connection: Connection, charge: Charge) -> int:
    """Return how many attempts of a charge's key did not come to their draw, up to now."""
    query = select(func.coalesce(func.sum(_failed()), 0)).where(*_of_key(charge))
    return int(connection.execute(query).scalar_one())


def count_returned(connection: Connection, charge: Charge) -> int:
    """Return how many draws of a charge's key were returned."""
    query = select(func.count()).where(*_of_key(charge), tables.charges.c.draw_returned)
    return int(connection.execute(query).scalar_one())


def _of_key(charge: Charge) -> tuple[ColumnElement[bool], ...]:
    columns = tables.charges.c
    return (
        columns.dataset == charge.dataset,
        columns.name == charge.name,
        columns.window == charge.window,
        columns.amendment == charge.amendment,
    )


def read_failed(connection: Connection, dataset: str) -> tuple[KeyCount, ...]:
    """Return the keys of an account with attempts that did not come to their draw, in their order."""
    columns = tables.charges.c
    return _counted(connection, _failed(), columns.dataset == dataset, ~columns.drew | columns.draw_returned)


def read_returned_draws(connection: Connection, dataset: str) -> tuple[KeyCount, ...]:
    """Return the keys of an account with draws that were returned, in their order."""
    columns = tables.charges.c
    return _counted(connection, literal(1), columns.dataset == dataset, columns.draw_returned)


def _counted(
    connection: Connection, counted: ColumnElement[int], *which: ColumnElement[bool]
) -> tuple[KeyCount, ...]:
    columns = tables.charges.c
    query = select(columns.name, columns.window, columns.amendment, counted).where(*which)
    counts: Counter[tuple[str, str, int]] = (
        Counter()
    )  # added here: nothing is sorted on a disk that may be full
    for name, window, amendment, count in connection.execute(query):
        counts[name, window, amendment] += count
    return tuple(
        KeyCount(name=name, window=window, amendment=amendment, count=count)
        for (name, window, amendment), count in sorted(counts.items())
        if count
    )


def _failed() -> ColumnElement[int]:
    """Return what one charge counts: each take-over before its draw, and its end where it came to none.

    A draw that is spent pays for all of its attempts, one that is returned for none.
    """
    columns = tables.charges.c
    return case(
        (columns.draw_returned, columns.drawing_epoch - 1),
        (columns.drew, 0),
        (columns.state == ChargeState.ABANDONED, columns.epoch),
        else_=columns.epoch - 1,
    ).cast(Integer)


def draw(
    connection: Connection,
    holder: Holder,
    charge: Charge,
    spool: SpoolName | None = None,
    *,
    zone_data: str | None = None,
) -> Charge:
    """Let a reserved charge draw: from here on noise may meet totals. Its epsilon stays reserved."""
    kept = {"spool_id": spool.spool_id, "spool_host": spool.host} if spool else {}
    drawing = {"state": ChargeState.DRAWING, "drew": True, "drawing_epoch": charge.epoch}
    # A row that is changed twice has its foreign keys checked, which locks its account's row after the head.
    read_account_row(connection, charge.dataset, lock=True)
    move(connection, holder, charge, (ChargeState.RESERVED,), **drawing, **kept)
    payload = {**_step(charge), **kept, "zone_data": zone_data}
    entry = append_entry(connection, EntryKind.DRAWING, holder.clock(), payload)
    follow_marker(connection, charge)
    named = {"drawing_sequence": entry.sequence, "drawing_hash": entry.hash}
    move(connection, holder, charge, (ChargeState.DRAWING,), **named)
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def stage(
    connection: Connection,
    holder: Holder,
    charge: Charge,
    manifest: bytes,
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Charge:
    """Spend what a charge that has drawn reserved, and keep the bytes to publish."""
    count, named = charge.loss.count, {"manifest_sha256": sha256(manifest)}
    row = read_account_row(connection, charge.dataset, lock=True)
    move(connection, holder, charge, (ChargeState.DRAWING,), state=ChargeState.STAGED, **named)
    shift(connection, row, charge.window, reserved=-count, spent=count)
    connection.execute(insert(tables.staged_manifests).values(charge_id=charge.charge_id, content=manifest))
    for name, content in files.items():
        row_of_file = {"charge_id": charge.charge_id, "name": name, "content": content}
        connection.execute(insert(tables.staged_files).values(**row_of_file))
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
    reserved = current.loss.count if current.state is not ChargeState.STAGED else 0
    spent = reserved if current.drew else 0
    if reserved:
        shift(connection, row, charge.window, reserved=-reserved, spent=spent)
    return _abandoned(connection, holder, charge, returned=reserved - spent, reason=reason)


def return_draw(connection: Connection, holder: Holder, charge: Charge, reason: str) -> Charge:
    """End a charge that was taken over in its draw, and give its epsilon back.

    Raises
    ------
    ChargeLostError, DrawsExhaustedError, ReadingsExhaustedError
        As :meth:`suffice.storage.ledger.ledger.Ledger.return_draw`.
    """
    row = read_account_row(connection, charge.dataset, lock=True)
    current = read_charge(connection, holder.ledger_id, charge.charge_id, lock=True)
    if current.drawing_epoch is None or current.epoch <= current.drawing_epoch:
        message = f"the draw of {current.label} is not returned: nobody took it over"
        raise LedgerError(message)
    _check_returnable(connection, current, row.failed_readings)
    before = (ChargeState.DRAWING,)
    move(connection, holder, charge, before, state=ChargeState.ABANDONED, draw_returned=True)
    count = current.loss.count
    shift(connection, row, charge.window, reserved=-count, spent=0)
    return _abandoned(connection, holder, charge, returned=count, reason=reason, draw_returned=True)


def is_returnable(connection: Connection, charge: Charge) -> bool:
    """Tell whether the number of draws and of failed attempts of a key lets another draw be returned."""
    row = read_account_row(connection, charge.dataset)
    with suppress(DrawsExhaustedError, ReadingsExhaustedError):
        _check_returnable(connection, charge, row.failed_readings)
        return True
    return False


def _check_returnable(connection: Connection, charge: Charge, allowed: int) -> None:
    if count_returned(connection, charge) >= MOST_RETURNED_DRAWS:
        raise DrawsExhaustedError(charge.label, MOST_RETURNED_DRAWS)
    if count_failed(connection, charge) + (charge.drawing_epoch or 1) - 1 >= allowed:
        raise ReadingsExhaustedError(charge.label, allowed)


def _abandoned(
    connection: Connection,
    holder: Holder,
    charge: Charge,
    *,
    returned: int,
    reason: str,
    draw_returned: bool = False,
) -> Charge:
    amount = {stated_name("returned", charge.loss.measure): returned}
    stated = {**amount, "draw_returned": draw_returned, "reason": reason}
    append_entry(connection, EntryKind.ABANDONED, holder.clock(), {**_step(charge), **stated})
    return read_charge(connection, holder.ledger_id, charge.charge_id)


def _forget_manifest(connection: Connection, charge: Charge) -> None:
    """Let the bytes go of a charge that ends in the same transaction."""
    for staged in (tables.staged_manifests, tables.staged_files):
        connection.execute(delete(staged).where(staged.c.charge_id == charge.charge_id))


def read_staged_file(connection: Connection, charge: Charge, name: str) -> bytes | None:
    """Return a data file that the ledger keeps of a staged charge, if it does."""
    columns = tables.staged_files.c
    query = select(columns.content).where(columns.charge_id == charge.charge_id, columns.name == name)
    content: bytes | None = connection.scalar(query)
    return content


def read_staged_names(connection: Connection, charge: Charge) -> frozenset[str]:
    """Return the names of the data files that the ledger keeps of a staged charge."""
    columns = tables.staged_files.c
    return frozenset(connection.scalars(select(columns.name).where(columns.charge_id == charge.charge_id)))


def _step(charge: Charge) -> dict[str, object]:
    """Return what every entry of a charge's move states."""
    return {"charge_id": charge.charge_id, "epoch": charge.epoch}


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


def follow_marker(connection: Connection, charge: Charge) -> None:
    """Note that a charge's marker stands in its store."""
    columns = tables.stores.c
    connection.execute(
        update(tables.stores)
        .where(columns.store_id == charge.store_id, columns.last_marker < charge.reserved_sequence)
        .values(last_marker=charge.reserved_sequence)
    )


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
