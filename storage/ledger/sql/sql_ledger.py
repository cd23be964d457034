"""The ledger on any SQL database: SQLAlchemy Core, one durable transaction a change.

Every transaction locks rows in one order (account, charge, window, head of the chain), so that none
can wait for another in a circle. What differs by database is in the engine that it is given.
"""
# ruff: noqa: D102 - the contract, suffice.storage.ledger.ledger.Ledger, describes these methods

from __future__ import annotations

import secrets
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import func, select

from suffice.errors import ChargeInProgressError, LedgerError, UsageError
from suffice.storage.ledger.account import check_guarantee, check_same_contract
from suffice.storage.ledger.amounts import granted_loss
from suffice.storage.ledger.chain import EntryKind
from suffice.storage.ledger.charge import (
    LIVE,
    Charge,
    ChargeRequest,
    ChargeState,
    SpoolName,
    check_allowed,
    check_name,
    this_process,
)
from suffice.storage.ledger.ledger import LEASE, Ledger, utc_now
from suffice.storage.ledger.rerun import Decision, decide_rerun
from suffice.storage.ledger.sql import moves, tables
from suffice.storage.ledger.sql.charge_fits import (
    Holder,
    exceeded_error,
    find_amended,
    loss_of_request,
    start,
)
from suffice.storage.ledger.sql.examining import Examiner, write_checkpoint
from suffice.storage.ledger.sql.granting import (
    LastingTerms,
    TermsAsked,
    change_store,
    read_pins,
    read_sources,
    read_stores,
    read_stores_of_charges,
    read_unfinished,
    write_grant,
)
from suffice.storage.ledger.sql.moves import (
    claim,
    is_returnable,
    let_go,
    move,
    read_editions,
    read_failed,
    read_reconciled,
    read_returned_draws,
    reconcile,
)
from suffice.storage.ledger.sql.rows import (
    append_entry,
    audit_of,
    checksums_of,
    contract_of,
    find_charge,
    read_account,
    read_account_row,
    read_charge,
    read_charges,
    read_entries,
    read_entry,
    read_head,
    read_held,
    read_newest,
    read_plan,
    read_returned,
    read_unsettled,
    read_windows,
    read_zone_data,
    remaining_in,
    sources_of,
    stores_of,
    terms_of,
)
from suffice.storage.ledger.sql.transactions import PATIENCE, TransactionPatience, change, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from fractions import Fraction

    from sqlalchemy import Connection, Engine, Row

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.account import Account, KnownStore, NamedAudit, WindowBalance
    from suffice.storage.ledger.chain import Entry, Examination, Head
    from suffice.storage.ledger.charge import ChargeSummary, HeldCharges, KeyCount, LostCharge, Reconciled
    from suffice.storage.ledger.sql.transactions import Turn

Result = TypeVar("Result")

MOST_WINDOWS = 366
_NONE: Mapping[str, bytes] = MappingProxyType({})
_MOST_EXAMINATIONS = 20
"""How often an examination is repeated because of entries that others append meanwhile."""


class _UndoneError(Exception):
    """Ends a transaction without effect; caught by the ledger that raised it."""

    def __init__(self, charge: Charge) -> None:
        self.charge = charge
        super().__init__()


