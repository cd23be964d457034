"""Questions beyond intervals on the command line: comparisons, probabilities, plots, netCDF."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support import releases
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from support.running import Runner

VECTORS = Path(__file__).parents[1] / "vectors"
CANCELLED = np.array([[900, 100], [800, 200], [950, 50]], dtype=object)
STOPS = np.array([[150, 50], [120, 80], [140, 60]], dtype=object)
CARRIER = np.array([[30, 40, 5], [300, 40, -4], [20, 20, 20]], dtype=object)


@pytest.fixture
def release(tmp_path: Path) -> str:
    """A release by origin (EWR, JFK, LGA) with known values."""
    statistics = {
        "cancelled": {"family": "bernoulli", "column": "c"},
        "carrier": {"family": "categorical", "column": "k", "categories": ["UA", "DL"], "other": True},
    }
    values = {"cancelled": CANCELLED, "carrier": CARRIER}
    return str(publish(tmp_path / "store", make_plan(statistics=statistics), values))


def test_jfk_against_lga(release: str, suffice: Runner) -> None:
    words = ("posterior", release, "cancelled", "--where", "origin=JFK", "--versus", "origin=LGA")
    document = suffice.json(*words)
    assert [row["origin"] for row in document["rows"]] == ["JFK"]
    (row,) = document["comparison"]
    assert list(row) == ["parameter", "mean", "sd", "lower", "upper", "probability_above"]
    assert row["mean"] == pytest.approx(0.15, abs=0.005)
    assert row["lower"] < row["mean"] < row["upper"]
    assert row["probability_above"] == 1.0
    assert "difference" in suffice.text(*words)


@pytest.mark.parametrize("against", ["origin=JFK", "month=1", "origin=BOS", "origin"])
def test_a_comparison_needs_other_cells(release: str, suffice: Runner, against: str) -> None:
    words = ("posterior", release, "cancelled", "--where", "origin=JFK", "--versus", against)
    assert suffice.json(*words, status=2)["error"]["exit_status"] == 2


@pytest.mark.parametrize("where", [[], ["--where", "month=1"]])
def test_a_comparison_says_which_option_is_missing(release: str, suffice: Runner, where: list[str]) -> None:
    words = ("posterior", release, "cancelled", *where, "--versus", "origin=LGA")
    message = suffice.json(*words, status=2)["error"]["message"]
    assert "--versus origin=LGA needs --where origin=KEY beside it" in message


def test_the_probability_of_a_statement(release: str, suffice: Runner) -> None:
    words = ("posterior", release, "cancelled", "--probability", "0.15 < probability < 0.9")
    rows = suffice.json(*words)["probability"]
    assert [(row["origin"], round(row["probability"], 2)) for row in rows] == [
        ("EWR", 0.0),
        ("JFK", 1.0),
        ("LGA", 0.0),
    ]
    assert rows[0]["statement"] == "0.15 < probability < 0.9"
    assert "0.15 < probability < 0.9" in suffice.text(*words)
    assert suffice.json(*words[:-1], "mean > 1", status=2)["error"]["exit_status"] == 2


def test_every_statement_is_answered(release: str, suffice: Runner) -> None:
    asked = ("probability > 0.15", "probability < 0.07")
    words = [word for statement in asked for word in ("--probability", statement)]
    rows = suffice.json("posterior", release, "cancelled", *words)["probability"]
    assert [row["statement"] for row in rows] == [asked[0]] * 3 + [asked[1]] * 3
    assert [round(row["probability"]) for row in rows] == [0, 1, 0, 0, 0, 1]


@pytest.mark.slow
def test_statements_beside_a_comparison_are_about_it(release: str, suffice: Runner, tmp_path: Path) -> None:
    words = ("posterior", release, "cancelled", "--where", "origin=JFK", "--versus", "origin=LGA")
    asked = ("difference > 0", "0.1 < difference < 0.2", "ratio < 1", "ratio > 2")
    statements = [word for statement in asked for word in ("--probability", statement)]
    rows = suffice.json(*words, *statements)["probability"]
    assert [(row["statement"], round(row["probability"], 2)) for row in rows] == list(
        zip(asked, (1, 1, 0, 1), strict=True)
    )
    text = suffice.text(*words, *statements)
    assert all(statement in text for statement in asked)
    refused = suffice.json(*words, "--probability", "probability > 0", status=2)["error"]["message"]
    assert "'difference > 0' or 'ratio < 1'" in refused
    alone = suffice.json(*words[:5], "--probability", "ratio > 1", status=2)["error"]["message"]
    assert "--versus" in alone
    for option, name in (("--out", "draws.csv"), ("--card", "card.html"), ("--plot", "plot.svg")):
        path = tmp_path / name
        refused = suffice.json(*words, option, str(path), status=2)["error"]["message"]
        assert f"{option} shows one side of --versus" in refused
        assert not path.exists()


def test_an_unknown_key_or_prior_is_answered_with_the_known_ones(release: str, suffice: Runner) -> None:
    words = ("posterior", release, "cancelled")
    message = suffice.json(*words, "--where", "origin=BOS", status=2)["error"]["message"]
    assert "its keys are EWR, JFK, LGA" in message
    message = suffice.json(*words, "--prior", "Betta(1, 1)", status=2)["error"]["message"]
    assert message.endswith("did you mean Beta?")
    message = suffice.json(*words, "--prior", "Zipf(1, 1)", status=2)["error"]["message"]
    for name in (
        "Beta",
        "NormalInverseWishart",
        "SpreadGamma",
        "HalfCauchy",
        "Uniform",
        "Mixture",
        "Independent",
    ):
        assert f" {name}," in message
    assert message.endswith("Others: suffice.Density, in Python")


@pytest.mark.parametrize("words", [("--beside", "plug-in"), ("--plot-kind", "forest")])
def test_what_is_of_a_plot_needs_one(release: str, suffice: Runner, words: tuple[str, str]) -> None:
    message = suffice.json("posterior", release, "cancelled", *words, status=2)["error"]["message"]
    assert "are options of --plot" in message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["density", "forest"])
@pytest.mark.parametrize("ending", ["svg", "png"])
@pytest.mark.parametrize("statistic", ["cancelled", "carrier"])
def test_each_plot_stands_beside_the_plug_in(
    release: str, suffice: Runner, tmp_path: Path, kind: str, ending: str, statistic: str
) -> None:
    path = tmp_path / f"plot.{ending}"
    words = ("posterior", release, statistic, "--draws", "200", "--plot", str(path), "--plot-kind", kind)
    suffice.text(*words, "--beside", "plug-in")
    head = path.read_bytes()[:8]
    assert head == b"\x89PNG\r\n\x1a\n" if ending == "png" else head.startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "of"),
    [
        (("posterior", "--draws", "200"), "cancelled"),
        (("table",), "cancelled"),
        (("calibrate", "--simulations", "200", "--n-prior", "Uniform(0, 300)"), "calibration of cancelled"),
    ],
    ids=["posterior", "table", "calibrate"],
)
def test_the_title_of_a_plot_names_the_window(
    suffice: Runner, tmp_path: Path, words: tuple[str, ...], of: str
) -> None:
    plan = make_plan(
        statistics={"cancelled": {"family": "bernoulli", "column": "c"}},
        window={"column": "day", "every": "month"},
    )
    release = str(publish(tmp_path / "store", plan, {"cancelled": CANCELLED}, window="2013-02"))
    path = tmp_path / "plot.svg"
    suffice.text(words[0], release, "cancelled", *words[1:], "--plot", str(path))
    assert f"<!-- {plan.name}@2013-02: {of} -->" in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_ends_of_intervals_that_are_of_draws_say_so(release: str, suffice: Runner) -> None:
    """Those of classes and their features do; those of a law, and the plug-in's, do not."""
    label = "the ends of intervals are from draws: other draws give slightly other ends"
    tables = str(VECTORS / "valid" / "tables" / "release")
    for of, statistic, more, is_said in (
        (tables, "classes", (), True),
        (tables, "classes", ("--method", "plug-in"), False),
        (release, "carrier", (), False),
        (release, "cancelled", (), False),
    ):
        words = ("posterior", of, statistic, *more, "--draws", "200")
        first, second = (suffice.json(*words, "--seed", seed) for seed in ("1", "2"))
        assert (label in first["source"].get("notes", [])) == is_said
        assert (first["rows"] != second["rows"]) == is_said
        assert (f"{label}; these are of 200 draws" in suffice.text(*words)) == is_said


