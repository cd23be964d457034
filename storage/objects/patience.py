"""How long to go on where a store fails in a way that may pass, and what waits in between."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from suffice.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to go on with publishing where the store fails in a way that may pass.

    Attributes
    ----------
    seconds : float
        Nothing is begun again later than this.
    sleep : callable
        Waits for some seconds, and returns whether to go on.
    clock : callable
        Gives the present moment in seconds; only differences count.
    notice : callable
        Called with a sentence before every wait.
    """

    seconds: float = 0.0
    sleep: Callable[[float], bool] = _sleep
    clock: Callable[[], float] = time.monotonic
    notice: Callable[[str], None] = lambda _: None


ONCE = Patience()
"""No second try."""


def patiently(attempt: Callable[[], Result], patience: Patience, state: str) -> Result:
    """Return what `attempt` does, tried again and again, with growing pauses, while what fails may pass.

    Parameters
    ----------
    attempt : callable
        May be called any number of times.
    patience : Patience
    state : str
        How things stand meanwhile, for the notices: ``not published yet``.

    Raises
    ------
    StoreError
        The last failure.
    """
    deadline = patience.clock() + patience.seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return attempt()
        except StoreError as error:
            left = deadline - patience.clock()
            if not error.may_pass or left <= 0:
                raise
            # Of many runs that wait for one store not all should come back at once.
            wait = min(left, pause * (0.5 + secrets.randbelow(1000) / 2000))
            reason = error.reason or "the store failed"
            patience.notice(f"{state}: {reason}; tried again in {wait:.0f} s, for {left:.0f} s more")
            if not patience.sleep(wait):
                raise
        pause = min(2 * pause, _LONGEST_PAUSE)
