"""`suffice model small-areas`, and the page of covariates as it is written."""

from __future__ import annotations

import csv
import runpy
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import suffice as package
from suffice import models
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
from support.page_blocks import read_page

if TYPE_CHECKING:
    from support.running import Runner

REPOSITORY = Path(__file__).resolve().parents[2]
CELLS = 24
FORMULA = ("--covariates", "counties.csv", "--formula", "~ income + C(state)")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release whose truth depends on income and state, but for county 5; and the public table."""
    directory = tmp_path_factory.mktemp("areas")
    gallery = runpy.run_path(str(REPOSITORY / "docs/figures/gallery.py"))
    gallery["open_store"](str(directory / "releases"), ledger_id=gallery["LEDGER_ID"], create=True)
    rng = np.random.default_rng(4)
    income, state = rng.normal(42.0, 9.0, CELLS).round(1), np.array(["A", "B"])[rng.integers(0, 2, CELLS)]
    logit = -1.2 - 0.7 * (income - 42.0) / 9.0 + 0.6 * (state == "B") + rng.normal(0.0, 0.15, CELLS)
    truth = 1.0 / (1.0 + np.exp(-logit))
    truth[4] = 0.97
    grid = {"name": "counties", "groups": {"county": {"range": ["1", str(CELLS)]}}}
    entry = {"ill": {"family": "bernoulli", "column": "ill"}}
    gallery["release"](
        directory / "releases", grid, entry, {"ill": truth}, rng.integers(150, 400, CELLS), rng
    )
    kinds = {"kind": {"family": "categorical", "column": "kind", "categories": ["x", "y", "z"]}}
    few = {"name": "kinds", "groups": {"county": {"range": ["1", "6"]}}}
    shares = rng.dirichlet([5.0, 3.0, 2.0], 6)
    gallery["release"](directory / "releases", few, kinds, {"kind": shares}, np.full(6, 200), rng)
    with (directory / "counties.csv").open("w", newline="") as written:
        csv.writer(written).writerows(
            [("county", "income", "state"), *zip(range(1, CELLS + 1), income, state, strict=True)]
        )
    return directory


@pytest.fixture
def fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are asked for again, by another command, are not worked out again."""
    known: dict[str, Any] = {}
    posterior = package.Release.posterior

    def once(release: package.Release, statistic: str, **asked: Any) -> Any:
        key = repr((statistic, asked))
        if key not in known:
            known[key] = posterior(release, statistic, **asked)
        return known[key]

    monkeypatch.setattr(package.Release, "posterior", once)


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.mark.slow
@pytest.mark.usefixtures("here", "fitted_once")
def test_the_report_says_what_covariates_explain_and_who_does_not_fit(
    suffice: Runner, tmp_path: Path
) -> None:
    out = tmp_path / "areas.parquet"
    words = ("model", "small-areas", "counties", "ill", *FORMULA, "--least", "3")
    said = suffice.text(*words, "--out", str(out))
    for text in (
        "Populations, on the logit or log scale",
        "Covariates: logits or logarithms for one unit",
        "Cells that the population does not fit",
        "Cells whose answers are least their own",
        "covariates explain",
        "importance sampling of location and coefficients",
        "coefficients Normal(0, 1) for each standard deviation",
    ):
        assert text in said
    table = pq.read_table(out).to_pylist()
    assert [row["county"] for row in table] == list(range(1, CELLS + 1))
    assert table[4]["outside"] > 0.9
    document = suffice.json(*words)
    assert [row["county"] for row in document["misfits"]] == [5]
    assert [row["covariate"] for row in document["coefficients"]] == ["income", "C(state)[T.B]"]
    income, state = document["coefficients"]
    assert income["lower"] < -0.7 / 9.0 < income["upper"]
    assert income["in_words"].startswith("odds multiply by 0.")
    assert state["lower"] < 0.6 < state["upper"]
    assert len(document["least_own"]) == 3
    assert document["population"][0]["explained"] > 0.5
    assert len(document["rows"]) == CELLS


