"""A publication and its manifest: what it states, where its files stand, and its files once they are found.

Below ``publications/`` each request has a folder, and each file is named by its content. The manifest is
written once, and read as if it were hostile; files are checked before anything is parsed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from suffice.errors import PublicationCorruptError, UsageError
from suffice.pipeline.ask.publication.request import Request
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.documents import LEFT_OUT
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.storage.releases.manifest import checksum, software_versions
from suffice.storage.releases.manifest_model import (
    Hex16,
    Hex32,
    Hex64,
    Hour,
    SignatureEntry,
    StrictModel,
    Version,
)
from suffice.storage.signatures.signing import PUBLICATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.publications.published_pool import PublishedPool
    from suffice.storage.signatures.signing import Signer

LARGEST_PUBLICATION = 4 * 2**20
"""In bytes, of a manifest: the most files fit, and what any bytes make in memory is bounded."""

_REPORTED_PACKAGES = ("suffice", "numpy", "scipy", "pyarrow", "h5py", "h5netcdf", "matplotlib")


def publication_id_of(request: bytes) -> str:
    """Return the id that a canonical request gives: the first 32 hex digits of its SHA-256."""
    return hashlib.sha256(request).hexdigest()[:32]


def compose_publication(
    request: Mapping[str, Any],
    *,
    title: str,
    losses: Mapping[str, PrivacyLoss],
    files: Sequence[PublishedEntry],
    created: datetime,
    diagnostics: Mapping[str, Mapping[str, str]] | None = None,
    signer: Signer | None = None,
) -> bytes:
    """Return the exact bytes of a publication's manifest.

    Parameters
    ----------
    request : mapping
        What canonical JSON can hold; its bytes give the id.
    title : str
        One line.
    losses : mapping of str to PrivacyLoss
        By release id, of each release of the request.
    files : sequence of PublishedEntry
        From :meth:`suffice.storage.publications.publication.PublishedFile.entry`.
    created : datetime
        Aware; only its hour, in UTC, is published.
    diagnostics : mapping, optional
        By what they are of, then by name, as text.
    signer : Signer, optional
        From :func:`suffice.storage.signatures.signing.publication_signer_from_environment`.

    Raises
    ------
    PublicationCorruptError
        Where the parts do not make a manifest that can be read.
    """
    canonical = canonical_json.encode(dict(request))
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "publication_id": publication_id_of(canonical),
        "request": dict(request),
        "title": title,
        "created": created.astimezone(UTC).strftime("%Y-%m-%dT%HZ"),
        **_stated(losses),
        "cost": "0",
        "diagnostics": {of: dict(numbers) for of, numbers in (diagnostics or {}).items()},
        "files": [file.model_dump() for file in files],
        "versions": software_versions(_REPORTED_PACKAGES),
        "checksum": None,
        "signature": None,
    }
    content["checksum"] = checksum(content)
    if signer is not None:
        content["signature"] = signer.sign(content, PUBLICATION)
    data = canonical_json.encode(content)
    parse_publication(data)
    return data


def _stated(losses: Mapping[str, PrivacyLoss]) -> dict[str, dict[str, str]]:
    """Return losses by their measure; rho stands only where a release states one."""
    stated: dict[str, dict[str, str]] = {str(PrivacyMeasure.EPSILON): {}}
    for release_id, loss in losses.items():
        stated.setdefault(str(loss.measure), {})[release_id] = loss.text
    return stated


def parse_publication(data: bytes) -> PublicationManifest:
    """Read a manifest, and check all that can be checked without its files.

    Raises
    ------
    PublicationCorruptError
        Where a byte of it was changed, it contradicts itself, or is of another format. The text names the
        field.
    """
    if len(data) > LARGEST_PUBLICATION:
        raise _corrupt(f"it has more than {LARGEST_PUBLICATION} bytes")
    try:
        content = canonical_json.decode(data)
    except ValueError as error:
        raise _corrupt(str(error)) from None
    if not isinstance(content, dict):
        raise _corrupt("it is no JSON object")
    if content.get("format_version") != FORMAT_VERSION:
        raise _corrupt("it has a format that this suffice does not know: upgrade it")
    if checksum(content) != content.get("checksum"):
        raise _corrupt("checksum: it is not the one of its other bytes")
    try:
        manifest = PublicationManifest.model_validate(content)
    except ValidationError as error:
        places = sorted({".".join(map(str, problem["loc"][:3])) or "whole" for problem in error.errors()})
        raise _corrupt(f"{', '.join(places[:3])}: not as format {FORMAT_VERSION} has it") from None
    if publication_id_of(canonical_json.encode(manifest.request)) != manifest.publication_id:
        raise _corrupt("publication_id: it is not the hash of its request")
    try:
        Request.read(manifest.request)
    except UsageError as error:
        raise _corrupt(f"request: {error}") from None
    return manifest


def _corrupt(rule: str) -> PublicationCorruptError:
    return PublicationCorruptError(f"the manifest of the publication is corrupt: {rule}")


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


class PublishedEntry(StrictModel):
    """One file of a publication."""

    name: str
    path: str
    role: Literal["summaries", "draws", "card", "part", "likelihood"]
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


class RestsOn(StrictModel):
    """A release that a publication rests on."""

    release_id: Hex16
    manifest_sha256: Hex64
    label: _Line


class RequestHead(BaseModel):
    """What every request states; the rest is the business of its kind."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    algorithm: Annotated[int, Field(ge=1)]
    kind: _Word
    releases: Annotated[list[RestsOn], Field(min_length=1, max_length=1000)]


