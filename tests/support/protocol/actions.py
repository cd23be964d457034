"""What may happen next: each action has a guard and an effect, and names the code that it stands for.

An action gets the rules and a process's view of a state, and returns the next state, or None where its guard
fails. Leases are not modelled: a charge may be taken over at any time, so that each holder may wake up as a
zombie. A lost answer is a commit after which the process ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.protocol.world import (
    LIVE,
    MOST_RETURNS,
    NOTHING,
    RECOVERY,
    TOMBSTONE,
    WAIVER,
    Charge,
    Entry,
    Host,
    Process,
    State,
    View,
    held,
    newest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.protocol.world import Rules

    Action = Callable[[Rules, View], State | None]


# A release


def reserve(rules: Rules, view: View) -> State | None:
    """``ReleaseRun._fresh``: ``decide_rerun`` starts, ``Ledger.reserve``, ``Spool.reserve``."""
    last = newest(view.ledger)
    ended = last is None or last.state == "abandoned"
    if view.who == RECOVERY or not _may_start(rules, view) or not ended or held(view.ledger) >= rules.granted:
        return None
    claim = (1, view.ledger.branch)
    charge = Charge((len(view.ledger.charges) + 1, view.ledger.branch), holder=claim)
    view = view.commits(charge).goes("reserved", id=charge.id, epoch=1, holder=claim)
    return _begun(view)


def continue_reserved(rules: Rules, view: View) -> State | None:
    """``Decision.TAKE_OVER``: ``markers.standing_marker``, ``moves.claim``, ``Spool.reserve``."""
    charge = newest(view.ledger)
    if view.who == RECOVERY or not _may_start(rules, view) or charge is None or charge.state != "reserved":
        return None
    place = view.place(charge.id)
    if place.marker or place.files or place.manifest:
        return None
    claim = (charge.epoch + 1, view.ledger.branch)
    charge = charge._replace(epoch=charge.epoch + 1, holder=claim)
    view = view.commits(charge).goes("reserved", id=charge.id, epoch=charge.epoch, holder=claim)
    return _begun(view)


def draw_early(rules: Rules, view: View) -> State | None:
    """Let noise meet totals before ``drawing``: only a mutant does."""
    return _draw(view, "reserved") if rules.mutant == "charge after noise" and not view.me.draw else None


def waive(rules: Rules, view: View) -> State | None:
    """``settling.give_back`` or ``settling._end``: ``markers.waive``; none by a run in its draw."""
    if view.holds("reserved") is None:
        return None
    if rules.mutant == "without a waiver":
        return view.goes("waived").state
    standing = view.place(view.me.id).marker
    if standing == NOTHING:
        return view.puts(view.me.id, marker=WAIVER).goes("waived").state
    mine = standing in (WAIVER, view.run) or rules.mutant == "a waiver beside a marker"
    return view.goes("waived").state if mine else view.ends()


def give_back(_rules: Rules, view: View) -> State | None:
    """``settling.abandon``: ``Ledger.abandon`` returns the epsilon of what nobody draws."""
    charge = view.holds("reserved")
    if charge is None:
        return view.ends()
    return view.commits(charge._replace(state="abandoned", returned=True)).goes("ended").state


def mark(_rules: Rules, view: View) -> State | None:
    """``markers.put_marker``: ``Ledger.mark``."""
    charge = view.holds("reserved")
    return view.commits(charge._replace(marked=True)).goes("marked").state if charge else view.ends()


def put_marker(rules: Rules, view: View) -> State | None:
    """``markers.put_marker``: ``ObjectStore.put_new``."""
    if rules.mutant == "without the marker":
        return view.goes("put").state
    standing = view.place(view.me.id).marker
    if standing and rules.mutant == "any run's marker":
        return view.goes("put").state
    if standing:
        return view.ends()
    return view.puts(view.me.id, marker=view.run).goes("put").state


def look(rules: Rules, view: View) -> State | None:
    """``markers.refuse_newer``, and ``move_witness`` in ``ReleaseRun._preflight``."""
    moved = _move_witness(rules, view)
    return moved.goes("ready").state if moved and not _is_older(view) else view.ends()


def enter_drawing(_rules: Rules, view: View) -> State | None:
    """``Ledger.enter_drawing``: from here on noise may meet totals."""
    charge = view.holds("reserved")
    if charge is None:
        return view.ends()
    drawn = view.me.draw or _draw_of(view)
    charge = charge._replace(state="drawing", draw=drawn, machine=view.host.machine)
    return view.commits(charge).goes("drawn" if view.me.draw else "drawing", draw=drawn).state


def draw(_rules: Rules, view: View) -> State | None:
    """``ReleaseRun._draw``: noise meets totals, and its sums are written into the spool."""
    return _draw(view, "drawn")


def finish_entry(_rules: Rules, view: View) -> State | None:
    """``SpoolEntry.finish``: which fails where recovery removed the entry."""
    entry = view.entry(view.me.id, view.run)
    if entry is None:
        return view.ends()
    return view.keeps(entry._replace(complete=True)).goes("complete").state


# From a complete entry to a release, by the run itself or by recovery


def stage(_rules: Rules, view: View) -> State | None:
    """``Ledger.stage``: epsilon is spent from here on."""
    charge = view.holds("drawing")
    if charge is None:
        return view.ends()
    view = view.commits(charge._replace(state="staged")).knows("staged", view.me.draw)
    return view.goes("staged").state


def move_on(rules: Rules, view: View) -> State | None:
    """The rule: ``move_witness`` after ``staged``, to a head of a chain that has that entry."""
    if rules.mutant == "witness not moved" or not rules.witness:
        return view.goes("witnessed").state
    charge, moved = view.charge, _move_witness(rules, view)
    has_entry = charge is not None and charge.draw == view.me.draw and charge.state in ("staged", "published")
    if moved and (has_entry or rules.mutant == "witness moved to any head"):
        return moved.goes("witnessed").state
    return view.ends()


def put_files(_rules: Rules, view: View) -> State | None:
    """``publishing.put_files``; it may have looked for a tombstone long before."""
    draw, place = view.me.draw, view.place(view.me.id)
    if place.files not in (NOTHING, draw) or not (place.files or view.kept(draw)):
        return view.ends()
    return view.puts(view.me.id, files=draw).knows("revealed", draw).goes("filed").state


def put_early(rules: Rules, view: View) -> State | None:
    """Put files before ``staged``: only a mutant does."""
    return put_files(rules, view) if rules.mutant == "put before staged" else None


def put_manifest(_rules: Rules, view: View) -> State | None:
    """``publishing._put_manifest``: create-only."""
    standing = view.place(view.me.id).manifest
    if standing == TOMBSTONE:
        return view.goes("refused").state
    if standing not in (NOTHING, view.me.draw):
        return view.ends()
    return view.puts(view.me.id, manifest=view.me.draw).goes("public").state


def publish(_rules: Rules, view: View) -> State | None:
    """``publishing.mark_published``: takes the charge from whoever publishes the same bytes."""
    charge = view.charge
    if charge is None or charge.state not in ("staged", "published"):
        return view.ends()
    return view.commits(charge._replace(state="published")).goes("ended").state


def give_up(_rules: Rules, view: View) -> State | None:
    """``publishing.publish`` and ``settling.abandon``: ``Ledger.abandon``, epsilon spent."""
    charge = view.holds(*LIVE)
    return view.commits(charge._replace(state="abandoned")).goes("ended").state if charge else view.ends()


def forget(_rules: Rules, view: View) -> State | None:
    """``publishing.forget``."""
    return view.keeps().ends()


# Recovery


def take_over(rules: Rules, view: View, host: int) -> State | None:
    """``settling.settle``, by recovery or by a rerun: its guards, and ``Ledger.take_over``."""
    view = view.goes("idle", host=host)
    charge = newest(view.ledger)
    if charge is None or charge.state not in LIVE:
        return None
    place = view.place(charge.id)
    if charge.state == "reserved" and (place.files or place.manifest):
        return None
    here = view.host.machine == charge.machine or charge.machine < 0
    anywhere = rules.witness or rules.mutant == "restored copy without witness"
    decidable = (
        here or place.manifest or (anywhere if charge.state == "drawing" else _has_files(view, charge))
    )
    if charge.state != "reserved" and not decidable:
        return None
    return _taken(rules, view, charge, "taken")


def abandon_lost(rules: Rules, view: View, host: int) -> State | None:
    """``settling.abandon_lost``: an operator says that the spool is lost, rightly or not."""
    view = view.goes("idle", host=host)
    charge = newest(view.ledger)
    if charge is None or charge.state not in ("drawing", "staged"):
        return None
    return None if view.kept(charge.draw) else _taken(rules, view, charge, "lost")


def find_reserved(_rules: Rules, view: View) -> State | None:
    """``settling.settle``: no run's marker stands."""
    charge = view.holds("reserved")
    if charge is None or view.place(charge.id).marker not in (NOTHING, WAIVER):
        return None
    return view.goes("unmarked").state


