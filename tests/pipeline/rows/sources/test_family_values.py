"""Values of files by their contract: total, value by value, and bounded by unit whatever a writer chose."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.sources import contracted_columns
from suffice.pipeline.rows.sources.column_values import ARROW_TYPES, as_family, stored_family
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from support.hostile import categorical, make_spec
from support.units import KEY, by_customer, sum_tasks

if TYPE_CHECKING:
    from pathlib import Path

F = ColumnFamily
DAY = dt.date(2013, 1, 5)
NOON = dt.datetime(2013, 1, 5, 12)  # noqa: DTZ001 - a time without a zone

READ: list[tuple[Any, pa.DataType, ColumnFamily, Any]] = [
    (5, pa.int32(), F.FLOATING, 5),
    (5.0, pa.float64(), F.INTEGER, 5),
    ("5", pa.string(), F.INTEGER, 5),
    ("5.0", pa.large_string(), F.INTEGER, 5),
    ("x", pa.string(), F.INTEGER, None),
    ("5.5", pa.string_view(), F.DECIMAL, 5.5),
    (True, pa.bool_(), F.INTEGER, 1),
    (1.0, pa.float64(), F.BOOLEAN, True),
    (0, pa.uint8(), F.BOOLEAN, False),
    (2, pa.int64(), F.BOOLEAN, None),
    ("TRUE", pa.string(), F.BOOLEAN, True),
    (5, pa.int64(), F.TEXT, "5"),
    (5.0, pa.float64(), F.TEXT, "5"),
    (5.5, pa.float64(), F.TEXT, None),
    (2.0**53, pa.float64(), F.TEXT, None),
    (Decimal("5.00"), pa.decimal128(10, 2), F.TEXT, "5"),
    (Decimal("5.50"), pa.decimal128(10, 2), F.TEXT, None),
    (True, pa.bool_(), F.TEXT, "true"),
    (DAY, pa.date32(), F.TEXT, "2013-01-05"),
    (NOON, pa.timestamp("us"), F.DATE, DAY),
    (DAY, pa.date64(), F.TIMESTAMP, dt.datetime(2013, 1, 5)),  # noqa: DTZ001
    ("2013-01-05", pa.string(), F.DATE, DAY),
    (NOON, pa.timestamp("us", "UTC"), F.DATE, None),
    ("2013-01-05T12:00Z", pa.string(), F.TIMESTAMP_WITH_ZONE, NOON.replace(tzinfo=dt.UTC)),
    ([1], pa.list_(pa.int64()), F.INTEGER, None),
    (b"5", pa.binary(), F.INTEGER, None),
    (NOON.time(), pa.time64("us"), F.TIMESTAMP, None),
]


@pytest.mark.parametrize(("value", "kind", "family", "expected"), READ)
def test_a_value_means_the_same_in_every_type(
    value: Any, kind: pa.DataType, family: ColumnFamily, expected: Any
) -> None:
    column = pa.array([None, value, None], kind)
    assert as_family(column, family).to_pylist() == [None, expected, None]
    if not pa.types.is_nested(kind) and kind != pa.string_view():
        assert as_family(column.dictionary_encode(), family).to_pylist() == [None, expected, None]


def test_no_type_and_no_value_is_an_error() -> None:
    """Every type beside every family, with extremes of each and without a row."""
    kinds = [
        *(pa.int8(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()),
        *(pa.string(), pa.large_string(), pa.date32(), pa.date64(), pa.null(), pa.binary(), pa.time32("s")),
        *(pa.decimal32(5, 2), pa.decimal128(38, 9), pa.decimal256(76, 38), pa.duration("s")),
        *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    ]
    for kind, family in itertools.product(kinds, F):
        for column in (pa.array([], kind), pa.nulls(3, kind), _extremes(kind)):
            read = as_family(column, family)
            assert len(read) == len(column)
            alike = {stored_family(read.type), family} <= {F.INTEGER, F.FLOATING, F.DECIMAL}
            assert (
                read.type in {ARROW_TYPES[family], pa.null()} or stored_family(read.type) is family or alike
            )


def _extremes(kind: pa.DataType) -> pa.Array:
    width: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind):
        return pa.nulls(1, kind)
    if pa.types.is_floating(kind):
        return pa.array(np.array([np.nan, np.inf, -np.inf, 0.0], kind.to_pandas_dtype()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return pa.array(["", "nan", "9" * 400, "2013-02-30"]).cast(kind)
    if pa.types.is_date64(kind):
        return pa.array([dt.date.min, dt.date.max]).cast(kind)
    numbers = np.iinfo(width[kind.bit_width])
    values = np.array([numbers.min, numbers.max, 0], numbers.dtype)
    if pa.types.is_unsigned_integer(kind):
        return pa.array(values.view(f"u{numbers.dtype}"))
    return pa.array(values).view(kind)


def totals(directory: Path, tables: list[pa.Table], family: str, nulls: str) -> Any:
    """Return exact totals of files by a contract whose unit is of a family."""
    for path in directory.glob("*.parquet"):
        path.unlink()
    for number, table in enumerate(tables):
        pq.write_table(table, directory / f"{number}.parquet")
    stated = {
        "columns": {"u": family, "k": "text"},
        "unit": "column:u",
        "source": {"kind": "parquet"},
    }
    contract = parse_contract(json.dumps(stated), "contract")
    unit = by_customer(2, nulls=nulls)
    spec = make_spec(
        directory,
        {"s": categorical("k", ["a"])},
        privacy={"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
    )
    with_contract = sources.splits(sources.pin(spec, contract=contract))
    return to_python(sum_tasks(chunk_job(spec), list(with_contract), KEY))["s"].ravel()


def rows(ids: pa.Array) -> pa.Table:
    return pa.table({"u": ids, "k": pa.array(["a"] * len(ids))})


@pytest.mark.parametrize("nulls", ["drop", "own_unit"])
def test_one_text_among_ids_takes_no_other_row_away(tmp_path: Path, nulls: str) -> None:
    """One record lets a writer type the column as text: other people's rows stay what they were."""
    plain = totals(tmp_path, [rows(pa.array([3, 3, 3, 5, 7]))], "integer", nulls)
    dirty = totals(tmp_path, [rows(pa.array(["3", "3", "3", "5", "7", "n/a"]))], "integer", nulls)
    with_null = totals(tmp_path, [rows(pa.array([3.0, 3.0, 3.0, 5.0, 7.0]))], "integer", nulls)
    assert plain.tolist() == dirty.tolist() == with_null.tolist()
    assert plain.sum() == 4