def test_a_plot_that_cannot_be_is_refused_before_any_work(release: str, suffice: Runner) -> None:
    for words in (("--plot", "p.svg", "--plot-kind", "pie"), ("--plot", "p.pdf"), ("--out", "draws.txt")):
        message = suffice.json("posterior", release, "cancelled", *words, status=2)["error"]["message"]
        assert words[0] in message


@pytest.mark.slow
def test_draws_as_netcdf(release: str, suffice: Runner, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "draws.nc"
    suffice.text("posterior", release, "cancelled", "--draws", "20", "--draws-out", str(path))
    with xarray.open_dataset(path, group="posterior", engine="h5netcdf") as read:
        assert read["probability"].shape == (1, 20, 3)
        assert list(read["origin"].values) == ["EWR", "JFK", "LGA"]


@pytest.mark.slow
def test_two_months_compared(suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(
        statistics={"cancelled": {"family": "bernoulli", "column": "c"}},
        window={"column": "day", "every": "month"},
    )
    store = tmp_path / "store"
    for number, (month, true) in enumerate((("2013-01", 100), ("2013-02", 160))):
        monkeypatch.setattr(releases, "RELEASE_ID", f"{number + 1:016x}")
        values = np.array([[900, true], [800, 200], [950, 50]], dtype=object)
        publish(store, plan, {"cancelled": values}, window=month)
    words = ("compare", "flights@2013-01", "flights@2013-02", "cancelled", "--store", str(store))
    document = suffice.json(*words, "--seed", "3")
    assert (document["first"], document["second"]) == ("flights@2013-01", "flights@2013-02")
    newark, kennedy, _ = document["rows"]
    assert list(newark) == [
        "origin",
        "parameter",
        "before",
        "after",
        "change",
        "sd",
        "lower",
        "upper",
        "ratio",
        "probability_above",
        "apparent",
        "noise_sd",
        "noise_probability",
        "conflict",
    ]
    assert newark["lower"] > 0
    assert kennedy["lower"] < 0 < kennedy["upper"]
    assert document == suffice.json(*words, "--seed", "3")
    assert "noise alone" in suffice.text(*words)
    assert "  conflict\n" not in suffice.text(*words)
    assert "  conflict\n" in suffice.text(*words, "--prior", "Beta(9000, 10)")
    plot = tmp_path / "change.svg"
    assert f"wrote {plot}" in suffice.text(*words, "--plot", str(plot))
    assert "noise alone gives" in plot.read_text(encoding="utf-8")
    assert "exists" in suffice.text(*words, "--plot", str(plot), status=2)
    same = suffice.json("compare", "flights@2013-01", "flights@2013-01", *words[3:], status=2)["error"]
    assert "flights@2013-01 are the same release" in same["message"]


@pytest.mark.slow
def test_releases_pooled(suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    statistics = {"cancelled": {"family": "bernoulli", "column": "c"}}
    monthly: dict[str, Any] = {"window": {"column": "day", "every": "month"}}
    published: list[tuple[str, dict[str, Any]]] = [
        ("2013-01", monthly),
        ("2013-02", monthly),
        ("all", {"name": "first"}),
        ("all", {"name": "second"}),
    ]
    for number, (label, grid) in enumerate(published):
        monkeypatch.setattr(releases, "RELEASE_ID", f"{number + 1:016x}")
        plan = make_plan(statistics=statistics, **grid)
        publish(store, plan, {"cancelled": CANCELLED}, window=label)
    months = ("--disjoint", "flights@2013-01", "--disjoint", "flights@2013-02", "--store", str(store))
    document = suffice.json("pool", "cancelled", *months)
    assert document["disjoint"] == ["flights@2013-01", "flights@2013-02"]
    again = ("--same-data", "first", "--same-data", "second", "--store", str(store))
    repeated = suffice.json("pool", "cancelled", *again)
    assert repeated["same_data"] == ["first@all", "second@all"]
    for pooled in (document, repeated):
        assert [round(row["mean"], 1) for row in pooled["rows"]] == [0.1, 0.2, 0.1]
    widths = [pooled["rows"][1]["sd"] for pooled in (document, repeated)]
    assert widths[0] == pytest.approx(widths[1] / 2**0.5, rel=0.02)
    out = tmp_path / "draws.csv"
    table = tmp_path / "table.csv"
    files = ("--draws-out", str(out), "--out", str(table))
    text = suffice.text("pool", "cancelled", *months, *files, "--where", "origin=JFK")
    assert "prior: Beta(1, 1)" in text
    assert f"wrote {table}: the table\nwrote {out}: posterior draws" in text
    assert len(out.read_text().splitlines()) == 4001
    assert len(table.read_text().splitlines()) == 2
    plot = tmp_path / "pool.svg"
    assert f"wrote {plot}" in suffice.text("pool", "cancelled", *months, "--plot", str(plot))
    drawn = plot.read_text(encoding="utf-8")
    assert all(f"<!-- {label} -->" in drawn for label in ("flights@2013-01", "flights@2013-02", "pooled"))
    refused = suffice.json("pool", "cancelled", *again[:2], *months, status=2)["error"]
    assert "disjoint" in refused["message"]


def test_the_text_names_both_priors(release: str, suffice: Runner) -> None:
    text = suffice.text("posterior", release, "cancelled", "--prior", "Beta(2, 30)", "--n-prior", "2000")
    assert "prior: Beta(2, 30)" in text
    assert "prior of N: 2000" in text


@pytest.fixture
def months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The references of two months, with half of all delays beyond their bound, and where they are."""
    statistics = {
        "delay": {"family": "exponential", "column": "d", "upper": 1},
        "carrier": {"family": "categorical", "column": "k", "categories": ["UA", "DL"], "other": True},
        "stops": {"family": "poisson", "column": "s", "upper": 2},
    }
    plan = make_plan(statistics=statistics, window={"column": "day", "every": "month"})
    partition_total = plan.statistics[0].partition_total or 1
    delay = np.array([[1000 * partition_total // 2, 1000 * partition_total // 2]] * 3, dtype=object)
    for number, month in enumerate(("2013-01", "2013-02")):
        monkeypatch.setattr(releases, "RELEASE_ID", f"{number + 1:016x}")
        values = {"delay": delay, "carrier": CARRIER + 100, "stops": STOPS}
        publish(tmp_path / "store", plan, values, window=month)
    return ["flights@2013-01", "flights@2013-02", str(tmp_path / "store")]


@pytest.mark.slow
def test_a_pooled_posterior_warns_of_clipping_and_says_what_it_is(months: list[str], suffice: Runner) -> None:
    first, second, store = months
    options = ("--disjoint", first, "--disjoint", second, "--store", store)
    assert not suffice.json("pool", "delay", *options)["clipping"]["is_warned"]
    assert "clipping" not in suffice.text("pool", "delay", *options)
    modelled = (*options, "--clipping", "modelled")
    told = suffice.json("pool", "delay", *modelled)["clipping"]
    assert told["is_warned"]
    assert [cell["origin"] for cell in told["cells"] if cell["is_warned"]] == ["EWR", "JFK", "LGA"]
    text = suffice.text("pool", "delay", *modelled)
    for line in (
        "clipping is modelled in 3 of 3 cells",
        "method: noise-aware",
        f"disjoint: {first}, {second}",
    ):
        assert f"\n{line}" in text
    assert suffice.json("pool", "carrier", *options)["clipping"] is None
    text = suffice.text("pool", "carrier", *options)
    assert re.search(r"fewest effective draws \d+\n", text)
    assert "clipping" not in text


@pytest.mark.slow
def test_clipping_is_modelled_or_ignored_as_asked(months: list[str], suffice: Runner) -> None:
    """Averages of 1.2 to 1.5 of counts up to 2: ignoring that takes a third off the rates."""
    first, second, store = months
    pool = ("pool", "stops", "--disjoint", first, "--disjoint", second, "--store", store)
    compare = ("compare", first, second, "stops", "--store", store, "--draws", "200")
    modelled, ignored = (suffice.json(*pool, "--clipping", way) for way in ("modelled", "ignored"))
    assert {**ignored, "source": suffice.json(*pool)["source"]} == suffice.json(*pool)
    assert modelled["estimand"] == "of records before clipping in 3 of 3 cells, where clipping is modelled"
    assert ignored["estimand"].startswith("of the records as the public bounds leave them")
    for document, is_modelled in ((modelled, True), (ignored, False)):
        for cell in document["clipping"]["cells"]:
            assert (cell["is_modelled"], cell["is_warned"]) == (is_modelled, is_modelled)
            assert (cell["share"] is not None) == is_modelled
    for of_model, without_model in zip(modelled["rows"], ignored["rows"], strict=True):
        assert of_model["mean"] > 1.15 * without_model["mean"]
    both = [suffice.json(*compare, "--clipping", way) for way in ("modelled", "ignored")]
    for which in ("first", "second"):
        assert [document["clipping"][which]["is_warned"] for document in both] == [True, False]
    assert suffice.text(*pool, "--clipping", "never", status=2)


@pytest.mark.slow
def test_a_comparison_warns_of_clipping_and_says_what_it_is(months: list[str], suffice: Runner) -> None:
    first, second, store = months
    words = ("compare", first, second, "delay", "--store", store, "--mass", "0.8", "--n-prior", "2000")
    plain = suffice.json(*words)["clipping"]
    assert [plain[which]["is_warned"] for which in ("first", "second")] == [False, False]
    modelled = (*words, "--clipping", "modelled")
    document = suffice.json(*modelled)
    assert document["method"] == "noise-aware"
    assert [document["clipping"][which]["is_warned"] for which in ("first", "second")] == [True, True]
    assert "diagnostics" not in document
    text = suffice.text(*modelled)
    for line in (
        f"{first}: clipping is modelled in 3 of 3 cells",
        f"{second}: clipping is modelled in 3 of 3 cells",
        "method: noise-aware",
        f"prior: {document['prior']}",
        "prior of N: 2000",
        "intervals: central, 80 %",
    ):
        assert f"\n{line}" in text
    carrier = suffice.json("compare", first, second, "carrier", "--store", store)
    assert carrier["clipping"] == {"first": None, "second": None}


def test_clipping_that_cannot_be_judged_is_said_to_be_unknown(tmp_path: Path, suffice: Runner) -> None:
    laplace = {"family": "laplace", "column": "d", "location": 0, "half_range": 4}
    plan = make_plan(statistics={"delay": laplace})
    release = str(publish(tmp_path / "store", plan, {"delay": np.zeros((3, 2), dtype=object)}))
    words = ("posterior", release, "delay", "--method", "plug-in", "--prior")
    told = suffice.json(*words, "InverseGamma(0.5, 1)")["clipping"]
    assert not told["is_warned"]
    for cell in told["cells"]:
        assert (cell["share"], cell["bias"], cell["is_modelled"], cell["is_warned"]) == (
            None,
            None,
            False,
            False,
        )
    text = suffice.text(*words, "InverseGamma(0.5, 1)")
    assert "clipping" not in text
    assert "of the records as the public bounds leave them" in text