def fence_reserved(_rules: Rules, view: View) -> State | None:
    """``settling.settle``: its marker stands, ``Ledger.enter_drawing``, to be spent."""
    charge = view.holds("reserved")
    if charge is None or view.place(charge.id).marker in (NOTHING, WAIVER):
        return None
    if not charge.marked:
        return view.ends()  # an older copy
    return view.commits(charge._replace(state="drawing", draw=_draw_of(view))).goes("incomplete").state


def find_complete(rules: Rules, view: View) -> State | None:
    """``settling._end``: ``Spool.complete`` has the entry, which is staged."""
    charge = view.holds("drawing")
    if charge is None or not view.kept(charge.draw) or rules.mutant == "with a complete spool":
        return None
    return view.goes("complete", draw=charge.draw).state


def find_incomplete(rules: Rules, view: View) -> State | None:
    """``settling._end``: ``Spool.complete`` has none."""
    charge = view.holds("drawing")
    if charge is None or (view.kept(charge.draw) and rules.mutant != "with a complete spool"):
        return None
    return view.goes("incomplete").state


def find_staged(_rules: Rules, view: View) -> State | None:
    """``settling._end``: ``publish_patiently``."""
    charge = view.holds("staged")
    return view.goes("staged", draw=charge.draw).state if charge else None


