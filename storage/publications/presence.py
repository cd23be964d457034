"""Whether a store, or publications, are at a place: for its readers, and for what may be written there."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from suffice.errors import StoreError
from suffice.storage.objects.address import read_address
from suffice.storage.publications.layout import PUBLICATIONS, is_publication_id
from suffice.storage.releases.store_identity import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.publications.publication_store import PublicationStore


def holds_store(folder: Path) -> bool:
    """Tell whether a folder is a store of releases, or the one in which publications stand."""
    return (folder / KEY).exists() or holds_publications(folder)


def holds_publications(folder: Path) -> bool:
    """Tell whether a folder is the one in which publications stand: by its name and its content."""
    if folder.name != PUBLICATIONS:
        return False
    try:
        return any(map(is_publication_id, os.listdir(folder)))  # noqa: PTH208 - names, and no paths
    except OSError:
        return False


def check_is_there(store: PublicationStore) -> None:
    """Refuse a place where there is neither a publication nor a store of releases.

    A place whose publications alone may be read is not refused: what stands beside them is not known.

    Raises
    ------
    StoreError
    """
    if store.ids():
        return
    place = read_address(store.uri).parent
    identity = b"unknown"
    with contextlib.suppress(StoreError):
        identity = place.objects().get(KEY, at_most=1) or b""
    if not identity:
        message = (
            f"there is no store at {place.uri}, neither of releases nor of publications: check how it is "
            "written; suffice publish makes the first publication"
        )
        raise StoreError(message)
