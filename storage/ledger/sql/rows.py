"""Between the ledger's tables and its dataclasses, the chain of entries among them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, text, update

from suffice.errors import AccountMissingError, LedgerCorruptError, NameTakenError, UsageError
from suffice.pipeline.spec.windows_and_amendments import amended_of
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.account import Account, AccountTerms, NamedAudit, WindowBalance, counts_by_window
from suffice.storage.ledger.chain import Entry, Head, next_entry
from suffice.storage.ledger.charge import (
    Charge,
    ChargeState,
    ChargeSummary,
    HeldCharges,
    SpoolName,
    run_id,
)
from suffice.storage.ledger.replay import sha256
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.tables import UNPUBLISHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from sqlalchemy import Connection, Row, ScalarSelect, Select, Table

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.chain import EntryKind

_APPENDED = "suffice_appended_entry"


def read_head(connection: Connection, *, lock: bool = False) -> Head:
    """Return the end of the chain; with `lock`, no other transaction appends until this one ends."""
    query = select(tables.ledger.c.head_sequence, tables.ledger.c.head_hash)
    row = connection.execute(query.with_for_update() if lock else query).one()
    return Head(sequence=row.head_sequence, hash=row.head_hash)


def read_entries(connection: Connection, *, after: int = 0) -> Iterator[Entry]:
    """Give the chain, or what follows one of its entries, while the database reads it."""
    columns = tables.entries.c
    query = select(tables.entries).order_by(columns.sequence)
    if after:
        query = query.where(columns.sequence > after)
    for row in stream(connection, query):
        yield Entry(**row._mapping)  # noqa: SLF001 - its public name


def read_entry(connection: Connection, sequence: int) -> Entry | None:
    """Return one entry of the chain, if there is such an entry."""
    query = select(tables.entries).where(tables.entries.c.sequence == sequence)
    row = connection.execute(query).one_or_none()
    return None if row is None else Entry(**row._mapping)  # noqa: SLF001 - its public name


def append_entry(
    connection: Connection, kind: EntryKind, moment: datetime, payload: Mapping[str, object]
) -> Entry:
    """Append one entry to the chain, in the transaction that `connection` is in."""
    entry = next_entry(read_head(connection, lock=True), kind, moment, payload)
    connection.execute(
        insert(tables.entries).values(
            sequence=entry.sequence,
            previous_hash=entry.previous_hash,
            kind=entry.kind,
            time=entry.time,
            payload=entry.payload,
            hash=entry.hash,
        )
    )
    connection.execute(update(tables.ledger).values(head_sequence=entry.sequence, head_hash=entry.hash))
    connection.info[_APPENDED] = entry
    return entry


def appended_entry(connection: Connection) -> Entry | None:
    """Return the last entry that was appended through a connection since :func:`forget_entry`."""
    return connection.info.get(_APPENDED)


def forget_entry(connection: Connection) -> None:
    """Begin anew: what the connection, which a pool reuses, appended before is another transaction's."""
    connection.info.pop(_APPENDED, None)


_SUMMARY = [
    tables.charges.c[name]
    for name in (
        "charge_id",
        "release_id",
        "dataset",
        "name",
        "window",
        "amendment",
        "attempt",
        "charged",
        "state",
        "drew",
        "draw_returned",
        "store_uri",
        "created_at",
    )
]
_MEASURE = (
    select(tables.accounts.c.measure)
    .where(tables.accounts.c.dataset == tables.charges.c.dataset)
    .scalar_subquery()
    .label("measure")
)
"""Of a charge's account: what the charge counts in."""


_LOOKED_AT = 100
"""Of an account's charges, the newest that are asked for what they state of time zone data."""
_MOST_TOGETHER = 10_000
"""Charges that are put together, so that memory does not grow with the history."""
_AT_ONCE = 1000
"""Rows that a stream reads at a time."""