def find_lost(_rules: Rules, view: View) -> State | None:
    """End what another took over meanwhile: ``ChargeLostError``."""
    return None if view.holds(*LIVE) else view.ends()


def put_tombstone(rules: Rules, view: View) -> State | None:
    """``settling.abandon``: ``ReleaseStore.put_tombstone``; a release that stands there is taken for one."""
    standing, charge = view.place(view.me.id).manifest, view.holds(*LIVE)
    if charge is None:
        return view.ends()
    at = "fenced" if view.me.at == "incomplete" else "refused"
    if standing in (NOTHING, TOMBSTONE):
        without = rules.mutant == "without the tombstone"
        return (view if without else view.puts(view.me.id, manifest=TOMBSTONE)).goes(at).state
    if standing != charge.draw:
        return view.ends()
    adopted = view.commits(charge._replace(state="staged")).knows("staged", standing)  # ``settling._adopt``
    return adopted.goes("public", draw=standing).state


def find_evidence(rules: Rules, view: View) -> State | None:
    """The rule: the witness moved to the take-over; or this boot's incomplete entry is here, and removed.

    To look at the entry and to remove it are one step here.
    """
    charge = view.charge
    if charge is None or not _may_return(rules, view, charge):
        return view.goes("refused").state
    if rules.witness:
        moved = view.moves_witness()
        return moved.goes("certain").state if moved else view.ends()
    return (
        view.keeps().goes("certain").state
        if shows_incomplete(rules, view, charge)
        else view.goes("refused").state
    )


def give_draw_back(rules: Rules, view: View) -> State | None:
    """The rule: one transaction returns the epsilon of a draw."""
    states = LIVE if rules.mutant == "without take-over" else ("drawing",)
    charge = view.holds(*states)
    if charge is None:
        return view.ends()
    return view.commits(charge._replace(state="abandoned", returned=True), returns=1).goes("ended").state


def shows_incomplete(rules: Rules, view: View, charge: Charge) -> bool:
    """Tell whether this host shows, without a witness, that the charge's draw never came to its end."""
    if rules.mutant == "restored copy without witness":
        return True
    if rules.mutant == "clone with the same machine id and no entry":
        return view.host.machine == charge.machine
    entry = _entry_of_draw(rules, view, charge)
    if entry is None or (entry.complete and rules.mutant != "with a complete spool"):
        return False
    here = (view.host.machine, view.host.boot)
    return entry.begun == here or (rules.mutant == "another boot is enough" and entry.begun[0] == here[0])


