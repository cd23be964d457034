"""How a staged charge is published: its files into the store, then the very manifest that was staged.

Before the first file is put, the charge's witness moves on: a copy of the ledger that has the charge as
``drawing`` can then no longer return its epsilon. A manifest is put only after every file that it names
stands in the store with its hash, whoever put it there. What may pass is tried again, for as long as the
operator says: the files are durable in the spool.
Words for the public and descriptions are put beside a manifest, create-only; no release depends on them.
"""

from __future__ import annotations

import contextlib
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from suffice.errors import (
    ChargeLostError,
    LedgerCorruptError,
    LedgerError,
    ObjectExistsError,
    ReleaseCorruptError,
    SpoolElsewhereError,
    SpoolError,
    StoreError,
    UsageError,
)
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.objects.object_store import patiently
from suffice.storage.operations.witness import move_witness
from suffice.storage.releases.about_file import (
    about_name,
    beside,
    check_words,
    compose_about,
    read_wording,
)
from suffice.storage.releases.descriptions import describe
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import locate
from suffice.storage.signatures.signing import SIGNING_KEY, check_signature, pinned_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from suffice.pipeline.spec.about import About
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.objects.object_store import ObjectStore, Patience
    from suffice.storage.releases.about_file import Wording
    from suffice.storage.releases.location import Location
    from suffice.storage.releases.manifest_model import FileEntry, Manifest
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool import Spool
    from suffice.storage.releases.spool_entry import SpoolEntry
    from suffice.storage.signatures.signing import KeyReference, Signer

    Standing = Literal["stands", "withdrawn", "not_found", "unreadable"]


