"""A catalogue of publications that others wrote: nothing of theirs runs, nor stops the rest."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.cataloguing.catalogue import catalogue
from suffice.data_files.first_rows import first_rows
from suffice.errors import PublicationCorruptError
from suffice.pages.drawing import DrawnInterval, interval_text
from suffice.pages.publication_page import is_inert
from suffice.pages.rendering import asset, content_policy
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.released.table import texts_of
from suffice.publishing.publish import publish
from suffice.storage.operations.withdrawing import withdraw
from suffice.storage.publications.publication import publication_id_of
from suffice.storage.publications.publication_store import PublicationStore
from support.catalogued import Page
from support.many_cells import publish_many_cells
from support.publications import publish as publish_files
from support.published import KEYS, make_release
from support.publishing_in_parts import in_parts

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.publications.publication import Publication

PROLOGUE = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    f'<meta http-equiv="Content-Security-Policy" content="{content_policy([asset("theme.js")], ["a{}"])}">'
)


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def _put(store: PublicationStore, like: Publication, **changes: Any) -> str:
    """Put a manifest of another request, whose id, checksum and files fit."""
    request = {**like.request, **changes}
    publication_id = publication_id_of(canonical_json.encode(request))
    for file in like.files:
        store.put_file(publication_id, file.name, like.read(file.name))
    content = {
        **like.manifest,
        "request": request,
        "publication_id": publication_id,
        "checksum": None,
        "signature": None,
    }
    content["checksum"] = hashlib.sha256(canonical_json.encode(content)).hexdigest()
    store.objects.put_new(f"{publication_id}/manifest.json", canonical_json.encode(content))
    return publication_id


CHANGES: list[dict[str, Any]] = [
    {"statistics": "all"},
    {"statistics": []},
    {"mass": "nine"},
    {"algorithm": 2},
    {"over": _nested(600)},
    {"further": _nested(600)},
    {"formats": ["parquet", "card"]},
]


def test_what_answers_no_request_is_refused_and_stops_nothing_else(tmp_path: Path) -> None:
    store = PublicationStore.open(tmp_path / "store")
    release = make_release(tmp_path / "store", statistics={"flag": {"family": "bernoulli", "column": "c"}})
    made = publish(release, "flag", draws=0, formats="parquet")
    hostile = [_put(store, made, **changes) for changes in CHANGES]
    for publication_id in hostile:
        with pytest.raises(PublicationCorruptError, match=r"corrupt: (request|releases|not canonical)"):
            store.find(publication_id)
    written = catalogue(tmp_path / "store", tmp_path / "site")
    assert (written.releases, written.publications) == (1, 1)
    assert sorted(problem.split()[1].rstrip(":") for problem in written.problems) == sorted(hostile)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flag-summaries.parquet", "flag-summaries.json"], ids=["Parquet", "JSON"])
def test_a_table_that_is_none_leaves_its_publication_out_and_nothing_leads_there(
    tmp_path: Path, name: str
) -> None:
    release = make_release(tmp_path / "store", statistics={"flag": {"family": "bernoulli", "column": "c"}})
    made = publish(release, "flag", draws=0, formats=["json", "parquet"])
    store = PublicationStore.open(tmp_path / "store")
    (entry,) = [file for file in made.files if file.name == name]
    hostile = store.put_file(made.publication_id, name, b"PAR1" + bytes(range(256)) + b"PAR1")
    forged = hostile.entry(role="summaries", file_format=entry.format, rows=entry.rows)
    others = [] if entry.format == "json" else [file for file in made.files if file.name != name]
    content = {
        **made.manifest,
        "files": [publication.model_dump() for publication in (forged, *others)],
        "checksum": None,
    }
    content["checksum"] = hashlib.sha256(canonical_json.encode(content)).hexdigest()
    folder = tmp_path / "store" / "publications" / made.publication_id
    (folder / "manifest.json").write_bytes(canonical_json.encode(content))
    again = publish(release, "flag", draws=0, formats="csv")
    written = catalogue(tmp_path / "store", tmp_path / "site")
    assert (written.releases, written.publications) == (1, 1)
    (problem,) = written.problems
    assert problem.startswith(f"publication {made.publication_id}: a table of the publication cannot be read")
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("index.html")]
    assert not any(f"publications/{made.publication_id}/" in page for page in pages)
    assert any(f"publications/{again.publication_id}/" in page for page in pages)
    assert any(f"publication {made.publication_id}: it does not verify." in page for page in pages)


@pytest.mark.slow
def test_numbers_of_a_page_are_those_of_its_parquet_summaries(tmp_path: Path) -> None:
    release = make_release(tmp_path / "store")
    made = publish(release, ["flag", "kind"], draws=0)
    catalogue(tmp_path / "store", tmp_path / "site")
    folder = tmp_path / "site" / "publications" / made.publication_id
    shown = Page((folder / "index.html").read_text(encoding="utf-8")).shown
    for name in ("flag", "kind"):
        rows, n_rows = first_rows(made.read(f"{name}-summaries.parquet"), 100)
        assert len(rows) == n_rows > 0
        for row in rows:
            texts = texts_of({column: row[column] for column in ("mean", "sd", "lower", "upper")})
            assert all(text.replace("-", "\N{MINUS SIGN}") in shown or text in shown for text in texts)
            assert float(texts[0]) == pytest.approx(row["mean"], abs=0.06 * row["sd"])
            low, middle, high = row["lower"], row["mean"], row["upper"]
            ends = DrawnInterval(low=low, lower_half=middle, middle=middle, upper_half=middle, high=high)
            assert f"{interval_text(low, ends)} to {interval_text(high, ends)}" in shown
    assert all(key in shown for key in KEYS)


def test_of_parts_the_first_rows_are_shown_and_how_many_there_are(tmp_path: Path) -> None:
    path = publish_many_cells(tmp_path / "store", "bernoulli", 6, 5, np.random.default_rng(7))
    made, _ = in_parts(path, tmp_path / "store", 10, draws=3)
    catalogue(tmp_path / "store", tmp_path / "site")
    page = Page(
        (tmp_path / "site" / "publications" / made.publication_id / "index.html").read_text(encoding="utf-8")
    )
    assert "the first 10 of 30 rows" in page.shown
    (table,) = [attributes for tag, attributes in page.tags if tag == "table" and "id" in attributes]
    assert table["id"] == "rows-1"


@pytest.mark.slow
def test_a_page_stays_small_whatever_stands_in_a_table(tmp_path: Path) -> None:
    release = make_release(tmp_path / "store", statistics={"flag": {"family": "bernoulli", "column": "c"}})
    made = publish(release, "flag", draws=0, formats="json")
    rows = [{"k" * 10**6: "v" * 10**6, "mean": 10**400, "lower": 0.5, "upper": float("nan")}] * 2
    data = json.dumps({"rows": rows}).encode()
    folder = tmp_path / "store" / "publications" / made.publication_id
    store = PublicationStore.open(tmp_path / "store")
    file = store.put_file(made.publication_id, "flag-summaries.json", data)
    forged = file.entry(role="summaries", file_format="json", rows=2)
    content = {**made.manifest, "files": [forged.model_dump()], "checksum": None}
    content["checksum"] = hashlib.sha256(canonical_json.encode(content)).hexdigest()
    (folder / "manifest.json").write_bytes(canonical_json.encode(content))
    assert catalogue(tmp_path / "store", tmp_path / "site").problems == ()
    page = tmp_path / "site" / "publications" / made.publication_id / "index.html"
    assert page.stat().st_size < 200_000


def test_only_data_and_inert_cards_are_put_beside_a_page(tmp_path: Path) -> None:
    make_release(tmp_path / "store", statistics={"flag": {"family": "bernoulli", "column": "c"}})
    files = dict.fromkeys(
        ("a.svg", "a.htm", "a.HTML", "a.xhtml", "a.xml", "a.js", "a.mht", "a", "a.csv"),
        b"<script>alert(1)</script>",
    )
    made = publish_files(PublicationStore.open(tmp_path / "store"), files=files)
    assert catalogue(tmp_path / "store", tmp_path / "site").publications == 1
    folder = tmp_path / "site" / "publications" / made.publication_id
    beside = {path.name.split("-")[-1] for path in folder.iterdir()}
    assert beside == {"index.html", "manifest.json", "a.csv"}


@pytest.mark.parametrize(
    "addition",
    [
        '<meta http-equiv="refresh" content="0;url=https://example.org">',
        "<META HTTP-EQUIV=refresh content='0;url=https://example.org'>",
        '<form action="https://example.org"><button>Show</button></form>',
        '<base href="https://example.org">',
    ],
)
def test_a_card_that_leads_elsewhere_is_not_inert(addition: str) -> None:
    assert is_inert(f"{PROLOGUE}</head><p>x</p></html>".encode())
    assert not is_inert(f"{PROLOGUE}{addition}</head><p>x</p></html>".encode())


def test_what_rests_on_a_withdrawn_release_says_so(tmp_path: Path) -> None:
    release = make_release(tmp_path / "store", statistics={"flag": {"family": "bernoulli", "column": "c"}})
    made = publish(release, "flag", draws=0, formats="parquet")
    page = tmp_path / "site" / "publications" / made.publication_id / "index.html"
    catalogue(tmp_path / "store", tmp_path / "site")
    assert "ithdrawn" not in page.read_text(encoding="utf-8").partition("<h1")[0].partition("<body")[2]
    withdraw(release.uri, reason="wrong <b>unit</b>", created=dt.datetime(2026, 2, 1, 9, tzinfo=dt.UTC))
    catalogue(tmp_path / "store", tmp_path / "site")
    shown = page.read_text(encoding="utf-8")
    assert "Withdrawn." in shown
    assert "wrong &lt;b&gt;unit&lt;/b&gt;" in shown
    assert "it rests on a withdrawn release" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
