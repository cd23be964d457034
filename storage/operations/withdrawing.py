"""A faulty release is withdrawn: a file beside its manifest, put once. Its charge stays what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, ReleaseWithdrawnError, StoreError
from suffice.storage.releases.release_store import locate
from suffice.storage.releases.withdrawal import WITHDRAWN, compose_withdrawal
from suffice.storage.signatures.keys import pinned_keys

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.signatures.signing import Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawnRelease:
    """What a withdrawal did.

    Attributes
    ----------
    label, release_id, uri : str
    withdrawal : Withdrawal
        What stands there now.
    status : str
        ``withdrawn``, or ``already_withdrawn`` for the same reason.
    """

    label: str
    release_id: str
    uri: str
    withdrawal: Withdrawal
    status: str


def withdraw(
    reference: str,
    *,
    reason: str,
    created: datetime,
    store: str | None = None,
    signer: Signer | None = None,
    allowed: Callable[[str], object] = lambda _: None,
) -> WithdrawnRelease:
    """Mark a release as withdrawn, for good; files, manifest and ledger stay as they are.

    Parameters
    ----------
    reference, store
        As for :func:`suffice.open_release`.
    reason : str
        One line; everybody who opens the release reads it.
    created : datetime
        Aware; only its hour is published.
    signer : Signer, optional
        The one that signs releases.
    allowed : callable
        Gets the store's URI before anything is written, and raises where that store may not be used.

    Raises
    ------
    UsageError
        Where the reason is none, or `reference` can be no release.
    ReleaseMissingError, ReleaseCorruptError
        Where no release stands there, or none that can be read.
    ReleaseWithdrawnError
        Where it was withdrawn before, for another reason.
    StoreError
        Where it cannot be written.
    """
    location = locate(reference, store)
    if location.store is not None:
        allowed(location.store.uri)
    data, manifest = location.manifest()
    composed = compose_withdrawal(data, manifest.release_id, reason=reason, created=created, signer=signer)
    status = "withdrawn"
    try:
        location.objects.put_new(WITHDRAWN, composed)
    except ObjectExistsError:
        status = "already_withdrawn"
    standing = location.withdrawal(data, manifest, pinned_keys())
    if standing is None:
        message = f"the store does not show the withdrawal that was written to {location.uri}"
        raise StoreError(message)
    if standing.reason != reason.strip():
        message = f"the release at {location.uri} was withdrawn before, for another reason: {standing}"
        raise ReleaseWithdrawnError(message)
    return WithdrawnRelease(
        label=f"{manifest.name}@{manifest.edition}",
        release_id=manifest.release_id,
        uri=location.uri,
        withdrawal=standing,
        status=status,
    )
