"""Statistics of whole units: neighbours, all of them over tiny domains, and a plain reference in Python."""

from __future__ import annotations

import datetime as dt
import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.errors import SpecError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.rows.chunk.accumulators import rounded_ratio
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.storage.releases.manifest_model import statistic_fields
from support.record_vectors import squared_change
from support.unit_engine import MAX_ROWS, OF_UNITS, ROWS_PER_UNIT, UPPER, UnitEngine, farthest
from support.units import KEY, OTHER_KEY, by_customer, partitions_of, sum_tasks

if TYPE_CHECKING:
    from pathlib import Path

RELATIONS = ["add_or_remove_one", "replace_one"]
OF_UNITS_NAMES = [f"{name} of units" for name in OF_UNITS]


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", OF_UNITS_NAMES)
def test_a_unit_costs_what_a_record_costs(tmp_path: Path, name: str, neighboring: str) -> None:
    engine = UnitEngine(tmp_path, name, neighboring)
    record_l1 = engine.plan.statistics[0].partition_total
    assert record_l1 is not None
    assert engine.declared == record_l1 * (1 if neighboring == "add_or_remove_one" else 2)
    vectors = engine.of_every_unit()
    assert farthest(vectors, neighboring) == engine.declared, "claimed tight"
    assert squared_change(vectors, neighboring) == engine.declared_squared
    of_rows = UnitEngine(tmp_path, name.removesuffix(" of units"), neighboring).of_every_unit()
    assert farthest(of_rows, neighboring) > engine.declared, "the rows kept would be caught"
    assert squared_change(of_rows, neighboring) > engine.declared_squared


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", ["groups", "window"])
@pytest.mark.parametrize(
    ("name", "key"), [("bernoulli of units", OTHER_KEY), ("normal of units", KEY), ("poisson of units", KEY)]
)
def test_a_unit_is_in_one_cell(tmp_path: Path, name: str, shape: str, neighboring: str, key: UnitKey) -> None:
    engine = UnitEngine(tmp_path, name, neighboring, shape, key)
    vectors = engine.of_every_unit(most=2)
    assert farthest(vectors, neighboring) == engine.declared
    beside = vectors - vectors[0]
    by_cell = beside.reshape(len(vectors), engine.plan.n_cells, -1).sum(axis=2)
    assert (np.count_nonzero(by_cell, axis=1) <= 1).all()


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", ["plain", "groups", "window"])
@pytest.mark.parametrize("name", ROWS_PER_UNIT)
def test_a_unit_adds_its_rows_once(tmp_path: Path, name: str, shape: str, neighboring: str) -> None:
    engine = UnitEngine(tmp_path, name, neighboring, shape)
    unit_l1 = 1 if name == "rows-histogram" else UPPER
    assert engine.declared == unit_l1 * (1 if neighboring == "add_or_remove_one" else 2)
    vectors = engine.of_every_unit(most=UPPER)
    farthest_change = farthest(vectors, neighboring)
    if neighboring == "replace_one" and shape != "groups" and name == "rows":
        # One cell alone: the first component is at least 1 of any unit, whatever replaces it.
        assert farthest_change == engine.declared - 2
        assert squared_change(vectors, neighboring) <= engine.declared_squared
    else:
        assert farthest_change == engine.declared, "claimed tight"
        assert squared_change(vectors, neighboring) == engine.declared_squared


def test_rows_per_unit_are_counted_as_they_are(tmp_path: Path) -> None:
    engine = UnitEngine(tmp_path, "rows", "add_or_remove_one")
    histogram = UnitEngine(tmp_path, "rows-histogram", "add_or_remove_one")
    record = engine.universe[0]
    for rows in range(1, 6):
        data = [("B", record)] * rows
        kept, seen = min(rows, MAX_ROWS), min(rows, UPPER)
        assert engine.totals(data).tolist() == [kept, seen - kept, UPPER - seen]
        assert histogram.totals(data).tolist() == [int(seen == each) for each in range(1, UPPER + 1)]


def test_any_units_are_summed_as_plain_python_sums_them(tmp_path: Path) -> None:
    """Units over partitions of one row each: which row comes first is the hash's, all else is plain."""
    rng = np.random.default_rng(8)
    normal = UnitEngine(tmp_path, "normal of units", "add_or_remove_one", "groups")
    day = normal.universe[0][2]
    for _ in range(10):
        rows = [
            (f"unit {rng.integers(4)}", (normal.values[rng.integers(3)], "ab"[rng.integers(2)], day))
            for _ in range(rng.integers(1, 14))
        ]
        steps = {-1.0: -4, -0.25: -1, 9.0: 4}
        vectors = []
        for unit in sorted({unit for unit, _ in rows}):
            records = [(record[1], steps[record[0]]) for name, record in rows if name == unit]
            possible = set()
            for cell in {cell for cell, _ in records}:
                values = [value for where, value in records if where == cell]
                mean = round(Fraction(sum(values), len(values)))
                basis = [(4 - mean) ** 2, 2 * (16 - mean**2), (4 + mean) ** 2]
                possible.add(tuple(basis + [0] * 3 if cell == "a" else [0] * 3 + basis))
            vectors.append(possible)
        totals = normal.totals(rows).tolist()
        sums = {tuple(map(sum, zip(*choice, strict=True))) for choice in itertools.product(*vectors)}
        assert tuple(totals) in sums


KEYS = 200


