"""The ledger held against the store: what was paid for stands there, and what stands there was paid for.

A chain that was cut off at its end, together with its tables, agrees with itself: only what was released
meanwhile tells. Releases, tombstones and data files all stand under ids that a charge gave them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.spec.windows_and_amendments import amended_of, edition
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.charge import ChargeState, label
from suffice.storage.ledger.replay import replay, sha256
from suffice.storage.operations.markers import read_marker
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.store_identity import Place, marker_key, marker_sequence, read_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from suffice.storage.ledger.chain import Entry
    from suffice.storage.ledger.replay import Books, Row
    from suffice.storage.operations.markers import Marker
    from suffice.storage.releases.release_store import ReleaseStore


class Chain(Protocol):
    """What has entries: a ledger, or its export."""

    def entries(self) -> Iterable[Entry]:
        """Give the whole chain, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerComparison:
    """What a comparison of ledger and store found.

    Attributes
    ----------
    problems : tuple of str
        One sentence each; empty where they agree.
    compared : int
        Charges of this store.
    elsewhere : int
        Charges of other stores, which were not looked at.
    """

    problems: tuple[str, ...]
    compared: int
    elsewhere: int


def compare_with_store(chain: Chain, store: ReleaseStore) -> LedgerComparison:
    """Compare a ledger with a store, both ways; the store is only read.

    Parameters
    ----------
    chain : Ledger, or an export of one
    store : ReleaseStore

    Returns
    -------
    Comparison
        Named are releases without charges, published charges without releases, manifests that are not
        what was staged, draws that were abandoned without a tombstone, and everything that shows that
        the ledger is an older copy, was cut off, or was rewritten.
    """
    traces = _traces(store)  # before the entries: what stands here was charged before
    hashes: dict[int, str] = {}
    books, broken = replay(_noting_hashes(chain.entries(), hashes))
    if broken:
        return LedgerComparison(problems=broken, compared=0, elsewhere=0)
    charges = {charge["release_id"]: charge for charge in books.charges.values()}
    problems = []
    if store.ledger_id != books.ledger_id:
        problems.append(f"the store belongs to ledger {store.ledger_id}, not to this one, {books.ledger_id}")
    for trace in sorted(traces.files):
        charge = charges.get(trace.release_id)
        if charge is None:
            problems.append(f"{trace.key}: {_without_charge(store, trace, books.ledger_id, hashes)}")
        elif (charge["name"], _edition(charge)) != (trace.name, trace.edition):
            problems.append(f"{trace.key}: its charge is for {label(charge['name'], _edition(charge))}")
        elif charge["store_id"] != store.store_id:
            problems.append(f"{trace.key}: {_charged_elsewhere(charge, store)}")
        elif not charge["drew"]:
            problems.append(f"{trace.key}: data stand there, though its charge never drew: {_OLDER}")
        elif charge["draw_returned"] and set(traces.files[trace]) != {MANIFEST}:
            problems.append(f"{trace.key}: data stand there, though its draw was returned: {_UNPAID}")
    here = [charge for charge in charges.values() if charge["store_id"] == store.store_id]
    for charge in here:
        place = Place(charge["name"], _edition(charge), charge["release_id"])
        files = traces.files.get(place, [])
        problems += [f"{place.key}: {problem}" for problem in _compare_charge(store, charge, books, files)]
    problems += _compare_markers(store, traces.markers, books, hashes)
    return LedgerComparison(problems=tuple(problems), compared=len(here), elsewhere=len(charges) - len(here))


def _edition(charge: Row) -> str:
    return edition(charge["window"], charge["amendment"])


_OLDER = "this is an older copy of the ledger, or its end was cut off"
_UNPAID = "nobody paid for it; withdraw it, and count its loss as spent"
_TWICE = "another copy of the ledger has the same charge, and returned its loss"
_RELEASED = (ChargeState.STAGED, ChargeState.PUBLISHED)
_REWRITTEN = "the ledger was rewritten, or goes on from an older copy"


def _charged_elsewhere(charge: Row, store: ReleaseStore) -> str:
    place = f" at {charge['store_uri']}" if charge.get("store_uri") else ""  # an export does not say
    return (
        f"it was charged for the store {charge['store_id']}{place}, and this is {store.store_id} at "
        f"{store.uri}: if that store was moved here, `suffice store adopt {store.uri}` says how to repair it"
    )


def _noting_hashes(entries: Iterable[Entry], hashes: dict[int, str]) -> Iterator[Entry]:
    for entry in entries:
        hashes[entry.sequence] = entry.hash
        yield entry


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traces:
    """What charges left in a store: names of files by place, and the keys of markers by sequence."""

    files: dict[Place, list[str]]
    markers: dict[int, str]


def _traces(store: ReleaseStore) -> _Traces:
    files: dict[Place, list[str]] = {}
    markers: dict[int, str] = {}
    for key in store.objects.keys_after("", ""):
        located, sequence = read_place(key), marker_sequence(key)
        if located is not None:
            files.setdefault(located[0], []).append(located[1])
        elif sequence is not None:
            markers[sequence] = key
    return _Traces(files=files, markers=markers)


