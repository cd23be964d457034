"""Releases as a request names them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from suffice.pipeline.ask.publication.request import ReleaseReference
from suffice.pipeline.terms.declaration import canonical_json

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release


def manifest_sha256(release: Release) -> str:
    """Return the SHA-256 of the bytes of a release's manifest, which are canonical."""
    return hashlib.sha256(canonical_json.encode(dict(release.manifest))).hexdigest()


def reference_to(release: Release) -> ReleaseReference:
    """Return what a request says of a release."""
    return ReleaseReference(
        release_id=release.release_id, manifest_sha256=manifest_sha256(release), label=release.label
    )