def test_each_row_is_as_likely_to_be_the_one_taken(tmp_path: Path) -> None:
    """Of a unit with 5 rows of which 2 are true, over keys: within 5.2 standard errors, exactly 1.2e-7."""
    rows = [("B", (value, "a", dt.date(2013, 1, 31))) for value in (1, 0, None, 0, 1, 0)]
    engine = UnitEngine(tmp_path, "bernoulli of units", "add_or_remove_one")
    engine.write(rows)
    partitions, rng = partitions_of(engine.spec), np.random.default_rng()
    taken = [
        to_python(sum_tasks(engine.job, partitions, UnitKey.of(rng.bytes(48))))["s"][0, 1]
        for _ in range(KEYS)
    ]
    assert set(taken) == {0, 1}, "a null is never the row taken"
    assert abs(np.mean(taken) - 0.4) < 5.2 * np.sqrt(0.24 / KEYS)


def make_spec(entry: dict[str, Any], unit: Any = None, **keys: Any) -> Spec:
    return load_spec(
        {
            **keys,
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "rows"},
            "privacy": {
                "epsilon": "1",
                "neighboring": "add_or_remove_one",
                "unit": by_customer(MAX_ROWS) if unit is None else unit,
            },
            "statistics": {"s": entry},
        }
    )


BERNOULLI = {"family": "bernoulli", "column": "x"}
OF_UNITS_ENTRY = {**BERNOULLI, "rows_of": "units"}


@pytest.mark.parametrize(
    ("entry", "unit", "rule"),
    [
        (OF_UNITS_ENTRY, "row", r"s\.rows_of: each row is a unit where the unit is a row \(state whose"),
        (
            {"family": "exponential", "column": "x", "upper": "2", "rows_of": "units"},
            None,
            r"s\.rows_of: exponential is of rows; .* for bernoulli, categorical, histogram, poisson, normal",
        ),
        ({"family": "rows_per_unit", "upper": "9"}, "row", r"rows_per_unit follows the rows of a unit"),
        ({"family": "rows_per_unit", "upper": "2"}, None, r"s: upper is 2: only above max_rows, 2, are rows"),
        ({"family": "rows_per_unit", "upper": "9", "rows_of": "units"}, None, r"rows_per_unit is of rows"),
        ({**BERNOULLI, "rows_of": "people"}, None, r"s\.rows_of"),
    ],
)
def test_what_units_cannot_do_is_refused(entry: dict[str, Any], unit: Any, rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as refusal:
        make_spec(entry, unit)
    assert len(str(refusal.value)) <= 500


SENTENCES = [
    (BERNOULLI, None, "of rows kept: at most 2 of each unit"),
    (BERNOULLI, "row", None),
    (OF_UNITS_ENTRY, None, "of units: one row of each unit, chosen by hash"),
    (
        {"family": "normal", "column": "x", "lower": "0", "upper": "1", "rows_of": "units"},
        None,
        "of units: the mean of each unit's rows; the variance is that of these means",
    ),
    (
        {"family": "rows_per_unit", "upper": "9", "histogram": "true"},
        None,
        "of units of the release: how many rows each has",
    ),
    (
        {"family": "rows_per_unit", "upper": "9"},
        None,
        "of rows of the release, the first 9 of each unit, of which 2 are kept",
    ),
    (
        {"family": "markov_chain", "column": "x", "categories": ["a"], "order": "t", "transitions": "3"},
        None,
        "of transitions kept: at most 3 of each unit",
    ),
]


@pytest.mark.parametrize(("entry", "unit", "sentence"), SENTENCES)
def test_plan_manifest_and_posterior_say_what_parameters_are_of(
    entry: dict[str, Any], unit: Any, sentence: str | None
) -> None:
    spec = make_spec(entry, unit)
    plan = compile_plan(spec)
    (statistic,) = plan.statistics
    said = statistic.rows_of
    assert said is None if sentence is None else str(said).startswith(sentence)
    assert plan_document(plan)["statistics"][0]["rows_of"] == said
    assert (f"s: {said}" in str(plan)) is (said is not None)
    assert statistic_fields(statistic)["rows_of"] == said
    values = np.full((1, len(statistic.components)), 40, dtype=object)
    noisy = NoisyStatistic(plan=statistic, values=values, groups={}, public_n=None, max_total_rows=10**6)
    assert posterior_of(noisy, method="plug-in").rows_of == said
    assert len({tuple(row) for row in noisy.table()}) == 1  # one row's columns are all rows' columns
    read = read_canonical_plan(plan.canonical, plan.order)
    assert [compiled for _, compiled in read.statistics()] == [statistic]


def test_rows_cost_as_many_as_a_unit_keeps() -> None:
    statistics = [compile_plan(make_spec(entry)).statistics[0] for entry in (BERNOULLI, OF_UNITS_ENTRY)]
    assert [statistic.l1_sensitivity for statistic in statistics] == [MAX_ROWS, 1]


def test_with_groups_parameters_are_of_a_cell() -> None:
    normal = {"family": "normal", "column": "x", "lower": "0", "upper": "1", "rows_of": "units"}
    plans = []
    for entry in (OF_UNITS_ENTRY, normal):
        for keys in ({}, {"groups": {"g": ["a", "b"]}}):
            (statistic,) = compile_plan(make_spec(entry, **keys)).statistics
            plans.append(statistic.rows_of)
    assert [" cell" in str(said) for said in plans] == [False, True, False, True]


def test_ratios_are_rounded_to_the_even_integer() -> None:
    totals, counts = (each.ravel() for each in np.meshgrid(np.arange(-40, 41), np.arange(1, 12)))
    expected = [round(Fraction(int(total), int(count))) for total, count in zip(totals, counts, strict=True)]
    assert rounded_ratio(totals, counts).tolist() == expected
    extremes = np.array([2**54 + 1, -(2**54) - 1])
    assert rounded_ratio(extremes, np.array([2, 2])).tolist() == [2**53, -(2**53)]
