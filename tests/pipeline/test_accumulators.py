"""Adding rows to limbs: carries come before an int64 is full."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.accumulators import add_powers, rows_before_carry
from suffice.pipeline.exact import Table, normalise, to_python
from suffice.pipeline.kernels import NOTHING


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