def amount_of(row: Row[Any], count: int) -> Fraction:
    """Return so many of the smallest amounts that an account has, or a charge's account."""
    return measure_of(row).loss(count).amount


def measure_of(row: Row[Any]) -> PrivacyMeasure:
    """Return what an account counts, or a charge's account."""
    return PrivacyMeasure(row.measure)


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
            f"`suffice ledger grant {dataset} --epsilon TOTAL --reason TEXT`, or suffice.grant(), with "
            "--rho TOTAL for a spec in rho, and unit column:NAME if the spec's unit is a column"
        )
        raise AccountMissingError(message)
    return row


def terms_of(row: Row[Any]) -> AccountTerms:
    """Return what the first grant fixed."""
    return AccountTerms(
        neighboring=row.neighboring,
        unit=row.unit,
        per_window=row.per_window,
        units_disjoint=row.units_disjoint,
        measure=measure_of(row),
    )


def sources_of(row: Row[Any]) -> tuple[str, ...]:
    """Return the allowed prefixes."""
    return tuple(json.loads(row.sources))


def checksums_of(row: Row[Any]) -> str | None:
    """Return the list of checksums that the input must fit, if one is demanded."""
    path: str | None = row.checksums
    return path


def contract_of(row: Row[Any]) -> DataContract | None:
    """Return what the owner says that the data are, if that was said.

    Raises
    ------
    LedgerCorruptError
        Where the row holds no contract, or another than its hash names.
    """
    if row.contract is None:
        return None
    place = f"the ledger's contract of {row.dataset}"
    try:
        contract = parse_contract(row.contract, place)
    except UsageError as error:
        raise LedgerCorruptError(str(error)) from None
    if contract.sha256 != row.contract_sha256:
        message = f"{place} is not what its hash says"
        raise LedgerCorruptError(message)
    return contract


def audit_of(row: Row[Any]) -> NamedAudit | None:
    """Return the audit that the last grant with one named."""
    if row.audit_sha256 is None:
        return None
    return NamedAudit(sha256=row.audit_sha256, plan_hash=row.audit_plan_hash)


def stores_of(row: Row[Any]) -> tuple[str, ...]:
    """Return the prefixes of the stores that are allowed."""
    return tuple(json.loads(row.stores))


def read_account(connection: Connection, row: Row[Any]) -> Account:
    """Return the account in a row."""
    left = row.granted - row.spent - row.reserved
    terms = terms_of(row)
    return Account(
        dataset=row.dataset,
        neighboring=terms.neighboring,
        unit=terms.unit,
        per_window=terms.per_window,
        units_disjoint=terms.units_disjoint,
        measure=terms.measure,
        sources=sources_of(row),
        checksums=checksums_of(row),
        stores=stores_of(row),
        witness=row.witness,
        contract=contract_of(row),
        audit=audit_of(row),
        failed_readings=row.failed_readings,
        max_windows=row.max_windows,
        granted=amount_of(row, row.granted),
        spent=amount_of(row, row.spent),
        reserved=amount_of(row, row.reserved),
        remaining=amount_of(
            row, left - connection.execute(select(most_taken_by_a_window(row.dataset))).scalar_one()
        ),
    )


def remaining_in(connection: Connection, row: Row[Any], window: str) -> Fraction:
    """Return what a release of one window, or of ``all``, could still take of an account."""
    taken = most_taken_by_a_window(row.dataset)
    if counts_by_window(row.per_window, window):
        columns = tables.windows.c
        of_window = select(columns.spent + columns.reserved)
        of_window = of_window.where(columns.dataset == row.dataset, columns.window == window)
        taken = select(func.coalesce(of_window.scalar_subquery(), 0)).scalar_subquery()
    left = row.granted - row.spent - row.reserved
    return amount_of(row, left - connection.execute(select(taken)).scalar_one())


