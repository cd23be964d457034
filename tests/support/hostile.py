"""Rows that a data owner would rather not have: every type, nulls, NaN, infinities, strangers, extremes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.spec.spec import Spec, load_spec
from support.pandas_files import as_pandas_writes, within_doubles

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["a", "b", "A", "a ", "", "é", "e\u0301", "x" * 300, "nul\0l", "01", "1", "null"]
INTEGERS = [0, 1, 2, 3, -1, 12, 127, -128, 100]
FLOATS = [0.0, -0.0, 1.0, 2.0, 2.5, 0.1, -3.0, 3.0, 1e300, -1e300, 5e-324, np.inf, -np.inf, np.nan, 12.0, 0.3]
DAYS = [
    dt.date(1969, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(2013, 1, 31),
    dt.date(2013, 2, 1),
    dt.date(9999, 12, 31),
]


def hostile_table(n_rows: int, *, seed: int) -> pa.Table:
    """Return rows of every type that is read; about a tenth of each column is null."""
    rng = np.random.default_rng(seed)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        nothing = rng.random(n_rows) < 0.1
        chosen = rng.integers(0, len(values), n_rows)
        return pa.array(
            [None if null else values[index] for null, index in zip(nothing, chosen, strict=True)], kind
        )

    instants = [
        dt.datetime.combine(day, time)
        for day in DAYS[:4]
        for time in (dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999))
    ]
    wide = [2**63, 2**64 - 1, 2**63 - 1, 2**53 + 1, 0, 1, 7]
    cents = [Decimal(text) for text in ("0.00", "1.00", "2.50", "-3.00", "12.00", "99999999.99", "0.10")]
    text = column(TEXTS, pa.string())
    return pa.table(
        {
            "text": text,
            "wide_text": column(TEXTS, pa.large_string()),
            "view": column(TEXTS, pa.string_view()),
            "dictionary": column(TEXTS, pa.string()).dictionary_encode(),
            "digits": column(["0", "1", "2", "12", "-1", "01", "1.0", " 1", "9" * 30], pa.string()),
            "tiny": column(INTEGERS, pa.int8()),
            "integer": column([*INTEGERS, 2**62, -(2**63), 2**63 - 1], pa.int64()),
            "unsigned": column(wide, pa.uint64()),
            "float": column(FLOATS, pa.float64()),
            "single": column(FLOATS, pa.float32()),
            "price": column(cents, pa.decimal128(10, 2)),
            "precise": column([cent.quantize(Decimal("1e-18")) for cent in cents], pa.decimal128(38, 18)),
            "flag": column([True, False], pa.bool_()),
            "day": column(DAYS, pa.date32()),
            "instant": column(instants, pa.timestamp("us")),
            "zoned": column([time.replace(tzinfo=dt.UTC) for time in instants], pa.timestamp("us", "UTC")),
            "measure": pa.array(rng.normal(0, 50, n_rows)),
            "whole": pa.array(rng.integers(-200, 200, n_rows)),
        }
    )


def write_hostile(directory: Path, n_rows: int = 4000, *, seed: int) -> list[Path]:
    """Write hostile rows as files whose row groups, dictionaries, encodings and types differ."""
    directory.mkdir(parents=True, exist_ok=True)
    table = hostile_table(n_rows, seed=seed)
    half, end = n_rows // 2, n_rows * 7 // 8
    files = [directory / f"{name}.parquet" for name in "abcd"]
    pq.write_table(table.slice(0, half), files[0], row_group_size=half // 3 + 1)
    rest = table.slice(half, end - half)
    pq.write_table(rest, files[1], row_group_size=half, use_dictionary=False, store_schema=False)
    pq.write_table(table.slice(0, 0), files[2])
    pq.write_table(as_pandas_writes(within_doubles(table.slice(end))), files[3])
    return files


def make_spec(source: Path | str, statistics: dict[str, Any], **others: Any) -> Spec:
    """Return a spec of these statistics."""
    content = {
        "name": "test",
        "dataset": "test",
        "source": {"parquet": str(source)},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": statistics,
    }
    return load_spec({**content, **others})


def normal(column: str, lower: str, upper: str, **others: Any) -> dict[str, Any]:
    """Return the entry of a normal statistic."""
    return {"family": "normal", "column": column, "lower": lower, "upper": upper, **others}


def poisson(column: str, upper: str, **others: Any) -> dict[str, Any]:
    """Return the entry of a poisson statistic."""
    return {"family": "poisson", "column": column, "upper": upper, **others}


def categorical(column: str, categories: Any, **others: Any) -> dict[str, Any]:
    """Return the entry of a categorical statistic."""
    return {"family": "categorical", "column": column, "categories": categories, **others}


def bernoulli(column: str, **others: Any) -> dict[str, Any]:
    """Return the entry of a bernoulli statistic."""
    return {"family": "bernoulli", "column": column, **others}
