"""What the manifest of a publication states, field by field, and where its files stand.

Below ``publications/`` each request has a folder, and each file is named by its content.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from suffice.errors import UsageError
from suffice.storage.releases.manifest_model import (
    Hex16,  # noqa: TC001 - pydantic reads them
    Hex32,  # noqa: TC001 - pydantic reads them
    Hex64,  # noqa: TC001 - pydantic reads them
    SignatureEntry,  # noqa: TC001 - pydantic reads them
    Version,  # noqa: TC001 - pydantic reads them
)

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
    parts = _PATH.fullmatch(path)
    return (parts[1], parts[2]) if parts else None


def publication_of(key: str) -> str | None:
    """Return the id of the publication that a key of a store belongs to; None where it belongs to none."""
    parts = _INSIDE.fullmatch(key)
    return parts[1] if parts else None


FORMAT_VERSION = 1
LARGEST_FILE = 2**30
"""In bytes; what is larger is published in parts."""
MOST_FILES = 10_000

_Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Line = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f\u2028\u2029]*$")]
_Decimal = Annotated[str, Field(pattern=r"^[0-9]{1,20}(\.[0-9]{1,20})?$")]
LONGEST_DIAGNOSTIC = 300
"""In characters."""
Diagnostic = Annotated[str, Field(max_length=LONGEST_DIAGNOSTIC)]


class _Model(BaseModel):
    """Base: nothing unknown, nothing converted, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PublishedEntry(_Model):
    """One file of a publication."""

    name: str
    path: str
    role: Literal["summaries", "draws", "card", "part"]
    format: Annotated[str, Field(pattern=r"^[a-z0-9]{1,16}$")]
    size: Annotated[int, Field(gt=0, le=LARGEST_FILE)]
    sha256: Hex64
    rows: Annotated[int, Field(ge=0)] | None

    @model_validator(mode="after")
    def _is_named_by_content(self) -> Self:
        if read_path(self.path) is None or self.path != file_path(self.name, self.sha256):
            message = "a file's path is the beginning of its SHA-256, a dash and its name"
            raise ValueError(message)
        return self


class RestsOn(_Model):
    """A release that a publication rests on."""

    release_id: Hex16
    manifest_sha256: Hex64
    label: _Line


class RequestHead(BaseModel):
    """What every request states; the rest is the business of its kind."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    algorithm: Annotated[int, Field(ge=1)]
    kind: _Word
    releases: Annotated[list[RestsOn], Field(min_length=1, max_length=1000)]


class PublicationManifest(_Model):
    """A publication's manifest of format 1.

    Attributes
    ----------
    publication_id : str
        The first 32 hex digits of the SHA-256 of the canonical request.
    request : dict
        What was asked for, whole.
    epsilon : dict
        By release id, decimal text: what each release had cost. The publication cost nothing more.
    diagnostics : dict
        By what they are of, then by name, as text: R-hat and effective draws where there were chains.
    """

    format_version: Literal[1]
    publication_id: Hex32
    request: dict[str, Any]
    title: _Line
    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$")]
    epsilon: dict[Hex16, _Decimal]
    cost: Literal["0"]
    diagnostics: dict[Diagnostic, dict[Diagnostic, Diagnostic]]
    files: Annotated[list[PublishedEntry], Field(min_length=1, max_length=MOST_FILES)]
    versions: dict[Version, Version]
    checksum: Hex64
    signature: SignatureEntry | None

    @property
    def head(self) -> RequestHead:
        """What every request states."""
        return RequestHead.model_validate(self.request)

    @model_validator(mode="after")
    def _is_of_one_piece(self) -> Self:
        if len({file.name for file in self.files}) < len(self.files):
            message = "each file has a name of its own"
            raise ValueError(message)
        if {release.release_id for release in self.head.releases} != self.epsilon.keys():
            message = "epsilon is stated for each release that the request names"
            raise ValueError(message)
        return self
