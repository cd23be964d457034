"""The page of a release: what was released, at what price, pictures first, then tables, files and limits."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pages.citation import bibtex
from suffice.pages.numbers import number
from suffice.pages.pictures import picture
from suffice.pages.release_facts import ordered_groups
from suffice.pages.release_texts import lead, limits, lines, protects, sentence
from suffice.pages.rendering import render
from suffice.pages.statistic_view import NOISE, POSTERIOR, SAMPLE
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.storage.releases.descriptions import citation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pages.statistic_view import StatisticView
    from suffice.pipeline.ask.pooling.release import Release

MOST_TABLE_ROWS = 720
LARGEST_EMBEDDED = 18 * 2**20
"""Bytes of data files that a page carries; a page stays below 30 MB."""

_SCRIPTS = ("theme.js", "catalogue.js", "explorer.js")
_STYLES = ("figures.css", "style.css", "explorer.css")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What every page of a catalogue states.

    Attributes
    ----------
    title : str
    version : str
        Of suffice.
    base_url : str or None
        Where the catalogue will stand, without the last slash.
    """

    title: str
    version: str
    base_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Another page of the catalogue.

    Attributes
    ----------
    path : str
        Below the root.
    label, text : str
        Its name, and a sentence.
    words : str
        What search finds it by, beside these.
    series : tuple of str
        Series whose words find it as well.
    """

    path: str
    label: str
    text: str = ""
    words: str = ""
    series: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The label."""
        return self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """What has to be said first: a release that was withdrawn, or amended since."""

    kind: str
    head: str
    text: str
    path: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table, as text."""

    text: str
    is_number: bool


def table_rows(rows: Sequence[Mapping[str, Any]], most: int = MOST_TABLE_ROWS) -> list[dict[str, Cell]]:
    """Return rows as pages show them, at most so many."""
    return [{column: _cell(value) for column, value in row.items()} for row in rows[:most]]


def release_page(
    release: Release,
    facts: Mapping[str, Any],
    views: Sequence[StatisticView],
    *,
    site: Site,
    root: str,
    path: str,
    uri: str,
    files: Mapping[str, bytes],
    extra_files: Sequence[tuple[str, str, bytes]] = (),
    banners: Sequence[Banner] = (),
    neighbours: Sequence[tuple[str, Link]] = (),
    publications: Sequence[Link] = (),
    series: Link,
    signature_note: str,
) -> str:
    """Return the page of a release.

    Parameters
    ----------
    release : Release
    facts : mapping
        As ``release_facts`` gives them.
    views : sequence of StatisticView
    site : Site
    root : str
        The way from the page to the catalogue's root, with its last slash; empty at the root.
    path : str
        The way back: where the page stands below the root.
    uri : str
        Of the release, for lines that readers copy.
    files : mapping of str to bytes
        The manifest and the data files, by their names beside the page.
    extra_files : sequence of (str, str, bytes)
        Name, description and content of what else stands beside the page.
    banners, neighbours, publications, series
        What leads to other pages.
    signature_note : str
        What is known of the signature.
    """
    data_size = sum(map(len, files.values()))
    embedded = data_size <= LARGEST_EMBEDDED
    ordered = ordered_groups(release)
    url = f"{site.base_url}/{path}" if site.base_url else None
    return render(
        "release.html",
        scripts=_SCRIPTS if embedded else _SCRIPTS[:2],
        styles=_STYLES,
        site=site,
        root=root,
        here="",
        crumbs=[("Data", "index.html"), (series.label, series.path)],
        facts=facts,
        lead=lead(facts, views),
        protects=protects(facts),
        protected=facts["unit"].removeprefix("column:"),
        banners=banners,
        neighbours=neighbours,
        signature_note=signature_note,
        statistics=[_statistic(release, view, position, ordered) for position, view in enumerate(views)],
        explorer=_explorer(release, files, uri) if embedded and release.statistics else None,
        explorer_note=(
            f"The data files have {number(data_size / 2**20, 3)} MB: too much for a page to carry. Open the "
            "release in Python, R or JavaScript instead."
            if data_size > LARGEST_EMBEDDED
            else ""
            if release.statistics
            else "A posterior sample is not explored: there are no statistics in it to start from."
        ),
        downloads=list(_downloads(facts, files, extra_files)),
        lines=lines(views, uri),
        publications=publications,
        limits=list(limits(facts, views)),
        citation=citation(facts, url),
        bibtex=bibtex(facts, url),
    )


def _statistic(
    release: Release, view: StatisticView, position: int, ordered: Sequence[str]
) -> dict[str, Any]:
    plan = release.plan_of(view.name)
    rows = table_rows(view.rows)
    more = f", the first {len(rows)} of {len(view.rows):,}" if len(rows) < len(view.rows) else ""
    heading = ", ".join(view.keys[0]) if view.keys and view.keys[0] else view.shown_of
    return {
        "view": view,
        "anchor": f"statistic-{position + 1}",
        "picture": picture(view, ordered),
        "sentence": sentence(release, view),
        "rows": rows,
        "n_rows": f"{len(rows):,}",
        "caption": f"{view.name}: {_TABLES[view.kind]}{more}",
        "key_heading": heading,
        "facts": {
            **view.facts,
            "epsilon of this statistic": format_epsilon(plan.epsilon),
            **(
                {
                    "noise": f"discrete Laplace of scale {number(plan.scale)} lattice units on each of "
                    f"{len(plan.components)} components"
                }
                if plan.sample is None
                else {}
            ),
        },
    }


_TABLES = {POSTERIOR: "posterior", NOISE: "unbiased estimates", SAMPLE: "draws"}


def _explorer(release: Release, files: Mapping[str, bytes], uri: str) -> dict[str, Any]:
    return {
        "label": release.label,
        "uri": uri,
        "manifest": files["manifest.json"].decode("utf-8"),
        "files": {
            name: base64.b64encode(data).decode("ascii")
            for name, data in files.items()
            if name != "manifest.json"
        },
    }


def _downloads(
    facts: Mapping[str, Any], files: Mapping[str, bytes], extra_files: Sequence[tuple[str, str, bytes]]
) -> Iterator[dict[str, str]]:
    rows = {file["path"]: file["rows"] for file in facts["files"]}
    for name, data in files.items():
        what = (
            "the manifest: what was released, at what price, with which noise"
            if name == "manifest.json"
            else f"noisy components or draws, {rows[name]:,} rows"
        )
        yield {
            "path": name,
            "what": what,
            "size": size_text(len(data)),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    for name, what, data in extra_files:
        yield {
            "path": name,
            "what": what,
            "size": size_text(len(data)),
            "sha256": hashlib.sha256(data).hexdigest(),
        }


def size_text(size: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, factor in (("MB", 2**20), ("kB", 2**10)):
        if size >= factor:
            return f"{number(size / factor, 3)} {unit}"
    return f"{size} B"


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell(text="", is_number=False)
    if isinstance(value, float):
        return Cell(text=number(value, 6), is_number=True)
    return Cell(text=str(value), is_number=isinstance(value, int))
