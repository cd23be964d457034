"""What guards a charge while its run works: a heartbeat for its lease, and interrupts that wait."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

from suffice.errors import ChargeLostError, LedgerError
from suffice.storage.ledger.ledger import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger


@contextlib.contextmanager
def heartbeat(ledger: Ledger, charge: Charge) -> Iterator[None]:
    """Renew the charge's lease until the block ends; a lost lease shows when the charge is next moved."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(LEASE.total_seconds() / 4):
            try:
                ledger.renew(charge)
            except ChargeLostError:
                return
            except LedgerError:
                continue

    thread = threading.Thread(target=beat, name="suffice-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Hold SIGINT and SIGTERM back until the block ends; the value tells whether one came.

    Outside the main thread, where Python delivers no signals, there is nothing to hold back.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    earlier = {
        number: signal.signal(number, lambda number, _frame: received.append(number)) for number in signals
    }
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
