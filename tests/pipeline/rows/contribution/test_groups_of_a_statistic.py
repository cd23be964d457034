"""Groups that statistics state: the cells of each are those of a spec of its own, and so is its price."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import combine, to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.spec.plan import compile_plan, plan_document, plan_text
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.terms.statistics.sensitivity import Design
from support.hostile import bernoulli, categorical, hostile_table, make_spec, normal, poisson
from support.splits import splits_of
from support.units import by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

GROUPS: dict[str, dict[str, Any]] = {
    "both": {"tiny": {"range": ["0", "3"]}, "wide_text": ["a", "b", "1"]},
    "text": {"wide_text": ["b", "a"]},
    "narrow": {"tiny": {"range": ["1", "2"]}},
    "total": {},
}
ENTRIES: dict[str, dict[str, Any]] = {
    "both": bernoulli("flag", nulls={"value": "1"}),
    "text": categorical("text", ["a", "b", ""], other="true"),
    "narrow": normal("float", "-1", "3", lattice_bits="24"),
    "total": poisson("unsigned", "1000000000"),
}
N_ROWS = 1200


def together(source: Path | str, **others: Any) -> Spec:
    """Return a spec whose first statistic takes its groups, and whose others state theirs."""
    stated = {
        name: entry if name == "both" else {**entry, "groups": GROUPS[name]}
        for name, entry in ENTRIES.items()
    }
    return make_spec(source, stated, groups=GROUPS["both"], **others)


def alone(source: Path | str, name: str, **others: Any) -> Spec:
    return make_spec(source, {name: ENTRIES[name]}, groups=GROUPS[name], **others)


@pytest.fixture(scope="module", params=["threads", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with open_cluster_for_sums(request.param) as opened:
        yield opened


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    row_group_size=st.integers(50, N_ROWS),
    use_dictionary=st.booleans(),
    where=st.sampled_from([None, {"column": "integer", "above": "0"}]),
    unit=st.sampled_from(["row", {"column": "digits", "max_rows": N_ROWS}]),
)
def test_sums_are_those_of_specs_of_their_own(
    cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    row_group_size: int,
    use_dictionary: bool,
    where: Any,
    unit: Any,
) -> None:
    directory = tmp_path_factory.mktemp("rows")
    table = hostile_table(N_ROWS, seed=seed).drop_columns(["view"])
    path = directory / "a.parquet"
    pq.write_table(table, path, row_group_size=row_group_size, use_dictionary=use_dictionary)
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    others = {"privacy": privacy} if where is None else {"privacy": privacy, "where": where}

    def sums(spec: Spec) -> dict[str, Any]:
        return to_python(exact_sums(chunk_job(spec), splits_of(spec, 3000), cluster).open_totals())

    computed = sums(together(directory, **others))
    for name in ENTRIES:
        expected = sums(alone(directory, name, **others))[name]
        assert computed[name].tolist() == expected.tolist()
        assert expected.any() or where is not None


# Neighbours

SMALL: dict[str, Any] = {
    "taken": bernoulli("flag", nulls={"value": "false"}),
    "stated": {**normal("x", "-1", "1", lattice_bits="2", nulls={"value": "0"}), "groups": {"g": ["b"]}},
    "total": {**categorical("code", ["p"], other="true"), "groups": {}},
    "first": {**bernoulli("flag", nulls={"value": "false"}), "rows_of": "units", "groups": {"h": ["1"]}},
    "means": {
        **normal("x", "-1", "1", lattice_bits="2", nulls={"value": "0"}),
        "rows_of": "units",
        "groups": {"g": ["c", "b"]},
    },
    "within": {
        **bernoulli("flag", nulls={"value": "false"}),
        "within_unit": "true",
        "groups": {"h": ["0", "1"]},
    },
}
TYPES = {
    "flag": pa.bool_(),
    "x": pa.float64(),
    "code": pa.string(),
    "g": pa.string(),
    "h": pa.string(),
    "u": pa.int64(),
}
Row = tuple[Any, ...]
KEYS: list[tuple[str | None, str | None]] = list(itertools.product(["a", "b", "z"], ["0", "1", None]))


def components(directory: Path, spec: Spec, rows: list[Row]) -> dict[str, Any]:
    """Return what is released, but for the noise, of rows in many tasks."""
    columns = {
        name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(TYPES.items())
    }
    write_row_groups(directory, pa.table(columns), [1] * len(rows))
    job, partitions = chunk_job(spec), partitions_of(spec)
    by_row = spec.privacy.column_unit is None
    totals = combine([chunk(each, job) for each in partitions]) if by_row else sum_tasks(job, partitions)
    plans = {plan.name: plan for plan in compile_plan(spec).statistics}
    exact = to_python(totals)
    return {
        name: totals_of(FAMILIES[entry.family], entry, plans[name], exact[name])
        for name, entry in spec.statistics.items()
    }


def small_spec(directory: Path, neighboring: str, unit: Any) -> Spec:
    statistics = SMALL if unit != "row" else {name: SMALL[name] for name in ("taken", "stated", "total")}
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": unit}
    return make_spec(directory, statistics, privacy=privacy, groups={"g": ["a", "b"], "h": ["0", "1"]})


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("unit", ["row", by_customer(2)])
def test_no_neighbour_moves_a_statistic_further_than_declared(
    tmp_path: Path, neighboring: str, unit: Any
) -> None:
    """Every unit of up to two rows, over keys in and out of each groups, beside another with too many."""
    spec = small_spec(tmp_path, neighboring, unit)
    plan = compile_plan(spec)
    others: list[Row] = [(True, 1.0, "p", g, h, 1) for g, h in KEYS]
    rest = components(tmp_path, spec, others)
    sizes = (1,) if unit == "row" else (1, 2)
    units = [rows for size in sizes for rows in itertools.combinations_with_replacement(KEYS, size)]
    moved: dict[str, list[Any]] = {name: [] for name in spec.statistics}
    for number, keys in enumerate(units):
        value = (True, 1.0, "p") if number % 2 else (None, -1.0, "q")
        with_unit = components(tmp_path, spec, [*others, *((*value, g, h, 2) for g, h in keys)])
        for name, of in with_unit.items():
            moved[name].append((of - rest[name]).ravel())
    for statistic in plan.statistics:
        if statistic.design is Design.MINIMAL:
            assert statistic.name == "total"
            assert neighboring == "replace_one"
        vectors = moved[statistic.name]
        seconds = [0 * vectors[0]] if neighboring == "add_or_remove_one" else vectors
        largest = max(int(abs(first - second).sum()) for first, second in itertools.product(vectors, seconds))
        assert 0 < largest <= statistic.l1_sensitivity, statistic.name
        assert any(vector.any() for vector in vectors)


def test_rows_in_no_cell_of_a_statistic_take_no_place_from_those_that_are(tmp_path: Path) -> None:
    """A unit keeps `max_rows` of the rows in a statistic's own cells, whatever else it has."""
    rows: list[Row] = [(True, 1.0, "p", "b", "1", 5)] * 2 + [(True, 1.0, "p", "z", None, 5)] * 30
    counted = components(tmp_path, small_spec(tmp_path, "add_or_remove_one", by_customer(2)), rows)
    assert counted["taken"].sum() == 2
    assert counted["stated"].any()
    per_row = compile_plan(small_spec(tmp_path, "add_or_remove_one", "row")).statistics[1].partition_total
    assert counted["stated"].sum() == 2 * (per_row or 0)
    assert counted["total"].sum() == 2


