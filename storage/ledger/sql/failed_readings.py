"""Attempts of a key that did not come to their draw, counted in an SQL database.

The same number as the triggers of `migrations.failed_readings_0001` compute: what is counted here in vain is
refused there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlalchemy import Integer, case, func, select

from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.failed_readings import FailedReadings
from suffice.storage.ledger.sql import tables

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from suffice.storage.ledger.charge import Charge


def count_failed(connection: Connection, charge: Charge) -> int:
    """Return how many attempts of a charge's key did not come to their draw, up to now."""
    columns = tables.charges.c
    query = select(func.coalesce(func.sum(_failed()), 0)).where(
        columns.dataset == charge.dataset,
        columns.name == charge.name,
        columns.window == charge.window,
        columns.amendment == charge.amendment,
        columns.drew.is_(False),
    )
    return int(connection.execute(query).scalar_one())


def read_failed(connection: Connection, dataset: str) -> tuple[FailedReadings, ...]:
    """Return the keys of an account with attempts that did not come to their draw, in their order."""
    columns = tables.charges.c
    query = select(columns.name, columns.window, columns.amendment, _failed()).where(
        columns.dataset == dataset, columns.drew.is_(False)
    )
    counts: Counter[tuple[str, str, int]] = (
        Counter()
    )  # added here: nothing is sorted on a disk that may be full
    for name, window, amendment, failed in connection.execute(query):
        counts[name, window, amendment] += failed
    return tuple(
        FailedReadings(name=name, window=window, amendment=amendment, count=count)
        for (name, window, amendment), count in sorted(counts.items())
        if count
    )


def _failed() -> ColumnElement[int]:
    """Return what one charge that never drew counts: each take-over, and its end."""
    columns = tables.charges.c
    ended = case((columns.state == ChargeState.ABANDONED, 1), else_=0)
    return (columns.epoch - 1 + ended).cast(Integer)
