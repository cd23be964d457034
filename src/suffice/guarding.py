"""What guards a run: a heartbeat for its lease, interrupts that wait, and errors that show no frame."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, TypeVar

from suffice.errors import ChargeLostError, LedgerError, StageFailedError, SufficeError
from suffice.storage.ledger.ledger import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger

Result = TypeVar("Result")

_WITHHELD = (
    "the run ended in an error of none of its stages, whose text might quote data and is withheld: the same "
    "command again settles what was charged"
)


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


def contained(work: Callable[[], Result]) -> Result:
    """Do work whose frames hold exact data; what it raises is raised from here, as if from nothing.

    An error keeps the frames that it passed, what it was raised from and what it came after, for whoever
    catches it: a debugger, a crash reporter, a notebook. Here it loses all of them, and an error that is none
    of ours its text too, for that might quote data.

    Raises
    ------
    StageFailedError
        Where `work` raised an error that is none of ours.
    """
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - interrupts pass frames, too
        failure = error
        if isinstance(error, Exception) and not isinstance(error, SufficeError):
            failure = StageFailedError("running", _WITHHELD)
    failure.__traceback__ = failure.__cause__ = failure.__context__ = None
    try:
        raise failure
    finally:
        del failure  # its frame would hold it, and it its frame


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
