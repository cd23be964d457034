"""What a state of the ledger's protocol is: ledgers, stores, hosts with spools, and processes.

Everything is a tuple, so that a state can be kept in a set. A copy of a ledger is a *branch*: what is
appended to one is not in the other; all processes of a host reach the same one. One key is released, at one
unit of epsilon an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Id = tuple[int, int]
"""A charge: its attempt, and the branch that reserved it."""
Draw = tuple[int, ...]
"""A noisy version: its charge, the branch in which that entered ``drawing``, the epoch; or `NOTHING`."""
Run = tuple[int, ...]
"""Who holds a charge: the epoch, counted from 1, and the branch; or `NOTHING`."""
NOTHING: Draw = ()
TOMBSTONE: Draw = (0,)
"""What may stand at a manifest's key instead of a draw's manifest."""
WAIVER: Run = (0, 0)
"""What may stand at a marker's key instead of a run: nobody draws."""
LIVE = ("reserved", "drawing", "staged")
MOST_RETURNS = 3
"""Draws of a key whose epsilon may return."""


class Charge(NamedTuple):
    """A row of the ledger, as `storage.ledger.charge.Charge`."""

    id: Id
    state: str = "reserved"
    epoch: int = 1
    marked: bool = False
    draw: Draw = NOTHING
    """What its ``drawing`` entry names; `NOTHING` before."""
    machine: int = -1
    """Whose spool it named when it entered ``drawing``; -1 where recovery did that."""
    returned: bool = False
    holder: Run = NOTHING
    """The run or recovery that has it."""


class Ledger(NamedTuple):
    """One copy of the ledger; one account with one key."""

    branch: int = 0
    charges: tuple[Charge, ...] = ()
    returns: int = 0
    """Draws whose epsilon was returned."""
    like_its_copy: bool = True
    """Whether nothing was appended since it was copied: then a witness of its end fits both."""
    witnessed: bool = True
    """Whether it has the entry that the witness holds."""


class Place(NamedTuple):
    """What a store has of one charge."""

    id: Id
    marker: Run = NOTHING
    files: Draw = NOTHING
    manifest: Draw = NOTHING


class Entry(NamedTuple):
    """A directory in a spool."""

    id: Id
    run: Run
    begun: tuple[int, int]
    """The machine, and its boot, on which its run began it."""
    draw: Draw = NOTHING
    complete: bool = False


class Host(NamedTuple):
    """A machine with its spool; the spool's id goes with the machine's."""

    machine: int
    boot: int
    spool: tuple[Entry, ...] = ()
    ledger: int = 0
    """Which copy its processes reach."""
    store: int = 0


class Process(NamedTuple):
    """A run or a recovery: where it is, and what it has in memory."""

    at: str = "idle"
    host: int = 0
    id: Id = (0, 0)
    holder: Run = NOTHING
    """Its random token: the epoch and the branch of its claim, in whichever copy it acts later."""
    epoch: int = 0
    draw: Draw = NOTHING


IDLE = Process()
RECOVERY = 2
"""Which process recovers, on either host; the others are the runs on host 0 and on host 1."""


class State(NamedTuple):
    """All that is durable and all that is in memory; the last five are what only the search knows."""

    ledgers: tuple[Ledger, ...]
    stores: tuple[tuple[Place, ...], ...]
    hosts: tuple[Host, Host]
    processes: tuple[Process, ...]
    backup: tuple[tuple[Ledger, tuple[Place, ...]], ...] = ()
    starts: int = 0
    faults: int = 0
    copies: int = 0
    drawn: tuple[Draw, ...] = ()
    """Noise that met totals."""
    staged: tuple[Draw, ...] = ()
    """What was ever staged, in any copy."""
    revealed: tuple[Draw, ...] = ()
    """What left a host."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What happens in a search, and which rule of the protocol is broken in it."""

    name: str
    granted: int = 1
    returns: int = 0
    """Draws of the key whose epsilon was returned before."""
    witness: bool = False
    copy: str = ""
    """``fork``: a host goes on with a copy, beside the original; ``restore``: a backup is put back."""
    copies_store: bool = False
    clone: str = ""
    """What host 1 of a fork has of host 0: by ``image`` the machine's id, by ``disk`` the spool too, by
    ``container`` all of that and the boot."""
    copied_from: tuple[str, ...] = ("", *LIVE, "published", "abandoned")
    """In which states of the newest charge a copy is made; ``""`` is before there is any."""
    stops_runs: bool = False
    """Whether all runs are stopped before a backup is put back, as the page on operating a ledger asks."""
    starts: int = 3
    faults: int = 1
    mutant: str = ""

    @property
    def bounds_copies(self) -> bool:
        """Whether all copies together keep the grant: a witness, or one store's markers, see to that."""
        return self.witness or not self.copies_store


def first_state(rules: Rules) -> State:
    """Return the state in which nothing was charged yet."""
    ledger = Ledger(returns=rules.returns)
    hosts = (Host(machine=0, boot=0), Host(machine=1, boot=1))
    return State(
        ledgers=(ledger,),
        stores=((),),
        hosts=hosts,
        processes=(IDLE, Process(host=1), IDLE),
        starts=rules.starts,
        faults=rules.faults,
        copies=1 if rules.copy else 0,
    )