def describe_published(
    store: ReleaseStore, charge: Charge, manifest: bytes, words: bytes | None = None
) -> None:
    """Put the words and the descriptions of a release whose manifest stands, as far as that goes.

    Nothing that goes wrong here changes what becomes of the charge: the release is published without them,
    and ``suffice describe`` puts them there later.
    """
    prefix = f"{charge.name}/{charge.edition}/{charge.release_id}/"
    with contextlib.suppress(Exception):
        if words is not None:
            with suppress(ObjectExistsError):
                store.objects.put_new(prefix + about_name(1), words)
        read = parse_manifest(manifest)
        about = read_wording(beside(store.objects, prefix), manifest, read, None).about
        for name, content in describe(manifest, read, about).items():
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
        By URI: ``written``, ``already_there``, or ``of_earlier_words``, which stays.

    Raises
    ------
    UsageError, ReleaseMissingError, ReleaseCorruptError, SignatureError
        As there.
    StoreError
        Where one cannot be written, or other bytes stand there.
    """
    opened = _found(reference, store, public_keys)
    if opened.location.store is not None:
        allowed(opened.location.store.uri)
    return _put_descriptions(opened)


def descriptions_of(
    reference: str, *, store: str | None = None, public_keys: Sequence[KeyReference] | None = None
) -> dict[str, bytes]:
    """Return a release's descriptions by file name, for whoever may not write where it stands.

    Parameters and errors are those of :func:`describe_release`.
    """
    opened = _found(reference, store, public_keys)
    return describe(opened.data, opened.manifest, opened.wording.about)


def mend_words(
    reference: str,
    about: About,
    *,
    created: datetime,
    store: str | None = None,
    public_keys: Sequence[KeyReference] | None = None,
    signer: Signer | None = None,
    allowed: Callable[[str], object] = lambda _: None,
) -> dict[str, str]:
    """Put words beside a release's manifest, which replace those that stand there, and missing descriptions.

    Plan, charge, manifest and data files stay what they are.

    Parameters
    ----------
    reference, store, public_keys, allowed
        As for :func:`describe_release`.
    about : About
    created : datetime
        Aware; only its hour is published.
    signer : Signer, optional
        The one that signs releases; a signed release takes signed words alone.

    Returns
    -------
    dict
        As :func:`describe_release`; nothing is written where the words are the ones that stand there.

    Raises
    ------
    UsageError
        Where there are no words, they are for what the release does not have, or nobody signs them.
    StoreError
        Where they cannot be written, or somebody described the release meanwhile.
    """
    opened = _found(reference, store, public_keys)
    if opened.location.store is not None:
        allowed(opened.location.store.uri)
    if not about:
        message = "there are no words in it: write a title, or a label, below about"
        raise UsageError(message)
    check_words(about, opened.manifest)
    written = put_words(opened, about, created=created, signer=signer)
    return {**written, **_put_descriptions(_found(reference, store, public_keys))}


def put_words(
    opened: FoundRelease, about: About, *, created: datetime, signer: Signer | None
) -> dict[str, str]:
    """Put words that are other than those that stand there; errors are those of :func:`mend_words`."""
    standing, location = opened.wording, opened.location
    if about == standing.about:
        return {f"{location.uri}/{about_name(standing.number)}": "already_there"}
    if signer is None and opened.manifest.signature is not None:
        message = f"the release at {location.uri} is signed: name the key, in {SIGNING_KEY}, to describe it"
        raise UsageError(message)
    name = about_name(standing.number + 1)
    composed = compose_about(
        opened.data, opened.manifest.release_id, about, standing, created=created, signer=signer
    )
    try:
        location.objects.put_new(name, composed)
    except ObjectExistsError:
        message = f"somebody described the release at {location.uri} just now: look at it, and run again"
        raise StoreError(message) from None
    return {f"{location.uri}/{name}": "written"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRelease:
    """A release that is described: where it stands, its manifest, and its words."""

    location: Location
    data: bytes
    manifest: Manifest
    wording: Wording


def _found(reference: str, store: str | None, public_keys: Sequence[KeyReference] | None) -> FoundRelease:
    pinned = pinned_keys(public_keys)
    location = locate(reference, store)
    data, manifest = location.manifest()
    if pinned is not None:
        content = canonical_json.decode(data)
        assert isinstance(content, dict)  # noqa: S101 - the manifest was read
        check_signature(content, pinned)
    wording = location.wording(data, manifest, pinned)
    return FoundRelease(location=location, data=data, manifest=manifest, wording=wording)


def describe_anew(uri: str, about: About, *, created: datetime, signer: Signer | None) -> None:
    """Put the words of a release that has none; errors are those of :func:`mend_words`."""
    opened = _found(uri, None, None)
    if not opened.wording.number:
        put_words(opened, about, created=created, signer=signer)


def _put_descriptions(opened: FoundRelease) -> dict[str, str]:
    data, manifest, (newest, *earlier) = opened.data, opened.manifest, opened.wording.ever
    others = [describe(data, manifest, about) for about in earlier]
    return {
        f"{opened.location.uri}/{name}": _put(
            opened.location.objects, name, made, [other[name] for other in others]
        )
        for name, made in describe(data, manifest, newest).items()
    }


def _put(objects: ObjectStore, name: str, data: bytes, earlier: Sequence[bytes]) -> str:
    try:
        objects.put_new(name, data)
    except ObjectExistsError as error:
        standing = objects.get(name, at_most=max(map(len, (data, *earlier))) + 1)
        if standing == data:
            return "already_there"
        if standing in earlier:
            return "of_earlier_words"
        message = f"another description of the release than its manifest gives stands there: {error}"
        raise StoreError(message) from None
    return "written"


_MOST_CLAIMS = 20
"""How often runs that publish one staged charge at once may take it from each other."""


def publish_patiently(
    ledger: Ledger,
    store: ReleaseStore,
    spool: Spool | None,
    charge: Charge,
    patience: Patience,
    words: bytes | None = None,
) -> Charge:
    """Do as :func:`publish` does, again and again, with growing pauses, while what fails may pass.

    Raises
    ------
    StoreError, SpoolError, LedgerError
        The last failure; the charge stays staged.
    """
    return patiently(
        lambda: publish(ledger, store, spool, charge, words), patience, "staged, not published yet"
    )


def publish(
    ledger: Ledger, store: ReleaseStore, spool: Spool | None, charge: Charge, words: bytes | None = None
) -> Charge:
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
    words : bytes, optional
        The first words for the public, where the spec has any.

    Returns
    -------
    Charge
        In state ``published``; ``abandoned`` where a tombstone stands there.

    Raises
    ------
    SpoolElsewhereError
        Where files are missing in the store, and another host's spool has them.
    StoreError
        Where other bytes stand there, or the store or the witness fails: then the charge stays staged.
    LedgerCorruptError
        Where the witness has an entry that this ledger lacks, or this ledger lacks what it staged: nothing
        was put.
    ChargeLostError
        Where the charge ended otherwise meanwhile.
    """
    if charge.manifest is None:
        message = "the ledger gave a staged charge without its manifest"
        raise LedgerError(message)
    standing = store.read_manifest(charge.name, charge.edition, charge.release_id)
    if standing is None:
        if charge.witness is not None:
            move_witness(ledger, charge.witness)
        _require_staged(ledger, charge)  # after the move: no older copy than this one is let in from here on
        try:
            put_files(ledger, store, spool, charge)
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
        describe_published(store, charge, standing, words)  # first: a run that dies here is settled once more
        charge = mark_published(ledger, charge)
    forget(spool, charge)
    return charge