# The plan


def test_a_plan_without_groups_of_statistics_is_as_it_was() -> None:
    spec = make_spec("rows/", {"both": ENTRIES["both"]}, groups=GROUPS["both"])
    plan = compile_plan(spec)
    assert "groups" not in plan.canonical.split('"statistics"')[1]
    assert plan.plan_hash == "4f016fe855e4284fd6e3f79bee97c05a6ef2a7a01c91ce01680c8b4ac67ed108"
    restated = make_spec(
        "rows/", {"both": {**ENTRIES["both"], "groups": GROUPS["both"]}}, groups=GROUPS["both"]
    )
    assert compile_plan(restated) == plan
    ungrouped = make_spec("rows/", {"both": {**ENTRIES["both"], "groups": {}}})
    assert compile_plan(ungrouped) == compile_plan(make_spec("rows/", {"both": ENTRIES["both"]}))


def test_a_plan_is_read_back_in_its_order() -> None:
    plan = compile_plan(together("rows/"))
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.assemble(list(read.statistics())) == plan
    assert [list(statistic.groups) for statistic in plan.statistics] == [list(of) for of in GROUPS.values()]
    assert [statistic.n_cells for statistic in plan.statistics] == [12, 2, 2, 1]
    assert (
        "12 cells by tiny, wide_text: both; 2 cells by wide_text: text; 2 cells by tiny: narrow"
        in plan_text(plan)
    )
    shown = plan_document(plan)["statistics"]
    assert [entry.get("groups") for entry in shown] == [None, {"wide_text": 2}, {"tiny": 2}, {}]
    assert [entry.get("cells") for entry in shown] == [None, 2, 2, 1]


