"""The pages around releases: the first one, datasets, series, search, how to read one; and feeds."""

from __future__ import annotations

import json
import shlex
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from suffice.pages.drawing import DrawnInterval
from suffice.pages.price import kept_together
from suffice.pages.release_page import Link, Site, table_rows
from suffice.pages.rendering import render, visible
from suffice.pages.statistic_picture import panels_of
from suffice.pages.statistic_view import SAMPLE
from suffice.pipeline.spec.about import read_about
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pages.budget import Budget
    from suffice.pipeline.spec.about import About

_SCRIPTS = ("theme.js", "catalogue.js")
_STYLES = ("style.css",)
_LATEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEntry:
    """A release as other pages list it.

    Attributes
    ----------
    facts : mapping
        As ``release_facts`` gives them.
    path : str
        Of its page, below the root.
    mark : str
        ``withdrawn`` or ``amended``; empty for a release that stands.
    words : str
        What search finds it by, beside its names.
    """

    facts: Mapping[str, Any]
    path: str
    mark: str = ""
    words: str = ""

    @property
    def about(self) -> About:
        """What the release's owner says of it."""
        return read_about(self.facts["about"])

    @property
    def title(self) -> str:
        """What the release is called, with its edition."""
        facts = self.facts
        if not facts["title"]:
            return str(facts["label"])
        return str(facts["title"]) + ("" if facts["window"] == "all" else f", {facts['edition']}")

    @property
    def loss(self) -> PrivacyLoss:
        """What the release states that it costs."""
        return PrivacyLoss.read(self.facts)

    @property
    def statistics(self) -> str:
        """What its statistics are called."""
        return ", ".join(self.about.label(statistic["name"]) for statistic in self.facts["statistics"])


def series_path(name: str) -> str:
    """Return where the page of a series stands."""
    return f"series/{name}.html"


def dataset_path(name: str) -> str:
    """Return where the page of a dataset stands."""
    return f"datasets/{name}.html"


def start_page(
    site: Site,
    entries: Sequence[SiteEntry],
    budgets: Mapping[str, Budget],
    publications: Sequence[Link],
    problems: Sequence[str],
) -> str:
    """Return the first page; entries by name and window."""
    newest = sorted(entries, key=lambda entry: entry.facts["created"], reverse=True)
    series = _series_of(entries)
    totals = [
        ("Datasets", len(budgets)),
        ("Series", len(series)),
        ("Releases", len(entries)),
        *([("Published posteriors", len(publications))] if publications else []),
    ]
    return _render(
        "start.html",
        site,
        root="",
        here="index.html",
        crumbs=(),
        totals=totals,
        problems=problems,
        datasets=[
            {
                "name": name,
                "path": dataset_path(name),
                "text": budget.guarantee,
                "chart": budget.chart(name, height=146),
                "spent": budget.sentence,
            }
            for name, budget in budgets.items()
        ],
        all_series=[_series_card(name, of) for name, of in series.items()],
        publications=publications,
        latest=newest[:_LATEST],
    )


def dataset_page(site: Site, name: str, entries: Sequence[SiteEntry], budget: Budget) -> str:
    """Return the page of a dataset; `entries` are its releases."""
    series = _series_of(entries)
    return _render(
        "dataset.html",
        site,
        root="../",
        here="",
        crumbs=[("Data", "index.html")],
        name=name,
        lead=kept_together(f"{budget.guarantee} {budget.sentence}"),
        chart=budget.chart(name, height=220),
        caption=budget.caption,
        notes=budget.notes,
        protected=budget.protected,
        person=list(map(kept_together, budget.person)),
        rows=table_rows(budget.rows),
        all_series=[_series_card(series_name, of) for series_name, of in series.items()],
    )