def _require_staged(ledger: Ledger, charge: Charge) -> None:
    """Refuse a ledger that was replaced by an older copy of it, under a run that staged a charge.

    Its recovery would return the draw whose files are put here.
    """
    drew = charge.drawing_sequence is not None and (
        ledger.entry_hash(charge.drawing_sequence) == charge.drawing_hash
    )
    if not drew or any(left.charge_id == charge.charge_id for left in ledger.unfinished(charge.store_id)):
        message = (
            f"{charge.label} was staged, and the ledger does not have that: it was replaced by an older copy "
            "while this run went on. Nothing was put into the store; restore the newest copy"
        )
        raise LedgerCorruptError(message)


def stage_files(ledger: Ledger, charge: Charge, entry: SpoolEntry, manifest: bytes) -> Charge:
    """Stage what is complete in a spool; a ledger on a server keeps the files too, where they are not many.

    They are paid for from here on, so that they need no more secrecy than the release. Where they cannot be
    read, perhaps because another run took the charge over and published them, the ledger keeps none.

    Raises
    ------
    ChargeLostError, LedgerError
    """
    files = parse_manifest(manifest).files
    data: dict[str, bytes] = {}
    if sum(file.size for file in files) <= ledger.most_kept:
        with suppress(SpoolError):
            data = {file.path: entry.data(file.path, file.size) for file in files}
    return ledger.stage(charge, manifest, files=data) if data else ledger.stage(charge, manifest)


def require_files(ledger: Ledger, store: ReleaseStore, spool: Spool | None, charge: Charge) -> None:
    """Refuse a staged charge whose files neither the store nor the ledger has.

    Raises
    ------
    SpoolElsewhereError, StoreError, LedgerError
    """
    names = ledger.staged_names(charge)
    for file in files_of(charge):
        if file.path not in names and _standing(store, charge, file) is None:
            raise elsewhere(spool, charge)


def put_files(ledger: Ledger, store: ReleaseStore, spool: Spool | None, charge: Charge) -> None:
    """Have every file of a staged charge stand in the store, each with its hash: from spool or ledger.

    Raises
    ------
    SpoolElsewhereError, SpoolError, StoreError
        As :func:`publish`; no manifest was put.
    """
    entry = kept_files(spool, charge)
    for file in files_of(charge):
        data = _of_ledger(ledger, charge, file) if entry is None else entry.data(file.path, file.size)
        if data is not None:
            with suppress(ObjectExistsError):  # then what stands there is read back
                store.objects.put_new(_key(charge, file), data)
                continue
        if _standing(store, charge, file) is None:
            raise elsewhere(spool, charge)


def _key(charge: Charge, file: FileEntry) -> str:
    return f"{charge.name}/{charge.edition}/{charge.release_id}/{file.path}"


def _is_whole(data: bytes, file: FileEntry) -> bool:
    return (len(data), hashlib.sha256(data).hexdigest()) == (file.size, file.sha256)


def _of_ledger(ledger: Ledger, charge: Charge, file: FileEntry) -> bytes | None:
    """Return a file that the ledger keeps; one that is not what the manifest states is never put."""
    data = ledger.staged_file(charge, file.path)
    if data is None or _is_whole(data, file):
        return data
    message = f"the ledger's {file.path} of {charge.label} is damaged: it is not published"
    raise LedgerError(message)


def _standing(store: ReleaseStore, charge: Charge, file: FileEntry) -> bytes | None:
    """Return what stands at a file's key, if anything does.

    Raises
    ------
    StoreError
        Where it is not the file that the manifest states.
    """
    key = _key(charge, file)
    data = store.objects.get(key, at_most=file.size + 1)
    if data is None or _is_whole(data, file):
        return data
    message = f"another file than that of {charge.label} stands at {store.uri}/{key}: it is left as it is"
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
