"""Neighbours by units, all of them over tiny domains, through the real reading, dividing and bounding tasks.

A unit holds any multiset of up to four records of a small universe, each record in a partition of its own,
beside another unit with too many rows. Every data set is summed and every pair of neighbours compared:
the declared sensitivity is attained and never exceeded; what would break it is caught.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.rows.contribution import bounding
from suffice.pipeline.rows.contribution.records import UnitKey
from support.record_vectors import squared_change
from support.unit_engine import MAX_ROWS, OF_ROWS, UnitEngine, farthest
from support.units import KEY, OTHER_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit


RELATIONS = ["add_or_remove_one", "replace_one"]


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", OF_ROWS)
def test_no_unit_moves_the_totals_further_than_declared(tmp_path: Path, name: str, neighboring: str) -> None:
    engine = UnitEngine(tmp_path, name, neighboring)
    record_l1 = engine.plan.statistics[0].partition_total
    assert record_l1 is not None
    assert engine.declared == MAX_ROWS * record_l1 * (1 if neighboring == "add_or_remove_one" else 2)
    vectors = engine.of_every_unit()
    assert farthest(vectors, neighboring) == engine.declared, (
        "claimed tight, and a halved one would be caught"
    )
    assert squared_change(vectors, neighboring) == engine.declared_squared


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", ["plain", "groups", "window"])
def test_counts_of_moved_records_are_bounded_with_their_sums(
    tmp_path: Path, shape: str, neighboring: str
) -> None:
    engine = UnitEngine(tmp_path, "normal counted", neighboring, shape)
    counted = engine.plan.statistics[0].counted
    assert counted is not None
    assert counted.partition_total is not None
    times = MAX_ROWS * (1 if neighboring == "add_or_remove_one" else 2)
    assert engine.declared == times * (counted.partition_total + counted.weight)
    vectors = engine.of_every_unit()
    assert farthest(vectors, neighboring) == engine.declared
    assert squared_change(vectors, neighboring) == engine.declared_squared


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", ["groups", "window"])
@pytest.mark.parametrize(("name", "key"), [("bernoulli", OTHER_KEY), ("normal", KEY)])
def test_cells_and_windows_share_a_units_bound(
    tmp_path: Path, name: str, shape: str, neighboring: str, key: UnitKey
) -> None:
    engine = UnitEngine(tmp_path, name, neighboring, shape, key)
    vectors = engine.of_every_unit()
    assert farthest(vectors, neighboring) == engine.declared
    assert squared_change(vectors, neighboring) == engine.declared_squared


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_spellings_of_a_unit_share_its_bound_by_a_rule(tmp_path: Path, neighboring: str) -> None:
    """Without the rule each spelling is a unit, and who spells in three ways moves the totals too far."""
    by_rule = UnitEngine(tmp_path, "normal", neighboring, "parsed")
    assert farthest(by_rule.of_every_unit(), neighboring) == by_rule.declared
    as_stored = UnitEngine(tmp_path, "normal", neighboring, "spelled")
    assert farthest(as_stored.of_every_unit(), neighboring) > as_stored.declared


def test_rows_of_no_cell_are_left_out_before_the_cut(tmp_path: Path) -> None:
    """Window, group key, cut: unknown keys and other windows take nobody's place."""
    for shape, outside in (
        ("groups", (1, "unknown", dt.date(2013, 1, 31))),
        ("window", (1, "a", dt.date(2013, 2, 1))),
    ):
        engine = UnitEngine(tmp_path, "bernoulli", "add_or_remove_one", shape)
        inside = [("B", (1, "a", dt.date(2013, 1, 31)))] * MAX_ROWS
        with_others = engine.totals([("B", outside)] * 50 + inside)
        assert (with_others == engine.totals(inside)).all()
        assert with_others.sum() == MAX_ROWS