def _compare_markers(
    store: ReleaseStore, markers: Mapping[int, str], books: Books, hashes: Mapping[int, str]
) -> Iterator[str]:
    """Name markers that no entry explains, waivers of what was published, and draws that left neither."""
    reserved = {_marker_of(charge, books, hashes): charge for charge in books.charges.values()}
    for sequence, key in markers.items():
        marker = read_marker(store.objects, store.uri, key)
        charge = None if marker is None else reserved.get((sequence, marker.hash))
        if marker is None:
            yield f"{key}: what stands there is no marker"
        elif marker.ledger_id != books.ledger_id:
            yield f"{key}: the marker belongs to ledger {marker.ledger_id}"
        elif marker.waives:  # one of a charge that this ledger lacks took nothing
            if charge is not None and charge["state"] in _RELEASED:
                yield f"{key}: nobody draws for it, it says, and its charge is {charge['state']}: {_TWICE}"
        elif charge is None or charge["store_id"] != store.store_id:
            yield f"{key}: {_without_entry(marker, hashes)}"
    for (sequence, _), charge in reserved.items():
        if charge["drew"] and charge["store_id"] == store.store_id and sequence not in markers:
            where = label(charge["name"], _edition(charge))
            yield f"{marker_key(sequence)}: {where} was drawn, and its marker is not there"


def _without_entry(marker: Marker, hashes: Mapping[int, str]) -> str:
    """Say of what sort a marker is that no charge of this store explains."""
    if marker.sequence not in hashes:
        return f"it names entry {marker.sequence}, the ledger ends at {len(hashes)}: {_OLDER}"
    if marker.hash != hashes[marker.sequence]:
        return f"its entry is not the one that the ledger has: {_REWRITTEN}"
    return "the ledger has no charge for it in this store"


def _marker_of(charge: Row, books: Books, hashes: Mapping[int, str]) -> tuple[int, str]:
    """Return the sequence and hash that a charge's marker names: of a lost entry, where it was reconciled."""
    lost = books.reconciled.get(charge["charge_id"])
    if lost is not None:
        return lost["marker_sequence"], lost["marker_hash"]
    return charge["reserved_sequence"], hashes[charge["reserved_sequence"]]


def _drawing_of(charge: Row, books: Books) -> tuple[int, str]:
    """Return the entry that a charge's manifest names: as for markers."""
    named = books.reconciled.get(charge["charge_id"], charge)
    return named["drawing_sequence"], named["drawing_hash"]


def _without_charge(store: ReleaseStore, trace: Place, ledger_id: str, hashes: Mapping[int, str]) -> str:
    """Say what stands at a place that no charge explains."""
    data = store.read_manifest(trace.name, trace.edition, trace.release_id)
    if data is None or is_tombstone(data):
        what = "data files stand" if data is None else "a tombstone stands"
        return f"{what} there, and the ledger has no charge for them: {_OLDER}, or they were put there"
    try:
        manifest = parse_manifest(data)
    except ReleaseCorruptError as error:
        return f"the ledger has no charge for it, and {error}"
    if manifest.ledger_id != ledger_id:
        return f"the release belongs to ledger {manifest.ledger_id}"
    if manifest.drawing_sequence > len(hashes):
        return f"it names entry {manifest.drawing_sequence}, the ledger ends at {len(hashes)}: {_OLDER}"
    if manifest.drawing_hash != hashes[manifest.drawing_sequence]:
        return f"its entry {manifest.drawing_sequence} is not the one that the ledger has: {_REWRITTEN}"
    return "the ledger has no charge for it"


def _compare_charge(store: ReleaseStore, charge: Row, books: Books, files: Sequence[str]) -> list[str]:
    """Name everything in which a charge and what stands at its place disagree."""
    data = store.read_manifest(charge["name"], _edition(charge), charge["release_id"])
    state, stands = ChargeState(charge["state"]), data is not None and not is_tombstone(data)
    if state is ChargeState.ABANDONED:
        if stands:
            returned = f"its draw was returned: {_UNPAID}"
            why = returned if charge["draw_returned"] else "its charge was abandoned"
            return [f"there is a release, although {why}"]
        lacks = charge["drew"] and data is None
        return ["its charge was abandoned after a draw, but there is no tombstone"] if lacks else []
    if state in {ChargeState.RESERVED, ChargeState.DRAWING}:
        return [f"a release stands there, though its charge is {state}: {_OLDER}"] if stands else []
    if data is None or not stands:
        lacks = state is ChargeState.PUBLISHED
        what = "no manifest" if data is None else "a tombstone"
        return [f"its charge is published, and {what} stands there"] if lacks else []
    if sha256(data) != charge["manifest_sha256"]:
        return ["the manifest there is not the one that was staged"]
    manifest = parse_manifest(data)
    measure = PrivacyMeasure(books.accounts[charge["dataset"],]["measure"])
    compared = {
        "privacy loss": (manifest.plan.loss_in(measure), measure.loss(charge["charged"])),
        "amendment": (
            (manifest.amendment, manifest.amends),
            (charge["amendment"], amended_of(charge["amends"], charge["amended_sha256"])),
        ),
        "plan": (manifest.plan_hash, charge["plan_hash"]),
        "drawing entry": (
            (manifest.drawing_sequence, manifest.drawing_hash),
            _drawing_of(charge, books),
        ),
    }
    differing = [what for what, (released, charged) in compared.items() if released != charged]
    missing = [file.path for file in manifest.files if file.path not in files]
    return [
        *(f"its {what} is not the ledger's: the ledger was rewritten" for what in differing),
        *(f"its data file {path} is not there" for path in missing),
    ]
