"""How a staged charge is published: its files into the store, then the very manifest that was staged.

A manifest is put only after every file that it names stands in the store with its hash, whoever put it
there. What may pass is tried again, for as long as the operator says: the files are durable in the spool.
Descriptions are put beside a manifest, create-only; no release depends on them.

A faulty release is withdrawn by a file beside its manifest, put once. Its charge stays what it is, and
publications that rest on it say so.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from suffice.errors import (
    ChargeLostError,
    LedgerError,
    ObjectExistsError,
    ReleaseCorruptError,
    ReleaseWithdrawnError,
    SpoolElsewhereError,
    SpoolError,
    StorageError,
    StoreError,
)
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.objects.address import read_address
from suffice.storage.objects.object_store import patiently
from suffice.storage.releases.descriptions import describe
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import (
    LARGEST_WITHDRAWAL,
    WITHDRAWN,
    compose_withdrawal,
    is_tombstone,
    parse_withdrawal,
)
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest
from suffice.storage.releases.release_store import locate
from suffice.storage.signatures.signing import check_signature, pinned_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import ObjectStore, Patience
    from suffice.storage.publications.publication import Publication, RestsOn
    from suffice.storage.releases.location import Location
    from suffice.storage.releases.manifest_model import FileEntry
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool import Spool, SpoolEntry
    from suffice.storage.signatures.signing import KeyReference, PublicKey, Signer

    Standing = Literal["stands", "withdrawn", "not_found", "unreadable"]


_LABEL = re.compile(r"([a-z0-9][a-z0-9_.-]{0,62})@([A-Za-z0-9][A-Za-z0-9.-]{0,35})", re.ASCII)


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

    def to_dict(self) -> dict[str, str]:
        """Return what JSON documents say of it."""
        return {"release": self.label, "release_id": self.release_id, "state": self.state}

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


_MOST_CLAIMS = 20
"""How often runs that publish one staged charge at once may take it from each other."""


def publish_patiently(
    ledger: Ledger, store: ReleaseStore, spool: Spool | None, charge: Charge, patience: Patience
) -> Charge:
    """Do as :func:`publish` does, again and again, with growing pauses, while what fails may pass.

    Raises
    ------
    StoreError, SpoolError, LedgerError
        The last failure; the charge stays staged.
    """
    return patiently(lambda: publish(ledger, store, spool, charge), patience, "staged, not published yet")


def publish(ledger: Ledger, store: ReleaseStore, spool: Spool | None, charge: Charge) -> Charge:
    """Put the drawn files and then the staged bytes of the manifest, unless they stand there already.

    Parameters
    ----------
    ledger : Ledger
    store : ReleaseStore
        The one that the charge names.
    spool : Spool or None
        This host's, where it has one.
    charge : Charge
        In state ``staged``, held by `ledger`.

    Returns
    -------
    Charge
        In state ``published``; ``abandoned`` where a tombstone stands there.

    Raises
    ------
    SpoolElsewhereError
        Where files are missing in the store, and another host's spool has them.
    StoreError
        Where other bytes stand there, or the store fails: then the charge stays staged.
    ChargeLostError
        Where the charge ended otherwise meanwhile.
    """
    if charge.manifest is None:
        message = "the ledger gave a staged charge without its manifest"
        raise LedgerError(message)
    standing = store.read_manifest(charge.name, charge.edition, charge.release_id)
    if standing is None:
        try:
            put_files(store, spool, charge)
        except SpoolError:  # also where another run has published it, and removed what the spool kept
            standing = store.read_manifest(charge.name, charge.edition, charge.release_id)
            if standing is None:
                raise
        else:
            standing = _put_manifest(store, charge)
    if is_tombstone(standing):
        charge = ledger.abandon(charge, reason="there is a tombstone at its manifest's key")
    elif standing != charge.manifest:
        raise foreign(store, charge)
    else:
        describe_published(store, charge, standing)  # first: a run that dies here is settled once more
        charge = mark_published(ledger, charge)
    forget(spool, charge)
    return charge


def put_files(store: ReleaseStore, spool: Spool | None, charge: Charge) -> None:
    """Have every file of a staged charge stand in the store, each with its hash.

    Raises
    ------
    SpoolElsewhereError, SpoolError, StoreError
        As :func:`publish`; no manifest was put.
    """
    entry = kept_files(spool, charge)
    for file in files_of(charge):
        key = f"{charge.name}/{charge.edition}/{charge.release_id}/{file.path}"
        if entry is not None:
            with suppress(ObjectExistsError):  # then what stands there is read back
                store.objects.put_new(key, entry.data(file.path, file.size))
                continue
        data = store.objects.get(key, at_most=file.size + 1)
        if data is None:
            raise elsewhere(spool, charge)
        if (len(data), hashlib.sha256(data).hexdigest()) != (file.size, file.sha256):
            message = (
                f"another file than that of {charge.label} stands at {store.uri}/{key}: it is left as it is"
            )
            raise StoreError(message)


def kept_files(spool: Spool | None, charge: Charge) -> SpoolEntry | None:
    """Return where this host keeps the drawn files of a charge, all of them whole, if it does.

    Of a staged charge the ledger has the manifest, and the spool's own is not asked.
    """
    if spool is None or not spool.holds(charge):
        return None
    return spool.complete(charge) if charge.manifest is None else spool.keeping(charge, files_of(charge))


def files_of(charge: Charge) -> tuple[FileEntry, ...]:
    """Return the files that a staged charge's manifest names.

    Raises
    ------
    LedgerError
        Where the ledger does not hold a manifest.
    """
    try:
        return tuple(parse_manifest(charge.manifest or b"").files)
    except ReleaseCorruptError:
        message = f"the ledger's manifest of {charge.label} is damaged: it is not published"
        raise LedgerError(message) from None


def mark_published(ledger: Ledger, charge: Charge) -> Charge:
    """Have the ledger know that the manifest stands.

    Any number of runs may publish a staged charge at once, as its bytes are fixed; each takes it from the
    one before, which must not make that one fail.
    """
    for _ in range(_MOST_CLAIMS):
        with suppress(ChargeLostError):
            return ledger.publish(charge)
        current = ledger.find(charge.dataset, charge.name, charge.window, amendment=charge.amendment)
        if current is not None and current.charge_id == charge.charge_id:
            with suppress(ChargeLostError):
                charge = ledger.take_over(current)
    return ledger.publish(charge)


def forget(spool: Spool | None, charge: Charge) -> None:
    """Remove what the spool keeps for a charge that has ended, as far as that goes: recovery tries again."""
    if spool is not None:
        with contextlib.suppress(SpoolError):
            spool.remove(charge.charge_id)


def elsewhere(spool: Spool | None, charge: Charge) -> SpoolElsewhereError:
    """Return the error for a charge whose drawn files this run cannot reach."""
    if charge.spool is None or (spool is not None and spool.holds(charge)):
        return SpoolElsewhereError(
            f"the files of {charge.label} are neither in the store nor in the spool: put them back, or spend "
            f"the charge with `suffice ledger abandon {charge.charge_id} --spool-lost`"
        )
    return SpoolElsewhereError(
        f"{charge.label} is {charge.state}, and its files are in the spool of {charge.spool.host}: run "
        "`suffice ledger recover` there, with the same SUFFICE_SPOOL; where that spool is lost, "
        f"`suffice ledger abandon {charge.charge_id} --spool-lost` spends the charge"
    )


def foreign(store: ReleaseStore, charge: Charge) -> StoreError:
    """Return the error for a manifest that stands where this charge's belongs."""
    location = store.release_uri(charge.name, charge.edition, charge.release_id)
    return StoreError(
        f"another manifest than that of {charge.label} stands at {location}: it is left as it is"
    )


def _put_manifest(store: ReleaseStore, charge: Charge) -> bytes:
    """Put the manifest, and return what stands at its key now."""
    assert charge.manifest is not None  # noqa: S101 - publish() has looked
    try:
        store.put_manifest(charge.name, charge.edition, charge.release_id, charge.manifest)
    except ObjectExistsError:
        standing = store.read_manifest(charge.name, charge.edition, charge.release_id)
        if standing is None:  # gone between two readings: nothing is certain
            raise
        return standing
    return charge.manifest
