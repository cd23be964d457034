"""`suffice posterior --pooled`: what it prints, what a document holds, and what does not go with it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from support.running import Runner

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the one store of the file, which its tests read."""
    gallery = runpy.run_path(str(REPOSITORY / "docs/figures/gallery.py"))
    place = tmp_path_factory.mktemp("pooled") / "releases"
    gallery["open_store"](str(place), ledger_id=gallery["LEDGER_ID"], create=True)
    rng = np.random.default_rng(3)
    truth = rng.beta(5.0, 20.0, 30)
    truth[4] = 0.95
    groups = {"county": {"range": ["1", "30"]}}
    entry = {"ill": {"family": "bernoulli", "column": "ill"}}
    sizes = rng.integers(60, 300, 30)
    gallery["release"](place, {"name": "counties", "groups": groups}, entry, {"ill": truth}, sizes, rng)
    groups = {"county": {"range": ["1", "2"]}}
    gallery["release"](
        place, {"name": "two", "groups": groups}, entry, {"ill": truth[:2]}, np.array([20, 30]), rng
    )
    return str(place)


@pytest.mark.slow
def test_pooled_cells_print_their_own_share_and_outliers(store: str, suffice: Runner, tmp_path: Path) -> None:
    out = tmp_path / "draws.csv"
    options = ["--store", store, "--draws", "50", "--seed", "1", "--draws-out", str(out)]
    said = suffice.text("posterior", "counties", "ill", "--pooled", "all", *options)
    assert said.splitlines()[0].split()[-2:] == ["own_share", "conflict"]
    (line,) = [line for line in said.splitlines() if "the population does not fit" in line]
    assert "of 30 cells (5" in line
    assert "parameters: 30 cells pooled; spread between cells" in said
    assert len(out.read_text().splitlines()) > 30
    document = suffice.json("posterior", "counties", "ill", "--pooled", "logit-normal", "--store", store)
    assert document["pooled"]["population"] == "logit-normal"
    assert document["pooled"]["alone"] is None
    assert len(document["pooled"]["cells"]) == 30
    assert document["pooled"]["pools"][0]["identified"]


@pytest.mark.slow
def test_each_cell_alone_comes_first_where_the_spread_is_not_told(store: str, suffice: Runner) -> None:
    said = suffice.text("posterior", "two", "ill", "--pooled", "all", "--store", store)
    assert said.index("each cell alone:") < said.index("pooled:")
    document = suffice.json("posterior", "two", "ill", "--pooled", "all", "--store", store)
    assert len(document["pooled"]["alone"]) == 2


@pytest.mark.slow
def test_a_card_and_a_picture_show_each_alone_beside_itself(
    store: str, suffice: Runner, tmp_path: Path
) -> None:
    card, plot = tmp_path / "card.html", tmp_path / "picture.svg"
    options = ["--store", store, "--card", str(card), "--plot", str(plot), "--draws", "50", "--seed", "1"]
    suffice.text("posterior", "counties", "ill", "--pooled", "all", *options)
    page = card.read_text(encoding="utf-8")
    assert page.count('<g class="of-alone">') == 30 + 1, "a row a cell, and the legend"
    assert "30 cells pooled; spread between cells" in page
    assert "one population" in page
    assert '<span class="tag">outlier</span>' in page
    assert "suffice calibrate" not in page, "it simulates no populations"
    picture = plot.read_text(encoding="utf-8")
    for said in ("alone", "together", "dotted: the population"):
        assert said in picture


@pytest.mark.parametrize(
    "option",
    [["--robustness"], ["--versus", "county=2"], ["--prior", "Beta(1, 1)"]],
    ids=["robustness", "versus", "prior"],
)
def test_what_does_not_go_with_it(option: list[str], store: str, suffice: Runner) -> None:
    words = ("posterior", "counties", "ill", "--pooled", "all", *option, "--store", store)
    assert "pooled" in suffice.text(*words, status=2)


def test_neighbours_are_read_from_a_file(store: str, suffice: Runner, tmp_path: Path) -> None:
    pairs = tmp_path / "next.csv"
    lines = [f"{key},{key + 1}" for key in range(1, 30)]
    pairs.write_text("\n".join(["county,neighbour", *lines]))
    words = ("posterior", "counties", "ill", "--pooled", "logit-normal", "--store", store, "--adjacency")
    document = suffice.json(*words, str(pairs))
    assert 0.0 < document["pooled"]["pools"][0]["of_map"] < 1.0
    pairs.write_text("state,neighbour\n1,2\n")
    assert "state is no group column of ill, which has county" in suffice.text(*words, str(pairs), status=2)


@pytest.mark.slow
def test_ways_to_pool_are_compared_by_held_out_cells(store: str, suffice: Runner) -> None:
    words = ("compare-priors", "counties", "ill", "--pooled", "all", "--pooled", "beta", "--store", store)
    said = suffice.text(*words)
    assert [line.split("  ")[0] for line in said.splitlines()[2:5]] == [
        "alone",
        "pooled: all",
        "pooled: beta",
    ]
    assert "predicts held-out cells best: better than alone by more than 2 standard errors" in said
    document = suffice.json(*words)
    assert document["answers"] == ["alone", "pooled: all", "pooled: beta"]
    assert document["best"] != "alone"
    assert len(document["rows"]) == 90
    assert min(row["behind"] for row in document["totals"]) == 0.0
    assert "does not go with --pooled" in suffice.text(*words, "--prior", "Beta(1, 1)", status=2)


@pytest.mark.slow
def test_covariates_an_order_and_neighbours_are_one_more_way_each(
    store: str, suffice: Runner, tmp_path: Path
) -> None:
    pairs, table = tmp_path / "next.csv", tmp_path / "counties.csv"
    pairs.write_text("\n".join(["county,neighbour", *(f"{key},{key + 1}" for key in range(1, 30))]))
    table.write_text("\n".join(["county,income", *(f"{key},{key % 7}" for key in range(1, 31))]))
    words = ["compare-priors", "counties", "ill", "--store", store, "--over", "county"]
    words += ["--adjacency", str(pairs), "--covariates", str(table), "--formula", "~ income"]
    document = suffice.json(*words, "--pooled", "all")
    assert document["answers"] == [
        "alone",
        "pooled: all",
        f"pooled: formula ~ income, covariates {table}",
        "pooled: over county",
        f"pooled: adjacency {pairs}",
    ]
    assert document["said"].endswith(f"scores of pooled: adjacency {pairs} are by expectation propagation")
    # Rates that have nothing to do with the order of counties, of which one is an outlier.
    behind = {row["answer"]: row["behind"] for row in document["totals"]}
    assert behind["pooled: over county"] > behind["pooled: all"]


def test_a_walk_is_compared_with_cells_alone(store: str, suffice: Runner) -> None:
    words = ("compare-priors", "counties", "ill", "--store", store, "--over")
    said = suffice.text(*words, "county")
    assert [line.split("  ")[0] for line in said.splitlines()[2:4]] == ["alone", "pooled: over county"]
    assert "which is of one release: walk over a group column" in suffice.text(*words, "window", status=2)


@pytest.mark.slow
def test_cells_that_the_others_do_not_expect_are_said(store: str, suffice: Runner) -> None:
    words = ("posterior", "counties", "ill", "--pooled", "logit-normal", "--store", store)
    said = suffice.text(*words)
    assert "left out: the population of all others does not expect what 1 cell of 30 released (5)" in said
    check = suffice.json(*words)["pooled"]["check"]
    assert check["method"] == "exact"
    assert [row["misfit"] for row in check["cells"]].count(True) == 1
    assert check["said"][0] in said
