"""How to cite a release, in a sentence that its manifest states all of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def citation(facts: Mapping[str, Any], url: str | None = None) -> str:
    """Return the sentence that cites a release.

    Parameters
    ----------
    facts : mapping
        name, window, edition, dataset, epsilon, neighboring, unit, release_id, created, manifest_sha256.
    url : str, optional
        Where the release is described on the web.
    """
    window = "" if facts["window"] == "all" else f", {facts['edition']}"
    where = f" {url}" if url else ""
    return (
        f"{facts['name']}{window}: a differentially private release of {facts['dataset']} "
        f"(epsilon {facts['epsilon']}, {str(facts['neighboring']).replace('_', ' ')}, unit {facts['unit']}). "
        f"Release {facts['release_id']}, {facts['created'][:10]}. Manifest SHA-256 "
        f"{facts['manifest_sha256']}.{where}"
    )
