"""A witness: the head of a ledger's chain, kept where a restored copy of the ledger does not reach.

It is one small object, in a file elsewhere or in a bucket. A ledger whose chain does not hold the witness's
entry is an older copy, or went another way. The witness moves on before a charge enters ``drawing``, while
its epsilon can still be returned, and once more after the release; it never moves back.
"""

from __future__ import annotations

import re
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
)
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.ledger.chain import Head
from suffice.storage.objects.address import read_address

if TYPE_CHECKING:
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import ObjectStore

_FORMAT_VERSION = 1
_LARGEST = 4096
_MOST_TRIES = 20
"""How often runs that move a witness on at once may take it from each other."""
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


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
