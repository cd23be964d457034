"""How a charge ends: published with the very bytes that were staged, or fenced off and abandoned.

Runs that go on, runs that come again and recovery all end charges here, so that the same thing is decided
from the same evidence: what the ledger holds durably, and what stands at the manifest's key.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from suffice.errors import ChargeLostError, LedgerCorruptError, LedgerError, ObjectExistsError, StoreError
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import parse_manifest

if TYPE_CHECKING:
    from suffice.storage.ledger.charge import Charge, ChargeSummary
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.release_store import ReleaseStore

_MOST_CLAIMS = 20
"""How often runs that publish one staged charge at once may take it from each other."""


def settle(ledger: Ledger, store: ReleaseStore, charge: Charge) -> Charge:
    """Take over a charge that its run has left, and carry it to its end.

    What is staged is published. What entered ``drawing`` and is not staged gets its tombstone and is
    abandoned, its epsilon spent. What never drew is abandoned, its epsilon returned.

    Parameters
    ----------
    ledger : Ledger
    store : ReleaseStore
        The one that the charge names.
    charge : Charge
        In state ``reserved``, ``drawing`` or ``staged``, as it was found.

    Returns
    -------
    Charge
        In state ``published`` or ``abandoned``.

    Raises
    ------
    ChargeInProgressError
        Where its lease still holds and it is not staged.
    ChargeLostError
        Where another run took it over first.
    LedgerCorruptError
        Where the store has objects of a release that this ledger says was never drawn.
    StoreError
        Where the store fails, or something stands at the manifest's key that is not of this charge: then
        the charge is as it was.
    """
    location = f"{charge.name}/{charge.window}/{charge.release_id}/"
    if charge.state is ChargeState.RESERVED and store.objects.keys(location):
        message = (
            f"the store has objects of {charge.label}, which this ledger says was never drawn: its epsilon "
            "is not returned; is this an older copy of the ledger?"
        )
        raise LedgerCorruptError(message)
    charge = ledger.take_over(charge)  # it may have moved on since it was found
    if charge.state is ChargeState.STAGED:
        return publish(ledger, store, charge)
    after = "after" if charge.drew else "before"
    return abandon(ledger, store, charge, reason=f"its lease passed {after} the draw")


def publish(ledger: Ledger, store: ReleaseStore, charge: Charge) -> Charge:
    """Put the staged bytes at the manifest's key, unless they stand there already.

    Parameters
    ----------
    ledger, store
        As for :func:`settle`.
    charge : Charge
        In state ``staged``, held by `ledger`.

    Returns
    -------
    Charge
        In state ``published``; ``abandoned`` where a tombstone stands there.

    Raises
    ------
    StoreError
        Where other bytes stand there, or the store fails: then the charge stays staged.
    ChargeLostError
        Where the charge ended otherwise meanwhile.
    """
    if charge.manifest is None:
        message = "the ledger gave a staged charge without its manifest"
        raise LedgerError(message)
    try:
        store.put_manifest(charge.name, charge.window, charge.release_id, charge.manifest)
    except ObjectExistsError:
        standing = store.read_manifest(charge.name, charge.window, charge.release_id)
        if standing is not None and is_tombstone(standing):
            return ledger.abandon(charge, reason="there is a tombstone at its manifest's key")
        if standing != charge.manifest:
            raise _foreign(store, charge) from None
    return _mark_published(ledger, charge)


def abandon(ledger: Ledger, store: ReleaseStore, charge: Charge, *, reason: str) -> Charge:
    """End a charge without a release: first its tombstone, if it ever drew, so that none can follow.

    Parameters
    ----------
    ledger, store
        As for :func:`settle`.
    charge : Charge
        In state ``reserved`` or ``drawing``, held by `ledger`.
    reason : str
        A fixed text; goes into the chain.

    Returns
    -------
    Charge
        In state ``abandoned``; ``published`` where its manifest stands there already.

    Raises
    ------
    StoreError
        Where the tombstone cannot be put, or the manifest of another charge stands there.
    ChargeLostError
        Where another run took it over first.
    """
    if charge.drew:
        try:
            store.put_tombstone(charge.name, charge.window, charge.release_id)
        except ObjectExistsError:
            standing = store.read_manifest(charge.name, charge.window, charge.release_id)
            if standing is None:  # gone between two readings: nothing is certain
                raise
            if not is_tombstone(standing):
                return _adopt(ledger, store, charge, standing)
    return ledger.abandon(charge, reason=reason)


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
    location = (charge.name, charge.window, charge.release_id)
    if store.read_manifest(*location) is None:
        with suppress(ObjectExistsError):  # then the next line tells what stands there
            store.put_tombstone(*location)
    return store.remove_data(*location)


def _mark_published(ledger: Ledger, charge: Charge) -> Charge:
    """Have the ledger know that the manifest stands.

    Any number of runs may publish a staged charge at once, as its bytes are fixed; each takes it from the
    one before, which must not make that one fail.
    """
    for _ in range(_MOST_CLAIMS):
        with suppress(ChargeLostError):
            return ledger.publish(charge)
        current = ledger.find(charge.dataset, charge.name, charge.window)
        if current is not None and current.charge_id == charge.charge_id:
            with suppress(ChargeLostError):
                charge = ledger.take_over(current)
    return ledger.publish(charge)


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
        raise _foreign(store, charge)
    return _mark_published(ledger, ledger.stage(charge, standing))


def _foreign(store: ReleaseStore, charge: Charge) -> StoreError:
    location = store.release_uri(charge.name, charge.window, charge.release_id)
    return StoreError(
        f"another manifest than that of {charge.label} stands at {location}: it is left as it is"
    )
