"""The digest by which answers name the release that they are of."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration import canonical_json

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release


def manifest_sha256(release: Release) -> str:
    """Return the SHA-256 of the bytes of a release's manifest, which are canonical."""
    return hashlib.sha256(canonical_json.encode(dict(release.manifest))).hexdigest()
