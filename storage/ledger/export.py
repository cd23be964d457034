"""The ledger's chain for the public: one JSON line per entry, verifiable without the ledger.

Left out are addresses of sources and stores, free texts, and minutes; each line has a commitment to
what it leaves out, so that every hash can still be computed from the line alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import LedgerCorruptError
from suffice.storage.ledger import chain, replay
from suffice.storage.ledger.chain import Entry, Head, PublicEntry, public_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z", re.ASCII)
_FIELDS = {
    "sequence": int,
    "previous_hash": str,
    "kind": str,
    "hour": str,
    "payload": dict,
    "commitment": str,
    "hash": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An exported chain, as it was read; :meth:`verify` says whether it can be trusted.

    Attributes
    ----------
    lines : tuple of PublicEntry
    hashes : tuple of str
        As the lines state them.
    """

    lines: tuple[PublicEntry, ...]
    hashes: tuple[str, ...]

    @property
    def head(self) -> Head:
        """Its end, as it is stated."""
        return Head(sequence=self.lines[-1].sequence, hash=self.hashes[-1]) if self.lines else Head()

    def entries(self) -> Sequence[Entry]:
        """Return the entries, without what is not for the public."""
        return [
            Entry(
                sequence=line.sequence,
                previous_hash=line.previous_hash,
                kind=line.kind,
                time=line.hour,
                payload=chain.canonical_json(line.payload),
                hash=stated,
            )
            for line, stated in zip(self.lines, self.hashes, strict=True)
        ]

    def verify(self) -> tuple[str, ...]:
        """Name what is wrong: lines missing, altered or moved, and rules that the ledger never breaks.

        Whether the export is complete up to the present, nobody can tell from it: compare it with the
        releases, or with a head that was noted before.
        """
        problems, last = [], Head()
        for line, stated in zip(self.lines, self.hashes, strict=True):
            if line.sequence != last.sequence + 1 or line.previous_hash != last.hash:
                problems.append(f"entry {line.sequence} does not continue the entry before it")
            elif line.hash != stated:
                problems.append(f"entry {line.sequence} was altered: its hash does not fit its content")
            last = Head(sequence=line.sequence, hash=stated)
        return tuple(problems) or replay.replay(self.entries())[1]


def export_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Write entries for the public, one line of canonical JSON each, without its end."""
    for entry in entries:
        yield chain.canonical_json({**public_fields(public_entry(entry)), "hash": entry.hash})


def read_export(text: str) -> Export:
    """Read what :func:`export_lines` writes; what it states is not verified yet.

    Raises
    ------
    LedgerCorruptError
        Where a line is no entry.
    """
    lines, hashes = [], []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        content = _read_line(line)
        if content is None:
            message = f"line {number} of the export is no entry of a ledger"
            raise LedgerCorruptError(message)
        hashes.append(content.pop("hash"))
        lines.append(PublicEntry(**content))
    return Export(lines=tuple(lines), hashes=tuple(hashes))


def _read_line(line: str) -> dict[str, Any] | None:
    """Return a line's fields; None where one is missing, unknown or of another type."""
    try:
        content = json.loads(line)
        if chain.canonical_json(content) != line:
            return None
    except (ValueError, RecursionError):
        return None
    return read_fields(content)


def public_fields(entry: PublicEntry) -> dict[str, Any]:
    """Return what an entry's line states."""
    return {**asdict(entry), "hash": entry.hash}


def read_fields(content: object) -> dict[str, Any] | None:
    """Return a line's fields; None where one is missing, unknown or of another type."""
    if not isinstance(content, dict) or content.keys() != _FIELDS.keys():
        return None
    if any(type(content[name]) is not kind for name, kind in _FIELDS.items()):
        return None
    digests = all(_HEX.fullmatch(content[name]) for name in ("previous_hash", "commitment", "hash"))
    return content if digests and _HOUR.fullmatch(content["hour"]) else None
