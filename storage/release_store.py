"""The release store: where releases are published once, and opened by anyone who can read them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import (
    ObjectExistsError,
    ReleaseMissingError,
    StoreError,
    UsageError,
    WrongStoreError,
)
from suffice.pipeline.release import NoisyStatistic, Release
from suffice.pipeline.sensitivity import Design
from suffice.storage import canonical_json
from suffice.storage.local_files import LocalFiles, ObjectStore, local_path
from suffice.storage.manifest import LARGEST_MANIFEST, DataFile, is_tombstone, tombstone
from suffice.storage.manifest_model import FORMAT_VERSION
from suffice.storage.parquet import expand_groups
from suffice.storage.place import MANIFEST, Place

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_STORE = "releases"
STORE = "suffice.json"

_SMALL = 4096
"""Bytes that hold any ``suffice.json`` and any tombstone."""

_NAME = re.compile(r"([a-z0-9][a-z0-9_.-]{0,62})(?:@([a-z0-9-]{1,32}))?", re.ASCII)
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRelease:
    """A published release, as a store's listing shows it."""

    name: str
    window: str
    release_id: str
    uri: str


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

    def release_uri(self, name: str, window: str, release_id: str) -> str:
        """Return where a release stands, or would stand."""
        return f"{self.uri}/{name}/{window}/{release_id}"

    def write_data(
        self, name: str, window: str, release_id: str, statistic: str, data: bytes, *, rows: int
    ) -> DataFile:
        """Write one data file, create-only; no reader sees it before the manifest.

        Raises
        ------
        ObjectExistsError
            Where the file exists.
        """
        path = f"{statistic}.parquet"
        self.objects.put_new(f"{name}/{window}/{release_id}/{path}", data)
        return DataFile(
            statistic=statistic,
            path=path,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            rows=rows,
        )

    def put_manifest(self, name: str, window: str, release_id: str, data: bytes) -> None:
        """Publish a release: put its manifest, create-only.

        Raises
        ------
        ObjectExistsError
            Where a manifest or a tombstone stands there already.
        """
        self.objects.put_new(f"{name}/{window}/{release_id}/{MANIFEST}", data)

    def put_tombstone(self, name: str, window: str, release_id: str) -> None:
        """Put a tombstone where the manifest would stand, so that it can never be published.

        Raises
        ------
        ObjectExistsError
            Where a manifest or a tombstone stands there already.
        """
        self.put_manifest(name, window, release_id, tombstone(release_id))

    def read_manifest(self, name: str, window: str, release_id: str) -> bytes | None:
        """Return what stands at a manifest's key, a tombstone too, or None."""
        return self.objects.get(f"{name}/{window}/{release_id}/{MANIFEST}", at_most=LARGEST_MANIFEST)

    def releases(self, name: str | None = None) -> tuple[ListedRelease, ...]:
        """Return the published releases of `name`, or of all, by name and window; tombstones are none."""
        listed = []
        for key in self.objects.keys(f"{name}/" if name else ""):
            parts = key.split("/")
            if len(parts) == 4 and parts[3] == MANIFEST and not self._is_tombstone(key):
                uri = self.release_uri(*parts[:3])
                listed.append(ListedRelease(name=parts[0], window=parts[1], release_id=parts[2], uri=uri))
        return tuple(sorted(listed, key=lambda release: (release.name, release.window)))

    def windows(self, name: str) -> tuple[str, ...]:
        """Return the windows that have a release of `name`, in window order."""
        return tuple(sorted({release.window for release in self.releases(name)}))

    def find(self, name: str, window: str | None = None) -> ListedRelease:
        """Return the release of a name in a window, or in its last window.

        Raises
        ------
        ReleaseMissingError
            Where there is none.
        StoreError
            Where several stand there, as after copying stores together.
        """
        releases = self.releases(name)
        if not releases:
            known = ", ".join(sorted({release.name for release in self.releases()})) or "none"
            message = f"the store {self.uri} has no release named {name}; its releases: {known}"
            raise ReleaseMissingError(message)
        if window is None:
            window = max(release.window for release in releases)
        found = [release for release in releases if release.window == window]
        if not found:
            windows = sorted({release.window for release in releases})
            message = f"{name} has no release in window {window}: it has {windows[0]} to {windows[-1]}"
            raise ReleaseMissingError(message)
        if len(found) > 1:
            message = f"{len(found)} releases stand at {self.uri}/{name}/{window}: name one by its path"
            raise StoreError(message)
        return found[0]

    def _is_tombstone(self, key: str) -> bool:
        data = self.objects.get(key, at_most=_SMALL)
        return data is not None and is_tombstone(data)


