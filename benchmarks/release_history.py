"""Time `suffice release` with a long history behind it beside one with a short one, start-up and all.

PYTHONPATH=tests python benchmarks/release_history.py [--charges 1 100000] [--repetitions 7]

Each history has a ledger, and a store with the releases and the markers that it would have left. Processes
run in turn, so that a busy moment of the machine hits all alike. It runs on older versions of the package
too, for comparison.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import versions
from whole import LAUNCHER

from suffice.storage.ledger.opening import open_ledger
from suffice.storage.releases.release_store import open_store
from support.history import make_history
from support.making import flights, mapping, write_parts

if TYPE_CHECKING:
    from suffice.storage.ledger.chain import Entry
    from suffice.storage.releases.release_store import ReleaseStore

GOAL = 1.2


def main() -> None:
    """Release behind every history in turn, and print medians and ratios to the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--charges", type=int, nargs="+", default=[1, 100_000])
    parser.add_argument("--repetitions", type=int, default=7)
    arguments = parser.parse_args()
    print(versions(), flush=True)
    with tempfile.TemporaryDirectory() as directory:
        places = {n: make_place(Path(directory) / str(n), n) for n in arguments.charges}
        times: dict[int, list[tuple[float, float, float]]] = {n: [] for n in places}
        for number in range(-1, arguments.repetitions):  # the first of each warms up
            for n_charges, place in places.items():
                taken = release(place, f"new-{number + 1}")
                if number >= 0:
                    times[n_charges].append(taken)
        show(times)


def show(times: dict[int, list[tuple[float, float, float]]]) -> None:
    """Print medians, and how they compare with the first."""
    print(f"{'charges':>10}{'wall s':>9}{'CPU s':>9}{'MB':>7}{'ratio':>8}{'by CPU':>8}")
    first = None
    for n_charges, taken in times.items():
        wall, processor, peak = (statistics.median(column) for column in zip(*taken, strict=True))
        first = first or (wall, processor)
        ratios = wall / first[0], processor / first[1]
        print(f"{n_charges:10,}{wall:9.2f}{processor:9.2f}{peak:7.0f}{ratios[0]:8.2f}{ratios[1]:8.2f}")
    print(f"goal: {GOAL} by CPU: {'met' if ratios[1] <= GOAL else 'MISSED'}")


def make_place(directory: Path, n_charges: int) -> Path:
    """Make data, a ledger with a history, and the store that the history would have left."""
    write_parts(flights(), directory / "data")
    store = str(directory / "releases")
    url = make_history(directory / "ledger.db", n_charges, store=("0" * 32, store))
    with open_ledger(url) as ledger:
        opened = open_store(store, ledger_id=ledger.ledger_id, create=True)
        ledger.grant(
            "flights", epsilon=Fraction(10**6), sources=["/data", str(directory / "data")], reason="benchmark"
        )
        entries = {entry.sequence: entry for entry in ledger.entries() if entry.kind == "reserved"}
    with closing(sqlite3.connect(directory / "ledger.db")) as connection:
        fill_store(directory / "releases", opened, connection, entries)
    return directory


def fill_store(
    root: Path, store: ReleaseStore, connection: sqlite3.Connection, entries: dict[int, Entry]
) -> None:
    """Write what all charges of a ledger put into their store, and call the store by its id in the ledger."""
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in {"charges", "stores"} & {*tables}:
        connection.execute(f"UPDATE {table} SET store_id = ?", (store.store_id,))  # noqa: S608
    for _, statement in triggers:
        connection.execute(statement)
    connection.commit()
    rows = connection.execute(
        'SELECT name, "window", release_id, reserved_sequence, ledger_id FROM charges, ledger'
    )
    for name, window, release_id, sequence, ledger_id in rows:
        place = root / name / window / release_id
        place.mkdir(parents=True)
        (place / "manifest.json").write_bytes(b"{}")
        if "stores" in tables:
            from suffice.storage.ledger.chain import public_entry
            from suffice.storage.operations.markers import Marker  # not in older ones
            from suffice.storage.releases.store_identity import marker_key

            path = root / marker_key(sequence)
            path.parent.mkdir(parents=True, exist_ok=True)
            marker = Marker(ledger_id=ledger_id, entry=public_entry(entries[sequence]), run="0" * 16)
            path.write_bytes(marker.encode())


def release(directory: Path, name: str) -> tuple[float, float, float]:
    """Release under a new name in a process of its own; return wall and processor seconds, and peak MB."""
    spec = directory / f"{name}.json"
    spec.write_text(json.dumps(mapping(directory / "data", name=name, dataset="flights")))
    ledger, store = f"sqlite:///{directory / 'ledger.db'}", str(directory / "releases")
    command = [sys.executable, "-m", "suffice", "release", str(spec), "--ledger", ledger, "--store", store]
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHER, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    wall, processor, peak = json.loads(done.stdout)
    return wall, processor, peak


if __name__ == "__main__":
    main()
