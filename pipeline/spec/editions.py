"""Editions of a window: its first release, and the amendments that replace it."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_AMENDMENTS = 99
"""Of one window."""

_EDITION = re.compile(r"([A-Za-z0-9-]{1,32})(?:\.(0|[1-9]\d?))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendedRelease:
    """The release that an amendment replaces.

    Attributes
    ----------
    release_id : str
        16 hex digits.
    manifest_sha256 : str
        Of its manifest's bytes, in hex.
    """

    release_id: str
    manifest_sha256: str


def edition(window: str, amendment: int) -> str:
    """Name an edition: the window alone for its first release, ``2013-01.2`` for its second amendment.

    Examples
    --------
    >>> edition("2013-01", 0), edition("2013-01", 2)
    ('2013-01', '2013-01.2')
    """
    return f"{window}.{amendment}" if amendment else window


def amended_of(release_id: str | None, manifest_sha256: str | None) -> AmendedRelease | None:
    """Return what two columns of a charge name; None where it amends nothing."""
    if release_id is None or manifest_sha256 is None:
        return None
    return AmendedRelease(release_id=release_id, manifest_sha256=manifest_sha256)


def read_edition(text: str) -> tuple[str, int | None] | None:
    """Read a window and the number of an amendment; None where no edition has that name.

    Returns
    -------
    tuple of (str, int or None), or None
        The number is None where none is written, and 0 for ``2013-01.0``, the first release.

    Examples
    --------
    >>> read_edition("2013-01"), read_edition("2013-01.0"), read_edition("2013-01.2")
    (('2013-01', None), ('2013-01', 0), ('2013-01', 2))
    """
    found = _EDITION.fullmatch(text)
    if found is None:
        return None
    return found[1], None if found[2] is None else int(found[2])
