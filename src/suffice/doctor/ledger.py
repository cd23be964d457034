"""Whether the ledger opens, has accounts, is no older copy, and has nothing that recovery should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, skipped, warning
from suffice.errors import SufficeError
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.charge import LIVE, is_held
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.witness import check_witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings
    from suffice.storage.ledger.ledger import Ledger


def check(place: Settings) -> Iterator[Fact]:
    """Open the ledger for reading only; the chain itself is for ``suffice ledger verify``."""
    with open_ledger(place.ledger, reading_only=True) as ledger:
        accounts = ledger.accounts()
        yield ok(f"the ledger {ledger.ledger_id[:8]} can be read; {counted(len(accounts), 'account')}")
        if not accounts:
            yield warning("nothing was granted yet", "suffice ledger grant DATASET --epsilon E --reason TEXT")
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