@pytest.mark.parametrize("family", ["integer", "text"])
def test_a_person_whose_id_does_not_read_is_not_many_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    """Under own_unit a null is a unit: a hundred rows of one person must not become a hundred."""
    lacking = rows(pa.array([1.5] * 100)) if family == "text" else rows(pa.array(["id of a person"] * 100))
    beside = rows(pa.array([3, None]))
    found = totals(tmp_path, [beside, lacking], family, "own_unit")
    assert found.sum() == 2
    absent = [beside, lacking.drop_columns(["u"]), rows(pa.array([[1]] * 100))]
    assert totals(tmp_path, absent, family, "own_unit").sum() == 2
    assert totals(tmp_path, [beside, rows(pa.nulls(5))], family, "own_unit").sum() == 7, "nulls are units"

    monkeypatch.setattr(  # a mutant: what does not read is a null
        contracted_columns, "_is_missing", lambda column: pa.array([True] * len(column))
    )
    assert totals(tmp_path, [beside, lacking], family, "own_unit").sum() == 102


def test_an_instant_is_one_unit_in_text_and_in_nanoseconds(tmp_path: Path) -> None:
    """Texts are read to the microsecond: with nine digits in one file alone a person would be two units."""
    instant = "1969-12-31T23:59:59.123456789"
    exact = pa.array([np.datetime64(instant, "ns")] * 5)
    found = totals(tmp_path, [rows(exact), rows(pa.array([instant] * 5))], "timestamp", "drop")
    assert found.sum() == 2
