"""What would show an older copy of a ledger: a witness of its chain, and every store that it charged for.

A witness is the head of the chain, kept where a restored copy of the ledger does not reach: one small
object, in a file elsewhere or in a bucket. A ledger whose chain does not hold the witness's entry is an
older copy, or went another way. The witness moves on before a charge enters ``drawing``, while its epsilon
can still be returned, and once more after the release; it never moves back.

A fresh store shows nothing, so an older copy of a ledger beside one would go unseen. Therefore every store
that the ledger ever charged for is asked, all at once and not for long.
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import (
    LedgerCorruptError,
    ObjectExistsError,
    StoreError,
    SufficeError,
    SufficeWarning,
    UsageError,
    WrongStoreError,
)
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.documents import printed
from suffice.storage.ledger.chain import Head
from suffice.storage.ledger.places import check_store
from suffice.storage.objects.address import read_address
from suffice.storage.operations.markers import markers_after, refuse_newer, refuse_older_ledger
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.store_identity import read_identity, require_empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.storage.ledger.account import KnownStore
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.address import Address
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.operations.markers import Marker
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.store_identity import StoreIdentity

PATIENCE = 5.0
"""Seconds that all other stores together have for their answers."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswer:
    """What a known store says.

    Attributes
    ----------
    store : KnownStore
    markers : tuple
        Those after the last that the ledger knows, with their keys.
    """

    store: KnownStore
    markers: tuple[tuple[str, Marker | None], ...]


def open_for_release(ledger: Ledger, uri: str, dataset: str, *, patience: float = PATIENCE) -> ReleaseStore:
    """Open the store that a release goes to, once it and all other stores say that the ledger is whole.

    Parameters
    ----------
    ledger : Ledger
    uri : str
        As for :func:`suffice.storage.releases.release_store.open_store`.
    dataset : str
        The account, whose owner may have pinned stores.
    patience : float
        Seconds that the other stores together have for their answers.

    Returns
    -------
    ReleaseStore
        Made where there was none. Where the ledger charged for other stores only, and none of them
        answers, a `SufficeWarning` names them.

    Raises
    ------
    GuaranteeError
        Where the account's owner does not allow the store.
    WrongStoreError
        Where the store belongs to another ledger, was moved, lost its ``suffice.json``, or is retired.
    LedgerCorruptError
        Where a store that answers is newer than the ledger.
    StoreError
        As `open_store`.
    """
    asked = _ask_all(ledger, uri, dataset, patience)
    store = open_store(uri, ledger_id=ledger.ledger_id, create=True, probe=False)
    refuse_older_ledger(ledger, store)
    if asked.unanswered and store.store_id not in {entry.store_id for entry in ledger.stores()}:
        warnings.warn(_unasked(store, asked.unanswered), SufficeWarning, stacklevel=2)
    return store


