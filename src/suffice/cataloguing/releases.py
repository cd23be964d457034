"""The pages of releases in a catalogue: made from what a store holds, or kept from an earlier run."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import ReleaseCorruptError, SufficeError
from suffice.pages.release_facts import keyed_files, release_facts
from suffice.pages.release_page import Banner, Link, release_page
from suffice.pages.site_pages import SiteEntry, series_path
from suffice.pages.statistic_view import sample_view, statistic_view
from suffice.storage.releases.descriptions import DESCRIPTIONS
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import WITHDRAWN
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from suffice.pages.site_run import SiteRun
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.storage.releases.release_store import ListedRelease, ReleaseStore
    from suffice.storage.signatures.signing import KeyReference

_FACTS = "facts.json"
_BESIDE = {
    WITHDRAWN: "that this release was withdrawn, and why",
    "datapackage.json": "a Frictionless data package",
    "croissant.json": "Croissant metadata",
}
_LARGEST_FILE = 2**28


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePages:
    """What pages of releases are made from.

    Attributes
    ----------
    run : SiteRun
    store : ReleaseStore
    public_keys : sequence of str or path, or None
        As :func:`suffice.open_release` takes them.
    publications : mapping of str to sequence of Link
        By the SHA-256 of a manifest, the pages of publications that rest on its release.
    """

    run: SiteRun
    store: ReleaseStore
    public_keys: Sequence[KeyReference] | None
    publications: Mapping[str, Sequence[Link]]

    def make(self, progress: Callable[[int, int], None] | None = None) -> list[SiteEntry]:
        """Make or keep the page of every release; return them by name and window."""
        listed = list(self.store.releases())
        while True:
            entries, broken = [], set()
            # of amendments the last one stays
            newest = {(release.name, release.window): release for release in listed}
            series: defaultdict[str, list[ListedRelease]] = defaultdict(list)
            for release in newest.values():
                series[release.name].append(release)
            for done, release in enumerate(listed, start=1):
                last = newest[release.name, release.window]
                around = _neighbours(last, series[release.name])
                try:
                    entries.append(self._entry(release, None if last is release else last, around))
                except SufficeError as error:
                    broken.add(release)
                    self.run.leave_out(f"{release.name}@{release.edition}, {release.release_id}", error)
                if progress is not None:
                    progress(done, len(listed))
            if not broken:
                return entries
            # No page leads to one that is not there: those which would are made again.
            listed = [release for release in listed if release not in broken]

    def _entry(
        self,
        listed: ListedRelease,
        amended: ListedRelease | None,
        around: Sequence[tuple[str, ListedRelease]],
    ) -> SiteEntry:
        place, stored = _place(listed), f"{listed.name}/{listed.edition}/{listed.release_id}"
        beside = {
            name: data
            for name in (MANIFEST, WITHDRAWN, *DESCRIPTIONS)
            if (data := self.store.objects.get(f"{stored}/{name}", at_most=_LARGEST_FILE)) is not None
        }
        made_of = (
            {name: hashlib.sha256(data).hexdigest() for name, data in beside.items()},
            amended,
            around,
            self._resting(beside),
            sorted(map(str, self.public_keys or [])),
            os.environ.get("SUFFICE_PUBLIC_KEYS"),
        )
        facts = self.run.keep_or_make(
            place, made_of, f"{place}/{_FACTS}", lambda: self._page(listed, beside, amended, around)
        )
        mark = "withdrawn" if facts["withdrawn"] else "amended" if amended else ""
        return SiteEntry(facts=facts, path=f"{place}/index.html", mark=mark, words=" ".join(facts["words"]))

    def _page(
        self,
        listed: ListedRelease,
        beside: Mapping[str, bytes],
        amended: ListedRelease | None,
        around: Sequence[tuple[str, ListedRelease]],
    ) -> dict[str, Any]:
        """Write the page of a release, with its files beside it; return its facts."""
        place = _place(listed)
        release = open_release(listed.uri, public_keys=self.public_keys, allow_withdrawn=True)
        manifest = beside[MANIFEST]
        files = {MANIFEST: manifest}
        for file in release.manifest["files"]:
            key = f"{listed.name}/{listed.edition}/{listed.release_id}/{file['path']}"
            files[file["path"]] = _checked_file(self.store, key, file)
        seed = int(hashlib.sha256(manifest).hexdigest()[:12], 16)
        names = [file["statistic"] for file in release.files]
        views = [
            sample_view(release.sampled[name])
            if name in release.sampled
            else statistic_view(release, name, seed=seed)
            for name in names
        ]
        facts = release_facts(release, manifest, views)
        extra = [
            *(file for name in names for file in keyed_files(release, name)),
            *((name, _BESIDE[name], data) for name, data in beside.items() if name != MANIFEST),
        ]
        page = release_page(
            release,
            facts,
            views,
            site=self.run.site,
            root="../" * 4,
            uri=listed.uri if "://" in listed.uri else f"./{place}",
            path=f"{place}/index.html",
            files=files,
            extra_files=extra,
            banners=list(_banners(release, amended)),
            neighbours=[
                (kind, Link(path=f"{_place(other)}/index.html", label=f"{other.name}@{other.edition}"))
                for kind, other in around
            ],
            publications=self._resting(beside),
            series=Link(path=series_path(listed.name), label=listed.name),
            signature_note="checked" if self.public_keys else "not checked by this catalogue",
        )
        folder = self.run.folder
        for name, data in [*files.items(), *((name, data) for name, _, data in extra)]:
            folder.write(f"{place}/{name}", data)
        folder.write(f"{place}/{_FACTS}", (json.dumps(facts, ensure_ascii=False) + "\n").encode())
        folder.write(f"{place}/index.html", page.encode())
        return facts

    def _resting(self, beside: Mapping[str, bytes]) -> Sequence[Link]:
        """Return the publications that rest on the release with this manifest."""
        return self.publications.get(hashlib.sha256(beside.get(MANIFEST, b"")).hexdigest(), ())


def _banners(release: Release, amended: ListedRelease | None) -> Iterator[Banner]:
    """Give what has to be said before anything else."""
    if release.withdrawn is not None:
        yield Banner(
            kind="withdrawn",
            head="Withdrawn.",
            text=f"Those who published this release say that it is faulty: {release.withdrawn}.",
        )
    if amended is not None:
        yield Banner(
            kind="amended",
            head="Amended.",
            text="The window was released again, with later rows; this one is kept as it was.",
            path=f"{_place(amended)}/index.html",
            link=f"See {amended.name}@{amended.edition}",
        )


def _checked_file(store: ReleaseStore, key: str, file: Mapping[str, Any]) -> bytes:
    """Return a data file that is copied, as its manifest states it."""
    data = store.objects.get(key, at_most=file["size"] + 1)
    if data is None or hashlib.sha256(data).hexdigest() != file["sha256"]:
        message = f"the file {key} is not what its manifest states"
        raise ReleaseCorruptError(message)
    return data


def _neighbours(release: ListedRelease, series: Sequence[ListedRelease]) -> list[tuple[str, ListedRelease]]:
    """Return the releases of the windows before and after; all are the newest of their windows."""
    place = series.index(release)
    around = []
    if place > 0:
        around.append(("Before", series[place - 1]))
    if place + 1 < len(series):
        around.append(("After", series[place + 1]))
    return around


def _place(listed: ListedRelease) -> str:
    """Return the folder of a release's page, below the site's."""
    return f"releases/{listed.name}/{listed.edition}/{listed.release_id}"
