"""Processes that ask the same accounts for epsilon at the same time.

Run as a program: forks the processes, sends them all at one account after the other, and prints, as JSON,
how every attempt ended.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from suffice.errors import SufficeError
from suffice.storage.ledger.charge import ChargeRequest
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.sql import charge_fits, tables
from suffice.storage.ledger.sql.rows import insert_unless_there
from support.losses import pure

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from sqlalchemy import Connection, Row

TAKEN = "taken"


@dataclass(frozen=True, kw_only=True)
class Race:
    """What is asked, and by how many; `checks_first` runs the mutant."""

    url: str
    datasets: list[str]
    processes: int
    attempts: int
    checks_first: bool = False

    def run(self, timeout: float) -> dict[str, Counter[str]]:
        """Run in a process of its own; return how attempts ended, by dataset."""
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        done = subprocess.run(
            [sys.executable, __file__, json.dumps(asdict(self))],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=timeout,
            env={"PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "error"},
        )
        return {dataset: Counter(ends) for dataset, ends in json.loads(done.stdout).items()}


def take_without_condition(connection: Connection, row: Row[Any], window: str, micro: int) -> bool:
    """The mutant: trusts a check that was made before its transaction."""
    windows = tables.windows
    insert_unless_there(connection, windows, dataset=row.dataset, window=window, spent=0, reserved=0)
    connection.execute(
        update(windows)
        .where(windows.c.dataset == row.dataset, windows.c.window == window)
        .values(reserved=windows.c.reserved + micro)
    )
    return True


def ask(race: Race, process: int, barrier: Barrier, ended: Any) -> None:
    """Make every attempt of one process."""
    if race.checks_first:
        vars(charge_fits)["take"] = take_without_condition
    ends: dict[str, Counter[str]] = {}
    with open_ledger(race.url) as ledger:
        for dataset in race.datasets:
            barrier.wait(timeout=300)
            ends[dataset] = Counter()
            for attempt in range(race.attempts):
                request = request_for(dataset, f"{dataset}-{process}-{attempt}")
                try:
                    if race.checks_first:
                        ledger.check(request)
                    ledger.reserve(request)
                    ends[dataset][TAKEN] += 1
                except SufficeError as error:
                    ends[dataset][type(error).__name__] += 1
    ended.put(ends)


def request_for(dataset: str, name: str) -> ChargeRequest:
    return ChargeRequest(
        dataset=dataset,
        name=name,
        window="2013-01",
        **pure(Fraction(1)),
        neighboring="add_or_remove_one",
        unit="row",
        grid="day:month:UTC",
        source="/data",
        plan_json="{}",
        plan_hash=hashlib.sha256(b"{}").hexdigest(),
        store_id="s",
        store_uri="releases",
    )


def main(race: Race) -> None:
    context = multiprocessing.get_context("fork")  # nothing is open yet, and no thread runs
    barrier, ended = context.Barrier(race.processes), context.Queue()
    processes = [
        context.Process(target=ask, args=(race, number, barrier, ended)) for number in range(race.processes)
    ]
    for process in processes:
        process.start()
    totals: dict[str, Counter[str]] = {dataset: Counter() for dataset in race.datasets}
    for _ in processes:
        for dataset, ends in ended.get(timeout=3000).items():
            totals[dataset].update(ends)
    for process in processes:
        process.join()
    sys.stdout.write(json.dumps(totals))


if __name__ == "__main__":
    main(Race(**json.loads(sys.argv[1])))
