"""Where things stand below ``publications/``: a folder for each request, files named by their content."""

from __future__ import annotations

import re

from suffice.errors import UsageError

PUBLICATIONS = "publications"
"""The folder of a store. No release may have this name: its keys are others' to write."""

MANIFEST = "manifest.json"
RECEIPT = "receipt.json"
"""What receipts of parts are called; no manifest names them."""

_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,99}", re.ASCII)
_PATH = re.compile(rf"([0-9a-f]{{32}})-({_NAME.pattern})", re.ASCII)
_INSIDE = re.compile(rf"{PUBLICATIONS}/([0-9a-f]{{32}})/.+", re.ASCII)


def is_publication_id(text: str) -> bool:
    """Tell whether a text is 32 hex digits."""
    return _ID.fullmatch(text) is not None


def file_path(name: str, sha256: str) -> str:
    """Return what a file is called in its folder: the beginning of its SHA-256, and its name.

    Raises
    ------
    UsageError
        Where the name is none.

    Examples
    --------
    >>> file_path("draws.parquet", "ab" * 32)
    'abababababababababababababababab-draws.parquet'
    """
    if not _NAME.fullmatch(name):
        message = f"{name!r} is no name of a published file: 1 to 100 letters, digits and _ . -"
        raise UsageError(message)
    return f"{sha256[:32]}-{name}"


def read_path(path: str) -> tuple[str, str] | None:
    """Return the beginning of the SHA-256 and the name of a file by its path; None where it is none."""
    found = _PATH.fullmatch(path)
    return (found[1], found[2]) if found else None


def publication_of(key: str) -> str | None:
    """Return the id of the publication that a key of a store belongs to; None where it belongs to none."""
    found = _INSIDE.fullmatch(key)
    return found[1] if found else None
