"""The windows of a name in a store, opened as one series."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from suffice.errors import ReleaseMissingError, StoreError, UsageError
from suffice.pipeline.ask.borrowing.walk import WINDOW
from suffice.pipeline.ask.pooling.series import Series
from suffice.storage.releases.release_store import DEFAULT_STORE, open_release, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.storage.releases.release_store import ListedRelease
    from suffice.storage.signatures.signing import KeyReference


def is_series(reference: str, over: str | None) -> bool:
    """Whether what is walked over are the windows of a series, and it is named without one of them."""
    return (over or "").split()[:1] == [WINDOW] and "/" not in reference and "@" not in reference


def open_series(
    name: str,
    *,
    store: str | os.PathLike[str] | None = None,
    public_keys: Sequence[KeyReference] | None = None,
) -> Series:
    """Open all windows of a name: of each its newest edition.

    A window that was withdrawn is left out, and the series says so; an older edition never stands in its
    place. Every release is checked as :func:`open_release` does.

    Parameters
    ----------
    name : str
        Of the releases, without a window.
    store : str or path, optional
        URI of the store; ``SUFFICE_STORE`` or ``releases`` otherwise.
    public_keys : sequence of str or path, optional
        Demand a signature of every release, as :func:`open_release` does.

    Raises
    ------
    UsageError
        Where `name` is no name of releases with windows.
    ReleaseMissingError
        Where there is no release of that name, or all were withdrawn.
    StoreError
        Where several releases stand in the place of one.
    ReleaseCorruptError, SignatureError
        As :func:`open_release`.
    """
    if "@" in name or "/" in name:
        message = f"{name!r} is no name of a series: name it without @WINDOW, as flights"
        raise UsageError(message)
    opened = open_store(os.fspath(store or os.environ.get("SUFFICE_STORE") or DEFAULT_STORE))
    newest: dict[str, ListedRelease] = {}
    older: dict[str, list[str]] = {}
    for listed in opened.releases(name):
        before = newest.get(listed.window)
        if before is not None and before.edition == listed.edition:
            message = f"several releases stand at {opened.uri}/{name}/{listed.edition}: remove the copies"
            raise StoreError(message)
        # They are listed by window and edition.
        if before is not None:
            older.setdefault(listed.window, []).append(before.edition)
        newest[listed.window] = listed
    if not newest:
        raise opened.missing(name)
    releases, withdrawn = [], []
    for listed in newest.values():
        release = open_release(listed.uri, public_keys=public_keys, allow_withdrawn=True)
        if release.withdrawn is None:
            releases.append(release)
        else:
            withdrawn.append((listed.edition, f"was {release.withdrawn}"))
    if not releases:
        message = f"all {len(withdrawn)} windows of {name} were withdrawn"
        raise ReleaseMissingError(message)
    return Series.of(name, opened.uri, releases, withdrawn, older)
