"""The flow ``release_statistics``, held between its draw and its publication until something happens.

The deployments of tests name this module, and no test imports it: it would hold their releases, too.
Everything else is the real thing; but that the seconds in which Prefect has to report an end, and in which
the dataset is waited for, may be others.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from suffice.flows import running
from suffice.flows.release import release_statistics
from suffice.storage.releases.release_store import ReleaseStore
from support.prefect_server import PLACE, REPORTING, WAITING

__all__ = ["release_statistics"]

running.REPORTING_S = float(os.environ.get(REPORTING, running.REPORTING_S))
running.LONGEST_WAIT_S = float(os.environ.get(WAITING, running.LONGEST_WAIT_S))
_put = ReleaseStore.put_manifest


def _put_later(self: ReleaseStore, *arguments: Any) -> None:
    place = Path(os.environ[PLACE])
    came: list[int] = []
    holding = signal.getsignal(signal.SIGTERM)  # the release holds signals back until it is published

    def note(number: int, frame: Any) -> None:
        came.append(number)
        assert callable(holding)
        holding(number, frame)

    signal.signal(signal.SIGTERM, note)
    (place / "drawn").touch()
    end = time.monotonic() + 120
    while not (place / "go").exists() and not came and time.monotonic() < end:
        time.sleep(0.05)
    signal.signal(signal.SIGTERM, holding)
    _put(self, *arguments)


ReleaseStore.put_manifest = _put_later  # type: ignore[assignment,method-assign]
