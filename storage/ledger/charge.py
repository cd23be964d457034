"""Charges: what a release asks of an account, who holds it, and what became of it.

A run that dies before its draw gets its epsilon back. Data may have decided that it died, so each such
attempt may reveal a bit. They are counted for each key. From the number on that the account's owner allows,
their epsilon is spent.

A process id counts within one namespace only: containers of a machine share its boot id, and each counts
from one. A holder is therefore called gone only where machine, boot and namespace are ours and the process
has ended, or another has its number. Of any other holder nothing is known: its lease decides.

While a charge is ``drawing`` its epsilon stays reserved. It is spent once the charge is ``staged``, or ends
without proof that nobody saw what was drawn. With such proof a draw is returned, at most
`MOST_RETURNED_DRAWS` times for each key.

A ledger that was restored from an older copy lacks charges, and is told of them as `LostCharge`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from suffice.errors import UsageError
from suffice.pipeline.spec.windows_and_amendments import MOST_AMENDMENTS, AmendedRelease, edition
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from fractions import Fraction

    from suffice.pipeline.terms.declaration.documents import Count, LongId, ShortId


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What a store names of a charge, where its ledger has other entries for it.

    Attributes
    ----------
    charge_id : str
    marker_sequence, marker_hash : int, str
        The entry that its marker names.
    drawing_sequence, drawing_hash : int and str, or None
        The entry that its manifest names, where it was published.
    """

    charge_id: str
    marker_sequence: int
    marker_hash: str
    drawing_sequence: int | None
    drawing_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCharge:
    """A charge as a store shows it, for a ledger that lacks it, or has it as never drawn.

    Attributes
    ----------
    named : Reconciled
    reserved : mapping
        What its ``reserved`` entry states, and the store's URI.
    plan_json : str
        The plan whose hash that entry states.
    manifest : bytes or None
        Of its release; None where a tombstone stands there.
    """

    named: Reconciled
    reserved: Mapping[str, Any]
    plan_json: str
    manifest: bytes | None


_PROC = Path("/proc")
_MACHINE = Path("/etc/machine-id")
_STATE, _START = 0, 19
"""Fields of ``/proc/PID/stat`` after the program's name, which may hold spaces: the 3rd and the 22nd."""


def this_process() -> str:
    """Return what tells this process from every other, as JSON; ``{}`` where the system does not say."""
    place = _place()
    status = _stat(os.getpid())
    if place is None or status is None:
        return "{}"
    return json.dumps({**place, "pid": os.getpid(), "start": status[_START]}, sort_keys=True)


def is_gone(process: str) -> bool:
    """Tell whether the process that :func:`this_process` described has certainly ended."""
    try:
        stated = json.loads(process)
        place = {name: stated[name] for name in ("machine", "boot", "namespace")}
        pid, start = int(stated["pid"]), str(stated["start"])
    except (ValueError, KeyError, TypeError):
        return False
    if place != _place() or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it is there, and another user's
    status = _stat(pid)
    # A process that ended, and that its parent has not asked about, is still listed.
    return status is not None and (status[_START] != start or status[_STATE] in {"Z", "X"})


def is_of_this_boot(process: str) -> bool:
    """Tell whether the process that :func:`this_process` described ran on this machine since it started."""
    try:
        stated = json.loads(process)
        there = (stated["machine"], stated["boot"])
    except (ValueError, KeyError, TypeError):
        return False
    place = _place()
    return place is not None and there == (place["machine"], place["boot"])


def is_held(charge: Charge, now: datetime) -> bool:
    """Tell whether a charge's lease holds: it has not passed, and its holder is not known to be dead."""
    return charge.lease_expires > now and not is_gone(charge.holder_process)


def _place() -> dict[str, str] | None:
    """Return what a process id counts in; None where the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink(_PROC / "self/ns/pid")  # noqa: PTH115 - a name, which leads to no file
    except (OSError, ValueError):
        return None
    machine = ""
    with contextlib.suppress(OSError, ValueError):
        machine = _MACHINE.read_text(encoding="ascii").strip()
    return {"machine": machine, "boot": boot, "namespace": namespace} if boot and namespace else None


def _stat(pid: int) -> list[str] | None:
    """Return the fields of a process behind its name; None where they cannot be read."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > _START else None


DEFAULT_ALLOWED = 10
"""Attempts of a key that may give their epsilon back, where the owner states no other number."""
MOST_ALLOWED = 10_000
MOST_RETURNED_DRAWS = 3
"""Draws of a key that are returned; the ledger's database enforces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCount:
    """How many attempts of one key ended in one way.

    Attributes
    ----------
    name, window : str
    amendment : int
    count : int
    """

    name: str
    window: str
    amendment: Count
    count: Count

    @property
    def label(self) -> str:
        """The key as people read it."""
        return label(self.name, edition(self.window, self.amendment))


def check_allowed(number: int) -> int:
    """Return how many failed readings of a key an owner allows.

    Raises
    ------
    UsageError
        Where it is none of 0 to `MOST_ALLOWED`.
    """
    if not 0 <= number <= MOST_ALLOWED:
        message = f"failed readings: 0 to {MOST_ALLOWED} of a key may give their charge back, not {number}"
        raise UsageError(message)
    return number


ALL = "all"
"""The window of a release that has no window column."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.ASCII)