class PublicationManifest(StrictModel):
    """A publication's manifest of format 1.

    Attributes
    ----------
    publication_id : str
        The first 32 hex digits of the SHA-256 of the canonical request.
    request : dict
        What was asked for, whole.
    epsilon, rho : dict
        By release id, decimal text: what each release had cost, in its own measure. The publication cost
        nothing more. `rho` is left out where no release states one.
    diagnostics : dict
        By what they are of, then by name, as text: R-hat and effective draws where there were chains.
    """

    format_version: Literal[1]
    publication_id: Hex32
    request: dict[str, Any]
    title: _Line
    created: Hour
    epsilon: dict[Hex16, _Decimal]
    rho: Annotated[dict[Hex16, _Decimal] | None, Field(min_length=1, json_schema_extra={LEFT_OUT: True})] = (
        None
    )
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
        named = sorted({release.release_id for release in self.head.releases})
        if named != sorted([*self.epsilon, *(self.rho or {})]):
            message = "epsilon or rho is stated for each release that the request names"
            raise ValueError(message)
        return self

    @property
    def paid(self) -> dict[str, PrivacyLoss]:
        """What each release had cost, by its id."""
        return {
            **{name: PrivacyLoss.of_epsilon(Fraction(text)) for name, text in self.epsilon.items()},
            **{name: PrivacyLoss.of_rho(Fraction(text)) for name, text in (self.rho or {}).items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file that stands in a publication's folder, its content checked against its name.

    Attributes
    ----------
    name : str
        As ``draws.parquet``.
    path : str
        In the folder: the beginning of the SHA-256, a dash, the name.
    size : int
        In bytes.
    sha256 : str
        In hex.
    """

    name: str
    path: str
    size: int
    sha256: str

    def entry(
        self,
        *,
        role: Literal["summaries", "draws", "card", "part", "likelihood"],
        file_format: str,
        rows: int | None = None,
    ) -> PublishedEntry:
        """Return the file's entry in a manifest.

        Parameters
        ----------
        role : str
            What it is there for.
        file_format : str
            As ``parquet``.
        rows : int, optional
            Where it is a table.
        """
        return PublishedEntry(
            name=self.name,
            path=self.path,
            role=role,
            format=file_format,
            size=self.size,
            sha256=self.sha256,
            rows=rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication: what was asked for, and what answers it.

    Attributes
    ----------
    publication_id : str
        32 hex digits.
    uri : str
        Of its folder; never holds credentials.
    stated : PublicationManifest
        The manifest, checked.
    data : bytes
        The manifest's exact bytes.
    """

    publication_id: str
    uri: str
    stated: PublicationManifest = field(repr=False)
    data: bytes = field(repr=False)
    objects: ObjectStore = field(repr=False)

    @property
    def request(self) -> dict[str, Any]:
        """What was asked for, as its canonical JSON holds it."""
        return self.stated.request

    @property
    def files(self) -> list[PublishedEntry]:
        """The files, in the manifest's order."""
        return self.stated.files

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as parsed."""
        content: Any = canonical_json.decode(self.data)
        return content  # type: ignore[no-any-return]

    def pooled(self, statistic: str | None = None) -> PublishedPool:
        """Return cells that borrow strength, each beside itself alone, and their populations.

        Parameters
        ----------
        statistic : str, optional
            Its name; may be left out where there is one.

        Raises
        ------
        UsageError
            Where no such pooled cells were published as Parquet.
        PublicationCorruptError, StoreError
            As :meth:`read`.
        """
        from suffice.storage.publications.published_pool import read_pool  # Arrow is slow to import

        return read_pool([file.name for file in self.files], self.read, self.publication_id, statistic)

    def read(self, name: str) -> bytes:
        """Return a file's bytes, which have the size and the SHA-256 that the manifest states.

        Raises
        ------
        UsageError
            Where it has no file of that name.
        PublicationCorruptError
            Where the file is missing, or other bytes stand there.
        StoreError
            Where it cannot be read.
        """
        entry = next((file for file in self.files if file.name == name), None)
        if entry is None:
            message = f"the publication {self.publication_id} has no file {name!r}"
            raise UsageError(message)
        data = self.objects.get(f"{self.publication_id}/{entry.path}", at_most=entry.size + 1)
        if data is None:
            rule = "is missing"
        elif len(data) != entry.size:
            rule = f"does not have the {entry.size} bytes that the manifest states"
        elif hashlib.sha256(data).hexdigest() != entry.sha256:
            rule = "does not have the SHA-256 that the manifest states"
        else:
            return data
        message = f"the publication at {self.uri} is corrupt: {entry.path} {rule}"
        raise PublicationCorruptError(message)
