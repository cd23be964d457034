"""The pages of publications in a catalogue: read from a store that others write to, made or kept."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from suffice.errors import SufficeError
from suffice.pages.drawing import fitted
from suffice.pages.publication_page import is_inert, publication_page
from suffice.pages.published_tables import published_tables
from suffice.pages.release_page import Link
from suffice.pipeline.ask.publication.request import Request, model_text, pooled_text
from suffice.pipeline.spec.about import NOTHING
from suffice.pipeline.terms.released.withdrawal import Withdrawal
from suffice.storage.publications.publication import MANIFEST
from suffice.storage.publications.publication_store import PublicationStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pages.site_pages import SiteEntry
    from suffice.pages.site_run import SiteRun
    from suffice.pipeline.spec.about import About
    from suffice.storage.publications.publication import Publication
    from suffice.storage.signatures.signing import KeyReference

LARGEST_COPIED = 64 * 2**20
"""Bytes of a publication's file that is put beside its page; larger ones stay in the store."""
LARGEST_COPIED_TOGETHER = 4 * LARGEST_COPIED
"""Bytes of all files of a publication that are put there; the others stay as well."""
LONGEST_WORDS = 2_000
_LONGEST_WORD = 300
"""Characters by which search finds a publication: all, and of one prior."""
_DATA = (".parquet", ".csv", ".json", ".nc")
"""Files of publications that no browser runs; of all others only cards are put beside a page."""


def read_publications(
    run: SiteRun, store_uri: str, publication_keys: Sequence[KeyReference] | None
) -> list[Publication]:
    """Return the publications of a store, the newest first; what cannot be read is left out, and noted."""
    store = PublicationStore.open(store_uri, publication_keys=publication_keys)
    publications: list[Publication] = []
    for publication_id in store.ids():
        try:
            publication = store.find(publication_id)
        except SufficeError as error:
            run.leave_out(f"publication {publication_id}", error)
        else:
            publications += filter(None, [publication])
    return sorted(
        publications,
        key=lambda publication: (publication.stated.created, publication.publication_id),
        reverse=True,
    )


def links_by_release(published: Sequence[Publication]) -> dict[str, list[Link]]:
    """Return what leads to publications, by the SHA-256 of the manifest of each release they rest on."""
    resting: defaultdict[str, list[Link]] = defaultdict(list)
    for publication in published:
        for release in publication.stated.head.releases:
            resting[release.manifest_sha256].append(_link(publication))
    return dict(resting)


