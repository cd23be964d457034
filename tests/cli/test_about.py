"""Words of a release on every surface: labels stand where names would, and names where one asks by them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cataloguing.catalogue import catalogue
from suffice.errors import SufficeWarning, UsageError
from suffice.pipeline.spec.spec import load_spec
from suffice.releasing.describing import describe
from suffice.releasing.release import run_release
from suffice.storage.releases.release_store import open_release
from suffice.storage.signatures.signing import new_keys
from support.making import Workspace, make_workspace
from support.running import Runner, spec_file

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("zz_gone", "zz_late", "zz_line", "zz_from", "bernoulli", "categorical")
LABELS = ("Cancelled flights", "Airport of departure", "Newark")
ABOUT: dict[str, Any] = {
    "title": "Flights of January",
    "description": "All flights that left.",
    "licence": "CC0-1.0",
    "contact": "data@example.org <img src=x>",
    "source": "https://example.org/flights",
    "statistics": {
        "zz_gone": {"label": "Cancelled flights"},
        "zz_late": {"label": "Arrival delay", "unit": "minutes", "digits": 1},
        "zz_line": {"label": "Airline", "values": {"UA": "United"}},
    },
    "keys": {"zz_from": {"label": "Airport of departure", "values": {"EWR": "Newark"}}},
}
SPEC: dict[str, Any] = {
    "name": "flights",
    "derived": {"zz_from": {"column": "origin", "trim": "true"}},
    "groups": {"zz_from": ["EWR", "JFK"]},
    "statistics": {
        "zz_gone": {"family": "bernoulli", "column": "cancelled"},
        "zz_late": {"family": "normal", "column": "arr_delay", "lower": -60, "upper": 180},
        "zz_line": {"family": "categorical", "column": "carrier", "categories": ["UA"], "other": True},
    },
    "about": ABOUT,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Path]:
    """Return where a release with words stands, and a catalogue of it."""
    made = make_workspace(tmp_path_factory.mktemp("words"))
    spec = load_spec(spec_file(made, **SPEC))
    run_release(spec, store=made.store, ledger=made.ledger)
    site = made.directory / "site"
    catalogue(made.store, site)
    return made, site


@pytest.fixture
def released(place: tuple[Workspace, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the release, whose store commands use."""
    monkeypatch.setenv("SUFFICE_STORE", place[0].store)
    return Path(open_release("flights", store=place[0].store).uri)