def test_nulls_are_dropped_after_the_cut(tmp_path: Path) -> None:
    """A null row takes a place among those kept, so of many nulls and few values few values are counted."""
    engine = UnitEngine(tmp_path, "bernoulli", "add_or_remove_one")
    rows = [("B", (None, "a", dt.date(2013, 1, 31)))] * 60 + [("B", (1, "a", dt.date(2013, 1, 31)))]
    assert engine.totals(rows).sum() in {0, 1}
    kept = [
        UnitEngine(tmp_path, "bernoulli", "add_or_remove_one", key=key).totals(rows).sum() for key in KEYS
    ]
    assert 0 in kept, "the one value is kept under a thirtieth of the keys"


KEYS = [UnitKey.of(bytes((number * 7 + position) % 256 for position in range(48))) for number in range(5)]


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_rows_without_a_unit(tmp_path: Path, neighboring: str) -> None:
    dropping = UnitEngine(tmp_path, "normal", neighboring)
    vectors = dropping.of_every_unit(unit=None)
    assert (vectors == vectors[0]).all(), "nothing of them enters"
    separate = UnitEngine(tmp_path, "normal", neighboring, "own units")
    nearest = separate.of_every_unit(unit=None, most=1)
    assert farthest(nearest, neighboring) * MAX_ROWS == separate.declared, "each is a unit with one row"
    record = (None, separate.universe[0])
    five = separate.totals([record] * 5 + separate.many()) - separate.totals(separate.many())
    assert (
        five == 5 * (separate.totals([record, *separate.many()]) - separate.totals(separate.many()))
    ).all()


def test_the_totals_are_sums_over_units(tmp_path: Path) -> None:
    """What makes one other unit exhaustive: no unit's rows matter to what another keeps."""
    engine = UnitEngine(tmp_path, "normal", "add_or_remove_one")
    rng = np.random.default_rng(5)
    for _ in range(20):
        sizes = rng.integers(0, 5, 4)
        units = [
            [
                (f"unit {number}", engine.universe[position])
                for position in rng.integers(0, len(engine.universe), size)
            ]
            for number, size in enumerate(sizes)
        ]
        rows = [row for unit in units for row in unit]
        rng.shuffle(rows)
        expected = sum((engine.totals(unit) for unit in units), engine.totals([]))
        assert (engine.totals(rows) == expected).all()


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_bounding_per_partition_is_caught(tmp_path: Path, neighboring: str) -> None:
    engine = UnitEngine(tmp_path, "normal", neighboring)
    vectors = engine.of_every_unit(each=True)
    assert farthest(vectors, neighboring) > engine.declared
    assert squared_change(vectors, neighboring) > engine.declared_squared


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["by position", "per cell"])
def test_other_ways_to_cut_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    def by_position(records: NDArray[Any], _cells: Any, unit: ColumnUnit, key: UnitKey) -> NDArray[Any]:
        """Rank rows by a hash of where they stand."""
        numbers, counts = bounding.number_units(records, key)
        kept: list[int] = []
        taken = np.zeros(len(counts), int)
        for row in np.argsort([hash((position * 2654435761) % 1009) for position in range(len(records))]):
            taken[numbers[row]] += 1
            if taken[numbers[row]] <= unit.max_rows:
                kept.append(int(row))
        return records[kept]

    first_rows = bounding.first_rows

    def per_cell(records: NDArray[Any], cells: Any, unit: ColumnUnit, key: UnitKey) -> NDArray[Any]:
        """Cut each cell for itself."""
        kept = [
            first_rows(records[cells == cell], cells[cells == cell], unit, key) for cell in np.unique(cells)
        ]
        return np.concatenate(kept) if kept else records

    monkeypatch.setattr(bounding, "first_rows", by_position if mutant == "by position" else per_cell)
    monkeypatch.setattr(bounding, "_BUNDLE_ROWS", 100)
    engine = UnitEngine(
        tmp_path, "normal", "add_or_remove_one", "plain" if mutant == "by position" else "groups"
    )
    assert farthest(engine.of_every_unit(most=4), "add_or_remove_one") > engine.declared
