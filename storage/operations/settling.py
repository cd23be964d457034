"""How a charge ends: published from its spool, or fenced off and abandoned.

Runs that go on, runs that come again and recovery all end charges here, so that the same thing is decided
from the same evidence: what the ledger and the spool hold durably, and what stands at the manifest's key.

Where a run fails before the draw, its epsilon is returned. From then on what is complete in the spool waits
to be published, and unknown means spent.

What dies in its draw is returned where nobody saw what it drew. Nothing leaves a host before its charge is
``staged`` and, with a witness, before the witness has moved on. So whoever takes a ``drawing`` charge over
knows that its run stages no more. Only a copy of the ledger that stands at ``drawing`` while the original
went on would be mistaken. Against that there are two proofs:

- the charge's witness was moved on to the take-over: of two copies one fails;
- without a witness, the spool still holds the files that the run began and did not complete, and the machine
  has not been started since. That it holds none proves nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from suffice.errors import (
    ChargeLostError,
    ClusterError,
    DrawsExhaustedError,
    LedgerCorruptError,
    LedgerError,
    ObjectExistsError,
    ReadingsExhaustedError,
    ReleaseInterruptedError,
    StageFailedError,
    StorageError,
    StoreError,
    UsageError,
    WrongStoreError,
)
from suffice.storage.ledger.charge import ChargeState, is_held
from suffice.storage.ledger.rerun import in_progress_error
from suffice.storage.objects.object_store import ONCE
from suffice.storage.operations.markers import standing_marker, waive
from suffice.storage.operations.publishing import (
    describe_published,
    elsewhere,
    foreign,
    forget,
    kept_files,
    mark_published,
    publish_patiently,
    require_files,
    stage_files,
)
from suffice.storage.operations.witness import move_witness
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.errors import SufficeError
    from suffice.storage.ledger.charge import Charge, ChargeSummary
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import Patience
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool import Spool


def give_back(
    ledger: Ledger, store: ReleaseStore, spool: Spool, charge: Charge, stage: str, error: BaseException
) -> SufficeError:
    """Abandon a charge that never drew, and say what happened.

    Parameters
    ----------
    ledger, store, spool
        Of the charge.
    charge : Charge
        In state ``reserved``.
    stage : str
        Where its run failed.
    error : BaseException
        What came of it; its own text is kept only where it is one of ours that knows no data.

    Returns
    -------
    SufficeError
        To be raised by the caller.
    """
    try:
        if isinstance(error, LedgerCorruptError):  # another copy may have drawn for this charge
            forget(spool, charge)
            fate = f"until `suffice ledger recover` its {charge.loss.measure} stays reserved"
            return StageFailedError(stage, f"{error}; {fate}")
        charge = abandon(ledger, store, charge, reason=f"{stage} failed")
        forget(spool, charge)
        fate = f"nothing was drawn, and its {charge.loss.measure} was returned"
        if charge.drew:
            fate = (
                f"nothing was drawn, and {charge.loss} is spent: as many attempts "
                "of this release failed before as the owner allows (`suffice ledger grant --failed-readings`)"
            )
    except StoreError:  # nobody knows yet that no copy of the ledger draws for it
        fate = (
            f"nothing was drawn, and its {charge.loss.measure} stays reserved until the same command again, or "
            "`suffice ledger recover`, reaches the store"
        )
    except LedgerError:
        fate = (
            f"nothing was drawn; its {charge.loss.measure} returns when the next run finds the charge expired"
        )
    if isinstance(error, KeyboardInterrupt):
        return ReleaseInterruptedError(f"interrupted: the charge is abandoned, {fate}")
    if isinstance(error, StageFailedError | ClusterError | StorageError):
        return StageFailedError(stage, f"{error}; {fate}")
    what = "the data could not be read" if stage == "reading" else "the release could not be prepared"
    return StageFailedError(stage, f"{what}; {fate}")


def published_by_another(ledger: Ledger, charge: Charge, error: Exception) -> Charge | None:
    """Return the charge where another run took it over and published what this one drew."""
    if not isinstance(error, ChargeLostError):
        return None
    with suppress(LedgerError):
        current = ledger.find(charge.dataset, charge.name, charge.window, amendment=charge.amendment)
        if current is not None and current.state is ChargeState.PUBLISHED:
            return current if current.charge_id == charge.charge_id else None
    return None


def spend(
    ledger: Ledger, store: ReleaseStore, spool: Spool, charge: Charge, stage: str, error: Exception
) -> SufficeError:
    """Fence off and abandon a charge that may have drawn; leave one that is complete to be published.

    Parameters and what is returned are those of :func:`give_back`; the charge is in any state from
    ``drawing`` on.
    """
    why = f"{error}; " if isinstance(error, StorageError) else ""
    return StageFailedError(stage, why + _fate(ledger, store, spool, charge, stage, error))


def _fate(
    ledger: Ledger, store: ReleaseStore, spool: Spool, charge: Charge, stage: str, error: Exception
) -> str:
    """Do what has to be done about a charge that may have drawn, and say what becomes of it."""
    again = "nothing is lost: run the same command again, or `suffice ledger recover`, on this host"
    rerun = "the charge counts as spent until a rerun on this host settles it"
    if stage == "publishing":
        return f"staged, not published: {again}"
    if isinstance(error, ChargeLostError):
        return "another run has taken over this charge, and decides what becomes of it"
    try:
        if spool.complete(charge) is not None:
            return f"drawn, not staged: {again}"
        if isinstance(error, LedgerError):  # unknown how far the ledger came
            return rerun
        charge = abandon(ledger, store, charge, reason=f"{stage} failed")
    except StorageError:
        return rerun
    forget(spool, charge)
    clean_up(store, charge)
    return f"{charge.loss} is spent, for noise may have been drawn: the charge is abandoned"


def clean_up(store: ReleaseStore, charge: Charge) -> None:
    """Remove the data files of an abandoned charge, as far as that goes: recovery tries again."""
    with suppress(StorageError):
        remove_orphans(store, charge)


def settle(
    ledger: Ledger,
    store: ReleaseStore,
    charge: Charge,
    *,
    spool: Spool | None = None,
    patience: Patience = ONCE,
) -> Charge:
    """Take over a charge that its run has left, and carry it to its end.

    What is staged is published. What entered ``drawing`` and is complete in this host's spool is staged and
    published. What entered ``drawing`` otherwise gets its tombstone and is abandoned, its epsilon returned
    where it is proved that nobody saw what was drawn, and spent otherwise; so is what is reserved and has its
    marker in the store. What certainly never drew is abandoned, its epsilon returned.

    Parameters
    ----------
    ledger : Ledger
    store : ReleaseStore
        The one that the charge names.
    charge : Charge
        In state ``reserved``, ``drawing`` or ``staged``, as it was found.
    spool : Spool, optional
        This host's, where it has one.
    patience : Patience
        With a store that fails while something is published.

    Returns
    -------
    Charge
        In state ``published`` or ``abandoned``.

    Raises
    ------
    ChargeInProgressError
        Where its lease still holds and it is not staged.
    SpoolElsewhereError
        Where only another host can tell what was drawn, or has the files; the charge is as it was.
    ChargeLostError
        Where another run took it over first.
    LedgerCorruptError
        Where the store has objects or the marker of a release that this ledger says was never drawn, or the
        charge's witness has an entry that this ledger lacks.
    StoreError
        Where the store or the charge's witness fails, or something stands at the manifest's key that is not
        of this charge: then the charge is as it was.
    """
    if charge.state is ChargeState.RESERVED and store.objects.keys(_location(charge)):
        message = (
            f"the store has objects of {charge.label}, which this ledger says was never drawn: its epsilon "
            "is not returned; is this an older copy of the ledger?"
        )
        raise LedgerCorruptError(message)
    now = ledger.now()
    if charge.state is not ChargeState.STAGED and is_held(charge, now):
        raise in_progress_error(charge, now)
    here = charge.spool is None or (spool is not None and spool.holds(charge))
    # Neither a manifest nor a tombstone stands at the charge's key.
    if not here and store.read_manifest(charge.name, charge.edition, charge.release_id) is None:
        if charge.state is ChargeState.STAGED:
            require_files(ledger, store, spool, charge)  # else another host has them
        elif charge.witness is None or not ledger.is_returnable(charge):
            raise elsewhere(spool, charge)
    charge = ledger.take_over(charge)  # it may have moved on since it was found
    try:
        if charge.state is ChargeState.RESERVED:
            marker = standing_marker(ledger, store, charge)
            if marker is not None and not marker.waives:
                ledger.let_go(ledger.enter_drawing(charge))  # as its run would have: then it is taken over
                charge = ledger.take_over(charge)
        return _end(ledger, store, charge, spool if here else None, patience)
    except BaseException:
        with suppress(LedgerError):
            ledger.let_go(charge)
        raise


def _end(
    ledger: Ledger, store: ReleaseStore, charge: Charge, spool: Spool | None, patience: Patience
) -> Charge:
    """Carry a charge that was taken over to its end, with the spool that its files would be in."""
    if charge.state is ChargeState.DRAWING and spool is not None:
        entry = spool.complete(charge)
        if entry is not None:
            charge = stage_files(ledger, charge, entry, entry.manifest())
    if charge.state is ChargeState.STAGED:
        return publish_patiently(ledger, store, spool, charge, patience)
    if charge.drew and charge.witness is not None:
        move_witness(ledger, charge.witness)  # before the tombstone: an older copy of the ledger puts none
    after = "after" if charge.drew else "before"
    charge = abandon(
        ledger,
        store,
        charge,
        reason=f"its run ended {after} the draw began",
        unseen=lambda: charge.witness is not None or _was_never_completed(ledger, store, spool, charge),
    )
    forget(spool, charge)
    return charge


def _was_never_completed(ledger: Ledger, store: ReleaseStore, spool: Spool | None, charge: Charge) -> bool:
    """Tell whether this spool proves that the run that may have drawn a charge never came to stage it.

    Its marker names that run. That may be one of another copy of the ledger: then this spool proves nothing.
    """
    if spool is None:
        return False
    marker = standing_marker(ledger, store, charge)
    return marker is not None and marker.run is not None and spool.take_back(charge, marker.run)


def _location(charge: Charge) -> str:
    return f"{charge.name}/{charge.edition}/{charge.release_id}/"


def _never() -> bool:
    return False


def abandon(
    ledger: Ledger,
    store: ReleaseStore,
    charge: Charge,
    *,
    reason: str,
    unseen: Callable[[], bool] = _never,
) -> Charge:
    """End a charge without a release: first its tombstone, if it ever drew, so that none can follow.

    Of one that never drew the epsilon returns, once it is waived. Where as many attempts of its key failed
    before as the owner allows it is spent, as if it had drawn. Of one that drew it returns where nobody saw
    that.

    Parameters
    ----------
    ledger, store
        As for :func:`settle`.
    charge : Charge
        In state ``reserved``, ``drawing`` or ``staged``, held by `ledger`.
    reason : str
        A fixed text; goes into the chain.
    unseen : callable
        Tells whether it is proved that nobody saw what was drawn; asked once the tombstone stands, alone.

    Returns
    -------
    Charge
        In state ``abandoned``; ``published`` where its manifest stands there already.

    Raises
    ------
    StoreError
        Where the waiver or the tombstone cannot be put, or the manifest of another charge stands there.
    ChargeLostError
        Where another run took it over first.
    """
    if not charge.drew:
        waive(ledger, store, charge)
        try:
            return ledger.abandon(charge, reason=reason)
        except ReadingsExhaustedError:  # spent as a draw is
            charge = ledger.enter_drawing(charge)
    try:
        store.put_tombstone(charge.name, charge.edition, charge.release_id)
    except ObjectExistsError:
        standing = store.read_manifest(charge.name, charge.edition, charge.release_id)
        if standing is None:  # gone between two readings: nothing is certain
            raise
        if not is_tombstone(standing):
            return _adopt(ledger, store, charge, standing)
    alone = store.objects.keys(_location(charge)) == [_location(charge) + MANIFEST]
    if alone and charge.state is ChargeState.DRAWING and ledger.is_returnable(charge) and unseen():
        with suppress(DrawsExhaustedError, ReadingsExhaustedError):  # by other runs, just now
            return ledger.return_draw(charge, reason=reason)
    return ledger.abandon(charge, reason=reason)


def abandon_lost(ledger: Ledger, store: ReleaseStore, charge: Charge, *, spool: Spool | None) -> Charge:
    """Spend a charge whose drawn files are lost with their spool: its tombstone, then ``abandoned``.

    Parameters and errors are those of :func:`settle`, and

    Raises
    ------
    UsageError
        Where it has not drawn or has ended, or its files are here, so that nothing is lost.
    """
    if store.store_id != charge.store_id:
        message = f"{charge.label} was charged with the store {charge.store_uri}; {store.uri} is another"
        raise WrongStoreError(message)
    if charge.state not in {ChargeState.DRAWING, ChargeState.STAGED}:
        message = (
            f"{charge.label} is {charge.state}: only a charge that is drawing or staged can lose its files"
        )
        raise UsageError(message)
    if kept_files(spool, charge) is not None or ledger.staged_names(charge):
        message = f"the files of {charge.label} are at hand: `suffice ledger recover` publishes them"
        raise UsageError(message)
    now = ledger.now()
    if is_held(charge, now):
        raise in_progress_error(charge, now)
    charge = abandon(ledger, store, ledger.take_over(charge), reason="its spool is lost")
    forget(spool, charge)
    return charge


def remove_orphans(store: ReleaseStore, charge: Charge | ChargeSummary) -> tuple[str, ...]:
    """Remove the data files of an abandoned charge that drew, once its tombstone stands.

    Returns
    -------
    tuple of str
        The keys removed.

    Raises
    ------
    StoreError
        Where a manifest stands there, whose files are never removed, or the store fails.
    """
    location = (charge.name, charge.edition, charge.release_id)
    if store.read_manifest(*location) is None:
        with suppress(ObjectExistsError):  # then the next line tells what stands there
            store.put_tombstone(*location)
    return store.remove_data(*location)


def _adopt(ledger: Ledger, store: ReleaseStore, charge: Charge, standing: bytes) -> Charge:
    """Mark a charge as published by a manifest that names its own ``drawing`` entry.

    That entry's hash is known to nobody who has not read the ledger, or the release.
    """
    manifest = parse_manifest(standing)
    named = (manifest.ledger_id, manifest.release_id, manifest.plan_hash)
    drawing = (manifest.drawing_sequence, manifest.drawing_hash)
    if named != (charge.ledger_id, charge.release_id, charge.plan_hash) or drawing != (
        charge.drawing_sequence,
        charge.drawing_hash,
    ):
        raise foreign(store, charge)
    if charge.state is ChargeState.DRAWING:
        charge = ledger.stage(charge, standing)
    elif standing != charge.manifest:
        raise foreign(store, charge)
    describe_published(store, charge, standing)
    return mark_published(ledger, charge)