def _entry_of_draw(rules: Rules, view: View, charge: Charge) -> Entry | None:
    """Return what this host's spool holds of the run that a charge's marker names."""
    if rules.mutant == "any run's entry":
        return next((entry for entry in view.host.spool if entry.id == charge.id), None)
    return view.entry(charge.id, view.place(charge.id).marker)


def _may_return(rules: Rules, view: View, charge: Charge) -> bool:
    """Tell whether a drawing charge may return at all: few did, and nothing stands there."""
    few = view.ledger.returns < MOST_RETURNS or rules.mutant == "a fourth time"
    return few and rules.mutant != "nothing returns" and not view.place(charge.id).files


def _taken(rules: Rules, view: View, charge: Charge, at: str) -> State:
    """Raise a charge's epoch and begin a recovery of it."""
    if rules.mutant != "without take-over":
        charge = charge._replace(epoch=charge.epoch + 1, holder=(charge.epoch + 1, view.ledger.branch))
    return _started(view.commits(charge).goes(at, id=charge.id, epoch=charge.epoch, holder=charge.holder))


def _begun(view: View) -> State:
    """Let a run begin its entry of the spool, in place of any other of its charge."""
    return _started(view.keeps(Entry(view.me.id, view.run, (view.host.machine, view.host.boot))))


def _started(view: View) -> State:
    return view.state._replace(starts=view.state.starts - 1)


def _may_start(rules: Rules, view: View) -> bool:
    """``release``: ``check_witness`` and ``refuse_older_ledger``; the first run is host 0's, by symmetry."""
    first = not view.ledger.charges and len(view.state.ledgers) == 1 and not view.state.backup
    unasked = rules.witness and not view.ledger.witnessed
    return view.state.starts > 0 and not unasked and not _is_older(view) and (view.me.host == 0 or not first)


def _move_witness(rules: Rules, view: View) -> View | None:
    """``witness.move_witness``; None where it holds an entry that this ledger lacks."""
    return view.moves_witness() if rules.witness else view


def _is_older(view: View) -> bool:
    """Tell whether the store has the marker of a charge that this ledger lacks."""
    ids = {charge.id for charge in view.ledger.charges}
    return any(place.marker not in (NOTHING, WAIVER) and place.id not in ids for place in view.places)


def _has_files(view: View, charge: Charge) -> bool:
    return view.kept(charge.draw) or view.place(charge.id).files == charge.draw


def _draw_of(view: View) -> tuple[int, ...]:
    return (*view.me.id, view.ledger.branch, view.me.epoch)


def _draw(view: View, at: str) -> State:
    draw = view.me.draw or _draw_of(view)
    entry = view.entry(view.me.id, view.run)
    drawn = view.knows("drawn", draw)
    if entry is None:  # recovery removed it
        return drawn.ends()
    return drawn.keeps(entry._replace(draw=draw)).goes(at, draw=draw).state


_OTHER_BOOT = 9
"""That of a copied disk, started elsewhere; hosts boot again less often."""

PROGRAM: dict[str, tuple[tuple[Action, bool], ...]] = {
    "idle": ((reserve, True), (continue_reserved, True)),
    "reserved": ((draw_early, False), (waive, False), (mark, True)),
    "marked": ((put_marker, False), (waive, False)),
    "put": ((look, False),),
    "ready": ((enter_drawing, True), (waive, False)),
    "drawing": ((draw, False),),
    "drawn": ((finish_entry, False),),
    "complete": ((put_early, False), (stage, True)),
    "staged": ((move_on, False),),
    "witnessed": ((put_files, False),),
    "filed": ((put_manifest, False),),
    "public": ((publish, True),),
    "refused": ((give_up, True),),
    "ended": ((forget, False),),
    "taken": (
        (find_reserved, False),
        (fence_reserved, True),
        (find_complete, False),
        (find_incomplete, False),
        (find_staged, False),
        (find_lost, False),
    ),
    "unmarked": ((waive, False),),
    "waived": ((give_back, True),),
    "incomplete": ((put_tombstone, False),),
    "lost": ((put_tombstone, False),),
    "fenced": ((find_evidence, False),),
    "certain": ((give_draw_back, True),),
}
"""By where a process is: what it may do next, and whether that is a commit, whose answer may be lost."""


