"""Where things stand in a store: releases by their ids, markers by their sequences."""

from __future__ import annotations

import re
from dataclasses import dataclass

MARKERS = "charges/"
"""Where markers stand. A release may have this name too: no window's label has three digits."""

REHEARSALS = "rehearsals/"
"""Where rehearsals put what they try to publish. A release may have this name too: as for markers."""

_RELEASE_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_MARKER = re.compile(r"charges/([0-9]{3})/([0-9]{3})/([0-9]{3})/([0-9]{3})", re.ASCII)
_REHEARSED = re.compile(r"rehearsals/[0-9a-f]{32}/[^/]+", re.ASCII)
_DIGITS = 12
LARGEST_SEQUENCE = 10**_DIGITS - 1


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a charge puts what it releases: name, edition of a window, release id."""

    name: str
    edition: str
    release_id: str

    @property
    def key(self) -> str:
        """The prefix of its keys, without the last slash."""
        return f"{self.name}/{self.edition}/{self.release_id}"


def read_place(key: str) -> tuple[Place, str] | None:
    """Return the place that a key stands in, and its name there; None where it is of no release."""
    parts = key.split("/", 3)
    if len(parts) != 4 or not _RELEASE_ID.fullmatch(parts[2]):
        return None
    return Place(*parts[:3]), parts[3]


def marker_key(sequence: int) -> str:
    """Return where a charge's marker stands: 12 digits in four groups, so that no directory grows large.

    Examples
    --------
    >>> marker_key(1234567)
    'charges/000/001/234/567'
    """
    digits = f"{sequence:0{_DIGITS}d}"
    return MARKERS + "/".join(digits[start : start + 3] for start in range(0, _DIGITS, 3))


def marker_sequence(key: str) -> int | None:
    """Return the sequence of the marker at a key; None where no marker stands there."""
    found = _MARKER.fullmatch(key)
    return int("".join(found.groups())) if found else None


def is_rehearsed(key: str) -> bool:
    """Tell whether an object was put by a rehearsal: it belongs to no release."""
    return _REHEARSED.fullmatch(key) is not None
