"""What flows that read releases may read and write: each place checked against the profile.

Whoever may start such a flow chooses a release, a destination and a folder; the operator pins among which.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import PinnedError
from suffice.profile.addresses import is_inside, store_uri
from suffice.profile.settings import check_text, outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.profile.model import DeploymentProfile


def released_reference(reference: str, *, profile: DeploymentProfile | None, option: str = "release") -> str:
    """Return what a flow may open as a release: NAME[@WINDOW], or a place inside of the pinned stores.

    Raises
    ------
    PinnedError
        Where it is a path or URI outside of them.
    UsageError
        Where it is no text of a parameter.
    """
    from suffice.storage.releases.location import is_path  # numpy is slow to import

    check_text(option, reference)
    if not is_path(reference) or profile is None or profile.stores is None:
        return reference
    return _inside(option, store_uri(reference), profile.stores)


def publication_store(to: str | None, *, store: str, profile: DeploymentProfile | None) -> str:
    """Return the store that posteriors are published into.

    Parameters
    ----------
    to : str or None
        What the caller asks for. Left out, the one that the profile pins for publications, and without
        such a pin the store of the releases.
    store : str
        The store of the releases.
    profile : DeploymentProfile or None

    Raises
    ------
    PinnedError
        Where it lies outside of what the profile allows, or several are pinned and none is named.
    UsageError
        As for :func:`released_reference`.
    """
    if to is not None:
        check_text("to", to)
    pinned = None if profile is None else profile.publications or profile.stores
    if pinned is None:
        return store if to is None else to
    if to is None and profile is not None and profile.publications is not None:
        if len(pinned) > 1:
            message = "to: the deployment profile allows several stores of publications: name one"
            raise PinnedError(message)
        return pinned[0]
    return _inside("to", store_uri(store if to is None else to), pinned)


def output_folder(folder: str, *, profile: DeploymentProfile | None, option: str = "out") -> Path:
    """Return a folder that a flow may write into, links resolved where the profile pins folders.

    Raises
    ------
    PinnedError
        Where it lies outside of what the profile allows.
    UsageError
        As for :func:`released_reference`.
    """
    check_text(option, folder)
    if profile is None or profile.output_folders is None:
        return Path(folder)
    real = os.path.realpath(folder)
    return Path(_inside(option, real, [os.path.realpath(pinned) for pinned in profile.output_folders]))


def _inside(option: str, place: str, pinned: Sequence[str]) -> str:
    if not any(is_inside(place, folder) for folder in pinned):
        raise outside(option)
    return place
