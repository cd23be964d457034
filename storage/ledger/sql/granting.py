"""What owners grant in an SQL database: an amount, its terms, and the places of rows and releases.

Callers hold the account's row locked, so that an account and its windows change in one order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, text, update

from suffice.errors import BudgetExceededError, GuaranteeError, UsageError
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.storage.ledger.account import (
    ROW,
    UNGUARDED,
    AccountTerms,
    KnownStore,
    NamedAudit,
    check_new_contract,
    check_sources,
)
from suffice.storage.ledger.amounts import stated
from suffice.storage.ledger.chain import canonical_json
from suffice.storage.ledger.charge import DEFAULT_ALLOWED
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import (
    audit_of,
    checksums_of,
    contract_of,
    insert_unless_there,
    most_taken_by_a_window,
    read_account,
    read_account_row,
    sources_of,
    stores_of,
    summary_of,
    summary_query,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
    from suffice.storage.ledger.charge import ChargeSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsAsked:
    """The terms that a grant states; None where it leaves one out. Its total is of a measure."""

    measure: PrivacyMeasure
    neighboring: str | None
    unit: str | None
    per_window: str | None
    units_disjoint: bool | None


Allowed = dict[str, list[str] | str | int | None]
"""What an account allows and demands, by column."""

_READ_BY_CONTRACT = frozenset({"csv", "parquet", "delta", "iceberg"})
"""Kinds of sources whose files a contract may read otherwise than they are typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingTerms:
    """What holds until another grant: places of rows and releases, checksums, tries; None where left out."""

    sources: Sequence[str] | None = None
    stores: Sequence[str] | None = None
    checksums: str | None = None
    witness: str | None = None
    contract: DataContract | None = None
    failed_readings: int | None = None
    max_windows: int | None = None
    audit: NamedAudit | None = None

    def replacing(self, row: Row[Any] | None) -> Allowed:
        """Return what holds from now on; empty text demands none, and `max_windows` of 0 assumes none."""
        sources, stores = (sources_of(row), stores_of(row)) if row is not None else ((), ())
        checksums, witness = (checksums_of(row), row.witness) if row is not None else (None, None)
        contract = self.contract or (contract_of(row) if row is not None else None)
        before = DEFAULT_ALLOWED if row is None else row.failed_readings
        assumed = None if row is None else row.max_windows
        audit = self.audit or (audit_of(row) if row is not None else None)
        return {
            "sources": list(sources if self.sources is None else self.sources),
            "stores": list(stores if self.stores is None else self.stores),
            "checksums": checksums if self.checksums is None else self.checksums or None,
            "witness": witness if self.witness is None else self.witness or None,
            "contract": contract.canonical if contract else None,
            "contract_sha256": contract.sha256 if contract else None,
            "audit_sha256": audit.sha256 if audit else None,
            "audit_plan_hash": audit.plan_hash if audit else None,
            "failed_readings": before if self.failed_readings is None else self.failed_readings,
            "max_windows": assumed if self.max_windows is None else self.max_windows or None,
        }


UNCHANGED = LastingTerms()


def write_grant(
    connection: Connection,
    dataset: str,
    *,
    total: int,
    terms: TermsAsked,
    places: LastingTerms,
    unguarded: bool,
) -> dict[str, object] | None:
    """Make an account or change its total, its places, its list of checksums and its contract.

    Returns
    -------
    dict or None
        What the account is granted now, for the chain; None where nothing changed.

    Raises
    ------
    GuaranteeError, BudgetExceededError, UsageError
        As :meth:`suffice.storage.ledger.ledger.Ledger.grant`.
    """
    query = select(tables.accounts).where(tables.accounts.c.dataset == dataset).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        fixed = AccountTerms(
            measure=terms.measure,
            neighboring=terms.neighboring or "add_or_remove_one",
            unit=terms.unit or (places.contract.unit_name if places.contract else ROW),
            per_window=terms.per_window,
            units_disjoint=terms.units_disjoint or False,
        )
        allowed = places.replacing(None)
        check_sources(dataset, fixed, None, places.sources or ())
        _check_contract(dataset, fixed, None, places.contract)
        _check_guarded(dataset, allowed, unguarded=unguarded)
        values = {**_columns(fixed), **_texts(allowed), "granted": total}
        zeros = {"spent": 0, "reserved": 0}
        if insert_unless_there(connection, tables.accounts, dataset=dataset, **values, **zeros):
            return _granted(dataset, fixed, allowed, total)
        row = connection.execute(query).one()  # another grant was the first, just now
    fixed = terms_of(row)
    _check_same_terms(dataset, fixed, terms)
    kept = sources_of(row)
    check_sources(dataset, fixed, kept, kept if places.sources is None else places.sources)
    allowed = places.replacing(row)
    _check_contract(dataset, fixed, contract_of(row), places.contract)
    if places.contract is not None and contract_of(row) is None:
        _check_first_contract(connection, dataset, fixed, places.contract)
    _check_guarded(dataset, allowed, unguarded=unguarded)
    if total == row.granted and allowed == UNCHANGED.replacing(row):
        return None
    _set_total(connection, dataset, total, allowed)
    return _granted(dataset, fixed, allowed, total)


