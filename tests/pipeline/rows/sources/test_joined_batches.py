"""Batches of small files are joined, in their order; what differs in type or is large stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from suffice.pipeline.rows.sources import joined_batches
from suffice.pipeline.rows.sources.joined_batches import joined

if TYPE_CHECKING:
    import pytest


def batch(*values: Any, kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values, kind)})


def values_of(batches: list[pa.RecordBatch]) -> list[list[Any]]:
    return [of.column(0).to_pylist() for of in batches]


def test_batches_are_joined_in_their_order_up_to_a_block() -> None:
    parts = [batch(number, None) for number in range(5)]
    assert values_of(list(joined(parts, 1 << 17))) == [[0, None, 1, None, 2, None, 3, None, 4, None]]
    assert values_of(list(joined(parts, 4))) == [[0, None, 1, None], [2, None, 3, None], [4, None]]
    assert values_of(list(joined(parts, 3))) == [[number, None] for number in range(5)], "none is small"
    assert list(joined([], 4)) == []


def test_other_types_begin_anew_and_keep_their_place() -> None:
    parts = [batch(1), batch(2), batch(3.5), batch("a"), batch(None), batch(4)]
    found = list(joined(parts, 100))
    assert values_of(found) == [[1, 2], [3.5], ["a"], [None], [4]]
    assert [of.schema.types[0] for of in found] == [
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.null(),
        pa.int64(),
    ]


def test_dictionaries_rows_without_columns_and_large_batches_pass() -> None:
    indices = pa.array([0, 7], pa.int32())  # as a damaged file has them
    damaged = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    coded = pa.record_batch({"x": damaged})
    counted = pa.record_batch([pa.array([1, 2])], ["x"]).select([])
    large = batch(*range(60))
    given = [batch(1), coded, coded, counted, counted, large, batch(2), batch(3)]
    found = list(joined(given, 100))
    assert all(one is other for one, other in zip(found[1:6], given[1:6], strict=True))
    assert values_of([found[0], *found[6:]]) == [[1], [2, 3]]
    assert sum(of.num_rows for of in found) == sum(of.num_rows for of in given)


def test_long_texts_are_not_gathered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_batches, "_MOST_BYTES", 5000)
    parts = [batch("x" * 2000) for _ in range(5)]
    assert [of.num_rows for of in joined(parts, 100)] == [2, 2, 1]