def series_page(site: Site, name: str, entries: Sequence[SiteEntry]) -> str:
    """Return the page of a series; `entries` are its releases, in the order of windows."""
    newest = entries[-1].facts
    followed = [entry for entry in entries if not entry.mark]
    statistics = []
    if len(followed) > 1:
        statistics = [_followed(followed, statistic["name"]) for statistic in newest["statistics"]]
    every = newest["window_of"]["every"] if newest["window_of"] else None
    windows = f"one release for each {every} of {newest['window_of']['column']}" if every else "one release"
    so_far = f", {counted(len(entries), 'release')} so far" if every or len(entries) > 1 else ""
    return _render(
        "series.html",
        site,
        root="../",
        here="",
        crumbs=[("Data", "index.html"), (newest["dataset"], dataset_path(newest["dataset"]))],
        name=newest["title"] or name,
        dataset=newest["dataset"],
        lead=f"{windows[0].upper()}{windows[1:]}{so_far}, "
        f"{entries[-1].loss}{_each(entries)}. {_cells_text(entries[-1])}",
        statistics=[statistic for statistic in statistics if statistic is not None],
        entries=list(reversed(entries)),
    )


def search_page(site: Site, entries: Sequence[SiteEntry], publications: Sequence[Link]) -> str:
    """Return the page that searches; it carries its whole index."""
    series = _series_of(entries)
    datasets = sorted({entry.facts["dataset"] for entry in entries})
    index = [
        *(
            {"kind": "dataset", "title": name, "path": dataset_path(name), "text": "", "words": ""}
            for name in datasets
        ),
        *(
            {
                "kind": "series",
                "title": of[-1].facts["title"] or name,
                "path": series_path(name),
                "text": f"{of[-1].facts['dataset']}: {_statistics_text(of[-1])}",
                "words": f"{name} {of[-1].words}",
            }
            for name, of in series.items()
        ),
        *(
            {
                "kind": "release",
                "title": entry.title,
                "path": entry.path,
                "text": f"{_statistics_text(entry)}; {entry.loss}"
                + (f"; {entry.mark}" if entry.mark else ""),
                "words": f"{entry.facts['release_id']} {entry.facts['dataset']} {entry.facts['label']}",
            }
            for entry in entries
        ),
        *(
            {
                "kind": "publication",
                "title": publication.label,
                "path": publication.path,
                "text": publication.text,
                "words": publication.words,
                "series": [name for name in publication.series if name in series],
            }
            for publication in publications
        ),
    ]
    return _render("search.html", site, root="", here="search.html", crumbs=(), index=index)


def reading_page(site: Site, entries: Sequence[SiteEntry]) -> str:
    """Return the page on how to read a release, with lines for an example: the last with noisy statistics."""
    example = next((entry for entry in reversed(entries) if any(_noisy(entry))), None)
    folder = example.path.removesuffix("/index.html") if example else "releases/NAME/WINDOW/ID"
    first = next(_noisy(example), None) if example else None
    first = first or {"name": "STATISTIC", "family": "bernoulli"}
    statistic, place = str(first["name"]), site.place(folder)
    return _render(
        "reading.html",
        site,
        root="",
        here="reading.html",
        crumbs=(),
        python=(
            f"import suffice\n\nrelease = suffice.open_release({place!r})\nprint(release)\n"
            f"print(release.table({statistic!r}))\n"
            f"print(release[{statistic!r}].posterior())"
        ),
        cli=(
            f"suffice verify {shlex.quote(place)}\nsuffice table {shlex.quote(place)} {statistic}\n"
            f"suffice posterior {shlex.quote(place)} {statistic}"
        ),
        javascript=(
            'import { readFile } from "node:fs/promises";\nimport { readRelease } from "suffice-reader";\n\n'
            f"const folder = {json.dumps(f'./{folder}/')};\n"
            f'const files = {{ "{statistic}.parquet": await readFile(folder + "{statistic}.parquet") }};\n'
            'const manifest = await readFile(folder + "manifest.json");\n'
            f'const options = {{ statistics: ["{statistic}"] }};\n'
            "const release = await readRelease(manifest, files, options);\n"
            f'console.log(release.table("{statistic}"));'
        ),
        r=(f'release <- suffice::read_release("{folder}")\nsuffice::release_table(release, "{statistic}")'),
        sql=(
            ".read suffice.sql\n"
            f"FROM suffice_table('{folder}', '{statistic}');\n"
            f"FROM suffice_intervals('{folder}', '{statistic}', 0.95);"
        ),
    )