def _check_contract(
    dataset: str, terms: AccountTerms, before: DataContract | None, now: DataContract | None
) -> None:
    if now is not None:
        check_new_contract(dataset, terms, before, now)


def _check_first_contract(
    connection: Connection, dataset: str, terms: AccountTerms, contract: DataContract
) -> None:
    """Refuse a first contract of files whose windows were charged: it can move their rows."""
    if terms.per_window is None or contract.source.kind not in _READ_BY_CONTRACT:
        return
    charges = select(tables.charges).where(tables.charges.c.dataset == dataset).limit(1)
    if connection.execute(charges).first() is not None:
        message = (
            f"the account {dataset} has charges by window that were read without a contract, by which a row "
            "may lie in another window: a contract needs an account of its own"
        )
        raise GuaranteeError(message)


def _check_guarded(dataset: str, allowed: Allowed, *, unguarded: bool) -> None:
    """Refuse an account with a contract that nothing guards, unless its owner says that it is so.

    Raises
    ------
    UsageError
    """
    if allowed["contract"] is None or allowed["witness"] or allowed["stores"] or unguarded:
        return
    message = f"{UNGUARDED.format(dataset)}, or say that it is so with --unwitnessed"
    raise UsageError(message)


def _granted(dataset: str, terms: AccountTerms, allowed: Allowed, total: int) -> dict[str, object]:
    return stated({"dataset": dataset, **_columns(terms), **allowed, "granted": total}, terms.measure)


def _texts(allowed: Allowed) -> dict[str, str | int | None]:
    """Return what the account's columns hold: lists as JSON."""
    return {
        column: canonical_json(value) if isinstance(value, list) else value
        for column, value in allowed.items()
    }


def _set_total(connection: Connection, dataset: str, total: int, allowed: Allowed) -> None:
    columns = tables.accounts.c
    taken = columns.spent + columns.reserved + most_taken_by_a_window(dataset)
    done = connection.execute(
        update(tables.accounts)
        .where(columns.dataset == dataset, taken <= total)
        .values(granted=total, **_texts(allowed))
    )
    if done.rowcount != 1:
        account = read_account(connection, read_account_row(connection, dataset))
        used, lowered = account.granted - account.remaining, account.measure.loss(total)
        message = (
            f"the account {dataset} cannot be lowered to {lowered.text}: "
            f"{format_number(used)} is spent or reserved"
        )
        raise BudgetExceededError(message, requested=used, remaining=lowered.amount)


def _check_same_terms(dataset: str, fixed: AccountTerms, asked: TermsAsked) -> None:
    for what, first, now in (
        ("the measure", fixed.measure, asked.measure),
        ("neighboring", fixed.neighboring, asked.neighboring),
        ("unit", fixed.unit, asked.unit),
        ("per window", fixed.per_window, asked.per_window),
        ("units disjoint", fixed.units_disjoint, asked.units_disjoint),
    ):
        if now is not None and now != first:
            message = (
                f"the first grant of {dataset} fixed {what}: {in_words(str(first))}; it cannot become "
                f"{in_words(str(now))}"
            )
            raise GuaranteeError(message)


def _columns(terms: AccountTerms) -> dict[str, object]:
    return {
        "measure": str(terms.measure),
        "neighboring": terms.neighboring,
        "unit": terms.unit,
        "per_window": terms.per_window,
        "units_disjoint": terms.units_disjoint,
    }


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


_UNFINISHED = "state IN ('reserved', 'drawing')"
"""As the index on them says it: SQLite compares the texts."""


def read_unfinished(connection: Connection, store_id: str) -> Sequence[ChargeSummary]:
    """Return the charges of a store that are reserved or drawing: those of runs that go on, or died."""
    columns = tables.charges.c
    query = summary_query().where(columns.store_id == store_id, text(_UNFINISHED))
    return [summary_of(row) for row in connection.execute(query.order_by(columns.reserved_sequence))]