@pytest.mark.usefixtures("here")
def test_every_pooling_has_a_report(suffice: Runner) -> None:
    said = suffice.text("model", "small-areas", "counties", "ill", "--pooled", "beta", "--least", "1")
    assert "explain" not in said
    assert "Covariates" not in said
    assert "is a number of cells" in suffice.text(
        "model", "small-areas", "counties", "ill", "--least", "0", status=2
    )
    release = package.open_release("counties")
    report = models.small_areas(release, "ill")
    assert report.before is None
    assert report.lines == ()
    assert str(report).startswith("Populations")


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_what_is_explained_is_of_the_same_model_without_covariates() -> None:
    """Spreads of cells of any size compare with each other, not with one at a typical size."""
    asked = package.Pooling(covariates="counties.csv", formula=FORMULA[-1], population="logit-normal")
    release = package.open_release("counties")
    report = models.small_areas(release, "ill", asked)
    assert report.before is not None
    (before,) = report.before.pools
    pooled = release.posterior("ill", pooled="logit-normal")
    assert isinstance(pooled, PooledPosterior)
    (together,) = pooled.pools
    assert together.spread_slope is not None
    assert before.spread_slope is None
    assert "log spread" not in str(report.before.prior)
    assert report.posterior.pools[0].size_unit == pytest.approx(together.size_unit, rel=1e-2)
    row = models.small_areas(release, "ill", "logit-normal").population()
    assert max(map(len, str(row).splitlines())) <= 80
    assert row[0]["spread_slope"] == together.spread_slope[0]


@pytest.mark.slow
@pytest.mark.usefixtures("here", "fitted_once")
def test_categories_have_a_report_and_are_published(suffice: Runner, tmp_path: Path) -> None:
    document = suffice.json("model", "small-areas", "kinds", "kind", "--least", "2")
    assert [row["category"] for row in document["population"]] == ["x", "y", "z"]
    assert (len(document["rows"]), len(document["least_own"])) == (18, 6)
    suffice.text("publish", "kinds", "kind", "--pooled", "all", "--draws", "0", "--to", str(tmp_path))
    (summaries,), (pools,) = (list(tmp_path.rglob(f"*-{of}.parquet")) for of in ("summaries", "pools"))
    rows = pq.read_table(summaries).to_pylist()
    assert [row["category"] for row in rows] == ["x", "y", "z"] * 6
    assert all(0.0 < row["own_share"] < 1.0 for row in rows)
    assert [row["category"] for row in pq.read_table(pools).to_pylist()] == ["x", "y", "z"]


@pytest.mark.slow
@pytest.mark.usefixtures("here", "fitted_once")
def test_cells_in_order_have_steps_and_no_population(suffice: Runner, tmp_path: Path) -> None:
    walk = ("counties", "ill", "--over", "county")
    said = suffice.text("model", "small-areas", *walk, "--least", "1")
    assert said.startswith("Walks: steps")
    assert "explain" not in said
    assert "opulation" not in said
    (row,) = suffice.json("model", "small-areas", *walk)["population"]
    assert (row["series"], row["cells"], row["times"]) == (1, CELLS, CELLS)
    assert 0.0 < row["step_sd"] < row["step"]
    report = models.small_areas(package.open_release("counties"), "ill", package.Pooling(over="county"))
    assert report.before is None
    assert report.lines == ()
    picture = tmp_path / "walk.svg"
    suffice.text("posterior", *walk, "--plot", str(picture))
    drawn = picture.read_text(encoding="utf-8")
    assert "in their order" in drawn
    assert "population" not in drawn
    suffice.text("publish", *walk, "--draws", "0", "--to", str(tmp_path / "published"))
    (pools,) = (tmp_path / "published").rglob("*-ill-pools.parquet")
    (published,) = pq.read_table(pools).to_pylist()
    assert (published["population"], published["step"]) == ("walk", row["step"])


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_posterior_has_coefficients_in_its_document(suffice: Runner) -> None:
    document = suffice.json("posterior", "counties", "ill", *FORMULA, "--pooled", "logit-normal")
    (pool,) = document["pooled"]["pools"]
    assert [row["covariate"] for row in pool["coefficients"]] == ["income", "C(state)[T.B]"]
    assert document["diagnostics"]["largest_pareto_k"] < 0.7


@pytest.mark.audit
@pytest.mark.usefixtures("here")
def test_the_page_runs(suffice: Runner) -> None:
    blocks = read_page(REPOSITORY / "docs/how-to/use-covariates.md").blocks
    names: dict[str, Any] = {}
    ran = 0
    for block in blocks:
        if block.language == "python":
            exec(compile(block.text, "use-covariates.md", "exec"), names)  # noqa: S102 - our own page
            ran += 1
        elif block.language == "":
            for line in block.text.strip().splitlines():
                command, *words = shlex.split(line)
                assert command == "suffice"
                suffice.text(*words)
                ran += 1
    assert ran == 3
    assert "covariates explain" in names["report"].lines[0]
