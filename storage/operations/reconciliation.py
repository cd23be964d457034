"""A ledger that was restored from an older copy is charged again for what its stores show, never for less.

Every run puts its charge's reservation into the store before it draws. So the markers that stand in a store,
and that the copy lacks, are all charges that may have drawn there since. Whether a release or a tombstone
stands beside says how each ended; one that has neither is fenced off, and counts as spent.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import (
    LedgerCorruptError,
    ObjectExistsError,
    StoreError,
    SufficeError,
    UsageError,
    WrongStoreError,
)
from suffice.pipeline.spec.editions import MOST_AMENDMENTS, edition
from suffice.pipeline.terms.declaration.domains import Every, is_period
from suffice.pipeline.terms.declaration.exact_numbers import MICRO
from suffice.storage.ledger.chain import canonical_json
from suffice.storage.ledger.charge import ALL, ChargeState, check_name, release_id
from suffice.storage.ledger.reconciliation import LostCharge, Reconciled
from suffice.storage.operations.adoption import refuse_copy
from suffice.storage.operations.markers import marker_of, markers_after, read_marker
from suffice.storage.operations.witness import read_witness, replace_witness
from suffice.storage.releases.layout import marker_key
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.operations.markers import Marker
    from suffice.storage.operations.witness import Witness
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.release_store import ReleaseStore

_HEX = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64}", re.ASCII)
_MOST_MICRO = 2**62
"""More than any grant: what databases count in."""
MOST_SKIPPED = 1_000_000
"""Lost entries that one reconciliation fills: whoever can write to a store can name any number."""


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
    skipped: int
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
        (found for store in opened for found in _lost_of(ledger, store)),
        key=lambda found: found.marker.sequence,
    )
    plans = {found.manifest.plan_hash: found.manifest.plan.canonical for found in lost if found.manifest}
    if lost:
        _record_moves(ledger, opened)
    head = ledger.head()
    behind = standing is not None and ledger.entry_hash(standing.head.sequence) != standing.head.hash
    beyond = max([head.sequence, *(found.last_sequence for found in lost)])
    if standing is not None and behind:
        beyond = max(beyond, standing.head.sequence + 1)
    if beyond - head.sequence > MOST_SKIPPED:
        raise _too_far(beyond, head.sequence)
    charges: tuple[Charge, ...] = ()
    if lost or behind:
        told = [_told(ledger, found, plans) for found in lost]
        charges = ledger.reconcile(told, beyond=beyond, reason=reason)
    if standing is not None and behind:
        standing = replace_witness(ledger, standing)
    return Reconciliation(charges=charges, skipped=beyond - head.sequence, witness=standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
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


def _lost_of(ledger: Ledger, store: ReleaseStore) -> Iterator[_Found]:
    """Give the charges of a store that this ledger lacks, or has as never drawn though a marker stands."""
    known = next((one.last_marker for one in ledger.stores() if one.store_id == store.store_id), 0)
    for key, marker in markers_after(store.objects, store.uri, known):
        if marker is None:
            message = f"{store.uri}/{key} is no marker: `suffice store verify {store.uri}` says more"
            raise StoreError(message)
        if marker.ledger_id == ledger.ledger_id and marker.hash != ledger.entry_hash(marker.sequence):
            yield _look(store, marker)
    for summary in ledger.unfinished(store.store_id):
        charge = ledger.charge(summary.charge_id)
        if charge is not None and charge.state is ChargeState.RESERVED:
            marker = marker_of(ledger, charge)
            if read_marker(store.objects, store.uri, marker_key(marker.sequence)) == marker:
                yield _look(store, marker)


def _look(store: ReleaseStore, marker: Marker) -> _Found:
    """See how a charge ended; fence off what did not, for nothing runs that could still publish it."""
    stated = marker.entry.payload
    if not _is_stated(store, marker):
        raise _contradicts(store, marker)
    location = stated["name"], edition(stated["window"], stated["amendment"]), stated["release_id"]
    data = store.read_manifest(*location)
    if data is None:
        try:
            store.put_tombstone(*location)
        except ObjectExistsError:  # a run that still went on came first
            data = store.read_manifest(*location)
    if data is None or is_tombstone(data):
        return _Found(store=store, marker=marker, data=None, manifest=None)
    try:
        manifest = parse_manifest(data)
    except SufficeError:
        raise _contradicts(store, marker) from None
    released = (
        *(manifest.ledger_id, manifest.dataset, manifest.name, manifest.window, manifest.amendment),
        *(manifest.release_id, manifest.plan_hash, manifest.epsilon * MICRO),
    )
    charged = (
        *(marker.ledger_id, stated["dataset"], stated["name"], stated["window"], stated["amendment"]),
        *(stated["release_id"], stated["plan_hash"], stated["micro_epsilon"]),
    )
    if released != charged:
        raise _contradicts(store, marker)
    return _Found(store=store, marker=marker, data=data, manifest=manifest)


def _is_stated(store: ReleaseStore, marker: Marker) -> bool:
    """Tell whether a marker states a charge of its store: whoever can write there may have put it."""
    stated = marker.entry.payload
    texts = ("charge_id", "release_id", "dataset", "name", "window", "plan_hash", "store_id")
    counts = ("amendment", "attempt", "micro_epsilon")
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
        and 0 < stated["micro_epsilon"] <= _MOST_MICRO
    )


def _is_edition(window: str, amendment: int) -> bool:
    """Tell whether a spec can have a window of that name, and the window an amendment of that number."""
    if window == ALL:
        return amendment == 0
    return amendment <= MOST_AMENDMENTS and any(is_period(window, every) for every in Every)


def _told(ledger: Ledger, found: _Found, plans: dict[str, str]) -> LostCharge:
    """Return what the ledger is told of a charge."""
    stated: dict[str, Any] = {**found.marker.entry.payload, "store_uri": found.store.uri}
    plan = plans.get(stated["plan_hash"]) or _known_plan(ledger, stated["plan_hash"])
    if plan is None:  # the epsilon counts; the plan of a charge without a release is nowhere else
        plan = canonical_json({"lost": stated["plan_hash"]})
        stated["plan_hash"] = hashlib.sha256(plan.encode()).hexdigest()
    manifest = found.manifest
    return LostCharge(
        named=Reconciled(
            charge_id=stated["charge_id"],
            marker_sequence=found.marker.sequence,
            marker_hash=found.marker.hash,
            drawing_sequence=manifest.drawing_sequence if manifest else None,
            drawing_hash=manifest.drawing_hash if manifest else None,
        ),
        reserved=stated,
        plan_json=plan,
        manifest=found.data,
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
