"""`suffice quantiles`: what is asked is answered as Python does, drawn and refused."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import suffice as package

if TYPE_CHECKING:
    from support.running import Runner

REPOSITORY = Path(__file__).resolve().parents[2]
BINS = {"lower": "0", "upper": "64", "bins": {"body": ["0", "16"], "equal": "16", "tail": "4"}}
WAIT = {"family": "histogram", "column": "wait", **BINS, "atoms": ["0"]}
CELLS = {"few": 2, "many": 8}
MONTHS = ("monthly@2013-01", "monthly@2013-02")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of waits, of two and of eight cells: a tenth of them 0, the others lognormal."""
    directory = tmp_path_factory.mktemp("quantiles")
    gallery = runpy.run_path(str(REPOSITORY / "docs/figures/gallery.py"))
    gallery["open_store"](str(directory / "releases"), ledger_id=gallery["LEDGER_ID"], create=True)
    rng = np.random.default_rng(5)
    waits = np.where(rng.random(100_000) < 0.1, 0.0, rng.lognormal(1.5, 0.8, 100_000)).clip(0, 64)
    edges = np.append(np.arange(17), [24, 36, 50, 64]).astype(float)
    shares = np.histogram(waits[waits > 0], edges)[0] / len(waits)
    truth = np.append(np.mean(waits == 0), shares)
    for name, cells in CELLS.items():
        entry = {"wait": {**WAIT, "bins": [str(int(edge)) for edge in edges]}}
        grid = {"name": name, "groups": {"ward": {"range": ["1", str(cells)]}}}
        drawn = {"wait": np.broadcast_to(truth, (cells, len(truth)))}
        gallery["release"](directory / "releases", grid, entry, drawn, np.full(cells, 4000), rng)
    below = {"wait": {**WAIT, "lower": "-8", "upper": "8", "bins": ["-8", "0", "8"], "atoms": []}}
    drawn = {"wait": np.full((1, 2), 0.5)}
    gallery["release"](directory / "releases", {"name": "below"}, below, drawn, np.full(1, 4000), rng)
    for month in MONTHS:
        name, window = month.split("@")
        grid = {"name": name, "groups": {"ward": {"range": ["1", "2"]}}}
        grid["window"] = {"column": "day", "every": "month"}
        both = {**entry, "cancelled": gallery["CANCELLED"]}
        drawn = {"wait": np.broadcast_to(truth, (2, len(truth))), "cancelled": np.full(2, 0.03)}
        gallery["release"](directory / "releases", grid, both, drawn, np.full(2, 4000), rng, window)
    return directory


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.mark.slow
def test_answers_are_those_of_python(suffice: Runner) -> None:
    words = ("quantiles", "few", "wait", "--at", ".5,.9", "--at-least", "16", "--mean", "--spread", "--gini")
    answer = suffice.json(*words, "--seed", "3", "--draws", "500", "--mass", "0.9")
    column = package.open_release("few").posterior("wait").column(rng=3, draws=500)
    expected = {
        "quantile 0.5": column.quantile(0.5, 0.9),
        "quantile 0.9": column.quantile(0.9, 0.9),
        "share of 16 or more": column.tail_share(16, 0.9),
        "interquartile range": column.interquantile_range(mass=0.9),
        "mean": column.mean(0.9),
        "Gini index": column.gini(0.9),
    }
    rows = answer["rows"]
    assert len(rows) == 2 * len(expected)
    for number, row in enumerate(rows):
        of = expected[row["quantity"]]
        cell = number // len(expected)
        assert str(row["ward"]) == str(cell + 1)
        assert row["median"] == of.median[cell]
        assert (row["lower"], row["upper"]) == (of.lower[cell], of.upper[cell])
    # The median of the law is 3.9; noise and rows move it by less than a minute.
    assert all(
        2 <= row["lower"] <= 4 <= row["upper"] + 1 for row in rows if row["quantity"] == "quantile 0.5"
    )


def test_an_index_of_values_below_0_is_refused_with_its_option(suffice: Runner) -> None:
    said = suffice.text("quantiles", "below", "wait", "--gini", "--mean", status=2)
    assert "--gini is of values of 0 or more, and the lowest bound of wait is -8: leave it out" in said


