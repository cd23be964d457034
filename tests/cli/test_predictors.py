"""Priors and worlds of a regression's predictors, as options of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.running import Runner, spec_file

if TYPE_CHECKING:
    from support.making import Workspace

BOUNDS = {"lower": -60, "upper": 180}
REGRESSION: dict[str, Any] = {
    "late": {
        "family": "linear_regression",
        "predictors": {"stops": {"lower": 0, "upper": 4}},
        "outcome": {"arr_delay": BOUNDS},
    }
}
STATED = "NormalInverseGammaRegression(0, 0.5, 4, 3)"
OF_PREDICTORS = "NormalInverseWishart(1, 1, 6, 4)"


@pytest.mark.slow
@pytest.mark.usefixtures("chains_once")
def test_a_prior_of_predictors_is_taken_and_named(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace, statistics=REGRESSION))
    words = ("posterior", "flights", "late", "--where", "origin=JFK", "--prior", STATED)
    document = suffice.json(*words, "--predictor-prior", OF_PREDICTORS)
    assert document["predictor_prior"] == OF_PREDICTORS
    assert f"prior of predictors: {OF_PREDICTORS}" in suffice.text(*words, "--predictor-prior", OF_PREDICTORS)


@pytest.mark.slow
def test_calibrations_draw_predictors_from_stated_worlds(workspace: Workspace, suffice: Runner) -> None:
    """By the plug-in, whose posteriors take no chains; how many simulations is no matter here."""
    suffice.json("release", spec_file(workspace, statistics=REGRESSION))
    words = ("calibrate", "flights", "late", "--method", "plug-in", "--prior", STATED, "--simulations", "2")
    document = suffice.json(*words, "--predictors", "Normal(2, 1)")
    assert document["predictors"] == "Normal(2, 1)"
    assert "Normal(2, 1)" in suffice.text(*words, "--predictors", "Normal(2, 1)")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("posterior", "--predictor-prior", "Beta(1, 1)"), "predictor"),
        (("posterior", "--predictor-prior", "NormalInverseWishart([0, 0, 0], 1, 6, 4)"), "loc needs 1"),
        (("posterior", "--method", "plug-in", "--predictor-prior", OF_PREDICTORS), "predictor"),
        (("calibrate", "--predictor-prior", "Beta(1, 1)"), "predictor"),
        (("calibrate", "--predictors", "Nothing(1)"), "'Nothing(1)'"),
        (("calibrate", "--predictors", "absent.csv"), "predictor"),
    ],
)
def test_what_cannot_be_of_predictors_is_refused(
    workspace: Workspace, suffice: Runner, words: tuple[str, ...], said: str
) -> None:
    suffice.json("release", spec_file(workspace, statistics=REGRESSION))
    message = suffice.text(words[0], "flights", "late", "--prior", STATED, *words[1:], status=2)
    assert said in message