class SqlLedger(Ledger):
    """A ledger in an SQL database.

    Parameters
    ----------
    engine : Engine
        Its transactions are durable when they return, and exclude or wait for one another.
    reading : Engine
        The same database; its transactions see one snapshot.
    clock, lease
        As for :func:`suffice.storage.ledger.opening.open_ledger`.
    patience : Patience
        How long to go on where the database ends transactions or cannot be reached.
    turn : callable
        Gives the context in which a transaction that writes has its turn, where the database has no order.
    most_kept : int
        See :class:`suffice.storage.ledger.ledger.Ledger`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        reading: Engine,
        clock: Callable[[], datetime] = utc_now,
        lease: timedelta = LEASE,
        patience: TransactionPatience = PATIENCE,
        turn: Turn = nullcontext,
        most_kept: int = 0,
    ) -> None:
        self.most_kept = most_kept
        self._engine = engine
        self._reading = reading
        self._clock = clock
        self._patience = patience
        self._turn = turn
        self._moment = threading.local()
        with self._read() as connection:
            self.ledger_id = str(connection.scalar(select(tables.ledger.c.ledger_id)))
        self._holder = Holder(
            ledger_id=self.ledger_id,
            token=secrets.token_hex(16),
            process=this_process(),
            clock=clock,
            lease=lease,
        )

    def now(self) -> datetime:
        return self._clock()

    def close(self) -> None:
        self._engine.dispose()

    # Owners

    def grant(
        self,
        dataset: str,
        *,
        epsilon: Fraction | None = None,
        rho: Fraction | None = None,
        neighboring: str | None = None,
        unit: str | None = None,
        sources: Sequence[str] | None = None,
        stores: Sequence[str] | None = None,
        per_window: str | None = None,
        units_disjoint: bool = False,
        checksums: str | None = None,
        witness: str | None = None,
        contract: DataContract | None = None,
        unwitnessed: bool = False,
        failed_readings: int | None = None,
        max_windows: int | None = None,
        audit: NamedAudit | None = None,
        reason: str,
    ) -> Account:
        check_name("dataset", dataset)
        if not reason.strip():
            message = "a grant needs a reason, for the record"
            raise UsageError(message)
        if not all((*(sources or ()), *(stores or ()))):
            message = "an allowed source or store cannot be empty"
            raise UsageError(message)
        total = granted_loss(epsilon, rho)
        if max_windows is not None and not 0 <= max_windows <= MOST_WINDOWS:
            message = f"at most {MOST_WINDOWS} windows lie in twelve months, not {max_windows}"
            raise UsageError(message)
        if failed_readings is not None:
            check_allowed(failed_readings)
        terms = TermsAsked(
            measure=total.measure,
            neighboring=neighboring,
            unit=unit,
            per_window=per_window,
            units_disjoint=units_disjoint or None,
        )

        def work(connection: Connection) -> Account:
            places = LastingTerms(
                sources=sources,
                stores=stores,
                checksums=checksums,
                witness=witness,
                contract=contract,
                failed_readings=failed_readings,
                max_windows=max_windows,
                audit=audit,
            )
            granted = write_grant(
                connection, dataset, total=total.count, terms=terms, places=places, unguarded=unwitnessed
            )
            if granted is not None:
                append_entry(connection, EntryKind.GRANT, self.now(), {**granted, "reason": reason})
            return read_account(connection, read_account_row(connection, dataset))

        return self._change(work)

    def adopt_store(self, store_id: str, *, uri: str) -> None:
        def work(connection: Connection) -> None:
            payload = {"store_id": store_id, "store_uri": uri}
            read_head(connection, lock=True)
            if change_store(connection, store_id, uri=uri, retired=False):
                append_entry(connection, EntryKind.STORE_ADOPTED, self.now(), payload)

        self._change(work)

    def retire_store(self, store_id: str, *, reason: str) -> None:
        if not reason.strip():
            message = "retiring a store needs a reason, for the record"
            raise UsageError(message)

        def work(connection: Connection) -> None:
            read_head(connection, lock=True)
            if change_store(connection, store_id, retired=True):
                payload = {"store_id": store_id, "reason": reason}
                append_entry(connection, EntryKind.STORE_RETIRED, self.now(), payload)

        self._change(work)

    # Readers

    def account(self, dataset: str) -> Account:
        with self._read() as connection:
            return read_account(connection, read_account_row(connection, dataset))

    def remaining(self, dataset: str, window: str) -> Fraction:
        with self._read() as connection:
            return remaining_in(connection, read_account_row(connection, dataset), window)

    def windows(self, dataset: str) -> Iterator[WindowBalance]:
        with self._read() as connection:
            yield from read_windows(connection, read_account_row(connection, dataset))

    def charges(self, dataset: str, *, last: int | None = None) -> Iterator[ChargeSummary]:
        with self._read() as connection:
            yield from read_charges(connection, dataset, last)

    def charge(self, charge_id: str) -> Charge | None:
        with self._read() as connection:
            return find_charge(connection, self.ledger_id, charge_id)

    def returned(self, dataset: str) -> dict[str, Fraction]:
        with self._read() as connection:
            return read_returned(connection, dataset)

    def held(self, dataset: str) -> Iterator[HeldCharges]:
        with self._read() as connection:
            yield from read_held(connection, dataset)

    def failed_readings(self, dataset: str) -> tuple[KeyCount, ...]:
        with self._read() as connection:
            return read_failed(connection, dataset)

    def returned_draws(self, dataset: str) -> tuple[KeyCount, ...]:
        with self._read() as connection:
            return read_returned_draws(connection, dataset)

    def is_returnable(self, charge: Charge) -> bool:
        with self._read() as connection:
            return is_returnable(connection, charge)

    def zone_data(self, dataset: str) -> str | None:
        with self._read() as connection:
            return read_zone_data(connection, dataset)

    def count_charges(self, dataset: str) -> int:
        query = select(func.count()).select_from(tables.charges).where(tables.charges.c.dataset == dataset)
        with self._read() as connection:
            return connection.execute(query).scalar_one()

    def unsettled(self) -> tuple[ChargeSummary, ...]:
        with self._read() as connection:
            return read_unsettled(connection)

    def accounts(self, dataset: str | None = None) -> tuple[Account, ...]:
        if dataset is not None:
            return (self.account(dataset),)
        with self._read() as connection:
            rows = connection.execute(select(tables.accounts)).all()
            # sorted here: a database may order text by the rules of a language
            return tuple(read_account(connection, row) for row in sorted(rows, key=lambda row: row.dataset))

    def checksums(self, dataset: str) -> str | None:
        with self._read() as connection:
            return checksums_of(read_account_row(connection, dataset))

    def contract(self, dataset: str) -> DataContract | None:
        row = self._account_row(dataset)
        return None if row is None else contract_of(row)

    def audit(self, dataset: str) -> NamedAudit | None:
        row = self._account_row(dataset)
        return None if row is None else audit_of(row)

    def witness(self, dataset: str) -> str | None:
        row = self._account_row(dataset)
        witness: str | None = None if row is None else row.witness
        return witness

    def find(self, dataset: str, name: str, window: str, *, amendment: int = 0) -> Charge | None:
        with self._read() as connection:
            return read_newest(connection, self.ledger_id, (dataset, name, window, amendment))

    def editions(self, dataset: str, name: str) -> dict[str, list[ChargeSummary]]:
        with self._read() as connection:
            return read_editions(connection, dataset, name)

    def head(self) -> Head:
        with self._read() as connection:
            return read_head(connection)

    def stores(self) -> tuple[KnownStore, ...]:
        with self._read() as connection:
            return read_stores(connection)

    def allowed_stores(self, dataset: str) -> tuple[str, ...]:
        with self._read() as connection:
            return read_pins(connection, dataset)

    def allowed_sources(self) -> dict[str, tuple[str, ...]]:
        with self._read() as connection:
            return read_sources(connection)

    def stores_of_charges(self) -> Sequence[tuple[int, str, str]]:
        with self._read() as connection:
            return read_stores_of_charges(connection)

    def reconciled(self) -> tuple[Reconciled, ...]:
        with self._read() as connection:
            return read_reconciled(connection)

    def unfinished(self, store_id: str) -> Sequence[ChargeSummary]:
        with self._read() as connection:
            return read_unfinished(connection, store_id)

    def plan(self, plan_hash: str) -> str:
        with self._read() as connection:
            return read_plan(connection, plan_hash)

    def entry(self, sequence: int) -> Entry | None:
        with self._read() as connection:
            return read_entry(connection, sequence)

    def entry_hash(self, sequence: int) -> str | None:
        query = select(tables.entries.c.hash).where(tables.entries.c.sequence == sequence)
        with self._read() as connection:
            return connection.scalar(query)

    def check(self, request: ChargeRequest) -> None:
        with self._read() as connection:
            row = read_account_row(connection, request.dataset)
            check_guarantee(request, terms_of(row), sources_of(row), stores_of(row))
            check_same_contract(request.dataset, row.contract_sha256, request.contract)
            charge = read_newest(connection, self.ledger_id, _key(request))
            if charge is not None and charge.state is ChargeState.RESERVED:
                return
            find_amended(connection, self.ledger_id, request)
            loss = loss_of_request(row, request)
            if remaining_in(connection, row, request.window) < loss.amount:
                raise exceeded_error(connection, row, request)

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        with self._read() as connection:
            yield from read_entries(connection, after=after)

    def examine(self, *, full: bool = False) -> Examination:
        with self._read() as connection:
            return Examiner(connection, full=full).examine()

    def add_checkpoint(self, *, full: bool = False) -> Examination:
        for _ in range(_MOST_EXAMINATIONS):
            with self._read() as connection:
                examiner = Examiner(connection, full=full)
                examination = examiner.examine()
            if examination.problems:
                return examination
            seal = partial(write_checkpoint, examined=examination.head, books=examiner.books, now=self.now())
            sealed = self._change(seal)
            if sealed is not None:
                return replace(examination, head=sealed)
        message = "others wrote to the ledger during every examination: try again when fewer runs are on"
        raise LedgerError(message)

    # Runs

    def reserve(self, request: ChargeRequest, *, new_attempt: bool = False) -> Charge:
        return self._change(lambda connection: self._reserved(connection, request, new_attempt=new_attempt))

    def rehearse(self, request: ChargeRequest) -> Charge:
        def work(connection: Connection) -> None:
            raise _UndoneError(self._reserved(connection, request, new_attempt=False))

        try:
            self._change(work)
        except _UndoneError as undone:
            return undone.charge
        raise AssertionError  # `work` always raises

    def _reserved(self, connection: Connection, request: ChargeRequest, *, new_attempt: bool) -> Charge:
        row = read_account_row(connection, request.dataset, lock=True)
        charge = read_newest(connection, self.ledger_id, _key(request))
        decision = decide_rerun(
            charge,
            request,
            now=self.now(),
            new_attempt=new_attempt,
            plan_of=partial(read_plan, connection),
        )
        if decision in {Decision.START, Decision.TAKE_OVER}:
            check_guarantee(request, terms_of(row), sources_of(row), stores_of(row))
            check_same_contract(request.dataset, row.contract_sha256, request.contract)
        if charge is None or decision is Decision.START:
            attempt = charge.attempt + 1 if charge else 1
            amends = find_amended(connection, self.ledger_id, request)
            return start(connection, self._holder, row, request, attempt=attempt, amends=amends)
        if decision is Decision.TAKE_OVER:
            return claim(connection, self._holder, charge)
        if decision in {Decision.ABANDON_AND_REFUSE, Decision.ABANDON_AND_START}:
            message = f"{request.label} was begun and left by another run just now: run again"
            raise ChargeInProgressError(message)
        return charge

    def renew(self, charge: Charge) -> None:
        def work(connection: Connection) -> None:
            move(connection, self._holder, charge, LIVE, lease_expires=self._holder.lease_from_now())

        self._change(work)

    def mark(self, charge: Charge) -> Charge:
        def work(connection: Connection) -> Charge:
            lease = self._holder.lease_from_now()
            move(connection, self._holder, charge, (ChargeState.RESERVED,), marked=True, lease_expires=lease)
            return read_charge(connection, self.ledger_id, charge.charge_id)

        return self._change(work)

    def let_go(self, charge: Charge) -> None:
        self._change(lambda connection: let_go(connection, self._holder, charge))

    def take_over(self, charge: Charge) -> Charge:
        return self._change(lambda connection: claim(connection, self._holder, charge))

    def enter_drawing(
        self, charge: Charge, *, spool: SpoolName | None = None, zone_data: str | None = None
    ) -> Charge:
        return self._change(
            lambda connection: moves.draw(connection, self._holder, charge, spool, zone_data=zone_data)
        )

    def stage(self, charge: Charge, manifest: bytes, *, files: Mapping[str, bytes] = _NONE) -> Charge:
        return self._change(lambda connection: moves.stage(connection, self._holder, charge, manifest, files))

    def staged_file(self, charge: Charge, name: str) -> bytes | None:
        with self._read() as connection:
            return moves.read_staged_file(connection, charge, name)

    def staged_names(self, charge: Charge) -> frozenset[str]:
        with self._read() as connection:
            return moves.read_staged_names(connection, charge)

    def publish(self, charge: Charge) -> Charge:
        return self._change(lambda connection: moves.publish(connection, self._holder, charge))

    def abandon(self, charge: Charge, *, reason: str) -> Charge:
        return self._change(lambda connection: moves.abandon(connection, self._holder, charge, reason))

    def return_draw(self, charge: Charge, *, reason: str) -> Charge:
        return self._change(lambda connection: moves.return_draw(connection, self._holder, charge, reason))

    def reconcile(self, lost: Sequence[LostCharge], *, beyond: int, reason: str) -> tuple[Charge, ...]:
        def work(connection: Connection) -> tuple[Charge, ...]:
            return reconcile(connection, self._holder, lost, beyond=beyond, reason=reason)

        return self._change(work)

    # Transactions

    def _change(self, work: Callable[[Connection], Result]) -> Result:
        return change(self._engine, work, patience=self._patience, turn=self._turn)

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        with snapshot(self._reading) as connection:
            self._moment.connection = connection
            try:
                yield
            finally:
                del self._moment.connection

    def _account_row(self, dataset: str) -> Row[Any] | None:
        with self._read() as connection:
            query = select(tables.accounts).where(tables.accounts.c.dataset == dataset)
            return connection.execute(query).one_or_none()

    def _read(self) -> AbstractContextManager[Connection]:
        connection: Connection | None = getattr(self._moment, "connection", None)
        return snapshot(self._reading) if connection is None else nullcontext(connection)


def _key(request: ChargeRequest) -> tuple[str, str, str, int]:
    return (request.dataset, request.name, request.window, request.amendment)
