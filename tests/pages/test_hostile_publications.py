"""A catalogue of publications that others wrote: nothing of theirs runs, nor stops the rest."""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cataloguing import catalogue
from suffice.errors import PublicationCorruptError
from suffice.pages.publication_page import is_inert
from suffice.pages.rendering import asset, content_policy
from suffice.pipeline.declaration import canonical_json
from suffice.publishing import publish
from suffice.storage.operations.withdrawing import withdraw
from suffice.storage.publications.manifest import publication_id_of
from suffice.storage.publications.publication_store import PublicationStore
from support.publications import publish as publish_files
from support.published import make_release

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.publications.publication import Publication

PROLOGUE = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    f'<meta http-equiv="Content-Security-Policy" content="{content_policy([asset("theme.js")], ["a{}"])}">'
)


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


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
    found = catalogue(tmp_path / "store", tmp_path / "site")
    assert (found.releases, found.publications) == (1, 1)
    assert sorted(problem.split()[1].rstrip(":") for problem in found.problems) == sorted(hostile)


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