def pooled_by_release(published: Sequence[Publication]) -> dict[str, list[Publication]]:
    """Return publications of cells that borrow strength, by the SHA-256 of each manifest they rest on."""
    resting: defaultdict[str, list[Publication]] = defaultdict(list)
    for publication in published:
        if publication.request.get("pooled"):
            for release in publication.stated.head.releases:
                resting[release.manifest_sha256].append(publication)
    return dict(resting)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPages:
    """What pages of publications are made from.

    Attributes
    ----------
    run : SiteRun
    publication_keys : sequence of str or path, or None
        That were demanded of them.
    releases : mapping of str to Link
        By the SHA-256 of its manifest, the page of a release; its text says how it was withdrawn, if it was.
    abouts : mapping of str to About
        By the same, what its owner calls things.
    """

    run: SiteRun
    publication_keys: Sequence[KeyReference] | None
    releases: Mapping[str, Link]
    abouts: Mapping[str, About]

    @classmethod
    def among(
        cls, run: SiteRun, entries: Sequence[SiteEntry], publication_keys: Sequence[KeyReference] | None
    ) -> Self:
        """Return what makes pages of publications that lead to these releases."""
        pages = {
            entry.facts["manifest_sha256"]: Link(
                path=entry.path, label=entry.facts["label"], text=_withdrawn(entry.facts)
            )
            for entry in entries
        }
        abouts = {entry.facts["manifest_sha256"]: entry.about for entry in entries}
        return cls(run=run, publication_keys=publication_keys, releases=pages, abouts=abouts)

    def make(self, publication: Publication) -> Link:
        """Make or keep the page of a publication; return what leads to it.

        Raises
        ------
        PublicationCorruptError
            Where a file is not what was published, or holds no table.
        StoreError
            Where one cannot be read.
        """
        rests_on = [
            (release.label, self.releases.get(release.manifest_sha256))
            for release in publication.stated.head.releases
        ]
        place = f"publications/{publication.publication_id}"
        newest = publication.stated.head.releases[-1].manifest_sha256
        about = self.abouts.get(newest, NOTHING)
        made_of = (
            hashlib.sha256(publication.data).hexdigest(),
            rests_on,
            about.document(),
            sorted(map(str, self.publication_keys or [])),
        )
        self.run.keep_or_make(
            place, made_of, f"{place}/{MANIFEST}", lambda: self._page(publication, place, rests_on, about)
        )
        return _link(publication, withdrawn=any(page is not None and page.text for _, page in rests_on))

    def _page(
        self,
        publication: Publication,
        place: str,
        rests_on: Sequence[tuple[str, Link | None]],
        about: About,
    ) -> dict[str, Any]:
        """Write the page of a publication, with the files beside it that no browser runs."""
        folder, cards, copied, room = self.run.folder, [], set(), LARGEST_COPIED_TOGETHER
        for file in publication.files:
            if file.size > min(LARGEST_COPIED, room):
                continue
            data = publication.read(file.name)
            is_card = file.role == "card" and is_inert(data)
            if is_card or file.path.endswith(_DATA):
                folder.write(f"{place}/{file.path}", data)
                copied.add(file.path)
                room -= file.size
            if is_card:
                cards.append(file.path)
        page = publication_page(
            publication.manifest,
            site=self.run.site,
            root="../../",
            tables=published_tables(publication, about),
            cards=cards,
            copied=copied,
            where=publication.uri if "://" in publication.uri else "the store",
            releases=rests_on,
            signature_note="checked" if self.publication_keys else "not checked by this catalogue",
        )
        folder.write(f"{place}/{MANIFEST}", publication.data)
        folder.write(f"{place}/index.html", page.encode())
        return publication.manifest


def _withdrawn(facts: Mapping[str, Any]) -> str:
    """Say how a release was withdrawn; nothing of one that stands."""
    return "" if facts["withdrawn"] is None else str(Withdrawal(**facts["withdrawn"]))


def _link(publication: Publication, *, withdrawn: bool = False) -> Link:
    stated = publication.stated
    names = dict.fromkeys(release.label.partition("@")[0] for release in stated.head.releases)
    request = Request.read(publication.request)
    is_of_all_cells = not request.where and not request.over
    labels = ", ".join(release.label for release in stated.head.releases[:3])
    more = len(stated.head.releases) - 3
    return Link(
        path=f"publications/{publication.publication_id}/index.html",
        label=stated.title,
        text=f"{stated.head.kind.replace('_', ' ')}, from {labels}"
        + (f" and {more} more" if more > 0 else "")
        + f"; {stated.created[:10]}"
        + ("; it rests on a withdrawn release" if withdrawn else ""),
        words=_words(request),
        series=tuple(names) if is_of_all_cells else (),
    )


def _words(request: Request) -> str:
    """Return what was asked, for search: statistics, priors, the keys that were kept, the id."""
    words = [request.publication_id, request.method]
    for asked in request.statistics:
        priors = [text for prior in asked.priors for text in (prior.name, prior.prior)]
        words += filter(None, [asked.statistic, *priors, asked.n_prior, asked.predictor_prior])
    words += [text for cell in request.where.items() for text in cell]
    words += [*request.over, "" if request.model is None else model_text(request.model)]
    words += ["" if request.pooled is None else pooled_text(request.pooled)]
    joined = " ".join(dict.fromkeys(fitted(word, _LONGEST_WORD) for word in words))
    return fitted(joined, LONGEST_WORDS)
