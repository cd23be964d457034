"""The same rows as writers type them: pandas, pyarrow, Spark and DuckDB, with values, with nulls and without.

Which type a column has in a file then follows from its values, and often from one of them.
"""

from __future__ import annotations

import csv
import datetime as dt
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Columns = Mapping[str, list[Any]]
    Writer = Callable[[Columns, Path], None]

ROWS: dict[str, list[Any]] = {
    "carrier": ["UA", "DL", "AA", "UA", "DL", "UA"],
    "cancelled": [True, False, True, False, False, True],
    "day": [dt.date(2013, 1, day) for day in (1, 5, 9, 14, 20, 31)],
    "customer": [3, 5, 3, 8, 5, 13],
    "stops": [0, 1, 2, 1, 0, 5],
    "arr_delay": [1.5, -3.0, 20.0, 61.25, 0.0, 9.75],
}
"""One column of each kind; months and groups of them are where specs put them."""
NULLS = ("none", "some", "all")

_TYPES = {
    "carrier": pa.string(),
    "cancelled": pa.bool_(),
    "day": pa.date32(),
    "customer": pa.int64(),
    "stops": pa.int64(),
    "arr_delay": pa.float64(),
}
_SPARK = {
    **_TYPES,
    "customer": pa.int32(),
    "stops": pa.int16(),
    "day": pa.timestamp("us"),
    "arr_delay": pa.decimal128(10, 2),
}


def with_nulls(column: str, nulls: str) -> dict[str, list[Any]]:
    """Return the rows with a column that has no null, some, or nothing else."""
    values = ROWS[column]
    kept = {"none": values, "some": [None, *values[1:]], "all": [None] * len(values)}[nulls]
    return {**ROWS, column: kept}


def by_pandas(columns: Columns, path: Path) -> None:
    """Write as a data frame does: a column without a value is one of doubles, in whatever it was."""
    import pandas as pd

    frame = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
    for name, values in columns.items():
        if all(value is None for value in values):
            frame[name] = pd.Series([float("nan")] * len(values))
    frame.to_parquet(path, index=False)


def by_pandas_from_csv(columns: Columns, path: Path) -> None:
    """Write what pandas makes of delimited text: types follow from the values alone."""
    import pandas as pd

    text = path.with_suffix(".text")
    _write_text(columns, text)
    pd.read_csv(text).to_parquet(path, index=False)
    text.unlink()


def by_pyarrow(columns: Columns, path: Path) -> None:
    """Write declared types."""
    pq.write_table(pa.table({name: pa.array(values, _TYPES[name]) for name, values in columns.items()}), path)


def as_spark(columns: Columns, path: Path) -> None:
    """Write Spark's types: narrow integers, decimals, and times of 96 bits for dates."""
    arrays = {}
    for name, values in columns.items():
        if name == "day":
            arrays[name] = pa.array(values, pa.date32()).cast(pa.timestamp("us"))
        elif name == "arr_delay":
            arrays[name] = pa.array(values, pa.float64()).cast(_SPARK[name], safe=False)
        else:
            arrays[name] = pa.array(values, _SPARK[name])
    pq.write_table(pa.table(arrays), path, use_deprecated_int96_timestamps=True)


def by_duckdb(columns: Columns, path: Path) -> None:
    """Write what DuckDB makes of delimited text."""
    text = path.with_suffix(".text")
    _write_text(columns, text)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM read_csv('{text}', header=true)) TO '{path}'")  # noqa: S608
    text.unlink()


WRITERS: dict[str, Writer] = {
    "pandas": by_pandas,
    "pandas from csv": by_pandas_from_csv,
    "pyarrow": by_pyarrow,
    "spark": as_spark,
    "duckdb": by_duckdb,
}


def _write_text(columns: Columns, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(["" if value is None else value for value in row])
