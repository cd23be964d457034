"""The commands that simulate: calibrations, and plans for a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.running import Runner, spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace


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
    ways = [suffice.json(*stops, "--clipping", way)["rows"] for way in ("modelled", "ignored")]
    assert ways[0][0] != ways[1][0]
    assert ways[0][1] == ways[1][1]
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


def test_a_plan_finds_the_epsilon_of_a_target(workspace: Workspace, suffice: Runner) -> None:
    spec = spec_file(workspace)
    target = ("--target", "cancelled probability width 0.2")
    words = ("plan", spec, *target, "--n", "200", "--simulations", "50", "--seed", "7")
    document = suffice.json(*words)
    assert document["cells"] == 3
    found = document["target"]
    assert {key: found[key] for key in ("statistic", "parameter", "width", "mass", "n", "seed")} == {
        "statistic": "cancelled",
        "parameter": "probability",
        "width": 0.2,
        "mass": 0.95,
        "n": 200,
        "seed": 7,
    }
    assert found["median_width_without_noise"] < found["median_width"] <= 0.2
    assert float(found["epsilon"]) == pytest.approx(4 * float(found["statistic_epsilon"]))
    assert f"epsilon {found['epsilon']}" in suffice.text(*words)
    assert "--n" in suffice.text("plan", spec, *target, status=2)
    for option in ("--n", "--simulations"):
        assert "--target" in suffice.text("plan", spec, option, "5", status=2)
    assert suffice.json("plan", spec, "--target", "x", "--n", "5", status=2)["error"]["exit_status"] == 2