def most_taken_by_a_window(dataset: str) -> ScalarSelect[int]:
    """Return the subquery for the most that any one window takes: 0 unless the grant is per window."""
    columns = tables.windows.c
    taken = columns.spent + columns.reserved
    most = select(taken).where(columns.dataset == dataset).order_by(taken.desc()).limit(1)  # by its index
    return select(func.coalesce(most.scalar_subquery(), 0)).scalar_subquery()


def read_windows(connection: Connection, row: Row[Any]) -> Iterator[WindowBalance]:
    """Give the windows of an account that were ever charged, in order."""
    left = row.granted - row.spent - row.reserved
    windows = connection.execute(select(tables.windows).where(tables.windows.c.dataset == row.dataset)).all()
    # sorted here: a database may order text by the rules of a language
    for window in sorted(windows, key=lambda row: row.window):
        yield WindowBalance(
            window=window.window,
            spent=amount_of(row, window.spent),
            reserved=amount_of(row, window.reserved),
            remaining=amount_of(row, left - window.spent - window.reserved),
        )


def read_held(connection: Connection, dataset: str) -> Iterator[HeldCharges]:
    """Give what charges hold of an account; of many, those of one window, plan and loss together."""
    row = read_account_row(connection, dataset)
    columns = tables.charges.c
    query = select(columns.window, columns.plan_hash, columns.charged).where(
        columns.dataset == dataset,
        (columns.state != ChargeState.ABANDONED) | (columns.drew & ~columns.draw_returned),
    )
    measure = measure_of(row)
    charges = map(tuple, stream(connection, query))
    # here: nothing is sorted on a disk that may be full
    while held := Counter(islice(charges, _MOST_TOGETHER)):
        for (window, plan_hash, charged), number in held.items():
            loss = measure.loss(charged)
            yield HeldCharges(window=window, plan_hash=plan_hash, loss=loss, number=number)


def read_returned(connection: Connection, dataset: str) -> dict[str, Fraction]:
    """Return what charges of each window gave back."""
    columns = tables.charges.c
    query = select(columns.window, columns.charged).where(
        columns.dataset == dataset,
        columns.state == ChargeState.ABANDONED,
        ~columns.drew | columns.draw_returned,
    )
    returned: Counter[str] = Counter()  # here: no sum of integers of 64 bits holds all that was returned
    for window, charged in stream(connection, query):
        returned[window] += charged
    if not returned:
        return {}
    row = read_account_row(connection, dataset)
    return {window: amount_of(row, charged) for window, charged in returned.items()}


def read_charges(connection: Connection, dataset: str, last: int | None) -> Iterator[ChargeSummary]:
    """Give an account's charges in the order of their reservation, or the last of them."""
    columns = tables.charges.c
    query = summary_query().where(columns.dataset == dataset)
    if last is not None:
        newest = select(columns.reserved_sequence).where(columns.dataset == dataset)
        newest = newest.order_by(columns.reserved_sequence.desc()).limit(last)
        query = query.where(columns.reserved_sequence.in_(newest))
    yield from map(summary_of, stream(connection, query.order_by(columns.reserved_sequence)))


def read_zone_data(connection: Connection, dataset: str) -> str | None:
    """Return what the newest of an account's draws states that states a version of time zone data."""
    columns = tables.charges.c
    newest = select(columns.drawing_sequence).where(columns.dataset == dataset)
    newest = newest.order_by(columns.reserved_sequence.desc()).limit(_LOOKED_AT)
    sequences = [sequence for sequence in connection.scalars(newest) if sequence is not None]
    entries = tables.entries.c
    query = select(entries.payload).where(entries.sequence.in_(sequences)).order_by(entries.sequence.desc())
    stated = (json.loads(payload).get("zone_data") for payload in connection.scalars(query))
    return next((version for version in stated if version is not None), None)


