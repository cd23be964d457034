"""Make a catalogue of a store: a static site from public files alone.

Pages of releases are kept from one run to the next, as long as the release, what leads to other pages, and
the design are what they were: a run costs as much as what is new. ``catalogue.json`` in the site says what
was made of what; nothing else in the folder is ever touched.
"""

from __future__ import annotations

import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.cataloguing.publications import (
    PublicationPages,
    links_by_release,
    pooled_by_release,
    read_publications,
)
from suffice.cataloguing.releases import ReleasePages
from suffice.errors import SufficeError, UsageError
from suffice.pages import site_pages
from suffice.pages.budget import budgets_of, read_charges
from suffice.pages.release_page import Link, Site
from suffice.pages.site_run import SiteFolder, SiteRun
from suffice.pipeline.terms.declaration.documents import printed
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.storage.publications.publication import Publication
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.signatures.signing import KeyReference


@printed("index releases publications rendered kept removed problems ok")
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

    @property
    def ok(self) -> bool:
        """Whether all that stands in the store is shown."""
        return not self.problems


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
    run = SiteRun(site=site, folder=folder)
    published = read_publications(run, opened.uri, publication_keys)
    entries, publications = _pages_of_all(run, opened, published, public_keys, publication_keys, progress)
    budgets = budgets_of([entry.facts for entry in entries], charges)
    pages = {
        "index.html": site_pages.start_page(
            site, entries, budgets, publications, [f"{what}: {why}." for what, why in run.not_shown.items()]
        ),
        "search.html": site_pages.search_page(site, entries, publications),
        "reading.html": site_pages.reading_page(site, entries),
        "feed.xml": site_pages.atom_feed(site, entries),
        "feed.json": site_pages.json_feed(site, entries),
    }
    for name in budgets:
        of = [entry for entry in entries if entry.facts["dataset"] == name]
        pages[site_pages.dataset_path(name)] = site_pages.dataset_page(site, name, of, budgets[name])
    for name in dict.fromkeys(entry.facts["name"] for entry in entries):
        of = [entry for entry in entries if entry.facts["name"] == name]
        pages[site_pages.series_path(name)] = site_pages.series_page(site, name, of)
    for path, text in pages.items():
        folder.write(path, text.encode())
    removed = folder.finish()
    return Catalogue(
        index=str(folder.path / "index.html"),
        releases=len(entries),
        publications=len(publications),
        rendered=len(run.rendered),
        kept=len(run.kept),
        removed=removed,
        problems=tuple(f"{what}: {why}" for what, why in run.problems.items()),
    )


def _pages_of_all(
    run: SiteRun,
    store: ReleaseStore,
    published: list[Publication],
    public_keys: Sequence[KeyReference] | None,
    publication_keys: Sequence[KeyReference] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[site_pages.SiteEntry], list[Link]]:
    """Make or keep the pages of releases and publications, which lead to each other and to nothing else.

    Where a publication's files turn out to be unreadable, the pages that would lead to it are made again.
    """
    while True:
        leading = links_by_release(published)
        entries = ReleasePages(
            run=run,
            store=store,
            public_keys=public_keys,
            publications=leading,
            pooled=pooled_by_release(published),
        ).make(progress)
        pages = PublicationPages.among(run, entries, publication_keys)
        links: dict[str, Link] = {}
        for publication in published:
            try:
                links[publication.publication_id] = pages.make(publication)
            except SufficeError as error:
                run.leave_out(f"publication {publication.publication_id}", error)
        if len(links) == len(published):
            return entries, list(links.values())
        published = [publication for publication in published if publication.publication_id in links]


def _checked_title(title: str | None) -> str:
    if title is None:
        return "Private statistics"
    if not title.strip() or len(title) > 120 or not title.isprintable():
        message = f"--title {title}: a title is one line of 1 to 120 characters that can be seen"
        raise UsageError(message)
    return title.strip()


def _checked_base_url(url: str | None) -> str | None:
    from urllib.parse import urlsplit  # one caller

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