def _noisy(entry: SiteEntry) -> Iterator[dict[str, Any]]:
    """Give the statistics of a release that are no samples."""
    return (statistic for statistic in entry.facts["statistics"] if statistic["kind"] != SAMPLE)


def _render(template: str, site: Site, **context: Any) -> str:
    return render(template, scripts=_SCRIPTS, styles=_STYLES, site=site, **context)


def _series_of(entries: Sequence[SiteEntry]) -> dict[str, list[SiteEntry]]:
    series: dict[str, list[SiteEntry]] = {}
    for entry in entries:
        series.setdefault(entry.facts["name"], []).append(entry)
    return series


def _series_card(name: str, entries: Sequence[SiteEntry]) -> dict[str, Any]:
    newest = entries[-1].facts
    windows = [entry.facts["window"] for entry in entries]
    span = ""
    if windows != ["all"]:
        span = f", {windows[0]}" + (f" to {windows[-1]}" if windows[-1] != windows[0] else "")
    return {
        "name": newest["title"] or name,
        "path": series_path(name),
        "text": f"{counted(len(entries), 'release')}{span}, {entries[-1].loss}{_each(entries)}. "
        f"{_cells_text(entries[-1])}",
        "tags": [_called(entries[-1].about, statistic, "{}: {}") for statistic in newest["statistics"]],
    }


def _each(entries: Sequence[SiteEntry]) -> str:
    return " each" if len(entries) > 1 else ""


def _cells_text(entry: SiteEntry) -> str:
    if entry.facts["cells"] is None:
        return f"{entry.facts['cells_text']}."
    if not entry.facts["groups"]:
        return "No groups: one cell."
    columns = map(entry.about.column, entry.facts["groups"])
    return f"{counted(entry.facts['cells'], 'cell')} by {' and '.join(columns)}."


def _called(about: About, statistic: Mapping[str, Any], form: str) -> str:
    """Return a statistic's label; where it has none, its name and what is assumed of its records."""
    label = about.words(statistic["name"]).label
    return label or form.format(statistic["name"], statistic["family"].replace("_", " "))


def _statistics_text(entry: SiteEntry) -> str:
    about = entry.about
    return ", ".join(_called(about, statistic, "{} ({})") for statistic in entry.facts["statistics"])


def _followed(entries: Sequence[SiteEntry], name: str) -> dict[str, Any] | None:
    """Return a statistic's panels over the windows; None where pages of releases follow nothing of it."""
    by_cell: dict[tuple[str, ...], list[DrawnInterval | None]] = {}
    labels: dict[tuple[str, ...], str] = {}
    windows = [entry.facts["window"] for entry in entries]
    kind, shown_of, left_out, rows = "posterior", "", 0, []
    for place, entry in enumerate(entries):
        statistic = next((shown for shown in entry.facts["statistics"] if shown["name"] == name), None)
        if statistic is None:
            continue
        kind, shown_of = statistic["kind"], statistic["shown_of"]
        left_out = statistic["n_followed"] - len(statistic["followed"])
        for cell in statistic["followed"]:
            marks = cell["marks"]
            if marks is None:
                continue
            low, lower_half, middle, upper_half, high = marks
            interval = DrawnInterval(
                low=low, lower_half=lower_half, middle=middle, upper_half=upper_half, high=high
            )
            of = tuple(cell["of"])
            by_cell.setdefault(of, [None] * len(entries))[place] = interval
            labels[of] = cell["label"]  # the newest words
            rows.append(
                {
                    "window": entry.facts["edition"],
                    "of": cell["label"],
                    "median" if kind == "posterior" else "estimate": middle,
                    "lower": low,
                    "upper": high,
                }
            )
    if not by_cell:
        return None
    is_plain = len(set(labels.values())) == len(labels)
    by_label = {labels[of] if is_plain else ", ".join(of): shown for of, shown in by_cell.items()}
    more = f" The first {len(by_label)} of {len(by_label) + left_out} are shown." if left_out else ""
    what = "95 % posterior intervals" if kind == "posterior" else "estimates with 95 % noise intervals"
    label = entries[-1].about.words(name).label
    called = shown_of if label else f"{shown_of.replace('_', ' ').capitalize()} of {name}"
    return {
        "name": label or name,
        "kind": kind,
        "panels": panels_of(by_label, windows, ("window", shown_of.replace("_", " "))),
        "caption": f"{called} over the windows: {what}, each window from its own release.{more}",
        "rows": table_rows(rows),
    }


