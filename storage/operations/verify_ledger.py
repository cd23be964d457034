"""The ledger held against the store: what was paid for stands there, and what stands there was paid for.

A chain that was cut off at its end, together with its tables, agrees with itself: only what was released
meanwhile tells. Releases, tombstones and data files all stand under ids that a charge gave them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from suffice.errors import LedgerCorruptError, ReleaseCorruptError
from suffice.pipeline.declaration.exact_numbers import MICRO
from suffice.storage.ledger.charge import ChargeState, label
from suffice.storage.ledger.replay import replay, sha256
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from suffice.storage.ledger.chain import Entry
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.ledger.replay import Row
    from suffice.storage.releases.release_store import ReleaseStore

_RELEASE_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


class Chain(Protocol):
    """What has entries: a ledger, or its export."""

    def entries(self) -> Iterable[Entry]:
        """Give the whole chain, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
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


@dataclass(frozen=True, slots=True, order=True)
class _Trace:
    """A place in a store where a charge has left something."""

    name: str
    window: str
    release_id: str

    @property
    def key(self) -> str:
        return f"{self.name}/{self.window}/{self.release_id}"


def compare_with_store(chain: Chain, store: ReleaseStore) -> Comparison:
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
        return Comparison(problems=broken, compared=0, elsewhere=0)
    charges = {charge["release_id"]: charge for charge in books.charges.values()}
    problems = []
    if store.ledger_id != books.ledger_id:
        problems.append(f"the store belongs to ledger {store.ledger_id}, not to this one, {books.ledger_id}")
    for trace in sorted(traces):
        charge = charges.get(trace.release_id)
        if charge is None:
            problems.append(f"{trace.key}: {_without_charge(store, trace, books.ledger_id, hashes)}")
        elif (charge["name"], charge["window"]) != (trace.name, trace.window):
            problems.append(f"{trace.key}: its charge is for {label(charge['name'], charge['window'])}")
        elif charge["store_id"] != store.store_id:
            problems.append(f"{trace.key}: it was charged for another store")
        elif not charge["drew"]:
            problems.append(f"{trace.key}: data stand there, though its charge never drew: {_OLDER}")
    here = [charge for charge in charges.values() if charge["store_id"] == store.store_id]
    for charge in here:
        where = f"{charge['name']}/{charge['window']}/{charge['release_id']}"
        problems += [f"{where}: {problem}" for problem in _compare_charge(store, charge, hashes)]
    return Comparison(problems=tuple(problems), compared=len(here), elsewhere=len(charges) - len(here))


def refuse_older_ledger(ledger: Ledger, store: ReleaseStore) -> None:
    """Refuse to charge a ledger that lacks what its store shows was charged.

    Cheap: the store is listed, and only what the ledger does not know is read.

    Raises
    ------
    LedgerCorruptError
        Where this ledger is an older copy, or its end was cut off.
    """
    traces = _traces(store)  # before the charges: what stands here was charged before
    known = {
        charge.release_id: charge
        for account in ledger.accounts()
        for charge in ledger.charges(account.dataset)
    }
    for trace in sorted(traces):
        charge = known.get(trace.release_id)
        if charge is None:
            older = not _is_foreign(store, trace, ledger.ledger_id)
        elif charge.state is ChargeState.DRAWING and traces[trace]:
            manifest = store.read_manifest(trace.name, trace.window, trace.release_id)
            older = manifest is not None and not is_tombstone(manifest)
        else:
            older = not charge.drew
        if older:
            message = (
                f"the store {store.uri} has {trace.key}, and this ledger no charge that could have made it: "
                "it is an older copy of the ledger, or its end was cut off. Nothing was charged; restore the "
                f"newest copy. `suffice ledger verify --store {store.uri}` names all that differs"
            )
            raise LedgerCorruptError(message)


_OLDER = "this is an older copy of the ledger, or its end was cut off"


def _noting_hashes(entries: Iterable[Entry], hashes: dict[int, str]) -> Iterator[Entry]:
    for entry in entries:
        hashes[entry.sequence] = entry.hash
        yield entry


def _traces(store: ReleaseStore) -> dict[_Trace, bool]:
    """Return all places where charges left something, and whether a manifest's key is taken there."""
    traces: dict[_Trace, bool] = {}
    for key in store.objects.keys(""):
        parts = key.split("/")
        if len(parts) > 3 and _RELEASE_ID.fullmatch(parts[2]):
            trace = _Trace(*parts[:3])
            traces[trace] = traces.get(trace, False) or parts[3:] == [MANIFEST]
    return traces


def _is_foreign(store: ReleaseStore, trace: _Trace, ledger_id: str) -> bool:
    """Tell whether a release of another ledger was copied here: that says nothing about this ledger."""
    data = store.read_manifest(trace.name, trace.window, trace.release_id)
    try:
        return data is not None and not is_tombstone(data) and parse_manifest(data).ledger_id != ledger_id
    except ReleaseCorruptError:
        return False


def _without_charge(store: ReleaseStore, trace: _Trace, ledger_id: str, hashes: Mapping[int, str]) -> str:
    """Say what stands at a place that no charge explains."""
    data = store.read_manifest(trace.name, trace.window, trace.release_id)
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
        return (
            f"its entry {manifest.drawing_sequence} is not the one that the ledger has: the ledger was "
            "rewritten, or goes on from an older copy"
        )
    return "the ledger has no charge for it"


def _compare_charge(store: ReleaseStore, charge: Row, hashes: Mapping[int, str]) -> list[str]:
    """Name everything in which a charge and what stands at its manifest's key disagree."""
    data = store.read_manifest(charge["name"], charge["window"], charge["release_id"])
    state, stands = ChargeState(charge["state"]), data is not None and not is_tombstone(data)
    if state is ChargeState.ABANDONED:
        if stands:
            return ["there is a release, although its charge was abandoned"]
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
    compared = {
        "epsilon": (manifest.epsilon * MICRO, charge["micro_epsilon"]),
        "plan": (manifest.plan_hash, charge["plan_hash"]),
        "drawing entry": (
            (manifest.drawing_sequence, manifest.drawing_hash),
            (charge["drawing_sequence"], hashes.get(manifest.drawing_sequence)),
        ),
    }
    differing = [what for what, (released, charged) in compared.items() if released != charged]
    return [f"its {what} is not the ledger's: the ledger was rewritten" for what in differing]