class ChargeState(StrEnum):
    """How far a charge has come; from `DRAWING` on, noise may have met totals."""

    RESERVED = "reserved"
    DRAWING = "drawing"
    STAGED = "staged"
    PUBLISHED = "published"
    ABANDONED = "abandoned"


LIVE = (ChargeState.RESERVED, ChargeState.DRAWING, ChargeState.STAGED)
"""States in which a run holds, or held, the charge's lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRequest:
    """What a release asks for: everything here is public and none of it follows the data.

    Attributes
    ----------
    dataset, name, window : str
        The key, with `amendment`. `window` is ``all``, or a canonical label of `grid`.
    amendment : int
        0 for the first release of a window; an amendment has its number in the spec's calendar.
    loss : PrivacyLoss, > 0
        What the release states that it costs.
    rho : Fraction, > 0
        What it costs an account of rho.
    neighboring, unit : str
        ``add_or_remove_one`` or ``replace_one``; ``row`` or ``column:customer_id``.
    grid : str or None
        ``flight_date:month:UTC``; None exactly where `window` is ``all``.
    source : str
        Canonical text of the source, held against the account's allowed prefixes; not stored.
    plan_json, plan_hash : str
        The canonical plan and its SHA-256 in hex.
    store_id, store_uri : str
        The release store.
    witness : str or None
        The URI of the witness that this run asks, where the account has none of its own.
    contract : str or None
        The SHA-256 of the contract by which the data are read; it has to be the account's. Not stored.

    Raises
    ------
    UsageError
        Where a field breaks its rule.
    """

    dataset: str
    name: str
    window: str
    loss: PrivacyLoss
    rho: Fraction
    neighboring: str
    unit: str
    grid: str | None
    source: str
    plan_json: str
    plan_hash: str
    store_id: str
    store_uri: str
    witness: str | None = None
    contract: str | None = None
    amendment: int = 0

    def __post_init__(self) -> None:
        check_name("dataset", self.dataset)
        check_name("release name", self.name)
        check_loss(self.loss)
        check_loss(PrivacyLoss.of_rho(self.rho))
        if (self.window == ALL) != (self.grid is None) or not self.window:
            message = f"window {self.window!r} does not go with the grid {self.grid!r}"
            raise UsageError(message)
        if self.amendment not in range(1 if self.window == ALL else MOST_AMENDMENTS + 1):
            message = f"window {self.window!r} has no amendment {self.amendment}"
            raise UsageError(message)
        if hashlib.sha256(self.plan_json.encode()).hexdigest() != self.plan_hash:
            message = "the plan's hash is not the SHA-256 of the plan"
            raise UsageError(message)

    def loss_in(self, measure: PrivacyMeasure) -> PrivacyLoss | None:
        """Return what it costs an account of a measure; None where it cannot be charged there."""
        if measure is PrivacyMeasure.RHO:
            return PrivacyLoss.of_rho(self.rho)
        return None if self.loss.epsilon is None else self.loss

    def and_also(self, loss: PrivacyLoss, rho: Fraction) -> Self:
        """Return the request with more to pay."""
        return replace(self, loss=self.loss + loss, rho=self.rho + rho)

    @property
    def edition(self) -> str:
        """The window, with the number of an amendment."""
        return edition(self.window, self.amendment)

    @property
    def label(self) -> str:
        """The key as people read it."""
        return label(self.name, self.edition)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolName:
    """Which spool keeps a charge's drawn files until they are published.

    Attributes
    ----------
    spool_id : str
        32 hex digits, in the spool itself.
    host : str
        The name of the machine that drew; for messages.
    """

    spool_id: str
    host: str


@printed("charge_id dataset name window amendment release_id store=store_uri state spent=loss.amount")
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One debit of an account, as the ledger held it at one moment.

    Attributes
    ----------
    charge_id, release_id, ledger_id : str
        32, 16 and 32 hex digits; fixed at reservation.
    dataset, name, window : str
        The key, with `amendment`; `attempt` counts from 1 within it.
    amendment : int
        0 for the first release of the window.
    amends : AmendedRelease or None
        What it replaces, where it is an amendment; fixed at reservation.
    loss : PrivacyLoss
        In its account's measure.
    state : ChargeState
    marked : bool
        Whether a run that this ledger knows of began to put its marker into the store.
    drew : bool
        Whether it ever entered ``drawing``.
    draw_returned : bool
        Whether it was abandoned then, with proof that nobody saw what it drew: its epsilon came back.
    epoch : int
        Counts from 1; every take-over adds one, and transitions with an older one are refused.
    lease_expires : datetime, UTC
        Until then the run that holds the charge counts as alive.
    holder_process : str
        That run's process; see :mod:`suffice.storage.ledger.charge`.
    run : str
        16 hex digits that tell its holder in this epoch from every other, in any copy of the ledger.
    spool : SpoolName or None
        Where its drawn files are, from ``drawing`` on.
    plan_hash, store_id, store_uri : str
        :meth:`suffice.storage.ledger.ledger.Ledger.plan` gives the plan itself.
    witness : str or None
        The URI of the witness that moves on before anything of it leaves its host; fixed at reservation.
    reserved_sequence : int
        The ledger's entry for ``reserved``; its marker stands in the store before anything is drawn.
    drawing_sequence : int or None
        With `drawing_hash`: the ledger's entry for ``drawing``, which the manifest names.
    drawing_epoch : int or None
        The epoch in which it entered ``drawing``: a draw is returned in a later one only.
    manifest_sha256 : str or None
        The hash of the bytes to publish, from ``staged`` on.
    manifest : bytes or None
        These bytes, while it is ``staged``.
    created : datetime, UTC
        To the minute.
    """

    charge_id: LongId
    release_id: ShortId
    ledger_id: str
    dataset: str
    name: str
    window: str
    amendment: Count
    amends: AmendedRelease | None
    attempt: Count
    loss: PrivacyLoss
    state: ChargeState
    marked: bool
    drew: bool
    draw_returned: bool = False
    epoch: int
    lease_expires: datetime
    holder_process: str
    run: str
    spool: SpoolName | None
    plan_hash: str
    store_id: str
    store_uri: str
    witness: str | None = None
    reserved_sequence: int
    drawing_sequence: int | None
    drawing_hash: str | None
    drawing_epoch: int | None = None
    manifest_sha256: str | None
    manifest: bytes | None
    created: datetime

    @property
    def edition(self) -> str:
        """The window, with the number of an amendment."""
        return edition(self.window, self.amendment)

    @property
    def label(self) -> str:
        """The key as people read it."""
        return label(self.name, self.edition)

    @property
    def counts_as(self) -> CountsAs:
        """As of a :class:`ChargeSummary`."""
        return _counts_as(self)


