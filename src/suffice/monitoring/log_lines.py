"""A run's log as lines of JSON: public fields only, and no time finer than the hour in which it began.

How long reading takes follows from how many rows there are. So a line does not say when it was written: every
line of a run has the hour in which the run began, which follows from its schedule, and a number that keeps
them in order. Collectors stamp lines as they arrive: so of a run that reads rows, lines arrive when it begins
and when it has ended, as its process does, and at no time between.
"""

from __future__ import annotations

import json
import secrets
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import SufficeError, bounded_message
from suffice.pipeline.terms.declaration.wording import escaped
from suffice.profile.settings import log_format

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENTS = ("started", "notice", "warning", "error", "ended")
FIELDS: Mapping[str, str] = {
    "event": "`started`, `notice`, `warning`, `error` or `ended`",
    "run": "one run: 16 hex digits of a command, Prefect's id of a flow run",
    "line": "counts the run's lines, from 1",
    "started": "the hour, in UTC, in which the run began",
    "command": "`release`, `ledger recover`, or the name of a flow",
    "dataset": "the account",
    "name": "the series",
    "window": "the label of the window",
    "amendment": "its number; 0 for the first release",
    "charge": "the id that the ledger gave the charge",
    "release_id": "the id of the release that the charge pays for",
    "state": "how far the charge has come when the run ends",
    "ending": "the state that a flow run ends in",
    "type": "the class of an error",
    "message": "a sentence; never a value from the data",
    "exit_status": "of a command",
}
"""Every field that a line may have, and what it says. All are public."""


class RunLog:
    """The log of one run, from its first line to its last.

    Parameters
    ----------
    command : str
    run : str, optional
        16 hex digits are drawn where it is left out.
    now : datetime, optional
        When it began.
    """

    def __init__(self, command: str, *, run: str | None = None, now: datetime | None = None) -> None:
        self._run = run or secrets.token_hex(8)
        self._command = command
        self._started = f"{now or datetime.now(UTC):%Y-%m-%dT%HZ}"
        self._subject: dict[str, str | int] = {}
        self._lines = 0
        self._held: list[str] | None = None

    def hold(self) -> None:
        """Keep what is written from now on until the run has ended: it is about to read rows."""
        self._held = []

    def about(self, **names: str | int) -> None:
        """State what the run is about, in all lines from now on."""
        _require_public(names)
        self._subject |= names

    def write(self, event: str, **fields: str | int) -> None:
        """Write one line to standard error, or keep it until the line that ends the run.

        Raises
        ------
        ValueError
            Where a field is none of `FIELDS`, or the event none of `EVENTS`.
        """
        _require_public(fields)
        if event not in EVENTS:
            message = f"no event of a log: {event}"
            raise ValueError(message)
        self._lines += 1
        head = {"event": event, "run": self._run, "line": self._lines, "started": self._started}
        shown = {name: _bounded(value) for name, value in (self._subject | fields).items()}
        text = escaped(json.dumps({**head, "command": self._command, **shown})) + "\n"
        if self._held is not None and event != "ended":
            self._held.append(text)
            return
        sys.stderr.write("".join([*(self._held or ()), text]))
        sys.stderr.flush()
        self._held = None


CURRENT: ContextVar[RunLog | None] = ContextVar("suffice_run_log", default=None)
"""The log of the command that runs, where it writes lines of JSON."""


def wants_lines() -> bool:
    """Tell whether what is written is lines of JSON; it is text where what says so is itself what failed."""
    try:
        return log_format() == "json"
    except SufficeError:
        return False


def begin(command: str, *, run: str | None = None) -> RunLog | None:
    """Begin the log of a run, if lines of JSON are wanted, and let it be the current one."""
    log = RunLog(command, run=run) if wants_lines() else None
    CURRENT.set(log)
    if log is not None:
        log.write("started")
    return log


def write(event: str, **fields: str | int) -> bool:
    """Write a line of the current run's log; False where lines are not wanted, so that text is."""
    log = CURRENT.get()
    if log is None and wants_lines():  # what fails before a command has begun
        log = RunLog("suffice")
        CURRENT.set(log)
    if log is not None:
        log.write(event, **fields)
    return log is not None


def _require_public(fields: Mapping[str, object]) -> None:
    if unknown := fields.keys() - FIELDS.keys():
        message = f"no public field of a log: {', '.join(sorted(unknown))}"
        raise ValueError(message)


def _bounded(value: str | int) -> str | int:
    return bounded_message(value) if isinstance(value, str) else value
