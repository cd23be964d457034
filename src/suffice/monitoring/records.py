"""What a run leaves for its operator: a log as lines of JSON, and what no ledger knows, counted in a folder.

How long reading takes follows from how many rows there are. So a line does not say when it was written: every
line of a run has the hour in which the run began, which follows from its schedule, and a number that keeps
them in order. Collectors stamp lines as they arrive: so of a run that reads rows, lines arrive when it begins
and when it has ended, as its process does, and at no time between. Fields are public.

A refusal charges nothing, so the ledger has no entry of it. ``SUFFICE_METRICS`` names the folder of counts;
without it nothing is counted. A count is the size of a file: each refusal adds a byte to its end, which needs
no lock. A count that cannot be written never changes how a run ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from suffice import errors
from suffice.pipeline.terms.declaration.documents import Hour, counts_by, printed
from suffice.pipeline.terms.declaration.wording import escaped
from suffice.profile.settings import log_format
from suffice.storage.objects.object_store import of_system_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from suffice.pipeline.spec.spec import Spec
    from suffice.storage.ledger.charge import Charge

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
    except errors.SufficeError:
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
    return errors.bounded_message(value) if isinstance(value, str) else value


def newest_charge(ledger: str, dataset: str, name: str, window: str, amendment: int = 0) -> Charge | None:
    """Return the newest charge of a key, where the ledger can be asked and has one."""
    from suffice.storage.ledger.opening import open_ledger  # the command line shows its help without

    try:
        with open_ledger(ledger, reading_only=True) as opened:
            return opened.find(dataset, name, window, amendment=amendment)
    except errors.SufficeError:
        return None


def window_of(spec: Spec, window: str, *, as_of: str | None, allow_open: bool) -> str | None:
    """Return the label of the window that a run is about; None where it is about none."""
    from suffice.pipeline.spec.windows_and_amendments import moment, resolve_window  # it imports numpy

    try:
        instant = moment(as_of, datetime.now(UTC))
        return resolve_window(spec, window, as_of=instant, allow_open=allow_open)
    except errors.SufficeError:
        return None


def charge_fields(charge: Charge | None) -> dict[str, str]:
    """Return the fields of a log's line that name a charge; none where there is none."""
    if charge is None:
        return {}
    return {"charge": charge.charge_id, "release_id": charge.release_id, "state": str(charge.state)}


COUNTS_FOLDER = "SUFFICE_METRICS"
KINDS = ("budget", "account", "spec")
"""Of refusals: too little epsilon, or no account; not what was granted; the spec, a parameter or columns."""
_AUDIT = "audit.json"
_LARGEST_AUDIT = 4096


@printed("ok hour=utc_hour")
@dataclass(frozen=True, slots=True, kw_only=True)
class LastAudit:
    """What the last audit found.

    Attributes
    ----------
    ok : bool
        Whether it found no problem.
    hour : datetime, UTC
        When it was made.
    """

    ok: bool
    hour: datetime

    @property
    def utc_hour(self) -> Hour:
        """The hour as text."""
        return f"{self.hour:%Y-%m-%dT%HZ}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a folder holds.

    Attributes
    ----------
    refusals : dict of str to int
        By kind.
    audit : Audit or None
        None where there was none yet.
    """

    refusals: Annotated[dict[str, int], counts_by(KINDS)]
    audit: LastAudit | None


def refusal_kind(error: BaseException) -> str | None:
    """Return the kind of a refusal, or None where an error is none."""
    if isinstance(error, errors.BudgetExceededError | errors.AccountMissingError):
        return "budget"
    if isinstance(error, errors.AccountError):
        return "account"
    return "spec" if isinstance(error, errors.UsageError | errors.SchemaError) else None


def counts_folder() -> Path | None:
    """Return the folder that counts are kept in, where one is named."""
    named = os.environ.get(COUNTS_FOLDER)
    return Path(named) if named and "\0" not in named else None


def count_refusal(error: BaseException) -> None:
    """Count an error, where it is a refusal and a folder is named."""
    if (kind := refusal_kind(error)) is not None:
        count_kind(kind)


def count_end(failure: BaseException | None, *, stopped_at_budget: bool) -> None:
    """Count the refusal, if it was one, that a backfill stopped at."""
    if stopped_at_budget:
        count_kind("budget")
    elif failure is not None:
        count_refusal(failure)


def count_kind(kind: str) -> None:
    """Count a refusal of a kind, where a folder is named."""
    place = counts_folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place / _file(kind), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, b".")
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def counting_refusals() -> Iterator[None]:
    """Count the refusal that the block ends in, and let it pass."""
    try:
        yield
    except Exception as error:
        count_refusal(error)
        raise


def note_audit(*, ok: bool) -> None:
    """Keep what an audit found, where a folder is named."""
    place = counts_folder()
    if place is None:
        return
    document = {"ok": ok, "hour": int(datetime.now(UTC).timestamp()) // 3600}
    draft = place / f".{secrets.token_hex(8)}"
    with contextlib.suppress(OSError):
        try:
            place.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(document), encoding="ascii")
            draft.replace(place / _AUDIT)
        finally:
            draft.unlink(missing_ok=True)


def read_counts() -> Counted | None:
    """Return what the folder holds; None where none is named.

    Raises
    ------
    StorageError
        Where it cannot be read, or holds something else.
    """
    place = counts_folder()
    if place is None:
        return None
    try:
        sizes = {kind: _size(place / _file(kind)) for kind in KINDS}
        audit = _audit(place / _AUDIT)
    except OSError as error:
        message = f"the folder that {COUNTS_FOLDER} names cannot be read: {of_system_error(error).text}"
        raise errors.StorageError(message) from None
    except (ValueError, TypeError, KeyError, OverflowError):
        message = f"{_AUDIT} in the folder that {COUNTS_FOLDER} names is damaged: remove it, then audit again"
        raise errors.StorageError(message) from None
    return Counted(refusals=sizes, audit=audit)


def _file(kind: str) -> str:
    return f"refusals.{kind}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _audit(path: Path) -> LastAudit | None:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_LARGEST_AUDIT))
    except FileNotFoundError:
        return None
    return LastAudit(
        ok=document["ok"] is True, hour=datetime.fromtimestamp(int(document["hour"]) * 3600, UTC)
    )
