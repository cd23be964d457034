"""The folder of publications in a store: looked up by request, written create-only, the manifest last.

Nothing here reads or writes outside of ``publications/``: not even ``suffice.json``. So whoever publishes
needs no right to anything else there, and the store may be one that holds no release at all.

Whoever may write to a folder of publications can leave a part there that has its name and its hash, and
wrong numbers; whoever publishes after that would sign them. So a publisher that signs goes on from parts
that have a receipt: a file of the same folder, signed with the publisher's key, that names one part by its
content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.errors import (
    ObjectExistsError,
    PublicationCorruptError,
    PublicationMissingError,
    SignatureError,
    StoreError,
    UsageError,
)
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.objects.address import Address, read_address
from suffice.storage.objects.object_store import ONCE, check_create_only, patiently
from suffice.storage.publications.publication import (
    LARGEST_FILE,
    LARGEST_PUBLICATION,
    MANIFEST,
    PUBLICATIONS,
    RECEIPT,
    Publication,
    PublishedFile,
    file_path,
    is_publication_id,
    parse_publication,
    read_path,
)
from suffice.storage.releases.store_identity import KEY
from suffice.storage.signatures.signing import (
    PART,
    PUBLICATION,
    check_signature,
    is_signature_value,
    pinned_publication_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from suffice.storage.objects.object_store import ObjectStore, Patience
    from suffice.storage.signatures.signing import KeyReference, PublicKey, Signer

_SIGNED = {"algorithm", "key_id", "value"}


def put_receipt(store: PublicationStore, publication_id: str, file: PublishedFile, signer: Signer) -> None:
    """Write that this publisher has written a part.

    Raises
    ------
    PublicationCorruptError, StoreError
        As :meth:`PublicationStore.put_file`.
    """
    content = _content(publication_id, file)
    signed = {**content, "signature": signer.sign(content, PART)}
    store.put_file(publication_id, RECEIPT, canonical_json.encode(signed))


def with_receipts(store: PublicationStore, publication_id: str, signer: Signer | None) -> list[PublishedFile]:
    """Return the whole files of a folder that a publisher may go on from.

    Of one that signs, those of which a receipt says that it has written them itself; of one that does not,
    all: nobody vouches for what it publishes.

    Raises
    ------
    StoreError
        Where a file cannot be read.
    """
    standing = list(store.files(publication_id))
    if signer is None:
        return standing
    signed = [
        content
        for file in standing
        if file.name == RECEIPT
        and (content := _read(store.read_file(publication_id, file.path) or b"", signer)) is not None
    ]
    return [file for file in standing if _content(publication_id, file) in signed]


def _content(publication_id: str, file: PublishedFile) -> dict[str, Any]:
    return {"publication_id": publication_id, "path": file.path, "sha256": file.sha256, "signature": None}


def _read(data: bytes, signer: Signer) -> dict[str, Any] | None:
    """Return what a receipt of this publisher says; None of anything else."""
    try:
        content: Any = canonical_json.decode(data)
        signature = content["signature"]
        if signature.keys() != _SIGNED or not is_signature_value(signature["value"]):
            return None
        check_signature(content, [signer.public_key], PART)
    except (ValueError, TypeError, KeyError, AttributeError, SignatureError):
        return None
    return {**content, "signature": None}


def holds_store(folder: Path) -> bool:
    """Tell whether a folder is a store of releases, or the one in which publications stand."""
    return (folder / KEY).exists() or holds_publications(folder)


def holds_publications(folder: Path) -> bool:
    """Tell whether a folder is the one in which publications stand: by its name and its content."""
    if folder.name != PUBLICATIONS:
        return False
    try:
        return any(map(is_publication_id, os.listdir(folder)))  # noqa: PTH208 - names, and no paths
    except OSError:
        return False


def check_is_there(store: PublicationStore) -> None:
    """Refuse a place where there is neither a publication nor a store of releases.

    A place whose publications alone may be read is not refused: what stands beside them is not known.

    Raises
    ------
    StoreError
    """
    if store.ids():
        return
    place = read_address(store.uri).parent
    identity = b"unknown"
    with contextlib.suppress(StoreError):
        identity = place.objects().get(KEY, at_most=1) or b""
    if not identity:
        message = (
            f"there is no store at {place.uri}, neither of releases nor of publications: check how it is "
            "written; suffice publish makes the first publication"
        )
        raise StoreError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationStore:
    """The publications of a store.

    Attributes
    ----------
    uri : str
        Of the folder ``publications``; never holds credentials.
    keys : tuple of PublicKey, optional
        One of these must have signed what is found.
    patience : Patience
        With a store that fails while something is written.
    """

    uri: str
    objects: ObjectStore = field(repr=False)
    keys: tuple[PublicKey, ...] | None = None
    patience: Patience = ONCE

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        *,
        publication_keys: Sequence[KeyReference] | None = None,
        patience: Patience = ONCE,
    ) -> PublicationStore:
        """Open the publications of a store; nothing is read or written yet.

        Parameters
        ----------
        uri : str or path
            Of the store: a local path, or a URI of ``file://``, ``s3://``, ``gs://`` or ``az://``.
        publication_keys : sequence of str or path, optional
            Demand a signature by one of these keys, as :func:`suffice.open_release` does of releases; where
            left out, by one in the files that ``SUFFICE_PUBLICATION_PUBLIC_KEYS`` names.
        patience : Patience

        Raises
        ------
        UsageError
            Where `uri` is of no known kind, may hold credentials, or there is no key.
        StoreError
            Where the environment's settings for a bucket cannot be used.
        """
        store = read_address(os.fspath(uri))
        return _opened(
            Address(path=store.path / PUBLICATIONS, bucket=store.bucket),
            pinned_publication_keys(publication_keys),
            patience,
        )

    def check_create_only(self) -> None:
        """Ask the store whether it creates objects only once, by an object below ``publications/``.

        Raises
        ------
        StoreError
            Where it replaces objects, or cannot be written.
        """
        patiently(
            lambda: check_create_only(self.objects, self.uri), self.patience, "nothing was published yet"
        )

    def find(self, publication_id: str) -> Publication | None:
        """Return a publication, or None where it has no manifest yet.

        Raises
        ------
        UsageError
            Where the id is none.
        PublicationCorruptError, SignatureError
            Where what stands there is not what was published, or by nobody who may.
        StoreError
            Where it cannot be read.
        """
        self._check_id(publication_id)
        data = patiently(
            lambda: self.objects.get(f"{publication_id}/{MANIFEST}", at_most=LARGEST_PUBLICATION + 1),
            self.patience,
            "not looked up yet",
        )
        if data is None:
            return None
        stated = parse_publication(data)
        uri = f"{self.uri}/{publication_id}"
        if stated.publication_id != publication_id:
            message = f"the manifest at {uri} belongs to another publication: {stated.publication_id}"
            raise PublicationCorruptError(message)
        publication = Publication(
            publication_id=publication_id, uri=uri, stated=stated, data=data, objects=self.objects
        )
        if self.keys is not None:
            check_signature(publication.manifest, self.keys, PUBLICATION)
        return publication

    def put_file(self, publication_id: str, name: str, content: bytes | Iterable[bytes]) -> PublishedFile:
        """Write a file, named by its content; one that stands there already is left as it is.

        Parameters
        ----------
        publication_id : str
        name : str
            1 to 100 letters, digits and ``_ . -``; must not hold what others wrote, as keys.
        content : bytes or iterable of bytes
            At most `LARGEST_FILE` bytes; held in memory until it is written.

        Raises
        ------
        UsageError
            Where the id or the name is none, or the file is empty or too large.
        PublicationCorruptError
            Where other bytes stand there: what was written before was damaged.
        StoreError
            Where it cannot be written.
        """
        self._check_id(publication_id)
        data = content if isinstance(content, bytes) else b"".join(content)
        if not 0 < len(data) <= LARGEST_FILE:
            message = f"the file {name!r} has {len(data)} bytes: 1 to {LARGEST_FILE} can be published"
            raise UsageError(message)
        sha256 = hashlib.sha256(data).hexdigest()
        path = file_path(name, sha256)
        key = f"{publication_id}/{path}"

        def put() -> None:
            try:
                self.objects.put_new(key, data)
            except ObjectExistsError:
                if self.objects.get(key, at_most=len(data) + 1) != data:
                    message = (
                        f"other bytes than {path} names stand at {self.uri}/{key}: remove them, and "
                        "publish again"
                    )
                    raise PublicationCorruptError(message) from None

        patiently(put, self.patience, "not published yet")
        return PublishedFile(name=name, path=path, size=len(data), sha256=sha256)

    def files(self, publication_id: str) -> Iterator[PublishedFile]:
        """Give the whole files that stand in a folder, by path: what an earlier run left can be used again.

        Each is read and checked against its name, one at a time; what does not fit is left out.

        Raises
        ------
        UsageError, StoreError
            As :meth:`find`.
        """
        for path in self._paths(publication_id):
            named = read_path(path)
            data = None if named is None else self.read_file(publication_id, path)
            if named is None or not data:
                continue
            sha256 = hashlib.sha256(data).hexdigest()
            yield PublishedFile(name=named[1], path=path, size=len(data), sha256=sha256)

    def read_file(self, publication_id: str, path: str) -> bytes | None:
        """Return the bytes of a file by its path; None where none stand there, or others than it names."""
        self._check_id(publication_id)
        named = read_path(path)
        if named is None:
            return None
        data = patiently(
            lambda: self.objects.get(f"{publication_id}/{path}", at_most=LARGEST_FILE + 1),
            self.patience,
            "not read yet",
        )
        if data is None or len(data) > LARGEST_FILE:
            return None
        return data if hashlib.sha256(data).hexdigest().startswith(named[0]) else None

    def publish(self, publication_id: str, manifest: bytes) -> Publication:
        """Put the manifest, once every file that it names stands there; return what is published then.

        Of two writers the first wins: the other gets the first's publication.

        Parameters
        ----------
        publication_id : str
        manifest : bytes
            From :func:`suffice.storage.publications.publication.compose_publication`.

        Raises
        ------
        PublicationCorruptError
            Where the manifest is none, of another publication, or names a file that does not stand there.
        StoreError
            Where it cannot be written; then nothing is published.
        """
        stated = parse_publication(manifest)
        if stated.publication_id != publication_id:
            message = f"the manifest is of the publication {stated.publication_id}, not of {publication_id}"
            raise PublicationCorruptError(message)
        missing = self._missing(publication_id, {file.path for file in stated.files})
        if missing:
            message = f"{missing[0]} does not stand at {self.uri}/{publication_id}: nothing was published"
            raise PublicationCorruptError(message)

        def put() -> None:
            try:
                self.objects.put_new(f"{publication_id}/{MANIFEST}", manifest)
            except ObjectExistsError:
                return  # another was first, or this one was and lost the answer

        patiently(put, self.patience, "not published yet")
        publication = self.find(publication_id)
        if publication is None:
            message = f"the store does not show the manifest that was written to {self.uri}/{publication_id}"
            raise StoreError(message)
        return publication

    def ids(self) -> tuple[str, ...]:
        """Return the ids that have a folder, sorted, by one listing; a publication may be unfinished."""
        names = patiently(lambda: self.objects.names(""), self.patience, "not listed yet")
        return tuple(name for name in names if is_publication_id(name))

    def all(self) -> Iterator[Publication]:
        """Give every publication, by id.

        Raises
        ------
        PublicationCorruptError, SignatureError, StoreError
            As :meth:`find`, at the first that cannot be read: whoever goes on asks for each of :meth:`ids`.
        """
        for publication_id in self.ids():
            publication = self.find(publication_id)
            if publication is not None:
                yield publication

    def _missing(self, publication_id: str, paths: set[str]) -> list[str]:
        """Return what does not stand there; listings may lag, so that what one lacks is asked for by name."""

        def stands(path: str) -> bool:
            return self.objects.get(f"{publication_id}/{path}", at_most=1) is not None

        unlisted = sorted(paths - set(self._paths(publication_id)))
        return [
            path
            for path in unlisted
            if not patiently(partial(stands, path), self.patience, "not published yet")
        ]

    def _paths(self, publication_id: str) -> list[str]:
        """Return what stands in a folder, by one listing."""
        self._check_id(publication_id)
        return patiently(lambda: self.objects.names(f"{publication_id}/"), self.patience, "not listed yet")

    def _check_id(self, publication_id: str) -> None:
        if not is_publication_id(publication_id):
            message = f"{publication_id!r} is no id of a publication: 32 hex digits"
            raise UsageError(message)


def open_publication(
    reference: str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | None = None,
    publication_keys: Sequence[KeyReference] | None = None,
) -> Publication:
    """Open a publication by the path or URI of its folder or manifest, or by its id in a store.

    Parameters
    ----------
    reference : str or path
    store : str or path, optional
        Where an id is looked for; ``SUFFICE_STORE`` or ``releases`` otherwise.
    publication_keys : sequence of str or path, optional
        As for :meth:`PublicationStore.open`.

    Raises
    ------
    UsageError
        Where `reference` can be no publication.
    PublicationMissingError
        Where none stands there.
    PublicationCorruptError, SignatureError, StoreError
        As :meth:`PublicationStore.find`.
    """
    text = os.fspath(reference)
    if is_publication_id(text):
        place = store or os.environ.get("SUFFICE_STORE") or "releases"
        publications, wanted = PublicationStore.open(place, publication_keys=publication_keys), text
    else:
        located = locate_publication(text)
        if located is None:
            message = f"{text!r} is no publication: name its folder below {PUBLICATIONS}/, or its id, whole"
            raise UsageError(message)
        address, wanted = located
        publications = _opened(address, pinned_publication_keys(publication_keys), ONCE)
    publication = publications.find(wanted)
    if publication is None:
        message = f"there is no publication at {publications.uri}/{wanted}: it has no manifest"
        raise PublicationMissingError(message)
    return publication


def locate_publication(reference: str) -> tuple[Address, str] | None:
    """Return the folder of publications and the id that a path or URI names; None where it names none."""
    if "/" not in reference:
        return None
    address = read_address(reference)
    if address.path.name == MANIFEST:
        address = address.parent
    if address.parent.path.name != PUBLICATIONS or not is_publication_id(address.path.name):
        return None
    return address.parent, address.path.name


def _opened(address: Address, keys: tuple[PublicKey, ...] | None, patience: Patience) -> PublicationStore:
    return PublicationStore(uri=address.uri, objects=address.objects(), keys=keys, patience=patience)
