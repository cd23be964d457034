"""Columns of units: neighbours, all of them over tiny domains, and a plain reference in Python."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.auditing.second_reading import is_null
from suffice.pipeline.rows.chunk.encoding import OrderReader
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.contribution import bounding, unit_columns
from suffice.pipeline.rows.reduce.shuffle import bounded_sums
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate
from support.unit_engine import PER_UNIT, UPPER, UnitEngine, farthest
from support.units import (
    KEY,
    OTHER_KEY,
    by_customer,
    customers,
    partitions_of,
    sum_tasks,
    write_row_groups,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.rows.contribution.records import UnitKey
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit

RELATIONS = ["add_or_remove_one", "replace_one"]
DAY = dt.date(2013, 1, 31)


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", PER_UNIT)
def test_a_unit_costs_what_a_record_costs(tmp_path: Path, name: str, neighboring: str) -> None:
    engine = UnitEngine(tmp_path, name, neighboring)
    (plan,) = engine.plan.statistics
    assert plan.partition_total is not None
    assert engine.declared == plan.partition_total * (1 if neighboring == "add_or_remove_one" else 2)
    distance = farthest(engine.of_every_unit(), neighboring)
    if name == "visits" and neighboring == "replace_one":  # a unit has a row at least: no two are opposite
        assert distance == 2 * (UPPER - 1)
    else:
        assert distance == engine.declared, "claimed tight"


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", ["groups", "window"])
@pytest.mark.parametrize(("name", "key"), [("visits", OTHER_KEY), ("spend", KEY), ("busy", KEY)])
def test_a_unit_is_in_one_cell(tmp_path: Path, name: str, shape: str, neighboring: str, key: UnitKey) -> None:
    engine = UnitEngine(tmp_path, name, neighboring, shape, key)
    vectors = engine.of_every_unit(most=2)
    distance = farthest(vectors, neighboring)
    assert distance <= engine.declared
    if shape == "groups":
        assert distance == engine.declared, "a unit that moves to another cell"
    by_cell = (vectors - vectors[0]).reshape(len(vectors), engine.plan.n_cells, -1).sum(axis=2)
    assert (np.count_nonzero(by_cell, axis=1) <= 1).all()


SPEC: dict[str, Any] = {
    "name": "n",
    "dataset": "d",
    "where": "enters",
    "derived": {
        "months": {"column": "first", "part": "month"},
        "dear": {"column": "spend", "bins": [0, 1, 9]},
    },
    "per_unit": {
        "visits": "count",
        "spend": {
            "sum": "v",
            "lower": "-0.5",
            "upper": 1,
            "step": "0.1",
            "total": {"lower": "-0.8", "upper": "2.5"},
        },
        "smallest": {"min": "v"},
        "largest": {"max": "v"},
        "first": {"min": "t", "type": "date"},
    },
    "groups": {"g": ["a", "b"]},
    "statistics": {
        "visits": {"family": "categorical", "column": "visits", "categories": {"range": [1, 9]}},
        "spend": {
            "family": "categorical",
            "column": "spend",
            "categories": [str(tenths / 10) for tenths in range(-8, 26)],
        },
        "smallest": {"family": "categorical", "column": "smallest", "categories": ["-7", "0.3", "4"]},
        "largest": {"family": "categorical", "column": "largest", "categories": ["-7", "0.3", "4"]},
        "months": {"family": "categorical", "column": "months", "categories": {"range": [1, 12]}},
        "dear": {"family": "categorical", "column": "dear", "categories": ["0", "1"]},
        "whole": {"family": "categorical", "column": "visits", "categories": ["1", "2", "3"], "groups": {}},
        "often": {
            "family": "categorical",
            "column": "visits",
            "categories": {"range": [1, 9]},
            "where": {"all_of": [{"column": "visits", "at_least": 2}, {"column": "smallest", "below": 0}]},
        },
    },
}
for _entry in SPEC["statistics"].values():
    _entry["rows_of"] = "units"
    _entry["other"] = "true"
Row = tuple[str | None, float | None, str, int, bool]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["A", "B", "C", None]),
        st.sampled_from([-7.0, 0.3, 4.0, None]),
        st.sampled_from(["a", "b", "unknown"]),
        st.integers(1, 12),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=12,
)
MANY: list[Row] = [
    *(("A", 4.0, "a", month, True) for month in (3, 5, 7)),
    *(("A", -7.0, "unknown", 1, True), ("A", -7.0, "a", 1, False)),
    *(("B", -7.0, "ab"[month % 2], month, True) for month in range(2, 6)),
    *(("C", value, "b", 4, True) for value in (0.3, 0.3, 0.3, None)),
    *((None, 0.3, "a", 2, True), ("D", None, "a", 9, True)),
    *(("E", value, "a", 6, True) for value in (4.0, -7.0)),
]


def spec_of(directory: Path, max_rows: int = 1, **changes: Any) -> Spec:
    unit = by_customer(max_rows, nulls="own_unit")
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    return load_spec({**SPEC, "source": {"parquet": str(directory)}, "privacy": privacy, **changes})


def write(directory: Path, rows: Sequence[Row], each: int = 1) -> None:
    units, values, keys, months, enters = zip(*rows, strict=True) if rows else ((),) * 5
    table = pa.table(
        {
            "u": pa.array(units, pa.string()),
            "v": pa.array(values, pa.float64()),
            "g": pa.array(keys, pa.string()),
            "t": pa.array([dt.date(2013, month, 1) for month in months], pa.date32()),
            "enters": pa.array(enters, pa.bool_()),
        }
    )
    sizes = [min(each, len(rows) - start) for start in range(0, len(rows), each)]
    write_row_groups(directory, table, sizes)


def expected(rows: Sequence[Row], name: str) -> list[int]:
    """Return the counts of all cells together: which cell a unit is in is the hash's alone."""
    entry = SPEC["statistics"][name]
    keys = entry["categories"]
    keys = list(map(str, range(keys["range"][0], keys["range"][1] + 1))) if isinstance(keys, dict) else keys
    counts = [0] * (len(keys) + 1)
    units: dict[object, list[Row]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row[4] and (row[2] != "unknown" or name == "whole"):
            units[row[0] if row[0] is not None else number].append(row)
    for of_unit in units.values():
        values = [value for _, value, *_ in of_unit if value is not None]
        visits = len(of_unit)
        tenths = sum(max(-5, min(10, round(value * 10))) for value in values)
        spend = max(-8, min(25, tenths)) / 10 if values else None
        if name == "often" and not (visits >= 2 and values and min(values) < 0):
            continue
        value: Any = {
            "spend": spend,
            "smallest": min(values, default=None),
            "largest": max(values, default=None),
            "months": min(month for *_, month, _ in of_unit),
            "dear": None if spend is None or not 0 <= spend <= 9 else 0 if spend < 1 else 1,
        }.get(name, visits)
        matching = [key for key in keys if value is not None and float(key) == value]
        counts[keys.index(matching[0]) if matching else len(keys)] += 1
    return counts


def summed(spec: Spec, key: UnitKey = KEY, **how: int) -> dict[str, list[int]]:
    sums = to_python(sum_tasks(chunk_job(spec), partitions_of(spec), key, **how))
    return {name: of.sum(axis=0).tolist() for name, of in sums.items()}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(ROWS)
def test_units_are_summed_as_plain_python_sums_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    directory = tmp_path_factory.mktemp("rows")
    write(directory, rows)
    assert summed(spec_of(directory)) == {name: expected(rows, name) for name in SPEC["statistics"]}


def test_neither_order_nor_division_nor_the_bound_of_rows_matters(tmp_path: Path) -> None:
    write(tmp_path, MANY)
    wanted = {name: expected(MANY, name) for name in SPEC["statistics"]}
    exact = {name: of.tolist() for name, of in to_python(_sums(spec_of(tmp_path))).items()}
    for each in (1, 4, len(MANY)):
        write(tmp_path, MANY[::-1], each)
        assert summed(spec_of(tmp_path, 3), n_buckets=3, n_rounds=2) == wanted
        again = {name: of.tolist() for name, of in to_python(_sums(spec_of(tmp_path))).items()}
        assert again == exact, "cells too"


def _sums(spec: Spec) -> Any:
    return sum_tasks(chunk_job(spec), partitions_of(spec))


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("where", ["threads", pytest.param("local", marks=pytest.mark.slow)])
def test_threads_and_processes_sum_the_same(tmp_path: Path, where: str, clustered: bool) -> None:
    write(tmp_path, MANY, 3)
    source: dict[str, Any] = {"parquet": str(tmp_path)}
    if clustered:
        source["clustered_by"] = "u"
    spec = spec_of(tmp_path, source=source)
    with open_cluster_for_sums(where) as cluster:
        totals = bounded_sums(chunk_job(spec), partitions_of(spec), cluster, KEY).open_totals()
        sums = {name: of.tolist() for name, of in to_python(totals).items()}
    assert sums == {name: of.tolist() for name, of in to_python(_sums(spec)).items()}


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_the_cell_is_that_of_the_first_row_by_rank(tmp_path: Path, key: UnitKey) -> None:
    """Of the same records the one row kept of each unit is the first, and tells its cell."""
    rng = np.random.default_rng(1)
    rows: list[Row] = [
        (f"unit {rng.integers(30)}", 0.3, "ab"[rng.integers(2)], int(rng.integers(1, 13)), True)
        for _ in range(150)
    ]
    write(tmp_path, rows, 50)
    statistics = {
        "kept": {"family": "categorical", "column": "v", "categories": ["0.3"]},
        "visits": {**SPEC["statistics"]["visits"]},
    }
    spec = spec_of(tmp_path, statistics=statistics)
    assert len({row[0] for row in rows}) > 20
    sums = to_python(sum_tasks(chunk_job(spec), partitions_of(spec), key))
    assert sums["kept"].sum(axis=1).tolist() == sums["visits"].sum(axis=1).tolist()
    for unit in sorted({str(row[0]) for row in rows}):
        write(tmp_path, [row for row in rows if row[0] == unit])
        sums = to_python(sum_tasks(chunk_job(spec), partitions_of(spec), key))
        assert sums["kept"].sum(axis=1).tolist() == sums["visits"].sum(axis=1).tolist()


MUTANTS = ["rows kept alone", "rows not clipped", "totals not clipped", "once a row", "by position"]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    write(tmp_path, MANY, 5)
    spec = spec_of(tmp_path)
    right = {name: of.tolist() for name, of in to_python(_sums(spec)).items()}
    read = unit_columns.UnitColumns.read
    if mutant == "rows kept alone":

        def of_kept(self: Any, records: NDArray[Any], units: NDArray[Any], n_units: int) -> Any:
            kept = bounding.unit_rows(records, units, customers(1), KEY).kept
            of = read(self, records[kept], units[kept], n_units)
            by_unit = {name: dict(zip(units[kept], codes, strict=True)) for name, codes in of.items()}
            return {name: np.array([of[unit] for unit in units], np.int32) for name, of in by_unit.items()}

        monkeypatch.setattr(unit_columns.UnitColumns, "read", of_kept)
        changed = {"visits", "spend", "whole"}
    elif mutant in {"rows not clipped", "totals not clipped"}:
        wide = {"lower": "-100", "upper": "100"}
        sum_of = SPEC["per_unit"]["spend"]
        unclipped = {**sum_of, **wide} if mutant == "rows not clipped" else {**sum_of, "total": wide}
        spec = spec_of(tmp_path, per_unit={**SPEC["per_unit"], "spend": unclipped})
        changed = {"spend"}
    elif mutant == "once a row":
        monkeypatch.setattr(bounding.UnitSums, "_add_bounded", _each_row)
        changed = set(SPEC["statistics"])
    else:
        rows_of = bounding.unit_rows

        def by_position(*of: Any) -> Any:
            rows = rows_of(*of)
            return type(rows)(
                units=rows.units,
                n_units=rows.n_units,
                cells=rows.cells,
                ranked=np.arange(len(rows.units)),
                kept=rows.kept,
            )

        monkeypatch.setattr(bounding, "unit_rows", by_position)
        sums = [to_python(_written(tmp_path, spec, order))["visits"].tolist() for order in (MANY, MANY[::-1])]
        assert sums[0] != sums[1], "the order of rows would matter"
        return
    totals = {name: of.tolist() for name, of in to_python(_sums(spec)).items()}
    assert {name for name in right if totals[name] != right[name]} >= changed


def _written(directory: Path, spec: Spec, rows: Sequence[Row]) -> Any:
    write(directory, rows, len(rows))
    return _sums(spec)


def _each_row(
    self: Any, records: NDArray[Any], cells: NDArray[Any], place: int, names: Sequence[str], unit: ColumnUnit
) -> None:
    rows = bounding.unit_rows(records, cells, unit, KEY)
    self._add_rows(records, place, names, self._unit_columns.read(records, rows.units, rows.n_units))


SOURCES = [
    ("number", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    ("number", pa.uint64(), st.integers(0, 2**64 - 1)),
    ("number", pa.float64(), st.floats(allow_nan=True)),
    ("date", pa.date32(), st.dates()),
    ("timestamp", pa.timestamp("us"), st.datetimes()),
]


@pytest.mark.parametrize(("kind", "stored", "values"), SOURCES)
@pytest.mark.parametrize("end", ["min", "max"])
def test_ends_are_those_of_python(kind: str, stored: pa.DataType, values: Any, end: str) -> None:
    of = UnitAggregate.model_validate({"per_unit": end, "column": "x", "type": kind})

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 2), st.none() | values), max_size=8))
    def check(rows: list[tuple[int, Any]]) -> None:
        numbers = [0, 1, 2, *(unit for unit, _ in rows)]
        column = pa.array([None] * 3 + [value for _, value in rows], stored)
        places = OrderReader("x").read(pa.RecordBatch.from_arrays([column], ["x"]))
        ends = unit_columns._ends(of, places, np.array(numbers, np.int32), 3).to_pylist()
        for unit in range(3):
            of_unit = [value for number, value in rows if number == unit and not is_null(value)]
            wanted: Any = (min if end == "min" else max)(of_unit, default=None)
            assert ends[unit] == (float(wanted) if kind == "number" and of_unit else wanted)

    check()