@pytest.mark.slow
def test_without_a_question_there_are_two_quantiles_in_words(suffice: Runner) -> None:
    said = suffice.text("quantiles", "few", "wait", "--where", "ward=2", "--draws", "200", "--seed", "1")
    assert "quantile 0.5" in said
    assert "quantile 0.9" in said
    assert "of the law that rows come from" in said
    of_rows = suffice.text("quantiles", "few", "wait", "--of-rows", "--draws", "200", "--seed", "1")
    assert "of the rows that were counted" in of_rows
    few = ("--where", "ward=2", "--draws", "200", "--seed", "1")
    for printed in (said, of_rows, suffice.text("posterior", "few", "wait", *few)):
        assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.parametrize("release", CELLS)
def test_columns_are_drawn(suffice: Runner, tmp_path: Path, release: str) -> None:
    pytest.importorskip("matplotlib")
    picture, table = tmp_path / "column.svg", tmp_path / "column.csv"
    words = ("quantiles", release, "wait", "--draws", "200", "--seed", "1")
    suffice.text(*words, "--plot", str(picture), "--out", str(table))
    svg = picture.read_text(encoding="utf-8")
    is_listed = "Quantiles of each cell" in svg
    assert is_listed == (CELLS[release] > 6)
    assert ("share up to" in svg) != is_listed
    assert len(table.read_text(encoding="utf-8").splitlines()) > 2 * CELLS[release]
    again = tmp_path / "posterior.svg"
    suffice.text("posterior", release, "wait", "--plot", str(again), "--draws", "200", "--seed", "1")
    assert ("Quantiles of each cell" in again.read_text(encoding="utf-8")) == is_listed


@pytest.mark.slow
def test_a_card_shows_the_column(suffice: Runner, tmp_path: Path) -> None:
    card = tmp_path / "card.html"
    suffice.text("posterior", "few", "wait", "--draws", "200", "--card", str(card), "--seed", "1")
    page = card.read_text(encoding="utf-8")
    assert "Distribution of wait" in page
    assert page.count("share up to a number") == 2


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--at", "1.5"), "above 0 and below 1"),
        (("--at", "half"), "is no number"),
        (("--at-least", "inf"), "is no number"),
        (("--plot", "column.pdf"), "must end in .png or .svg"),
    ],
)
def test_what_cannot_be_asked_is_refused(suffice: Runner, words: tuple[str, ...], rule: str) -> None:
    assert rule in suffice.text("quantiles", "few", "wait", *words, status=2)


def test_show_names_the_command(suffice: Runner) -> None:
    assert "suffice quantiles few wait" in suffice.text("show", "few")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("compare", *MONTHS, "wait"),
        ("pool", "wait", "--disjoint", MONTHS[0], "--disjoint", MONTHS[1]),
    ],
    ids=["compare", "pool"],
)
def test_several_releases_are_answered_by_quantiles(suffice: Runner, words: tuple[str, ...]) -> None:
    terms = ("--seed", "2", "--draws", "400")
    answer = suffice.json(*words, *terms, "--at", ".5", "--at", ".9")
    first, second = (package.open_release(name) for name in MONTHS)
    if words[0] == "compare":
        compared = package.compare(first, second, "wait", draws=400, rng=2)
        change = compared.column(draws=400, rng=2)
        key, expected = "change", (change.quantile(0.5), change.quantile(0.9))
    else:
        pooled = package.pool("wait", disjoint=[first, second], rng=2)
        key, column = "median", pooled.column(draws=400, rng=2)
        expected = (column.quantile(0.5), column.quantile(0.9))
    rows = [(row["quantity"], row[key], row["lower"], row["upper"]) for row in answer["quantiles"]]
    assert rows == [
        (f"quantile {q}", of.median[cell], of.lower[cell], of.upper[cell])
        for cell in range(2)
        for q, of in zip(("0.5", "0.9"), expected, strict=True)
    ]
    assert [row["ward"] for row in answer["quantiles"]] == [1, 1, 2, 2]
    assert len(answer["rows"]) == 2 * 21  # the share of every bin
    said = suffice.text(*words, *terms)
    assert "quantile 0.9" in said
    assert "[15, 16)" not in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.slow
def test_quantiles_are_of_histograms_alone(suffice: Runner) -> None:
    words = ("compare", *MONTHS, "cancelled")
    assert "--at is of histograms" in suffice.text(*words, "--at", ".5", status=2)
    assert "quantiles" not in suffice.json(*words)