_MOST = 50
_NAMESPACE = uuid.UUID("5d6e1c3a-6f0b-5c6b-9f0e-2b1f6f3a7c11")
"""Of the ids of entries, which are the same wherever a catalogue stands."""


def atom_feed(site: Site, entries: Sequence[SiteEntry]) -> str:
    """Return an Atom feed; its links are relative where the catalogue's address is not known."""
    base = f"{site.base_url}/" if site.base_url else ""
    newest = _newest(entries)
    updated = _time(newest[0].facts["created"]) if newest else "1970-01-01T00:00:00Z"
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{_text(site.title)}</title>",
        f"<id>{_id('catalogue ' + site.title)}</id>",
        f"<updated>{updated}</updated>",
        "<author><name>suffice</name></author>",
        f'<link rel="self" type="application/atom+xml" href={_attribute(base + "feed.xml")}/>',
        f'<link rel="alternate" type="text/html" href={_attribute(base + "index.html")}/>',
    ]
    for entry in newest:
        parts += [
            "<entry>",
            f"<title>{_text(entry.title)}</title>",
            f"<id>{_id(entry.facts['manifest_sha256'])}</id>",
            f"<updated>{_time(entry.facts['created'])}</updated>",
            f'<link rel="alternate" type="text/html" href={_attribute(base + entry.path)}/>',
            f"<summary>{_text(_summary(entry))}</summary>",
            "</entry>",
        ]
    return "\n".join([*parts, "</feed>", ""])


def json_feed(site: Site, entries: Sequence[SiteEntry]) -> str:
    """Return a JSON Feed; it has addresses where the catalogue's is known."""
    base = f"{site.base_url}/" if site.base_url else None
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": visible(site.title),
        **({"home_page_url": f"{base}index.html", "feed_url": f"{base}feed.json"} if base else {}),
        "items": [
            {
                "id": _id(entry.facts["manifest_sha256"]),
                **({"url": base + entry.path} if base else {}),
                "title": visible(entry.title),
                "content_text": visible(_summary(entry)),
                "date_published": _time(entry.facts["created"]),
                "tags": sorted({statistic["family"] for statistic in entry.facts["statistics"]}),
            }
            for entry in _newest(entries)
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _newest(entries: Sequence[SiteEntry]) -> list[SiteEntry]:
    return sorted(entries, key=lambda entry: (entry.facts["created"], entry.path), reverse=True)[:_MOST]


def _summary(entry: SiteEntry) -> str:
    facts = entry.facts
    mark = f" This release was {entry.mark}." if entry.mark else ""
    about = entry.about.description or ""
    said = f" {about}" if about.endswith((".", "!", "?")) else f" {about}." if about else ""
    about_cells = f"{entry.statistics}; {facts['cells_text']}, {entry.loss}"
    return f"{facts['dataset']}: {about_cells}.{said}{mark}"


def _time(hour: str) -> str:
    return f"{hour[:13]}:00:00Z"


def _id(name: str) -> str:
    return f"urn:uuid:{uuid.uuid5(_NAMESPACE, name)}"


def _text(text: str) -> str:
    return escape(visible(text))


def _attribute(text: str) -> str:
    return quoteattr(visible(text))
