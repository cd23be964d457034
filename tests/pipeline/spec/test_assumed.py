"""What a spec assumes: no term of what is charged, and refused with its place where it fits no statistic."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import suffice
from suffice.errors import SpecError
from suffice.pipeline.ask.planning.expected_error import conjugate_prior
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.assumed import parameter_entries
from suffice.pipeline.spec.expected import expect_spec
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.noisy import noisy_statistic, statistic_plan

TERMS: dict[str, Any] = {
    "name": "assumed",
    "dataset": "assumed",
    "source": {"parquet": "nowhere/"},
    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
    "groups": {"origin": ["EWR", "JFK"]},
    "statistics": {
        "late": {"family": "bernoulli", "column": "late"},
        "kind": {"family": "categorical", "column": "kind", "categories": ["a", "b"]},
        "delay": {"family": "normal", "column": "delay", "lower": -60, "upper": 180},
        "line": {
            "family": "linear_regression",
            "outcome": {"y": {"lower": -1, "upper": 1}},
            "predictors": {"p": {"lower": -1, "upper": 1}, "q": {"lower": -1, "upper": 1}},
            "noise": "laplace",
        },
        "pair": {
            "family": "multivariate_normal",
            "columns": {"y": {"lower": -1, "upper": 1}, "z": {"lower": -1, "upper": 1}},
        },
    },
}
ALL = {
    "rows": 10000,
    "units": "200",
    "statistics": {
        "late": {"n": 5000, "typical": {"probability": "0.02"}, "weight": 2},
        "kind": {"typical": {"probability": {"b": 0.25, "a": 0.75}}, "counts": "probability[a]"},
        "delay": {"typical": {"mean": 7, "variance": 2000}, "counts": "mean"},
        "line": {
            "typical": {"coefficient": [0.5, 0], "intercept": 0, "variance": 1},
            "predictors": ["Normal(0, 1)"],
            "counts": "coefficient[q]",
        },
        "pair": {"typical": {"mean": [0, 0], "variance": [1, 2], "covariance": {"y, z": 0.3}}},
    },
}


def with_assumptions(assume: object) -> suffice.Spec:
    return load_spec({**TERMS, "assume": assume})


def test_no_plan_depends_on_it() -> None:
    """The very hash that these terms had before specs could assume anything."""
    without, assuming = load_spec(TERMS), with_assumptions(ALL)
    assert assuming.canonical_plan() == without.canonical_plan()
    assert "assume" not in json.loads(assuming.canonical_plan())
    assert assuming.plan_hash() == "9a42ff6626a504be79def8236a5c01b049859e379ea4aef95f723889cd00a55d"
    assert compile_plan(assuming) == compile_plan(without)


def test_the_count_before_the_rest_assumes_nothing() -> None:
    spec = load_spec({**TERMS, "assume": ALL, "expect": {"rows": 100, "epsilon": "0.1"}})
    assert expect_spec(spec).assume is None


def test_it_is_stated_in_python_as_in_yaml() -> None:
    built = suffice.spec(
        dataset="d", epsilon=1, statistics={"late": suffice.bernoulli()}, assume={"rows": 10, "units": 3}
    )
    assert built.assume is not None
    assert (built.assume.rows, built.assume.units) == (10, 3)
    assert load_spec(built.to_yaml()).assume == built.assume


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_and_entries_are_those_of_posteriors(name: str) -> None:
    entry = dict(FAMILIES[name].example.entry)
    plan = statistic_plan({"family": name, **entry}, epsilon="1", public_n=False)
    entries = parameter_entries(FAMILIES[name], plan.parameters)
    cell = noisy_statistic(plan, np.full((1, len(plan.components)), 1000), groups={})
    posterior = posterior_of(cell, method="plug-in", prior=conjugate_prior(plan))
    assert tuple(entries) == posterior.parameters
    assert [tuple(posterior.labels(parameter)[1]) for parameter in entries] == list(entries.values())


@pytest.mark.parametrize(
    ("assume", "place", "rule"),
    [
        ({"rows": 0}, "assume.rows", "0 is no number of records"),
        ({"rows": "many"}, "assume.rows", "integer"),
        ({"lines": 5}, "assume.lines", "unknown key"),
        ({"statistics": {"lat": {}}}, "assume.statistics.lat", "no such statistic"),
        ({"statistics": {"late": {"mean": 1}}}, "assume.statistics.late.mean", "unknown key"),
        (
            {"statistics": {"late": {"typical": {"rate": 1}}}},
            "late.typical.rate",
            "no such parameter: it has probability",
        ),
        (
            {"statistics": {"late": {"typical": {"probability": 1}}}},
            "typical.probability",
            "above 0 and below 1",
        ),
        ({"statistics": {"late": {"typical": {"probability": [0.5]}}}}, "typical.probability", "one number"),
        ({"statistics": {"late": {"typical": {"probability": {}}}}}, "typical.probability", "one number"),
        ({"statistics": {"delay": {"typical": {"mean": 1}}}}, "delay.typical", "variance is missing"),
        (
            {"statistics": {"delay": {"typical": {"mean": 1, "variance": 0}}}},
            "typical.variance",
            "lies above 0",
        ),
        ({"statistics": {"kind": {"typical": {"probability": [0.5, 0.4]}}}}, "probability", "the sum 1"),
        ({"statistics": {"kind": {"typical": {"probability": [1.5, -0.5]}}}}, "probability", "the sum 1"),
        (
            {"statistics": {"kind": {"typical": {"probability": {"a": 1}}}}},
            "probability",
            "by their names: a, b",
        ),
        ({"statistics": {"kind": {"typical": {"probability": 0.5}}}}, "probability", "2 numbers in a list"),
        ({"statistics": {"kind": {"counts": "probability[c]"}}}, "kind.counts", "no parameter"),
        ({"statistics": {"late": {"predictors": "Normal(0, 1)"}}}, "late.predictors", "has no predictors"),
        ({"statistics": {"line": {"predictors": ["Normal(0, 1)"] * 3}}}, "line.predictors", "each of 2"),
        ({"statistics": {"late": {"weight": 0}}}, "late.weight", "above 0"),
        (
            {"statistics": {"pair": {"typical": {"mean": [0, 0], "variance": [1, 1], "covariance": [2]}}}},
            "typical.covariance",
            "no columns have these",
        ),
    ],
    ids=lambda of: re.sub(r"[^a-z0-9]+", "-", str(of))[:40],
)
def test_what_fits_no_statistic_is_refused_with_its_place(assume: object, place: str, rule: str) -> None:
    with pytest.raises(SpecError) as refused:
        with_assumptions(assume)
    assert place in str(refused.value)
    assert rule in str(refused.value)
