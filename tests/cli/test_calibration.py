"""The commands that simulate: calibrations, and plans for a target."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from support.running import Runner, spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace


@pytest.mark.slow
def test_a_calibration_states_coverage_and_conclusion(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    suffice.json("release", spec_file(workspace))
    plot = tmp_path / "ranks.svg"
    words = ("calibrate", "flights", "cancelled", "--simulations", "200", "--seed", "7")
    document = suffice.json(*words, "--plot", str(plot), "--n-prior", "Uniform(0, 300)")
    assert {key: document[key] for key in ("statistic", "family", "method", "prior", "n_prior")} == {
        "statistic": "cancelled",
        "family": "bernoulli",
        "method": "noise-aware",
        "prior": "Beta(1, 1)",
        "n_prior": "Uniform(0, 300)",
    }
    assert (document["simulations"], document["draws"], document["seed"]) == (200, 199, 7)
    assert document["conclusion"] in {"cannot tell", "not calibrated"}  # the latter once in a thousand
    assert document["simulations_needed"] == 5000
    assert document["false_alarm"] == 0.001
    assert document["tolerance"] == {"coverage_50": 0.042, "coverage_80": 0.034, "coverage_95": 0.0184}
    assert document["noise"]["conclusion"] in {"can be seen", "cannot tell"}
    (row,) = document["rows"]
    assert set(row) == {
        "parameter",
        "clipping",
        "coverage_50",
        "coverage_80",
        "coverage_95",
        "rank_p_value",
        "intervals",
        "histogram",
    }
    assert "<svg" in plot.read_text(encoding="utf-8")
    clipped = suffice.json("calibrate", "flights", "stops", "--method", "plug-in", "--simulations", "50")
    assert [row["clipping"] for row in clipped["rows"]] == [True, False]
    stops = ("calibrate", "flights", "stops", "--simulations", "20", "--seed", "1")
    ways = [suffice.json(*stops, "--clipping", way)["rows"] for way in ("modelled", "ignored", "by-evidence")]
    # Truths are drawn of what bounded records can have, unless they are of records before clipping.
    assert all(way != other for way, other in zip(ways[0], ways[1], strict=True))
    assert ways[1] == ways[2]
    assert document["worlds"] == []
    (remedy, *_) = clipped["remedies"]
    assert remedy["change"] == "method noise-aware"
    of_worlds = suffice.json("calibrate", "flights", "cancelled", "--simulations", "20", "--worlds")["worlds"]
    assert [entry["world"] for entry in of_worlds] == ["skewed", "correlated"]
    text = suffice.text("calibrate", "flights", "cancelled", "--simulations", "20", "--worlds")
    assert "Worlds that are not the model" in text
    text = suffice.text(*words, "--where", "origin=JFK")
    assert "200 simulations" in text
    assert "cannot tell: too few simulations; with 5000 " in text
    assert "noise: " in text


@pytest.mark.parametrize(
    "words",
    [
        ("--simulations", "0"),
        ("--seed", "-1"),
        ("--plot", "p.pdf"),
        ("--n-prior", "many"),
        ("--method", "x"),
        ("--clipping", "x"),
    ],
)
def test_bad_arguments_of_a_calibration_are_exit_2(
    workspace: Workspace, suffice: Runner, words: tuple[str, str]
) -> None:
    suffice.json("release", spec_file(workspace))
    assert suffice.json("calibrate", "flights", "cancelled", *words, status=2)["error"]["exit_status"] == 2


@pytest.mark.slow
def test_a_calibration_of_pooled_cells_is_over_releases(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace))
    words = ("calibrate", "flights", "cancelled", "--pooled", "logit-normal", "--simulations", "2")
    document = suffice.json(*words, "--seed", "7", "--prior", "Beta(2, 20)")
    assert {key: document[key] for key in ("population", "truths", "cells", "releases", "conclusion")} == {
        "population": "logit-normal",
        "truths": "Beta(2, 20)",
        "cells": 3,
        "releases": 2,
        "conclusion": "cannot tell",
    }
    assert document["seed"] == 7
    assert document["bars"] == [0.93, 0.97]
    assert set(document["worst_tenth"]) == {"share", "standard_error"}
    assert "control: 80 % intervals" in suffice.text(*words)
    for refused in (("--worlds",), ("--plot", "p.svg"), ("--method", "plug-in")):
        assert "pooled" in suffice.text(*words, *refused, status=2)


@pytest.mark.slow
def test_a_plan_finds_the_epsilon_of_a_target(workspace: Workspace, suffice: Runner) -> None:
    spec = spec_file(workspace)
    target = ("--target", "cancelled probability width 0.2")
    words = ("plan", spec, *target, "--n", "200", "--simulations", "50", "--seed", "7")
    document = suffice.json(*words)
    assert document["cells"] == 3
    met = document["target"]
    assert {key: met[key] for key in ("statistic", "parameter", "width", "mass", "n", "seed")} == {
        "statistic": "cancelled",
        "parameter": "probability",
        "width": 0.2,
        "mass": 0.95,
        "n": 200,
        "seed": 7,
    }
    assert met["median_width_without_noise"] < met["median_width"] <= 0.2
    assert float(met["epsilon"]) == pytest.approx(4 * float(met["statistic_epsilon"]))
    assert f"epsilon {met['epsilon']}" in suffice.text(*words)
    assert "--n" in suffice.text("plan", spec, *target, status=2)
    for option in ("--n", "--simulations"):
        assert "--target" in suffice.text("plan", spec, option, "5", status=2)
    assert suffice.json("plan", spec, "--target", "x", "--n", "5", status=2)["error"]["exit_status"] == 2


@pytest.mark.slow
def test_a_plan_compares_a_sample_with_a_laplace_release(workspace: Workspace, suffice: Runner) -> None:
    sample = {"within": ["0.005", "0.5"], "grid": "65", "draws": "2", "prior": "Beta(1, 30)"}
    cancelled = {"family": "bernoulli", "column": "cancelled", "sample": sample}
    plain = {"family": "bernoulli", "column": "cancelled"}
    spec = spec_file(workspace, statistics={"cancelled": cancelled, "plain": plain})
    beside = ("--beside", "sample", "--n", "20, 200", "--simulations", "30", "--seed", "7")
    words = ("plan", spec, *beside, "--truth", "0.1")
    document = suffice.json(*words)
    assert document == suffice.json(*words)
    (compared,) = document["beside"]["statistics"]
    assert (compared["statistic"], compared["draws"], compared["method"]) == ("cancelled", 2, "noise-aware")
    assert [errors["n"] for errors in compared["errors"]] == [20, 200]
    assert all(errors["sample_draw"]["standard_error"] > 0 for errors in compared["errors"])
    planned = document["statistics"][0]["sample"]
    assert (planned["prior"], planned["grid"]) == ("Beta(1, 30)", 65)
    text = suffice.text(*words, "--method", "plug-in")
    assert "65 points of 0.005..0.5" in text
    assert "Laplace posterior: plug-in" in text
    refused = {
        ("--beside", "noise", "--n", "5", "--truth", "0.1"): "--beside",
        ("--beside", "sample", "--truth", "0.1"): "--n",
        ("--beside", "sample", "--n", "5"): "--truth",
        ("--beside", "sample", "--n", "5,x", "--truth", "0.1"): "--n",
        ("--beside", "sample", "--n", "5", "--truth", "x"): "--truth",
        ("--beside", "sample", "--n", "5", "--truth", "2"): "truth",
        ("--beside", "sample", "--n", "5", "--truth", "plain=0.1"): "cancelled",
        ("--beside", "sample", "--n", "5", "--truth", "0.1", "--truth", "0.2"): "STATISTIC=NUMBER",
        ("--beside", "sample", "--n", "5", "--truth", "0.1", "--prior", "Beta(1, 1)"): "--target",
        ("--beside", "sample", "--target", "cancelled probability width 1", "--n", "5"): "one at a time",
        ("--truth", "0.1"): "--beside",
        ("--method", "plug-in"): "--beside",
    }
    for wrong, named in refused.items():
        assert named in suffice.text("plan", spec, *wrong, status=2), wrong


def test_a_plan_says_what_of_epsilon_a_sample_leaves_unused(workspace: Workspace, suffice: Runner) -> None:
    sample = {"within": ["0.2", "0.8"], "grid": "65", "draws": "1"}
    cancelled = {"family": "bernoulli", "column": "cancelled", "sample": sample}
    spec = spec_file(workspace, statistics={"cancelled": cancelled}, groups={})
    (planned,) = suffice.json("plan", spec)["statistics"]
    assert planned["sample"]["temperature"] != "1"
    assert Fraction(planned["sample"]["epsilon_unused"]) < Fraction(1, 10**5)
    assert "unused" not in suffice.text("plan", spec)
    rich = {"epsilon": "9", "neighboring": "add_or_remove_one"}
    spec = spec_file(workspace, statistics={"cancelled": cancelled}, groups={}, privacy=rich)
    (planned,) = suffice.json("plan", spec)["statistics"]
    assert planned["sample"]["temperature"] == "1"
    assert float(Fraction(planned["sample"]["epsilon_unused"])) == pytest.approx(9 - math.log(4), abs=1e-5)
    assert "are charged all the same" in suffice.text("plan", spec)