def open_store(uri: str, *, ledger_id: str | None = None, create: bool = False) -> ReleaseStore:
    """Open a release store.

    Parameters
    ----------
    uri : str
        A local path, or a ``file://`` URI.
    ledger_id : str, optional
        On the trusted side: the ledger that the store must belong to.
    create : bool
        Make the store, for `ledger_id`, where none stands there.

    Raises
    ------
    UsageError
        Where `uri` is of no known kind.
    WrongStoreError
        Where the store belongs to another ledger.
    StoreError
        Where there is no store, or it cannot be read or written.
    """
    root = local_path(uri)
    files = LocalFiles(root)
    data = files.get(STORE, at_most=_SMALL)
    if data is None and create:
        if ledger_id is None:
            message = "a store is made for a ledger: give its ledger_id"
            raise ValueError(message)
        data = _make_store(files, ledger_id)
    if data is None:
        message = f"there is no release store at {root}: suffice release makes one"
        raise StoreError(message)
    identity = _read_identity(data, root)
    if ledger_id is not None and identity["ledger_id"] != ledger_id:
        message = (
            f"the store {root} belongs to ledger {identity['ledger_id']}, not to this ledger, {ledger_id}: "
            "name another --store"
        )
        raise WrongStoreError(message)
    return ReleaseStore(
        objects=files, uri=str(root), store_id=identity["store_id"], ledger_id=identity["ledger_id"]
    )


def open_release(reference: str, *, store: str | None = None) -> Release:
    """Open a published release; consumers start here.

    Every file's size and SHA-256 are checked before it is parsed.

    Parameters
    ----------
    reference : str
        A path or URI of a release's directory, or of its manifest; or ``NAME`` or ``NAME@WINDOW`` in
        the store, the last window where none is named. A relative path has a ``/``, as ``./NAME``.
    store : str, optional
        URI of the store; ``SUFFICE_STORE`` or ``releases`` otherwise.

    Raises
    ------
    UsageError
        Where `reference` can be no release.
    ReleaseMissingError
        Where no release stands there.
    ReleaseCorruptError
        Where a byte of it is not what was published.
    """
    place = locate(reference, store)
    data, manifest = place.manifest()
    domains = manifest.domains()
    keys = expand_groups(domains)
    statistics = {}
    for index, entry in enumerate(manifest.statistics):
        plan = entry.plan()
        statistics[entry.name] = NoisyStatistic(
            plan=plan,
            values=place.values(manifest, index),
            groups=keys,
            public_n=manifest.n if plan.design is Design.MINIMAL else None,
            max_total_rows=manifest.max_total_rows,
        )
    return Release(
        name=manifest.name,
        dataset=manifest.dataset,
        window=manifest.window,
        release_id=manifest.release_id,
        uri=place.uri,
        epsilon=manifest.epsilon,
        neighboring=manifest.neighboring,
        unit=manifest.unit,
        public_n=manifest.n,
        statistics=statistics,
        manifest=json.loads(data),
    )


def locate(reference: str, store: str | None = None) -> Place:
    """Find where a release should stand; see :func:`open_release`.

    Raises
    ------
    UsageError, ReleaseMissingError, StoreError
    """
    if not _is_path(reference):
        named = _NAME.fullmatch(reference)
        if named is None:
            message = f"{reference!r} is neither NAME[@WINDOW] nor a path: write a relative path as ./..."
            raise UsageError(message)
        opened = open_store(store or os.environ.get("SUFFICE_STORE") or DEFAULT_STORE)
        reference = opened.find(*named.groups()).uri
    directory = local_path(reference)
    if directory.name == MANIFEST:
        directory = directory.parent
    owner = _owner(directory)
    name, window, release_id = directory.parts[-3:] if owner else ("", "", "")
    return Place(
        objects=LocalFiles(directory),
        uri=str(directory),
        key=(name, window, release_id) if owner else None,
        store=owner,
    )


def _is_path(reference: str) -> bool:
    return "/" in reference or reference in {".", "..", MANIFEST}


def _owner(directory: Path) -> ReleaseStore | None:
    """Return the store that a directory stands in as a release, if it does."""
    root = directory.parents[2] if len(directory.parents) > 2 else directory
    return open_store(str(root)) if (root / STORE).is_file() else None


def _make_store(files: LocalFiles, ledger_id: str) -> bytes | None:
    identity = {"format_version": FORMAT_VERSION, "ledger_id": ledger_id, "store_id": secrets.token_hex(16)}
    with contextlib.suppress(ObjectExistsError):  # another run of some ledger was first: its file counts
        files.put_new(STORE, canonical_json.encode(identity))
    return files.get(STORE, at_most=_SMALL)


def _read_identity(data: bytes, root: Path) -> dict[str, str]:
    try:
        identity = canonical_json.decode(data)
    except ValueError:
        identity = None
    if isinstance(identity, dict) and identity.get("format_version", FORMAT_VERSION) != FORMAT_VERSION:
        message = f"the store {root} has a format that this suffice does not know: upgrade it"
        raise StoreError(message)
    if (
        not isinstance(identity, dict)
        or identity.keys() != {"format_version", "ledger_id", "store_id"}
        or not all(_ID.fullmatch(str(identity[key])) for key in ("ledger_id", "store_id"))
    ):
        message = f"{root / STORE} is corrupt: it does not say which ledger the store belongs to"
        raise StoreError(message)
    return identity
