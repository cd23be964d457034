"""Whether clocks agree: windows end by them, and leases pass by the ledger's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from suffice.doctor.contract import ok, problem, skipped, warning
from suffice.doctor.ledger import readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings
    from suffice.storage.ledger.ledger import Ledger

FAR = timedelta(seconds=60)
"""Two clocks that differ by more are not kept by the same time."""
_ZONES = ("Europe/Berlin", "America/New_York")
_SET_IT = "let a time service (chrony, systemd-timesyncd) set the clock; restart runs after that"


def check(place: Settings) -> Iterator[Fact]:
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
