r"""The ledger's chain of entries: what was decided, in order, each sealed by the hash of the one before.

.. math::
    h_i = \mathrm{SHA256}(\mathrm{json}(i, h_{i-1}, kind_i, hour_i, public_i, c_i)), \quad h_0 = 0^{64}

where :math:`c_i = \mathrm{SHA256}(\mathrm{json}(salt_i, time_i, private_i))` commits to what is not for
the public: addresses, free text, minutes. So the chain can be exported without them and still be
verified by anybody, hash by hash (:mod:`suffice.storage.ledger.replay`).

Whoever keeps one hash, as every release's manifest does, can tell later whether anything up to that
entry was altered, removed or put in another order.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from suffice.pipeline.terms.declaration.documents import Count, Sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What an examination of a ledger found.

    Attributes
    ----------
    problems : tuple of str
        One sentence each; of many, the first 100. Empty where there are none.
    head : Head
        The end of the chain that was examined.
    since : int
        The entry of the checkpoint that it went on from; 0 where everything was recomputed.
    """

    problems: tuple[str, ...]
    head: Head
    since: int


START_HASH = "0" * 64
SALT = "salt"
PRIVATE = frozenset(
    {
        SALT,
        "checksums",
        "contract",
        "reason",
        "sources",
        "spool_host",
        "spool_id",
        "state_sha256",
        "store_uri",
        "stores",
        "witness",
    }
)
"""Fields of payloads that the hash covers through the commitment only."""


MOST_PROBLEMS = 100
"""How many problems are named; whoever damages a ledger may damage 100,000 rows."""


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
    CHECKPOINT = "checkpoint"
    SKIPPED = "skipped"
    """Stands in the place of an entry that a copy of the ledger has, or had, and this one lacks."""
    RECONCILED = "reconciled"
    """A charge that this ledger lacked was found in a store: what the store names of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a chain: the last entry's sequence and hash."""

    sequence: Count = 0
    hash: Sha256 = START_HASH


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
        return _sha256(
            {
                "sequence": self.sequence,
                "previous_hash": self.previous_hash,
                "kind": self.kind,
                "hour": self.hour,
                "payload": self.payload,
                "commitment": self.commitment,
            }
        )


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: object) -> str:
    """Write JSON in its one canonical form: sorted keys, no spaces, UTF-8 as it is."""
    return _CANONICAL.encode(value)


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
    return _public(entry, read_payload(entry))


def read_payload(entry: Entry) -> dict[str, Any]:
    """Return what an entry's payload says.

    Raises
    ------
    ValueError
        Where it is no JSON object.
    """
    payload = json.loads(entry.payload)
    if not isinstance(payload, dict):
        message = "an entry's payload is a JSON object"
        raise ValueError(message)  # noqa: TRY004 - as for a payload that is no JSON
    return payload


class ChainCheck:
    """Follows a chain entry by entry, and names what is wrong with it; it keeps nothing but its end.

    Attributes
    ----------
    last : Head
        The entry that was followed last.
    problems : list of str
    """

    def __init__(self, after: Head | None = None) -> None:
        self.last = after or Head()
        self.problems: list[str] = []

    def follow(self, entry: Entry) -> dict[str, Any] | None:
        """Check the next entry; return its payload where it is intact."""
        payload = _intact_payload(entry)
        if entry.sequence != self.last.sequence + 1:
            self._name(f"entry {entry.sequence} follows entry {self.last.sequence}: the chain has a gap")
        elif entry.previous_hash != self.last.hash:
            self._name(f"entry {entry.sequence} does not continue the entry before it")
        elif payload is None:
            self._name(f"entry {entry.sequence} was altered: its hash does not fit its content")
        self.last = Head(sequence=entry.sequence, hash=entry.hash)
        return payload

    def end(self, head: Head) -> None:
        """Hold the last entry against what the ledger states as its end."""
        if self.last != head:
            self._name(f"the chain ends at entry {self.last.sequence}, the ledger states {head.sequence}")

    def _name(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


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
        Empty where every entry follows the one before, unaltered, up to `head`; of many, the first
        `MOST_PROBLEMS`.
    """
    check = ChainCheck()
    for entry in entries:
        check.follow(entry)
    check.end(head)
    return tuple(check.problems)


def _public(entry: Entry, payload: dict[str, Any]) -> PublicEntry:
    private = {name: payload[name] for name in PRIVATE & payload.keys()}
    return PublicEntry(
        sequence=entry.sequence,
        previous_hash=entry.previous_hash,
        kind=entry.kind,
        hour=f"{entry.time[:13]}Z",
        payload={name: payload[name] for name in payload if name not in private},
        commitment=_sha256({"time": entry.time, "private": private}),
    )


def _intact_payload(entry: Entry) -> dict[str, Any] | None:
    """Return an entry's payload if the entry's hash fits; whatever stands in the row, nothing is raised."""
    try:
        payload = read_payload(entry)
        canonical = canonical_json(payload) == entry.payload
        return payload if canonical and entry.hash == _public(entry, payload).hash else None
    except (ValueError, TypeError, RecursionError):
        return None


def _sha256(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