def _read(page: str) -> str:
    """Return the parts of a page that people read first: not lines that they copy, nor the small print."""
    kept = re.sub(r"<(script|style|pre|code|details)\b.*?</\1>", "", page, flags=re.DOTALL)
    kept = re.sub(r'<section aria-labelledby="(downloads|use|cite)">.*?</section>', "", kept, flags=re.DOTALL)
    kept = re.sub(r'<table class="terms">.*?</table>', "", kept, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", "\n", kept)


def _details(page: str) -> str:
    return "".join(re.findall(r"<details>\s*<summary>Numbers behind.*?</details>", page, flags=re.DOTALL))


def _page(site: Path, pattern: str) -> str:
    (path,) = site.glob(pattern)
    return path.read_text(encoding="utf-8")


def _comments(picture: Path) -> str:
    """Return the texts of a picture in SVG: matplotlib draws them as paths, and says what each is."""
    texts = re.findall(r"<!-- (.*?) -->", picture.read_text(encoding="utf-8"))
    return "\n".join(text for text in texts if not text.startswith("Source:"))


def _plotted(command: str, statistic: str) -> Callable[[Runner, Path, Path, Path], str]:
    def surface(suffice: Runner, _site: Path, _release: Path, tmp_path: Path) -> str:
        suffice.text(command, "flights", statistic, "--plot", str(tmp_path / "plot.svg"))
        return _comments(tmp_path / "plot.svg")

    return surface


def _card(suffice: Runner, _site: Path, _release: Path, tmp_path: Path) -> str:
    suffice.text("posterior", "flights", "zz_gone", "--card", str(tmp_path / "card.html"))
    return _read((tmp_path / "card.html").read_text(encoding="utf-8"))


def _site(pattern: str) -> Callable[[Runner, Path, Path, Path], str]:
    return lambda _suffice, site, _release, _tmp_path: _read(_page(site, pattern))


def _text(*words: str) -> Callable[[Runner, Path, Path, Path], str]:
    return lambda suffice, _site, _release, _tmp_path: suffice.text(*words)


def _object(show: Callable[[Any], str]) -> Callable[[Runner, Path, Path, Path], str]:
    return lambda _suffice, _site, release, _tmp_path: show(open_release(release))


TITLE = "Flights of January"
SURFACES: dict[str, tuple[Callable[[Runner, Path, Path, Path], str], tuple[str, ...]]] = {
    "page": (_site("releases/*/*/*/index.html"), (TITLE, *LABELS)),
    "first page": (_site("index.html"), (TITLE, *LABELS[:2])),
    "series": (_site("series/*.html"), (TITLE, LABELS[1])),
    "atom feed": (_site("feed.xml"), (TITLE, LABELS[0])),
    "table of a page": (lambda *of: _details(_page(of[1], "releases/*/*/*/index.html")), LABELS[1:]),
    "card": (_card, (TITLE, *LABELS)),
    "plot of a posterior": (_plotted("posterior", "zz_gone"), (LABELS[0], "Newark")),
    "plot of estimates": (_plotted("table", "zz_gone"), (LABELS[0], "Newark")),
    "plot of categories": (_plotted("posterior", "zz_line"), ("Airline", "Newark", "United")),
    "table": (_text("table", "flights", "zz_gone"), LABELS[1:]),
    "posterior": (_text("posterior", "flights", "zz_line"), (*LABELS[1:], "United")),
    "list": (_text("list"), (TITLE,)),
    "text": (_object(lambda release: str(release.posterior("zz_gone"))), LABELS),
    "table in a notebook": (_object(lambda release: release["zz_gone"]._repr_html_()), LABELS),
    "notebook": (_object(lambda release: release.posterior("zz_gone")._repr_html_()), LABELS),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_labels_stand_in_place_of_names(
    surface: str,
    place: tuple[Workspace, Path],
    released: Path,
    suffice: Runner,
    tmp_path: Path,
) -> None:
    show, labels = SURFACES[surface]
    shown = show(suffice, place[1], released, tmp_path)
    assert [label for label in labels if label not in shown] == []
    assert [name for name in NAMES if name in shown] == []


def test_the_page_carries_the_words_for_its_explorer(place: tuple[Workspace, Path]) -> None:
    page = _page(place[1], "releases/*/*/*/index.html")
    (data,) = re.findall(r'<script type="application/json" id="suffice-release">(.*?)</script>', page)
    assert json.loads(data)["about"] == ABOUT
    assert "<img" not in page
    assert "data@example.org &lt;img src=x&gt;" in page
    assert '<a href="https://example.org/flights" rel="nofollow noopener noreferrer">' in page


def test_who_asks_by_name_sees_both(suffice: Runner, released: Path) -> None:
    shown = suffice.text("show", "flights")
    for text in ("zz_gone", "Cancelled flights", "Flights of January", "CC0-1.0", "data@example.org"):
        assert text in shown
    assert suffice.json("show", "flights")["about"] == ABOUT
    assert "Arrival delay" in str(open_release(released))
    assert "Flights of January" in open_release(released)._repr_html_()


def test_documents_and_files_have_names(suffice: Runner, released: Path, tmp_path: Path) -> None:
    (row, *_) = suffice.json("posterior", "flights", "zz_line")["rows"]
    assert (row["zz_from"], row["parameter"], row["category"]) == ("EWR", "probability", "UA")
    (row, *_) = suffice.json("table", "flights", "zz_gone")["rows"]
    assert row["zz_from"] == "EWR"
    suffice.text("table", "flights", "zz_gone", "--out", str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith('"zz_from","quantity","estimate"')
    assert "zz_from" in open_release(released).table("zz_gone").to_frame().columns


@pytest.mark.slow
def test_digits_are_those_of_the_uncertainty_or_as_asked_for(suffice: Runner, released: Path) -> None:
    del released
    late = suffice.text("posterior", "flights", "zz_late")
    (mean,) = re.findall(r"Newark +mean \(minutes\) +(-?[\d,.]+)", late)
    assert re.fullmatch(r"-?\d+\.\d", mean)
    gone = suffice.text("posterior", "flights", "zz_gone")
    mean, sd = re.findall(r"Newark +probability +([\d.]+) +([\d.]+)", gone)[0]
    assert len(mean) == len(sd) <= len("0.1234")


def test_words_are_mended_without_a_charge(
    place: tuple[Workspace, Path], suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUFFICE_STORE", made.store)
    monkeypatch.setenv("SUFFICE_LEDGER", made.ledger)
    spec = spec_file(made, **SPEC)
    first = suffice.json("release", spec)
    assert first["about"] == ABOUT
    spec_file(made, **{**SPEC, "about": {**ABOUT, "title": "Flights of the winter"}})
    with pytest.warns(SufficeWarning, match="other words"):
        again = run_release(load_spec(spec), store=made.store, ledger=made.ledger)
    assert (again.release_id, again.about.title) == (first["release_id"], "Flights of January")
    done = suffice.json("describe", "flights", spec)["files"]
    assert [Path(file["file"]).name for file in done if file["status"] == "written"] == ["about-2.json"]
    shown = suffice.json("show", "flights")
    assert (shown["about"]["title"], shown["release_id"]) == ("Flights of the winter", first["release_id"])
    assert suffice.json("verify", "flights", "--ledger", made.ledger)["ok"]
    assert suffice.json("store", "verify", made.store, "--ledger", made.ledger)["ok"]
    again_charged = suffice.json("release", spec)
    assert again_charged["remaining_epsilon"] == first["remaining_epsilon"]
    assert "about.yaml" in suffice.text("describe", "flights", "about.yaml", status=2)
    assert "--out" in suffice.text("describe", "flights", spec, "--out", "elsewhere", status=2)
    del place


def test_a_rerun_puts_the_words_that_another_run_left_out(
    suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a recovery does, which publishes what was staged and has no spec."""
    made = make_workspace(tmp_path)
    monkeypatch.setenv("SUFFICE_STORE", made.store)
    monkeypatch.setenv("SUFFICE_LEDGER", made.ledger)
    spec = spec_file(made, **SPEC)
    words = Path(suffice.json("release", spec)["uri"]) / "about-1.json"
    words.unlink()
    again = suffice.json("release", spec)
    assert (again["status"], again["about"]) == ("already_published", ABOUT)
    words.unlink()
    words.mkdir()  # what cannot be read is warned of, and the charge stays published
    with pytest.warns(SufficeWarning, match="without its words"):
        assert not run_release(load_spec(spec), store=made.store, ledger=made.ledger).about


def test_a_signed_release_is_described_with_its_key(
    suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_workspace(tmp_path)
    keys = new_keys(tmp_path / "key.pem")
    monkeypatch.setenv("SUFFICE_STORE", made.store)
    monkeypatch.setenv("SUFFICE_LEDGER", made.ledger)
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(keys.private_key))
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", str(keys.public_key))
    spec = spec_file(made, **SPEC)
    assert suffice.json("release", spec)["about"] == ABOUT
    monkeypatch.delenv("SUFFICE_SIGNING_KEY")
    spec_file(made, **{**SPEC, "about": {"title": "Unsigned"}})
    assert "is signed" in suffice.text("describe", "flights", spec, status=2)
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(keys.private_key))
    suffice.text("describe", "flights", spec)
    assert suffice.json("show", "flights")["about"] == {"title": "Unsigned"}
    assert suffice.json("verify", "flights")["signature"] == "checked"


def test_cells_are_asked_for_by_labels(suffice: Runner, released: Path) -> None:
    asked = ("posterior", "flights", "zz_gone", "--seed", "1", "--where")
    by_name = suffice.json(*asked, "zz_from=EWR")["rows"]
    assert suffice.json(*asked, "Airport of departure=Newark")["rows"] == by_name
    by_label = suffice.json("table", "flights", "zz_gone", "--where", "zz_from=Newark")["rows"]
    assert {row["zz_from"] for row in by_label} == {"EWR"}
    sides = ("zz_from=Newark", "--versus", "Airport of departure=JFK")
    assert len(suffice.json(*asked, *sides)["comparison"]) == 1
    posterior = open_release(released).posterior("zz_gone")
    shown = str(posterior.difference({"zz_from": "Newark"}, {"Airport of departure": "JFK"}))
    assert "Airport of departure=Newark minus Airport of departure=JFK" in shown


def test_a_release_shows_its_keys_with_labels(released: Path) -> None:
    opened = open_release(released)
    for text in (str(opened), opened._repr_html_()):
        assert "zz_from (Airport of departure): EWR (Newark), JFK" in text


def test_a_conflict_names_categories_by_their_labels(suffice: Runner, released: Path) -> None:
    del released
    text = suffice.text("posterior", "flights", "zz_line", "--prior", "Dirichlet(90000, 1)")
    (line,) = [line for line in text.splitlines() if line.startswith("conflict:")]
    assert "count[" in line
    assert "count[UA]" not in line


def test_words_are_mended_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    release = run_release(load_spec(spec_file(made, **SPEC)), store=made.store, ledger=made.ledger)
    mended = describe(release, {"title": "Flights of the winter"})
    assert (mended.about.title, mended.about.statistics) == ("Flights of the winter", {})
    assert mended.release_id == release.release_id
    assert describe(mended, spec_file(made, **SPEC)).about.document() == ABOUT
    with pytest.raises(UsageError, match="there are no words"):
        describe(mended, {})
