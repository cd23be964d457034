"""Every object of a store, verified: files against manifests, manifests and markers against a ledger.

A publication is verified by itself too: its manifest, signature and files, and what else its folder holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from suffice.errors import PublicationCorruptError, SignatureError
from suffice.pipeline.terms.declaration.documents import Compared, Count, printed
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.objects.object_store import is_left_probe
from suffice.storage.operations.markers import read_marker
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.publications.publication import PUBLICATIONS, RECEIPT, publication_of, read_path
from suffice.storage.publications.publication_store import PublicationStore
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.store_identity import KEY, is_rehearsed, marker_sequence, read_place
from suffice.storage.signatures.signing import signature_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.publications.publication import Publication
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.store_identity import Place
    from suffice.storage.signatures.signing import KeyReference, SignatureStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationVerification:
    """What a verification of a publication found.

    Attributes
    ----------
    problems : tuple of str
        One sentence each.
    files : int
        How many the manifest names.
    left : int
        Whole files that it does not name: another writer of the same request was first, or one began anew.
    signature : str
        As for a release.
    publication : Publication or None
        None where its manifest cannot be read.
    """

    problems: tuple[str, ...]
    files: Count
    left: Count
    signature: SignatureStatus
    publication: Publication | None

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def verify_publication(store: PublicationStore, publication_id: str) -> PublicationVerification:
    """Check every file of a publication; whatever bytes stand there, this returns.

    Parameters
    ----------
    store : PublicationStore
        Its keys are those that are demanded.
    publication_id : str

    Raises
    ------
    UsageError
        Where the id is none.
    StoreError
        Where the store cannot be read.
    """
    status: SignatureStatus = "not_checked"
    files = left = 0
    publication: Publication | None = None
    try:
        publication = store.find(publication_id)
    except (PublicationCorruptError, SignatureError) as error:
        problems = [str(error)]
    else:
        if publication is None:
            n_files = counted(len(store.objects.names(f"{publication_id}/")), "file")
            problems = [f"it has no manifest, so nothing was published: {n_files}; the same request goes on"]
        else:
            status = signature_status(publication.manifest, checked=store.keys is not None)
            files = len(publication.files)
            problems = list(_check_files(publication))
            strange, left = _look_around(store, publication)
            problems += strange
    return PublicationVerification(
        problems=tuple(problems), files=files, left=left, signature=status, publication=publication
    )


def _check_files(publication: Publication) -> Iterator[str]:
    for file in publication.files:
        try:
            publication.read(file.name)
        except PublicationCorruptError as error:
            yield str(error)


def _look_around(store: PublicationStore, publication: Publication) -> tuple[list[str], int]:
    """Name what no writer puts there, and count the whole files that the manifest does not name."""
    problems, left = [], 0
    named = {MANIFEST, *(file.path for file in publication.files)}
    prefix = f"{publication.publication_id}/"
    for key in store.objects.keys(prefix):
        path = key.removeprefix(prefix)
        if path in named:
            continue
        if read_path(path) is None:
            problems.append(f"{path!r} is beside the manifest, and is no published file")
        elif store.read_file(publication.publication_id, path) is None:
            problems.append(f"{path} holds other bytes than its name says")
        elif not path.endswith(f"-{RECEIPT}"):
            left += 1
    return problems, left


MOST_PROBLEMS = 1000
"""How many are kept: a store that is damaged all over needs no more."""


@printed("ok problems releases files tombstones markers withdrawn publications left_files leftovers ledger")
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreVerification:
    """What a verification of a store found.

    Attributes
    ----------
    problems : tuple of str
        One sentence each, at most `MOST_PROBLEMS` and one that says how many more.
    releases, files, tombstones, markers : int
        What was looked at: published releases, all of their files, and what else belongs to a store.
    withdrawn : int
        How many of the releases were withdrawn.
    publications, left_files : int
        Published posteriors; and files that belong to nothing and harm nothing: whole files in the folders
        of publications that no manifest names, as writers of the same request that were not first leave
        them, and probes of runs that were killed or may not delete.
    leftovers : tuple of str
        The keys of those probes, at most `MOST_PROBLEMS`; `suffice ledger recover` removes them when they are
        a day old.
    ledger_checked : bool
        Whether a ledger was compared, both ways.
    """

    problems: tuple[str, ...]
    releases: Count
    files: Count
    tombstones: Count
    markers: Count
    withdrawn: Count
    publications: Count
    left_files: Count
    leftovers: tuple[str, ...]
    ledger_checked: bool

    @property
    def ledger(self) -> Compared:
        """``checked``, or ``not_checked`` where none was given."""
        return "checked" if self.ledger_checked else "not_checked"

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def verify_store(
    store: ReleaseStore,
    *,
    ledger: Ledger | None = None,
    public_keys: Sequence[KeyReference] | None = None,
    publication_keys: Sequence[KeyReference] | None = None,
) -> StoreVerification:
    """Verify every file of every release and publication in a store, tombstones and markers; name strays.

    The store is listed once and read a file at a time: what is held in memory does not grow with it, unless
    a ledger is compared.

    Parameters
    ----------
    store : ReleaseStore
    ledger : Ledger, optional
        Also compare every release with its charge, and the ledger with the store.
    public_keys : sequence of str or path, optional
        As for :func:`suffice.open_release`.
    publication_keys : sequence of str or path, optional
        As for :meth:`suffice.storage.publications.publication_store.PublicationStore.open`.

    Raises
    ------
    UsageError
        Where `public_keys` holds no key.
    StoreError, LedgerError
        Where the store or the ledger cannot be read.
    """
    publications = PublicationStore.open(store.uri, publication_keys=publication_keys)
    tally = _Tally(store=store, ledger=ledger, public_keys=public_keys)
    for place, keys in groupby(store.objects.keys_after("", ""), _place_of):
        if place is None:
            for folder, inside in groupby(keys, publication_of):
                if folder is None:
                    for key in inside:
                        tally.stray_or_marker(key)
                else:
                    tally.publication(publications, folder)
        else:
            tally.release(place, [key.removeprefix(f"{place.key}/") for key in keys])
    if ledger is not None:
        tally.note(compare_with_store(ledger, store).problems)
    return tally.result()


def _place_of(key: str) -> Place | None:
    located = read_place(key)
    return located[0] if located else None


class _Tally:
    """What was found so far."""

    def __init__(
        self, *, store: ReleaseStore, ledger: Ledger | None, public_keys: Sequence[KeyReference] | None
    ) -> None:
        self.store = store
        self.ledger = ledger
        self.public_keys = public_keys
        self.problems: dict[str, None] = {}
        self.leftovers: list[str] = []
        self.n_more = 0
        self.releases = self.files = self.tombstones = self.markers = 0
        self.withdrawn = self.publications = self.left_files = 0

    def note(self, problems: Iterable[str]) -> None:
        """Keep problems, each once, as many as are worth keeping."""
        for problem in problems:
            if problem in self.problems:
                continue
            if len(self.problems) < MOST_PROBLEMS:
                self.problems[problem] = None
            else:
                self.n_more += 1

    def release(self, place: Place, names: Sequence[str]) -> None:
        """Verify what stands at one place."""
        location = (place.name, place.edition, place.release_id)
        manifest = self.store.read_manifest(*location) if MANIFEST in names else None
        if manifest is None:
            self.note([f"{place.key}: no manifest names what stands there: {counted(len(names), 'file')}"])
        elif is_tombstone(manifest):
            self.tombstones += 1
            if len(names) > 1:
                left = counted(len(names) - 1, "file")
                self.note([f"{place.key}: beside a tombstone: {left}; `suffice ledger recover` removes them"])
        else:
            self.releases += 1
            self.files += len(names)
            verified = verify_release(
                self.store.release_uri(*location), ledger=self.ledger, public_keys=self.public_keys
            )
            self.withdrawn += verified.withdrawn is not None
            self.note(f"{place.key}: {problem}" for problem in verified.problems)

    def publication(self, publications: PublicationStore, publication_id: str) -> None:
        """Verify what stands in the folder of one publication."""
        verified = verify_publication(publications, publication_id)
        self.publications += verified.files > 0
        self.left_files += verified.left
        self.note(f"{PUBLICATIONS}/{publication_id}: {problem}" for problem in verified.problems)

    def stray_or_marker(self, key: str) -> None:
        """Check a marker, and name what belongs to nothing."""
        if key == KEY or is_rehearsed(key):
            return
        if is_left_probe(self.store.objects, key, folder=PUBLICATIONS):
            self.left_files += 1
            self.leftovers += [key] if len(self.leftovers) < MOST_PROBLEMS else []
            return
        if marker_sequence(key) is None:
            self.note([f"{key}: it belongs to no release, and is no marker"])
            return
        self.markers += 1
        marker = read_marker(self.store.objects, self.store.uri, key)
        if marker is None:
            self.note([f"{key}: what stands there is no marker"])
        elif marker.ledger_id != self.store.ledger_id:
            self.note([f"{key}: the marker belongs to ledger {marker.ledger_id}"])

    def result(self) -> StoreVerification:
        """Return what was found."""
        more = [f"and {self.n_more} more problems"] if self.n_more else []
        return StoreVerification(
            problems=(*self.problems, *more),
            releases=self.releases,
            files=self.files,
            tombstones=self.tombstones,
            markers=self.markers,
            withdrawn=self.withdrawn,
            publications=self.publications,
            left_files=self.left_files,
            leftovers=tuple(self.leftovers),
            ledger_checked=self.ledger is not None,
        )