CountsAs = Literal["spent", "reserved", "returned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCharges:
    """Charges of one window and one plan that hold the same of an account, each `loss`."""

    window: str
    plan_hash: str
    loss: PrivacyLoss
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeSummary:
    """A charge as `suffice ledger show` lists it."""

    charge_id: LongId
    release_id: ShortId
    dataset: str
    name: str
    window: str
    amendment: Count
    attempt: Count
    loss: PrivacyLoss
    state: ChargeState
    drew: bool
    draw_returned: bool = False
    store_uri: str
    created: datetime

    @property
    def edition(self) -> str:
        """The window, with the number of an amendment."""
        return edition(self.window, self.amendment)

    @property
    def counts_as(self) -> CountsAs:
        """What its loss is to the account: ``spent``, ``reserved``, or ``returned`` to it."""
        return _counts_as(self)

    @property
    def held(self) -> Fraction:
        """What it takes from the account now."""
        return self.loss.amount * (self.counts_as != "returned")


def _counts_as(charge: Charge | ChargeSummary) -> CountsAs:
    if charge.state in {ChargeState.RESERVED, ChargeState.DRAWING}:
        return "reserved"
    return "spent" if charge.drew and not charge.draw_returned else "returned"


def newest_published(charges: Iterable[ChargeSummary]) -> ChargeSummary | None:
    """Return the published charge of the highest amendment among those of one window."""
    published = [charge for charge in charges if charge.state is ChargeState.PUBLISHED]
    return max(published, key=lambda charge: charge.amendment, default=None)


def label(name: str, edition: str) -> str:
    """Write a key as the command line does: ``NAME``, ``NAME@WINDOW``, or ``NAME@WINDOW.N``."""
    return name if edition == ALL else f"{name}@{edition}"


def release_id(ledger_id: str, charge_id: str) -> str:
    """Return the id of the release that a charge pays for: 16 hex digits."""
    return hashlib.sha256(f"{ledger_id}:{charge_id}".encode()).hexdigest()[:16]


def run_id(holder: str, charge_id: str, epoch: int) -> str:
    """Return what tells a charge's holder in one epoch from every other: 16 hex digits."""
    return hashlib.sha256(f"{holder}:{charge_id}:{epoch}".encode()).hexdigest()[:16]


def check_name(what: str, text: str) -> None:
    """Refuse a name that could not be a directory and a key everywhere.

    Raises
    ------
    UsageError
        Where `text` does not match ``[a-z0-9][a-z0-9_.-]{0,62}``.
    """
    if not _NAME.fullmatch(text):
        message = f"the {what} {text!r} does not match [a-z0-9][a-z0-9_.-]{{0,62}}"
        raise UsageError(message)


def check_loss(loss: PrivacyLoss) -> int:
    """Return a loss in the smallest amounts that accounts count.

    Raises
    ------
    UsageError
        Where it is not positive, or finer than these.
    """
    if loss.amount <= 0:
        message = f"{loss} is not above 0"
        raise UsageError(message)
    try:
        return loss.count
    except ValueError as error:
        raise UsageError(str(error)) from None
