"""Editions of windows in an SQL database: the charges of first releases and amendments beside each other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import select

from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.rerun import decide_amended
from suffice.storage.ledger.sql import tables
from suffice.storage.ledger.sql.rows import charge_of, read_plan, stream, summary_of, summary_query

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from suffice.pipeline.spec.editions import AmendedRelease
    from suffice.storage.ledger.charge import ChargeRequest, ChargeSummary


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
    query = select(tables.charges).where(
        columns.dataset == request.dataset,
        columns.name == request.name,
        columns.window == request.window,
        columns.amendment != request.amendment,
        columns.state != ChargeState.ABANDONED,
    )
    others = [charge_of(connection, row, ledger_id) for row in connection.execute(query)]
    return decide_amended(others, request, plan_of=partial(read_plan, connection))


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
