"""Texts and numbers read in stated ways: what each is, and that whatever else a column holds is null."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.partition import ChunkJob
from suffice.pipeline.terms.declaration.derived_columns import read_derived

UTC = dt.UTC
NAN = float("nan")


def derive(entry: dict[str, Any], values: list[Any], kind: pa.DataType | None = None) -> list[Any]:
    job = ChunkJob(measures={}, groups={}, derived={"new": read_derived("new", entry, None)})
    column = pa.array(values, kind)
    (found,) = with_derived([pa.RecordBatch.from_pydict({"x": column})], job, ["new"])
    (again,) = with_derived([pa.RecordBatch.from_pydict({"x": column.dictionary_encode()})], job, ["new"])
    assert found.column("new").to_pylist() == again.column("new").to_pylist()
    result: list[Any] = found.column("new").to_pylist()
    return result


def test_dates_of_english_months_with_a_pivot() -> None:
    entry = {"column": "x", "parse": "date", "format": "%d-%b-%y", "pivot": "1970"}
    texts = ["14-NOV-93", "5-jan-13", " 05-May-70\t", "30-FEB-13", "x", "", None]
    first = [dt.date(1993, 11, 14), dt.date(2013, 1, 5), dt.date(1970, 5, 5)]
    assert derive(entry, texts) == [*first, None, None, None, None]


def test_times_of_day() -> None:
    entry = {"column": "x", "parse": "timestamp", "format": "%m/%d/%Y %I:%M:%S.%f %p"}
    texts = ["1/5/2013 12:30:00.5 am", "01/05/2013 12:30:00.000001 PM", "1/5/2013 0:30:00.1 am"]
    noon = dt.datetime(2013, 1, 5, 12, 30, 0, 1)  # noqa: DTZ001 - as written
    assert derive(entry, texts) == [dt.datetime(2013, 1, 5, 0, 30, 0, 500_000), noon, None]  # noqa: DTZ001


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(10, 1)])
def test_digits_of_integers_are_dates(kind: pa.DataType) -> None:
    entry = {"column": "x", "parse": "date", "format": "%Y%m%d"}
    assert derive(entry, [20130105, 20130230, None, -5], kind) == [dt.date(2013, 1, 5), None, None, None]


@pytest.mark.parametrize(
    ("epoch", "value", "instant"),
    [
        ("seconds", 1_357_000_000, dt.datetime(2013, 1, 1, 0, 26, 40, tzinfo=UTC)),
        ("seconds", -1, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("seconds", 253_402_300_799, dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("seconds", 253_402_300_800, None),
        ("seconds", -62_135_596_801, None),
        ("milliseconds", 1_357_000_000_123, dt.datetime(2013, 1, 1, 0, 26, 40, 123_000, tzinfo=UTC)),
        ("nanoseconds", -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("days", 2**63 - 1, None),
    ],
)
def test_instants_since_1970(epoch: str, value: int, instant: dt.datetime | None) -> None:
    entry = {"column": "x", "parse": "timestamp", "epoch": epoch}
    assert derive(entry, [value, None]) == derive(entry, [str(value), "x"]) == [instant, None]


@pytest.mark.parametrize(
    ("how", "texts", "numbers"),
    [
        ({}, ["25", " -2.5 ", "1e3", ".5", "5.", "1e999"], [25, -2.5, 1000, 0.5, 5, float("inf")]),
        ({}, ["25K", "1,234", "", ".", "0x1", "nan"], [None] * 6),
        (
            {"suffixes": {"K": "1000", "M": "1000000", "MM": "12", "%": "0.01"}},
            ["25K", "2.55M", "2 MM", "-5%", "7", "1e2", "25k", "K", "1e2K", "2  M"],
            [25_000, 2_550_000, 24, -0.05, 7, 100, None, None, None, None],
        ),
        (
            {"decimal": ",", "thousands": "."},
            ["1.234.567,89", "1234,5", "12.34", ",5"],
            [1_234_567.89, 1234.5, None, 0.5],
        ),
        ({"thousands": "space"}, ["1 234", "1 23", "1234"], [1234, None, 1234]),
    ],
)
def test_numbers_with_signs_and_suffixes(
    how: dict[str, Any], texts: list[str], numbers: list[float | None]
) -> None:
    assert derive({"column": "x", "parse": "number", **how}, texts) == numbers


def test_numbers_are_as_they_are() -> None:
    entry = {"column": "x", "parse": "number", "suffixes": {"K": "1000"}}
    assert derive(entry, [1.5, NAN, None]) == [1.5, None, None]


def test_bins_and_cuts() -> None:
    ages = [-1.0, 0.0, 17.9, 18.0, 65.0, 65.1, NAN, None]
    bins = derive({"column": "x", "bins": ["0", "18", "65"]}, ages)
    assert bins == [None, 0.0, 0.0, 18.0, 18.0, None, None, None]
    cut = derive({"column": "x", "cut": ["18", "65"], "labels": ["child", "adult", "old"]}, ages)
    assert cut == ["child", "child", "child", "adult", "old", "old", None, None]


def test_bytes_that_are_no_text_are_null() -> None:
    column = pa.array([b"\xff25", b"25"], pa.binary()).view(pa.string())
    entry = {"column": "x", "parse": "number"}
    job = ChunkJob(measures={}, groups={}, derived={"new": read_derived("new", entry, None)})
    (found,) = with_derived([pa.RecordBatch.from_pydict({"x": column})], job, ["new"])
    assert found.column("new").to_pylist() == [None, 25.0]
