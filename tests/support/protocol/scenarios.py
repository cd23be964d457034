"""What is searched: worlds in which the protocol holds, mutants that break it, worlds without a promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from support.protocol.world import Rules

DRAWN = ("drawing", "staged", "published", "abandoned")
"""States of a charge from which on copies with a store of their own are searched where no witness tells them
apart: a copy made before pays less than both reveal."""

SCENARIOS = (
    Rules(name="one ledger"),
    Rules(name="one ledger, two attempts", granted=2),
    Rules(name="one ledger, two draws returned before", returns=2, granted=2),
    Rules(name="one ledger, three draws returned before", returns=3, granted=2),
    Rules(name="one ledger, a witness", witness=True),
    Rules(name="a second copy, one store", copy="fork"),
    Rules(name="a second copy, with its store", copy="fork", copies_store=True, copied_from=DRAWN),
    Rules(name="a clone of the machine", copy="fork", clone="image", copies_store=True, copied_from=DRAWN),
    Rules(name="a clone with its spool", copy="fork", clone="disk", copies_store=True, copied_from=DRAWN),
    Rules(name="a clone with its spool, one store", copy="fork", clone="disk"),
    Rules(name="a backup restored, its store stays", copy="restore", stops_runs=True),
    Rules(name="a backup restored under running runs, its store stays", copy="restore"),
    Rules(name="a backup restored, with its store", copy="restore", copies_store=True, copied_from=DRAWN),
    Rules(name="a second copy, with its store, a witness", copy="fork", copies_store=True, witness=True),
    Rules(name="a clone, a witness", copy="fork", clone="container", copies_store=True, witness=True),
    Rules(name="a backup restored, a witness", copy="restore", copies_store=True, witness=True),
)
WORLDS = {rules.name: rules for rules in SCENARIOS}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A protocol with one rule less, or a world without a promise, and what breaks there first."""

    rules: Rules
    breaks: str
    steps: int
    """The length of the shortest way to it."""

    @property
    def name(self) -> str:
        """The rule that is broken, or what the world is like."""
        return self.rules.mutant or self.rules.name


def _mutant(mutant: str, world: str, breaks: str, steps: int, **changes: Any) -> Mutant:
    rules = replace(WORLDS[world], **{"mutant": mutant, "starts": 2, "faults": 0, **changes})
    return Mutant(rules=rules, breaks=breaks, steps=steps)


MUTANTS = (
    _mutant("put before staged", "one ledger", "no unpublished secret", 8),
    _mutant("charge after noise", "one ledger", "no overspend", 4),
    _mutant("without the tombstone", "one ledger", "no unpublished secret", 14),
    _mutant("a fourth time", "one ledger, three draws returned before", "no overspend", 8),
    _mutant("without take-over", "one ledger, a witness", "no double draw", 15),
    _mutant("nothing returns", "one ledger", "no lost epsilon", 5),
    _mutant("with a complete spool", "a backup restored, with its store", "no double draw", 17),
    _mutant("restored copy without witness", "a second copy, with its store", "no double draw", 16),
    _mutant("clone with the same machine id and no entry", "a clone of the machine", "no double draw", 16),
    _mutant("another boot is enough", "a clone with its spool", "no double draw", 16),
    _mutant("witness not moved", "a second copy, with its store, a witness", "no double draw", 14),
    _mutant("witness moved to any head", "a backup restored, a witness", "no double draw", 15),
    _mutant("without the marker", "a backup restored, its store stays", "no overspend", 24),
    _mutant("without a waiver", "a second copy, one store", "no double draw", 14),
    _mutant("a waiver beside a marker", "a second copy, one store", "no double draw", 14),
    _mutant("any run's marker", "a second copy, one store", "no double draw", 14),
    _mutant(
        "any run's entry",
        "a second copy, one store",
        "no double draw",
        17,
        starts=3,
        copied_from=("reserved",),  # all others take four times as long, and show it no sooner
    ),
)

_CLONE = Rules(name="", copy="fork", clone="container", copied_from=DRAWN, starts=2, faults=0)
LIMITS = (
    Mutant(
        rules=replace(_CLONE, name="a clone with spool and boot, one store"),
        breaks="no double draw",
        steps=16,
    ),
    Mutant(
        rules=replace(_CLONE, name="a clone with spool, boot and store", copies_store=True),
        breaks="no double draw",
        steps=16,
    ),
)
"""Worlds in which two copies go on at once, and no witness tells them apart: nothing is promised there."""
