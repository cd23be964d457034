"""Recovery: every charge whose run is gone is carried to its end, and what was done is reported.

Safe at any time: beside live runs, whose leases hold; beside another recovery; again after it was stopped
anywhere. It decides as a rerun of the same release would
(:mod:`suffice.storage.operations.settling`), except that what never drew is not gone on with, but given up.
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.errors import (
    ChargeInProgressError,
    ChargeLostError,
    SpoolError,
    StoreError,
    SufficeError,
    WrongStoreError,
)
from suffice.pipeline.spec.windows_and_amendments import edition
from suffice.pipeline.terms.declaration.documents import Count, LongId, ShortId, printed
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.charge import LIVE, ChargeState, is_held, label
from suffice.storage.ledger.rerun import in_progress_error, without_a_witness
from suffice.storage.objects.object_store import LEFT_FOR, has_name_of_probe, is_left_probe
from suffice.storage.operations.settling import remove_orphans, settle
from suffice.storage.publications.publication import PUBLICATIONS
from suffice.storage.releases import release_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.storage.ledger.charge import Charge, ChargeSummary
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool import Spool


def remove_leftovers(objects: ObjectStore, *, now: dt.datetime | None = None) -> tuple[str, ...]:
    """Remove probes and half-written files that are a day old, and return their keys, sorted.

    Only what has the name and the length of a probe, or the name of a file that is being written; runs that
    live are younger. Two listings, and in a directory the names of all files. What the role may not remove
    stays.

    Parameters
    ----------
    objects : ObjectStore
    now : datetime, optional
        The present moment otherwise.

    Raises
    ------
    StoreError
        Where the store cannot be listed.
    """
    before = (now or dt.datetime.now(dt.UTC)) - LEFT_FOR
    removed = []
    for key in _probes(objects):
        with suppress(StoreError):
            written = objects.modified(key)
            if written is not None and written < before and is_left_probe(objects, key, folder=PUBLICATIONS):
                objects.delete(key)
                removed.append(key)
    with suppress(StoreError):
        removed += objects.sweep_hidden(before)
    return tuple(sorted(removed))


def _probes(objects: ObjectStore) -> Iterator[str]:
    for prefix in ("", f"{PUBLICATIONS}/"):
        yield from (
            prefix + name for name in objects.names(prefix) if has_name_of_probe(name, folder=PUBLICATIONS)
        )


class Action(StrEnum):
    """What recovery did about a charge."""

    PUBLISHED = "published"
    ABANDONED = "abandoned"
    CLEANED = "cleaned"
    """It had been abandoned before; files that it left were removed now."""
    IN_PROGRESS = "in_progress"
    """Left alone: a live run holds it."""
    LEFT = "left"
    """Left as it is, because of a problem."""


@printed(
    "charge_id dataset name window amendment attempt release_id store=store_uri action before after "
    "epsilon?=loss.epsilon rho?=loss.rho "
    "returned spent removed problem"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """One charge that was not final, or had left files.

    Attributes
    ----------
    charge_id, release_id, dataset, name, window, store_uri : str
    amendment, attempt : int
    loss : PrivacyLoss
    action : Action
    before, after : ChargeState
        How it was found, and how it is now.
    counts_as : str
        What its epsilon is to the account now: ``spent``, ``reserved`` or ``returned``.
    drew : bool
        Whether it ever entered ``drawing``.
    witness : str or None
        Of the charge.
    removed : tuple of str
        Keys of files removed from the store.
    problem : str
        Why it is left, or why its files are; empty where nothing is left to do, or a live run will.
    """

    charge_id: LongId
    release_id: ShortId
    dataset: str
    name: str
    window: str
    amendment: Count
    store_uri: str
    attempt: Count
    loss: PrivacyLoss
    action: Action
    before: ChargeState
    after: ChargeState
    counts_as: str
    drew: bool
    witness: str | None = None
    removed: tuple[str, ...] = ()
    problem: str = ""

    @property
    def returned(self) -> Fraction:
        """Epsilon that this recovery gave back to the account."""
        given_back = self.action is Action.ABANDONED and self.counts_as == "returned"
        return self.loss.amount if given_back else Fraction(0)

    @property
    def spent(self) -> Fraction:
        """Epsilon of this charge that is spent for good."""
        return self.loss.amount if self.counts_as == "spent" else Fraction(0)

    def __str__(self) -> str:
        key = label(self.name, edition(self.window, self.amendment))
        head = f"{self.dataset}: {key}, attempt {self.attempt}: "
        if self.action is Action.PUBLISHED:
            text = f"{self.before}, now published; {self.loss} is spent"
        elif self.action is Action.ABANDONED and self.counts_as == "spent":
            text = f"{self.before}, now abandoned; noise may have been drawn: {self.loss} is spent"
            text += without_a_witness(self.witness)
        elif self.action is Action.ABANDONED:
            why = "nobody saw what was drawn" if self.drew else "nothing was drawn"
            text = f"{self.before}, now abandoned; {why}: {self.loss} is returned"
        elif self.action is Action.IN_PROGRESS:
            text = f"{self.after}, left to the run that holds it"
        else:
            text = str(self.after)
        if self.removed:
            text += f"; removed {counted(len(self.removed), 'file')} of it"
        return head + text + (f"; left: {self.problem}" if self.problem else "")


@printed("ok charges leftovers")
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a recovery did; printable.

    Attributes
    ----------
    charges : tuple of Recovered
        Those that were not final and those that had left files, by account, in the order of their
        reservation.
    leftovers : tuple of str
        Probes and half-written files of killed runs that were removed from the ledger's stores, each behind
        the URI of its store.
    """

    charges: tuple[Recovered, ...]
    leftovers: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every charge is final now, or held by a live run, and no file is left over."""
        return not any(charge.problem for charge in self.charges)

    def __str__(self) -> str:
        lines = [*map(str, self.charges)] or ["nothing to recover: every charge is final"]
        if self.leftovers:
            lines.append(f"removed {counted(len(self.leftovers), 'file')} that killed runs left")
        return "\n".join(lines)


def recover(
    ledger: Ledger, open_store: Callable[[str], ReleaseStore], *, spool: Spool | None = None
) -> Report:
    """Carry every charge that its run has left to its end, and remove the files of abandoned ones.

    Publish what is staged, or complete in the spool; put the tombstone of what entered ``drawing``
    otherwise, and abandon it, returning its epsilon where it is proved that nobody saw the draw; abandon what
    never drew, returning its epsilon. A live charge that is not
    staged is left alone. So is one whose files are in the spool of another host, or whose store cannot be
    opened, is not the store it was charged with, or holds something that does not belong there: the
    report says why, and a later recovery tries again. Probes and half-written files that killed runs left in
    the ledger's stores are removed once they are a day old.

    Parameters
    ----------
    ledger : Ledger
    open_store : callable
        Opens the store at a URI, which is the one that a charge names, or raises a `SufficeError`.
    spool : Spool, optional
        This host's, where it has one; what it keeps for charges that have ended is removed.

    Returns
    -------
    Report

    Raises
    ------
    LedgerError
        Where the accounts cannot be read; nothing was done then.
    """
    stores = _Stores(open_store, {store.store_id: store.uri for store in ledger.stores()})
    unsettled = ledger.unsettled()
    if spool is not None:
        _forget_ended(ledger, spool)
    recovered = [_recover_one(ledger, stores, spool, summary.dataset, summary) for summary in unsettled]
    return Report(
        charges=tuple(charge for charge in recovered if charge is not None),
        leftovers=tuple(_remove_leftovers(ledger)),
    )


def _remove_leftovers(ledger: Ledger) -> Iterator[str]:
    """Remove what killed runs left in the stores that can be reached; it harms nothing where it stays."""
    for known in ledger.stores():
        with suppress(SufficeError):
            store = release_store.open_store(known.uri, ledger_id=ledger.ledger_id, probe=False)
            for key in remove_leftovers(store.objects):
                yield f"{store.uri}/{key}"


def _forget_ended(ledger: Ledger, spool: Spool) -> None:
    """Remove what a spool keeps for charges that have ended; what the ledger does not know stays."""
    for charge_id in spool.charge_ids():
        charge = ledger.charge(charge_id)
        if charge is not None and charge.state not in LIVE:
            with suppress(SpoolError):
                spool.remove(charge_id)


class _Stores:
    """The stores that charges name, each opened once; also what was raised is kept."""

    def __init__(self, open_store: Callable[[str], ReleaseStore], places: Mapping[str, str]) -> None:
        self._open_store = open_store
        self._places = places
        self._opened: dict[str, ReleaseStore | SufficeError] = {}

    def store_of(self, charge: Charge, uri: str) -> ReleaseStore:
        """Open the store that a charge was reserved with: at its URI, or where it was adopted since."""
        uri = self._places.get(charge.store_id, uri)
        if uri not in self._opened:
            try:
                self._opened[uri] = self._open_store(uri)
            except SufficeError as error:
                self._opened[uri] = error
        store = self._opened[uri]
        if isinstance(store, SufficeError):
            raise store
        if store.store_id != charge.store_id:
            message = (
                f"{charge.label} was charged for the store {charge.store_id} at {uri}; {store.uri} is the "
                "store "
                f"{store.store_id}: if the first was moved, `suffice store adopt NEW_PLACE` records that"
            )
            raise WrongStoreError(message)
        return store


def _recover_one(
    ledger: Ledger, stores: _Stores, spool: Spool | None, dataset: str, summary: ChargeSummary
) -> Recovered | None:
    """Recover one charge; None where there is nothing to say of it."""
    recovered = Recovered(
        charge_id=summary.charge_id,
        release_id=summary.release_id,
        dataset=dataset,
        name=summary.name,
        window=summary.window,
        amendment=summary.amendment,
        store_uri=summary.store_uri,
        attempt=summary.attempt,
        loss=summary.loss,
        action=Action.LEFT,
        before=summary.state,
        after=summary.state,
        counts_as=summary.counts_as,
        drew=summary.drew,
    )
    try:
        # The newest attempt of the key: the only one that can be unfinished, and all have one store.
        newest = ledger.find(dataset, summary.name, summary.window, amendment=summary.amendment)
        if newest is None or (
            summary.state in LIVE and (newest.charge_id != summary.charge_id or newest.state not in LIVE)
        ):
            return None  # it ended just now
        if summary.state in LIVE:
            now = ledger.now()
            if newest.state is not ChargeState.STAGED and is_held(newest, now):
                raise in_progress_error(newest, now)
            ended = settle(ledger, stores.store_of(newest, summary.store_uri), newest, spool=spool)
            recovered = replace(
                recovered,
                action=Action(ended.state),
                after=ended.state,
                counts_as=ended.counts_as,
                drew=ended.drew,
                witness=ended.witness,
            )
        if recovered.after is ChargeState.ABANDONED and recovered.drew:
            store = stores.store_of(newest, summary.store_uri)
            recovered = replace(recovered, removed=remove_orphans(store, summary))
    except (ChargeInProgressError, ChargeLostError):
        return replace(recovered, action=Action.IN_PROGRESS)
    except SufficeError as error:
        return replace(recovered, problem=str(error))
    if recovered.action is not Action.LEFT:
        return recovered
    return replace(recovered, action=Action.CLEANED) if recovered.removed else None
