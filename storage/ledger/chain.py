r"""The ledger's chain of entries: what was decided, in order, each sealed by the hash of the one before.

.. math::
    h_i = \mathrm{SHA256}(\mathrm{json}(i, h_{i-1}, kind_i, hour_i, public_i, c_i)), \quad h_0 = 0^{64}

where :math:`c_i = \mathrm{SHA256}(\mathrm{json}(salt_i, time_i, private_i))` commits to what is not for
the public: addresses, free text, minutes. So the chain can be exported without them and still be
verified by anybody, hash by hash (:mod:`suffice.storage.ledger.export`).

Whoever keeps one hash, as every release's manifest does, can tell later whether anything up to that
entry was altered, removed or put in another order.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

START_HASH = "0" * 64
SALT = "salt"
PRIVATE = frozenset({SALT, "checksums", "reason", "sources", "store_uri", "stores"})
"""Fields of payloads that the hash covers through the commitment only."""


class EntryKind(StrEnum):
    """What an entry records; heartbeats are none."""

    CREATED = "created"
    GRANT = "grant"
    RESERVED = "reserved"
    TAKEN_OVER = "taken_over"
    DRAWING = "drawing"
    STAGED = "staged"
    PUBLISHED = "published"
    ABANDONED = "abandoned"
    STORE_ADOPTED = "store_adopted"
    STORE_RETIRED = "store_retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a chain: the last entry's sequence and hash."""

    sequence: int = 0
    hash: str = START_HASH


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, as it is stored.

    Attributes
    ----------
    sequence : int
        From 1, without gaps.
    previous_hash, hash : str
        64 hex digits.
    kind : str
    time : str
        To the minute: how long a stage took is nobody's business.
    payload : str
        Canonical JSON; has a random `SALT`, so that nobody can guess what the commitment hides.
    """

    sequence: int
    previous_hash: str
    kind: str
    time: str
    payload: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicEntry:
    """What anybody may know of an entry: all that its hash is computed from.

    Attributes
    ----------
    sequence, previous_hash, kind
        See :class:`Entry`.
    hour : str
        As ``2026-01-31T08Z``.
    payload : dict
        Without the fields in `PRIVATE`.
    commitment : str
        SHA-256 of the private fields, the salt and the time, in hex.
    """

    sequence: int
    previous_hash: str
    kind: str
    hour: str
    payload: dict[str, Any]
    commitment: str

    @property
    def hash(self) -> str:
        """The entry's hash, computed."""
        return _sha256(asdict(self))


def canonical_json(value: object) -> str:
    """Write JSON in its one canonical form: sorted keys, no spaces, UTF-8 as it is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def coarse(moment: datetime) -> datetime:
    """Round a moment down to the minute."""
    return moment.replace(second=0, microsecond=0)


def format_time(moment: datetime) -> str:
    """Write a UTC moment to the second: ``2026-01-31T08:00:00Z``."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def next_entry(head: Head, kind: EntryKind, moment: datetime, payload: Mapping[str, object]) -> Entry:
    """Return the entry that follows `head`."""
    entry = Entry(
        sequence=head.sequence + 1,
        previous_hash=head.hash,
        kind=kind,
        time=format_time(coarse(moment)),
        payload=canonical_json({**payload, SALT: secrets.token_hex(16)}),
        hash="",
    )
    return replace(entry, hash=public_entry(entry).hash)


def public_entry(entry: Entry) -> PublicEntry:
    """Return what anybody may know of an entry.

    Raises
    ------
    ValueError
        Where its payload is no JSON object.
    """
    payload = json.loads(entry.payload)
    if not isinstance(payload, dict):
        message = "an entry's payload is a JSON object"
        raise ValueError(message)  # noqa: TRY004 - as for a payload that is no JSON
    private = {name: payload.pop(name) for name in PRIVATE & payload.keys()}
    return PublicEntry(
        sequence=entry.sequence,
        previous_hash=entry.previous_hash,
        kind=entry.kind,
        hour=f"{entry.time[:13]}Z",
        payload=payload,
        commitment=_sha256({"time": entry.time, "private": private}),
    )


def check_chain(entries: Iterable[Entry], head: Head) -> tuple[str, ...]:
    """Name what is wrong with a chain.

    Parameters
    ----------
    entries : iterable of Entry
        In the order of their sequence.
    head : Head
        What the ledger states as its end.

    Returns
    -------
    tuple of str
        Empty where every entry follows the one before, unaltered, up to `head`.
    """
    problems = []
    last = Head()
    for entry in entries:
        if entry.sequence != last.sequence + 1:
            problems.append(f"entry {entry.sequence} follows entry {last.sequence}: the chain has a gap")
        elif entry.previous_hash != last.hash:
            problems.append(f"entry {entry.sequence} does not continue the entry before it")
        elif not _is_intact(entry):
            problems.append(f"entry {entry.sequence} was altered: its hash does not fit its content")
        last = Head(sequence=entry.sequence, hash=entry.hash)
    if last != head:
        problems.append(f"the chain ends at entry {last.sequence}, the ledger states {head.sequence}")
    return tuple(problems)


def _is_intact(entry: Entry) -> bool:
    try:
        canonical = canonical_json(json.loads(entry.payload)) == entry.payload
        return canonical and entry.hash == public_entry(entry).hash
    except ValueError:
        return False


def _sha256(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
