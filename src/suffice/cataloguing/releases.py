"""The pages of releases in a catalogue: made from what a store holds, or kept from an earlier run.

Beside each page stand facts as JSON, which other pages are made of, and tables with one row a cell as CSV,
which maps and spreadsheets join.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from suffice.data_files.source import ESTIMATES, Provenance, ReleaseSource, sample_source
from suffice.data_files.tables import csv_bytes, csv_metadata, table_of
from suffice.errors import ReleaseCorruptError, SufficeError
from suffice.pages.pools_beside import pools_beside
from suffice.pages.release_page import Banner, Link, release_page
from suffice.pages.site_pages import SiteEntry, series_path
from suffice.pages.statistic_view import sample_view, statistic_view
from suffice.pipeline.spec.windows_and_amendments import Window, edition, window_times
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.domains import cells_in_words, key_columns
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.hierarchy import by_level
from suffice.pipeline.terms.released.sample import ReleasedQuantile
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
from suffice.storage.releases.about_file import MOST_WORDINGS, about_name
from suffice.storage.releases.about_file import beside as beside_manifest
from suffice.storage.releases.descriptions import describe
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import open_release
from suffice.storage.releases.withdrawal import WITHDRAWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from suffice.pages.site_run import SiteRun
    from suffice.pages.statistic_view import StatisticView
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.statistics.sensitivity import Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.publications.publication import Publication
    from suffice.storage.releases.release_store import ListedRelease, ReleaseStore
    from suffice.storage.signatures.signing import KeyReference

MOST_FOLLOWED = 24
"""Intervals of a statistic that the page of a series follows from window to window."""
MOST_WORDS = 400
"""Columns, keys and categories that search finds a release by."""


def release_facts(release: Release, manifest: bytes, views: Sequence[StatisticView]) -> dict[str, Any]:
    """Return what pages state of a release, fit for JSON.

    Parameters
    ----------
    release : Release
    manifest : bytes
        As it stands in the store.
    views : sequence of StatisticView
        Of its statistics, in order.
    """
    content = release.manifest
    signature = content["signature"]
    groups = {view.name: release.plan_of(view.name).groups for view in views}
    return {
        "label": release.label,
        "title": release.about.title,
        "about": release.about.document(),
        "name": release.name,
        "dataset": release.dataset,
        "window": release.window,
        "edition": edition(release.window, release.amendment),
        "amendment": release.amendment,
        "amends": content["amends"]["release_id"] if release.amendment else None,
        "release_id": release.release_id,
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "created": content["created"],
        **release.loss.stated,
        "costs_rho": format_number(release.rho),
        "neighboring": str(release.neighboring),
        "unit": release.unit,
        "max_rows": content.get("max_rows"),
        "max_rows_per_cell": content.get("max_rows_per_cell"),
        "unit_nulls": content.get("unit_nulls"),
        "one_unit": release.one_unit,
        "public_n": release.public_n,
        "input_verified": content["input_verified"],
        "contract": content.get("contract"),
        "audit": content.get("audit"),
        "signed_by": signature["key_id"] if signature else None,
        "plan_hash": content["plan_hash"],
        "withdrawn": document(release.withdrawn),
        "versions": dict(content["versions"]),
        "window_of": _window(release),
        "groups": {column: len(keys) for column, keys in _keys(release).items()},
        "cells": views[0].n_cells if all(of == groups[views[0].name] for of in groups.values()) else None,
        "cells_text": cells_in_words(by_level(groups, release.trees)),
        "files": [
            {name: file[name] for name in ("statistic", "path", "size", "sha256", "rows")}
            for file in content["files"]
        ],
        "words": _words(release),
        "statistics": [_statistic(release, view) for view in views],
    }


def _keys(release: Release) -> dict[str, list[str | int]]:
    """Return the keys of the statistics' cells, each once, by group column."""
    columns = key_columns(release.plan_of(name).groups for name in release)
    return {column: list(dict.fromkeys(chain(*domains))) for column, domains in columns.items()}


def _words(release: Release) -> list[str]:
    """Return the group columns, the keys and the categories that search finds a release by."""
    of_cells = _keys(release)
    plans = [release.plan_of(file["statistic"]) for file in release.files]
    keys = [str(key) for of in of_cells.values() for key in of]
    categories = [quantity.category for plan in plans for quantity in plan.quantities if quantity.category]
    columns = [column for plan in plans for column in plan.columns]
    groups = list(of_cells)
    said = _said(release.about)
    return list(dict.fromkeys([*groups, *columns, *said, *categories, *keys]))[:MOST_WORDS]


