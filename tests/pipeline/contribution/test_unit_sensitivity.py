"""Neighbours by units, all of them over tiny domains, through the real reading, dividing and bounding tasks.

A unit holds any multiset of up to four records of a small universe, each record in a partition of its own,
beside another unit with too many rows. Every data set is summed and every pair of neighbours compared:
the declared sensitivity is attained and never exceeded; what would break it is caught.
"""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.pipeline.chunk.exact_sums import combine, to_python
from suffice.pipeline.chunk.partition import chunk_job
from suffice.pipeline.contribution import bounding
from suffice.pipeline.contribution.records import RecordLayout
from suffice.pipeline.contribution.unit_key import UnitKey
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.within_unit import totals_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.units import KEY, OTHER_KEY, by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray


Record = tuple[Any, ...]
MAX_ROWS = 2
ENTRIES: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "bernoulli": (pa.int64(), [0, 1, None], {"family": "bernoulli"}),
    "bernoulli-nulls": (pa.int64(), [0, 1, None], {"family": "bernoulli", "nulls": {"value": 1}}),
    "categorical": (
        pa.string(),
        ["x", "y", "z"],
        {"family": "categorical", "categories": ["x", "y"], "other": "true"},
    ),
    "poisson": (pa.float64(), [0.0, 2.5, np.inf], {"family": "poisson", "upper": 3}),
    "normal": (
        pa.float64(),
        [-1.0, -0.25, 9.0],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2},
    ),
    "bernoulli-within": (pa.int64(), [0, 1, None], {"family": "bernoulli", "within_unit": "true"}),
    "normal-within": (
        pa.float64(),
        [-1.0, -0.25, 9.0],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2, "within_unit": "true"},
    ),
    "lognormal-within": (
        pa.float64(),
        [0.5, 9.0, np.nan],
        {"family": "lognormal", "lower": 1, "upper": 8, "lattice_bits": 2, "within_unit": "true"},
    ),
    "exponential": (
        pa.float64(),
        [0.0, 2.0, np.nan],
        {"family": "exponential", "upper": 2, "lattice_bits": 2},
    ),
}
MANY = [("A", 0), ("A", 1), ("A", 2), ("A", 1), ("A", 0)]
"""Another unit's records, more than it may keep: numbers of values."""


class Engine:
    """Sums data sets of one statistic by unit."""

    def __init__(
        self, directory: Path, name: str, neighboring: str, shape: str = "plain", key: UnitKey = KEY
    ) -> None:
        self.kind, self.values, entry = ENTRIES[name]
        spec: dict[str, Any] = {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": neighboring, "unit": by_customer(MAX_ROWS)},
            "statistics": {"s": {**entry, "column": "v"}},
        }
        keys, days = ["a"], [dt.date(2013, 1, 31)]
        if shape == "own units":
            spec["privacy"]["unit"] = by_customer(MAX_ROWS, nulls="own_unit")
        if shape == "groups":
            spec["groups"] = {"g": ["a", "b"]}
            keys = ["a", "b", "unknown"]
        if shape == "window":
            spec["window"] = {"column": "t", "every": "month"}
            days.append(dt.date(2013, 2, 1))
        self.directory, self.key = directory, key
        self.spec = load_spec(spec)
        self.plan = compile_plan(self.spec)
        self.job = chunk_job(self.spec, "2013-01" if shape == "window" else "all")
        # The cell's ends and a middle, in every key: enough to attain every bound.
        self.universe = list(itertools.product(self.values, keys, days))[:6]

    @property
    def declared(self) -> int:
        return self.plan.statistics[0].l1_sensitivity

    def many(self) -> list[tuple[str | None, Record]]:
        return [(unit, (self.values[number], "a", dt.date(2013, 1, 31))) for unit, number in MANY]

    def write(self, rows: Sequence[tuple[str | None, Record]]) -> None:
        units, records = [unit for unit, _ in rows], [record for _, record in rows]
        values, keys, days = zip(*records, strict=True) if records else ((), (), ())
        table = pa.table(
            {
                "u": pa.array(units, pa.string()),
                "v": pa.array(list(values), self.kind, from_pandas=False),
                "g": pa.array(list(keys), pa.string()),
                "t": pa.array(list(days), pa.date32()),
            }
        )
        write_row_groups(self.directory, table, [1] * len(rows))

    def totals(self, rows: Sequence[tuple[str | None, Record]], *, each: bool = False) -> NDArray[Any]:
        """Return the totals; with `each`, of the partitions bounded one by one."""
        self.write(rows)
        partitions = partitions_of(self.spec)
        if each:
            sums = combine([sum_tasks(self.job, [partition], self.key) for partition in partitions])
        else:
            sums = sum_tasks(self.job, partitions, self.key)
        entry = self.spec.statistics["s"]
        exact = to_python(sums)["s"]
        return totals_of(FAMILIES[entry.family], entry, self.plan.statistics[0], exact).ravel()

    def of_every_unit(self, unit: str | None = "B", most: int = 3, **how: bool) -> NDArray[Any]:
        """Return the totals beside the other unit, of every multiset that a unit may hold."""
        return np.array(
            [
                self.totals([*[(unit, record) for record in records], *self.many()], **how)
                for size in range(most + 1)
                for records in itertools.combinations_with_replacement(self.universe, size)
            ]
        )


def farthest(vectors: NDArray[Any], neighboring: str) -> int:
    """Return the largest L1 change: from no unit to any, or from any unit to any."""
    others = vectors[:1] if neighboring == "add_or_remove_one" else vectors
    return int(max(np.abs(vectors - other).sum(axis=1).max() for other in others))


