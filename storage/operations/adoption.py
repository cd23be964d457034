"""A store that was moved, or lost its ``suffice.json``, is taken up again once it shows whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import LedgerCorruptError, ReleaseCorruptError, StoreError, SufficeError, WrongStoreError
from suffice.storage.ledger.charge import release_id
from suffice.storage.objects.address import read_address
from suffice.storage.operations.markers import read_marker
from suffice.storage.releases.layout import marker_sequence, read_place
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest
from suffice.storage.releases.store_identity import read_identity, write_identity

if TYPE_CHECKING:
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.ledger.stores import KnownStore
    from suffice.storage.objects.object_store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What an adoption did.

    Attributes
    ----------
    store_id, uri : str
    moved_from : str
        Where the ledger had it before; empty where it has not moved.
    restored : bool
        Whether ``suffice.json`` was put back.
    markers, releases : int
        What stands there of this ledger, and was compared with it.
    """

    store_id: str
    uri: str
    moved_from: str
    restored: bool
    markers: int
    releases: int


def adopt_store(ledger: Ledger, uri: str) -> Adoption:
    """Take up the store at a place: compare it with the ledger, restore its ``suffice.json``, record where.

    Raises
    ------
    WrongStoreError
        Where the place belongs to another ledger, holds charges of several stores, shows nothing that
        this ledger charged for, or is a copy of a store that still stands elsewhere.
    LedgerCorruptError
        Where it holds what this ledger lacks: an older copy of the ledger adopts nothing.
    StoreError
        Where it cannot be read or written.
    """
    address = read_address(uri)
    objects, place = address.objects(), address.uri
    identity = read_identity(objects, place)
    if identity is not None and identity.ledger_id != ledger.ledger_id:
        message = (
            f"the store {place} belongs to ledger {identity.ledger_id}, not to this one, {ledger.ledger_id}"
        )
        raise WrongStoreError(message)
    found = _evidence(ledger, objects, place)
    known = {store.store_id: store for store in ledger.stores()}
    named = {identity.store_id} if identity is not None else set()
    if len(found.stores | named) != 1 or not (found.stores | named) <= known.keys():
        raise _unclear(place, found.stores, named, known)
    store = known[next(iter(found.stores | named))]
    if store.uri != place:
        refuse_copy(store, place)
    if identity is None:
        written = write_identity(objects, place, store_id=store.store_id, ledger_id=ledger.ledger_id)
        if written.store_id != store.store_id:
            raise _unclear(place, found.stores, {written.store_id}, known)
    ledger.adopt_store(store.store_id, uri=place)
    return Adoption(
        store_id=store.store_id,
        uri=place,
        moved_from="" if store.uri == place else store.uri,
        restored=identity is None,
        markers=found.markers,
        releases=found.releases,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What stands at a place: the ids of the stores that it was charged for, and how much was compared."""

    stores: frozenset[str]
    markers: int
    releases: int


def _evidence(ledger: Ledger, objects: ObjectStore, place: str) -> _Evidence:
    """Look at all markers and manifests; those of other ledgers were copied there, and say nothing."""
    charges = ledger.stores_of_charges()
    reserved = {sequence: store_id for sequence, _, store_id in charges}
    releases = {paid: store_id for _, paid, store_id in charges}
    lost = {
        (one.marker_sequence, one.marker_hash): releases[release_id(ledger.ledger_id, one.charge_id)]
        for one in ledger.reconciled()
    }
    stores, n_markers, n_releases = set(), 0, 0
    for key in objects.keys_after("", ""):
        located = read_place(key)
        if marker_sequence(key) is not None:
            marker = read_marker(objects, place, key)
            if marker is None or marker.ledger_id != ledger.ledger_id:
                message = f"{place}/{key} is no marker of this ledger: the place belongs to another one"
                raise WrongStoreError(message)
            paid_at = lost.get((marker.sequence, marker.hash))
            if paid_at is None and ledger.entry_hash(marker.sequence) == marker.hash:
                paid_at = reserved.get(marker.sequence)
            if paid_at is None:
                raise _lacking(place, key)
            stores.add(paid_at)
            n_markers += 1
        elif located is not None and located[1] == MANIFEST:
            owner = _owner(objects, key)
            if owner == ledger.ledger_id or (owner is None and located[0].release_id in releases):
                if located[0].release_id not in releases:
                    raise _lacking(place, key)
                stores.add(releases[located[0].release_id])
                n_releases += 1
    return _Evidence(stores=frozenset(stores), markers=n_markers, releases=n_releases)


def _owner(objects: ObjectStore, key: str) -> str | None:
    """Return the ledger that a manifest names; None for a tombstone, and for what cannot be read."""
    data = objects.get(key, at_most=LARGEST_MANIFEST)
    try:
        return None if data is None or is_tombstone(data) else parse_manifest(data).ledger_id
    except ReleaseCorruptError:
        return None


def refuse_copy(store: KnownStore, place: str) -> None:
    """Refuse a second store of one id: what is fenced off in one could be published in the other."""
    try:
        standing = read_identity(read_address(store.uri).objects(), store.uri)
    except SufficeError:
        return  # it cannot be asked: the owner says that it moved
    if standing is not None and standing.store_id == store.store_id:
        message = (
            f"the store {store.store_id} still stands at {store.uri}: {place} is a copy of it, and one store "
            "cannot be at two places. Remove the one that is not to be used"
        )
        raise WrongStoreError(message)


def _lacking(place: str, key: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"{place}/{key} was charged for, and this ledger lacks its charge: it is an older copy of the "
        "ledger, or its end was cut off. Nothing was adopted; restore the newest copy, or `suffice ledger "
        "reconcile` where there is none"
    )


def _unclear(place: str, found: frozenset[str], named: set[str], known: dict[str, KnownStore]) -> StoreError:
    if not found | named:
        return WrongStoreError(
            f"nothing at {place} shows that it is a store of this ledger: there is no suffice.json, no "
            "marker and no release. `suffice store list` names the stores that the ledger knows"
        )
    if not found and not named & known.keys():
        return WrongStoreError(
            f"this ledger never charged for the store {next(iter(named))} at {place}: there is nothing to "
            "adopt, `suffice release` uses it as it is"
        )
    shown = ", ".join(sorted(found | named)[:4])
    return WrongStoreError(
        f"{place} holds charges of more than one store, or its suffice.json names another ({shown}): "
        "separate them, or remove the suffice.json that is wrong, and adopt it then"
    )
