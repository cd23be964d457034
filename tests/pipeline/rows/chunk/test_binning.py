"""Bins of every Arrow layout, against the definition on exact values; and edges against their own types."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.binning import BinReader
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
from suffice.pipeline.terms.statistics.measure import BinColumn

TENTHS = HistogramBins(
    edges=tuple(Fraction(each, 10) for each in (-20, -3, 1, 3, 10, 20)), atoms=(Fraction(0), Fraction(7, 10))
)
"""None of its inner edges, nor one of its atoms, is a number in float64."""
LARGE = HistogramBins(
    edges=tuple(Fraction(edge) for edge in (-(2**70), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1, 2**64, 2**70)),
    atoms=(Fraction(2**53 + 1),),
)


def codes(bins: HistogramBins, column: pa.Array, nulls: Fraction | None = None) -> list[int]:
    return [int(code) for code in BinReader(BinColumn.of("x", bins, nulls)).codes(column)]


def defined(bins: HistogramBins, values: list[Any]) -> list[int]:
    return [-1 if value is None else bins.position(Fraction(value)) for value in values]


def test_integers_are_compared_exactly_at_any_magnitude() -> None:
    edges = [int(edge) for edge in LARGE.edges]
    around = sorted({edge + step for edge in edges for step in (-1, 0, 1)})
    for kind in (pa.int64(), pa.uint64(), pa.int8(), pa.uint32()):
        limits = np.iinfo(kind.to_pandas_dtype())
        values = [
            *(value for value in around if limits.min <= value <= limits.max), limits.min, limits.max, None
        ]  # fmt: skip
        assert codes(LARGE, pa.array(values, kind)) == defined(LARGE, values), kind


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal32(7, 2),
        pa.decimal64(16, 3),
        pa.decimal128(38, 1),
        pa.decimal128(38, 25),
        pa.decimal256(60, 30),
    ],
    ids=str,
)
def test_decimals_are_compared_exactly(kind: pa.DataType) -> None:
    step = Fraction(1, 10**kind.scale)
    around = [edge + sign * step for edge in (*TENTHS.edges, *TENTHS.atoms) for sign in (-1, 0, 1)]
    largest = 10 ** (min(kind.precision, 38) - kind.scale) - 1
    values = [_decimal(number) for number in [*around, Fraction(largest), Fraction(-largest)]]
    column = pa.array([*values, None], kind)
    assert codes(TENTHS, column) == defined(TENTHS, [*values, None])
    assert codes(TENTHS, column.slice(3, 4)) == defined(TENTHS, values[3:7])


def _decimal(number: Fraction) -> Decimal:
    with __import__("decimal").localcontext(prec=60):
        return Decimal(number.numerator) / Decimal(number.denominator)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_value_written_as_an_edge_is_at_it_in_every_floating_point_type(kind: Any) -> None:
    for position, of in enumerate(TENTHS):
        at = kind(float(of.begins))
        written, after, before = (np.asarray([value], kind) for value in (at, _next(at, 1), _next(at, -1)))
        holds = position if of.holds_lower else position - 1
        assert codes(TENTHS, pa.array(written)) == [holds]
        assert codes(TENTHS, pa.array(after)) == [position + of.is_atom]
        previous = max(position - 1 - (not of.holds_lower), 0)
        assert codes(TENTHS, pa.array(before)) == [previous]


def _next(value: Any, sign: int) -> Any:
    return np.nextafter(value, type(value)(sign * math.inf))


def test_values_beyond_bounds_count_at_their_end_and_nan_is_a_null() -> None:
    column = pa.array([-math.inf, -1e300, math.inf, 1e300, math.nan, None])
    last = len(TENTHS) - 1
    assert codes(TENTHS, column) == [0, 0, last, last, -1, -1]
    assert codes(TENTHS, column, Fraction(0))[4:] == [TENTHS.position(Fraction(0))] * 2
    topped = HistogramBins(edges=(Fraction(0), Fraction(1), Fraction(90)), atoms=(Fraction(90),))
    assert codes(topped, pa.array([89.9, 90.0, 95.0])) == [1, 2, 2]


def test_slices_dictionaries_and_nulls_alone() -> None:
    column = pa.array([-2.0, 0.0, None, 0.7, 5.0] * 5)
    expected = defined(TENTHS, [-2, 0, None, Fraction(7, 10), 5]) * 5
    for offset in range(9):
        assert codes(TENTHS, column.slice(offset, 11)) == expected[offset : offset + 11]
    assert codes(TENTHS, column.dictionary_encode()) == expected
    assert codes(TENTHS, pa.nulls(3)) == [-1] * 3
    assert codes(TENTHS, pa.nulls(2, pa.float64()), Fraction(5)) == [len(TENTHS) - 1] * 2


def test_edges_that_are_one_number_in_a_narrow_type_leave_bins_empty() -> None:
    near = HistogramBins(
        edges=(Fraction(0), Fraction(1), 1 + Fraction(1, 10**12), 1 + Fraction(2, 10**12), Fraction(2)),
        atoms=(Fraction(1),),
    )
    narrow = codes(near, pa.array(np.array([0.5, 1.0, 1.5], np.float32)))
    assert narrow[0] == 0
    assert narrow[2] == len(near) - 1
    assert sorted(narrow) == narrow


@pytest.mark.slow
@given(
    st.lists(st.fractions(-50, 50, max_denominator=40), min_size=3, max_size=8, unique=True),
    st.lists(st.integers(0, 7), max_size=3, unique=True),
    st.lists(st.integers(-60, 60), min_size=1, max_size=20),
)
def test_every_integer_has_one_bin(edges: list[Fraction], atoms: list[int], values: list[int]) -> None:
    ordered = sorted(edges)
    chosen = sorted({(ordered[0] + ordered[-1]) * Fraction(atom, 14) for atom in atoms})
    inside = tuple(atom for atom in chosen if ordered[0] <= atom <= ordered[-1])
    bins = HistogramBins(edges=tuple(ordered), atoms=inside)
    assert codes(bins, pa.array(values, pa.int64())) == defined(bins, values)
    for value in values:
        clipped = min(max(Fraction(value), ordered[0]), ordered[-1])
        holding = [
            position
            for position, of in enumerate(bins)
            if of.begins < clipped < of.ends
            or (clipped == of.begins and of.holds_lower)
            or (clipped == of.ends and of.holds_upper)
        ]
        assert holding == [bins.position(Fraction(value))]