def find_for_release(
    ledger: Ledger, uri: str, dataset: str, *, patience: float = PATIENCE
) -> ReleaseStore | None:
    """Do what :func:`open_for_release` does, but make no store; None where it would make one.

    Raises
    ------
    GuaranteeError, WrongStoreError, LedgerCorruptError, StoreError
        As there.
    """
    asked = _ask_all(ledger, uri, dataset, patience)
    if asked.identity is None:
        require_empty(asked.address.objects(), asked.address.uri)
        return None
    store = open_store(uri, ledger_id=ledger.ledger_id, probe=False)
    refuse_older_ledger(ledger, store)
    return store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What stands at a place, and which other stores there are of which none answered."""

    address: Address
    identity: StoreIdentity | None
    unanswered: Sequence[KnownStore]


def _ask_all(ledger: Ledger, uri: str, dataset: str, patience: float) -> _Asked:
    """Look at a place, and ask all other stores whether the ledger is whole."""
    address = read_address(uri)
    pinned = ledger.allowed_stores(dataset)
    is_the_guard = ledger.witness(dataset) is None and ledger.contract(dataset) is not None
    check_store(dataset, address.uri, pinned, only_at=is_the_guard)
    known = ledger.stores()
    if is_the_guard:
        _refuse_unknown(ledger, [place for place in pinned if place not in {store.uri for store in known}])
    identity = read_identity(address.objects(), address.uri)
    refuse_moved(known, address.uri, identity)
    here = identity.store_id if identity else ""
    others = [store for store in known if not store.retired and store.store_id != here]
    answers = ask(others, ledger.ledger_id, patience=patience)
    for answer in answers:
        refuse_newer(ledger, answer.store.uri, answer.markers)
    return _Asked(address=address, identity=identity, unanswered=() if answers else others)


def _refuse_unknown(ledger: Ledger, places: Sequence[str]) -> None:
    """Look at the places of an account's stores that the ledger never charged for: a copy of it may have.

    Raises
    ------
    LedgerCorruptError
        Where a store of this ledger stands there that has markers.
    StoreError
        Where a place cannot be looked at: it alone could tell an older copy.
    """
    for place in places:
        objects = read_address(place).objects()
        identity = read_identity(objects, place)
        if identity is not None and identity.ledger_id == ledger.ledger_id:
            refuse_newer(ledger, place, markers_after(objects, place, 0))


def ask(
    stores: Sequence[KnownStore], ledger_id: str, *, patience: float = PATIENCE
) -> tuple[StoreAnswer, ...]:
    """Ask stores for markers after those that the ledger knows; only those that answer in time are in it.

    Parameters
    ----------
    stores : sequence of KnownStore
    ledger_id : str
        A store of another id, or of another ledger, does not answer for the one that was known.
    patience : float
        Seconds.
    """
    answers: list[StoreAnswer] = []
    # Nobody waits for a thread that a dead server or mount holds: it ends with the process.
    threads = [
        threading.Thread(target=_ask_one, args=(store, ledger_id, answers), daemon=True) for store in stores
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return tuple(answers)


def refuse_moved(known: Sequence[KnownStore], uri: str, identity: StoreIdentity | None) -> None:
    """Refuse a place that is not what the ledger remembers of it, and name the command that repairs it.

    Parameters
    ----------
    known : sequence of KnownStore
        All stores of the ledger.
    uri : str
        The place.
    identity : StoreIdentity or None
        Who stands there.

    Raises
    ------
    WrongStoreError
    """
    store = next((store for store in known if identity and store.store_id == identity.store_id), None)
    if store is not None:
        if store.retired:
            message = (
                f"the store {store.store_id} at {uri} was retired by its owner: name another --store, or "
                f"`suffice store adopt {uri}` takes it back into use"
            )
            raise WrongStoreError(message)
        if store.uri != uri:
            message = (
                f"the store {store.store_id} was charged for at {store.uri}: if it was moved, "
                f"`suffice store adopt {uri}` records that; a copy is never written to"
            )
            raise WrongStoreError(message)
        return
    for store in known:
        if store.uri == uri and store.last_marker and not store.retired:
            now = f"the store {identity.store_id} stands there" if identity else "no store stands there now"
            message = (
                f"this ledger charged for the store {store.store_id} here, and {now}. Nothing was charged. "
                "If its disk is away: bring it back; if it lost its suffice.json: `suffice store adopt "
                f"{uri}`; if it was moved: adopt it at its new place; if it is gone for good: `suffice store "
                f"retire {store.store_id} --reason TEXT`"
            )
            raise WrongStoreError(message)


def _ask_one(store: KnownStore, ledger_id: str, answers: list[StoreAnswer]) -> None:
    try:
        address = read_address(store.uri)
        objects = address.objects()
        identity = read_identity(objects, store.uri)
        if identity is None or (identity.store_id, identity.ledger_id) != (store.store_id, ledger_id):
            return
        markers = tuple(markers_after(objects, store.uri, store.last_marker))
    except SufficeError:
        return
    answers.append(StoreAnswer(store=store, markers=markers))


def _unasked(store: ReleaseStore, others: Sequence[KnownStore]) -> str:
    named = ", ".join(f"{other.uri} ({other.store_id[:8]})" for other in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return (
        f"the store {store.uri} is new to this ledger, and none of those it charged for before can be asked "
        f"whether the ledger is an older copy: {named}{more}. Make one of them reachable; `suffice store "
        "retire` gives up one that is gone"
    )


_FORMAT_VERSION = 1
_LARGEST = 4096
_MOST_TRIES = 20
"""How often runs that move a witness on at once may take it from each other."""
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@printed("uri sequence=head.sequence hash=head.hash")
@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What a witness holds, and where.

    Attributes
    ----------
    uri : str
    ledger_id : str
    head : Head
    """

    uri: str
    ledger_id: str
    head: Head

    def encode(self) -> bytes:
        """Return the witness's bytes."""
        return canonical_json.encode(
            {
                "format_version": _FORMAT_VERSION,
                "ledger_id": self.ledger_id,
                "sequence": self.head.sequence,
                "hash": self.head.hash,
            }
        )


def make_witness(ledger: Ledger, uri: str) -> Witness:
    """Put a witness of a ledger's head where none stands, or move the one there on.

    Raises
    ------
    LedgerCorruptError, StoreError, UsageError
        As :func:`check_witness`, but for a witness that is missing.
    """
    objects, key, place = _open(uri)
    witness = Witness(uri=place, ledger_id=ledger.ledger_id, head=ledger.head())
    try:
        objects.put_new(key, witness.encode())
    except ObjectExistsError:
        return move_witness(ledger, uri)
    return witness


