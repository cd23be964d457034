"""Every object of a store, verified: files against manifests, manifests and markers against a ledger.

One published release is verified by itself: its bytes against its manifest, its manifest against keys and
ledger. So is a publication: its manifest, signature and files, and what else its folder holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import NameTakenError, PublicationCorruptError, ReleaseCorruptError, SignatureError
from suffice.pipeline.spec.windows_and_amendments import edition
from suffice.pipeline.terms.declaration.documents import Compared, Count, printed
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.replay import sha256
from suffice.storage.objects.object_store import is_left_probe
from suffice.storage.operations.markers import read_marker
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.publications.publication import PUBLICATIONS, RECEIPT, publication_of, read_path
from suffice.storage.publications.publication_store import PublicationStore
from suffice.storage.releases.about_file import MOST_WORDINGS, Wording, about_name
from suffice.storage.releases.descriptions import DESCRIPTIONS, describe
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.release_store import locate
from suffice.storage.releases.store_identity import KEY, is_rehearsed, marker_sequence, read_place
from suffice.storage.releases.withdrawal import WITHDRAWN
from suffice.storage.signatures.signing import check_signature, pinned_keys, signature_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.publications.publication import Publication
    from suffice.storage.releases.location import Location
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.store_identity import Place
    from suffice.storage.signatures.signing import KeyReference, PublicKey, SignatureStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification found.

    Attributes
    ----------
    ok : bool
        Whether there is no problem.
    problems : tuple of str
        One sentence each.
    ledger : str
        ``checked``, or ``not_checked`` where none was given.
    signature : str
        ``checked`` against pinned keys; ``not_checked`` where none were pinned, or the manifest cannot
        be read; ``unsigned``: whoever can write to the store could have put a consistent release of
        their own there. The ledger tells such a release apart.
    withdrawn : Withdrawal or None
        Why it was withdrawn, where it was: that is no problem of its bytes.
    """

    ok: bool
    problems: tuple[str, ...]
    ledger: Literal["checked", "not_checked"]
    signature: SignatureStatus
    withdrawn: Withdrawal | None


def verify_release(
    reference: str,
    *,
    store: str | None = None,
    ledger: Ledger | None = None,
    public_keys: Sequence[KeyReference] | None = None,
) -> Verification:
    """Check a release's manifest and files, its signature and, where given, the ledger's record of it.

    Whatever bytes stand there, this returns; what it raises is about where to look.

    Parameters
    ----------
    reference, store, public_keys
        As for :func:`suffice.open_release`.
    ledger : Ledger, optional
        The ledger that is said to have paid for the release.

    Raises
    ------
    UsageError, ReleaseMissingError, StoreError
        Where no release stands there, it cannot be read, or `public_keys` holds no key.
    LedgerError
        Where the ledger cannot be read.
    """
    pinned = pinned_keys(public_keys)
    location = locate(reference, store)
    status: SignatureStatus = "not_checked"
    withdrawn = None
    try:
        data, manifest = location.manifest()
    except ReleaseCorruptError as error:
        problems = [str(error)]
        ledger = None  # nothing could be compared
    else:
        content = json.loads(data)
        status = signature_status(content, checked=pinned is not None)
        wording, badly_worded = _wording(location, data, manifest, pinned)
        problems = [
            *_check_signature(content, pinned),
            *badly_worded,
            *_check_files_of_release(location, manifest, wording),
            *_check_owner(location, manifest),
            *_check_amended(location, manifest),
            *_check_descriptions(location, data, manifest, wording),
        ]
        withdrawn, wrong = _withdrawal(location, data, manifest, pinned)
        problems += wrong
        if ledger is not None:
            problems += _check_ledger(ledger, location, manifest, data)
    return Verification(
        ok=not problems,
        problems=tuple(problems),
        ledger="not_checked" if ledger is None else "checked",
        signature=status,
        withdrawn=withdrawn,
    )


def _check_signature(content: dict[str, Any], pinned: tuple[PublicKey, ...] | None) -> list[str]:
    if pinned is None:
        return []
    try:
        check_signature(content, pinned)
    except SignatureError as error:
        return [str(error)]
    return []


def _wording(
    location: Location, data: bytes, manifest: Manifest, pinned: tuple[PublicKey, ...] | None
) -> tuple[Wording | None, list[str]]:
    """Return the words that stand there; None, and why, where they are none."""
    try:
        return location.wording(data, manifest, pinned), []
    except (ReleaseCorruptError, SignatureError) as error:
        return None, [str(error)]


