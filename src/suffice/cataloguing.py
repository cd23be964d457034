"""Make a catalogue of a store: a static site from public files alone.

Pages of releases are kept from one run to the next, as long as the release, what leads to other pages, and
the design are what they were: a run costs as much as what is new. ``catalogue.json`` in the site says what
was made of what; nothing else in the folder is ever touched.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import ReleaseCorruptError, SignatureError, SufficeError, UsageError
from suffice.pages.charges import budgets_of, read_charges
from suffice.pages.feeds import atom_feed, json_feed
from suffice.pages.keyed_table import keyed_files
from suffice.pages.publication_page import is_inert, publication_page, summary_rows
from suffice.pages.release_facts import release_facts
from suffice.pages.release_page import Banner, Link, Site, release_page
from suffice.pages.rendering import design_fingerprint
from suffice.pages.site_folder import SiteFolder
from suffice.pages.site_pages import (
    Entry,
    dataset_page,
    dataset_path,
    reading_page,
    search_page,
    series_page,
    series_path,
    start_page,
)
from suffice.pages.statistic_view import statistic_view
from suffice.pipeline.released.withdrawal import Withdrawal
from suffice.storage.publications.publication_store import PublicationStore
from suffice.storage.releases.descriptions import DESCRIPTIONS
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.release_store import open_release, open_store
from suffice.storage.releases.withdrawal import WITHDRAWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from suffice.pipeline.pooling.release import Release
    from suffice.storage.publications.publication import Publication
    from suffice.storage.releases.release_store import ListedRelease, ReleaseStore
    from suffice.storage.signatures.keys import KeyReference

_FACTS = "facts.json"
LARGEST_COPIED = 64 * 2**20
"""Bytes of a publication's file that is put beside its page; larger ones stay in the store."""
_DATA = (".parquet", ".csv", ".json", ".nc")
"""Files of publications that no browser runs; of all others only cards are put beside a page."""
_BESIDE = {
    WITHDRAWN: "that this release was withdrawn, and why",
    "datapackage.json": "a Frictionless data package",
    "croissant.json": "Croissant metadata",
}
_LARGEST_FILE = 2**28


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """A catalogue that was made.

    Attributes
    ----------
    index : str
        The path of its first page.
    releases, publications : int
        How many it shows.
    rendered, kept, removed : int
        Pages of releases and publications that were made anew, left as they were, and removed.
    problems : tuple of str
        Why something in the store is not shown.
    """

    index: str
    releases: int
    publications: int
    rendered: int
    kept: int
    removed: int
    problems: tuple[str, ...]


