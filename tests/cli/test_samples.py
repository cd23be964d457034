"""A released sample on the command line and in Python: what shows it, and what refuses it by name."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import suffice
from suffice import models
from suffice.cli import app
from suffice.errors import UsageError
from suffice.pipeline.ask.numpyro.observed import require_statistic
from support.bad_inputs import walk
from support.releases import RELEASE_ID, compose, data_files, make_plan, make_store
from support.samples import drawn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.plan import Plan
    from support.running import Runner

GROUPS = {"origin": ["JFK", "EWR"], "<b>@1": ["<i>", "@x"]}
"""Hostile names and keys come into samples' tables as into any other."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of a sample beside noisy statistics, one of nothing but a sample, one at temperature 1."""
    root = tmp_path_factory.mktemp("samples") / "store"
    noisy = {"family": "bernoulli", "column": "flag"}
    for name, (epsilon, statistics) in {
        "first": ("1", {"drawn": drawn(), "noisy": noisy}),
        "second": ("1", {"drawn": drawn(), "noisy": noisy}),
        "alone": ("1", {"drawn": drawn(draws="3")}),
        "cold": ("9", {"drawn": drawn(draws="1")}),
    }.items():
        privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one"}
        plan = make_plan(name=name, privacy=privacy, groups=GROUPS, statistics=statistics)
        rng = np.random.default_rng(len(name))
        values: dict[str, Any] = {
            statistic.name: rng.integers(0, 33, (plan.n_cells, statistic.n_values)).astype(object)
            for statistic in plan.statistics
        }
        publish_under(root, plan, values, release_id=f"{len(name):016x}")
    return root


def publish_under(root: Path, plan: Plan, values: dict[str, Any], *, release_id: str) -> None:
    """Publish a release of that id: two of one id are one release."""
    opened = make_store(root)
    files = data_files(plan, values, opened)
    (root / plan.name / "all" / RELEASE_ID).rename(root / plan.name / "all" / release_id)
    opened.put_manifest(plan.name, "all", release_id, compose(plan, files, release_id=release_id))


REFUSED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("posterior",): ("first", "drawn"),
    ("quantiles",): ("first", "drawn"),
    ("calibrate",): ("first", "drawn"),
    ("compare",): ("first", "second", "drawn"),
    ("pool",): ("drawn", "--disjoint", "first", "--disjoint", "second"),
    ("compare-priors",): ("first", "drawn", "--prior", "Beta(1, 1)", "--prior", "Beta(2, 2)"),
    ("publish",): ("first", "noisy", "drawn"),
    ("model", "classify"): ("first", "drawn", "--data", "rows.csv"),
    ("model", "query"): ("first", "drawn", "--target", "x"),
    ("model", "transitions"): ("first", "drawn"),
    ("model", "field"): ("first", "--statistic", "drawn"),
    ("model", "small-areas"): ("first", "drawn"),
    ("model", "synthesize"): ("first", "--statistic", "drawn", "--rows", "9", "--out", "out.parquet"),
    ("model", "predict"): ("first", "drawn", "--data", "rows.csv"),
    ("model", "hidden-markov"): (
        *("first", "--chain", "origin", "--time", "<b>@1", "--states", "2", "--statistic", "drawn"),
    ),
}


