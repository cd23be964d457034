"""A publication that was found, and its files, checked before anything is parsed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import PublicationCorruptError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.publications.manifest_model import PublishedEntry

if TYPE_CHECKING:
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.publications.manifest_model import PublicationManifest


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
        role: Literal["summaries", "draws", "card", "part"],
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