def read_unsettled(connection: Connection) -> tuple[ChargeSummary, ...]:
    """Return the charges that have not ended, and those that were abandoned after a draw."""
    columns = tables.charges.c
    ended_well = text(UNPUBLISHED)  # as the index states it
    query = summary_query().where(ended_well, (columns.state != ChargeState.ABANDONED) | columns.drew)
    summaries = map(summary_of, connection.execute(query.order_by(columns.reserved_sequence)))
    return tuple(sorted(summaries, key=lambda charge: charge.dataset))


def stream(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    """Give rows while the database finds them, so that no table has to fit into memory."""
    return iter(connection.execution_options(yield_per=_AT_ONCE).execute(query))


def summary_of(row: Row[Any]) -> ChargeSummary:
    """Return the summary in a row of :func:`summary_query`."""
    return ChargeSummary(
        charge_id=row.charge_id,
        release_id=row.release_id,
        dataset=row.dataset,
        name=row.name,
        window=row.window,
        amendment=row.amendment,
        attempt=row.attempt,
        loss=measure_of(row).loss(row.charged),
        state=ChargeState(row.state),
        drew=row.drew,
        draw_returned=row.draw_returned,
        store_uri=row.store_uri,
        created=parse_time(row.created_at),
    )


def summary_query() -> Select[Any]:
    """Return the query for what a summary of a charge holds."""
    return select(*_SUMMARY, _MEASURE)


def charge_query() -> Select[Any]:
    """Return the query for what a charge holds."""
    return select(tables.charges, _MEASURE)


def read_newest(connection: Connection, ledger_id: str, key: tuple[str, str, str, int]) -> Charge | None:
    """Return the newest attempt of a key: dataset, name, window, amendment.

    Raises
    ------
    NameTakenError
        Where the name belongs to another dataset.
    """
    dataset, name, window, amendment = key
    if not check_owner(connection, name, dataset):
        return None
    columns = tables.charges.c
    row = connection.execute(
        charge_query()
        .where(
            columns.dataset == dataset,
            columns.name == name,
            columns.window == window,
            columns.amendment == amendment,
        )
        .order_by(columns.attempt.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else charge_of(connection, row, ledger_id)


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
    """Return a charge by its id, which the ledger has given out."""
    query = charge_query().where(tables.charges.c.charge_id == charge_id)
    row = connection.execute(query.with_for_update() if lock else query).one()
    return charge_of(connection, row, ledger_id)


def find_charge(connection: Connection, ledger_id: str, charge_id: str) -> Charge | None:
    """Return a charge by its id, if there is one."""
    query = charge_query().where(tables.charges.c.charge_id == charge_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else charge_of(connection, row, ledger_id)


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


def charge_of(connection: Connection, row: Row[Any], ledger_id: str) -> Charge:
    """Return the charge in a row of :func:`charge_query`."""
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
        amendment=row.amendment,
        amends=amended_of(row.amends, row.amended_sha256),
        attempt=row.attempt,
        loss=measure_of(row).loss(row.charged),
        state=ChargeState(row.state),
        marked=row.marked,
        drew=row.drew,
        draw_returned=row.draw_returned,
        epoch=row.epoch,
        lease_expires=parse_time(row.lease_expires),
        holder_process=row.holder_process,
        run=run_id(row.holder, row.charge_id, row.epoch),
        spool=_spool_of(row),
        plan_hash=row.plan_hash,
        store_id=row.store_id,
        store_uri=row.store_uri,
        witness=row.witness,
        reserved_sequence=row.reserved_sequence,
        drawing_sequence=row.drawing_sequence,
        drawing_hash=row.drawing_hash,
        drawing_epoch=row.drawing_epoch,
        manifest_sha256=row.manifest_sha256,
        manifest=manifest,
        created=parse_time(row.created_at),
    )


def _spool_of(row: Row[Any]) -> SpoolName | None:
    if row.spool_id is None:
        return None
    return SpoolName(spool_id=row.spool_id, host=row.spool_host or "an unknown host")
