"""Whether a store creates objects once: asked of the store itself before anything is charged."""

from __future__ import annotations

import contextlib
import re
import secrets
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, StoreError

if TYPE_CHECKING:
    from suffice.storage.objects.object_store import ObjectStore

PREFIX = "probe-"
"""Of the probe's key, at the top of the store, where no release is looked for."""
LENGTH = 16
"""Of what is put, in bytes."""

_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{32}}", re.ASCII)


def check_create_only(objects: ObjectStore, uri: str) -> None:
    """Put an object of a random key, and then try to replace it.

    On a store that replaces it two runs could publish two noisy versions for one charge, and a
    tombstone could be put over a release. Servers that speak like S3 and ignore ``If-None-Match`` are such
    stores.

    Parameters
    ----------
    objects : ObjectStore
    uri : str
        For messages.

    Raises
    ------
    StoreError
        Where the store replaces objects, does not show what was put, or cannot be written.
    """
    key = PREFIX + secrets.token_hex(16)
    first, second = secrets.token_bytes(LENGTH), secrets.token_bytes(LENGTH)
    objects.put_new(key, first)
    try:
        try:
            objects.put_new(key, second)
        except ObjectExistsError:
            refused = True
        else:
            refused = False
        standing = objects.get(key, at_most=len(first) + 1)
    finally:
        # Who may create and not delete is a good publisher: then the probe stays, and is no release.
        with contextlib.suppress(StoreError):
            objects.delete(key)
    if not refused or standing != first:
        message = (
            f"the store {uri} replaces objects that exist: releases need a store that creates each object "
            "only once (S3 servers: one that honours If-None-Match)"
        )
        raise StoreError(message)


def is_left_probe(objects: ObjectStore, key: str, *, folder: str) -> bool:
    """Tell whether an object is what is left of a probe: its name and length are a probe's.

    A run that was killed leaves one, and so does a role that may not delete.

    Parameters
    ----------
    objects : ObjectStore
    key : str
    folder : str
        Another place than the top of the store where probes are put.

    Raises
    ------
    StoreError
        Where the object cannot be read.
    """
    if not _NAME.fullmatch(key.removeprefix(f"{folder}/")):
        return False
    content = objects.get(key, at_most=LENGTH + 1)
    return content is not None and len(content) == LENGTH
