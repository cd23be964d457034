"""The page of a release: what was released, at what price, pictures first, then tables, files and limits.

It says in words what the release is, what it shows, how to use and cite it, and what it is not.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pages.bibliography import bibtex
from suffice.pages.drawing import number
from suffice.pages.explored import asks_parameters, explored
from suffice.pages.price import kept_together, price
from suffice.pages.release_words import lead, limits, lines, protects, sentence
from suffice.pages.rendering import render
from suffice.pages.statistic_picture import picture
from suffice.pages.statistic_view import NOISE, POSTERIOR, SAMPLE
from suffice.pages.tree_section import tree_section
from suffice.pipeline.spec.about import is_address
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.table import Table, texts_of
from suffice.storage.releases.descriptions import citation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pages.statistic_view import StatisticView
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


MOST_TABLE_ROWS = 720
MOST_OPEN_PANELS = 6
"""Of a statistic's small charts; the others are folded away."""
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

    def place(self, folder: str) -> str:
        """Return where readers open a folder of the catalogue: by its URL where that is known."""
        has_url = self.base_url is not None and self.base_url.startswith("https://")
        return f"{self.base_url}/{folder}" if has_url else f"./{folder}"


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
    """Return rows as pages show them, at most so many; those of a `Table` in its words.

    Numbers beside a standard deviation have as many digits as that tells.
    """
    first = [dict(row) for row in rows[:most]]
    if not isinstance(rows, Table):
        return [_cells(row, None) for row in first]
    digits = [rows.digits(row.get("parameter", "")) for row in first]
    return [_cells(row, after) for row, after in zip(rows.in_words(first), digits, strict=True)]


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
    pools: Mapping[str, Mapping[str, Any]] | None = None,
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
    pools : mapping of str to mapping, optional
        By statistic, cells that were published together, as ``PoolBeside.explored`` returns them.
    signature_note : str
        What is known of the signature.
    """
    one_unit, _, further = facts["one_unit"].removeprefix("one unit: ").partition("; ")
    protected = in_words(facts["unit"]).removeprefix("column:")
    about, data_size = release.about, sum(map(len, files.values()))
    embedded = data_size <= LARGEST_EMBEDDED
    alike = not any(release.plan_of(view.name).states_groups for view in views)
    explorer = explored(release, files, uri, pools) if embedded and release.statistics else None
    compares = explorer is not None and (bool(explorer["likelihoods"]) or asks_parameters(release))
    url = f"{site.base_url}/{path}" if site.base_url else None
    return render(
        "release.html",
        scripts=_SCRIPTS if explorer is not None else _SCRIPTS[:2],
        styles=_STYLES,
        site=site,
        root=root,
        here="",
        crumbs=[("Data", "index.html"), (series.label, series.path)],
        facts=facts,
        title=about.title or release.name,
        about=about,
        stated=[
            (field.capitalize(), value, is_address(value))
            for field in ("source", "licence", "contact")
            if (value := getattr(about, field))
        ],
        lead=lead(facts, views, [release.plan_of(view.name) for view in views]),
        protects=protects(facts),
        protected=protected,
        loss=release.loss,
        one_unit=one_unit,
        price=kept_together(price(release.loss, protected)),
        further=kept_together(further[:1].upper() + further[1:]),
        most_panels=MOST_OPEN_PANELS,
        banners=banners,
        neighbours=neighbours,
        signature_note=signature_note,
        trees=[
            (f"tree-{position}", tree_section(release, name, uri))
            for position, name in enumerate(release.trees, start=1)
        ],
        statistics=[_statistic(release, view, position) for position, view in enumerate(views)],
        explorer=explorer,
        explorer_note=(
            f"The data files have {number(data_size / 2**20, 3)} MB: too much for a page to carry. Open the "
            "release in Python, R or JavaScript instead."
            if data_size > LARGEST_EMBEDDED
            else "Statistics with groups of their own are not explored here, but for histograms and trees: "
            "open the release in Python, R or JavaScript."
            if not alike
            else ""
            if release.statistics
            else "A posterior sample is not explored: there are no statistics in it to start from."
        ),
        downloads=list(_downloads(facts, views, files, extra_files)),
        lines=lines(views, uri),
        uri=uri,
        publications=publications,
        limits=list(map(kept_together, limits(facts, views, is_explored=compares))),
        citation=citation(facts, url),
        bibtex=bibtex(facts, url),
    )


def _statistic(release: Release, view: StatisticView, position: int) -> dict[str, Any]:
    plan = release.plan_of(view.name)
    has_order = {DomainKind.RANGE, DomainKind.PERIOD}
    ordered = [column for column, domain in plan.groups.items() if domain.kind in has_order]
    rows = table_rows(release.in_words(view.name, view.rows))
    more = f", the first {len(rows)} of {len(view.rows):,}" if len(rows) < len(view.rows) else ""
    columns = view.keys[0] if view.keys else {}
    heading = ", ".join(map(release.about.column, columns)) or (
        view.shown_of if view.is_column else view.shown_in_words
    )
    return {
        "view": view,
        "anchor": f"statistic-{position + 1}",
        "picture": picture(view, ordered),
        "sentence": f"{sentence(release, view)}{_of_tree(release, view.name)}",
        "rows": rows,
        "n_rows": counted(len(rows), "row"),
        "caption": f"{view.label}: {_TABLES[view.kind]}{more}",
        "key_heading": heading,
        "facts": {
            **_asked_as(view, plan),
            **view.facts,
            f"{plan.loss.measure} of this statistic": plan.loss.text,
            **(
                {
                    "noise": f"discrete Laplace of scale {number(plan.scale)} on each of "
                    f"{counted(len(plan.components), 'released integer')} of a cell"
                    if plan.cone is None
                    else f"cone noise, {plan.cone}; it is as private as Laplace noise of the same epsilon"
                }
                if plan.sample is None
                else {}
            ),
        },
    }


def _of_tree(release: Release, name: str) -> str:
    """Say that a level's posterior is not the tree's."""
    trees = release.trees.items()
    tree = next((tree for tree, levels in trees if name in {level_name(tree, of) for of in levels}), None)
    return "" if tree is None else f" It is this level alone; all levels together are in {tree}, a tree."


def _asked_as(view: StatisticView, plan: StatisticPlan) -> dict[str, str]:
    """Return what the statistic is in the release, where the page calls it otherwise."""
    if not view.has_label:
        return {}
    columns = {"columns read": ", ".join(plan.columns)} if plan.columns else {}
    return {"name in the release": view.name, **columns, "family": view.family.replace("_", " ")}


_TABLES = {POSTERIOR: "posterior", NOISE: "unbiased estimates", SAMPLE: "draws"}
_HELD = {POSTERIOR: "noisy numbers of", NOISE: "noisy numbers of", SAMPLE: "draws of"}


def _downloads(
    facts: Mapping[str, Any],
    views: Sequence[StatisticView],
    files: Mapping[str, bytes],
    extra_files: Sequence[tuple[str, str, bytes]],
) -> Iterator[dict[str, str]]:
    listed = {file["path"]: file for file in facts["files"]}
    shown = {view.name: view for view in views}
    for name, data in files.items():
        what = (
            "the manifest: what was released, at what price, with which noise"
            if name == "manifest.json"
            else f"{_HELD[shown[listed[name]['statistic']].kind]} {shown[listed[name]['statistic']].label}, "
            f"{counted(listed[name]['rows'], 'row')}"
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


def _cells(row: Mapping[str, Any], digits: int | None) -> dict[str, Cell]:
    if not isinstance(row.get("sd", row.get("noise_sd")), float):
        return {column: _cell(value) for column, value in row.items()}
    texts = texts_of(row, digits)
    return {
        column: Cell(text=_signed(text), is_number=True) if isinstance(value, float) else _cell(value)
        for (column, value), text in zip(row.items(), texts, strict=True)
    }


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell(text="", is_number=False)
    if isinstance(value, float):
        return Cell(text=number(value, 6), is_number=True)
    return Cell(text=str(value), is_number=isinstance(value, int))
