"""Whether what a run relies on beside its own host answers and agrees: ledger, stores, cluster and clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from suffice.doctor.contract import ok, problem, skipped, warning
from suffice.errors import LedgerCorruptError, SufficeError
from suffice.pipeline.cluster.connection import LOCAL, THREADS, check_cluster, check_workers, require_dask
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.values import redacted
from suffice.storage.ledger.amounts import GRANT_FIRST
from suffice.storage.ledger.charge import LIVE, is_held
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.objects.address import read_address
from suffice.storage.operations.markers import refuse_newer, refuse_older_ledger
from suffice.storage.operations.witness import ask, check_witness
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.store_identity import read_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings
    from suffice.storage.ledger.ledger import Ledger

FAR = timedelta(seconds=60)
"""Two clocks that differ by more are not kept by the same time."""
_ZONES = ("Europe/Berlin", "America/New_York")
_SET_IT = "let a time service (chrony, systemd-timesyncd) set the clock; restart runs after that"


def examine_ledger(place: Settings) -> Iterator[Fact]:
    """Open the ledger for reading only; the chain itself is for ``suffice ledger verify``."""
    with open_ledger(place.ledger, reading_only=True) as ledger:
        accounts = ledger.accounts()
        yield ok(f"the ledger {ledger.ledger_id[:8]} can be read; {counted(len(accounts), 'account')}")
        if not accounts:
            yield warning("nothing was granted yet", GRANT_FIRST)
        if left := _left(ledger):
            yield warning(
                f"{counted(left, 'charge')} of runs that are gone",
                "suffice ledger recover, on the host that the runs ran on",
            )
        if place.witness is None:
            yield skipped("no witness is named")
        else:
            check_witness(ledger, place.witness)
            yield ok("the witness's entry is in the ledger")


def readable(place: Settings) -> Ledger | None:
    """Open the ledger for a check of something else; None where it cannot be, which its own check tells."""
    try:
        return open_ledger(place.ledger, reading_only=True)
    except SufficeError:
        return None


def _left(ledger: Ledger) -> int:
    """Count charges that have not ended and that no run holds."""
    count = 0
    for summary in ledger.unsettled():
        if summary.state in LIVE:
            charge = ledger.charge(summary.charge_id)
            count += charge is not None and not is_held(charge, ledger.now())
    return count


def examine_stores(place: Settings) -> Iterator[Fact]:
    """Read each store's identity; whether it can be written, ``suffice rehearse`` tries."""
    address = read_address(place.store)
    identity = read_identity(address.objects(), address.uri)
    here = redacted(address.uri)
    if identity is None:
        yield warning(
            f"there is no store at {here} yet",
            "the first release makes it; suffice rehearse tries whether it can",
        )
    opened = readable(place)
    if opened is None:
        yield skipped("whose store this is cannot be told: the ledger cannot be read")
        return
    with opened as ledger:
        if identity is not None and identity.ledger_id != ledger.ledger_id:
            yield problem(
                f"the store at {here} is another ledger's",
                "name the store of this ledger: suffice store list",
            )
        elif identity is not None:
            yield from _older(refuse_older_ledger, ledger, open_store(address.uri, probe=False))
            yield ok(f"the store {identity.store_id[:8]} at {here} is this ledger's")
        known = [store for store in ledger.stores() if not store.retired]
        answers = ask(known, ledger.ledger_id)
        answered = {answer.store.store_id for answer in answers}
        for answer in answers:
            if identity is None or answer.store.store_id != identity.store_id:
                yield from _older(refuse_newer, ledger, redacted(answer.store.uri), answer.markers)
    for store in known:
        if store.store_id not in answered:
            yield problem(
                f"the store {store.store_id[:8]} that the ledger charged for does not answer at "
                f"{redacted(store.uri)}",
                "let this user read it, or bring it back; where it was moved: suffice store adopt STORE; "
                f"where it is gone for good: suffice store retire {store.store_id} --reason TEXT",
            )
    if known and len(answered) == len(known):
        yield ok(f"every store that the ledger charged for answers: {len(known)}")


def _older(look: Callable[..., None], *asked: object) -> Iterator[Fact]:
    """Tell whether a store shows charges that the ledger lacks."""
    try:
        look(*asked)
    except LedgerCorruptError as error:
        yield problem(
            str(error),
            'stop all runs, and follow "A lost ledger" on the documentation\'s page "When something goes '
            'wrong"',
        )


def examine_cluster(place: Settings) -> Iterator[Fact]:
    """Connect to a cluster that is given by address, and ask its workers; start none."""
    check_cluster(place.cluster)
    if place.cluster == THREADS:
        yield ok("threads of the run's own process")
        return
    require_dask("a cluster of processes")
    if place.cluster == LOCAL:
        yield ok("processes of this machine, which each run starts for itself; none was started now")
    else:
        n_workers = check_workers(place.cluster, certificates=place.cluster_certificates)
        workers = counted(n_workers, "worker")
        yield ok(f"the cluster answers: {workers}, none of which may spill, and each of this version")


def examine_clock(place: Settings) -> Iterator[Fact]:
    """Compare this host's clock with the ledger's, and both with the ledger's last entry."""
    yield from _zones()
    opened = readable(place)
    if opened is None:
        yield skipped("there is no ledger to compare clocks with")
        return
    with opened as ledger:
        here, there = datetime.now(UTC), ledger.now()
        if abs(here - there) > FAR:
            yield problem("this host's clock and the ledger's differ by more than a minute", _SET_IT)
        else:
            yield ok("this host's clock and the ledger's agree to a minute")
        last = _last(ledger)
    if last is not None and last > min(here, there) + FAR:
        yield problem("the ledger has an entry of a later time than now: a clock is or was wrong", _SET_IT)


def _zones() -> Iterator[Fact]:
    try:
        for zone in _ZONES:
            ZoneInfo(zone)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        yield warning(
            "there are no time zones: specs whose windows have one are refused",
            "pip install tzdata, or the system's package of that name",
        )
    else:
        yield ok("time zones are installed")


def _last(ledger: Ledger) -> datetime | None:
    """Return the time of the last entry, to the minute."""
    after = max(0, ledger.head().sequence - 1)
    last = None
    for entry in ledger.entries(after=after):
        last = datetime.fromisoformat(entry.time)
    return last
