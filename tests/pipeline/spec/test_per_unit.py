"""Columns of units in specs: what is read, how plans state it, and what is refused."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import suffice
from suffice.errors import SchemaError, SpecError
from suffice.pipeline.rows.sources.contract import PartSchema
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.expected import expect_spec
from suffice.pipeline.spec.plan import compile_plan, source_columns
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.spec_yaml import read_yaml
from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate

if TYPE_CHECKING:
    from pathlib import Path

PER_UNIT: dict[str, Any] = {
    "visits": "count",
    "spend": {"sum": "amount", "lower": "0", "upper": "100", "total": {"lower": "0", "upper": "500"}},
    "first": {"min": "day", "type": "date"},
    "last": {"max": "at", "type": "timestamp"},
    "largest": {"max": "amount"},
}
VISITS = {"family": "poisson", "column": "visits", "upper": "9", "rows_of": "units"}


def make_spec(statistic: dict[str, Any] | None = None, **changes: Any) -> Spec:
    unit = {"column": "u", "max_rows": "3"}
    content = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": "rows"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
        "per_unit": PER_UNIT,
        "statistics": {"s": VISITS if statistic is None else {**statistic, "rows_of": "units"}},
    }
    return load_spec({key: value for key, value in {**content, **changes}.items() if value is not None})


def test_plans_state_them_and_read_them_again() -> None:
    derived = {
        "month": {"column": "first", "part": "month"},
        "often": {
            "all_of": [{"column": "visits", "at_least": "5"}, {"column": "last", "above": "2013-05-01"}]
        },
    }
    spec = make_spec(
        {"family": "categorical", "column": "month", "categories": ["1"], "where": "often"}, derived=derived
    )
    plan = compile_plan(spec)
    text = str(plan)
    assert (
        "s: of units: one value of each unit, over all of its rows, where the spec's condition holds" in text
    )
    assert "visits: number of each unit's rows" in text
    assert (
        "spend: sum of amount over each unit's rows, each clipped to 0..100 in steps of 0.0001, in total to "
        "0..500"
    ) in text
    assert "first: min of day, a date, over each unit's rows" in text
    read = read_canonical_plan(plan.canonical, plan.order)
    assert [compiled for _, compiled in read.statistics()] == list(plan.statistics)
    assert read.assemble(list(read.statistics())).plan_hash == plan.plan_hash
    assert source_columns(spec) == ("u", "at", "day")


def test_specs_without_them_keep_their_hashes() -> None:
    without = make_spec({"family": "bernoulli", "column": "x"}, per_unit=None)
    assert "per_unit" not in without.canonical_plan()
    empty = make_spec({"family": "bernoulli", "column": "x"}, per_unit={})
    assert empty.plan_hash() == without.plan_hash()


def test_python_states_what_a_file_states() -> None:
    stated = suffice.spec(
        dataset="d",
        name="n",
        source={"parquet": "rows"},
        unit={"column": "u", "max_rows": 3},
        per_unit=PER_UNIT,
        statistics={"s": suffice.poisson("visits", 9, rows_of="units")},
        epsilon=1,
    )
    assert stated.plan_hash() == make_spec().plan_hash()


def test_the_reference_is_read(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "spec.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(per_unit:\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    spec = make_spec(per_unit=read_yaml(block, "the page").content["per_unit"])
    assert [*spec.derived] == ["visits", "spend", "first"]


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [
        ("0", "100", "1/10000"),
        ("-1000", "999", "1/1000"),
        ("0", "99", "1/100000"),
        ("0", "0.5", "1/10000000"),
    ],
)
def test_steps_follow_from_bounds(lower: str, upper: str, step: str) -> None:
    spec = make_spec(per_unit={**PER_UNIT, "spend": {"sum": "amount", "lower": lower, "upper": upper}})
    of = spec.derived["spend"]
    assert isinstance(of, UnitAggregate)
    assert of.step == Fraction(step)


def test_a_count_that_is_paid_first_looks_at_rows() -> None:
    spec = make_spec(
        {"family": "normal", "column": "spend", "lower": "0", "upper": "500"},
        expect={"units": "9", "epsilon": "1"},
    )
    counted = expect_spec(spec)
    assert str(counted.derived["row_fits"]) == "amount has a value"


BERNOULLI = {"family": "bernoulli", "column": "x"}
SUM = {"sum": "amount", "lower": "0", "upper": "100"}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (
            {"privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"}, "statistics": {"s": BERNOULLI}},
            r"per_unit\.visits: unit: row does not say which rows belong together \(state whose",
        ),
        (
            {"derived": {"visits": {"column": "x", "above": "1"}}},
            r"per_unit\.visits: a derived column has this",
        ),
        (
            {"derived": {"y": {"per_unit": "count"}}},
            r"derived\.y: columns of units are stated below per_unit",
        ),
        ({"per_unit": ["count"]}, r"per_unit: it maps names"),
        ({"per_unit": {"visits": "mean"}}, r"per_unit\.visits: a column of units is as count, \{sum"),
        ({"per_unit": {"visits": {"sum": "x", "max": "x"}}}, r"per_unit\.visits: a column of units is as"),
        ({"per_unit": {"visits": {"sum": "x"}}}, r"visits: a sum needs lower and upper, the public bounds"),
        ({"per_unit": {"visits": {**SUM, "upper": "0"}}}, r"visits: lower 0 is not below upper 0|needs step"),
        ({"per_unit": {"visits": {**SUM, "step": "0.0000001"}}}, r"step 0.0000001 is too fine"),
        ({"per_unit": {"visits": {**SUM, "step": "3"}}}, r"bounds are whole numbers of steps, here of 3"),
        ({"per_unit": {"visits": {**SUM, "total": {"lower": "2", "upper": "1"}}}}, r"total: lower 2 is not"),
        ({"per_unit": {"visits": {**SUM, "type": "date"}}}, r"min and max, and they alone, state a type"),
        ({"per_unit": {"visits": {"min": "x", "lower": "1"}}}, r"visits: lower is for sums"),
        ({"per_unit": {"visits": {"min": "x", "kind": "date"}}}, r"visits: unknown key 'kind': a column of"),
        ({"per_unit": {"visits": {"min": "x", "type": "text"}}}, r"visits\.type"),
        ({"per_unit": {"n=1": "count"}}, r"column of units name"),
        (
            {"per_unit": {**PER_UNIT, "twice": {"max": "spend"}}},
            r"per_unit\.twice: 'spend' is of units already",
        ),
        (
            {"derived": {"share": {"ratio": ["amount", "spend"], "lower": "0", "upper": "1"}}},
            r"derived\.share: 'spend' is of units and 'amount' of rows",
        ),
        (
            {"where": {"column": "visits", "above": "3"}},
            r"where: 'visits' is a column of units; rows are chosen",
        ),
        (
            {"groups": {"visits": {"range": ["1", "3"]}}},
            r"groups: 'visits' is a column of units; cells are of",
        ),
        (
            {"statistics": {"s": {**VISITS, "groups": {"spend": ["1"]}}}},
            r"statistics\.s\.groups: 'spend' is a column of units",
        ),
        (
            {"window": {"column": "first", "every": "month"}},
            r"window\.column: 'first' is a column of units; window",
        ),
        (
            {"statistics": {"s": {**VISITS, "rows_of": "rows"}}},
            r"statistics\.s: 'visits' is a column of units, and this is a statistic of rows \(state rows_of",
        ),
        (
            {"statistics": {"s": {**BERNOULLI, "where": {"column": "visits", "above": "3"}}}},
            r"statistics\.s: 'visits' is a column of units, and this is a statistic of rows",
        ),
        (
            {
                "statistics": {
                    "s": {**VISITS, "where": {"any_of": ["x", {"column": "visits", "above": "3"}]}},
                }
            },
            r"s\.where: 'visits' is of units and 'x' of rows",
        ),
        (
            {"expect": {"units": "9", "epsilon": "1", "columns": ["visits"]}},
            r"expect\.columns: 'visits' is of units",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as raised:
        make_spec(**changes)
    assert len(str(raised.value)) <= 500


@pytest.mark.parametrize(
    ("statistic", "column", "kind", "rule"),
    [
        (VISITS, "visits", pa.int64(), r"per_unit\.visits: a\.parquet has a column of this name"),
        (
            {"family": "normal", "column": "spend", "lower": "0", "upper": "1"},
            "amount",
            pa.string(),
            r"per_unit\.spend: a\.parquet: the column 'amount' is text; numeric is needed",
        ),
        (
            {"family": "normal", "column": "largest", "lower": "0", "upper": "1"},
            "amount",
            pa.date32(),
            r"the column 'amount' is date; numeric is needed",
        ),
        (
            {"family": "normal", "column": "first", "lower": "0", "upper": "1"},
            "day",
            pa.date32(),
            r"the derived column 'first' is date; numeric is needed",
        ),
        (
            {"family": "normal", "column": "spend", "lower": "0", "upper": "1"},
            "u",
            pa.int64(),
            r"per_unit\.spend: a\.parquet: no column 'amount'",
        ),
    ],
)
def test_columns_of_the_source_are_checked(
    statistic: dict[str, Any], column: str, kind: pa.DataType, rule: str
) -> None:
    per_unit = {"visits": "count", str(statistic["column"]): PER_UNIT[statistic["column"]]}
    kinds = {"u": pa.int64(), column: kind}
    schema = PartSchema(part="a.parquet", columns=pa.schema(list(kinds.items())))
    with pytest.raises(SchemaError, match=rule):
        check_schema(make_spec(statistic, per_unit=per_unit), [schema])
