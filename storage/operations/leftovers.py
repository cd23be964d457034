"""What killed runs leave in a store and nothing needs: probes, and files that were half written."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import TYPE_CHECKING

from suffice.errors import StoreError
from suffice.storage.objects.object_store import LEFT_FOR, has_name_of_probe, is_left_probe
from suffice.storage.publications.publication import PUBLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.objects.object_store import ObjectStore


def remove_leftovers(objects: ObjectStore, *, now: dt.datetime | None = None) -> tuple[str, ...]:
    """Remove probes and half-written files that are a day old, and return their keys, sorted.

    Only what has the name and the length of a probe, or the name of a file that is being written; runs that
    live are younger. Two listings, and in a directory the names of all files. What the role may not remove
    stays.

    Parameters
    ----------
    objects : ObjectStore
    now : datetime, optional
        The present moment otherwise.

    Raises
    ------
    StoreError
        Where the store cannot be listed.
    """
    before = (now or dt.datetime.now(dt.UTC)) - LEFT_FOR
    removed = []
    for key in _probes(objects):
        with suppress(StoreError):
            written = objects.modified(key)
            if written is not None and written < before and is_left_probe(objects, key, folder=PUBLICATIONS):
                objects.delete(key)
                removed.append(key)
    with suppress(StoreError):
        removed += objects.sweep_hidden(before)
    return tuple(sorted(removed))


def _probes(objects: ObjectStore) -> Iterator[str]:
    for prefix in ("", f"{PUBLICATIONS}/"):
        yield from (
            prefix + name for name in objects.names(prefix) if has_name_of_probe(name, folder=PUBLICATIONS)
        )
