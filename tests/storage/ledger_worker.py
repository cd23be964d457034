"""One of several processes that take epsilon from the same accounts; run by test_ledger_race.py.

Prints ``ready``, waits for a line, then makes its attempts on every account in turn and prints, as JSON,
how each ended.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from suffice.errors import SufficeError
from suffice.storage import sql_charges, tables
from suffice.storage.ledger import ChargeRequest, open_ledger

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row


def take_without_condition(connection: Connection, row: Row[Any], _window: str, micro: int) -> bool:
    """The mutant: trusts a check that was made before its transaction."""
    connection.execute(
        update(tables.windows)
        .where(tables.windows.c.dataset == row.dataset)
        .values(micro_reserved=tables.windows.c.micro_reserved + micro)
    )
    return True


def main(url: str, worker: str, attempts: int, datasets: list[str], mode: str) -> None:
    if mode == "mutant":
        vars(sql_charges)["take"] = take_without_condition
    outcomes: Counter[str] = Counter()
    with open_ledger(url) as ledger:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        for dataset in datasets:
            for attempt in range(attempts):
                request = ChargeRequest(
                    dataset=dataset,
                    name=f"{dataset}-{worker}-{attempt}",
                    window="2013-01",
                    epsilon=Fraction(1),
                    neighboring="add_or_remove_one",
                    unit="row",
                    grid="day:month",
                    source="/data",
                    plan_json="{}",
                    plan_hash=hashlib.sha256(b"{}").hexdigest(),
                    store_id="s",
                    store_uri="releases",
                )
                try:
                    if mode == "mutant":
                        ledger.check(request)
                    ledger.reserve(request)
                    outcomes[dataset] += 1
                except SufficeError as error:
                    outcomes[type(error).__name__] += 1
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(","), sys.argv[5])
