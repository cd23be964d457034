"""Between the ledger's tables and its dataclasses."""

from __future__ import annotations

import json
from datetime import datetime
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from suffice.errors import AccountMissingError, LedgerCorruptError, NameTakenError
from suffice.pipeline.declaration.exact_numbers import MICRO
from suffice.storage.ledger.account import Account, Terms, WindowBalance
from suffice.storage.ledger.charge import Charge, ChargeState, ChargeSummary, SpoolName
from suffice.storage.ledger.replay import sha256
from suffice.storage.ledger.sql import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Select, Table

    from suffice.storage.ledger.replay import Rows

_SUMMARY = tuple(
    tables.charges.c[name]
    for name in (
        "charge_id",
        "release_id",
        "name",
        "window",
        "attempt",
        "micro_epsilon",
        "state",
        "drew",
        "store_uri",
        "created_at",
    )
)


def epsilon_of(micro: int) -> Fraction:
    """Return the epsilon of an integer of one millionth."""
    return Fraction(micro, MICRO)


def parse_time(text: str) -> datetime:
    """Read a time that :func:`suffice.storage.ledger.chain.format_time` wrote."""
    return datetime.fromisoformat(text)


def read_account_row(connection: Connection, dataset: str, *, lock: bool = False) -> Row[Any]:
    """Return an account's row; with `lock`, no other transaction changes the account until this one ends.

    Raises
    ------
    AccountMissingError
    """
    query = select(tables.accounts).where(tables.accounts.c.dataset == dataset)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        message = (
            f"there is no account {dataset}: its owner makes one with "
            f"`suffice ledger grant {dataset} --epsilon TOTAL --reason TEXT`"
        )
        raise AccountMissingError(message)
    return row


def terms_of(row: Row[Any]) -> Terms:
    """Return what the first grant fixed."""
    return Terms(
        neighboring=row.neighboring,
        unit=row.unit,
        per_window=row.per_window,
        units_disjoint=row.units_disjoint,
    )


def sources_of(row: Row[Any]) -> tuple[str, ...]:
    """Return the allowed prefixes."""
    return tuple(json.loads(row.sources))


def checksums_of(row: Row[Any]) -> str | None:
    """Return the list of checksums that the input must fit, if one is demanded."""
    path: str | None = row.checksums
    return path


def stores_of(row: Row[Any]) -> tuple[str, ...]:
    """Return the prefixes of the stores that are allowed."""
    return tuple(json.loads(row.stores))


def read_account(connection: Connection, row: Row[Any], *, with_charges: bool = True) -> Account:
    """Return an account with its windows and, unless only its balance counts, its charges."""
    left = row.micro_granted - row.micro_spent - row.micro_reserved
    windows = connection.execute(select(tables.windows).where(tables.windows.c.dataset == row.dataset)).all()
    charges = summary_query().where(tables.charges.c.dataset == row.dataset)
    charges = charges.order_by(tables.charges.c.reserved_sequence)
    terms = terms_of(row)
    return Account(
        dataset=row.dataset,
        neighboring=terms.neighboring,
        unit=terms.unit,
        per_window=terms.per_window,
        units_disjoint=terms.units_disjoint,
        sources=sources_of(row),
        checksums=checksums_of(row),
        stores=stores_of(row),
        granted=epsilon_of(row.micro_granted),
        spent=epsilon_of(row.micro_spent),
        reserved=epsilon_of(row.micro_reserved),
        windows=tuple(
            WindowBalance(
                window=window.window,
                spent=epsilon_of(window.micro_spent),
                reserved=epsilon_of(window.micro_reserved),
                remaining=epsilon_of(left - window.micro_spent - window.micro_reserved),
            )
            for window in sorted(windows, key=lambda row: row.window)
        ),
        charges=tuple(map(summary_of, connection.execute(charges))) if with_charges else (),
    )


def summary_of(row: Row[Any]) -> ChargeSummary:
    """Return the summary in a row of :func:`summary_query`."""
    return ChargeSummary(
        charge_id=row.charge_id,
        release_id=row.release_id,
        name=row.name,
        window=row.window,
        attempt=row.attempt,
        epsilon=epsilon_of(row.micro_epsilon),
        state=ChargeState(row.state),
        drew=row.drew,
        store_uri=row.store_uri,
        created=parse_time(row.created_at),
    )


def summary_query() -> Select[Any]:
    """Return the query for what a summary of a charge holds."""
    return select(*_SUMMARY)


