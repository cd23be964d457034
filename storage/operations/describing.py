"""Descriptions are put beside a manifest, create-only; no release depends on them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, StoreError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.releases.descriptions import describe
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import locate
from suffice.storage.signatures.keys import pinned_keys
from suffice.storage.signatures.signing import check_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.location import Location
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.signatures.keys import KeyReference


def describe_published(store: ReleaseStore, charge: Charge, manifest: bytes) -> None:
    """Put the descriptions of a release whose manifest stands, as far as that goes.

    Nothing that goes wrong here changes what becomes of the charge: the release is published without them,
    and ``suffice describe`` puts them there later.
    """
    prefix = f"{charge.name}/{charge.edition}/{charge.release_id}/"
    with contextlib.suppress(Exception):
        for name, content in describe(manifest, parse_manifest(manifest)).items():
            with contextlib.suppress(ObjectExistsError):
                store.objects.put_new(prefix + name, content)


def describe_release(
    reference: str,
    *,
    store: str | None = None,
    public_keys: Sequence[KeyReference] | None = None,
    allowed: Callable[[str], object] = lambda _: None,
) -> dict[str, str]:
    """Put the descriptions that a release lacks beside its manifest.

    Parameters
    ----------
    reference, store, public_keys
        As for :func:`suffice.open_release`; a withdrawn release is described too.
    allowed : callable
        Gets the store's URI before anything is written, and raises where that store may not be used.

    Returns
    -------
    dict
        By URI: ``written``, or ``already_there``.

    Raises
    ------
    UsageError, ReleaseMissingError, ReleaseCorruptError, SignatureError
        As there.
    StoreError
        Where one cannot be written, or other bytes stand there.
    """
    location, made = _described(reference, store, public_keys)
    if location.store is not None:
        allowed(location.store.uri)
    return {f"{location.uri}/{name}": _put(location.objects, name, data) for name, data in made.items()}


def descriptions_of(
    reference: str, *, store: str | None = None, public_keys: Sequence[KeyReference] | None = None
) -> dict[str, bytes]:
    """Return a release's descriptions by file name, for whoever may not write where it stands.

    Parameters and errors are those of :func:`describe_release`.
    """
    return _described(reference, store, public_keys)[1]


def _described(
    reference: str, store: str | None, public_keys: Sequence[KeyReference] | None
) -> tuple[Location, dict[str, bytes]]:
    pinned = pinned_keys(public_keys)
    location = locate(reference, store)
    data, manifest = location.manifest()
    if pinned is not None:
        content = canonical_json.decode(data)
        assert isinstance(content, dict)  # noqa: S101 - the manifest was read
        check_signature(content, pinned)
    return location, describe(data, manifest)


def _put(objects: ObjectStore, name: str, data: bytes) -> str:
    try:
        objects.put_new(name, data)
    except ObjectExistsError as error:
        if objects.get(name, at_most=len(data) + 1) == data:
            return "already_there"
        message = f"another description of the release than its manifest gives stands there: {error}"
        raise StoreError(message) from None
    return "written"
