"""Public tables that a flow is asked to read: held against the profile, and at hand as files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.public_table import LARGEST_TABLE
from suffice.profile.settings import check_text, outside
from suffice.profile.values import is_inside, store_uri
from suffice.storage.objects.address import read_address

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.profile.model import DeploymentProfile


def table_file(option: str, reference: str, folder: Path, *, profile: DeploymentProfile | None) -> str:
    """Return the path of a table: its own, or of a copy of what stands at a URI.

    Parameters
    ----------
    option : str
        How the caller names it, for messages.
    reference : str
        A path, or a URI of a bucket or a website.
    folder : Path
        Where a copy may stand.
    profile : DeploymentProfile or None

    Raises
    ------
    PinnedError
        Where it lies outside of what the profile pins: ``tables``, or ``stores`` where these are left out.
    UsageError
        Where it is no path and no URI, there is no such table, or it is larger than a table may be.
    StoreError
        Where it cannot be reached.
    """
    check_text(option, reference)
    place = store_uri(reference)
    pinned = None if profile is None else profile.tables or profile.stores
    if pinned is not None and not any(is_inside(place, allowed) for allowed in pinned):
        raise outside(option)
    address = read_address(place)
    if not address.bucket:
        return os.fspath(address.path)
    name = address.path.name
    data = address.parent.objects().get(name, at_most=LARGEST_TABLE + 1) if name else None
    if data is None:
        message = f"{option}: there is no file at {address.uri}: name a CSV or Parquet file"
        raise UsageError(message)
    if len(data) > LARGEST_TABLE:
        message = f"{option} {name}: the file is larger than 1 GiB"
        raise UsageError(message)
    copy = folder / option / name
    copy.parent.mkdir()
    copy.write_bytes(data)
    return os.fspath(copy)
