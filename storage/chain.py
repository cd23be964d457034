r"""The ledger's chain of entries: what was decided, in order, each sealed by the hash of the one before.

.. math:: h_i = \mathrm{SHA256}(\mathrm{json}(i, h_{i-1}, kind_i, time_i, payload_i)), \quad h_0 = 0^{64}

Whoever keeps one hash, as every release's manifest does, can tell later whether anything up to that
entry was altered, removed or put in another order.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

START_HASH = "0" * 64


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
        Canonical JSON.
    """

    sequence: int
    previous_hash: str
    kind: str
    time: str
    payload: str
    hash: str


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
    sequence, time, text = head.sequence + 1, format_time(coarse(moment)), canonical_json(payload)
    return Entry(
        sequence=sequence,
        previous_hash=head.hash,
        kind=kind,
        time=time,
        payload=text,
        hash=_hash(sequence, head.hash, kind, time, payload),
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
        payload = json.loads(entry.payload)
        if canonical_json(payload) != entry.payload:
            return False
    except ValueError:
        return False
    return entry.hash == _hash(entry.sequence, entry.previous_hash, entry.kind, entry.time, payload)


def _hash(sequence: int, previous_hash: str, kind: str, time: str, payload: object) -> str:
    content = {
        "sequence": sequence,
        "previous_hash": previous_hash,
        "kind": kind,
        "time": time,
        "payload": payload,
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
