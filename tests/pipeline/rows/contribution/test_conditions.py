"""Conditions of rows: what enters, before and after a unit's bound, and all neighbours over tiny domains."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.contribution.bounding import UnitSums
from suffice.pipeline.rows.contribution.records import RecordReader
from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.terms.statistics.sensitivity import Design
from support.hostile import bernoulli, categorical, make_spec, normal
from support.units import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.spec.spec import Spec

    Row = tuple[Any, ...]

RELATIONS = ["add_or_remove_one", "replace_one"]
LATE = {"column": "x", "above": "0"}
COUNTS_NULLS = {"value": "0"}
STATISTICS: dict[str, Any] = {
    "bernoulli": bernoulli("flag", nulls={"value": "false"}),
    "categorical": categorical("code", ["a", "b"], other="true"),
    "normal": normal("x", "-1", "1", lattice_bits="2", nulls=COUNTS_NULLS),
}
UNIVERSE: list[Row] = list(itertools.product([True, None], ["a", None], [-1.0, 1.0, None]))
NAMES = ("flag", "code", "x")


def spec_of(statistics: dict[str, Any], neighboring: str = RELATIONS[0], **others: Any) -> Spec:
    unit = others.pop("unit", "row")
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": unit}
    return make_spec("rows/", statistics, privacy=privacy, **others)


def table(rows: Sequence[Row], names: Sequence[str] = NAMES) -> pa.RecordBatch:
    kinds = {"flag": pa.bool_(), "code": pa.string(), "x": pa.float64(), "who": pa.int64()}
    columns = {name: pa.array([row[at] for row in rows], kinds[name]) for at, name in enumerate(names)}
    return pa.RecordBatch.from_pydict(columns)


def sums(spec: Spec, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the exact components of rows (flag, code, x)."""
    return components(spec, to_python(sum_batches([table(rows)], chunk_job(spec))))


def components(spec: Spec, exact: dict[str, Any]) -> dict[str, Any]:
    """Return what is released, but for the noise, of exact sums."""
    plans = {plan.name: plan for plan in compile_plan(spec).statistics}
    return {
        name: totals_of(FAMILIES[entry.family], entry, plans[name], exact[name])
        for name, entry in spec.statistics.items()
    }


