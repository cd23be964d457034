"""Whether the store is the ledger's, and whether every store that it charged for still answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, problem, skipped, warning
from suffice.doctor.ledger import readable
from suffice.errors import SufficeError
from suffice.profile.addresses import redacted
from suffice.storage.objects.address import read_address
from suffice.storage.operations.known_stores import ask
from suffice.storage.operations.markers import markers_after, refuse_newer
from suffice.storage.releases.store_identity import read_identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.operations.markers import Marker


def check(place: Settings) -> Iterator[Fact]:
    """Read each store's identity; whether it can be written, ``suffice rehearse`` tries."""
    address = read_address(place.store)
    identity = read_identity(address.objects(), address.uri)
    here = redacted(address.uri)
    if identity is None:
        yield warning(f"there is no store at {here} yet", "the first release makes it: suffice rehearse")
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
            yield ok(f"the store {identity.store_id[:8]} at {here} is this ledger's")
        known = [store for store in ledger.stores() if not store.retired]
        answers = ask(known, ledger.ledger_id)
        shown = [(answer.store.uri, answer.markers) for answer in answers]
        remembered = {store.store_id for store in ledger.stores()}
        if identity and identity.ledger_id == ledger.ledger_id and identity.store_id not in remembered:
            lacked = tuple(markers_after(address.objects(), address.uri, 0))
            shown.append((address.uri, lacked))
        newer = [found for uri, markers in shown if (found := _newer(ledger, uri, markers))]
    yield from newer
    answered = {answer.store.store_id for answer in answers}
    for store in known:
        if store.store_id not in answered:
            yield problem(
                f"the store {store.store_id[:8]} that the ledger charged for does not answer at "
                f"{redacted(store.uri)}",
                "bring it back; where it was moved: suffice store adopt STORE; where it is gone for good: "
                f"suffice store retire {store.store_id} --reason TEXT",
            )
    if known and len(answered) == len(known) and not newer:
        yield ok(f"every store that the ledger charged for answers: {len(known)}")


def _newer(ledger: Ledger, uri: str, markers: Iterable[tuple[str, Marker | None]]) -> Fact | None:
    """Tell of charges that a store shows and the ledger lacks; every run is refused then."""
    try:
        refuse_newer(ledger, uri, markers)
    except SufficeError as error:
        return problem(str(error), "deploy/RUNBOOK.md: what to do about a ledger from a backup")
    return None