def _said(about: About) -> list[str]:
    """Return the titles and labels that search finds a release by."""
    labels = [words.label for words in about.statistics.values()]
    labels += [words.label for words in about.keys.values()]
    values = [text for words in about.statistics.values() for text in words.values.values()]
    values += [text for words in about.keys.values() for text in words.values.values()]
    return [text for text in (about.title, *labels, *values) if text]


def _window(release: Release) -> dict[str, Any] | None:
    """Return the column and the length of windows, and whether this one had ended; None without windows."""
    grid = release.manifest["plan"]["window"]
    if grid is None:
        return None
    ends = window_times(Window.model_validate(grid), release.window).ends
    created = dt.datetime.strptime(release.manifest["created"], "%Y-%m-%dT%HZ").replace(tzinfo=dt.UTC)
    return {
        "column": grid["column"],
        "every": grid["every"],
        "ends": f"{ends:%Y-%m-%dT%H:%MZ}",
        "closed": created + dt.timedelta(hours=1) > ends,
    }


def _statistic(release: Release, view: StatisticView) -> dict[str, Any]:
    plan = release.plan_of(view.name)
    bounds = [plan.parameters.lower, plan.parameters.upper]
    followed = [
        {
            "of": [*map(str, view.keys[cell].values()), entry],
            "label": ", ".join(filter(None, (view.cell_label(cell), view.entry_label(entry))))
            or view.shown_in_words,
            "marks": [interval.low, interval.lower_half, interval.middle, interval.upper_half, interval.high]
            if interval.is_finite
            else None,
        }
        for cell, entries in enumerate(view.intervals)
        for entry, interval in zip(view.entries, entries, strict=True)
    ]
    return {
        "name": view.name,
        "family": view.family,
        "columns": list(plan.columns),
        **plan.loss.stated,
        "mechanism": plan.mechanism,
        "scale": float(_scale(plan)),
        "components": len(plan.components),
        "bounds": None if None in bounds else [float(bound) for bound in bounds if bound is not None],
        "kind": view.kind,
        "shown_of": view.shown_in_words,
        "facts": dict(view.facts),
        "n_followed": len(followed) if not view.selection else 0,
        "followed": followed[:MOST_FOLLOWED] if not view.selection else [],
    }


MOST_COLUMNS = 200
"""Columns of a table that people read; a statistic with more has a file of its components alone."""


def keyed_files(release: Release, name: str) -> list[tuple[str, str, bytes]]:
    """Return a statistic's table with one row a cell, and the document that says where it is from.

    Parameters
    ----------
    release : Release
    name : str
        Of the statistic.

    Returns
    -------
    list of (str, str, bytes)
        Name, description and content; empty where there would be too many columns.
    """
    if name in release.sampled:
        return _sample_files(release, release.sampled[name])
    statistic = release.statistic(name)
    quantities = statistic.plan.quantities
    if len(quantities) * 2 + len(statistic.groups) > MOST_COLUMNS:
        return []
    columns: dict[str, Any] = dict(statistic.groups)
    for quantity in quantities:
        label = _label(quantity)
        while label in columns:  # a group column may be called so
            label = f"{label} "
        columns[label] = statistic.estimates(quantity)
        columns[f"{label} noise_sd"] = [statistic.plan.quantity_noise_sd(quantity)] * len(statistic.values)
    source = Provenance(what=ESTIMATES, releases=(ReleaseSource.of(release),), statistic=name)
    return _files(name, columns, source, "unbiased estimates for spreadsheets and maps, one row a cell")


def _scale(plan: StatisticPlan) -> float | Fraction:
    """Return the scale of noise, the temperature of a sample, or the rank scale of a quantile.

    Of noise on a cone it is one over its rate.
    """
    if plan.cone is not None:
        return 1 / plan.cone.rate
    if plan.sample is None:
        return plan.scale
    return plan.sample.temperature if isinstance(plan.sample, SamplePlan) else plan.sample.rank_scale


def _sample_files(release: Release, sample: ReleasedSample) -> list[tuple[str, str, bytes]]:
    """Return a sample's draws side by side, one row a cell."""
    n_draws = sample.indices.shape[1]
    if n_draws + len(sample.groups) > MOST_COLUMNS:
        return []
    columns: dict[str, Any] = dict(sample.groups)
    for draw in range(n_draws):
        label = f"{sample.parameter} draw {draw}"
        while label in columns:  # a group column may be called so
            label = f"{label} "
        columns[label] = sample.values[:, draw]
    what = f"{_drawn(sample)} for spreadsheets and maps, one row a cell"
    return _files(sample.plan.name, columns, sample_source(release, sample), what)


def _drawn(sample: ReleasedSample) -> str:
    if isinstance(sample, ReleasedQuantile):
        return "middles of the bins that were drawn for a quantile,"
    return "draws of the posterior"


