"""The ledger on any SQL database: SQLAlchemy Core, one durable transaction a change.

Every transaction locks rows in one order (account, window, charge, head of the chain), so that none
can wait for another in a circle. What differs by database is in the engine that it is given.
"""
# ruff: noqa: D102 - the contract, suffice.storage.ledger.Ledger, describes these methods

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from suffice.errors import (
    ChargeInProgressError,
    ChargeLostError,
    CommitUnknownError,
    LedgerError,
    UsageError,
)
from suffice.storage import tables
from suffice.storage.account import check_guarantee
from suffice.storage.chain import EntryKind, check_chain, coarse, format_time
from suffice.storage.charge import (
    LIVE,
    Charge,
    ChargeRequest,
    ChargeState,
    check_epsilon,
    check_name,
    release_id,
)
from suffice.storage.ledger import LEASE, Ledger, utc_now
from suffice.storage.replay import compare, replay, sha256
from suffice.storage.rerun import Decision, decide_rerun, in_progress_error
from suffice.storage.sql_balance import TermsAsked, exceeded_error, shift, take, write_grant
from suffice.storage.sql_chain import append_entry, read_entries, read_head
from suffice.storage.sql_rows import (
    read_account,
    read_account_row,
    read_charge,
    read_newest,
    read_tables,
    sources_of,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from fractions import Fraction

    from sqlalchemy import Connection, Engine, Row

    from suffice.storage.account import Account
    from suffice.storage.chain import Entry


class SqlLedger(Ledger):
    """A ledger in an SQL database.

    Parameters
    ----------
    engine : Engine
        Its transactions are durable when they return, and exclude or wait for one another.
    reading : Engine
        The same database; its transactions see one snapshot.
    clock, lease
        As for :func:`suffice.storage.ledger.open_ledger`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        reading: Engine,
        clock: Callable[[], datetime] = utc_now,
        lease: timedelta = LEASE,
    ) -> None:
        self._engine = engine
        self._reading = reading
        self._clock = clock
        self._lease = lease
        self._holder = secrets.token_hex(16)
        with self._read() as connection:
            self.ledger_id = str(connection.scalar(select(tables.ledger.c.ledger_id)))

    def now(self) -> datetime:
        return self._clock()

    def close(self) -> None:
        self._engine.dispose()

    # Owners

    def grant(
        self,
        dataset: str,
        *,
        epsilon: Fraction,
        neighboring: str | None = None,
        unit: str | None = None,
        sources: Sequence[str] | None = None,
        per_window: str | None = None,
        units_disjoint: bool = False,
        reason: str,
    ) -> Account:
        check_name("dataset", dataset)
        if not reason.strip():
            message = "a grant needs a reason, for the record"
            raise UsageError(message)
        if sources is not None and not all(sources):
            message = "an allowed source cannot be empty"
            raise UsageError(message)
        with self._write() as connection:
            granted = write_grant(
                connection,
                dataset,
                micro=check_epsilon(epsilon),
                terms=TermsAsked(
                    neighboring=neighboring,
                    unit=unit,
                    per_window=per_window,
                    units_disjoint=units_disjoint or None,
                ),
                sources=sources,
            )
            if granted is not None:
                self._append(connection, EntryKind.GRANT, {**granted, "reason": reason})
            return read_account(connection, read_account_row(connection, dataset))

    # Readers

    def account(self, dataset: str) -> Account:
        with self._read() as connection:
            return read_account(connection, read_account_row(connection, dataset))

    def accounts(self, dataset: str | None = None) -> tuple[Account, ...]:
        if dataset is not None:
            return (self.account(dataset),)
        with self._read() as connection:
            rows = connection.execute(select(tables.accounts).order_by(tables.accounts.c.dataset)).all()
            return tuple(read_account(connection, row) for row in rows)

    def find(self, dataset: str, name: str, window: str) -> Charge | None:
        with self._read() as connection:
            return read_newest(connection, self.ledger_id, (dataset, name, window))

    def entry_hash(self, sequence: int) -> str | None:
        query = select(tables.entries.c.hash).where(tables.entries.c.sequence == sequence)
        with self._read() as connection:
            return connection.scalar(query)

    def check(self, request: ChargeRequest) -> None:
        with self._read() as connection:
            row = read_account_row(connection, request.dataset)
            check_guarantee(request, terms_of(row), sources_of(row))
            charge = read_newest(connection, self.ledger_id, _key(request))
            if charge is not None and charge.state is ChargeState.RESERVED:
                return
            if read_account(connection, row).remaining_in(request.window) < request.epsilon:
                raise exceeded_error(connection, row, request)

    def verify(self) -> tuple[str, ...]:
        with self._read() as connection:
            ledger_id = connection.scalar(select(tables.ledger.c.ledger_id))
            entries, head, found = read_entries(connection), read_head(connection), read_tables(connection)
        problems = check_chain(entries, head)
        if problems:
            return problems
        books, problems = replay(entries)
        if problems:
            return problems
        differing = [] if ledger_id == books.ledger_id else ["the ledger's id differs from its first entry"]
        for table, expected in books.tables().items():
            differing += compare(table, expected, found[table])
        return tuple(differing)

    # Runs

    def reserve(self, request: ChargeRequest, *, new_attempt: bool = False) -> Charge:
        with self._write() as connection:
            row = read_account_row(connection, request.dataset, lock=True)
            charge = read_newest(connection, self.ledger_id, _key(request))
            decision = decide_rerun(charge, request, now=self.now(), new_attempt=new_attempt)
            if decision in {Decision.START, Decision.TAKE_OVER}:
                check_guarantee(request, terms_of(row), sources_of(row))
            if charge is None or decision is Decision.START:
                return self._start(connection, row, request, attempt=charge.attempt + 1 if charge else 1)
            if decision is Decision.TAKE_OVER:
                return self._claim(connection, charge)
            if decision in {Decision.ABANDON_AND_REFUSE, Decision.ABANDON_AND_START}:
                message = f"{request.label} was begun and left by another run just now: run again"
                raise ChargeInProgressError(message)
            return charge

    def _start(
        self, connection: Connection, row: Row[Any], request: ChargeRequest, *, attempt: int
    ) -> Charge:
        micro = check_epsilon(request.epsilon)
        if not take(connection, row, request.window, micro):
            raise exceeded_error(connection, row, request)
        if connection.scalar(select(tables.names.c.name).where(tables.names.c.name == request.name)) is None:
            connection.execute(insert(tables.names).values(name=request.name, dataset=request.dataset))
        now, charge_id = self.now(), uuid4().hex
        payload = {
            "charge_id": charge_id,
            "release_id": release_id(self.ledger_id, charge_id),
            "dataset": request.dataset,
            "name": request.name,
            "window": request.window,
            "attempt": attempt,
            "micro_epsilon": micro,
            "plan_hash": request.plan_hash,
            "store_id": request.store_id,
            "store_uri": request.store_uri,
        }
        entry = self._append(connection, EntryKind.RESERVED, payload)
        connection.execute(
            insert(tables.charges).values(
                **payload,
                state=ChargeState.RESERVED,
                drew=False,
                epoch=1,
                holder=self._holder,
                lease_expires=format_time(now + self._lease),
                plan_json=request.plan_json,
                reserved_sequence=entry.sequence,
                created_at=format_time(coarse(now)),
            )
        )
        return read_charge(connection, self.ledger_id, charge_id)

    def renew(self, charge: Charge) -> None:
        with self._write() as connection:
            self._move(connection, charge, LIVE, lease_expires=format_time(self.now() + self._lease))

    def take_over(self, charge: Charge) -> Charge:
        with self._write() as connection:
            return self._claim(connection, charge)

    def _claim(self, connection: Connection, seen: Charge) -> Charge:
        charge = read_charge(connection, self.ledger_id, seen.charge_id, lock=True)
        if charge.epoch != seen.epoch or charge.state not in LIVE:
            raise _lost(charge)
        # The bytes of a staged charge are fixed: two runs that publish it put the same release.
        if charge.state is not ChargeState.STAGED and charge.lease_expires > self.now():
            raise in_progress_error(charge)
        connection.execute(
            update(tables.charges)
            .where(tables.charges.c.charge_id == charge.charge_id, tables.charges.c.epoch == charge.epoch)
            .values(
                epoch=charge.epoch + 1,
                holder=self._holder,
                lease_expires=format_time(self.now() + self._lease),
            )
        )
        self._append(
            connection, EntryKind.TAKEN_OVER, {"charge_id": charge.charge_id, "epoch": charge.epoch + 1}
        )
        return read_charge(connection, self.ledger_id, charge.charge_id)

    def enter_drawing(self, charge: Charge) -> Charge:
        with self._write() as connection:
            row = read_account_row(connection, charge.dataset, lock=True)
            self._move(connection, charge, (ChargeState.RESERVED,), state=ChargeState.DRAWING, drew=True)
            micro = check_epsilon(charge.epsilon)
            shift(connection, row, charge.window, reserved=-micro, spent=micro)
            entry = self._append(connection, EntryKind.DRAWING, _step(charge))
            connection.execute(
                update(tables.charges)
                .where(tables.charges.c.charge_id == charge.charge_id)
                .values(drawing_sequence=entry.sequence, drawing_hash=entry.hash)
            )
            return read_charge(connection, self.ledger_id, charge.charge_id)

    def stage(self, charge: Charge, manifest: bytes) -> Charge:
        with self._write() as connection:
            self._move(
                connection, charge, (ChargeState.DRAWING,), state=ChargeState.STAGED, manifest=manifest
            )
            self._append(connection, EntryKind.STAGED, {**_step(charge), "manifest_sha256": sha256(manifest)})
            return read_charge(connection, self.ledger_id, charge.charge_id)

    def publish(self, charge: Charge) -> Charge:
        with self._write() as connection:
            current = read_charge(connection, self.ledger_id, charge.charge_id, lock=True)
            if current.state is ChargeState.PUBLISHED:
                return current
            self._move(connection, charge, (ChargeState.STAGED,), state=ChargeState.PUBLISHED)
            self._append(connection, EntryKind.PUBLISHED, _step(charge))
            return read_charge(connection, self.ledger_id, charge.charge_id)

    def abandon(self, charge: Charge, *, reason: str) -> Charge:
        with self._write() as connection:
            row = read_account_row(connection, charge.dataset, lock=True)
            current = read_charge(connection, self.ledger_id, charge.charge_id, lock=True)
            self._move(connection, charge, LIVE, state=ChargeState.ABANDONED)
            returned = 0 if current.drew else check_epsilon(current.epsilon)
            shift(connection, row, charge.window, reserved=-returned, spent=0)
            payload = {**_step(charge), "micro_returned": returned, "reason": reason}
            self._append(connection, EntryKind.ABANDONED, payload)
            return read_charge(connection, self.ledger_id, charge.charge_id)

    # Inside a transaction

    def _move(
        self,
        connection: Connection,
        charge: Charge,
        before: Sequence[ChargeState],
        **values: object,
    ) -> None:
        """Change a charge's row if this object still holds it at that epoch in one of these states."""
        columns = tables.charges.c
        done = connection.execute(
            update(tables.charges)
            .where(
                columns.charge_id == charge.charge_id,
                columns.epoch == charge.epoch,
                columns.holder == self._holder,
                columns.state.in_(before),
            )
            .values(**values)
        )
        if done.rowcount != 1:
            raise _lost(read_charge(connection, self.ledger_id, charge.charge_id))

    def _append(self, connection: Connection, kind: EntryKind, payload: Mapping[str, object]) -> Entry:
        return append_entry(connection, kind, self.now(), payload)

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """Run one transaction: all of it is durable when the block is left, or nothing has changed."""
        with database_errors(), self._engine.connect() as connection:
            transaction = connection.begin()
            yield connection
            try:
                transaction.commit()
            except SQLAlchemyError as error:
                connection.invalidate()  # else the pool would keep it, inside its transaction
                message = "the ledger's commit failed and may have landed: its epsilon counts as spent"
                raise CommitUnknownError(message) from error

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        """Run one read-only transaction on one snapshot."""
        with database_errors(), self._reading.connect() as connection, connection.begin():
            yield connection


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except SQLAlchemyError as error:
        message = f"the ledger's database failed: {getattr(error, 'orig', None) or type(error).__name__}"
        raise LedgerError(message) from error


def _lost(charge: Charge) -> ChargeLostError:
    return ChargeLostError(
        f"this run no longer holds {charge.label}: the charge is {charge.state} at epoch {charge.epoch}"
    )


def _step(charge: Charge) -> dict[str, object]:
    return {"charge_id": charge.charge_id, "epoch": charge.epoch}


def _key(request: ChargeRequest) -> tuple[str, str, str]:
    return (request.dataset, request.name, request.window)
