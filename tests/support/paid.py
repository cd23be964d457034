"""Releases that a ledger paid for, made without data: charge, draw, stage and publish in milliseconds."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.storage.ledger.charge import Charge, ChargeRequest
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.operations.markers import put_marker
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import ReleaseStore, open_store
from support.releases import compose, make_plan, some_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.signatures.signing import Signer

STEPS = ("reserved", "drawing", "written", "staged", "put", "published")
"""What :func:`pay` may stop after, in order."""


@dataclass(frozen=True)
class Books:
    """A ledger of one granted account, and its store."""

    directory: Path
    ledger: Ledger
    store: ReleaseStore

    @property
    def database(self) -> Path:
        return self.directory / "ledger.db"

    def directory_of(self, charge: Charge) -> Path:
        return Path(self.store.release_uri(charge.name, charge.window, charge.release_id))


def open_books(directory: Path) -> Books:
    """Make a ledger and a store; the caller closes the ledger."""
    ledger = create_ledger(f"sqlite:///{directory}/ledger.db")
    ledger.grant("passengers", epsilon=Fraction(100), sources=["/srv/secret-path"], reason="secret-reason")
    store = open_store(str(directory / "releases"), ledger_id=ledger.ledger_id, create=True)
    return Books(directory=directory, ledger=ledger, store=store)


def steps(
    books: Books, name: str, *, dataset: str = "passengers", signer: Signer | None = None
) -> Iterator[tuple[str, Charge]]:
    """Carry a charge for a release of `name` to its end, and stop after each of `STEPS`."""
    ledger, store, plan = books.ledger, books.store, make_plan(name=name, dataset=dataset)
    charge = ledger.reserve(
        ChargeRequest(
            dataset=plan.dataset,
            name=plan.name,
            window="all",
            loss=plan.loss,
            rho=plan.rho,
            neighboring=str(plan.neighboring),
            unit=plan.unit,
            grid=None,
            source="/srv/secret-path",
            plan_json=plan.canonical,
            plan_hash=plan.plan_hash,
            store_id=store.store_id,
            store_uri=store.uri,
        )
    )
    yield "reserved", charge
    put_marker(ledger, store, charge)
    charge = ledger.enter_drawing(charge)
    yield "drawing", charge
    values = some_values(plan)
    files = [
        store.write_data(
            charge.name,
            charge.window,
            charge.release_id,
            statistic.name,
            encode_statistic(statistic, values[statistic.name]),
            rows=values[statistic.name].size,
        )
        for statistic in plan.statistics
    ]
    yield "written", charge
    manifest = compose(
        plan,
        files,
        release_id=charge.release_id,
        ledger_id=charge.ledger_id,
        drawing_sequence=charge.drawing_sequence,
        drawing_hash=charge.drawing_hash,
        signer=signer,
    )
    charge = ledger.stage(charge, manifest)
    yield "staged", charge
    store.put_manifest(charge.name, charge.window, charge.release_id, manifest)
    yield "put", charge
    yield "published", ledger.publish(charge)


def pay(books: Books, name: str, *, until: str = "published", signer: Signer | None = None) -> Charge:
    """Carry a charge for a release of `name` as far as `until`, one of `STEPS`."""
    return next(charge for step, charge in steps(books, name, signer=signer) if step == until)


def copy_database(database: Path, copy: Path) -> None:
    """Copy an SQLite database as a backup does: whole, as of one moment."""
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def restore_database(copy: Path, database: Path) -> None:
    """Put a copy back in the place of a database that nobody has open."""
    for rest in ("-wal", "-shm"):
        database.with_name(database.name + rest).unlink(missing_ok=True)
    shutil.copyfile(copy, database)
