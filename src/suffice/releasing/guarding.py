"""What guards a run: a lease renewed and let go, interrupts that wait, errors that show no frame."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from suffice import errors
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

_LOOK = 2.0
"""Seconds after which a run that waits for another looks again: that one may end before its lease does."""

_MOMENT = 0.2


@contextlib.contextmanager
def uncharged() -> Iterator[None]:
    """Say of a store that cannot be reached now that nothing was charged, and what to do."""
    try:
        yield
    except errors.StoreError as error:
        if type(error) is not errors.StoreError or not error.may_pass:
            raise
        message = f"{error}; this run charged nothing: run the same command again once that has passed"
        raise errors.StoreError(message, reason=error.reason, may_pass=True) from None


@contextlib.contextmanager
def held(ledger: Ledger, charge: Charge) -> Iterator[None]:
    """Renew the charge's lease until the block ends, and let it go then, however the block ends.

    A lost lease shows when the charge is next moved.
    """
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(LEASE.total_seconds() / 4):
            try:
                ledger.renew(charge)
            except errors.ChargeLostError:
                return
            except errors.LedgerError:
                continue

    thread = threading.Thread(target=beat, name="suffice-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with contextlib.suppress(errors.LedgerError):
            ledger.let_go(charge)


def wait_for(work: Callable[[], Result], *, wait: bool, notice: Callable[[str], None]) -> Result:
    """Do some work; where another run holds the charge, say so and try again until it does not.

    Raises
    ------
    ChargeInProgressError
        Where another run holds it and `wait` is false.
    """
    while True:
        try:
            return work()
        except errors.ChargeInProgressError as error:
            if not wait:
                raise
            seconds, text = error.seconds, str(error)
        notice(f"waiting: {text}")
        time.sleep(min(seconds + _MOMENT, _LOOK))


class Interrupts:
    """The signals that came while they were held back; true once there is one."""

    def __init__(self) -> None:
        self._received: list[int] = []

    def note(self, number: int) -> None:
        """Keep a signal."""
        self._received.append(number)

    def __bool__(self) -> bool:
        return bool(self._received)

    def sleep(self, seconds: float) -> bool:
        """Wait, but no longer than until a signal came; return whether to go on."""
        end = time.monotonic() + seconds
        while not self and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _MOMENT))
        return not self


def contained(work: Callable[[], Result]) -> Result:
    """Do work whose frames hold exact data; what it raises is raised from here, as if from nothing.

    An error keeps the frames that it passed, what it was raised from and what it came after, for whoever
    catches it: a debugger, a crash reporter, a notebook. Here it loses all of them, and an error that is none
    of ours its text too, for that might quote data. So does a panic of a library, which is no `Exception`.

    Raises
    ------
    StageFailedError
        Where `work` raised an error that is none of ours.
    """
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - interrupts pass frames, too
        failure = error
        if not isinstance(error, errors.SufficeError | KeyboardInterrupt | SystemExit | GeneratorExit):
            failure = errors.StageFailedError("running", _WITHHELD)
    failure.__traceback__ = failure.__cause__ = failure.__context__ = None
    try:
        raise failure
    finally:
        del failure  # its frame would hold it, and it its frame


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Interrupts]:
    """Hold SIGINT and SIGTERM back until the block ends; the value keeps those that came.

    Outside the main thread, where Python delivers no signals, there is nothing to hold back.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    earlier = {
        number: signal.signal(number, lambda number, _frame: interrupts.note(number)) for number in signals
    }
    try:
        yield interrupts
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
