"""Draws of a quantity that may not be defined, be infinite, or have no moments.

Rows of a caller's own are read by the rule that a release counts by.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import UsageError
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity, array_of, codes_of, columns_of
from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.terms.declaration.domains import (
    Domain,
    DomainKind,
    Every,
    boolean_domain,
    period_labels,
)

NORMAL = np.random.default_rng(3).normal(5.0, 2.0, (4001, 2))


def test_moments_and_quantiles_are_those_of_the_draws() -> None:
    summary = DrawnQuantity(draws=NORMAL).summary(0.8)
    np.testing.assert_allclose(summary["mean"], NORMAL.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(summary["sd"], NORMAL.std(axis=0), rtol=1e-12)
    for name, level in (("lower", 0.1), ("median", 0.5), ("upper", 0.9)):
        np.testing.assert_allclose(summary[name], np.quantile(NORMAL, level, axis=0), atol=0.01)


def test_what_is_not_defined_is_left_out_and_counted() -> None:
    draws = np.concatenate([NORMAL, np.full((4001, 2), np.nan)])
    quantity, plain = DrawnQuantity(draws=draws), DrawnQuantity(draws=NORMAL)
    np.testing.assert_array_equal(quantity.undefined_share, [0.5, 0.5])
    for name, values in quantity.summary().items():
        np.testing.assert_allclose(values, plain.summary()[name], rtol=1e-12)
    np.testing.assert_allclose(quantity.probability(above=5.0), plain.probability(above=5.0) / 2)
    nothing = DrawnQuantity(draws=np.full((3, 1), np.nan))
    assert all(np.isnan(values).all() for values in nothing.summary().values())


def test_infinite_draws_have_quantiles_and_no_moments() -> None:
    quantity = DrawnQuantity(draws=np.array([[1.0], [2.0], [np.inf]]), has_moments=False)
    assert np.isnan(quantity.mean).all()
    assert np.isnan(quantity.sd).all()
    np.testing.assert_array_equal(quantity.quantile(0.5), [2.0])
    np.testing.assert_array_equal(quantity.credible_interval(0.9), [[1.0, np.inf]])


@pytest.mark.parametrize("mass", [0.0, 1.0, "a"])
def test_masses_outside_of_0_to_1_are_refused(mass: float) -> None:
    with pytest.raises(UsageError, match="mass"):
        DrawnQuantity(draws=NORMAL).credible_interval(mass)


DOMAINS = (
    Domain(kind=DomainKind.LIST, keys=("a", "b", "1", "2.50", "true", "2013-01-05", "-0")),
    Domain(kind=DomainKind.LIST, keys=("false", "true")),
    Domain(kind=DomainKind.LIST, keys=("0.1", "1e3", "7")),
    Domain(kind=DomainKind.LIST, keys=("9007199254740993", "-5", "18446744073709551615")),
    Domain(kind=DomainKind.RANGE, keys=range(-2, 9)),
    Domain(kind=DomainKind.PERIOD, keys=period_labels("2012-12", "2013-03", Every.MONTH), every=Every.MONTH),
    boolean_domain(),
)
TEXT = st.sampled_from(["a", "b", "1", "01", "2.50", "2.5", "true", "", "-0", "7", "2013-01"])
NUMBER = st.sampled_from(
    [0.0, -0.0, 1.0, 2.5, 0.1, 1000.0, -2.0, 8.0, 9.0, float("nan"), float("inf"), 1e300]
)
DAY = st.dates(dt.date(2012, 11, 1), dt.date(2013, 4, 30))
INSTANT = DAY.map(lambda day: dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC))
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.dictionary(pa.int8(), pa.string()): TEXT,
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.sampled_from([-5, -2, 0, 1, 8, 9, 2**53 + 1, 2**63 - 1, -(2**63)]),
    pa.uint64(): st.sampled_from([0, 1, 8, 2**53 + 1, 2**64 - 1]),
    pa.float32(): NUMBER.map(np.float32),
    pa.float64(): NUMBER,
    pa.decimal128(9, 2): st.sampled_from([Decimal("2.50"), Decimal(1), Decimal("0.10"), Decimal(1000)]),
    pa.date32(): DAY,
    pa.date64(): DAY,
    pa.timestamp("ms"): INSTANT.map(lambda instant: instant.replace(tzinfo=None)),
    pa.timestamp("us", "UTC"): INSTANT,
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.filterwarnings("ignore:overflow")
@settings(max_examples=40)
@given(data=st.data())
def test_codes_are_those_of_a_release(kind: pa.DataType, data: Any) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=30))
    column = pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind)
    column = column if column.type == kind else column.cast(kind)
    offset = data.draw(st.integers(0, len(column)))
    of_dates = pa.types.is_temporal(kind)
    for domain in DOMAINS:
        if domain.kind is DomainKind.PERIOD and not of_dates:
            continue  # the schema check refuses it
        expected = Encoder(domain).codes(column.slice(offset))
        assert codes_of(column.slice(offset), domain).tolist() == expected.tolist()


def test_columns_that_no_release_could_count_have_no_category() -> None:
    domain = Domain(kind=DomainKind.LIST, keys=("1",))
    for column in (
        pa.nulls(2),
        pa.array([[1], [2]]),
        pa.array([b"1", b"2"]),
        pa.array([dt.time(1), None]),
        pa.array([1, 2], pa.duration("s")),
        pa.array([(0, 1, 0), None], pa.month_day_nano_interval()),
    ):
        assert codes_of(column, domain).tolist() == [-1, -1], column.type


def test_text_is_found_among_periods_by_its_label() -> None:
    months = Domain(kind=DomainKind.PERIOD, keys=("2013-01", "2013-02"), every=Every.MONTH)
    assert codes_of(pa.array(["2013-02", "2013-2", None, "2013-01"]), months).tolist() == [1, -1, -1, 0]


def test_rows_are_mappings_of_arrays_or_tables() -> None:
    pd = pytest.importorskip("pandas")

    columns: dict[str, Any] = {"x": np.array(["a", "b"]), "y": np.array([1.0, np.nan]), "z": [[1], "b"]}
    for rows in (columns, pa.table({"x": ["a", "b"], "y": [1, 2]}), pd.DataFrame({"x": ["a", "b"], "y": 1})):
        assert columns_of(rows, ["x", "absent"])["x"].to_pylist() == ["a", "b"]
    assert columns_of(columns, ["absent"]) == {}
    assert array_of("x", np.array(["a", np.nan, None], dtype=object)).to_pylist() == ["a", None, None]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"x": "text"}, "'x'"),
        ({"x": [1, "secret-7"]}, "'x'"),
        ({"x": np.zeros((2, 2))}, "'x'"),
        ({"x": 3}, "'x'"),
        ({"x": {"a": 1}}, "'x'"),
        ({"x": [1, 2], "y": [1]}, "x, y"),
        (7, "mapping of columns"),
        ([1, 2], "mapping of columns"),
        (pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), "more than one column 'x'"),
    ],
)
def test_other_rows_are_refused_without_a_value(rows: object, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        columns_of(rows, ["x", "y"])
    assert "secret-7" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
