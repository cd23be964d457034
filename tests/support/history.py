"""Ledgers with a long history, made in seconds: the rows and entries that so many releases would leave."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from suffice.storage.ledger.chain import EntryKind, Head, coarse, format_time, next_entry
from suffice.storage.ledger.charge import ChargeRequest, release_id
from suffice.storage.ledger.opening import create_ledger
from support.losses import pure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.storage.ledger.chain import Entry

N_NAMES = 100
MICRO = 1000
MOMENT = datetime(2026, 1, 31, 8, tzinfo=UTC)
MANIFEST = json.dumps({"padding": "x" * 3000}).encode()


def make_history(
    path: Path, n_charges: int, *, per_window: bool = False, store: tuple[str, str] = ("store", "releases")
) -> str:
    """Make a ledger whose account `flights` has published this many charges; return its URL.

    All of them went to a store of this id and URI. `N_NAMES` release names share them, a window each. A
    column that the table does not have is left out, so that ledgers of other versions can be made for
    comparison.
    """
    url = f"sqlite:///{path}"
    grid = "day:day:UTC" if per_window else None
    with create_ledger(url, clock=lambda: MOMENT) as ledger:
        ledger.grant("flights", epsilon=Fraction(10**6), per_window=grid, sources=["/data"], reason="history")
        ledger_id = ledger.ledger_id
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        rules = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in rules:
            connection.execute(f"DROP TRIGGER {name}")
        requests = [request_for(f"series-{k}", "all", store=store) for k in range(N_NAMES)]
        _fill(connection, ledger_id, n_charges, requests, per_window=per_window)
        for _, statement in rules:
            connection.execute(statement)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return url


def request_for(
    name: str, window: str, *, per_window: bool = False, store: tuple[str, str] = ("store", "releases")
) -> ChargeRequest:
    """Return a request as those of the history; its plan is 2.5 kB."""
    plan = json.dumps({"name": name, "padding": "x" * 2500})
    return ChargeRequest(
        dataset="flights",
        name=name,
        window=window,
        **pure(Fraction(MICRO, 10**6)),
        neighboring="add_or_remove_one",
        unit="row",
        grid="day:day:UTC" if per_window or window != "all" else None,
        source="/data",
        plan_json=plan,
        plan_hash=hashlib.sha256(plan.encode()).hexdigest(),
        store_id=store[0],
        store_uri=store[1],
    )


def _fill(
    connection: sqlite3.Connection,
    ledger_id: str,
    n_charges: int,
    requests: list[ChargeRequest],
    *,
    per_window: bool,
) -> None:
    columns = {row[1] for row in connection.execute("PRAGMA table_info(charges)")}
    sequence, digest = connection.execute("SELECT head_sequence, head_hash FROM ledger").fetchone()
    head = Head(sequence=sequence, hash=digest)
    connection.executemany(
        "INSERT INTO names VALUES (?, 'flights')", [(request.name,) for request in requests]
    )
    if "plan_json" not in columns:
        rows = [(request.plan_hash, request.plan_json) for request in requests]
        connection.executemany("INSERT INTO plans VALUES (?, ?)", rows)
    for number in range(n_charges):
        window = f"w{number:06d}"
        head, row = _live(connection, head, ledger_id, requests[number % N_NAMES], window)
        kept = {column: row[column] for column in row if column in columns}
        names = ", ".join(f'"{column}"' for column in kept)
        values = ", ".join("?" * len(kept))
        connection.execute(f"INSERT INTO charges ({names}) VALUES ({values})", tuple(kept.values()))  # noqa: S608
        if per_window:
            connection.execute("INSERT INTO windows VALUES ('flights', ?, ?, 0)", (window, MICRO))
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'stores'").fetchone():
        connection.execute(
            "INSERT INTO stores SELECT store_id, store_uri, min(reserved_sequence), max(reserved_sequence), "
            "FALSE FROM charges GROUP BY store_id"
        )
    if not per_window:
        connection.execute("UPDATE accounts SET spent = ?", (MICRO * n_charges,))
    connection.execute("UPDATE ledger SET head_sequence = ?, head_hash = ?", (head.sequence, head.hash))


def _live(
    connection: sqlite3.Connection, head: Head, ledger_id: str, request: ChargeRequest, window: str
) -> tuple[Head, dict[str, Any]]:
    charge_id, digest = uuid4().hex, hashlib.sha256(MANIFEST).hexdigest()
    stated = {
        "charge_id": charge_id,
        "release_id": release_id(ledger_id, charge_id),
        "dataset": request.dataset,
        "name": request.name,
        "window": window,
        "amendment": 0,
        "amends": None,
        "amended_sha256": None,
        "attempt": 1,
        "micro_epsilon": MICRO,
        "plan_hash": request.plan_hash,
        "store_id": request.store_id,
        "store_uri": request.store_uri,
    }
    step = {"charge_id": charge_id, "epoch": 1}
    life = [
        (EntryKind.RESERVED, stated),
        (EntryKind.DRAWING, step),
        (EntryKind.STAGED, {**step, "manifest_sha256": digest}),
        (EntryKind.PUBLISHED, step),
    ]
    entries = list(_entries(head, life))
    connection.executemany(
        "INSERT INTO entries (sequence, previous_hash, kind, time, payload, hash) VALUES (?,?,?,?,?,?)",
        [(e.sequence, e.previous_hash, e.kind, e.time, e.payload, e.hash) for e in entries],
    )
    row = {
        **{"charged" if name == "micro_epsilon" else name: value for name, value in stated.items()},
        "state": "published",
        "marked": True,
        "drew": True,
        "draw_returned": False,
        "epoch": 1,
        "holder": "0" * 32,
        "holder_process": "{}",
        "lease_expires": format_time(MOMENT),
        "plan_json": request.plan_json,
        "manifest": MANIFEST,
        "manifest_sha256": digest,
        "reserved_sequence": entries[0].sequence,
        "drawing_sequence": entries[1].sequence,
        "drawing_hash": entries[1].hash,
        "drawing_epoch": 1,
        "created_at": format_time(coarse(MOMENT)),
    }
    return Head(sequence=entries[-1].sequence, hash=entries[-1].hash), row


def _entries(head: Head, life: list[tuple[EntryKind, dict[str, Any]]]) -> Iterator[Entry]:
    for kind, payload in life:
        entry = next_entry(head, kind, MOMENT, payload)
        head = Head(sequence=entry.sequence, hash=entry.hash)
        yield entry