def read_newest(connection: Connection, ledger_id: str, key: tuple[str, str, str]) -> Charge | None:
    """Return the newest attempt of a key: dataset, name, window.

    Raises
    ------
    NameTakenError
        Where the name belongs to another dataset.
    """
    dataset, name, window = key
    if not check_owner(connection, name, dataset):
        return None
    columns = tables.charges.c
    row = connection.execute(
        select(tables.charges)
        .where(columns.dataset == dataset, columns.name == name, columns.window == window)
        .order_by(columns.attempt.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else _charge_of(connection, row, ledger_id)


def check_owner(connection: Connection, name: str, dataset: str) -> bool:
    """Tell whether a release name was ever used.

    Raises
    ------
    NameTakenError
        Where it belongs to another dataset.
    """
    owner = connection.scalar(select(tables.names.c.dataset).where(tables.names.c.name == name))
    if owner not in {None, dataset}:
        message = f"the release name {name} belongs to the dataset {owner}: choose another name"
        raise NameTakenError(message)
    return owner is not None


def insert_unless_there(connection: Connection, table: Table, **values: object) -> bool:
    """Insert a row; tell whether it was new. Whoever inserts the same key first goes first.

    No standard statement does this, but both databases have the same one.
    """
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    statement = dialect.insert(table).values(**values).on_conflict_do_nothing()
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount == 1


def read_charge(connection: Connection, ledger_id: str, charge_id: str, *, lock: bool = False) -> Charge:
    """Return a charge by its id."""
    query = select(tables.charges).where(tables.charges.c.charge_id == charge_id)
    row = connection.execute(query.with_for_update() if lock else query).one()
    return _charge_of(connection, row, ledger_id)


def read_plan(connection: Connection, plan_hash: str) -> str:
    """Return the canonical plan with a hash.

    Raises
    ------
    LedgerCorruptError
        Where the ledger has none, or another.
    """
    content = connection.scalar(select(tables.plans.c.content).where(tables.plans.c.sha256 == plan_hash))
    if content is None or sha256(content.encode()) != plan_hash:
        message = f"the ledger has no plan with the hash {plan_hash}, which a charge names: it is damaged"
        raise LedgerCorruptError(message)
    return str(content)


def _charge_of(connection: Connection, row: Row[Any], ledger_id: str) -> Charge:
    manifest = None
    if row.state == ChargeState.STAGED:
        staged = tables.staged_manifests.c
        manifest = connection.scalar(select(staged.content).where(staged.charge_id == row.charge_id))
    return Charge(
        charge_id=row.charge_id,
        release_id=row.release_id,
        ledger_id=ledger_id,
        dataset=row.dataset,
        name=row.name,
        window=row.window,
        attempt=row.attempt,
        epsilon=epsilon_of(row.micro_epsilon),
        state=ChargeState(row.state),
        drew=row.drew,
        epoch=row.epoch,
        lease_expires=parse_time(row.lease_expires),
        holder_process=row.holder_process,
        spool=_spool_of(row),
        plan_hash=row.plan_hash,
        store_id=row.store_id,
        store_uri=row.store_uri,
        reserved_sequence=row.reserved_sequence,
        drawing_sequence=row.drawing_sequence,
        drawing_hash=row.drawing_hash,
        manifest_sha256=row.manifest_sha256,
        manifest=manifest,
        created=parse_time(row.created_at),
    )


def _spool_of(row: Row[Any]) -> SpoolName | None:
    if row.spool_id is None:
        return None
    return SpoolName(spool_id=row.spool_id, host=row.spool_host or "an unknown host")


def read_tables(connection: Connection) -> dict[str, Rows]:
    """Return the rows of every table that the entries imply, in the form of :class:`Books`."""
    found: dict[str, Rows] = {}
    for table in (tables.accounts, tables.windows, tables.names, tables.charges, tables.stores):
        keys = [column.name for column in table.primary_key]
        rows = (dict(row) for row in connection.execute(select(table)).mappings())
        found[table.name] = {tuple(row[key] for key in keys): row for row in rows}
    for row in found["accounts"].values():
        row["sources"] = json.loads(row["sources"])
        row["stores"] = json.loads(row["stores"])
    plans = connection.execute(select(tables.plans.c.sha256, tables.plans.c.content))
    found["plans"] = {(row.sha256,): {"sha256": sha256(row.content.encode())} for row in plans}
    staged = connection.execute(select(tables.staged_manifests))
    found["staged_manifests"] = {(row.charge_id,): {"sha256": sha256(row.content)} for row in staged}
    return found
