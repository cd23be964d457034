"""Which withdrawn releases a command has opened: whatever it prints says so."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeWarning

if TYPE_CHECKING:
    from suffice.pipeline.pooling.release import Release

_OPENED: ContextVar[tuple[dict[str, Any], ...]] = ContextVar("opened withdrawn releases", default=())


def note_withdrawn(release: Release, *, warned: bool = False) -> None:
    """Remember a release that was withdrawn, and warn of it, unless that was done."""
    if release.withdrawn is None:
        return
    named = {"release": release.label, "release_id": release.release_id, **release.withdrawn.to_dict()}
    if named not in _OPENED.get():
        _OPENED.set((*_OPENED.get(), named))
        if not warned:
            warnings.warn(f"{release.label} was {release.withdrawn}", SufficeWarning, stacklevel=2)


def withdrawn_releases() -> list[dict[str, Any]]:
    """Return what JSON documents say of the withdrawn releases that this command has opened."""
    return list(_OPENED.get())


def forget_withdrawn() -> None:
    """Begin a command: none is opened yet."""
    _OPENED.set(())