def test_every_command_that_takes_a_statistic_is_asked() -> None:
    """Whoever adds a command that takes a statistic has to say here what it does with a sample."""
    taking = {
        name
        for name, command in walk(app.command())
        if {"statistic", "statistics"} & {param.name for param in command.params}
    }
    assert taking == {*REFUSED, ("table",)}


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_needs_statistics_refuses_a_sample_by_name(
    command: tuple[str, ...], store: Path, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x\n1\n", encoding="utf-8")
    said = suffice.json(*command, *REFUSED[command], "--store", str(store), status=2)["error"]
    assert said["type"] == "UsageError"
    assert re.match(
        r"drawn is a posterior sample: .* its draws: suffice table, or release\.samples", said["message"]
    )


def questions(first: Release, second: Release) -> dict[str, Callable[[], object]]:
    """Return every function of the package that starts from a statistic."""
    return {
        "statistic": lambda: first.statistic("drawn"),
        "cells": lambda: first.cells("drawn"),
        "posterior": lambda: first.posterior("drawn"),
        "calibrate": lambda: suffice.calibrate(first, "drawn", simulations=2),
        "compare": lambda: suffice.compare(first, second, "drawn"),
        "pool": lambda: suffice.pool("drawn", disjoint=[first, second]),
        "compare_priors": lambda: suffice.compare_priors(first, "drawn", ["Beta(1, 1)", "Beta(2, 2)"]),
        "publish": lambda: suffice.publish(first, "drawn"),
        "roll_up": lambda: suffice.roll_up(first.samples("drawn"), "origin"),  # type: ignore[arg-type]
        "chain": lambda: models.chain(first, "drawn"),
        "classifier": lambda: models.classifier(first, "drawn"),
        "network": lambda: models.network(first, "drawn"),
        "field": lambda: models.field(first, ["drawn"]),
        "regression": lambda: models.regression(first, "drawn"),
        "small_areas": lambda: models.small_areas(first, "drawn"),
        "hidden_markov": lambda: models.hidden_markov(
            first, statistics=["drawn"], chain="origin", time="<b>@1", states=2
        ),
        "likelihood": lambda: require_statistic(first.samples("drawn")),
    }


def test_every_function_that_starts_from_statistics_refuses_a_sample(store: Path) -> None:
    first, second = (suffice.open_release(name, store=str(store)) for name in ("first", "second"))
    for name, ask in questions(first, second).items():
        with pytest.raises(UsageError, match=r"drawn is a posterior sample: .*release\.samples"):
            ask()
        assert name
    with pytest.raises(UsageError, match="noisy was released as noisy statistics, not as a sample"):
        first.samples("noisy")
    with pytest.raises(UsageError, match="no statistic 'x': it has noisy, drawn"):
        first.samples("x")
    assert set(models.__all__) <= {*questions(first, second), *_RESULTS}, "a new model has to be asked here"


_RESULTS = {name for name in models.__all__ if name[0].isupper()}


def test_a_table_has_the_draws(store: Path, suffice: Runner, tmp_path: Path) -> None:
    import suffice as package

    release = package.open_release("alone", store=str(store))
    sample = release.samples("drawn", {"origin": "EWR"})
    assert sample.values.shape == (2, 3)
    assert repr(sample).startswith(
        "ReleasedSample('drawn': 3 draws of probability in each of 2 cells, prior "
    )
    assert np.all((sample.values >= 0.2) & (sample.values <= 0.8))
    words = ("table", "alone", "drawn", "--where", "origin=EWR", "--store", str(store))
    document = suffice.json(*words)
    assert document["rows"] == release.table("drawn", {"origin": "EWR"})
    assert [row["value"] for row in document["rows"]] == sample.values.ravel().tolist()
    assert {"parameter": "probability", "draw": 2}.items() <= document["rows"][2].items()
    assert (document["prior"], document["grid"], document["within"]) == ("Beta(2, 1)", 33, ["0.2", "0.8"])
    assert document["source"]["prior"] == "Beta(2, 1)"
    text = suffice.text(*words)
    assert "temperature" in text
    assert "prior: Beta(2, 1)" in text
    files = {ending: tmp_path / f"draws.{ending}" for ending in ("csv", "parquet", "svg")}
    suffice.text(*words, "--out", str(files["csv"]), "--plot", str(files["svg"]))
    suffice.text(*words, "--out", str(files["parquet"]))
    with files["csv"].open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["value"]) for row in read] == sample.values.ravel().tolist()
    assert read[3]["<b>@1"] == "'@x", "what a spreadsheet would run has a mark in front"
    assert pq.read_table(files["parquet"])["draw"].to_pylist() == [0, 1, 2] * 2
    assert "<b>" not in files["svg"].read_text(encoding="utf-8")


def test_what_is_said_of_a_release_tells_its_mechanisms(store: Path, suffice: Runner) -> None:
    shown = suffice.json("show", "first", "--store", str(store))
    assert {file["statistic"]: file["mechanism"] for file in shown["files"]} == {
        "drawn": "exponential",
        "noisy": "discrete_laplace",
    }
    assert "draws of a posterior sample" in suffice.text("show", "alone", "--store", str(store))
    assert suffice.json("verify", "alone", "--store", str(store))["ok"]
    implementation = suffice.json("disclose", "first", "--store", str(store))["entry"]["deployment"]
    assert "The exponential mechanism on a public grid" in implementation["implementation"]["mechanisms"]
    assert "drawn: 2 draws of 33 points" in implementation["implementation"]["mechanisms"]