def catalogue(
    store: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    ledger_export: str | os.PathLike[str] | None = None,
    title: str | None = None,
    base_url: str | None = None,
    public_keys: Sequence[KeyReference] | None = None,
    publication_keys: Sequence[KeyReference] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Catalogue:
    """Make, or bring up to date, a static site on all releases of a store.

    Parameters
    ----------
    store : str or path
        Path or URI of the store; it is only read.
    out : str or path
        A folder of this machine: a new one, an empty one, or an earlier catalogue's.
    ledger_export : str or path, optional
        What ``suffice ledger export`` wrote: then the pages of datasets show every charge.
    title : str, optional
        Of the site.
    base_url : str, optional
        Where the site will stand, for feeds and citations.
    public_keys : sequence of str or path, optional
        Show only releases that one of these keys signed; see :func:`suffice.open_release`.
    publication_keys : sequence of str or path, optional
        Show only publications that one of these keys signed.
    progress : callable, optional
        Gets the number of releases that are done, and of all.

    Raises
    ------
    UsageError
        Where `out` is no folder that may be written, or an option cannot be used.
    LedgerCorruptError
        Where the export does not verify.
    StoreError
        Where the store cannot be read.
    """
    site = Site(
        title=_checked_title(title),
        version=importlib.metadata.version("suffice"),
        base_url=_checked_base_url(base_url),
    )
    opened = open_store(os.fspath(store))
    charges = None if ledger_export is None else read_charges(Path(ledger_export))
    folder = SiteFolder.open(out)
    work = _Work(
        site=site,
        folder=folder,
        store=opened,
        public_keys=public_keys,
        publication_keys=publication_keys,
    )
    published = work.published()
    entries = work.releases(published, progress)
    publications = work.publications(published, entries)
    budgets = budgets_of(entries, charges)
    pages = {
        "index.html": start_page(site, entries, budgets, publications, work.not_shown),
        "search.html": search_page(site, entries, publications),
        "reading.html": reading_page(site, entries[-1] if entries else None),
        "feed.xml": atom_feed(site, entries),
        "feed.json": json_feed(site, entries),
    }
    for name in budgets:
        of = [entry for entry in entries if entry.facts["dataset"] == name]
        pages[dataset_path(name)] = dataset_page(site, name, of, budgets[name])
    for name in dict.fromkeys(entry.facts["name"] for entry in entries):
        of = [entry for entry in entries if entry.facts["name"] == name]
        pages[series_path(name)] = series_page(site, name, of)
    for path, text in pages.items():
        folder.write(path, text.encode())
    removed = folder.finish()
    return Catalogue(
        index=str(folder.path / "index.html"),
        releases=len(entries),
        publications=len(publications),
        rendered=len(work.rendered),
        kept=len(work.kept),
        removed=removed,
        problems=tuple(work.problems),
    )


@dataclass(slots=True, kw_only=True)
class _Work:
    """One run over a store."""

    site: Site
    folder: SiteFolder
    store: ReleaseStore
    public_keys: Sequence[KeyReference] | None
    publication_keys: Sequence[KeyReference] | None
    problems: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    rendered: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def releases(
        self, published: Sequence[Publication], progress: Callable[[int, int], None] | None
    ) -> list[Entry]:
        """Make or keep the page of every release; return them by name and window."""
        listed = list(self.store.releases())
        resting: defaultdict[str, list[Link]] = defaultdict(list)
        for publication in published:
            for release in publication.stated.head.releases:
                resting[release.manifest_sha256].append(_publication_link(publication))
        while True:
            entries, broken = [], set()
            newest = {(one.name, one.window): one for one in listed}  # of amendments the last one stays
            series: defaultdict[str, list[ListedRelease]] = defaultdict(list)
            for one in newest.values():
                series[one.name].append(one)
            for done, one in enumerate(listed, start=1):
                last = newest[one.name, one.window]
                around = _neighbours(last, series[one.name])
                try:
                    entries.append(self._release(one, last, around, resting))
                except SufficeError as error:
                    broken.add(one)
                    self._leave_out(f"{one.name}@{one.edition}, {one.release_id}", error)
                if progress is not None:
                    progress(done, len(listed))
            if not broken:
                return entries
            # No page leads to one that is not there: those which would are made again.
            listed = [one for one in listed if one not in broken]

    def _release(
        self,
        one: ListedRelease,
        newest: ListedRelease,
        around: Sequence[tuple[str, ListedRelease]],
        resting: Mapping[str, Sequence[Link]],
    ) -> Entry:
        place = f"releases/{one.name}/{one.edition}/{one.release_id}"
        stored = f"{one.name}/{one.edition}/{one.release_id}"
        beside = {
            name: data
            for name in (MANIFEST, WITHDRAWN, *DESCRIPTIONS)
            if (data := self.store.objects.get(f"{stored}/{name}", at_most=_LARGEST_FILE)) is not None
        }
        published = resting.get(hashlib.sha256(beside.get(MANIFEST, b"")).hexdigest(), ())
        amended = newest if newest is not one else None
        key = _key(
            {name: hashlib.sha256(data).hexdigest() for name, data in beside.items()},
            design_fingerprint(),
            self.site,
            amended,
            around,
            published,
            sorted(map(str, self.public_keys or [])),
            os.environ.get("SUFFICE_PUBLIC_KEYS"),
        )
        facts = self.folder.kept(place, key, f"{place}/{_FACTS}")
        if facts is None:
            facts = self._make_release(one, place, beside, amended, around, published)
            self.folder.made(place, key)
            self.rendered.add(place)
        else:
            self.kept.add(place)
        self.kept -= self.rendered
        mark = "withdrawn" if facts["withdrawn"] else "amended" if amended else ""
        return Entry(facts=facts, path=f"{place}/index.html", mark=mark, words=" ".join(facts["words"]))

    def _make_release(
        self,
        one: ListedRelease,
        place: str,
        beside: dict[str, bytes],
        amended: ListedRelease | None,
        around: Sequence[tuple[str, ListedRelease]],
        published: Sequence[Link],
    ) -> dict[str, Any]:
        release = open_release(one.uri, public_keys=self.public_keys, allow_withdrawn=True)
        manifest = beside[MANIFEST]
        files = {MANIFEST: manifest}
        for file in release.manifest["files"]:
            key = f"{one.name}/{one.edition}/{one.release_id}/{file['path']}"
            files[file["path"]] = _checked_file(self.store, key, file)
        seed = int(hashlib.sha256(manifest).hexdigest()[:12], 16)
        views = [statistic_view(release, name, seed=seed) for name in release.statistics]
        facts = release_facts(release, manifest, views)
        extra = [
            *(file for name in release.statistics for file in keyed_files(release, name)),
            *((name, _BESIDE[name], data) for name, data in beside.items() if name != MANIFEST),
        ]
        page = release_page(
            release,
            facts,
            views,
            site=self.site,
            root="../" * 4,
            uri=one.uri if "://" in one.uri else f"./{place}",
            path=f"{place}/index.html",
            files=files,
            extra_files=extra,
            banners=list(_banners(release, amended)),
            neighbours=[
                (kind, Link(path=_path_of(other), label=f"{other.name}@{other.edition}"))
                for kind, other in around
            ],
            publications=published,
            series=Link(path=series_path(one.name), label=one.name),
            signature_note="checked" if self.public_keys else "not checked by this catalogue",
        )
        for name, data in [*files.items(), *((name, data) for name, _, data in extra)]:
            self.folder.write(f"{place}/{name}", data)
        self.folder.write(f"{place}/{_FACTS}", (json.dumps(facts, ensure_ascii=False) + "\n").encode())
        self.folder.write(f"{place}/index.html", page.encode())
        return facts

    def _leave_out(self, what: str, error: SufficeError) -> None:
        """Note what is not shown; pages do not repeat an error's text, which names places of this machine."""
        self.problems.append(f"{what}: {error}")
        why = "no demanded key signed it" if isinstance(error, SignatureError) else "it does not verify"
        self.not_shown.append(f"{what}: {why}.")

    def published(self) -> list[Publication]:
        """Return the publications of the store; what cannot be read is a problem."""
        store = PublicationStore.open(self.store.uri, publication_keys=self.publication_keys)
        found: list[Publication] = []
        for publication_id in store.ids():
            try:
                publication = store.find(publication_id)
            except SufficeError as error:
                self._leave_out(f"publication {publication_id}", error)
            else:
                found += filter(None, [publication])
        return sorted(found, key=lambda one: (one.stated.created, one.publication_id), reverse=True)

    def publications(self, published: Sequence[Publication], entries: Sequence[Entry]) -> list[Link]:
        """Make or keep the page of every publication; return what leads to them, the newest first."""
        pages = {
            entry.facts["manifest_sha256"]: Link(
                path=entry.path, label=entry.facts["label"], text=_withdrawn(entry.facts)
            )
            for entry in entries
        }
        links = []
        for publication in published:
            rests_on = [
                (release.label, pages.get(release.manifest_sha256))
                for release in publication.stated.head.releases
            ]
            place = f"publications/{publication.publication_id}"
            key = _key(
                hashlib.sha256(publication.data).hexdigest(),
                design_fingerprint(),
                self.site,
                rests_on,
                sorted(map(str, self.publication_keys or [])),
            )
            try:
                if self.folder.kept(place, key, f"{place}/{MANIFEST}") is None:
                    self._make_publication(publication, place, rests_on)
                    self.folder.made(place, key)
                    self.rendered.add(place)
                else:
                    self.kept.add(place)
            except SufficeError as error:
                self._leave_out(f"publication {publication.publication_id}", error)
            else:
                withdrawn = any(page is not None and page.text for _, page in rests_on)
                links.append(_publication_link(publication, withdrawn=withdrawn))
        return links

    def _make_publication(
        self, publication: Publication, place: str, rests_on: Sequence[tuple[str, Link | None]]
    ) -> None:
        files = {
            file.path: publication.read(file.name)
            for file in publication.stated.files
            if file.size <= LARGEST_COPIED
        }
        cards = [
            file.path
            for file in publication.stated.files
            if file.role == "card" and file.path in files and is_inert(files[file.path])
        ]
        copied = {path: data for path, data in files.items() if path.endswith(_DATA) or path in cards}
        page = publication_page(
            publication.manifest,
            site=self.site,
            root="../../",
            summaries=summary_rows(publication.stated.files, files),
            cards=cards,
            copied=copied.keys(),
            where=publication.uri if "://" in publication.uri else "the store",
            releases=rests_on,
            signature_note="checked" if self.publication_keys else "not checked by this catalogue",
        )
        for path, data in copied.items():
            self.folder.write(f"{place}/{path}", data)
        self.folder.write(f"{place}/{MANIFEST}", publication.data)
        self.folder.write(f"{place}/index.html", page.encode())


def _withdrawn(facts: Mapping[str, Any]) -> str:
    """Say how a release was withdrawn; nothing of one that stands."""
    return "" if facts["withdrawn"] is None else str(Withdrawal(**facts["withdrawn"]))


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
            path=_path_of(amended),
            link=f"See {amended.name}@{amended.edition}",
        )


