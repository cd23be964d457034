"""Whether the store is the ledger's, every store that it charged for answers, and none is newer than it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, problem, skipped, warning
from suffice.doctor.ledger import readable
from suffice.errors import LedgerCorruptError
from suffice.profile.addresses import redacted
from suffice.storage.objects.address import read_address
from suffice.storage.operations.markers import refuse_newer, refuse_older_ledger
from suffice.storage.operations.witness import ask
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.store_identity import read_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings


def check(place: Settings) -> Iterator[Fact]:
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
