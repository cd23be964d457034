"""Adding rows to limbs: carries come before an int64 is full."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.rows.chunk.accumulators import (
    MatrixAccumulator,
    MomentAccumulator,
    add_powers,
    multiplies_matrices,
)
from suffice.pipeline.rows.chunk.exact_sums import (
    Table,
    normalise,
    rows_before_carry,
    rows_before_rounding,
    to_python,
)
from suffice.pipeline.rows.chunk.kernels import NOTHING
from suffice.pipeline.terms.statistics.lattice import Quantiser
from suffice.pipeline.terms.statistics.measure import LatticeColumn, MomentSums
from support.several import lattice_sums


@pytest.mark.parametrize(("largest", "degree"), [(1, 1), (2**16, 2), (2**24, 2), (10**9, 1), (0, 1)])
def test_the_limit_is_the_last_number_of_rows_that_cannot_wrap(largest: int, degree: int) -> None:
    limit = rows_before_carry(largest, degree)
    term = max(1, largest**degree)
    assert 2**48 - 1 + limit * term < 2**63
    assert 2**48 + (limit + 1) * term >= 2**63


@pytest.mark.parametrize("value", [2**24, -(2**24), 2**20 + 1, NOTHING])
def test_low_limbs_at_their_fullest_never_wrap(value: int) -> None:
    n_rows = 3 * rows_before_carry(2**24, 2) + 5
    lattice, cells = np.full(n_rows, value, np.int32), np.zeros(n_rows, np.int32)
    table = Table(low=np.zeros((2, 3), np.int64), high=np.zeros((2, 3), np.int64))
    table.low[0] = 2**48 - 1
    limit = rows_before_carry(2**24, 2)
    room = limit
    for block in np.array_split(np.arange(n_rows), 7):
        room = add_powers(table, cells[block], lattice[block], room=room, limit=limit)
        assert 0 <= room <= limit
        assert (table.low[:, [0, 2]] >= 0).all()
    normalise(table)
    terms = [0, 0, 0] if value == NOTHING else [1, value, value**2]
    assert to_python({"x": table})["x"][0].tolist() == [2**48 - 1 + n_rows * term for term in terms]


def test_one_row_more_than_the_limit_would_wrap() -> None:
    limit = rows_before_carry(2**24, 2)
    low = np.zeros((2, 3), np.int64)
    low[0, 2] = 2**48 - 1
    table = Table(low=low, high=np.zeros((2, 3), np.int64))
    rows = limit + 2
    add_powers(table, np.zeros(rows, np.int32), np.full(rows, 2**24, np.int32), room=rows, limit=rows)
    assert low[0, 2] < 0


def measure_of(size: int, bits: int) -> MomentSums:
    quantiser = Quantiser.centred(Fraction(-1), Fraction(1), bits)
    columns = (LatticeColumn(column=str(i), quantiser=quantiser, fallback=None) for i in range(size))
    return MomentSums(of=tuple(columns))


def exact(cells: np.ndarray, columns: list[np.ndarray], n_cells: int) -> list[list[int]]:
    """Add rows up in Python integers."""
    complete = np.all([column != NOTHING for column in columns], axis=0)
    sums = []
    for cell in range(n_cells):
        rows = np.stack(columns, axis=1)[complete & (cells == cell)]
        sums.append(lattice_sums(rows)[0].tolist())
    return sums


@pytest.mark.parametrize("bits", [2, 16, 20, 24])
@pytest.mark.parametrize("n_cells", [1, 7])
def test_both_ways_of_adding_equal_python_integers(bits: int, n_cells: int) -> None:
    rng = np.random.default_rng(7)
    n_rows, top = 5000, 1 << bits
    measure = measure_of(4, bits)
    columns = [rng.integers(-top, top + 1, n_rows).astype(np.int32) for _ in range(4)]
    columns[0][rng.random(n_rows) < 0.5] = top
    columns[1] = np.where(columns[0] == top, -top, columns[1]).astype(np.int32)
    columns[2][rng.random(n_rows) < 0.1] = NOTHING
    cells = rng.integers(-1, n_cells, n_rows).astype(np.int32)
    expected = exact(cells, columns, n_cells)
    for kind in (MomentAccumulator, MatrixAccumulator):
        adding = kind(measure, n_cells)
        for rows in np.array_split(np.arange(n_rows), 7):
            adding.add(cells[rows], [column[rows] for column in columns])
        assert to_python({"s": adding.table()})["s"].tolist() == expected


@pytest.mark.parametrize("value", [2**24, 2**24 - 1])
@pytest.mark.parametrize("kind", [MomentAccumulator, MatrixAccumulator])
def test_carries_come_before_an_int64_is_full(kind: type[MomentAccumulator], value: int) -> None:
    """Every product at its largest, over more rows than an int64 takes without a carry."""
    limit = rows_before_carry(2**24, 2)
    n_rows = 3 * limit + 5
    columns = [np.full(n_rows, value, np.int32), np.full(n_rows, -value, np.int32)]
    adding = kind(measure_of(2, 24), 1)
    adding._table.low[0] = 2**48 - 1
    adding._room = limit
    for rows in np.array_split(np.arange(n_rows), 3):
        adding.add(np.zeros(len(rows), np.int32), [column[rows] for column in columns])
    square = n_rows * value**2
    added = [n_rows, n_rows * value, -n_rows * value, square, -square, square]
    assert to_python({"s": adding.table()})["s"][0].tolist() == [2**48 - 1 + number for number in added]


def test_one_block_more_would_round() -> None:
    """A control: odd squares add up exactly to the last row of a block, and no longer in twice the rows."""
    value = 2**24 - 1
    rows = rows_before_rounding(value)
    assert rows * value**2 <= 2**53 < (rows + 1) * value**2

    def float_sum(n_rows: int) -> int:
        column = np.append(np.full(n_rows - 1, float(value)), 2.0)
        return int(column @ column)

    assert float_sum(rows) == (rows - 1) * value**2 + 4
    assert float_sum(2 * rows) != (2 * rows - 1) * value**2 + 4


def test_the_way_is_chosen_by_public_numbers() -> None:
    assert multiplies_matrices(5, 1, 2**16)
    assert not multiplies_matrices(4, 1, 2**16), "few columns"
    assert not multiplies_matrices(5, 65, 2**16), "many cells"
    assert not multiplies_matrices(5, 1, 2**20), "blocks would be short"