def _files(name: str, columns: dict[str, Any], source: Provenance, what: str) -> list[tuple[str, str, bytes]]:
    table, path = table_of(columns), f"{name}.csv"
    return [
        (path, what, csv_bytes(table)),
        (f"{path}-metadata.json", f"what {path} is, and where it is from", csv_metadata(table, source, path)),
    ]


def _label(quantity: Quantity) -> str:
    labels = [f"{name}={key}" for name, key in quantity.labels if name != "table"]
    of = ",".join(filter(None, [quantity.category, quantity.component, *labels]))
    return f"{quantity.name}[{of}]" if of else quantity.name


_FACTS = "facts.json"
_BESIDE = {
    WITHDRAWN: "that this release was withdrawn, and why",
    "datapackage.json": "a Frictionless data package",
    "croissant.json": "Croissant metadata",
}
_WORDS = "what it is about: titles, labels, units"
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
    pooled : mapping of str to sequence of Publication
        By the same, those of cells that borrow strength, the newest first.
    """

    run: SiteRun
    store: ReleaseStore
    public_keys: Sequence[KeyReference] | None
    publications: Mapping[str, Sequence[Link]]
    pooled: Mapping[str, Sequence[Publication]]

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
            for name in (MANIFEST, WITHDRAWN)
            if (data := self.store.objects.get(f"{stored}/{name}", at_most=_LARGEST_FILE)) is not None
        } | _words_beside(self.store, f"{stored}/")
        made_of = (
            {name: hashlib.sha256(data).hexdigest() for name, data in beside.items()},
            amended,
            around,
            self._resting(beside),
            [hashlib.sha256(publication.data).hexdigest() for publication in self._pooled(beside)],
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
            sample_view(release.sampled[name], release.about)
            if name in release.sampled
            else statistic_view(release, name, seed=seed)
            for name in names
        ]
        facts = release_facts(release, manifest, views)
        described = describe(manifest, parse_manifest(manifest), release.about)  # of the newest words
        extra = [
            *(file for name in names for file in keyed_files(release, name)),
            *((name, _BESIDE.get(name, _WORDS), data) for name, data in beside.items() if name != MANIFEST),
            *((name, _BESIDE[name], data) for name, data in described.items()),
        ]
        page = release_page(
            release,
            facts,
            views,
            site=self.run.site,
            root="../" * 4,
            uri=listed.uri if "://" in listed.uri else self.run.site.place(place),
            path=f"{place}/index.html",
            files=files,
            extra_files=extra,
            banners=list(_banners(release, amended)),
            neighbours=[
                (kind, Link(path=f"{_place(other)}/index.html", label=f"{other.name}@{other.edition}"))
                for kind, other in around
            ],
            publications=self._resting(beside),
            pools=self._pools(release, beside),
            series=Link(path=series_path(listed.name), label=release.about.title or listed.name),
            signature_note="checked" if self.public_keys else "not checked by this catalogue",
        )
        folder = self.run.folder
        for name, data in [*files.items(), *((name, data) for name, _, data in extra)]:
            folder.write(f"{place}/{name}", data)
        folder.write(f"{place}/{_FACTS}", (json.dumps(facts, ensure_ascii=False) + "\n").encode())
        folder.write(f"{place}/index.html", page.encode())
        return facts

    def _pools(self, release: Release, beside: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
        """Return by statistic what was published of the release's cells together."""
        published = {each.publication_id: each for each in self._pooled(beside)}
        pools = {}
        for name, pool in pools_beside(release, [*published.values()]).items():
            uri = published[pool.publication_id].uri
            place = uri if "://" in uri else self.run.site.place(f"publications/{pool.publication_id}")
            # Statistics may have other groups than the release; keys stand in the order of the manifest.
            pools[name] = pool.explored([*release.plan_of(name).groups], "../" * 4, place)
        return pools

    def _pooled(self, beside: Mapping[str, bytes]) -> Sequence[Publication]:
        """Return the publications of pooled cells that rest on the release with this manifest."""
        return self.pooled.get(hashlib.sha256(beside.get(MANIFEST, b"")).hexdigest(), ())

    def _resting(self, beside: Mapping[str, bytes]) -> Sequence[Link]:
        """Return the publications that rest on the release with this manifest."""
        return self.publications.get(hashlib.sha256(beside.get(MANIFEST, b"")).hexdigest(), ())


def _words_beside(store: ReleaseStore, prefix: str) -> dict[str, bytes]:
    """Return the files of words that stand beside a manifest, one after the other, unread."""
    get, files = beside_manifest(store.objects, prefix), {}
    for number in range(1, MOST_WORDINGS + 1):
        data = get(about_name(number))
        if data is None:
            break
        files[about_name(number)] = data
    return files


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
