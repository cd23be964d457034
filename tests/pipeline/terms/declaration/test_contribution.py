"""How many rows of a unit enter: against every way in which it may have them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import SpecError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.terms.declaration.contribution import Contribution
from support.hostile import bernoulli, make_spec, normal

if TYPE_CHECKING:
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec

WITHIN = normal("x", "0", "1", within_unit="true")


@pytest.mark.parametrize("n_cells", [1, 2, 3, 4])
@pytest.mark.parametrize("max_rows", [1, 2, 5, 7])
def test_rows_and_squares_are_the_largest_of_all_ways(max_rows: int, n_cells: int) -> None:
    for in_cell in (None, *range(1, max_rows)):
        bound = Contribution(max_rows=max_rows, max_rows_per_cell=in_cell, n_cells=n_cells)
        ways = [
            rows
            for rows in itertools.product(range((in_cell or max_rows) + 1), repeat=n_cells)
            if sum(rows) <= max_rows
        ]
        assert bound.rows == max(map(sum, ways))
        assert bound.rows_in_cell == max(map(max, ways))
        assert bound.sum_of_squares == max(sum(k * k for k in rows) for rows in ways)


def spec_of(max_rows: str, *in_cell: str, statistic: Any = None, cells: int = 3) -> Spec:
    unit = {"column": "u", "max_rows": max_rows, **({"max_rows_per_cell": in_cell[0]} if in_cell else {})}
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    groups = {"g": {"range": ["1", str(cells)]}}
    return make_spec("rows/", {"s": statistic or bernoulli("x")}, groups=groups, privacy=privacy)


def test_a_plan_states_the_bound_where_it_is_one() -> None:
    plain, restated = compile_plan(spec_of("12")), compile_plan(spec_of("12", "12"))
    assert restated == plain, "as many in a cell as in all is no bound"
    assert "max_rows_per_cell" not in plain.canonical
    bounded = compile_plan(spec_of("12", "2"))
    assert '"max_rows":"12","max_rows_per_cell":"2"' in bounded.canonical
    assert [plan.statistics[0].l1_sensitivity for plan in (plain, bounded)] == [12, 6]
    assert bounded.statistics[0].rows_of == "of rows kept: at most 6 of each unit, at most 2 in a cell"
    assert str(bounded.column_unit).startswith("at most 12 rows of each, at most 2 in a cell; ")
    read = read_canonical_plan(bounded.canonical, bounded.order)
    assert read.assemble(list(read.statistics())) == bounded


@pytest.mark.parametrize(
    ("in_cell", "rule"), [("12", "not in canonical form"), ("13", "max_rows, 12, in all")]
)
def test_a_plan_that_no_spec_has_is_refused(in_cell: str, rule: str) -> None:
    plan = compile_plan(spec_of("12", "2"))
    hostile = plan.canonical.replace('"max_rows_per_cell":"2"', f'"max_rows_per_cell":"{in_cell}"')

    def read() -> Plan:
        read = read_canonical_plan(hostile, plan.order)
        return read.assemble(list(read.statistics()))

    with pytest.raises(SpecError, match=rule):
        read()


@pytest.mark.parametrize(
    ("in_cell", "statistic", "place", "rule"),
    [
        ("13", None, r"privacy\.unit\.max_rows_per_cell", "max_rows, 12, in all"),
        ("0", None, r"privacy\.unit\.max_rows_per_cell", "lies in 1"),
        ("two", None, r"privacy\.unit\.max_rows_per_cell", "integer"),
        ("1", WITHIN, r"statistics\.s\.within_unit", "one row in a cell.*raise max_rows_per_cell"),
        (
            "2",
            {"family": "rows_per_unit", "upper": "20"},
            r"statistics\.s",
            "max_rows_per_cell leaves out more: ask for histogram: true",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    in_cell: str, statistic: object, place: str, rule: str
) -> None:
    with pytest.raises(SpecError, match=f"{place}: .*{rule}"):
        spec_of("12", in_cell, statistic=statistic)


def test_what_counts_whole_units_stands_beside_the_bound() -> None:
    rows = {"family": "rows_per_unit", "upper": "20", "histogram": "true"}
    units = {**bernoulli("x"), "rows_of": "units"}
    for statistic in (rows, units):
        bounded, plain = (compile_plan(spec_of("12", *of, statistic=statistic)) for of in (("2",), ()))
        of = [plan.statistics[0] for plan in (bounded, plain)]
        assert of[0].l1_sensitivity == of[1].l1_sensitivity == 1
        assert of[0].rows_of == of[1].rows_of


def test_squares_of_units_are_exact_for_larger_units_in_many_cells() -> None:
    with pytest.raises(SpecError, match=r"max_rows is 100000: .* exact up to max_rows"):
        spec_of("100000", statistic=WITHIN)
    shared = compile_plan(spec_of("100000", "8", statistic=WITHIN, cells=5)).statistics[0].within_unit
    assert shared is not None
    assert (shared.max_rows, shared.row_weight) == (8, 32)
