"""Codes of every Arrow layout, against what the values are in Python."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.terms.declaration.domain_lookup import Dense, Sparse, lookup
from suffice.pipeline.terms.declaration.domains import (
    Domain,
    DomainKind,
    Every,
    boolean_domain,
    period_label,
    period_labels,
)


def listed(*keys: str) -> Domain:
    return Domain(kind=DomainKind.LIST, keys=keys)


def ranged(first: int, last: int) -> Domain:
    return Domain(kind=DomainKind.RANGE, keys=range(first, last + 1))


def codes(domain: Domain, column: pa.Array, missing: int = -1) -> list[int]:
    return [int(code) for code in Encoder(domain, missing).codes(column)]


def test_slices_keep_their_values_and_their_nulls() -> None:
    layouts: list[tuple[Domain, pa.Array]] = [
        (listed("a", "b"), pa.array(["a", "b", None, "c"] * 9)),
        (listed("a", "b"), pa.array(["a", "b", None, "c"] * 9, pa.string_view())),
        (listed("a", "b"), pa.array(["a", "b", None, "c"] * 9).dictionary_encode()),
        (ranged(1, 2), pa.array([1, 2, None, 3] * 9, pa.int16())),
        (ranged(1, 2), pa.array([1.0, 2.0, None, 1.5] * 9)),
        (listed("false", "true"), pa.array([False, True, None, None] * 9)),
        (boolean_domain(), pa.array([False, True, None, None] * 9)),
        (listed("1", "2"), pa.array([Decimal(1), Decimal(2), None, Decimal(3)] * 9, pa.decimal128(9, 3))),
    ]
    for domain, column in layouts:
        expected = [0, 1, -1, -1] * 9
        for offset in range(12):
            assert codes(domain, column.slice(offset, 17)) == expected[offset : offset + 17], column.type
        assert codes(domain, column.slice(3, 0)) == []


def test_garbage_under_nulls_is_never_seen() -> None:
    validity = pa.py_buffer(bytes([0b00000101]))
    indices = pa.py_buffer(np.array([1, 2**30, 0], np.int32))
    column = pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 3, [validity, indices], pa.array(["a", "b"])
    )
    assert codes(listed("a", "b"), column) == [1, -1, 0]
    numbers = pa.Array.from_buffers(pa.float64(), 3, [validity, pa.py_buffer(np.array([1.0, 1.0, 2.0]))])
    assert codes(ranged(1, 2), numbers) == [0, -1, 1]


def test_dictionaries_may_hold_nulls_duplicates_and_strangers() -> None:
    dictionary = pa.array(["b", None, "a", "b", "x"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4, None, 0], pa.int8()), dictionary)
    assert codes(listed("a", "b"), column) == [1, -1, 0, 1, -1, -1, 1]
    assert codes(listed("a", "b"), column, missing=2) == [1, 2, 0, 1, 2, 2, 1]


def test_dictionaries_may_grow_shrink_and_change_between_batches() -> None:
    encoder = Encoder(listed("a", "b", "c"))
    batches: list[tuple[list[str | None], list[int]]] = [
        (["a"], [0]),
        (["a", "b"], [0, 1]),
        (["a", "b", None, "c"], [0, 1, -1, 2]),
        (["c"], [2]),
        (["b", "a"], [1, 0]),
        ([], []),
        (["a", "b"], [0, 1]),
    ]
    for dictionary, expected in batches:
        indices = pa.array(range(len(dictionary)), pa.int32())
        column = pa.DictionaryArray.from_arrays(indices, pa.array(dictionary, pa.string()))
        assert encoder.codes(column).tolist() == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(9, 2), pa.date32()])
def test_dictionaries_of_other_types(kind: pa.DataType) -> None:
    values: list[Any] = [1, 2, 3]
    keys = listed("2", "1")
    if kind == pa.decimal128(9, 2):
        values = [Decimal(value) for value in values]
    if kind == pa.date32():
        values = [dt.date(2013, 1, day) for day in values]
        keys = listed("2013-01-02", "2013-01-01")
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int32()), pa.array(values, kind))
    assert codes(keys, column) == [1, 0, -1, -1]


def test_a_column_of_nulls_alone() -> None:
    assert codes(listed("a"), pa.nulls(3)) == [-1, -1, -1]
    assert codes(boolean_domain(), pa.nulls(2), missing=1) == [1, 1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-128, 127, 0]),
        (pa.uint8(), [0, 255, 1]),
        (pa.int64(), [-(2**63), 2**63 - 1, 0]),
        (pa.uint64(), [0, 2**64 - 1, 2**63]),
        (pa.float16(), [1.0, 0.5, -2.0]),
        (pa.float32(), [0.1, 16777216.0, -0.5]),
        (pa.float64(), [0.1, 2.0**63, 1e300]),
        (pa.decimal32(7, 2), [Decimal("1.25"), Decimal(-3), Decimal("99999.99")]),
        (pa.decimal64(18, 2), [Decimal("1.25"), Decimal(-3), Decimal(0)]),
        (pa.decimal256(60, 20), [Decimal("1.25"), Decimal(10) ** 30, Decimal(0)]),
    ],
)
def test_numeric_keys_are_found_in_every_width(kind: pa.DataType, values: list[Any]) -> None:
    array = [np.float16(value) for value in values] if kind == pa.float16() else values
    domain = listed("x", *map(str, values), "1e200", "7.5")
    assert codes(domain, pa.array(array, kind)) == [1, 2, 3]


def test_zero_is_found_whatever_its_sign() -> None:
    column = pa.array([0.0, -0.0, 0.5])
    assert codes(listed("0"), column) == [0, 0, -1]
    assert codes(listed("0", "0.5"), column) == [0, 0, 1]
    assert codes(ranged(0, 1), column) == [0, 0, -1]
    assert codes(boolean_domain(), column) == [0, 0, -1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63), 1e300, 0.5])
def test_numbers_that_are_no_key_are_no_key(value: float) -> None:
    column = pa.array([value])
    for domain in (
        ranged(-(2**63), -(2**63) + 5),
        ranged(2**63 - 9, 2**63 - 3),
        listed("0", "1"),
        listed("0.1"),
    ):
        expected = [0] if value == -(2.0**63) and domain[0] == -(2**63) else [-1]
        assert codes(domain, column) == expected


def test_keys_that_a_column_cannot_hold_never_match() -> None:
    assert codes(listed("1.5", "300", "-1", "one"), pa.array([1, 44, 255], pa.uint8())) == [-1, -1, -1]
    assert codes(listed("nan", "inf", "1e400"), pa.array([math.nan, math.inf])) == [-1, -1]
    assert codes(listed("1e39"), pa.array([math.inf, 3.4028235e38], pa.float32())) == [-1, -1]
    assert codes(listed("0.001"), pa.array([Decimal("0.00")], pa.decimal128(5, 2))) == [-1]
    assert codes(listed("1", "0"), pa.array([True, False])) == [-1, -1]
    assert codes(listed("2013-1-1", "20130101", "2013-02-30"), pa.array([dt.date(2013, 1, 1)])) == [-1]
    assert codes(ranged(0, 9), pa.array(["01", "+1", " 1", "1.0", "1"])) == [-1, -1, -1, -1, 1]


def test_a_float_key_is_the_nearest_number_of_the_columns_width() -> None:
    # Rounded to float64 first, this key would lie on a tie and go the wrong way.
    key = "1.00000005960464477626"
    beyond_tie = Fraction(key) - (1 + Fraction(1, 2**24))
    assert 0 < beyond_tie < Fraction(1, 2**54)
    above = np.nextafter(np.float32(1), np.float32(2))
    assert np.float32(float(key)) == np.float32(1)
    assert codes(listed(key), pa.array([1.0, float(above)], pa.float32())) == [-1, 0]


def test_of_two_keys_that_become_one_value_the_first_counts() -> None:
    assert codes(listed("0.1", "0.10000000001"), pa.array([0.1], pa.float32())) == [0]
    assert codes(listed("0.10000000001", "0.1"), pa.array([0.1], pa.float32())) == [0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_timestamps_belong_to_their_day_in_utc(unit: str, zone: str | None) -> None:
    texts = ["2013-01-31 23:59:59", "2013-02-01 00:00:00", "1969-12-31 23:59:59", None]
    instants = pa.array(texts).cast(pa.timestamp("us")).cast(pa.timestamp(unit))
    column = instants.cast(pa.timestamp(unit, zone))
    months = Domain(kind=DomainKind.PERIOD, keys=("2013-01", "2013-02"), every=Every.MONTH)
    days = Domain(kind=DomainKind.PERIOD, keys=("1969-12-31", "1970-01-01"), every=Every.DAY)
    assert codes(months, column) == [0, 1, -1, -1]
    assert codes(days, column) == [-1, -1, 0, -1]
    exact = listed("2013-02-01", "2013-01-31 23:59:59", "1969-12-31T23:59:59.5")
    assert codes(exact, column) == [1, 0, -1, -1]
    aware = listed("2013-02-01T01:00+01:00")
    assert codes(aware, column) == ([-1] * 4 if zone is None else [-1, 0, -1, -1])


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
@pytest.mark.parametrize("every", list(Every))
def test_every_day_falls_into_its_period(kind: pa.DataType, every: Every) -> None:
    first = dt.date(1999, 12, 25)
    days = [first + dt.timedelta(days=number) for number in range(500)]
    start, end = (period_label(day, every) for day in (dt.date(2000, 1, 1), dt.date(2001, 1, 15)))
    labels = period_labels(start, end, every)
    domain = Domain(kind=DomainKind.PERIOD, keys=labels, every=every)
    expected = [labels.index(label) if (label := period_label(day, every)) in labels else -1 for day in days]
    assert codes(domain, pa.array(days, kind)) == expected


def test_keys_far_apart_are_searched_for_and_near_ones_indexed() -> None:
    near, far = listed("5", "-3", "9"), listed("5", "-3", "9000000000000")
    assert isinstance(lookup(near, pa.int64()), Dense)
    assert isinstance(lookup(far, pa.int64()), Sparse)
    column = pa.array([-3, 5, 9, 9_000_000_000_000, 4, None])
    assert codes(near, column) == [1, 0, 2, -1, -1, -1]
    assert codes(far, column) == [1, 0, -1, 2, -1, -1]
    assert codes(listed("x"), column) == [-1] * 6


def test_a_dictionary_is_looked_up_once_over_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(kind=DomainKind.LIST, keys=("a", "b", "c"))
    entries = (["a", "b", "x"], ["x", "c"], ["b"])
    arrays = [pa.array(texts * 3).dictionary_encode() for texts in entries]
    looked_up: list[list[str]] = []
    inner = Encoder._codes_by_value

    def counted(self: Encoder, column: pa.Array) -> object:
        looked_up.append(column.to_pylist())
        return inner(self, column)

    monkeypatch.setattr(Encoder, "_codes_by_value", counted)
    encoder = Encoder(domain)
    expected = [[{"a": 0, "b": 1, "c": 2}.get(text, -1) for text in texts * 3] for texts in entries]
    for _ in range(4):
        assert [encoder.codes(array).tolist() for array in arrays] == expected
    assert looked_up == list(entries)
    sliced = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["z", "a", "b"]).slice(1))
    assert encoder.codes(sliced).tolist() == [1, 0]


def test_few_texts_among_many_keys_have_the_same_codes() -> None:
    keys = tuple(f"key-{number}" for number in range(1000))
    texts = ["key-3", "absent", "key-999", "", "key-0"]
    domain = Domain(kind=DomainKind.LIST, keys=keys)
    for missing in (-1, 1000):
        many = Encoder(domain, missing).codes(pa.array([*texts, None] * 100))
        few = Encoder(domain, missing).codes(pa.array([*texts, None]))
        assert few.tolist() == many.tolist()[:6] == [3, missing, 999, missing, 0, missing]


def test_bytes_that_are_no_text_are_no_key_however_many_rows_there_are() -> None:
    domain = listed(*(f"key {place}" for place in range(100)))
    for n_rows in (2, 100):
        values = [b"key 3", b"\xff\xfe", *[b"key 4"] * (n_rows - 2)]
        binary = pa.array(values, pa.binary())
        texts = pa.Array.from_buffers(pa.string(), n_rows, binary.buffers())
        assert codes(domain, texts) == [3, -1, *[4] * (n_rows - 2)]