RELATIONS = ["add_or_remove_one", "replace_one"]


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", ENTRIES)
def test_no_unit_moves_the_totals_further_than_declared(tmp_path: Path, name: str, neighboring: str) -> None:
    engine = Engine(tmp_path, name, neighboring)
    statistic = engine.plan.statistics[0]
    if statistic.within_unit is None:
        assert statistic.partition_total is not None
        unit_l1 = MAX_ROWS * statistic.partition_total
    else:
        unit_l1 = (8 * MAX_ROWS + MAX_ROWS**2) * statistic.within_unit.unit_total
    assert engine.declared == unit_l1 * (1 if neighboring == "add_or_remove_one" else 2)
    largest = farthest(engine.of_every_unit(), neighboring)
    assert largest == engine.declared, "claimed tight, and a halved one would be caught"


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize(
    ("name", "key", "shape"),
    [
        ("bernoulli", OTHER_KEY, "groups"),
        ("bernoulli", OTHER_KEY, "window"),
        ("normal", KEY, "groups"),
        ("normal", KEY, "window"),
        ("bernoulli-within", KEY, "groups"),
        ("normal-within", OTHER_KEY, "groups"),
    ],
)
def test_cells_and_windows_share_a_units_bound(
    tmp_path: Path, name: str, shape: str, neighboring: str, key: UnitKey
) -> None:
    engine = Engine(tmp_path, name, neighboring, shape, key)
    assert farthest(engine.of_every_unit(), neighboring) == engine.declared


def test_rows_of_no_cell_are_left_out_before_the_cut(tmp_path: Path) -> None:
    """Window, group key, cut: unknown keys and other windows take nobody's place."""
    for shape, outside in (
        ("groups", (1, "unknown", dt.date(2013, 1, 31))),
        ("window", (1, "a", dt.date(2013, 2, 1))),
    ):
        engine = Engine(tmp_path, "bernoulli", "add_or_remove_one", shape)
        inside = [("B", (1, "a", dt.date(2013, 1, 31)))] * MAX_ROWS
        with_others = engine.totals([("B", outside)] * 50 + inside)
        assert (with_others == engine.totals(inside)).all()
        assert with_others.sum() == MAX_ROWS


def test_nulls_are_dropped_after_the_cut(tmp_path: Path) -> None:
    """A null row takes a place among those kept, so of many nulls and few values few values are counted."""
    engine = Engine(tmp_path, "bernoulli", "add_or_remove_one")
    rows = [("B", (None, "a", dt.date(2013, 1, 31)))] * 60 + [("B", (1, "a", dt.date(2013, 1, 31)))]
    assert engine.totals(rows).sum() in {0, 1}
    kept = [Engine(tmp_path, "bernoulli", "add_or_remove_one", key=key).totals(rows).sum() for key in KEYS]
    assert 0 in kept, "the one value is kept under a thirtieth of the keys"


KEYS = [UnitKey.of(bytes((number * 7 + position) % 256 for position in range(48))) for number in range(5)]


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_rows_without_a_unit(tmp_path: Path, neighboring: str) -> None:
    dropping = Engine(tmp_path, "normal", neighboring)
    vectors = dropping.of_every_unit(unit=None)
    assert (vectors == vectors[0]).all(), "nothing of them enters"
    own = Engine(tmp_path, "normal", neighboring, "own units")
    one = own.of_every_unit(unit=None, most=1)
    assert farthest(one, neighboring) * MAX_ROWS == own.declared, "each is a unit with one row"
    record = (None, own.universe[0])
    five = own.totals([record] * 5 + own.many()) - own.totals(own.many())
    assert (five == 5 * (own.totals([record, *own.many()]) - own.totals(own.many()))).all()


def test_the_totals_are_sums_over_units(tmp_path: Path) -> None:
    """What makes one other unit exhaustive: no unit's rows matter to what another keeps."""
    engine = Engine(tmp_path, "normal", "add_or_remove_one")
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
    engine = Engine(tmp_path, "normal", neighboring)
    assert farthest(engine.of_every_unit(each=True), neighboring) > engine.declared


@pytest.mark.parametrize("mutant", ["by position", "per cell"])
def test_other_ways_to_cut_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    def by_position(records: NDArray[Any], max_rows: int, key: UnitKey) -> NDArray[Any]:
        """Rank rows by a hash of where they stand."""
        numbers, counts = bounding.number_units(records, key)
        kept: list[int] = []
        taken = np.zeros(len(counts), int)
        for row in np.argsort([hash((position * 2654435761) % 1009) for position in range(len(records))]):
            taken[numbers[row]] += 1
            if taken[numbers[row]] <= max_rows:
                kept.append(int(row))
        return records[kept]

    first_rows = bounding.first_rows

    def per_cell(records: NDArray[Any], max_rows: int, key: UnitKey) -> NDArray[Any]:
        """Cut each cell for itself."""
        cells = RecordLayout.of(engine.job).cells(records)
        kept = [first_rows(records[cells == cell], max_rows, key) for cell in np.unique(cells)]
        return np.concatenate(kept) if kept else records

    monkeypatch.setattr(bounding, "first_rows", by_position if mutant == "by position" else per_cell)
    monkeypatch.setattr(bounding, "_BUNDLE_ROWS", 100)
    engine = Engine(tmp_path, "normal", "add_or_remove_one", "plain" if mutant == "by position" else "groups")
    assert farthest(engine.of_every_unit(most=4), "add_or_remove_one") > engine.declared