def _checked_file(store: ReleaseStore, key: str, file: Mapping[str, Any]) -> bytes:
    """Return a data file that is copied, as its manifest states it."""
    data = store.objects.get(key, at_most=file["size"] + 1)
    if data is None or hashlib.sha256(data).hexdigest() != file["sha256"]:
        message = f"the file {key} is not what its manifest states"
        raise ReleaseCorruptError(message)
    return data


def _publication_link(publication: Publication, *, withdrawn: bool = False) -> Link:
    stated = publication.stated
    labels = ", ".join(release.label for release in stated.head.releases[:3])
    more = len(stated.head.releases) - 3
    return Link(
        path=f"publications/{publication.publication_id}/index.html",
        label=stated.title,
        text=f"{stated.head.kind.replace('_', ' ')}, from {labels}"
        + (f" and {more} more" if more > 0 else "")
        + f"; {stated.created[:10]}"
        + ("; it rests on a withdrawn release" if withdrawn else ""),
    )


def _neighbours(one: ListedRelease, series: Sequence[ListedRelease]) -> list[tuple[str, ListedRelease]]:
    """Return the releases of the windows before and after; all are the newest of their windows."""
    place = series.index(one)
    around = []
    if place > 0:
        around.append(("Before", series[place - 1]))
    if place + 1 < len(series):
        around.append(("After", series[place + 1]))
    return around


def _path_of(one: ListedRelease) -> str:
    return f"releases/{one.name}/{one.edition}/{one.release_id}/index.html"


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _checked_title(title: str | None) -> str:
    if title is None:
        return "Private statistics"
    if not title.strip() or len(title) > 120 or not title.isprintable():
        message = f"--title {title}: a title is one line of 1 to 120 characters that can be seen"
        raise UsageError(message)
    return title.strip()


def _checked_base_url(url: str | None) -> str | None:
    from urllib.parse import urlsplit  # noqa: PLC0415 - one caller

    if url is None:
        return None
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and parts.hostname and not parts.username
        plain = url.isascii() and url.isprintable() and not any(sign in url for sign in " \"'<>\\^`{|}")
    except ValueError:
        is_one = plain = False
    if not is_one or not plain or parts.query or parts.fragment or parts.password:
        message = (
            "--base-url: write where the site will stand, as https://example.org/data, without a user, a "
            "query or a fragment"
        )
        raise UsageError(message)
    return url.rstrip("/")
