"""Rows that every kind of source can hold, hostile ones among them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

DAY = dt.date(2013, 1, 1)
MOMENT = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "real": (
        [0.0, -0.0, 0.5, 1e30, -1e308, 5e-324, 2.0**53 + 2, math.inf, -math.inf, math.nan, 9.999999],
        pa.float64(),
    ),
    "single": ([0.0, 0.1, 1e38, math.inf, math.nan, -3.3], pa.float32()),
    "whole": ([-(2**63), 2**63 - 1, 2**53 + 1, -1, 0, 1, 4, 7], pa.int64()),
    "price": (
        [Decimal(text) for text in ("0.00", "0.50", "12.25", "-0.50", "99.94", "9999999999999999.99")],
        pa.decimal128(18, 2),
    ),
    "long_price": (
        [Decimal(text) for text in ("0.0001", "123456.7891", f"{10**33}.5000", f"-{10**33}.0001")],
        pa.decimal128(38, 4),
    ),
    "flag": ([True, False], pa.bool_()),
    "city": (["Oslo", "Łódź", "null", "4", "", " Oslo", "oslo", "'; --", 'a"b', "a,b", "𝄞"], pa.string()),
    "colour": (["red", "green", "€"], pa.dictionary(pa.int32(), pa.string())),
    "unit": ([-1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1, *range(100, 140)], pa.int64()),
    "day": ([DAY + dt.timedelta(days) for days in (-400, -1, 0, 30, 31, 3000)] + [dt.date.max], pa.date32()),
    "instant": (
        [MOMENT + dt.timedelta(seconds=step) for step in (-1, 0, 1, 31 * 86_400 - 1, 31 * 86_400, 1e9)],
        pa.timestamp("us", "UTC"),
    ),
    "wall_time": (
        [
            dt.datetime(2013, 1, 1),  # noqa: DTZ001 - of no zone
            dt.datetime(2013, 1, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
            dt.datetime(2013, 2, 1),  # noqa: DTZ001
            dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
        ],
        pa.timestamp("us"),
    ),
    "began": (
        [
            "01-JAN-13 00:00:00",
            " 31-jan-13 23:59:59",
            "01-FEB-13 00:00:00",
            "31-JAN-13 24:00:00",
            "29-FEB-13 12:00:00",
            "01-JAN-93 06:00:00",
            "JAN",
        ],
        pa.string(),
    ),
    "counted": ([1_356_998_399_999, 1_356_998_400_000, 1_359_676_799_999, 1_359_676_800_000, -1], pa.int64()),
    "written": ([20121231, 20130101, 20130131, 20130132, 20130201, 0], pa.int64()),
    "person": (["Ana", " ANA ", "ana", "Łucja", "ŁUCJA", "ﬁ", "FI", "1"], pa.string()),
}


def same_rows(n_rows: int) -> pa.Table:
    """Return rows of every type, in which about a tenth of each column is null."""
    rng = np.random.default_rng(5)
    columns = {}
    for name, (values, kind) in VALUES.items():
        chosen = rng.integers(0, len(values), n_rows)
        nothing = rng.random(n_rows) < 0.1
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        column = pa.array(
            [None if null else values[index] for null, index in zip(nothing, chosen, strict=True)], plain
        )
        columns[name] = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
    return pa.table(columns)
