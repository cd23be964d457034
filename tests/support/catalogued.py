"""A store for catalogues: windows, an amendment, a withdrawal, a publication, and keys that attack pages."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from fractions import Fraction
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np

import suffice
from suffice.pages.card import card
from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.storage.operations.withdrawing import withdraw
from suffice.storage.publications.publication_store import PublicationStore
from support.publications import id_of, request_of
from support.releases import RELEASE_ID, compose, data_files, make_plan, make_store, publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "</script></svg><style>*{display:none}</style>",
    "'\"><a href=javascript:alert(1)>&amp;&lt;",
    "\u03bd\u200d\u03b9",
    "-->]]>{{7*7}}=cmd|' /C calc'!A0",
]
WINDOWS = ("2013-01", "2013-02", "2013-03")


def realistic(plan: Plan, seed: int) -> dict[str, Any]:
    """Return values that some thousand records a cell might have given."""
    rng = np.random.default_rng(seed)
    return {
        statistic.name: (
            (statistic.partition_total or 1)
            * rng.integers(200, 900, (statistic.n_cells, len(statistic.components)))
        ).astype(object)
        for statistic in plan.statistics
    }


def monthly_plan(**changes: Any) -> Plan:
    """Compile a spec of windows."""
    return make_plan(
        **{
            "name": "monthly",
            "window": {"column": "day", "every": "month"},
            "statistics": {
                "cancelled": {"family": "bernoulli", "column": "cancelled"},
                "carrier": {"family": "categorical", "column": "k", "categories": ["UA"], "other": True},
            },
            **changes,
        }
    )


def hostile_plan(*, categories: bool = True) -> Plan:
    """Compile a spec whose keys, and categories, are markup."""
    statistics: dict[str, Any] = {"flag": {"family": "bernoulli", "column": "c<i>"}}
    if categories:
        kinds = {"family": "categorical", "column": "k", "categories": HOSTILE[:3], "other": True}
        columns = {"x": {"lower": 0, "upper": 1}, "y<u>": {"lower": 0, "upper": 2}}
        statistics |= {"kind": kinds, "xy": {"family": "multivariate_normal", "columns": columns}}
    groups = {"o<b>": HOSTILE, "hour": {"range": [1, 4]}}
    return make_plan(name="hostile", dataset="others", groups=groups, statistics=statistics)


def make_small(root: Path, *windows: str) -> Path:
    """Make a store of one statistic; return its folder."""
    plan = monthly_plan(statistics={"cancelled": {"family": "bernoulli", "column": "c"}})
    for seed, window in enumerate(windows):
        publish(root / "store", plan, realistic(plan, seed), window=window)
    return root / "store"


def make_catalogued(root: Path) -> Path:
    """Make the store; return its folder."""
    store = root / "store"
    plan = monthly_plan()
    for number, window in enumerate(WINDOWS):
        publish(store, plan, realistic(plan, number), window=window)
    amend(store, plan, "2013-02")
    publish(store, hostile_plan(), realistic(hostile_plan(), 7))
    withdraw(
        str(store / "monthly" / "2013-01" / RELEASE_ID),
        reason="rows of <b>2012</b> were in it",
        created=dt.datetime(2026, 2, 1, tzinfo=dt.UTC),
    )
    publish_answer(store, "monthly/2013-03")
    return store


def amend(store: Path, plan: Plan, window: str) -> Path:
    """Publish the first amendment of a window."""
    first = (store / plan.name / window / RELEASE_ID / "manifest.json").read_bytes()
    replaced = AmendedRelease(release_id=RELEASE_ID, manifest_sha256=hashlib.sha256(first).hexdigest())
    opened, edition, release_id = make_store(store), f"{window}.1", "fedcba9876543210"
    values = realistic(plan, 99)
    files = []
    for file in data_files(plan, values, opened, edition):
        standing = store / plan.name / edition / RELEASE_ID / file.path
        target = store / plan.name / edition / release_id / file.path
        target.parent.mkdir(exist_ok=True)
        standing.rename(target)
        files.append(file)
    (store / plan.name / edition / RELEASE_ID).rmdir()
    manifest = compose(plan, files, window=window, amendment=1, amends=replaced, release_id=release_id)
    opened.put_manifest(plan.name, edition, release_id, manifest)
    return store / plan.name / edition / release_id


def publish_answer(store: Path, place: str, *, page: str | None = None) -> str:
    """Publish a posterior of the release at a place with a card; return the publication's id."""
    from suffice.storage.publications.publication import compose_publication

    folder = store / place / RELEASE_ID
    release = suffice.open_release(str(folder))
    posterior = release.posterior("cancelled", prior="Beta(1, 9)")
    text = page or card(release, posterior, mass=0.95, draws=100, seed=1, rng=np.random.default_rng(1))
    sha256 = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    request = request_of(
        releases=[{"release_id": RELEASE_ID, "manifest_sha256": sha256, "label": release.label}],
        **({"seed": 9} if page else {}),
    )
    rows = [{"origin": f"{HOSTILE[0]}\u200b", "parameter": "probability", "mean": 0.25}]
    publications, publication_id = PublicationStore.open(str(store)), id_of(request)
    files = [
        publications.put_file(publication_id, "summaries.csv-metadata.json", b"{}").entry(
            role="summaries", file_format="json"
        ),
        publications.put_file(publication_id, "summaries.json", json.dumps({"rows": rows}).encode()).entry(
            role="summaries", file_format="json", rows=1
        ),
        publications.put_file(publication_id, "card.html", text.encode()).entry(
            role="card", file_format="html"
        ),
    ]
    manifest = compose_publication(
        request,
        title="Posterior of <i>cancelled</i>",
        losses={RELEASE_ID: PrivacyLoss.of_epsilon(Fraction(1))},
        files=files,
        created=dt.datetime(2026, 2, 2, tzinfo=dt.UTC),
    )
    publications.publish(publication_id, manifest)
    return publication_id


class Page(HTMLParser):
    """What a page holds: tags with attributes, the text of scripts, ids and headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.shown = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in {"script", "style"} else ""
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag in {"script", "style"} else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.shown += data

    @property
    def ids(self) -> list[str]:
        """Every id, in order."""
        return [attributes["id"] or "" for _, attributes in self.tags if "id" in attributes]
