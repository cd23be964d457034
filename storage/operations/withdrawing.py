"""A faulty release is withdrawn by a file beside its manifest, put once.

Its charge stays what it is, and publications that rest on it say so.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from suffice.errors import (
    ObjectExistsError,
    ReleaseWithdrawnError,
    StorageError,
    StoreError,
)
from suffice.pipeline.terms.declaration.documents import printed
from suffice.storage.objects.address import read_address
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST
from suffice.storage.releases.release_store import locate
from suffice.storage.releases.withdrawal import (
    LARGEST_WITHDRAWAL,
    WITHDRAWN,
    compose_withdrawal,
    parse_withdrawal,
)
from suffice.storage.signatures.signing import pinned_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from suffice.pipeline.terms.declaration.documents import ShortId
    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.publications.publication import Publication, RestsOn
    from suffice.storage.signatures.signing import PublicKey, Signer

    Standing = Literal["stands", "withdrawn", "not_found", "unreadable"]


_LABEL = re.compile(r"([a-z0-9][a-z0-9_.-]{0,62})@([A-Za-z0-9][A-Za-z0-9.-]{0,35})", re.ASCII)


@printed("release=label release_id state")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestingRelease:
    """A release that a publication rests on, as it stands today.

    Attributes
    ----------
    label, release_id : str
    state : {"stands", "withdrawn", "not_found", "unreadable"}
        ``not_found``: no store that was looked at has it; ``unreadable``: one cannot be read, or has
        something else beside its manifest than a withdrawal.
    withdrawal : Withdrawal or None
    """

    label: str
    release_id: str
    state: Standing
    withdrawal: Withdrawal | None = None

    def __str__(self) -> str:
        return {
            "stands": "stands",
            "withdrawn": str(self.withdrawal),
            "not_found": "not found here, so whether it was withdrawn is not known",
            "unreadable": "cannot be read here, so whether it was withdrawn is not known",
        }[self.state]


def resting_releases(publications: Iterable[Publication], stores: Sequence[str]) -> dict[str, RestingRelease]:
    """Look up the releases of publications, each once, by the SHA-256 of its manifest.

    Two small objects are read of each, no data file. A withdrawal's signature is checked against the keys of
    ``SUFFICE_PUBLIC_KEYS``, where these are set.

    Parameters
    ----------
    publications : iterable of Publication
    stores : sequence of str
        Where releases are looked for, beside the store that a publication stands in.

    Raises
    ------
    UsageError
        Where a store's address, or a key, cannot be used.
    """
    keys = pinned_keys()
    resting: dict[str, RestingRelease] = {}
    for publication in publications:
        store_uri = read_address(publication.uri).parent.parent.uri
        places = [read_address(uri).objects() for uri in dict.fromkeys([store_uri, *stores])]
        for release in publication.stated.head.releases:
            if release.manifest_sha256 not in resting:
                resting[release.manifest_sha256] = _look_up(release, places, keys)
    return resting


def _look_up(
    release: RestsOn, places: Sequence[ObjectStore], keys: Sequence[PublicKey] | None
) -> RestingRelease:
    named = _LABEL.fullmatch(release.label)
    state: Standing = "not_found"
    withdrawal = None
    for objects in places if named else ():
        place = f"{'/'.join(named.groups()) if named else ''}/{release.release_id}"
        try:
            manifest = objects.get(f"{place}/{MANIFEST}", at_most=LARGEST_MANIFEST + 1)
            if manifest is None or hashlib.sha256(manifest).hexdigest() != release.manifest_sha256:
                continue
            beside = objects.get(f"{place}/{WITHDRAWN}", at_most=LARGEST_WITHDRAWAL + 1)
            if beside is not None:
                withdrawal = parse_withdrawal(beside, manifest, release.release_id, keys)
        except StorageError:
            state = "unreadable"
            continue
        state = "stands" if withdrawal is None else "withdrawn"
        break
    return RestingRelease(
        label=release.label, release_id=release.release_id, state=state, withdrawal=withdrawal
    )


@printed("release=label release_id uri status withdrawal")
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
    release_id: ShortId
    uri: str
    withdrawal: Withdrawal
    status: Literal["withdrawn", "already_withdrawn"]


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
    status: Literal["withdrawn", "already_withdrawn"] = "withdrawn"
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
