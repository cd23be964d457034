"""What other people's tools read of a release: a Frictionless data package, and Croissant's metadata.

Both are made of the manifest alone, byte for byte, so that anyone can make them again and compare. Neither
states a licence, an author or a place on the web: no manifest does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.releases.croissant import croissant
from suffice.storage.releases.data_package import datapackage

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.releases.manifest_model import Manifest

_MAKERS: dict[str, Callable[[bytes, Manifest], dict[str, Any]]] = {
    "croissant.json": croissant,
    "datapackage.json": datapackage,
}
DESCRIPTIONS = tuple(_MAKERS)
"""The names of the files, beside the manifest."""


def describe(data: bytes, manifest: Manifest) -> dict[str, bytes]:
    """Return the descriptions of a release by file name.

    Parameters
    ----------
    data : bytes
        The manifest's exact bytes.
    manifest : Manifest
        What was read from them.
    """
    return {name: canonical_json.encode(make(data, manifest)) for name, make in _MAKERS.items()}
