"""What a spec of a few bytes may expand to is counted, and refused, before anything is listed."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from suffice.errors import SpecError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.making import mapping

DAYS = {"from": "0001-01-01", "to": "9999-12-31", "every": "day"}
FEWER_DAYS = {**DAYS, "to": "0270-12-31"}
MANY = {"range": ["1", "9999999"]}
HUGE = {"range": ["1", "9999999999999"]}
BY_UNIT = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": {"column": "u", "max_rows": "20"}}
FLAG = {"family": "bernoulli", "column": "flag"}


def with_statistic(statistic: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a spec of one statistic."""
    return {"groups": None, "statistics": {"x": statistic}, **changes}


EXPANDED: dict[str, tuple[dict[str, Any], str]] = {
    "days": (with_statistic(FLAG, groups={"d": DAYS}), "3652059 periods"),
    "days of two columns": (
        with_statistic(FLAG, groups={"d": FEWER_DAYS, "e": FEWER_DAYS}),
        "197230 periods",
    ),
    "days and a range": (
        with_statistic(FLAG, groups={"d": FEWER_DAYS, "e": {"range": ["1", "1000"]}}),
        "98615000 cells",
    ),
    "days as categories": (
        with_statistic({"family": "categorical", "column": "k", "categories": DAYS}),
        "3652059 periods",
    ),
    "a range": (with_statistic(FLAG, groups={"d": HUGE}), "9999999999999 keys"),
    "ranges": (with_statistic(FLAG, groups={"d": MANY, "e": MANY}), "99999980000001 cells"),
    "a range of categories": (
        with_statistic({"family": "categorical", "column": "k", "categories": MANY}),
        "9999999 components",
    ),
    "a table": (
        with_statistic({"family": "contingency", "columns": {"a": MANY, "b": MANY}}),
        "99999980000001 cells",
    ),
    "classes and features": (
        with_statistic({"family": "naive_bayes", "outcome": {"a": MANY}, "features": {"b": MANY}}),
        "99999980000001 cells",
    ),
    "parents": (
        with_statistic(
            {
                "family": "bayesian_network",
                "nodes": {"a": MANY, "b": {"categories": MANY, "parents": ["a"]}},
            }
        ),
        "cells are declared",
    ),
    "states": (
        with_statistic(
            {
                "family": "markov_chain",
                "column": "p",
                "categories": MANY,
                "order": "s",
                "transitions": "10",
            },
            privacy=BY_UNIT,
        ),
        "99999980000001 cells",
    ),
    "members": (
        with_statistic({**FLAG, "column": "z"}, derived={"z": {"column": "k", "in": HUGE}}),
        "9999999999999 keys",
    ),
}


@pytest.mark.parametrize("case", EXPANDED)
def test_what_would_expand_is_refused_from_its_size_alone(case: str) -> None:
    changes, said = EXPANDED[case]
    written = mapping("data", **changes)
    tracemalloc.start()
    try:
        with pytest.raises(SpecError, match=said):
            compile_plan(load_spec(written))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20


def test_a_range_that_may_be_released_takes_no_room() -> None:
    tracemalloc.start()
    try:
        plan = compile_plan(load_spec(mapping("data", **with_statistic(FLAG, groups={"d": MANY}))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.n_cells == 9_999_999
    assert peak < 4 * 2**20
