"""All interleavings, breadth first: how many states there are, and the shortest way to break a promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.protocol.actions import PROGRAM, successors, take_over
from support.protocol.world import (
    LIVE,
    MOST_RETURNS,
    NOTHING,
    RECOVERY,
    TOMBSTONE,
    WAIVER,
    View,
    first_state,
    newest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from support.protocol.world import Charge, Ledger, Rules, State

MOST_STEPS = 100
"""More than any search takes: processes start a bounded number of times, so that each one ends."""


def accepted(rules: Rules, state: State) -> Iterator[Ledger]:
    """Yield the copies that may go on: with a witness, only those that have its entry."""
    return (ledger for ledger in state.ledgers if ledger.witnessed or not rules.witness)


def no_double_draw(rules: Rules, state: State) -> bool:
    """Tell whether each charge pays for one version at most, and for none once its epsilon returned."""
    if not state.revealed:
        return True
    paid = [draw[:2] for draw in state.revealed]
    returned = {
        charge.id for ledger in accepted(rules, state) for charge in ledger.charges if charge.returned
    }
    return len(set(paid)) == len(paid) and returned.isdisjoint(paid)


def no_overspend(rules: Rules, state: State) -> bool:
    """Tell whether no more was revealed than was granted, and each draw is held, or is a counted return."""
    if rules.bounds_copies and len(state.revealed) > rules.granted:
        return False
    drawn_in = {draw[:3] for draw in state.drawn}
    return all(
        ledger.returns <= MOST_RETURNS
        and not any(
            charge.returned and not charge.draw and (*charge.id, ledger.branch) in drawn_in
            for charge in ledger.charges
        )
        for ledger in accepted(rules, state)
    )


def no_unpublished_secret(rules: Rules, state: State) -> bool:
    """Tell whether what left a host was staged before, and no release stands of an abandoned charge."""
    if not state.revealed:
        return True
    if not set(state.revealed) <= set(state.staged):
        return False
    if rules.copies_store:  # which may lack a tombstone
        return True
    return not any(
        charge.state == "abandoned"
        and View(state, host).place(charge.id).manifest not in (NOTHING, TOMBSTONE)
        for host in (0, 1)
        for charge in View(state, host).ledger.charges
    )


def no_lost_epsilon(rules: Rules, state: State) -> bool:
    """Tell whether a recovery that nobody disturbs ends what dead runs left as it should."""
    if any(process.at != "idle" for process in state.processes):
        return True
    for host in (0, 1):
        wanted = owed(rules, state, host)
        if wanted and wanted != outcome(rules, state, host):
            return False
    return True


def owed(rules: Rules, state: State, host: int) -> str:
    """Say what has to become of the newest charge, from all that is true of it; empty where that is open."""
    view = View(state, host)
    charge = newest(view.ledger)
    if charge is None or charge.state not in LIVE or (rules.witness and not view.ledger.witnessed):
        return ""
    place = view.place(charge.id)
    if charge.state == "reserved" and place.marker in (NOTHING, WAIVER):
        return "" if place.files or place.manifest else "returned"
    return _owed_once_marked(rules, view, charge)


def _owed_once_marked(rules: Rules, view: View, charge: Charge) -> str:
    """Say the same of a charge that may have drawn."""
    place = view.place(charge.id)
    if place.manifest == TOMBSTONE or (place.manifest and place.manifest != charge.draw):
        return ""
    kept = any(entry.complete and entry.draw == charge.draw for entry in view.host.spool)
    if charge.draw and (kept or (charge.state == "staged" and place.files == charge.draw)):
        return "" if place.files not in (NOTHING, charge.draw) else "published"
    older = charge.state == "reserved" and not charge.marked
    if older or charge.state == "staged" or place.files or view.ledger.returns >= MOST_RETURNS:
        return ""
    entry = view.entry(charge.id, place.marker)
    here = (view.host.machine, view.host.boot)
    begun = entry is not None and not entry.complete and entry.begun == here
    return "returned" if rules.witness or begun else ""


def outcome(rules: Rules, state: State, host: int) -> str:
    """Run one recovery on a host to its end, and say what became of the charge."""
    state = state._replace(starts=1, faults=0, copies=0, backup=())
    current = take_over(rules, View(state, RECOVERY), host)
    if current is None:
        return "left"
    while current.processes[RECOVERY].at != "idle":
        view = View(current, RECOVERY)
        steps = (action(rules, view) for action, _ in PROGRAM[current.processes[RECOVERY].at])
        current = next(after for after in steps if after is not None)
    charge: Charge | None = newest(View(current, host).ledger)
    assert charge is not None
    return "returned" if charge.returned else charge.state


INVARIANTS: dict[str, Callable[[Rules, State], bool]] = {
    "no double draw": no_double_draw,
    "no overspend": no_overspend,
    "no lost epsilon": no_lost_epsilon,
    "no unpublished secret": no_unpublished_secret,
}


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a search came to; as text the steps, numbered.

    Attributes
    ----------
    states : int
    depth : int
        Actions behind the last states.
    exhausted : bool
        Whether no state is left whose successors were not looked at.
    broken : str
        The invariant that does not hold; empty where all do.
    steps : tuple of str
        The shortest way to break it.
    """

    states: int
    depth: int
    exhausted: bool
    broken: str = ""
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(f"{number:>3}. {step}" for number, step in enumerate(self.steps, 1))


def search(rules: Rules, *, depth: int = MOST_STEPS, invariants: Iterable[str] = INVARIANTS) -> Result:
    """Visit every state within some actions of the first, until one breaks an invariant.

    What was visited is known by its hash of 64 bits: of ten million states two share one, and a state is
    taken for visited, with a chance of 3 in a million.
    """
    start = first_state(rules)
    checks = [(name, INVARIANTS[name]) for name in invariants]
    came_from: dict[int, tuple[int, str] | None] = {hash(start): None}
    level, reached = [start], 0
    while level and reached < depth:
        reached += 1
        following = []
        for state in level:
            for name, after in successors(rules, state):
                key = hash(after)
                if key in came_from:
                    continue
                came_from[key] = (hash(state), name)
                following.append(after)
                broken = next((name for name, holds in checks if not holds(rules, after)), "")
                if broken:
                    steps = tuple(_steps_back(key, came_from))[::-1]
                    size = len(came_from)
                    return Result(states=size, depth=reached, exhausted=False, broken=broken, steps=steps)
        level = following
    return Result(states=len(came_from), depth=reached, exhausted=not level)


def _steps_back(key: int, came_from: dict[int, tuple[int, str] | None]) -> Iterator[str]:
    while (before := came_from[key]) is not None:
        key, name = before
        yield name
