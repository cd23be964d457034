"""The catalogue: whole, harmless whatever names and keys say, and made anew only where something is new."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import pytest

import suffice
from suffice.cataloguing.catalogue import catalogue
from suffice.cataloguing.publications import LONGEST_WORDS, _words
from suffice.errors import LedgerCorruptError, UsageError
from suffice.pages.budget import Budget, Charged, budgets_of, read_charges
from suffice.pages.publication_page import _heading, _statistic, _what_is
from suffice.pipeline.ask.publication.request import Request
from suffice.pipeline.terms.released.table import number_beside
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.ledger.replay import export_lines
from support.catalogued import (
    HOSTILE,
    WINDOWS,
    Page,
    make_catalogued,
    make_small,
    monthly_plan,
    publish_answer,
)
from support.charging import drawn, published
from support.losses import pure
from support.overspending import request_for
from support.publications import request_of
from support.releases import RELEASE_ID, publish
from support.web_server import serving

TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "script",
        "noscript",
        "body",
        "header",
        "nav",
        "main",
    ),
    *("footer", "section", "div", "p", "span", "a", "ul", "ol", "li", "dl", "dt", "dd", "h1", "h2", "h3"),
    *("table", "caption", "colgroup", "col", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"),
    *("details", "summary", "form", "label", "input", "button", "code", "pre", "em", "strong", "br"),
    *("svg", "desc", "line", "circle", "rect", "text", "path", "g"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_catalogued(tmp_path_factory.mktemp("catalogued"))


@pytest.fixture(scope="module")
def site(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("catalogue") / "site"
    made = catalogue(store, out, title="Open <numbers> & more")
    assert made.problems == ()
    assert (made.releases, made.publications, made.rendered) == (5, 1, 6)
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if not path.name.endswith("-card.html")
    }


def release_place(edition: str, name: str = "monthly", release_id: str = RELEASE_ID) -> str:
    return f"releases/{name}/{edition}/{release_id}"


@pytest.mark.slow
def test_every_page_is_there(pages: dict[str, Page]) -> None:
    wanted = {"index.html", "search.html", "reading.html", "series/monthly.html", "datasets/others.html"}
    wanted |= {f"{release_place(window)}/index.html" for window in WINDOWS}
    assert wanted < pages.keys()


def test_links_lead_to_files_and_places_of_the_site_and_nowhere_else(
    site: Path, pages: dict[str, Page]
) -> None:
    n_links = 0
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), path
        for tag, attributes in page.tags:
            for name in ("href", "src", "action", "srcset", "data", "poster", "formaction", "background"):
                target = attributes.get(name)
                if target is None:
                    continue
                parts = urlsplit(target)
                assert not parts.scheme, (path, tag, target)
                assert not parts.netloc, (path, tag, target)
                file = (site / path).parent / unquote(parts.path) if parts.path else site / path
                assert file.is_file(), (path, target)
                assert file.resolve().is_relative_to(site.resolve())
                if parts.fragment:
                    there = file.resolve().relative_to(site.resolve()).as_posix()
                    assert parts.fragment in pages[there].ids, (path, target)
                n_links += 1
    assert n_links > 100


def test_a_policy_comes_first_and_admits_exactly_the_scripts_and_styles_of_the_page(
    site: Path, pages: dict[str, Page]
) -> None:
    for path, page in pages.items():
        metas = [attributes for tag, attributes in page.tags if tag in {"meta", "script", "style"}]
        assert metas[0] == {"charset": "utf-8"}
        assert metas[1]["http-equiv"] == "Content-Security-Policy"
        parts = (part.strip().partition(" ") for part in (metas[1]["content"] or "").split(";"))
        policy = {name: set(sources.split()) for name, _, sources in parts}
        running = [text for attributes, text in page.scripts if attributes.get("type") != "application/json"]
        assert policy["default-src"] == {"'none'"}
        assert policy["img-src"] == {"data:"}
        assert policy["script-src"] == set(map(hash_of, running)), path
        raw = (site / path).read_text(encoding="utf-8")
        styles = re.findall(r"<style>(.*?)</style>", raw, re.DOTALL)
        assert policy["style-src"] == set(map(hash_of, styles)), path
        assert not any("style" in attributes for _, attributes in page.tags)
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_names_keys_and_categories_are_text(pages: dict[str, Page]) -> None:
    for path, page in pages.items():
        assert {tag for tag, _ in page.tags} <= TAGS, path
        assert not {"\u200b", "\u200d"} & set(page.shown)
    shown = pages[f"{release_place('all', 'hostile')}/index.html"].shown
    assert all(key in shown for key in HOSTILE[:4])
    assert "\\u200d" in shown
    assert "49" not in re.findall(r"\{\{.*?\}\}|]]>(\d+)", shown)
    assert "<b>2012</b>" in pages[f"{release_place('2013-01')}/index.html"].shown


def test_a_page_carries_its_release_byte_for_byte(store: Path, pages: dict[str, Page]) -> None:
    page = pages[f"{release_place('all', 'hostile')}/index.html"]
    (text,) = [text for attributes, text in page.scripts if attributes.get("id") == "suffice-release"]
    assert not re.search("[<>&\u2028\u2029]", text)
    data = json.loads(text)
    folder = store / "hostile" / "all" / RELEASE_ID
    assert data["manifest"].encode() == (folder / "manifest.json").read_bytes()
    assert data["files"].keys() == {"flag.parquet", "kind.parquet", "xy.parquet"}
    for name, encoded in data["files"].items():
        assert base64.b64decode(encoded) == (folder / name).read_bytes()
    assert str(store) not in text


def test_headings_follow_each_other_without_a_gap(pages: dict[str, Page]) -> None:
    for path, page in pages.items():
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels.count(1) == 1, path
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels)), path


def test_no_page_names_a_place_of_this_machine(store: Path, site: Path) -> None:
    files = [path for path in site.rglob("*") if path.is_file() and not path.name.endswith(".parquet")]
    assert len(files) > 20
    assert not [path for path in files if str(store.parent) in path.read_text(encoding="utf-8")]


def test_the_folder_of_a_page_is_the_release(store: Path, site: Path) -> None:
    there = suffice.open_release(str(store / "monthly" / "2013-03" / RELEASE_ID))
    copied = suffice.open_release(str(site / release_place("2013-03")))
    assert copied.manifest == there.manifest
    assert copied.table("cancelled") == there.table("cancelled")


def test_numbers_on_a_page_are_those_of_the_posterior(site: Path, pages: dict[str, Page]) -> None:
    release = suffice.open_release(str(site / release_place("2013-03")))
    posterior = release.posterior("cancelled")
    shown = pages[f"{release_place('2013-03')}/index.html"].shown
    for mean, sd in zip(posterior.mean("probability"), posterior.sd("probability"), strict=True):
        assert number_beside(float(mean), float(sd)) in shown
        assert number_beside(float(sd), float(sd)) in shown
    facts = json.loads((site / release_place("2013-03") / "facts.json").read_text(encoding="utf-8"))
    marks = facts["statistics"][0]["followed"][0]["marks"]
    assert marks[0::4] == pytest.approx(posterior.credible_interval("probability")[0])


def test_what_takes_a_sampler_is_shown_with_its_noise_and_says_so(pages: dict[str, Page]) -> None:
    shown = pages[f"{release_place('all', 'hostile')}/index.html"].shown
    assert "They are no posterior intervals" in shown
    assert "takes a sampler" in shown


def test_what_was_withdrawn_or_amended_says_so_first_and_is_not_followed(
    site: Path, pages: dict[str, Page]
) -> None:
    withdrawn = pages[f"{release_place('2013-01')}/index.html"].shown
    assert withdrawn.index("Withdrawn.") < withdrawn.index("Epsilon of the release")
    amended = pages[f"{release_place('2013-02')}/index.html"].shown
    assert amended.index("Amended.") < amended.index("Epsilon of the release")
    followed = site.joinpath("series/monthly.html").read_text(encoding="utf-8")
    rows = re.findall(r'<td class="key">(2013-\d\d(?:\.\d)?)</td>', followed)
    assert set(rows) == {"2013-02.1", "2013-03"}
    assert (site / release_place("2013-01") / "withdrawn.json").is_file()


def test_search_knows_keys_statistics_and_titles(pages: dict[str, Page]) -> None:
    ((_, text),) = [
        script for script in pages["search.html"].scripts if script[0].get("id") == "suffice-index"
    ]
    assert not re.search("[<>&]", text)
    index = json.loads(text)
    assert {entry["kind"] for entry in index} == {"dataset", "series", "release", "publication"}
    (hostile,) = [entry for entry in index if (entry["kind"], entry["title"]) == ("series", "hostile")]
    assert HOSTILE[0] in hostile["words"]
    (publication,) = [entry for entry in index if entry["kind"] == "publication"]
    assert {"cancelled", "Beta(1,"} < {*publication["words"].split()}
    assert publication["series"] == ["monthly"]


def test_words_of_a_publication_are_what_was_asked_and_bounded() -> None:
    kept = Request.read(request_of(where={"origin": "JFK"}))
    assert all(word in _words(kept) for word in ("cancelled", "Beta(1, 1)", "origin JFK"))
    asked = request_of()["statistics"][0]
    long = Request.read(request_of(statistics=[{**asked, "priors": [{"name": None, "prior": "9" * 10**6}]}]))
    assert len(_words(long)) < LONGEST_WORDS


def test_feeds_are_well_formed_and_absolute_where_the_address_is_known(site: Path, tmp_path: Path) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    root = ET.fromstring(site.joinpath("feed.xml").read_text(encoding="utf-8"))  # noqa: S314 - ours
    assert root.find(f"{atom}title") is not None
    assert (root.findtext(f"{atom}title") or "") == "Open <numbers> & more"
    entries = root.findall(f"{atom}entry")
    assert len(entries) == 5
    assert len({entry.findtext(f"{atom}id") for entry in entries}) == 5
    for entry in entries:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:00:00Z", entry.findtext(f"{atom}updated") or "")
        link = entry.find(f"{atom}link")
        assert link is not None
        assert site.joinpath(link.attrib["href"]).is_file()
    document = json.loads(site.joinpath("feed.json").read_text(encoding="utf-8"))
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert all("url" not in item and item["id"] for item in document["items"])

    catalogue(make_small(tmp_path, "2013-03"), tmp_path / "site", base_url="https://example.org/data/")
    document = json.loads((tmp_path / "site" / "feed.json").read_text(encoding="utf-8"))
    assert document["feed_url"] == "https://example.org/data/feed.json"
    assert all(item["url"].startswith("https://example.org/data/releases/") for item in document["items"])
    page = (tmp_path / "site" / release_place("2013-03") / "index.html").read_text(encoding="utf-8")
    assert f"https://example.org/data/{release_place('2013-03')}/index.html" in page
    assert f"https://example.org/data/{release_place('2013-03')}" in page.partition("open_release(")[2][:200]


def test_a_release_is_opened_by_its_url_in_a_catalogue(tmp_path: Path) -> None:
    catalogue(make_small(tmp_path, "2013-03"), tmp_path / "site")
    with serving() as server:
        server.serve_folder(tmp_path / "site", "/data")
        opened = suffice.open_release(f"{server.url}/data/{release_place('2013-03')}")
        assert opened.window == "2013-03"
        assert list(opened)


def test_a_card_that_could_run_scripts_is_not_put_beside_our_pages(tmp_path: Path) -> None:
    store = make_small(tmp_path, "2013-03")
    hostile = "<!DOCTYPE html><title>x</title><script>alert(1)</script>"
    ids = [publish_answer(store, "monthly/2013-03", page=page) for page in (hostile, None)]
    assert catalogue(store, tmp_path / "site").publications == 2
    for publication_id, is_shown in zip(ids, (False, True), strict=True):
        folder = tmp_path / "site" / "publications" / publication_id
        assert bool(list(folder.glob("*card.html"))) == is_shown
        text = (folder / "index.html").read_text(encoding="utf-8")
        assert ("Open the card" in text) == is_shown
        assert "Posterior of &lt;i&gt;cancelled&lt;/i&gt;" in text
        assert "0.25" in Page(text).shown
        assert f"{HOSTILE[0]}\\u200b" in Page(text).shown


@pytest.mark.slow
def test_only_what_is_new_is_made(tmp_path: Path) -> None:
    make_small(tmp_path, *WINDOWS[:2])

    def make() -> tuple[int, int, int]:
        made = catalogue(tmp_path / "store", tmp_path / "site")
        return made.rendered, made.kept, made.removed

    def files() -> dict[str, int]:
        return {
            str(path.relative_to(tmp_path)): path.stat().st_mtime_ns
            for path in (tmp_path / "site").rglob("*")
            if path.is_file()
        }

    assert make() == (2, 0, 0)
    before = files()
    assert len(before) > 15
    assert make() == (0, 2, 0)
    assert files() == before
    make_small(tmp_path / "later", *WINDOWS)
    (tmp_path / "later" / "store" / "monthly" / "2013-03").rename(tmp_path / "store" / "monthly" / "2013-03")
    assert make() == (2, 1, 0)  # the new one, and the one that now leads to it
    changed = tmp_path / "site" / release_place("2013-01") / "facts.json"
    changed.write_text("{}", encoding="utf-8")
    assert make() == (1, 2, 0)
    assert json.loads(changed.read_text(encoding="utf-8"))["name"] == "monthly"
    for path in sorted((tmp_path / "store" / "monthly" / "2013-03").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert make() == (1, 1, 1)
    assert not (tmp_path / "site" / "releases" / "monthly" / "2013-03").exists()


def test_what_does_not_verify_is_named_left_out_and_led_to_by_nothing(tmp_path: Path) -> None:
    make_small(tmp_path, *WINDOWS)
    file = tmp_path / "store" / "monthly" / "2013-02" / RELEASE_ID / "cancelled.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    made = catalogue(tmp_path / "store", tmp_path / "site")
    assert len(made.problems) == 1
    assert "monthly@2013-02" in made.problems[0]
    assert made.releases == 2
    site = tmp_path / "site"
    texts = [path.read_text(encoding="utf-8") for path in site.rglob("*.html")]
    assert not any("2013-02/" in text for text in texts)
    assert "it does not verify" in site.joinpath("index.html").read_text(encoding="utf-8")
    before = site.joinpath(release_place("2013-01"), "index.html").read_text(encoding="utf-8")
    assert f"../../../../{release_place('2013-03')}/index.html" in before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda place: place / "store" / "site", "inside a store"),
        (lambda place: place / "full", "neither empty nor a catalogue"),
        (lambda place: place / "full" / "notes.txt", "no catalogue can be written"),
        (lambda place: place / "forged", "is no catalogue's"),
        (lambda _: "s3://bucket/site", "a folder of this machine"),
        (lambda _: Path("s3://bucket/site"), "a folder of this machine"),
    ],
    ids=["inside a store", "not empty", "a file", "a forged state", "a bucket", "a bucket as a path"],
)
def test_a_folder_that_is_not_ours_is_refused_and_left_alone(make: Any, words: str, tmp_path: Path) -> None:
    publish(tmp_path / "store", monthly_plan(), window="2013-01")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "forged").mkdir()
    forged = {"suffice_catalogue": 1, "files": {"../full/notes.txt": "00"}, "keys": {}}
    (tmp_path / "forged" / "catalogue.json").write_text(json.dumps(forged), encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        catalogue(tmp_path / "store", make(tmp_path))
    assert (tmp_path / "full" / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_an_interrupted_run_is_taken_up(tmp_path: Path) -> None:
    """Interrupted after its first page, and run again: the folder is what one run makes."""
    store = make_small(tmp_path, "2013-01", "2013-02")

    def interrupt(done: int, _of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        catalogue(store, tmp_path / "site", progress=interrupt)
    assert not (tmp_path / "site" / "index.html").exists()
    again = catalogue(store, tmp_path / "site")
    assert (again.ok, again.releases) == (True, 2)
    catalogue(store, tmp_path / "other")
    sites = [
        {path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*")}
        for name in ("site", "other")
    ]
    assert sites[0] == sites[1]


@pytest.mark.parametrize(
    "option",
    [
        {"title": ""},
        {"title": "a\nb"},
        {"title": "x" * 200},
        {"base_url": "ftp://x/"},
        {"base_url": "https://user:pw@x/"},
        {"base_url": 'https://x/"><script>'},
        {"base_url": "https://x/?q"},
        {"ledger_export": "nowhere.jsonl"},
    ],
    ids=str,
)
def test_an_option_that_cannot_be_used_is_refused(
    option: dict[str, Any], store: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="--") as refused:
        catalogue(store, tmp_path / "site", **option)
    assert "pw" not in str(refused.value)


def test_charges_of_an_export_are_shown_and_a_changed_export_is_refused(tmp_path: Path) -> None:
    store, export = make_small(tmp_path, "2013-01"), tmp_path / "ledger.jsonl"
    with create_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.grant("passengers", epsilon=Fraction(3), reason="a test")
        request = dataclasses.replace(request_for("passengers", "monthly"), window="all", grid=None)
        published(ledger, request)
        drawn(ledger, dataclasses.replace(request, name="kept-back", **pure(Fraction(1, 2))))
        ledger.grant("not-charged", epsilon=Fraction(2), reason="a test")
        export.write_text("".join(f"{line}\n" for line in export_lines(ledger.entries())), encoding="utf-8")
    catalogue(store, tmp_path / "site", ledger_export=export)
    shown = Page((tmp_path / "site" / "datasets" / "passengers.html").read_text(encoding="utf-8")).shown
    idle = Page((tmp_path / "site" / "datasets" / "not-charged.html").read_text(encoding="utf-8")).shown
    assert "Numbers behind the picture" in shown
    assert "Numbers behind the picture" not in idle
    assert "Epsilon 1.5 in 2 charges, of 3 granted. Not counted: 1 release" in shown
    assert "What one row loses" in shown
    assert "loses at most epsilon 1.5 in any twelve months, and 1.5 in all, by what is listed here" in shown
    assert "The grant allows 3 in all." in shown
    assert "With r rows in each window it is up to r times as much." in shown
    assert "kept-back" in shown
    assert "not published yet" in shown
    export.write_text(export.read_text(encoding="utf-8").replace("500000", "400000"), encoding="utf-8")
    with pytest.raises(LedgerCorruptError, match="--ledger-export"):
        catalogue(store, tmp_path / "site", ledger_export=export)


@pytest.mark.parametrize(
    ("assumed", "granted"), [(None, "12 in any twelve months."), (4, "4 in any twelve months, if nobody has")]
)
def test_what_one_customer_loses_adds_up_over_windows_and_series(assumed: int | None, granted: str) -> None:
    windows = ("2012-12", "2013-01", "2013-12", "2013-12", "all")
    budget = Budget(
        guarantee="",
        charges=tuple(
            Charged(
                hour="2014-01-01T00Z",
                what="sales",
                loss=Fraction(1, 1 + number),
                state="published",
                granted=Fraction(1),
                window=window,
            )
            for number, window in enumerate(windows)
        ),
        per_window="day:month:UTC",
        complete=True,
        unit="column:customer",
        max_windows=assumed,
    )
    said = " ".join(budget.person)
    # December 2012 and January 2013 share twelve months, January and December 2013 do, all three do not
    assert "One customer with rows in every window loses at most epsilon 1.7 in any twelve months" in said
    assert "137/60 in all, by all charges so far. The grant allows 1 in a window and " + granted in said
    assert "no customer has rows in two windows; one that has loses in each of them" in " ".join(budget.notes)


def test_releases_that_an_export_does_not_list_are_named(tmp_path: Path) -> None:
    store, export = make_small(tmp_path, "2013-01", "2013-02"), tmp_path / "ledger.jsonl"
    (folder,) = (store / "monthly" / "2013-01").iterdir()
    request = dataclasses.replace(request_for("passengers", "monthly"), window="all", grid=None)
    with create_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.grant("passengers", epsilon=Fraction(3), reason="a test")
        charge = published(ledger, request)
        export.write_text("".join(f"{line}\n" for line in export_lines(ledger.entries())), encoding="utf-8")
    charges = read_charges(export)
    here = [
        {
            "dataset": "passengers",
            "created": "2026-01-01T00Z",
            "label": label,
            "window": label.partition("@")[2],
            "release_id": of,
            "neighboring": "add_or_remove_one",
            "unit": "row",
            "max_rows": None,
            "epsilon": "1",
        }
        for label, of in (("monthly@2013-01", charge.release_id), ("monthly@2013-02", folder.name))
    ]
    budget = budgets_of(here, charges)["passengers"]
    assert budget.uncounted == ("monthly@2013-02",)
    assert budgets_of(here[:1], charges)["passengers"].uncounted == ()
    assert "export" not in budgets_of(here[:1], charges)["passengers"].sentence
    assert "knows nothing of this dataset" in budgets_of(here, {})["passengers"].caption
    assert "export would show it" in budgets_of(here, None)["passengers"].caption
    catalogue(store, tmp_path / "site", ledger_export=export)
    page = Page((tmp_path / "site" / "datasets" / "passengers.html").read_text(encoding="utf-8")).shown
    assert "this page was made with: monthly@2013-01, monthly@2013-02." in page
    assert "Epsilon of all charges" not in page
    assert "does not list" in Page((tmp_path / "site" / "index.html").read_text(encoding="utf-8")).shown


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_publication_says_under_which_priors_a_statistic_was_asked() -> None:
    single = {"statistic": "flag", "priors": [{"name": None, "prior": "Beta(1, 9)"}]}
    asked = {**single, "n_prior": "Uniform(0, 9)", "predictor_prior": None, "interval": "central"}
    assert _statistic(asked) == "flag; prior Beta(1, 9); prior of N Uniform(0, 9); central intervals"
    named = [{"name": "wide", "prior": "Beta(1, 1)"}, {"name": "near", "prior": "Beta(9, 9)"}]
    several = {**asked, "priors": named, "n_prior": None, "interval": "highest-density"}
    assert (
        _statistic(several)
        == "flag; prior wide: Beta(1, 1); prior near: Beta(9, 9); highest-density intervals"
    )


def test_a_long_title_is_no_heading_and_files_say_what_they_are() -> None:
    request = {"statistics": [{"statistic": "flag"}, {"statistic": "kind"}], "releases": [{"label": "a@1"}]}
    assert _heading({"title": "flag: a@1", "request": request}) == "flag: a@1"
    assert _heading({"title": "flag under " * 20, "request": request}) == "flag and 1 more: a@1"
    described = {"name": "flag-draws.csv-metadata.json", "role": "draws", "rows": None}
    assert _what_is(described) == "says what the columns of flag-draws.csv are, and what they rest on"
    assert (
        _what_is({"name": "flag-draws.csv", "role": "draws", "rows": 4000}) == "posterior draws, 4,000 rows"
    )
