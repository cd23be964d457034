"""``suffice plan`` on noise that nobody stated: which it is, by which prediction, and how to refuse it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline.spec.chosen_noise import cone_error
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner

UNIT = {"lower": -1, "upper": 1}


def spec_of(**stated: Any) -> dict[str, Any]:
    line = {"family": "linear_regression", "outcome": {"y": UNIT}, "predictors": dict.fromkeys("ab", UNIT)}
    return {
        "name": "lines",
        "dataset": "rows",
        "source": {"parquet": "no/such/rows/"},
        "privacy": {"epsilon": 1, "neighboring": "add_or_remove_one"},
        "expect": {"rows": 100, "epsilon": "0.1"},
        "statistics": {"line": {**line, **stated}, "rate": {"family": "bernoulli", "column": "c"}},
    }


@pytest.mark.parametrize(
    ("stated", "noise", "starts", "ends"),
    [
        ({}, "cone", "line: noise on a cone: ", "; noise: laplace refuses it"),
        ({"noise": "laplace"}, "laplace", "line: Laplace noise; on a cone ", "centred columns"),
    ],
)
def test_a_plan_says_which_noise_and_by_which_prediction(
    stated: dict[str, str], noise: str, starts: str, ends: str, tmp_path: Path, suffice: Runner
) -> None:
    path, terms = tmp_path / "lines.json", spec_of(**stated)
    path.write_text(json.dumps(terms), encoding="utf-8")
    spec = load_spec(terms)
    error = cone_error(spec, spec.statistics["line"])
    assert error is not None
    ratio = math.sqrt(error)
    text = " ".join(suffice.text("plan", str(path)).split())
    sentence = f"the noise of a coefficient is {ratio:.3g} times that of Laplace noise, of unrelated, centred"
    assert text.count(starts + sentence) == 1
    assert text.count(ends) == 1
    assert text.count("lines.expect counts the rows that fit") == 1
    assert "a noisy count of rows is released first" not in text  # the line above says so
    assert suffice.json("plan", str(path))["predicted_noise"] == [
        {"statistic": "line", "noise": noise, "of": "coefficient", "cone_over_laplace": pytest.approx(ratio)}
    ]


def test_a_plan_without_a_choice_says_nothing_of_it(tmp_path: Path, suffice: Runner) -> None:
    path, terms = tmp_path / "rates.json", spec_of()
    del terms["statistics"]["line"]
    path.write_text(json.dumps(terms), encoding="utf-8")
    assert "predicted_noise" not in suffice.json("plan", str(path))
    assert "cone" not in suffice.text("plan", str(path))
