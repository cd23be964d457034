"""A ledger that was restored from an older copy is charged again for what its stores show, never for less.

Every run puts its charge's reservation into the store before it draws. So the markers that stand in a store,
and that the copy lacks, are all charges that may have drawn there since. Whether a release or a tombstone
stands beside a marker says how its charge ended; one with neither is fenced off, and counts as spent.

A store that was moved, or lost its ``suffice.json``, is taken up again once it shows whose it is.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import (
    LedgerCorruptError,
    ObjectExistsError,
    ReleaseCorruptError,
    StoreError,
    SufficeError,
    UsageError,
    WrongStoreError,
)
from suffice.pipeline.spec.windows_and_amendments import MOST_AMENDMENTS, edition
from suffice.pipeline.terms.declaration.documents import Count, printed
from suffice.pipeline.terms.declaration.domains import Every, is_period
from suffice.pipeline.terms.declaration.exact_numbers import MOST_COUNTED
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.amounts import stated_name
from suffice.storage.ledger.chain import canonical_json
from suffice.storage.ledger.charge import ALL, ChargeState, LostCharge, Reconciled, check_name, release_id
from suffice.storage.objects.address import read_address
from suffice.storage.operations.markers import marker_of, markers_after, read_marker
from suffice.storage.operations.witness import read_witness, replace_witness
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.store_identity import (
    marker_key,
    marker_sequence,
    read_identity,
    read_place,
    write_identity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.storage.ledger.account import KnownStore
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.operations.markers import Marker
    from suffice.storage.operations.witness import Witness
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.release_store import ReleaseStore


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
    evidence = _evidence(ledger, objects, place)
    known = {store.store_id: store for store in ledger.stores()}
    named = {identity.store_id} if identity is not None else set()
    if len(evidence.stores | named) != 1 or not (evidence.stores | named) <= known.keys():
        raise _unclear(place, evidence.stores, named, known)
    store = known[next(iter(evidence.stores | named))]
    if store.uri != place:
        refuse_copy(store, place)
    if identity is None:
        written = write_identity(objects, place, store_id=store.store_id, ledger_id=ledger.ledger_id)
        if written.store_id != store.store_id:
            raise _unclear(place, evidence.stores, {written.store_id}, known)
    ledger.adopt_store(store.store_id, uri=place)
    return Adoption(
        store_id=store.store_id,
        uri=place,
        moved_from="" if store.uri == place else store.uri,
        restored=identity is None,
        markers=evidence.markers,
        releases=evidence.releases,
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
        (charge.marker_sequence, charge.marker_hash): releases[release_id(ledger.ledger_id, charge.charge_id)]
        for charge in ledger.reconciled()
    }
    stores, n_markers, n_releases = set(), 0, 0
    for key in objects.keys_after("", ""):
        located = read_place(key)
        if marker_sequence(key) is not None:
            marker = read_marker(objects, place, key)
            if marker is None or marker.ledger_id != ledger.ledger_id:
                message = f"{place}/{key} is no marker of this ledger: the place belongs to another one"
                raise WrongStoreError(message)
            if marker.waives and ledger.entry_hash(marker.sequence) != marker.hash:
                continue  # a lost copy returned it
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


def _unclear(place: str, shown: frozenset[str], named: set[str], known: dict[str, KnownStore]) -> StoreError:
    if not shown | named:
        return WrongStoreError(
            f"nothing at {place} shows that it is a store of this ledger: there is no suffice.json, no "
            "marker and no release. `suffice store list` names the stores that the ledger knows"
        )
    if not shown and not named & known.keys():
        return WrongStoreError(
            f"this ledger never charged for the store {next(iter(named))} at {place}: there is nothing to "
            "adopt, `suffice release` uses it as it is"
        )
    ids = ", ".join(sorted(shown | named)[:4])
    return WrongStoreError(
        f"{place} holds charges of more than one store, or its suffice.json names another ({ids}): "
        "separate them, or remove the suffice.json that is wrong, and adopt it then"
    )


_HEX = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64}", re.ASCII)
MOST_SKIPPED = 1_000_000
"""Lost entries that one reconciliation fills: whoever can write to a store can name any number."""


@printed("charges skipped witness=witness.head.sequence")
@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What a reconciliation did.

    Attributes
    ----------
    charges : tuple of Charge
        Those that were charged again, as they are now: published, or abandoned and spent.
    skipped : int
        Entries of the chain that stand in the places of lost ones.
    witness : Witness or None
        As it is now, where one was named.
    """

    charges: tuple[Charge, ...]
    skipped: Count
    witness: Witness | None


