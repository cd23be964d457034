"""The count before the rest: its spec, its sensitivity by enumeration, and what its noise decides."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import SpecError
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.expected import STATISTIC, ExpectPlan, expect_spec
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from support.splits import splits_of
from support.units import partitions_of, sum_tasks

if TYPE_CHECKING:
    from pathlib import Path

Row = tuple[Any, ...]
COLUMNS = {"u": pa.int64(), "o": pa.string(), "day": pa.date32(), "v": pa.float64()}
IN, OUT = dt.date(2013, 1, 5), dt.date(2014, 1, 1)
FITTING: list[Row] = [(1, "a", IN, 2.5), (1, "b", IN, math.inf)]
UNFIT: list[Row] = [(1, "x", IN, 1.0), (1, None, IN, 1.0), (1, "a", IN, None), (1, "a", IN, math.nan)]
UNFIT += [(1, "a", OUT, 1.0), (1, "a", None, 1.0)]


def spec_over(directory: Path, *, unit: bool, **changes: Any) -> Spec:
    floor = "units" if unit else "rows"
    return load_spec(
        {
            "name": "nightly",
            "dataset": "people",
            "source": {"parquet": str(directory / "data.parquet")},
            "privacy": {
                "epsilon": "1",
                "neighboring": "add_or_remove_one",
                "unit": {"column": "u", "max_rows": "3"} if unit else "row",
            },
            "groups": {"o": ["a", "b"], "day": {"from": "2013-01", "to": "2013-02", "every": "month"}},
            "statistics": {"v": {"family": "normal", "column": "v", "lower": "0", "upper": "9"}},
            "expect": {floor: "1000", "epsilon": "0.01"},
            **changes,
        }
    )


def count(directory: Path, rows: list[Row], *, unit: bool) -> list[int]:
    """Return the exact sums (false, true) of the count over these rows, by the real tasks."""
    table = pa.table(
        {
            name: pa.array([row[position] for row in rows], kind, from_pandas=False)
            for position, (name, kind) in enumerate(COLUMNS.items())
        }
    )
    pq.write_table(table, directory / "data.parquet")
    counted = expect_spec(spec_over(directory, unit=unit))
    if unit:
        sums = sum_tasks(chunk_job(counted), partitions_of(counted))
    else:
        (split,) = splits_of(counted, 1)
        sums = chunk(split, chunk_job(counted))
    return [int(value) for value in to_python(sums)[STATISTIC][0]]


def test_a_row_counts_where_its_cell_is_known_and_its_values_are_there(tmp_path: Path) -> None:
    for row in FITTING:
        assert count(tmp_path, [row], unit=False) == [0, 1]
    for row in UNFIT:
        assert count(tmp_path, [row], unit=False) == [0, 0]


@pytest.mark.parametrize("unit", [False, True])
def test_no_neighbour_moves_the_count_further_than_declared(tmp_path: Path, unit: bool) -> None:
    """Every data set of up to two rows of a unit, beside a unit that stays, against all others of them."""
    others: list[Row] = [(2, "a", IN, 1.0), (2, "x", IN, 1.0)]
    universe = [*FITTING, UNFIT[0], UNFIT[2]]
    most = 2 if unit else 1
    of_one: list[list[Row]] = [
        list(rows) for n in range(most + 1) for rows in itertools.combinations_with_replacement(universe, n)
    ]
    sums = [count(tmp_path, [*rows, *others], unit=unit) for rows in of_one]
    without = sums[of_one.index([])]
    added = max(sum(abs(a - b) for a, b in zip(each, without, strict=True)) for each in sums)
    replaced = max(
        sum(abs(a - b) for a, b in zip(first, second, strict=True))
        for first, second in itertools.product(sums, sums)
    )
    spec = spec_over(tmp_path, unit=unit)
    plan = ExpectPlan.of(spec)
    assert plan is not None
    assert added == plan.plan.statistics[0].l1_sensitivity == 1
    privacy = spec.privacy.model_copy(update={"neighboring": "replace_one"})
    doubled = compile_plan(expect_spec(spec.model_copy(update={"privacy": privacy})))
    assert replaced <= doubled.statistics[0].l1_sensitivity == 2


def test_a_unit_counts_once_and_only_by_rows_that_fit(tmp_path: Path) -> None:
    """One row of a unit is kept, and rows outside of the cells take no place of those that fit."""
    rows = [*UNFIT * 3, *FITTING * 5, (2, "x", IN, 1.0), (3, "b", IN, 1.0), (None, "a", IN, 1.0)]
    assert count(tmp_path, rows, unit=True) == [0, 2]


def test_the_count_is_compiled_from_its_plan_again(tmp_path: Path) -> None:
    plan = ExpectPlan.of(spec_over(tmp_path, unit=True))
    assert plan is not None
    read = read_canonical_plan(plan.plan.canonical, plan.plan.order)
    assert read.assemble(list(read.statistics())).plan_hash == plan.plan.plan_hash


def test_what_is_expected_is_no_term_of_the_release(tmp_path: Path) -> None:
    spec = spec_over(tmp_path, unit=False)
    assert (
        spec.plan_hash() == spec_over(tmp_path, unit=False, expect={"rows": "7", "epsilon": "1"}).plan_hash()
    )


def test_many_columns_are_one_condition(tmp_path: Path) -> None:
    statistics = {f"s{number}": {"family": "bernoulli", "column": f"c{number}"} for number in range(250)}
    spec = spec_over(tmp_path, unit=False, statistics=statistics, groups={})
    conditions = expect_spec(spec).derived["row_fits"]
    assert {each.column for each in conditions.inputs} == {f"c{number}" for number in range(250)}


def test_chances_are_those_of_discrete_laplace_noise(tmp_path: Path) -> None:
    """Against the sum of the probabilities of every integer, and as the reference text states them."""
    plan = ExpectPlan.of(spec_over(tmp_path, unit=False))
    assert plan is not None
    scale = plan.plan.statistics[0].scale
    a = math.exp(-1 / scale)
    weight = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-20_000, 20_001)}
    for n in (0, 500, 999, 1000, 1001, 2000):
        stopped = math.fsum(p for z, p in weight.items() if n + z < plan.floor)
        assert plan.stops(n) == pytest.approx(stopped, rel=1e-9)
        assert plan.passes(n) == pytest.approx(1 - stopped, abs=1e-12)
    assert plan.passes(0) == pytest.approx(2.3e-5, rel=0.02)
    assert plan.stops(2000) == pytest.approx(plan.passes(0), rel=0.02)


@pytest.mark.parametrize(
    ("expect", "rule"),
    [
        ({"units": "10", "epsilon": "0.01"}, "so rows are counted"),
        ({"epsilon": "0.01"}, "needs rows: N"),
        ({"rows": "1", "units": "1", "epsilon": "0.01"}, "needs rows: N"),
        ({"rows": "0", "epsilon": "0.01"}, "lies in 1"),
        ({"rows": "10"}, "needs epsilon: E, or rho: R"),
        ({"rows": "10", "epsilon": "0"}, "epsilon"),
        ({"rows": "10", "epsilon": "1", "columns": []}, "list of columns"),
        ({"rows": "10", "epsilon": "1", "columns": ["v", "v"]}, "named twice"),
    ],
)
def test_what_cannot_be_expected_is_refused(tmp_path: Path, expect: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        spec_over(tmp_path, unit=False, expect=expect)


def test_a_name_leaves_room_for_that_of_the_count(tmp_path: Path) -> None:
    spec_over(tmp_path, unit=False, name="n" * 56)
    with pytest.raises(SpecError, match="at most 63"):
        spec_over(tmp_path, unit=False, name="n" * 57)
