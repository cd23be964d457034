"""What a unit keeps, against the definition in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.rows.contribution import siphash
from suffice.pipeline.rows.contribution.bounding import first_rows, unit_rows
from suffice.pipeline.rows.contribution.records import by_unit
from support.siphash import plain_siphash
from support.units import KEY, OTHER_KEY, customers

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit

Row = tuple[int, ...]
N_ROWS = 400
ONE_CELL = np.zeros(N_ROWS, np.int32)


def some_records(seed: int, n_rows: int = N_ROWS) -> np.ndarray[Any, Any]:
    """Return records of some units, most of them identical to others."""
    rng = np.random.default_rng(seed)
    return np.stack(
        [
            np.minimum(rng.geometric(0.1, n_rows), 30),
            np.ones(n_rows),
            rng.integers(0, 4, n_rows),
            rng.integers(0, 2, n_rows),
        ],
        axis=1,
    ).astype(np.uint64)


def as_counter(records: np.ndarray[Any, Any]) -> Counter[Row]:
    return Counter(map(tuple, records.tolist()))


def kept_by_definition(records: np.ndarray[Any, Any], unit: ColumnUnit, key: tuple[int, int]) -> Counter[Row]:
    """Take of each cell, the third word, the first by rank, and of these the first over all cells."""
    ranked: dict[Row, list[tuple[int, Row]]] = defaultdict(list)
    for row, copies in as_counter(records).items():
        digest = plain_siphash(key, np.array(row, np.uint64).tobytes(), 8)
        for copy in range(copies):
            rank = plain_siphash(key, digest + copy.to_bytes(8, "little"), 8)
            ranked[row[:2]].append((int.from_bytes(rank, "little"), row))
    kept: Counter[Row] = Counter()
    for rows in ranked.values():
        in_cells: Counter[int] = Counter()
        first = []
        for _, row in sorted(rows):
            in_cells[row[2]] += 1
            if in_cells[row[2]] <= (unit.max_rows_per_cell or unit.max_rows):
                first.append(row)
        kept.update(first[: unit.max_rows])
    return kept


BOUNDS = [(1,), (2,), (7,), (50,), (1000,), (2, 1), (7, 2), (7, 5), (50, 3), (1000, 1)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_each_unit_keeps_its_rows_of_lowest_rank(bounds: tuple[int, ...]) -> None:
    unit = customers(*bounds)
    for seed, key in ((1, KEY), (2, OTHER_KEY)):
        records = some_records(seed)
        cells = records[:, 2].astype(np.int32)
        expected = kept_by_definition(records, unit, key.ranks)
        assert as_counter(first_rows(records, cells, unit, key)) == expected
        assert as_counter(records[unit_rows(records, cells, unit, key).kept]) == expected


def test_equal_ranks_go_by_content_and_not_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def same_rank(*arguments: Any) -> None:
        arguments[-1][:] = 7

    monkeypatch.setattr(siphash, "rank_rows", same_rank)
    records = some_records(3)
    kept = as_counter(first_rows(records, ONE_CELL, customers(2), KEY))
    expected: Counter[Row] = Counter()
    for unit in {row[:2] for row in map(tuple, records.tolist())}:
        expected.update(sorted(row for row in map(tuple, records.tolist()) if row[:2] == unit)[:2])
    assert kept == expected
    rng = np.random.default_rng(4)
    for _ in range(5):
        assert as_counter(first_rows(rng.permutation(records), ONE_CELL, customers(2), KEY)) == kept


@pytest.mark.parametrize("bundle_rows", [1, 30, 10**6])
def test_bundles_hold_all_rows_of_their_units(bundle_rows: int) -> None:
    records = some_records(5)
    pieces = [records[:0], records[:150], records[150:151], records[151:]]
    bundles = list(by_unit(pieces, KEY, bundle_rows))
    assert len(bundles) == -(-400 // bundle_rows)
    assert as_counter(np.concatenate(bundles)) == as_counter(records)
    units = [set(map(tuple, bundle[:, :2].tolist())) for bundle in bundles]
    assert sum(map(len, units)) == len(set.union(*units))
    assert list(by_unit([records[:0]], KEY, bundle_rows)) == []
