"""Sixteen processes at one account: exactly the grant is taken, and nobody is told to come back later."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.storage.ledger.opening import create_ledger
from support.ledger_sql import execute
from support.overspending import TAKEN, Race

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.ledger.ledger import Ledger

PROCESSES = 16
UNGUARDED = {
    "sqlite": ["DROP TRIGGER windows_never_overspent"],
    "postgresql": [
        "DROP TRIGGER never_over_the_grant ON windows",
    ],
}


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with create_ledger(ledger_url) as ledger:
        yield ledger


def grant(ledger: Ledger, dataset: str, total: int, grid: str | None) -> None:
    ledger.grant(dataset, epsilon=Fraction(total), per_window=grid, sources=["/data"], reason="x")


def assert_exact(ledger: Ledger, race: Race, timeout: float) -> None:
    asked = race.processes * race.attempts
    granted = {dataset: int(ledger.account(dataset).granted) for dataset in race.datasets}
    expected = {
        dataset: {TAKEN: min(total, asked)}
        | ({"BudgetExceededError": asked - total} if asked > total else {})
        for dataset, total in granted.items()
    }
    assert race.run(timeout) == expected
    for dataset, total in granted.items():
        assert ledger.remaining(dataset, "2013-01") == max(0, total - asked)
    assert ledger.verify() == ()


@pytest.mark.slow
def test_exactly_the_grant_is_taken(ledger: Ledger, ledger_url: str) -> None:
    totals = {"whole": 70, "monthly": 70, "plenty": 100}
    for dataset, total in totals.items():
        grant(ledger, dataset, total, "day:month:UTC" if dataset == "monthly" else None)
    assert_exact(
        ledger, Race(url=ledger_url, datasets=list(totals), processes=PROCESSES, attempts=6), timeout=100
    )


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_exactly_the_grant_is_taken_in_20_rounds_of_200_attempts(ledger: Ledger, ledger_url: str) -> None:
    datasets = [f"round-{number}" for number in range(20)]
    for number, dataset in enumerate(datasets):
        grant(ledger, dataset, 500, "day:month:UTC" if number % 2 else None)
    race = Race(url=ledger_url, datasets=datasets, processes=PROCESSES, attempts=200)
    assert_exact(ledger, race, timeout=3500)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.slow
def test_a_check_before_the_transaction_overspends(ledger: Ledger, ledger_url: str, guarded: bool) -> None:
    """The mutant: stopped only by the rules that the database keeps by itself."""
    if not guarded:
        execute(ledger_url, *UNGUARDED[ledger_url.partition(":")[0]])
    grant(ledger, "monthly", 60, "day:month:UTC")
    race = Race(url=ledger_url, datasets=["monthly"], processes=PROCESSES, attempts=6, checks_first=True)
    taken = race.run(timeout=100)["monthly"][TAKEN]
    if guarded:
        assert taken == 60
        assert ledger.verify() == ()
    else:
        assert taken > 60
        problems = ledger.verify()
        assert any("never over the grant" in problem for problem in problems), problems
