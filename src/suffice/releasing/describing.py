"""Words of a release, mended from Python and from the command line: no term of what is charged."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.spec.about import About
from suffice.pipeline.spec.spec import load_about
from suffice.profile.settings import pinned_profile, setting
from suffice.storage.operations.publishing import mend_words
from suffice.storage.releases.release_store import open_release
from suffice.storage.signatures.signing import signer_from_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def describe(
    release: Release | str | os.PathLike[str],
    about: About | Mapping[str, Any] | str | os.PathLike[str],
    *,
    store: str | None = None,
    public_keys: Sequence[str] | None = None,
) -> Release:
    """Mend a release's title, labels and units, as ``suffice describe`` does; plan and charge stay.

    Parameters
    ----------
    release : Release, path or str
        A release, where it stands, or its name in a store.
    about : mapping, path or About
        What stands below ``about`` in a spec, as ``{"title": "Flights", "statistics": {"cancelled":
        {"label": "Cancelled flights"}}}``; or a file of a spec, or of words alone. They replace those that
        the release has.
    store, public_keys
        As for :func:`suffice.open_release`.

    Returns
    -------
    Release
        With its new words.

    Raises
    ------
    SpecError, UsageError, PinnedError, StoreError
        Where there are no words, they are for what the release does not have, nobody signs them, or they
        cannot be written.
    """
    reference = release.uri if isinstance(release, Release) else os.fspath(release)
    put_words(reference, about, store=store, public_keys=public_keys)
    return open_release(reference, store=store, public_keys=public_keys, allow_withdrawn=True)


def put_words(
    reference: str,
    about: About | Mapping[str, Any] | str | os.PathLike[str],
    *,
    store: str | None,
    public_keys: Sequence[str] | None,
) -> dict[str, str]:
    """Put words beside a release's manifest; return what became of each file, by its URI."""
    return mend_words(
        reference,
        about if isinstance(about, About) else load_about(about),
        created=datetime.now(UTC),
        store=store,
        public_keys=public_keys,
        signer=signer_from_environment(),
        allowed=check_store,
    )


def check_store(uri: str) -> None:
    """Refuse to write to a store that the deployment profile does not allow."""
    setting("store", uri, profile=pinned_profile(), option="--store")
