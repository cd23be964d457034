"""The release store: where releases are published once, and opened by anyone who can read them."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import ReleaseMissingError, ReleaseWithdrawnError, StoreError, UsageError
from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.spec.windows_and_amendments import edition, read_edition
from suffice.storage.objects.address import read_address
from suffice.storage.objects.object_store import check_create_only_by
from suffice.storage.releases.location import MANIFEST, Location, is_path
from suffice.storage.releases.manifest import LARGEST_TOMBSTONE, DataFile, is_tombstone, tombstone
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST
from suffice.storage.releases.store_identity import KEY, claim_store, read_identity
from suffice.storage.releases.withdrawal import WITHDRAWN
from suffice.storage.signatures.signing import check_signature, pinned_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.storage.objects.address import Address
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.store_identity import StoreIdentity
    from suffice.storage.signatures.signing import KeyReference

DEFAULT_STORE = "releases"
LATEST = "latest"
"""The last window of a name, where one is to be named."""
_MOST_NAMED = 5
_MOST_COMPARED = 10_000

_NAME = re.compile(r"([a-z0-9][a-z0-9_.-]{0,62})(?:@([A-Za-z0-9.-]{1,36}))?", re.ASCII)
_RELEASE_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRelease:
    """A published release, as a store's listing shows it."""

    name: str
    window: str
    amendment: int
    release_id: str
    uri: str

    @property
    def edition(self) -> str:
        """The window, with the number of an amendment."""
        return edition(self.window, self.amendment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStore:
    """A store of releases, belonging to one ledger.

    Attributes
    ----------
    objects : ObjectStore
    uri : str
        Absolute; never holds credentials.
    store_id, ledger_id : str
        32 hex digits each.
    """

    objects: ObjectStore
    uri: str
    store_id: str
    ledger_id: str

    def release_uri(self, name: str, edition: str, release_id: str) -> str:
        """Return where a release stands, or would stand."""
        return f"{self.uri}/{name}/{edition}/{release_id}"

    def check_create_only(self) -> None:
        """Ask the store whether it creates objects only once; see :func:`open_store`.

        Raises
        ------
        StoreError
            Where it replaces objects, or cannot be written.
        """
        check_create_only_by(self.objects, self.uri, KEY)

    def write_data(
        self, name: str, edition: str, release_id: str, statistic: str, data: bytes, *, rows: int
    ) -> DataFile:
        """Write one data file, create-only; no reader sees it before the manifest.

        Raises
        ------
        ObjectExistsError
            Where the file exists.
        """
        path = f"{statistic}.parquet"
        self.objects.put_new(f"{name}/{edition}/{release_id}/{path}", data)
        return DataFile(
            statistic=statistic,
            path=path,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            rows=rows,
        )

    def put_manifest(self, name: str, edition: str, release_id: str, data: bytes) -> None:
        """Publish a release: put its manifest, create-only.

        Raises
        ------
        ObjectExistsError
            Where a manifest or a tombstone stands there already.
        """
        self.objects.put_new(f"{name}/{edition}/{release_id}/{MANIFEST}", data)

    def put_tombstone(self, name: str, edition: str, release_id: str) -> None:
        """Put a tombstone where the manifest would stand, so that it can never be published.

        Raises
        ------
        ObjectExistsError
            Where a manifest or a tombstone stands there already.
        """
        self.put_manifest(name, edition, release_id, tombstone(release_id))

    def read_manifest(self, name: str, edition: str, release_id: str) -> bytes | None:
        """Return what stands at a manifest's key, a tombstone too, or None."""
        return self.objects.get(f"{name}/{edition}/{release_id}/{MANIFEST}", at_most=LARGEST_MANIFEST)

    def remove_data(self, name: str, edition: str, release_id: str) -> tuple[str, ...]:
        """Remove the data files that an abandoned charge left, and return their keys.

        Raises
        ------
        StoreError
            Where no tombstone stands there, so that the files belong to a release or may yet; or where
            they cannot be removed.
        """
        standing = self.read_manifest(name, edition, release_id)
        if standing is None or not is_tombstone(standing):
            message = (
                f"there is no tombstone at {self.release_uri(name, edition, release_id)}: its files are kept"
            )
            raise StoreError(message)
        prefix = f"{name}/{edition}/{release_id}/"
        return tuple(self.objects.sweep(prefix, keep=prefix + MANIFEST))

    def releases(self, name: str | None = None) -> tuple[ListedRelease, ...]:
        """Return the published releases of `name`, or of all, by name and edition; tombstones are none."""
        return tuple(entry for entry in self._manifests(name) if self._is_published(entry))

    def standing(self, name: str) -> dict[tuple[str, str], bool]:
        """Return edition and release id of all manifests and tombstones of a name, by one listing.

        True where something stands beside it that says it was withdrawn: readers are refused.
        """
        keys = self.objects.keys(f"{name}/")
        withdrawn = {key.removesuffix(WITHDRAWN) for key in keys if key.endswith(f"/{WITHDRAWN}")}
        return {
            (edition, release_id): f"{name}/{edition}/{release_id}/" in withdrawn
            for _, edition, release_id, last in (key.split("/") for key in keys if key.count("/") == 3)
            if last == MANIFEST
        }

    def windows(self, name: str) -> tuple[str, ...]:
        """Return the windows that have a release of `name`, in window order."""
        return tuple(sorted({release.window for release in self.releases(name)}))

    def find(self, name: str, wanted: str | None = None) -> ListedRelease:
        """Return the release of a name in a window, or in its last window: the newest edition of it.

        A listing of the name's editions, and one of each edition that is tried: no more, whatever else
        stands in the store.

        Parameters
        ----------
        name : str
        wanted : str, optional
            A window; or one edition of it, as ``2013-01.0`` for its first release; ``latest`` is the last.

        Raises
        ------
        ReleaseMissingError
            Where there is none; the text names what is spelt alike.
        StoreError
            Where several stand there, as after copying stores together.
        """
        wanted = None if wanted == LATEST else wanted
        editions = self._editions(name)
        window, amendment = (None, None) if wanted is None else read_edition(wanted) or (wanted, None)
        for candidate in sorted(editions, reverse=True):
            if window not in {None, candidate[0]} or amendment not in {None, candidate[1]}:
                continue
            place = f"{name}/{edition(*candidate)}"
            entries = [
                self._listed(name, edition(*candidate), release_id)
                for release_id in self.objects.names(f"{place}/")
                if _RELEASE_ID.fullmatch(release_id)
            ]
            published = [entry for entry in entries if self._is_published(entry)]
            if len(published) > 1:
                message = f"{len(published)} releases stand at {self.uri}/{place}: name one by its path"
                raise StoreError(message)
            if published:
                return published[0]
        raise self.missing(name, wanted, [edition(*named_edition) for named_edition in sorted(editions)])

    def _editions(self, name: str) -> set[tuple[str, int]]:
        """Return the windows of a name that have a directory, each with the number of its amendment."""
        directories = self.objects.names(f"{name}/")
        editions_by_directory = {directory: read_edition(directory) for directory in directories}
        return {
            (read[0], read[1] or 0)
            for directory, read in editions_by_directory.items()
            if read is not None and edition(read[0], read[1] or 0) == directory
        }

    def _listed(self, name: str, directory: str, release_id: str) -> ListedRelease:
        window, amendment = read_edition(directory) or (directory, None)
        return ListedRelease(
            name=name,
            window=window,
            amendment=amendment or 0,
            release_id=release_id,
            uri=self.release_uri(name, directory, release_id),
        )

    def _manifests(self, name: str | None) -> list[ListedRelease]:
        """Return where manifests or tombstones stand, by name and edition."""
        listed = []
        for key in self.objects.keys(f"{name}/" if name else ""):
            parts = key.split("/")
            if len(parts) == 4 and parts[3] == MANIFEST:
                listed.append(self._listed(*parts[:3]))
        return sorted(listed, key=lambda entry: (entry.name, entry.window, entry.amendment))

    def _is_published(self, entry: ListedRelease) -> bool:
        key = f"{entry.name}/{entry.edition}/{entry.release_id}/{MANIFEST}"
        data = self.objects.get(key, at_most=LARGEST_TOMBSTONE)
        return data is not None and not is_tombstone(data)

    def missing(
        self, name: str, wanted: str | None = None, editions: Sequence[str] = ()
    ) -> ReleaseMissingError:
        """Return the error of a name, or a window, that has no release; it says what is spelt alike."""
        if wanted is not None and editions:
            return ReleaseMissingError(f"{name} has no release in window {wanted}{_alike(wanted, editions)}")
        names = [entry for entry in self.objects.names("") if _NAME.fullmatch(entry)]
        return ReleaseMissingError(f"the store {self.uri} has no release named {name}{_alike(name, names)}")


def _alike(wanted: str | None, known: Sequence[str]) -> str:
    """Name what is spelt much as what was asked for: a store may hold very many names."""
    near = difflib.get_close_matches(wanted or "", known[-_MOST_COMPARED:], n=_MOST_NAMED)
    return f"; spelt alike: {', '.join(near)}" if near else ""


def open_store(
    uri: str, *, ledger_id: str | None = None, create: bool = False, probe: bool = True
) -> ReleaseStore:
    """Open a release store.

    Parameters
    ----------
    uri : str
        A local path, or a URI of ``file://``, ``s3://``, ``gs://`` or ``az://`` without credentials.
    ledger_id : str, optional
        For whoever will write: the ledger that the store must belong to. Then the store is also asked
        whether it creates objects only once, by writing one and removing it.
    create : bool
        Make the store, for `ledger_id`, where none stands there.
    probe : bool
        Ask a store that stands there already. Without, nothing is written to it yet, and whoever writes
        calls :meth:`ReleaseStore.check_create_only` first.

    Raises
    ------
    UsageError
        Where `uri` is of no known kind, or may hold credentials.
    WrongStoreError
        Where the store belongs to another ledger.
    StoreError
        Where there is no store, it cannot be read or written, or it replaces objects.
    """
    if create and ledger_id is None:
        message = "a store is made for a ledger: give its ledger_id"
        raise ValueError(message)
    address = read_address(uri)
    objects = address.objects()
    if ledger_id is None:
        identity = read_identity(objects, address.uri)
    else:
        identity = claim_store(objects, address.uri, ledger_id, create=create, probe=probe)
    if identity is None:
        message = (
            f"there is no release store at {address.uri}: suffice release makes one; where its suffice.json "
            "was lost, `suffice store adopt` puts it back"
        )
        raise StoreError(message)
    return _store(objects, address.uri, identity)


def open_release(
    reference: str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | None = None,
    public_keys: Sequence[KeyReference] | None = None,
    allow_withdrawn: bool = False,
) -> Release:
    """Open a published release; consumers start here.

    Nothing that it states is believed: what follows from its plan is computed again and compared, and a
    file's size, SHA-256 and layout are checked before a value is decoded.

    Parameters
    ----------
    reference : str or path
        A path of a release's directory, or of its manifest; its URI, or its URL, as ``https://...``; or
        ``NAME`` or ``NAME@WINDOW`` in the store, the last window where none is named, or ``latest``. Of a
        window that was amended, the newest amendment; ``NAME@WINDOW.0`` is its first release,
        ``NAME@WINDOW.1`` its first amendment. A relative path has a ``/``, as ``./NAME``.
    store : str or path, optional
        URI of the store; ``SUFFICE_STORE`` or ``releases`` otherwise.
    public_keys : sequence of str or path, optional
        Demand a signature by one of these keys: files, PEM texts or raw keys in hex. Where left out,
        by one in the files that ``SUFFICE_PUBLIC_KEYS`` names; where that is not set, by none.
    allow_withdrawn : bool
        Open a release also where it was withdrawn; :attr:`Release.withdrawn` says why it was.

    Raises
    ------
    UsageError
        Where `reference` can be no release, or `public_keys` holds no key.
    ReleaseMissingError
        Where no release stands there.
    ReleaseCorruptError
        Where a byte of it is not what was published.
    ReleaseWithdrawnError
        Where it was withdrawn: ``NAME`` and ``NAME@WINDOW`` never mean an older release in its place.
    SignatureError
        Where keys are demanded and none of them signed it.
    """
    pinned = pinned_keys(public_keys)
    # A path object is a path, also where its text could be a name.
    text = reference if isinstance(reference, str) else os.path.abspath(reference)  # noqa: PTH100
    location = locate(text, None if store is None else os.fspath(store))
    data, manifest = location.manifest()
    content = json.loads(data)
    if pinned is not None:
        check_signature(content, pinned)
    withdrawn = location.withdrawal(data, manifest, pinned)
    if withdrawn is not None and not allow_withdrawn:
        message = (
            f"{manifest.name}@{manifest.edition} (release {manifest.release_id}) was {withdrawn}; to read it "
            "all the same: --allow-withdrawn, or allow_withdrawn=True"
        )
        raise ReleaseWithdrawnError(message)
    about = location.wording(data, manifest, pinned).about
    statistics, sampled = location.statistics(manifest)
    return Release(
        name=manifest.name,
        dataset=manifest.dataset,
        window=manifest.window,
        release_id=manifest.release_id,
        uri=location.uri,
        loss=manifest.loss,
        neighboring=manifest.plan.neighboring,
        unit=manifest.plan.unit,
        public_n=manifest.n,
        noisy=statistics,
        sampled=sampled,
        manifest=content,
        withdrawn=withdrawn,
        about=about,
    )


def newer_edition(release: Release) -> ListedRelease | None:
    """Return the newest amendment of a release, in the store that it stands in; None where there is none.

    None too where the store lists nothing, as a website: whoever asks says that it is not known.

    Raises
    ------
    StoreError
        Where several releases stand in the place of one.
    """
    address = read_address(release.uri)
    if not address.is_listed:
        return None
    owner = _owner(address)
    newest = None if owner is None else owner.find(release.name, release.window)
    return newest if newest is not None and newest.amendment > release.amendment else None


def locate(reference: str, store: str | None = None) -> Location:
    """Find where a release should stand; see :func:`open_release`.

    Raises
    ------
    UsageError, ReleaseMissingError, StoreError
    """
    if not is_path(reference):
        named = _NAME.fullmatch(reference)
        if named is None:
            message = f"{reference!r} is neither NAME[@WINDOW] nor a path: write a relative path as ./..."
            raise UsageError(message)
        store = store or os.environ.get("SUFFICE_STORE") or DEFAULT_STORE
        place = read_address(store)
        if not place.is_listed:
            raise _not_by_name(place, named[1])
        opened = open_store(store)
        reference = opened.find(*named.groups()).uri
    address = read_address(reference)
    if address.path.name == MANIFEST:
        address = address.parent
    owner = _owner(address)
    name, window, release_id = address.path.parts[-3:] if owner else ("", "", "")
    return Location(
        objects=address.objects(),
        uri=address.uri,
        key=(name, window, release_id) if owner else None,
        store=owner,
    )


def _not_by_name(place: Address, name: str) -> StoreError:
    """Say how to open what stands on a website, where nothing can be looked up by its name."""
    if place.objects().get(MANIFEST, at_most=LARGEST_MANIFEST) is not None:
        return StoreError(f'{place.uri} is a release: pass it as the first argument, without "store"')
    return StoreError(
        f"a website lists nothing: give the URL of one release, as open_release("
        f'"{place.uri}/{name}/WINDOW/RELEASE_ID")'
    )


def _owner(address: Address) -> ReleaseStore | None:
    """Return the store that an address stands in as a release, if it does."""
    root = address.parent.parent.parent
    if len(address.path.parts) < 4:
        return None
    objects = root.objects()
    identity = read_identity(objects, root.uri)
    return _store(objects, root.uri, identity) if identity else None


def _store(objects: ObjectStore, uri: str, identity: StoreIdentity) -> ReleaseStore:
    return ReleaseStore(objects=objects, uri=uri, store_id=identity.store_id, ledger_id=identity.ledger_id)
