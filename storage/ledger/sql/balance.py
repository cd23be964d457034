"""Epsilon on its way in an SQL database: granted, reserved, returned, spent.

Callers hold the account's row locked, so that an account and its windows change in one order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from suffice.errors import BudgetExceededError, GuaranteeError, UsageError
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.storage.ledger.account import (
    ROW,
    UNGUARDED,
    AccountTerms,
    NamedAudit,
    check_new_contract,
    check_sources,
    counts_by_window,
)
from suffice.storage.ledger.chain import canonical_json
from suffice.storage.ledger.charge import DEFAULT_ALLOWED
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import (
    audit_of,
    checksums_of,
    contract_of,
    epsilon_of,
    insert_unless_there,
    most_taken_by_a_window,
    read_account,
    read_account_row,
    remaining_in,
    sources_of,
    stores_of,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.charge import ChargeRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsAsked:
    """The terms that a grant states; None where it leaves one out."""

    neighboring: str | None
    unit: str | None
    per_window: str | None
    units_disjoint: bool | None


Allowed = dict[str, list[str] | str | int | None]
"""What an account allows and demands, by column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
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


UNCHANGED = Places()


def write_grant(
    connection: Connection, dataset: str, *, micro: int, terms: TermsAsked, places: Places, unguarded: bool
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
            neighboring=terms.neighboring or "add_or_remove_one",
            unit=terms.unit or (places.contract.unit if places.contract else ROW),
            per_window=terms.per_window,
            units_disjoint=terms.units_disjoint or False,
        )
        allowed = places.replacing(None)
        check_sources(dataset, fixed, None, places.sources or ())
        _check_contract(dataset, fixed, None, places.contract)
        _check_guarded(dataset, allowed, unguarded=unguarded)
        values = {**_columns(fixed), **_texts(allowed), "micro_granted": micro}
        zeros = {"micro_spent": 0, "micro_reserved": 0}
        if insert_unless_there(connection, tables.accounts, dataset=dataset, **values, **zeros):
            return _granted(dataset, fixed, allowed, micro)
        row = connection.execute(query).one()  # another grant was the first, just now
    fixed = terms_of(row)
    _check_same_terms(dataset, fixed, terms)
    kept = sources_of(row)
    check_sources(dataset, fixed, kept, kept if places.sources is None else places.sources)
    allowed = places.replacing(row)
    _check_contract(dataset, fixed, contract_of(row), places.contract)
    _check_guarded(dataset, allowed, unguarded=unguarded)
    if micro == row.micro_granted and allowed == UNCHANGED.replacing(row):
        return None
    _set_total(connection, dataset, micro, allowed)
    return _granted(dataset, fixed, allowed, micro)


def _check_contract(
    dataset: str, terms: AccountTerms, before: DataContract | None, now: DataContract | None
) -> None:
    if now is not None:
        check_new_contract(dataset, terms, before, now)


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


def _granted(dataset: str, terms: AccountTerms, allowed: Allowed, micro: int) -> dict[str, object]:
    return {"dataset": dataset, **_columns(terms), **allowed, "micro_granted": micro}


def _texts(allowed: Allowed) -> dict[str, str | int | None]:
    """Return what the account's columns hold: lists as JSON."""
    return {
        column: canonical_json(value) if isinstance(value, list) else value
        for column, value in allowed.items()
    }


def take(connection: Connection, row: Row[Any], window: str, micro: int) -> bool:
    """Reserve epsilon if that much remains: the UPDATE that decides."""
    accounts, windows = tables.accounts.c, tables.windows.c
    if not counts_by_window(row.per_window, window):
        taken = accounts.micro_spent + accounts.micro_reserved + most_taken_by_a_window(row.dataset)
        done = connection.execute(
            update(tables.accounts)
            .where(accounts.dataset == row.dataset, taken + micro <= accounts.micro_granted)
            .values(micro_reserved=accounts.micro_reserved + micro)
        )
        return done.rowcount == 1
    key = (windows.dataset == row.dataset, windows.window == window)
    if connection.scalar(select(windows.window).where(*key)) is None:  # the account's lock is held
        connection.execute(
            insert(tables.windows).values(dataset=row.dataset, window=window, micro_spent=0, micro_reserved=0)
        )
    left = select(accounts.micro_granted - accounts.micro_spent - accounts.micro_reserved)
    left_by_all = left.where(accounts.dataset == row.dataset).scalar_subquery()
    done = connection.execute(
        update(tables.windows)
        .where(*key, windows.micro_spent + windows.micro_reserved + micro <= left_by_all)
        .values(micro_reserved=windows.micro_reserved + micro)
    )
    return done.rowcount == 1


def shift(connection: Connection, row: Row[Any], window: str, *, reserved: int, spent: int) -> None:
    """Move epsilon between reserved, spent and free, on the row that the charge counts on."""
    by_window = counts_by_window(row.per_window, window)
    table = tables.windows if by_window else tables.accounts
    statement = update(table).where(table.c.dataset == row.dataset)
    if by_window:
        statement = statement.where(table.c.window == window)
    connection.execute(
        statement.values(
            micro_reserved=table.c.micro_reserved + reserved, micro_spent=table.c.micro_spent + spent
        )
    )


def exceeded_error(connection: Connection, row: Row[Any], request: ChargeRequest) -> BudgetExceededError:
    """Return the error for a request that its account cannot cover."""
    remaining = remaining_in(connection, row, request.window)
    where = f" in window {request.window}" if counts_by_window(row.per_window, request.window) else ""
    message = (
        f"the account {row.dataset} has epsilon {format_epsilon(remaining)} left{where} of "
        f"{format_epsilon(epsilon_of(row.micro_granted))}, the release asks for "
        f"{format_epsilon(request.epsilon)}"
    )
    return BudgetExceededError(message, requested=request.epsilon, remaining=remaining)


def _set_total(connection: Connection, dataset: str, micro: int, allowed: Allowed) -> None:
    columns = tables.accounts.c
    taken = columns.micro_spent + columns.micro_reserved + most_taken_by_a_window(dataset)
    done = connection.execute(
        update(tables.accounts)
        .where(columns.dataset == dataset, taken <= micro)
        .values(micro_granted=micro, **_texts(allowed))
    )
    if done.rowcount != 1:
        account = read_account(connection, read_account_row(connection, dataset))
        used = account.granted - account.remaining
        message = (
            f"the account {dataset} cannot be lowered to {format_epsilon(epsilon_of(micro))}: "
            f"{format_epsilon(used)} is spent or reserved"
        )
        raise BudgetExceededError(message, requested=used, remaining=epsilon_of(micro))


def _check_same_terms(dataset: str, fixed: AccountTerms, asked: TermsAsked) -> None:
    for what, first, now in (
        ("neighboring", fixed.neighboring, asked.neighboring),
        ("unit", fixed.unit, asked.unit),
        ("per window", fixed.per_window, asked.per_window),
        ("units disjoint", fixed.units_disjoint, asked.units_disjoint),
    ):
        if now is not None and now != first:
            message = f"the first grant of {dataset} fixed {what}: {first}; it cannot become {now}"
            raise GuaranteeError(message)


def _columns(terms: AccountTerms) -> dict[str, object]:
    return {
        "neighboring": terms.neighboring,
        "unit": terms.unit,
        "per_window": terms.per_window,
        "units_disjoint": terms.units_disjoint,
    }