def _check_files_of_release(location: Location, manifest: Manifest, wording: Wording | None) -> list[str]:
    problems = []
    for index in range(len(manifest.files)):
        try:
            location.values(manifest, index)
        except ReleaseCorruptError as error:
            problems.append(str(error))
    n_words = MOST_WORDINGS if wording is None else wording.number
    words = map(about_name, range(1, n_words + 1))
    known = {MANIFEST, WITHDRAWN, *words, *DESCRIPTIONS, *(file.path for file in manifest.files)}
    extra = set(location.objects.keys("")) - known if location.is_listed else set()
    problems += [f"{name!r} is beside the manifest, which does not name it" for name in sorted(extra)]
    return problems


def _check_descriptions(
    location: Location, data: bytes, manifest: Manifest, wording: Wording | None
) -> list[str]:
    """Compare the descriptions that stand there with what the manifest gives; none need stand there.

    They may be of any words that the release ever had.
    """
    made = [describe(data, manifest, about) for about in (wording or Wording()).ever]
    problems = []
    for name in DESCRIPTIONS:
        possible = [each[name] for each in made]
        stored = location.objects.get(name, at_most=max(map(len, possible)) + 1)
        if stored is not None and stored not in possible and wording is not None:
            problems.append(f"{name} is not what `suffice describe` makes of the manifest")
    return problems


def _withdrawal(
    location: Location, data: bytes, manifest: Manifest, pinned: tuple[PublicKey, ...] | None
) -> tuple[Withdrawal | None, list[str]]:
    try:
        withdrawal = location.withdrawal(data, manifest, pinned)
    except ReleaseCorruptError as error:
        return None, [str(error)]
    if withdrawal is not None and withdrawal.signature == "wrong":
        return withdrawal, [f"{WITHDRAWN} is not signed by a key that is demanded"]
    return withdrawal, []


def _check_owner(location: Location, manifest: Manifest) -> list[str]:
    if location.store is not None and location.store.ledger_id != manifest.ledger_id:
        return [
            f"the store belongs to ledger {location.store.ledger_id}, the release to {manifest.ledger_id}"
        ]
    return []


def _check_amended(location: Location, manifest: Manifest) -> list[str]:
    """Look in the release's store for the one that it amends: an earlier edition, as it was linked."""
    if location.store is None or manifest.amends is None:
        return []
    for number in range(manifest.amendment):
        manifest_found = location.store.read_manifest(
            manifest.name, edition(manifest.window, number), manifest.amends.release_id
        )
        if manifest_found is not None:
            same = sha256(manifest_found) == manifest.amends.manifest_sha256
            return [] if same else ["the manifest of the release that it amends is another than it names"]
    return [f"the release {manifest.amends.release_id}, which it amends, is not in the store"]


def _check_ledger(ledger: Ledger, location: Location, manifest: Manifest, data: bytes) -> list[str]:
    if ledger.ledger_id != manifest.ledger_id:
        return [f"the release belongs to ledger {manifest.ledger_id}, not to this one, {ledger.ledger_id}"]
    try:
        charge = ledger.find(manifest.dataset, manifest.name, manifest.window, amendment=manifest.amendment)
    except NameTakenError as error:
        return [f"the ledger knows this name otherwise: {error}"]
    if charge is None:
        return ["the ledger has no charge for this release"]
    lost = next((each for each in ledger.reconciled() if each.charge_id == charge.charge_id), None)
    drawing = lost or charge
    compared = {
        "release id": (manifest.release_id, charge.release_id),
        "privacy loss": (manifest.plan.loss_in(charge.loss.measure), charge.loss),
        "plan": (manifest.plan_hash, charge.plan_hash),
        "amended release": (manifest.amends, charge.amends),
        "drawing entry": (
            (manifest.drawing_sequence, manifest.drawing_hash),
            (drawing.drawing_sequence, drawing.drawing_hash),
        ),
        "hash of that entry": (
            manifest.drawing_hash,
            drawing.drawing_hash if lost else ledger.entry_hash(manifest.drawing_sequence),
        ),
        "manifest": (sha256(data), charge.manifest_sha256),
    }
    problems = [
        f"its {what} is not the one in the ledger"
        for what, (stated, paid) in compared.items()
        if stated != paid
    ]
    if location.store is not None and location.store.store_id != charge.store_id:
        here = location.store
        problems.append(
            f"it was charged for the store {charge.store_id} at {charge.store_uri}, and is in "
            f"{here.store_id} at "
            f"{here.uri}: if that store was moved, `suffice store adopt {here.uri}` says how to repair it"
        )
    if charge.state is not ChargeState.PUBLISHED:
        problems.append(f"the ledger has its charge as {charge.state}, not as published")
    return problems


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