def unit_sums(spec: Spec, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the exact components of rows (flag, code, x, who), bounded by unit."""
    job = chunk_job(spec)
    reader, adding = RecordReader(job, KEY), UnitSums(job, KEY)
    (batch,) = with_derived([table(rows, (*NAMES, "who"))], job)
    read = reader.rows(batch)
    adding.add_units([reader.records(read, np.flatnonzero(read.cells[0] >= 0).astype(np.int32))])
    return components(spec, to_python(adding.sums()))


@pytest.mark.parametrize("where", [LATE, {"not": {"column": "code", "is_null": "true"}}, "flag"])
def test_rows_of_which_it_is_true_enter(where: Any) -> None:
    rng = np.random.default_rng(3)
    rows = [UNIVERSE[at] for at in rng.integers(0, len(UNIVERSE), 200)]
    tests: dict[str, Callable[[Row], bool]] = {
        "flag": lambda row: row[0] is True,
        "x": lambda row: row[2] is not None and row[2] > 0,
        "code": lambda row: row[1] is not None,
    }
    holds = tests[where if isinstance(where, str) else "x" if where is LATE else "code"]
    expected = sums(spec_of(STATISTICS), [row for row in rows if holds(row)])
    top = sums(spec_of(STATISTICS, where=where), rows)
    each = sums(spec_of({name: {**of, "where": where} for name, of in STATISTICS.items()}), rows)
    for name, of in expected.items():
        assert top[name].tolist() == each[name].tolist() == of.tolist()
        assert of.sum() != 0


@pytest.mark.parametrize("place", ["top", "statistic"])
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", STATISTICS)
def test_no_record_moves_sums_further_than_declared(name: str, neighboring: str, place: str) -> None:
    """All neighbours: sums add up over records, so one record of each kind, beside some others, is enough."""
    entry = STATISTICS[name]
    spec = (
        spec_of({name: entry}, neighboring, where=LATE)
        if place == "top"
        else spec_of({name: {**entry, "where": LATE}}, neighboring)
    )
    (statistic,) = compile_plan(spec).statistics
    beside = [UNIVERSE[2], UNIVERSE[7], UNIVERSE[1]]
    rest = sums(spec, beside)[name]
    vectors = [sums(spec, [*beside, record])[name] - rest for record in UNIVERSE]
    assert [vector.any() for vector in vectors] == [record[2] == 1.0 for record in UNIVERSE]
    others = vectors if neighboring == "replace_one" else [0 * vectors[0]]
    pairs = itertools.product(vectors, others)
    moved = max(int(abs(first - second).sum()) for first, second in pairs)
    assert moved <= int(statistic.l1_sensitivity)
    assert statistic.design is Design.PARTITION_OF_UNITY
    if neighboring == "add_or_remove_one":
        assert moved == int(statistic.l1_sensitivity)
    # Two records that both enter differ by as much as the design of a public N would bound; one that does
    # not enter beside one that does is what that design leaves out.
    assert statistic.partition_total is not None
    times = 2 if neighboring == "replace_one" else 1
    assert int(statistic.l1_sensitivity) == times * statistic.partition_total


@pytest.mark.parametrize("name", STATISTICS)
def test_minimal_designs_give_way(name: str) -> None:
    without = compile_plan(spec_of({name: STATISTICS[name]}, "replace_one"))
    assert without.n_is_public
    assert not compile_plan(spec_of({name: STATISTICS[name]}, "replace_one", where=LATE)).n_is_public
    two = {name: STATISTICS[name], "late": {**STATISTICS[name], "where": LATE}}
    designs = [statistic.design for statistic in compile_plan(spec_of(two, "replace_one")).statistics]
    assert designs == [Design.MINIMAL, Design.PARTITION_OF_UNITY]


UNIT = {"column": "who", "max_rows": "2"}
OF_UNITS: dict[str, Any] = {
    **STATISTICS,
    "one row": {**STATISTICS["bernoulli"], "rows_of": "units"},
    "unit means": {**STATISTICS["normal"], "rows_of": "units"},
    "within units": {**STATISTICS["bernoulli"], "within_unit": "true"},
}
RECORDS = [(True, "a", 1.0), (None, "b", -1.0), (True, "b", 1.0)]


@pytest.mark.parametrize("place", ["top", "statistic"])
@pytest.mark.parametrize("name", OF_UNITS)
def test_no_unit_moves_sums_further_than_declared(name: str, place: str) -> None:
    """Every unit of up to four rows of a small universe, beside another with too many."""
    statistic = OF_UNITS[name]
    key = name.replace(" ", "_")
    spec = (
        spec_of({key: statistic}, unit=UNIT, where=LATE)
        if place == "top"
        else spec_of({key: {**statistic, "where": LATE}}, unit=UNIT)
    )
    (plan,) = compile_plan(spec).statistics
    others = [(*record, 1) for record in RECORDS * 2]
    rest = unit_sums(spec, others)[key]
    moved = []
    for size in range(1, 5):
        for rows in itertools.combinations_with_replacement(RECORDS, size):
            with_unit = unit_sums(spec, [*others, *((*row, 2) for row in rows)])[key]
            moved.append(int(abs(with_unit - rest).sum()))
            if all(row[2] != 1.0 for row in rows):
                assert moved[-1] == 0
    assert max(moved) <= int(plan.l1_sensitivity)
    assert max(moved) > 0


def test_the_top_acts_before_the_bound_and_a_statistic_after_it() -> None:
    rows = [(True, "a", 1.0, 1), *[(True, "a", -1.0, 1)] * 60]
    counted = {"n": bernoulli("flag")}
    top = unit_sums(spec_of(counted, unit=UNIT, where=LATE), rows)["n"]
    assert top.sum() == 1
    after = unit_sums(spec_of({"n": {**counted["n"], "where": LATE}}, unit=UNIT), rows)["n"]
    assert after.sum() == 0, "the two rows that are kept are others, under this key"


def test_conditions_stand_in_the_plan_and_are_read_back() -> None:
    spec = spec_of(
        {"n": {**bernoulli("flag"), "where": {"any_of": ["flag", LATE]}}},
        where={"column": "code", "starts_with": "a"},
    )
    plan = compile_plan(spec)
    stated = json.loads(plan.canonical)
    assert stated["where"] == {"column": "code", "starts_with": ["a"]}
    assert stated["statistics"]["n"]["where"] == {"any_of": ["flag", {"column": "x", "above": "0"}]}
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.assemble(list(read.statistics())) == plan
    assert plan_document(plan)["where"] == {
        "where": "code starts with a",
        "statistics.n.where": "flag or x above 0",
    }
    assert sorted(spec_columns(spec)) == ["code", "flag", "x"]
    assert plan.statistics[0].rows_of == "of rows, where the spec's condition holds"
    assert "\nwhere: code starts with a" in str(plan)
    without = compile_plan(spec_of({"n": bernoulli("flag")}))
    assert "where" not in json.loads(without.canonical)
    assert "where" not in plan_document(without)


def test_what_is_no_condition_is_refused() -> None:
    for where, rule in (
        ({"column": "x", "part": "hour"}, "unknown key 'part'"),
        ([], "needs a mapping"),
        ({"column": "x", "above": "late"}, "not a finite decimal"),
    ):
        with pytest.raises(SpecError, match=rule):
            spec_of(STATISTICS, where=where)
        with pytest.raises(SpecError, match=rule):
            spec_of({"n": {**bernoulli("flag"), "where": where}})
    with pytest.raises(SpecError, match="at the top"):
        spec_of({"n": {"family": "rows_per_unit", "upper": "9", "where": LATE}}, unit=UNIT)