def reconcile(
    ledger: Ledger, *, stores: Sequence[str] = (), witness: str | None = None, reason: str
) -> Reconciliation:
    """Charge a ledger for all that its stores show and it lacks: all of it, or nothing.

    Nothing may run meanwhile, on this copy or any other. A second reconciliation finds nothing.

    Parameters
    ----------
    ledger : Ledger
    stores : sequence of str
        Stores that the copy may not know yet, beside those it does.
    witness : str, optional
        Of the lost ledger; it holds this one's head afterwards.
    reason : str
        For the record.

    Raises
    ------
    StoreError, WrongStoreError
        Where a store that is not retired cannot be read, or is not what the ledger knows.
    UsageError
        Where the ledger knows no store and none is named, or there is no reason.
    LedgerCorruptError
        Where what stands in a store contradicts itself, or two copies of the ledger went on.
    SufficeError
        As :meth:`suffice.storage.ledger.ledger.Ledger.reconcile`.
    """
    if not reason.strip():
        message = "a reconciliation needs a reason, for the record"
        raise UsageError(message)
    opened = _open_all(ledger, stores)
    standing = None if witness is None else read_witness(ledger, witness)
    lost = sorted(
        (charge for store in opened for charge in _lost_of(ledger, store)),
        key=lambda charge: charge.marker.sequence,
    )
    plans = {charge.manifest.plan_hash: charge.manifest.plan.canonical for charge in lost if charge.manifest}
    if lost:
        _record_moves(ledger, opened)
    head = ledger.head()
    behind = standing is not None and ledger.entry_hash(standing.head.sequence) != standing.head.hash
    beyond = max([head.sequence, *(charge.last_sequence for charge in lost)])
    if standing is not None and behind:
        beyond = max(beyond, standing.head.sequence + 1)
    if beyond - head.sequence > MOST_SKIPPED:
        raise _too_far(beyond, head.sequence)
    charges: tuple[Charge, ...] = ()
    if lost or behind:
        lost_charges = [_told(ledger, charge, plans) for charge in lost]
        charges = ledger.reconcile(lost_charges, beyond=beyond, reason=reason)
    if standing is not None and behind:
        standing = replace_witness(ledger, standing)
    return Reconciliation(charges=charges, skipped=beyond - head.sequence, witness=standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownCharge:
    """A charge that a store shows and a ledger lacks."""

    store: ReleaseStore
    marker: Marker
    data: bytes | None
    manifest: Manifest | None

    @property
    def last_sequence(self) -> int:
        """The highest number of an entry that the store names of it."""
        return max(self.marker.sequence, self.manifest.drawing_sequence if self.manifest else 0)


def _open_all(ledger: Ledger, named: Sequence[str]) -> list[ReleaseStore]:
    """Open every store that is not retired: one that is away could hold what nobody else shows.

    Raises
    ------
    UsageError
        Where there is none: nothing could show what is lacking.
    """
    opened: dict[str, ReleaseStore] = {}
    for uri in named:
        store = open_store(uri, ledger_id=ledger.ledger_id, probe=False)
        if opened.setdefault(store.store_id, store).uri != store.uri:
            message = f"{store.uri} is a copy of the store {store.store_id}, or it was moved: name one"
            raise WrongStoreError(message)
    for known in ledger.stores():
        if known.store_id in opened:
            if opened[known.store_id].uri != known.uri:  # moved since the copy was made
                refuse_copy(known, opened[known.store_id].uri)
        elif not known.retired:
            try:
                store = open_store(known.uri, ledger_id=ledger.ledger_id, probe=False)
            except StoreError as error:
                message = f"{error}. Where the store was moved after the copy was made: --store NEW_PLACE"
                raise type(error)(message) from None
            if store.store_id != known.store_id:
                message = f"the ledger knows the store {known.store_id} at {known.uri}, not {store.store_id}"
                raise WrongStoreError(message)
            opened[store.store_id] = store
    if not opened:
        message = "this copy of the ledger knows no store: name each that was released to, with --store"
        raise UsageError(message)
    return list(opened.values())


def _record_moves(ledger: Ledger, opened: Sequence[ReleaseStore]) -> None:
    """Record where the stores that were named stand now; `store adopt` refuses a copy that lacks charges."""
    known = {store.store_id: store for store in ledger.stores()}
    for store in opened:
        before = known.get(store.store_id)
        if before is not None and (before.uri != store.uri or before.retired):
            ledger.adopt_store(store.store_id, uri=store.uri)


def _lost_of(ledger: Ledger, store: ReleaseStore) -> Iterator[_ShownCharge]:
    """Give the charges of a store that this ledger lacks, or has as never drawn though a marker stands."""
    known = next((each.last_marker for each in ledger.stores() if each.store_id == store.store_id), 0)
    for key, marker in markers_after(store.objects, store.uri, known):
        if marker is None:
            message = f"{store.uri}/{key} is no marker: `suffice store verify {store.uri}` says more"
            raise StoreError(message)
        if marker.waives or marker.ledger_id != ledger.ledger_id:
            continue
        if marker.hash != ledger.entry_hash(marker.sequence):
            yield _look(store, marker)
    for summary in ledger.unfinished(store.store_id):
        charge = ledger.charge(summary.charge_id)
        if charge is not None and charge.state is ChargeState.RESERVED:
            marker = marker_of(ledger, charge)
            standing = read_marker(store.objects, store.uri, marker_key(marker.sequence))
            if standing is not None and not standing.waives and standing.hash == marker.hash:
                yield _look(store, standing)


def _look(store: ReleaseStore, marker: Marker) -> _ShownCharge:
    """See how a charge ended; fence off what did not, for nothing runs that could still publish it."""
    stated = marker.entry.payload
    charged_loss = _stated_loss(stated)
    if charged_loss is None or not _is_stated(store, marker, charged_loss):
        raise _contradicts(store, marker)
    location = stated["name"], edition(stated["window"], stated["amendment"]), stated["release_id"]
    data = store.read_manifest(*location)
    if data is None:
        try:
            store.put_tombstone(*location)
        except ObjectExistsError:  # a run that still went on came first
            data = store.read_manifest(*location)
    if data is None or is_tombstone(data):
        return _ShownCharge(store=store, marker=marker, data=None, manifest=None)
    try:
        manifest = parse_manifest(data)
    except SufficeError:
        raise _contradicts(store, marker) from None
    released = (
        *(manifest.ledger_id, manifest.dataset, manifest.name, manifest.window, manifest.amendment),
        *(manifest.release_id, manifest.plan_hash, manifest.plan.loss_in(charged_loss.measure)),
    )
    charged = (
        *(marker.ledger_id, stated["dataset"], stated["name"], stated["window"], stated["amendment"]),
        *(stated["release_id"], stated["plan_hash"], charged_loss),
    )
    if released != charged:
        raise _contradicts(store, marker)
    return _ShownCharge(store=store, marker=marker, data=data, manifest=manifest)


def _stated_loss(stated: Mapping[str, Any]) -> PrivacyLoss | None:
    """Return what a marker states that its charge took; None where it states nothing that one can take."""
    for measure in PrivacyMeasure:
        count = stated.get(stated_name("charged", measure))
        if type(count) is int and 0 < count <= MOST_COUNTED:
            return measure.loss(count)
    return None


def _is_stated(store: ReleaseStore, marker: Marker, loss: PrivacyLoss) -> bool:
    """Tell whether a marker states a charge of its store: whoever can write there may have put it."""
    stated = marker.entry.payload
    texts = ("charge_id", "release_id", "dataset", "name", "window", "plan_hash", "store_id")
    counts = ("amendment", "attempt", stated_name("charged", loss.measure))
    links = ("amends", "amended_sha256")
    if stated.keys() != {*texts, *counts, *links}:
        return False
    if any(type(stated[name]) is not str for name in texts) or any(
        type(stated[name]) is not int or stated[name] < 0 for name in counts
    ):
        return False
    if any(not (stated[name] is None or _HEX.fullmatch(str(stated[name]))) for name in links):
        return False
    try:
        check_name("dataset", stated["dataset"])
        check_name("release name", stated["name"])
    except UsageError:
        return False
    return (
        _is_edition(stated["window"], stated["amendment"])
        and stated["store_id"] == store.store_id
        and all(_HEX.fullmatch(stated[name]) for name in ("charge_id", "plan_hash"))
        and stated["release_id"] == release_id(marker.ledger_id, stated["charge_id"])
    )


def _is_edition(window: str, amendment: int) -> bool:
    """Tell whether a spec can have a window of that name, and the window an amendment of that number."""
    if window == ALL:
        return amendment == 0
    return amendment <= MOST_AMENDMENTS and any(is_period(window, every) for every in Every)


def _told(ledger: Ledger, charge: _ShownCharge, plans: dict[str, str]) -> LostCharge:
    """Return what the ledger is told of a charge."""
    stated: dict[str, Any] = {**charge.marker.entry.payload, "store_uri": charge.store.uri}
    plan = plans.get(stated["plan_hash"]) or _known_plan(ledger, stated["plan_hash"])
    if plan is None:  # the epsilon counts; the plan of a charge without a release is nowhere else
        plan = canonical_json({"lost": stated["plan_hash"]})
        stated["plan_hash"] = hashlib.sha256(plan.encode()).hexdigest()
    manifest = charge.manifest
    return LostCharge(
        named=Reconciled(
            charge_id=stated["charge_id"],
            marker_sequence=charge.marker.sequence,
            marker_hash=charge.marker.hash,
            drawing_sequence=manifest.drawing_sequence if manifest else None,
            drawing_hash=manifest.drawing_hash if manifest else None,
        ),
        reserved=stated,
        plan_json=plan,
        manifest=charge.data,
    )


def _known_plan(ledger: Ledger, plan_hash: str) -> str | None:
    try:
        return ledger.plan(plan_hash)
    except LedgerCorruptError:
        return None


def _too_far(beyond: int, last: int) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"a store or the witness names entry {beyond}, and this copy ends at {last}: so many are not lost at "
        "once, so that somebody wrote there, or the copy is not of this ledger's last days. Nothing was "
        "reconciled"
    )


def _contradicts(store: ReleaseStore, marker: Marker) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"{store.uri}: the marker {marker_key(marker.sequence)} and what stands at the place that it names "
        "do not agree: somebody wrote into the store. Find out who, and what was published. Nothing was "
        "reconciled"
    )
