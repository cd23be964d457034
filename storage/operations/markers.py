"""Markers: what a store shows of the charges that may have drawn, before they do.

Right before a charge enters ``drawing`` its run puts a small object into the store, create-only, under
the sequence of the charge's reservation. A ledger knows up to which sequence it has markers in a store.
So whether that store is newer than the ledger is one listing from there: a marker whose sequence the
ledger does not have, or which names another entry, was put by a run of another copy of it.

What stands there first decides for good, whatever copies of the ledger there are. Where a marker stands, the
run that it names may have drawn, and no other may. Where a waiver stands, nobody has drawn and nobody may: so
a waiver is put before epsilon returns.

A marker is that reservation itself, as the ledger's public export has it. So a ledger that was restored from
an older copy can be told what it lacks (:mod:`suffice.storage.operations.reconciliation`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from suffice.errors import LedgerCorruptError, ObjectExistsError, StoreError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.ledger.chain import EntryKind, PublicEntry, public_entry
from suffice.storage.ledger.charge import ChargeState, label
from suffice.storage.ledger.replay import public_fields, read_fields
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_model import FORMAT_VERSION
from suffice.storage.releases.store_identity import LARGEST_SEQUENCE, MARKERS, marker_key, marker_sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.release_store import ReleaseStore

_LARGEST = 4096
_RUN = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What stands at a marker's key.

    Attributes
    ----------
    ledger_id : str
    entry : PublicEntry
        That reserved the charge.
    run : str or None
        The run that may have drawn, as a charge names it; None in a waiver.
    """

    ledger_id: str
    entry: PublicEntry
    run: str | None

    @property
    def waives(self) -> bool:
        """Whether it says that nobody draws for the charge."""
        return self.run is None

    @property
    def sequence(self) -> int:
        """Of the entry."""
        return self.entry.sequence

    @property
    def hash(self) -> str:
        """Of the entry, computed."""
        return self.entry.hash

    def encode(self) -> bytes:
        """Return the marker's bytes."""
        stated = {"format_version": FORMAT_VERSION, "ledger_id": self.ledger_id, "run": self.run}
        return canonical_json.encode({**stated, **public_fields(self.entry)})


def put_marker(ledger: Ledger, store: ReleaseStore, charge: Charge) -> None:
    """Put a reserved charge's marker, and look once more whether another copy of the ledger put one.

    Of two copies that go on at once each puts before it looks: at least one of them sees the other.

    Parameters
    ----------
    ledger : Ledger
    store : ReleaseStore
        The one that the charge names.
    charge : Charge
        In state ``reserved``, held by `ledger`.

    Raises
    ------
    LedgerCorruptError
        Where another ledger, or another copy of this one, has charged the store meanwhile; or where another
        run of the charge put its marker or its waiver.
    ChargeLostError, LedgerError
        As :meth:`suffice.storage.ledger.ledger.Ledger.mark`.
    StoreError
        Where the marker cannot be put.
    """
    if charge.reserved_sequence > LARGEST_SEQUENCE:
        message = f"the ledger has more than {LARGEST_SEQUENCE} entries: no marker can be put"
        raise StoreError(message)
    known = _last_known(ledger, store.store_id)
    marker, key = marker_of(ledger, charge), marker_key(charge.reserved_sequence)
    ledger.mark(charge)
    try:
        store.objects.put_new(key, marker.encode())
    except ObjectExistsError:
        if read_marker(store.objects, store.uri, key) != marker:
            raise _newer(store.uri, key) from None
    refuse_newer(ledger, store.uri, markers_after(store.objects, store.uri, known))


def waive(ledger: Ledger, store: ReleaseStore, charge: Charge) -> None:
    """Let nobody draw for a reserved charge, in any copy of the ledger: then its epsilon may return.

    Parameters are those of :func:`put_marker`. Where the charge's own holder has put its marker, it alone may
    draw, and does not.

    Raises
    ------
    StoreError
        Where the waiver cannot be put, or the marker of another run of the charge stands there.
    """
    if charge.reserved_sequence > LARGEST_SEQUENCE:
        return  # no marker can be put
    marker, key = marker_of(ledger, charge), marker_key(charge.reserved_sequence)
    try:
        store.objects.put_new(key, replace(marker, run=None).encode())
    except ObjectExistsError:
        standing = read_marker(store.objects, store.uri, key)  # of another entry it is as good as a waiver
        if standing is not None and _is_of(standing, marker) and standing.run not in {None, marker.run}:
            message = f"{store.uri}/{key}: another run of {charge.label} may have drawn; run again"
            raise StoreError(message) from None


def standing_marker(ledger: Ledger, store: ReleaseStore, charge: Charge) -> Marker | None:
    """Return the marker or the waiver of a charge that another run left.

    Where a marker stands its run may have drawn, whatever this ledger says: it may be a copy that was made
    after the marker was put. Unknown means spent.

    Raises
    ------
    LedgerCorruptError
        Where no run that this ledger knows of ever put the marker: it is an older copy for certain.
    StoreError
        Where the store cannot be read.
    """
    key = marker_key(charge.reserved_sequence)
    standing = read_marker(store.objects, store.uri, key)
    if standing is None or not _is_of(standing, marker_of(ledger, charge)):
        return None
    if not standing.waives and not charge.marked:
        raise _newer(store.uri, key)
    return standing


