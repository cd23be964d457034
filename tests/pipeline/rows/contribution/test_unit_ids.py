"""Units are equal exactly where their values are, whatever type a file stores them in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.rows.contribution.unit_ids import IS_NULL, IS_ROUNDED, IS_UNIT, UnitReader

KEY = (3, 5)
ROUNDED = "may have been rounded"
Unit = tuple[int, int] | str | None


def units(array: pa.Array, reader: UnitReader | None = None) -> list[Unit]:
    words, kinds = (reader or UnitReader("u", KEY)).read(pa.record_batch({"u": array}))
    assert words.shape == (len(array), 2)
    by_kind: list[dict[int, Unit]] = [
        {int(IS_UNIT): (int(a), int(b)), int(IS_NULL): None, int(IS_ROUNDED): ROUNDED}
        for a, b in words.tolist()
    ]
    return [units_of_kind[int(kind)] for units_of_kind, kind in zip(by_kind, kinds, strict=True)]


def unit(value: Any, kind: pa.DataType) -> Unit:
    # Between others and away from the buffer's beginning, as batches are slices of row groups.
    return units(pa.array([value, None, value, value], kind).slice(2, 1))[0]


NUMBERS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal32(9, 2),
    pa.decimal64(18, 0),
    pa.decimal128(12, 0),
    pa.decimal128(38, 18),
    pa.decimal256(40, 3),
]


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_a_whole_number_is_one_unit_in_every_type(kind: pa.DataType) -> None:
    whole: Any = np.float16(5) if kind == pa.float16() else Decimal(5) if pa.types.is_decimal(kind) else 5
    assert unit(whole, kind) == unit(5, pa.int64())
    if not pa.types.is_unsigned_integer(kind):
        assert unit(-whole, kind) == unit(-5, pa.int64()) != unit(5, pa.int64())


EQUAL: list[list[tuple[Any, pa.DataType]]] = [
    [("a", pa.string()), ("a", pa.large_string()), ("a", pa.string_view())],
    [("", pa.string()), ("", pa.large_string())],
    [("5", pa.string())],
    [(2**63 - 1, pa.int64()), (2**63 - 1, pa.uint64()), (Decimal(2**63 - 1), pa.decimal128(19, 0))],
    [(2**63, pa.uint64()), (Decimal(2**63), pa.decimal128(38, 2))],
    *[
        [
            (value, pa.uint64()),
            (Decimal(value), pa.decimal128(20, 0)),
            (Decimal(value), pa.decimal256(70, 38)),
        ]
        for value in (2**63 + 1, 2**64 - 2, 2**64 - 1, 2**64 - 2**32)
    ],
    [(Decimal(2**64), pa.decimal128(20, 0)), (Decimal(2**64), pa.decimal128(38, 18))],
    [(Decimal(-(2**63) - 1), pa.decimal128(20, 0)), (Decimal(-(2**63) - 1), pa.decimal128(38, 18))],
    [(Decimal("1e-38"), pa.decimal128(38, 38))],
    [(Decimal("-1e-38"), pa.decimal128(38, 38))],
    [(-1, pa.int64()), (-1.0, pa.float32())],
    [(-(2**63), pa.int64()), (Decimal(-(2**63)), pa.decimal256(60, 20))],
    [(0, pa.int8()), (0.0, pa.float64()), (-0.0, pa.float64()), (-0.0, pa.float32())],
    [(2**53 - 1, pa.int64()), (2.0**53 - 1, pa.float64()), (Decimal(2**53 - 1), pa.decimal128(16, 0))],
    [(1 - 2**53, pa.int64()), (1.0 - 2**53, pa.float64())],
    [(2**24 - 1, pa.uint32()), (2.0**24 - 1, pa.float32()), (2.0**24 - 1, pa.float64())],
    [(2**24, pa.uint32()), (2.0**24, pa.float64())],
    [(2047, pa.int16()), (np.float16(2047), pa.float16()), (2047.0, pa.float32())],
    [(2**53, pa.int64())],
    [(2**53 + 1, pa.int64()), (2**53 + 1, pa.uint64())],
    [(Decimal("0.50"), pa.decimal128(10, 2)), (Decimal("0.5"), pa.decimal256(45, 10))],
    [(Decimal(10) ** 30, pa.decimal128(38, 0)), (Decimal(10) ** 30, pa.decimal128(38, -3))],
]


def test_units_are_equal_exactly_where_values_are() -> None:
    ids = [{unit(value, kind) for value, kind in values} for values in EQUAL]
    assert all(len(words) == 1 for words in ids)
    assert len(set.union(*ids)) == len(EQUAL)


NO_UNITS: list[tuple[pa.DataType, list[float]]] = [
    (pa.float64(), [2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**63, 2.0**64, 1e300, 0.5, -1.5, 5e-324]),
    (pa.float32(), [2.0**24, -(2.0**24), 2.0**53, 2.0**100, 0.5]),
    (pa.float16(), [2048.0, -2048.0, 65504.0, 0.5]),
]


@pytest.mark.parametrize(("kind", "values"), NO_UNITS, ids=[str(kind) for kind, _ in NO_UNITS])
def test_floats_that_may_have_been_rounded_are_told_from_nulls(
    kind: pa.DataType, values: list[float]
) -> None:
    strange = np.array([*values, np.inf, -np.inf, np.nan], kind.to_pandas_dtype())
    expected = [ROUNDED] * (len(strange) - 1) + [None]
    assert units(pa.array(strange, kind)) == expected
    assert units(pa.array(strange, kind).dictionary_encode()) == expected


@given(ids=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 9, 2**53 + 9)))
def test_ids_that_pandas_made_doubles_are_the_same_unit_or_none(ids: list[int | None]) -> None:
    whole, doubles = (
        units(pa.array(ids, pa.int64())),
        units(pa.array(ids, pa.int64()).cast(pa.float64(), safe=False)),
    )
    for number, first, second in zip(ids, whole, doubles, strict=True):
        assert second == (first if number is None or abs(number) < 2**53 else ROUNDED)


def test_dates_and_instants() -> None:
    day = dt.date(1969, 12, 31)
    assert unit(day, pa.date32()) == unit(day, pa.date64()) == unit(-1, pa.int64())
    instant = dt.datetime(1969, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
    kinds = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ("UTC", "Asia/Tokyo")]
    assert len({unit(instant, kind) for kind in kinds}) == 1
    later = [pa.scalar(step, pa.timestamp("ns")).cast(pa.timestamp("ns")) for step in (-1, 0, 1, 10**9)]
    assert len(set(units(pa.array(later)))) == 4
    assert unit(dt.datetime(9999, 12, 31, tzinfo=dt.UTC), pa.timestamp("us")) != unit(
        instant, pa.timestamp("us")
    )


def test_booleans() -> None:
    assert units(pa.array([True, False, None])) == [(1, 0), (0, 0), None]


def test_nulls_and_nan_are_no_units() -> None:
    assert units(pa.nulls(2)) == [None, None]
    assert units(pa.array([1.0, float("nan"), None])) == [unit(1, pa.int64()), None, None]
    assert units(pa.array(["a", None])) == [unit("a", pa.string()), None]
    assert units(pa.array([Decimal(1), None], pa.decimal128(5, 2))) == [unit(1, pa.int64()), None]
    assert units(pa.array([None, "x"]).dictionary_encode()) == [None, unit("x", pa.string())]
    assert units(pa.array([], pa.string())) == []


@pytest.mark.parametrize("kind", [pa.string(), pa.int32()], ids=str)
def test_dictionaries_are_their_values(kind: pa.DataType) -> None:
    reader = UnitReader("u", KEY)
    batches: list[list[str | None]] = [
        ["1", "2", None, "1"],
        ["1", "2", "9"],
        ["1"],
        ["3", "1"],
        ["1", "2", None],
    ]
    for values in batches:
        array = pa.array(values).cast(kind)
        assert units(array.dictionary_encode(), reader) == units(array)
    indices = pa.array([1, 0, None, 2], pa.int8())
    with_null = pa.DictionaryArray.from_arrays(indices, pa.array(["1", "2", None]).cast(kind))
    assert units(with_null, reader) == units(pa.array(["2", "1", None, None]).cast(kind))


def test_texts_depend_on_the_key() -> None:
    array = pa.array(["a"])
    other, _ = UnitReader("u", (3, 6)).read(pa.record_batch({"u": array}))
    assert tuple(other[0].tolist()) != units(array)[0]


def test_whole_decimals_of_any_size() -> None:
    rng = np.random.default_rng(3)
    values = [int.from_bytes(rng.bytes(8)) >> int(shift) for shift in rng.integers(0, 64, 500)]
    values += [-value for value in values if value <= 2**63]
    decimals = pa.array([Decimal(value) for value in values], pa.decimal256(60, 30))
    signed = [value < 2**63 for value in values]
    expected = [
        unit(value, pa.int64() if small else pa.uint64()) for value, small in zip(values, signed, strict=True)
    ]
    assert units(decimals) == expected
