"""What no ledger knows, counted in a folder: refusals by kind, and what the last audit found.

A refusal charges nothing, so the ledger has no entry of it. ``SUFFICE_METRICS`` names the folder; without it
nothing is counted. A count is the size of a file: each refusal adds a byte to its end, which needs no lock. A
count that cannot be written never changes how a run ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import (
    AccountError,
    AccountMissingError,
    BudgetExceededError,
    SchemaError,
    StorageError,
    SufficeError,
    UsageError,
)
from suffice.storage.objects.object_store import of_system_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.spec.spec import Spec
    from suffice.storage.ledger.charge import Charge


def newest_charge(ledger: str, dataset: str, name: str, window: str, amendment: int = 0) -> Charge | None:
    """Return the newest charge of a key, where the ledger can be asked and has one."""
    from suffice.storage.ledger.opening import open_ledger  # the command line shows its help without

    try:
        with open_ledger(ledger, reading_only=True) as opened:
            return opened.find(dataset, name, window, amendment=amendment)
    except SufficeError:
        return None


def window_of(spec: Spec, window: str, *, as_of: str | None, allow_open: bool) -> str | None:
    """Return the label of the window that a run is about; None where it is about none."""
    from suffice.pipeline.spec.windows_and_amendments import moment, resolve_window  # it imports numpy

    try:
        instant = moment(as_of, datetime.now(UTC))
        return resolve_window(spec, window, as_of=instant, allow_open=allow_open)
    except SufficeError:
        return None


def charge_fields(charge: Charge | None) -> dict[str, str]:
    """Return the fields of a log's line that name a charge; none where there is none."""
    if charge is None:
        return {}
    return {"charge": charge.charge_id, "release_id": charge.release_id, "state": str(charge.state)}


VARIABLE = "SUFFICE_METRICS"
KINDS = ("budget", "account", "spec")
"""Of refusals: too little epsilon, or no account; not what was granted; the spec, a parameter or columns."""
_AUDIT = "audit.json"
_LARGEST_AUDIT = 4096


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

    refusals: dict[str, int]
    audit: LastAudit | None


def refusal_kind(error: BaseException) -> str | None:
    """Return the kind of a refusal, or None where an error is none."""
    if isinstance(error, BudgetExceededError | AccountMissingError):
        return "budget"
    if isinstance(error, AccountError):
        return "account"
    return "spec" if isinstance(error, UsageError | SchemaError) else None


def folder() -> Path | None:
    """Return the folder that counts are kept in, where one is named."""
    named = os.environ.get(VARIABLE)
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
    place = folder()
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
    place = folder()
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
    place = folder()
    if place is None:
        return None
    try:
        sizes = {kind: _size(place / _file(kind)) for kind in KINDS}
        audit = _audit(place / _AUDIT)
    except OSError as error:
        message = f"the folder that {VARIABLE} names cannot be read: {of_system_error(error).text}"
        raise StorageError(message) from None
    except (ValueError, TypeError, KeyError, OverflowError):
        message = f"{_AUDIT} in the folder that {VARIABLE} names is damaged: remove it, then audit again"
        raise StorageError(message) from None
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