def test_groups_that_are_the_specs_stand_in_no_plan() -> None:
    plan = compile_plan(make_spec("rows/", {"total": {**ENTRIES["total"], "groups": {"tiny": ["1"]}}}))
    hostile = plan.canonical.replace('"groups":{},', '"groups":{"tiny":["1"]},', 1)
    assert hostile != plan.canonical
    read = read_canonical_plan(hostile, dataclasses.replace(plan.order, groups=("tiny",)))
    statistics = list(read.statistics())
    with pytest.raises(SpecError, match="not in canonical form"):
        read.assemble(statistics)


def test_a_number_of_records_is_public_of_what_has_one_cell_alone() -> None:
    privacy = {"epsilon": "1", "neighboring": "replace_one"}
    counted = bernoulli("flag", nulls={"value": "false"})
    entries = {"by": counted, "total": {**counted, "groups": {}}}
    designs = {
        statistic.name: statistic.design
        for statistic in compile_plan(
            make_spec("rows/", entries, groups={"g": ["a"]}, privacy=privacy)
        ).statistics
    }
    assert designs == {"by": Design.PARTITION_OF_UNITY, "total": Design.MINIMAL}


@pytest.mark.parametrize(
    ("groups", "place", "rule"),
    [
        (["origin"], r"statistics\.a\.groups", "map column names to domains"),
        (None, r"statistics\.a\.groups", "the value is missing"),
        ({"value": ["a"]}, r"statistics\.a\.groups", "reserved"),
        ({"g": {"range": [1, 10**7]}, "h": ["a", "b"]}, r"statistics\.a", "cells are declared"),
    ],
)
def test_groups_of_a_statistic_are_refused_as_those_of_a_spec(groups: Any, place: str, rule: str) -> None:
    with pytest.raises(SpecError, match=f"{place}.*{rule}"):
        make_spec("rows/", {"a": {**bernoulli("flag"), "groups": groups}})


def test_a_variable_is_no_group_of_its_statistic() -> None:
    table = {"family": "contingency", "columns": {"g": ["a", "b"], "h": ["0", "1"]}, "groups": {"g": ["a"]}}
    with pytest.raises(SpecError, match="the variable 'g' is a group too"):
        make_spec("rows/", {"a": table})
    make_spec("rows/", {"a": {**table, "groups": {}}}, groups={"g": ["a"]})


def test_periods_of_all_statistics_are_counted_together() -> None:
    days = {"day": {"from": "1900-01-01", "to": "2100-12-31", "every": "day"}}
    entry = {**bernoulli("flag"), "groups": days}
    make_spec("rows/", {"a": entry})
    with pytest.raises(SpecError, match="periods are declared"):
        make_spec("rows/", {"a": entry, "b": entry})