def added(draws: tuple[Draw, ...], draw: Draw) -> tuple[Draw, ...]:
    """Return a set of draws with one more."""
    return draws if draw in draws else tuple(sorted((*draws, draw)))


def newest(ledger: Ledger) -> Charge | None:
    """Return the newest attempt, as ``Ledger.find``."""
    return ledger.charges[-1] if ledger.charges else None


def held(ledger: Ledger) -> int:
    """Return the epsilon that is reserved or spent."""
    return sum(not charge.returned for charge in ledger.charges)


@dataclass(slots=True)
class View:
    """A state as one process sees it; each change returns the next state."""

    state: State
    who: int

    @property
    def me(self) -> Process:
        """The process."""
        return self.state.processes[self.who]

    @property
    def host(self) -> Host:
        """Where it runs."""
        return self.state.hosts[self.me.host]

    @property
    def ledger(self) -> Ledger:
        """The copy that it reaches."""
        return self.state.ledgers[self.host.ledger]

    @property
    def charge(self) -> Charge | None:
        """The row of its charge; None where this copy has none."""
        return next((charge for charge in self.ledger.charges if charge.id == self.me.id), None)

    def holds(self, *states: str) -> Charge | None:
        """Return its charge if that has its epoch and one of these states, as ``moves.move`` asks."""
        charge = self.charge
        mine = charge is not None and (charge.epoch, charge.holder) == (self.me.epoch, self.me.holder)
        fits = mine and charge is not None and charge.state in states
        return charge if fits else None

    @property
    def run(self) -> Run:
        """What tells it from every other holder of its charge, in any copy."""
        return self.me.holder

    @property
    def places(self) -> tuple[Place, ...]:
        """What is in the store that it reaches."""
        return self.state.stores[self.host.store]

    def place(self, of: Id) -> Place:
        """What the store has of a charge."""
        return next((place for place in self.places if place.id == of), Place(of))

    def entry(self, of: Id, run: Run) -> Entry | None:
        """The entry of a run of a charge in this host's spool."""
        return next((entry for entry in self.host.spool if (entry.id, entry.run) == (of, run)), None)

    def kept(self, draw: Draw) -> bool:
        """Tell whether this host's spool has a draw, complete."""
        return any(entry.complete and entry.draw == draw for entry in self.host.spool)

    def goes(self, at: str, **changes: object) -> View:
        """Let the process be elsewhere in its program."""
        me = self.me._replace(at=at, **changes)  # type: ignore[arg-type]
        return self._with("processes", self.who, me)

    def ends(self) -> State:
        """Let the process end."""
        return self._with(
            "processes", self.who, IDLE if self.who == RECOVERY else Process(host=self.who)
        ).state

    def commits(self, charge: Charge, *, returns: int = 0) -> View:
        """Write a charge into the ledger, durably."""
        ledger = self.ledger
        others = tuple(other for other in ledger.charges if other.id != charge.id)
        copied = len(self.state.ledgers) > 1 or bool(self.state.backup)
        written = ledger._replace(
            charges=(*others, charge),
            returns=ledger.returns + returns,
            like_its_copy=ledger.like_its_copy and not copied,
        )
        return self._with("ledgers", self.host.ledger, written)

    def puts(self, of: Id, **changes: object) -> View:
        """Put something of a charge into the store; who calls has looked that nothing stands there."""
        put = self.place(of)._replace(**changes)  # type: ignore[arg-type]
        others = (place for place in self.places if place.id != of)
        return self._with("stores", self.host.store, tuple(sorted((*others, put))))

    def keeps(self, *entries: Entry) -> View:
        """Have only these entries of its charge in the spool."""
        others = (entry for entry in self.host.spool if entry.id != self.me.id)
        host = self.host._replace(spool=tuple(sorted((*others, *entries))))
        return self._with("hosts", self.me.host, host)

    def moves_witness(self) -> View | None:
        """Move the witness to this ledger's head; None where it holds an entry of another branch."""
        ledger = self.ledger
        if not ledger.witnessed:
            return None
        if ledger.like_its_copy:
            return self
        ledgers = tuple(each._replace(witnessed=each is ledger) for each in self.state.ledgers)
        backup = tuple((each._replace(witnessed=False), places) for each, places in self.state.backup)
        return View(self.state._replace(ledgers=ledgers, backup=backup), self.who)

    def knows(self, name: str, draw: Draw) -> View:
        """Add a draw to what only the search knows."""
        draws = added(getattr(self.state, name), draw)
        return View(self.state._replace(**{name: draws}), self.who)  # type: ignore[arg-type]

    def _with(self, name: str, index: int, value: object) -> View:
        before = getattr(self.state, name)
        after = (*before[:index], value, *before[index + 1 :])
        return View(self.state._replace(**{name: after}), self.who)  # type: ignore[arg-type]
