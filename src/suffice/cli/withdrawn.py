"""Which withdrawn releases a command has opened, or prints numbers from: it says so."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.operations.publishing import RestingRelease

_OPENED: ContextVar[tuple[dict[str, Any], ...]] = ContextVar("opened withdrawn releases", default=())


def note_withdrawn(release: Release, *, warned: bool = False) -> None:
    """Remember a release that was withdrawn, and warn of it, unless that was done."""
    if release.withdrawn is None:
        return
    if _note(release.label, release.release_id, release.withdrawn) and not warned:
        warnings.warn(f"{release.label} was {release.withdrawn}", SufficeWarning, stacklevel=2)


def note_resting(releases: Iterable[RestingRelease]) -> None:
    """Remember those of the releases that a publication rests on which were withdrawn."""
    for release in releases:
        if release.withdrawal is not None:
            _note(release.label, release.release_id, release.withdrawal)


def _note(label: str, release_id: str, withdrawal: Withdrawal) -> bool:
    """Remember a withdrawn release; return whether it is named for the first time."""
    named = {"release": label, "release_id": release_id, **withdrawal.to_dict()}
    is_new = named not in _OPENED.get()
    if is_new:
        _OPENED.set((*_OPENED.get(), named))
    return is_new


def withdrawn_releases() -> list[dict[str, Any]]:
    """Return what JSON documents say of the withdrawn releases that this command has opened."""
    return list(_OPENED.get())


def forget_withdrawn() -> None:
    """Begin a command: none is opened yet."""
    _OPENED.set(())