def faults(rules: Rules, state: State) -> Iterator[tuple[str, State]]:
    """Yield what may happen to processes, hosts and ledgers."""
    yield from _copies(rules, state)
    if not state.faults:
        return
    state = state._replace(faults=state.faults - 1)
    for who, process in enumerate(state.processes):
        if process.at != "idle":
            yield f"{_name(state, who)} is killed", View(state, who).ends()
    for index, host in enumerate(state.hosts):
        down = state._replace(processes=_stopped(state, index))
        if host.spool:
            yield f"host {index} boots again", _with_host(down, index, host._replace(boot=host.boot + 1))
            other = Host(machine=host.machine + 2, boot=0, ledger=host.ledger, store=host.store)
            yield f"host {index} is lost, and another one takes its place", _with_host(down, index, other)


def _copies(rules: Rules, state: State) -> Iterator[tuple[str, State]]:
    """Yield states in which a ledger, and what the rules say with it, is copied, or a copy is put back."""
    stopped = all(process.at == "idle" for process in state.processes)
    if state.backup and (stopped or not rules.stops_runs):
        ((ledger, places),) = state.backup
        stores = (places,) if rules.copies_store else state.stores
        restored = ledger._replace(branch=1, like_its_copy=True)
        yield "the backup is restored", state._replace(ledgers=(restored,), stores=stores, backup=())
    last = newest(state.ledgers[0])
    if not state.copies or (last.state if last else "") not in rules.copied_from:
        return
    state = state._replace(copies=0)
    original = state.ledgers[0]
    if rules.copy == "restore":
        yield "a backup is made", state._replace(backup=((original, state.stores[0]),))
        return
    forked = state._replace(
        ledgers=(original, original._replace(branch=1)),
        stores=state.stores * 2 if rules.copies_store else state.stores,
    )
    for index in (1,) if rules.clone else (0, 1):
        host = state.hosts[index]._replace(ledger=1, store=int(rules.copies_store))
        copied = forked
        if rules.clone:
            copied = forked._replace(processes=_stopped(forked, 1))
            twin = state.hosts[0]
            spool = () if rules.clone == "image" else twin.spool
            boot = twin.boot if rules.clone == "container" else _OTHER_BOOT
            host = host._replace(machine=twin.machine, boot=boot, spool=spool)
        yield f"host {index} goes on with a copy", _with_host(copied, index, host)


def _stopped(state: State, host: int) -> tuple[Process, ...]:
    """Return the processes with all of one host ended."""
    return tuple(
        View(state, who).ends().processes[who] if process.host == host else process
        for who, process in enumerate(state.processes)
    )


def _with_host(state: State, index: int, host: Host) -> State:
    hosts = (host, state.hosts[1]) if index == 0 else (state.hosts[0], host)
    return state._replace(hosts=hosts)


def successors(rules: Rules, state: State) -> Iterator[tuple[str, State]]:
    """Yield every next state, with the name of what happened."""
    for who, process in enumerate(state.processes):
        view, name = View(state, who), _name(state, who)
        for action, commits in PROGRAM[process.at]:
            after = action(rules, view)
            if after is None:
                continue
            words = action.__name__.replace("_", " ")
            yield f"{name}: {words}", after
            if commits:
                yield f"{name}: {words}, whose answer is lost", View(after, who).ends()
        if process.at != "idle" or not state.starts:
            continue
        for host in (0, 1) if who == RECOVERY else (who,):
            actor = f"recovery on host {host}" if who == RECOVERY else name
            for start in (take_over, abandon_lost) if who == RECOVERY else (take_over,):
                after = start(rules, view, host)
                if after is not None:
                    yield f"{actor}: {start.__name__.replace('_', ' ')}", after
    yield from faults(rules, state)


def _name(state: State, who: int) -> str:
    process = state.processes[who]
    return f"the run on host {who}" if who != RECOVERY else f"recovery on host {process.host}"