def test_at_temperature_1_draws_are_said_to_be_of_the_posterior_itself(
    store: Path, suffice: Runner, tmp_path: Path
) -> None:
    said = {}
    for name in ("alone", "cold"):
        plot = tmp_path / f"{name}.svg"
        said[name] = suffice.text("table", name, "drawn", "--plot", str(plot), "--store", str(store))
        said[name] += plot.read_text(encoding="utf-8")
    assert said["alone"].count("spread tells of") == 2, "in the table's note, and in the picture"
    assert "spread tells of" not in said["cold"]
    assert "from the data's own posterior under this prior" in said["cold"]
    assert "drawn: 1 draw of 33 points" in str(suffice.json("disclose", "cold", "--store", str(store)))


def test_descriptions_say_what_the_files_of_samples_hold(
    store: Path, suffice: Runner, tmp_path: Path
) -> None:
    suffice.text("describe", "first", "--store", str(store), "--out", str(tmp_path))
    package = json.loads((tmp_path / "datapackage.json").read_text())
    (resource,) = [candidate for candidate in package["resources"] if candidate["title"] == "drawn"]
    assert [field["name"] for field in resource["schema"]["fields"]] == [*GROUPS, "draw", "value"]
    assert resource["schema"]["primaryKey"] == [*GROUPS, "draw"]
    assert resource["schema"]["fields"][-1]["constraints"]["maximum"] == "32"
    assert (resource["suffice"]["mechanism"], resource["suffice"]["grid"]) == ("exponential", 33)
    croissant = json.loads((tmp_path / "croissant.json").read_text())
    (records,) = [candidate for candidate in croissant["recordSet"] if candidate["name"] == "drawn"]
    assert [field["name"] for field in records["field"]][-2:] == ["draw", "value"]


def axis_of(page: Path) -> tuple[str, ...]:
    """Return the labels of the axis over a picture of draws."""
    sections = page.read_text(encoding="utf-8").split('<section aria-labelledby="statistic-')
    (drawn,) = (section for section in sections if "a circle each" in section)
    axis = drawn[drawn.index('<svg class="chart" height="18"') :]
    return tuple(re.findall(r"<text[^>]*>([^<]+)</text>", axis[: axis.index("</svg>")]))


@pytest.mark.slow
def test_the_catalogue_shows_draws_and_no_explorer_for_them(
    store: Path, suffice: Runner, tmp_path: Path
) -> None:
    suffice.text("catalogue", str(store), "--out", str(tmp_path / "site"))
    (alone,) = (tmp_path / "site").glob("releases/alone/all/*/index.html")
    page = alone.read_text(encoding="utf-8")
    assert "a flatter law than the data" in page
    (cold,) = (tmp_path / "site").glob("releases/cold/all/*/index.html")
    assert "flatter law" not in cold.read_text(encoding="utf-8")
    assert 'id="suffice-release"' not in page
    assert page.count('class="point"') == 1 + 4 * 3, "one in the legend, and one for each draw"
    assert "release.samples(" in page
    assert "suffice posterior" not in page
    assert "<i>" not in page
    assert "<b>@1" not in page
    (mixed,) = (tmp_path / "site").glob("releases/first/all/*/index.html")
    page = mixed.read_text(encoding="utf-8")
    assert 'id="suffice-release"' in page
    assert "Of drawn posterior samples were drawn instead" in page
    use = page[page.index('id="use"') :]
    assert "release[&#39;noisy&#39;].posterior()" in use
    assert "release.samples(&#39;drawn&#39;).values" in use
    assert re.findall(r"suffice (\S+) \S+/all/\S+ (noisy|drawn)\b", use) == [
        *(("table", "noisy"), ("posterior", "noisy"), ("table", "drawn"))
    ]
    axes = {axis_of(path) for path in (tmp_path / "site").glob("releases/*/all/*/index.html")}
    assert axes == {("0.2", "0.4", "0.6", "0.8")}, "the grid's, whatever was drawn"
    draws = (alone.parent / "drawn.csv").read_text(encoding="utf-8").splitlines()
    assert "probability draw 2" in draws[0]
    assert len(draws) == 5
