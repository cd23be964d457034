"""Adopted releases as files: a manifest that states the declared law, and the published table beside it.

The manifest's first key says that the release was adopted, and its format is none that readers of releases
know: they refuse it. No store, ledger, plan or signature belongs to it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import (
    AdoptedTableError,
    LawError,
    ReleaseCorruptError,
    ReleaseMissingError,
    UsageError,
)
from suffice.pipeline.ask.pooling.adopted import AdoptedRelease, adopted_release
from suffice.pipeline.ask.pooling.published_table import columns_of_csv, fitted, table_bytes
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.declared_law import parse_law
from suffice.pipeline.terms.declaration.spec_text import read_mapping
from suffice.storage.objects.address import read_address
from suffice.storage.releases.location import ADOPTED, MANIFEST

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.declared_law import DeclaredLaw

FORMAT = "adopted-1"
TABLE = "table.csv"
_ORDERED = ("keys", "columns", "statistics")
_LARGEST_LAW = 1 << 24
_LARGEST_TABLE = 1 << 31


def manifest_of(release: AdoptedRelease) -> dict[str, Any]:
    """Return the manifest of an adopted release."""
    data = table_bytes(release.columns)
    return {
        "adopted": True,
        "files": [
            {
                "path": TABLE,
                "rows": release.n_rows,
                "sha256": hashlib.sha256(data).hexdigest(),
                "size": len(data),
            }
        ],
        "format_version": FORMAT,
        "law": release.law.content(),
        "name": release.name,
        # Canonical JSON sorts names: which order they were declared in stands apart.
        "order": {part: list(getattr(release.law, part)) for part in _ORDERED},
        "release_id": release.release_id,
    }


def write_adopted(release: AdoptedRelease, out: str | os.PathLike[str]) -> AdoptedRelease:
    """Write an adopted release into a folder that is not there yet, or empty; the manifest last.

    Raises
    ------
    UsageError
        Where something stands there, or it cannot be written.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            message = f"{folder}: something stands there already: name a new folder"
            raise UsageError(message)
        (folder / TABLE).write_bytes(table_bytes(release.columns))
        (folder / MANIFEST).write_bytes(canonical_json.encode(manifest_of(release)))
    except OSError:
        message = f"{folder}: the adopted release cannot be written there"
        raise UsageError(message) from None
    return adopted_release(release.law, release.columns, str(folder))


def open_adopted(reference: str | os.PathLike[str]) -> AdoptedRelease:
    """Open an adopted release: its table is held against its law again, and both against its id.

    Parameters
    ----------
    reference : str or path
        A folder that ``suffice adopt`` wrote, or its URI or URL.

    Raises
    ------
    ReleaseMissingError
        Where none stands there.
    ReleaseCorruptError
        Where a byte of it is not what was adopted.
    """
    address = read_address(os.fspath(reference))
    if address.path.name == MANIFEST:
        address = address.parent
    objects = address.objects()
    data = objects.get(MANIFEST, at_most=_LARGEST_LAW)
    if data is None or not data.startswith(ADOPTED):
        message = f"there is no adopted release at {address.uri}: suffice adopt TABLE LAW --out DIR makes one"
        raise ReleaseMissingError(message)
    table = objects.get(TABLE, at_most=_LARGEST_TABLE)
    try:
        manifest = canonical_json.decode(data)
        law = _law_of(manifest)
        columns = columns_of_csv(table or b"", TABLE)
        is_whole = fitted(law, columns, TABLE) == columns
    except (ValueError, AdoptedTableError, LawError):
        is_whole = False
    if is_whole:
        release = adopted_release(law, columns, address.uri)
        if data == canonical_json.encode(manifest_of(release)) and table == table_bytes(columns):
            return release
    message = f"the adopted release at {address.uri} was changed: its law, table and id do not fit"
    raise ReleaseCorruptError(message)


def adopted_in(place: str | os.PathLike[str]) -> list[Path]:
    """Return the local folders with adopted releases: the one that a place is, or those in it."""
    folder = Path(place)
    try:
        candidates = [folder, *sorted(each for each in folder.iterdir() if each.is_dir())]
    except OSError:
        return []
    adopted = [each for each in candidates if _begins_as_adopted(each / MANIFEST)]
    return [folder] if folder in adopted else adopted


def _begins_as_adopted(manifest: Path) -> bool:
    try:
        with manifest.open("rb") as file:
            return file.read(len(ADOPTED)) == ADOPTED
    except OSError:
        return False


def _law_of(manifest: Any) -> DeclaredLaw:
    """Return the law of a manifest, its names in declared order."""
    try:
        law = dict(manifest["law"])
        for part in _ORDERED:
            law[part] = {name: law[part][name] for name in manifest["order"][part]}
    except (KeyError, TypeError):
        raise ValueError(MANIFEST) from None
    return parse_law(read_mapping(law, MANIFEST))
