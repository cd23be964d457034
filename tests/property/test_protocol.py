"""The ledger's protocol as a model: no interleaving breaks a promise, and each mutant breaks one.

`tests/support/protocol/` is the model; `python -m support.protocol`, in `tests/`, prints how mutants break.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from support.protocol.scenarios import LIMITS, MUTANTS, SCENARIOS, WORLDS, Mutant
from support.protocol.search import INVARIANTS, search

if TYPE_CHECKING:
    from support.protocol.world import Rules

QUICK = frozenset(
    {"put before staged", "charge after noise", "without the tombstone", "a fourth time", "nothing returns"}
)
"""Mutants that fewer than 400 states show, in some .1 s."""


def by_size(mutants: tuple[Mutant, ...]) -> list[object]:
    """Return the mutants as parameters; all but those that few states show are slow."""
    return [
        pytest.param(mutant, id=mutant.name, marks=() if mutant.name in QUICK else pytest.mark.slow)
        for mutant in mutants
    ]


def named(rules: Rules) -> str:
    return rules.name


def test_a_run_and_a_recovery_keep_every_promise() -> None:
    result = search(replace(WORLDS["one ledger"], starts=2, faults=0))
    assert (result.broken, result.exhausted) == ("", True)


@pytest.mark.slow
@pytest.mark.parametrize("rules", SCENARIOS, ids=named)
def test_two_starts_keep_every_promise(rules: Rules) -> None:
    result = search(replace(rules, starts=2, faults=0))
    assert (result.broken, str(result), result.exhausted) == ("", "", True)


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("faults", [0, 1])
@pytest.mark.parametrize("rules", SCENARIOS, ids=named)
def test_three_starts_keep_every_promise(rules: Rules, faults: int) -> None:
    """Without a fault all worlds together take four minutes of a processor; with one, hours."""
    result = search(replace(rules, faults=faults))
    assert (result.broken, str(result), result.exhausted) == ("", "", True)
    print(f"\n{rules.name}: {result.states} states, {result.depth} actions")  # noqa: T201 - for the page


@pytest.mark.parametrize("mutant", by_size(MUTANTS))
def test_a_mutant_breaks_its_promise(mutant: Mutant) -> None:
    result = search(mutant.rules, invariants=[mutant.breaks])
    assert (result.broken, len(result.steps)) == (mutant.breaks, mutant.steps), str(result)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [pytest.param(limit, id=limit.name) for limit in LIMITS])
def test_what_is_not_promised_is_stated(mutant: Mutant) -> None:
    result = search(mutant.rules, invariants=[mutant.breaks])
    assert (result.broken, len(result.steps)) == (mutant.breaks, mutant.steps), str(result)


def test_a_counterexample_reads_as_a_numbered_list() -> None:
    early = next(mutant for mutant in MUTANTS if mutant.name == "charge after noise")
    assert str(search(early.rules)).splitlines() == [
        "  1. the run on host 0: reserve",
        "  2. the run on host 0: draw early",
        "  3. the run on host 0: waive",
        "  4. the run on host 0: give back",
    ]


def test_every_promise_is_broken_by_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS} == set(INVARIANTS)
