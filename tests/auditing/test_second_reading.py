"""Units and cells read twice, by the product and in plain Python: the same counts where both are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from suffice.auditing.hostile_rows import DataSet, WrittenPart, coerced
from suffice.auditing.scratch_sources import stored_rows
from suffice.auditing.second_reading import allowed
from suffice.pipeline.spec.spec import load_spec
from support.audited import SPECS, running

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "units in parquet",
    "rows in parquet",
    "folders",
    "windows",
    "windows of a zone",
    "a parsed window and unit",
    "derived columns",
]


@pytest.mark.parametrize("name", NAMES)
def test_both_readings_count_the_same_records(tmp_path: Path, name: str) -> None:
    statistic = "carrier"
    spec = load_spec(SPECS[name])
    with running(spec, tmp_path) as (runner, maker):
        plan = runner.plan()
        known = 0
        for _ in range(6):
            rows = [maker.good_row() for _ in range(30)] + [maker.hostile_row() for _ in range(15)]
            unit = spec.stored_unit
            if unit is not None:
                rows = [{**row, unit: coerced(n, maker.schema[unit])} for n, row in enumerate(rows)]
            rows = [{**row, "carrier": "UA"} for row in rows]  # each counts in its cell
            data = DataSet(parts=(WrittenPart(writer="spark", rows=tuple(rows)),))
            records = runner.totals(data)[statistic].sum(axis=1)
            stored = stored_rows(data.parts[0], runner.schema)
            expected = allowed(spec, spec.groups, stored, runner.window)
            assert expected.clean
            assert {cell: int(n) for cell, n in enumerate(records) if n} == expected.cells
            known += expected.whole
        assert known > 20
        assert len(records) == plan.n_cells


def test_both_readings_cut_rows_in_cells(tmp_path: Path) -> None:
    """Units of many rows: the second reading knows how many are kept, and the product keeps as many."""
    spec = load_spec(SPECS["rows in cells"])
    with running(spec, tmp_path) as (runner, maker):
        sizes = [(4, 0), (2, 2), (1, 0), (0, 7), (3, 1)]
        unit = spec.stored_unit or ""
        rows = [
            {**maker.good_row(place), unit: coerced(who, maker.schema[unit]), "carrier": "UA"}
            for who, cells in enumerate(sizes)
            for place, n in enumerate(cells)
            for _ in range(n)
        ]
        parts = [WrittenPart(writer="spark", rows=tuple(rows[start::3])) for start in range(3)]
        records = runner.totals(DataSet(parts=tuple(parts)))["carrier"].sum(axis=1)
        stored = [row for part in parts for row in stored_rows(part, runner.schema)]
        expected = allowed(spec, spec.groups, stored, runner.window)
    assert {cell: int(n) for cell, n in enumerate(records)} == expected.cells == {0: 4, 1: 3}
    assert (expected.whole, expected.clean) == (7, False)


def test_rows_of_one_unit_are_cut_in_the_second_reading(tmp_path: Path) -> None:
    spec = load_spec(SPECS["units in parquet"])
    with running(spec, tmp_path) as (runner, maker):
        row = {**maker.good_row(0), "who": 7}
        stored = [row] * 5 + [{**row, "who": None}] * 2 + [{**row, "who": 1.7345e18}]
        expected = allowed(spec, spec.groups, stored, runner.window)
    assert (expected.whole, expected.clean) == (5, False)
