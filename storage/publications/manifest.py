"""The manifest of a publication: written once, and read as if it were hostile."""

from __future__ import annotations

import hashlib
from datetime import UTC
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from suffice.errors import PublicationCorruptError, UsageError
from suffice.pipeline.ask.publication.request import Request
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.publications.manifest_model import FORMAT_VERSION, PublicationManifest
from suffice.storage.releases.manifest import checksum, software_versions
from suffice.storage.signatures.signing import PUBLICATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from suffice.storage.publications.manifest_model import PublishedEntry
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
    epsilon: Mapping[str, str],
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
    epsilon : mapping of str to str
        By release id, decimal text, of each release of the request.
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
        "epsilon": dict(epsilon),
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
