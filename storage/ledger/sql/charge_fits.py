"""Whether a charge fits its account, decided by one UPDATE; then its loss is reserved, and it begins.

Callers hold the account's row locked, so that an account and its windows change in one order. A charge's row
is locked after its account's and before the chain's head. A store's row changes after the head is locked, so
that its changes wait in one order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import insert, select, update

from suffice.errors import BudgetExceededError, WrongStoreError
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.storage.ledger import amounts
from suffice.storage.ledger.account import check_measure, counts_by_window
from suffice.storage.ledger.chain import EntryKind, coarse, format_time
from suffice.storage.ledger.charge import ChargeState, release_id
from suffice.storage.ledger.rerun import decide_amended
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import (
    amount_of,
    append_entry,
    charge_of,
    charge_query,
    check_owner,
    insert_unless_there,
    measure_of,
    most_taken_by_a_window,
    read_charge,
    read_plan,
    remaining_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Row

    from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
    from suffice.storage.ledger.charge import Charge, ChargeRequest


def take(connection: Connection, row: Row[Any], window: str, count: int) -> bool:
    """Reserve so many smallest amounts if they remain: the UPDATE that decides."""
    if count > row.granted:  # it may be more than a database counts
        return False
    accounts, windows = tables.accounts.c, tables.windows.c
    if not counts_by_window(row.per_window, window):
        taken = accounts.spent + accounts.reserved + most_taken_by_a_window(row.dataset)
        done = connection.execute(
            update(tables.accounts)
            .where(accounts.dataset == row.dataset, taken + count <= accounts.granted)
            .values(reserved=accounts.reserved + count)
        )
        return done.rowcount == 1
    key = (windows.dataset == row.dataset, windows.window == window)
    if connection.scalar(select(windows.window).where(*key)) is None:  # the account's lock is held
        connection.execute(
            insert(tables.windows).values(dataset=row.dataset, window=window, spent=0, reserved=0)
        )
    left = select(accounts.granted - accounts.spent - accounts.reserved)
    left_by_all = left.where(accounts.dataset == row.dataset).scalar_subquery()
    done = connection.execute(
        update(tables.windows)
        .where(*key, windows.spent + windows.reserved + count <= left_by_all)
        .values(reserved=windows.reserved + count)
    )
    return done.rowcount == 1


def shift(connection: Connection, row: Row[Any], window: str, *, reserved: int, spent: int) -> None:
    """Move smallest amounts between reserved, spent and free, on the row that the charge counts on."""
    by_window = counts_by_window(row.per_window, window)
    table = tables.windows if by_window else tables.accounts
    statement = update(table).where(table.c.dataset == row.dataset)
    if by_window:
        statement = statement.where(table.c.window == window)
    connection.execute(statement.values(reserved=table.c.reserved + reserved, spent=table.c.spent + spent))


def exceeded_error(connection: Connection, row: Row[Any], request: ChargeRequest) -> BudgetExceededError:
    """Return the error for a request that its account cannot cover."""
    loss, remaining = loss_of_request(row, request), remaining_in(connection, row, request.window)
    where = f" in window {request.window}" if counts_by_window(row.per_window, request.window) else ""
    message = (
        f"the account {row.dataset} has {loss.measure} {format_number(remaining)} left{where} of "
        f"{format_number(amount_of(row, row.granted))}, the release asks for {loss.text}"
    )
    return BudgetExceededError(message, requested=loss.amount, remaining=remaining)


def loss_of_request(row: Row[Any], request: ChargeRequest) -> PrivacyLoss:
    """Return what a request costs an account.

    Raises
    ------
    GuaranteeError
        Where the account counts another measure.
    """
    return check_measure(request, measure_of(row))


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
    query = charge_query().where(
        columns.dataset == request.dataset,
        columns.name == request.name,
        columns.window == request.window,
        columns.amendment != request.amendment,
        columns.state != ChargeState.ABANDONED,
    )
    others = [charge_of(connection, row, ledger_id) for row in connection.execute(query)]
    return decide_amended(others, request, plan_of=partial(read_plan, connection))


def start(
    connection: Connection,
    holder: Holder,
    row: Row[Any],
    request: ChargeRequest,
    *,
    attempt: int,
    amends: AmendedRelease | None,
) -> Charge:
    """Reserve what a request costs and begin its charge; the account's row is locked.

    Raises
    ------
    BudgetExceededError, NameTakenError, WrongStoreError
    """
    measure, count = measure_of(row), loss_of_request(row, request).count
    if not take(connection, row, request.window, count):
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
        amounts.stated_name("charged", measure): count,
        "plan_hash": request.plan_hash,
        "store_id": request.store_id,
        "store_uri": request.store_uri,
        "witness": row.witness or request.witness,
    }
    return begin(connection, holder, payload, measure, request.plan_json)


def begin(
    connection: Connection,
    holder: Holder,
    payload: Mapping[str, Any],
    measure: PrivacyMeasure,
    plan_json: str,
) -> Charge:
    """Begin the charge that an entry's payload states, which was paid for in the same transaction.

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
            **amounts.read(payload, measure),
            state=ChargeState.RESERVED,
            marked=False,
            drew=False,
            draw_returned=False,
            epoch=1,
            holder=holder.token,
            holder_process=holder.process,
            lease_expires=holder.lease_from_now(),
            reserved_sequence=entry.sequence,
            created_at=format_time(coarse(now)),
        )
    )
    return read_charge(connection, holder.ledger_id, charge_id)


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