def _is_of(standing: Marker, marker: Marker) -> bool:
    """Tell whether two markers are of one charge, whoever put them."""
    return replace(standing, run=None) == replace(marker, run=None)


def refuse_older_ledger(ledger: Ledger, store: ReleaseStore) -> None:
    """Refuse to charge a ledger that lacks what its store shows was charged.

    One listing, from the last marker that the ledger knows; then the places of the charges that it has
    as reserved or drawing, which are those of runs that go on or died.

    Raises
    ------
    LedgerCorruptError
        Where this ledger is an older copy, or its end was cut off.
    """
    known = _last_known(ledger, store.store_id)
    refuse_newer(ledger, store.uri, markers_after(store.objects, store.uri, known))
    for charge in ledger.unfinished(store.store_id):
        place = f"{charge.name}/{charge.edition}/{charge.release_id}"
        if charge.state is ChargeState.RESERVED:
            older = next(store.objects.keys_after(f"{place}/", ""), None) is not None
        else:
            manifest = store.read_manifest(charge.name, charge.edition, charge.release_id)
            older = manifest is not None and not is_tombstone(manifest)
        if older and _is_still(ledger, store, charge.charge_id, charge.state):
            what = f"{place}, which this ledger says was never drawn ({label(charge.name, charge.edition)})"
            raise _older(store.uri, what)


def markers_after(objects: ObjectStore, uri: str, sequence: int) -> Iterator[tuple[str, Marker | None]]:
    """Give the markers after a sequence, with their keys; None where something else stands there."""
    for key in objects.keys_after(MARKERS, marker_key(sequence)):
        if marker_sequence(key) is not None:
            yield key, read_marker(objects, uri, key)


def read_marker(objects: ObjectStore, uri: str, key: str) -> Marker | None:
    """Return the marker at a key; None where what stands there is none, or nothing does.

    Raises
    ------
    StoreError
        Where it cannot be read, or is of a later format.
    """
    data = objects.get(key, at_most=_LARGEST)
    try:
        content = None if data is None else canonical_json.decode(data)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    if content.get("format_version") != FORMAT_VERSION:
        message = f"{uri}/{key} has a format that this suffice does not know: upgrade it"
        raise StoreError(message)
    ledger_id, run = content.pop("ledger_id", None), content.pop("run", "")
    del content["format_version"]
    fields = read_fields(content)
    if fields is None or not isinstance(ledger_id, str) or not (run is None or _is_run(run)):
        return None
    stated = fields.pop("hash")
    marker = Marker(ledger_id=ledger_id, entry=PublicEntry(**fields), run=run)
    whole = (marker.entry.kind, marker.sequence, marker.hash)
    return marker if whole == (EntryKind.RESERVED, marker_sequence(key), stated) else None


def refuse_newer(ledger: Ledger, uri: str, markers: Iterable[tuple[str, Marker | None]]) -> None:
    """Refuse a ledger that lacks a marker's entry; waivers, and markers of other ledgers, say nothing of it.

    Raises
    ------
    LedgerCorruptError
    StoreError
        Where something stands at a marker's key that is none.
    """
    for key, marker in markers:
        if marker is None:
            message = f"{uri}/{key} is no marker: `suffice store verify {uri}` names all that is wrong there"
            raise StoreError(message)
        if marker.waives or marker.ledger_id != ledger.ledger_id:
            continue
        if marker.hash != ledger.entry_hash(marker.sequence):
            raise _newer(uri, key)


def marker_of(ledger: Ledger, charge: Charge) -> Marker:
    """Return the marker of a charge that a ledger has.

    Raises
    ------
    LedgerCorruptError
        Where the ledger lacks the charge's entry.
    """
    entry = ledger.entry(charge.reserved_sequence)
    if entry is None:
        message = f"the ledger lacks entry {charge.reserved_sequence}, which a charge names: it is damaged"
        raise LedgerCorruptError(message)
    return Marker(ledger_id=ledger.ledger_id, entry=public_entry(entry), run=charge.run)


def _is_run(stated: object) -> bool:
    return isinstance(stated, str) and _RUN.fullmatch(stated) is not None


def _last_known(ledger: Ledger, store_id: str) -> int:
    return next((known.last_marker for known in ledger.stores() if known.store_id == store_id), 0)


def _is_still(ledger: Ledger, store: ReleaseStore, charge_id: str, state: ChargeState) -> bool:
    """Tell whether a charge did not move on between the two readings: then another run has it."""
    unfinished = ledger.unfinished(store.store_id)
    return any(charge.charge_id == charge_id and charge.state is state for charge in unfinished)


def _newer(uri: str, key: str) -> LedgerCorruptError:
    return _older(uri, f"the marker {key}")


def _older(uri: str, what: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"the store {uri} has {what}, and this ledger no charge that could have made it: it is an older copy "
        "of the ledger, its end was cut off, two copies of it go on, or someone else wrote to the store. "
        "Nothing was drawn; restore the newest copy, or `suffice ledger reconcile` where there is none. "
        "`suffice ledger verify --store` names all that differs"
    )