def check_witness(ledger: Ledger, uri: str) -> Witness:
    """Refuse a ledger that lacks the entry that its witness holds.

    Raises
    ------
    LedgerCorruptError
        Where the ledger is an older copy, or goes on from one.
    UsageError
        Where there is no witness, or it is another ledger's.
    StoreError
        Where it cannot be read, or is damaged.
    """
    objects, key, place = _open(uri)
    return _checked(ledger, _read(objects, key, place))


def move_witness(ledger: Ledger, uri: str) -> Witness:
    """Move a witness on to the ledger's head; one that another run moved further stays.

    Raises
    ------
    LedgerCorruptError, UsageError, StoreError
        As :func:`check_witness`; or it cannot be written.
    """
    objects, key, place = _open(uri)
    for _ in range(_MOST_TRIES):
        standing = _checked(ledger, _read(objects, key, place))
        head = ledger.head()
        if standing.head.sequence >= head.sequence:
            return standing
        moved = Witness(uri=place, ledger_id=ledger.ledger_id, head=head)
        try:
            objects.replace(key, moved.encode(), expected=standing.encode())
        except ObjectExistsError:
            continue
        return moved
    message = f"the witness {place} changes all the time: run again"
    raise StoreError(message)


def read_witness(ledger: Ledger, uri: str) -> Witness:
    """Return what a witness of a ledger holds, whether the ledger has its entry or not.

    Raises
    ------
    UsageError, StoreError
        As :func:`check_witness`.
    """
    objects, key, place = _open(uri)
    witness = _read(objects, key, place)
    _require_owner(ledger, witness)
    return witness


def replace_witness(ledger: Ledger, standing: Witness) -> Witness:
    """Let a witness of a lost end of the chain hold the head of the ledger that was reconciled with it.

    Raises
    ------
    LedgerCorruptError
        Where the chain is not longer than the witness says it was.
    StoreError
        Where the witness cannot be written, or another took its place.
    """
    objects, key, place = _open(standing.uri)
    head = ledger.head()
    if head.sequence <= standing.head.sequence:
        raise _behind(standing)
    moved = Witness(uri=place, ledger_id=ledger.ledger_id, head=head)
    try:
        objects.replace(key, moved.encode(), expected=standing.encode())
    except ObjectExistsError:
        message = f"the witness {place} changed meanwhile: something still runs. Stop it, and reconcile again"
        raise StoreError(message) from None
    return moved


def follow_witness(ledger: Ledger, uri: str) -> None:
    """Move a witness on after a release, so that it holds the draw too; a failure is only a warning.

    The release stands by then, and the next run moves the witness on before it draws.
    """
    try:
        move_witness(ledger, uri)
    except SufficeError as error:
        warnings.warn(f"the release stands; its ledger's witness stays behind: {error}", SufficeWarning, 2)


def _open(uri: str) -> tuple[ObjectStore, str, str]:
    address = read_address(uri)
    return address.parent.objects(), address.path.name, address.uri


def _read(objects: ObjectStore, key: str, place: str) -> Witness:
    data = objects.get(key, at_most=_LARGEST)
    if data is None:
        message = (
            f"there is no witness at {place}: `suffice ledger witness {place}` makes one, once the ledger is "
            "known to be whole"
        )
        raise UsageError(message)
    try:
        content = canonical_json.decode(data)
    except ValueError:
        content = None
    match content:
        case {
            "format_version": 1,
            "ledger_id": str(ledger_id),
            "sequence": int(sequence),
            "hash": str(entry_hash),
            **others,
        } if not others and sequence > 0 and _ID.fullmatch(ledger_id) and _HASH.fullmatch(entry_hash):
            return Witness(uri=place, ledger_id=ledger_id, head=Head(sequence=sequence, hash=entry_hash))
    message = f"{place} is no witness of a ledger, or is damaged"
    raise StoreError(message)


def _require_owner(ledger: Ledger, witness: Witness) -> None:
    if witness.ledger_id != ledger.ledger_id:
        message = (
            f"the witness {witness.uri} is of ledger {witness.ledger_id}, not of this one, "
            f"{ledger.ledger_id}: name this ledger's witness"
        )
        raise UsageError(message)


def _checked(ledger: Ledger, witness: Witness) -> Witness:
    _require_owner(ledger, witness)
    if ledger.entry_hash(witness.head.sequence) != witness.head.hash:
        raise _behind(witness)
    return witness


def _behind(witness: Witness) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"the witness {witness.uri} holds entry {witness.head.sequence}, which this ledger does not have: it "
        "is an older copy of the ledger, its end was cut off, or it went another way. Nothing was charged; "
        "restore the newest copy, or `suffice ledger reconcile` where there is none"
    )
