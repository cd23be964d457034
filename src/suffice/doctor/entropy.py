"""Whether the system's cryptographic source gives random bytes: noise is drawn from it alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings

_BYTES = 32


def check(_: Settings) -> Iterator[Fact]:
    """Ask for bytes without waiting: a source that is not seeded yet would have a draw wait."""
    try:
        first, second = _random(), _random()
    except BlockingIOError:
        yield problem(
            "the system's random source is not seeded yet",
            "wait until the system has started; a virtual machine needs virtio-rng",
        )
        return
    except OSError:
        yield problem("the system's random source does not answer", "let processes call getrandom")
        return
    if first == second:
        yield problem("the system's random source repeats itself", "release nothing on this machine")
    else:
        yield ok("the system's random source is seeded")


def _random() -> bytes:
    if hasattr(os, "getrandom"):
        return os.getrandom(_BYTES, os.GRND_NONBLOCK)
    return os.urandom(_BYTES)
