"""Places in an order: one order over all types of numbers, by value, without rounding."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.encoding import LARGEST_REST, NO_POSITION, OrderReader

if TYPE_CHECKING:
    from collections.abc import Sequence

Place = tuple[int, int]

POWERS = st.integers(0, 64).flatmap(lambda power: st.integers(2**power - 3, 2**power + 3))
NEAR = POWERS | POWERS.map(lambda number: -number)
SIGNED = st.integers(-(2**63), 2**63 - 1) | NEAR.filter(lambda number: -(2**63) <= number < 2**63)
UNSIGNED = st.integers(0, 2**64 - 1) | POWERS.filter(lambda number: 0 <= number < 2**64)
FLOATS = st.floats(allow_nan=False) | NEAR.map(float) | SIGNED.map(float)


def places(values: Sequence[Any], kind: pa.DataType) -> list[Place]:
    # Between others and away from the buffer's beginning, as batches are slices of row groups.
    array = pa.array([None, *values, None], kind).slice(1, len(values))
    found = OrderReader("when").read(pa.record_batch({"when": array}))
    assert ((found.rests >= 0) & (found.rests <= LARGEST_REST)).all()
    return list(zip(found.floors.tolist(), found.rests.tolist(), strict=True))


@pytest.mark.slow
@settings(max_examples=400)
@given(signed=st.lists(SIGNED), unsigned=st.lists(UNSIGNED), floats=st.lists(FLOATS))
@example(signed=[2**63 - 1, 2**63 - 2, -(2**63)], unsigned=[2**64 - 1, 2**63], floats=[2.0**63, 2.0**64])
@example(signed=[2**53, 2**53 + 1, 2**53 + 2], unsigned=[2**53 + 1], floats=[2.0**53, 2.0**53 + 2, -0.0])
def test_integers_and_floats_have_one_order_by_value(
    signed: list[int], unsigned: list[int], floats: list[float]
) -> None:
    """Python compares its integers and floats exactly."""
    found: list[tuple[Place, float]] = []
    for values, kind in ((signed, pa.int64()), (unsigned, pa.uint64()), (floats, pa.float64())):
        found += zip(places(values, kind), values, strict=True)
    for (first, smaller), (second, larger) in pairwise(sorted(found, key=lambda entry: entry[0])):
        assert smaller <= larger
        assert (first == second) == (smaller == larger)


def test_floors_alone_would_merge_places() -> None:
    """A mutant: the order of the nearest float64 below, without the rest."""
    values = [2**53, 2**53 + 1, 2**62, 2**62 + 511, 2**63 - 2, 2**63 - 1]
    found = places(values, pa.int64())
    assert len(set(found)) == 6
    assert len({floor for floor, _ in found}) == 3


def test_smaller_types_are_their_values() -> None:
    for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.float16(), pa.float32(), pa.decimal128(9, 2)):
        values = [np.float16(value) if kind == pa.float16() else value for value in (3, 1, 2)]
        assert places(values, kind) == places([3, 1, 2], pa.int64())
    assert places([0.0, -0.0], pa.float64()) == places([0, 0], pa.int64())


def test_nulls_and_nan_have_no_place() -> None:
    assert places([None, 1.0, math.nan], pa.float64()) == [
        (NO_POSITION, 0),
        places([1], pa.int64())[0],
        (NO_POSITION, 0),
    ]
    assert places([None, -(2**63)], pa.int64())[0] == (NO_POSITION, 0)
    assert places([-(2**63)], pa.int64())[0] > (NO_POSITION, 0)
    assert places([-math.inf], pa.float64())[0] > (NO_POSITION, 0)
    assert places([None, None], pa.int64()) == [(NO_POSITION, 0)] * 2
    assert places([None], pa.null()) == [(NO_POSITION, 0)]
