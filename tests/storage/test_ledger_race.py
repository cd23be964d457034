"""Eight processes at one account: exactly the grant is taken, and nobody is told to come back later."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger import Ledger

WORKER = Path(__file__).with_name("ledger_worker.py")
PROCESSES, ATTEMPTS, GRANT = 8, 40, 100


def race(url: str, datasets: list[str], mode: str) -> Counter[str]:
    """Run all processes at once; count reservations by dataset and errors by type."""
    options = [str(ATTEMPTS), ",".join(datasets), mode]
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), url, str(number), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    outcomes: Counter[str] = Counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        output, _ = worker.communicate(timeout=100)
        outcomes.update(json.loads(output))
    return outcomes


def test_exactly_the_grant_is_taken(ledger_url: str, ledger_factory: Callable[[], Ledger]) -> None:
    ledger = ledger_factory()
    accounts = {"total-1": None, "total-2": None, "window-1": "day:month", "window-2": "day:month"}
    for dataset, grid in accounts.items():
        ledger.grant(dataset, epsilon=Fraction(GRANT), per_window=grid, reason="x")
    outcomes = race(ledger_url, list(accounts), "real")
    refused = len(accounts) * (PROCESSES * ATTEMPTS - GRANT)
    assert outcomes == {**dict.fromkeys(accounts, GRANT), "BudgetExceededError": refused}
    assert [account.remaining_in("2013-01") for account in ledger.accounts()] == [0, 0, 0, 0]
    assert ledger.verify() == ()


def test_the_race_would_show_a_check_made_before_the_transaction(
    ledger_url: str, ledger_factory: Callable[[], Ledger]
) -> None:
    ledger = ledger_factory()
    ledger.grant("window-1", epsilon=Fraction(GRANT), per_window="day:month", reason="x")
    ledger.grant("window-2", epsilon=Fraction(GRANT), per_window="day:month", reason="x")
    outcomes = race(ledger_url, ["window-1", "window-2"], "mutant")
    assert max(outcomes["window-1"], outcomes["window-2"]) > GRANT
    (problem,) = ledger.verify()
    assert "never over the grant" in problem
