"""The rows that every test vector sums: made up once, kept as ``tests/vectors/rows.csv``.

Random numbers come from Python's Mersenne Twister by ``random()`` alone, whose stream is the same in every
version of Python.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

N_UNITS = 90
"""Persons; each has one to three rows."""
FIRST_DAY = dt.date(2013, 1, 1)
COLUMNS: dict[str, pa.DataType] = {
    "person": pa.string(),
    "day": pa.date32(),
    "origin": pa.string(),
    "month": pa.int64(),
    "cancelled": pa.bool_(),
    "carrier": pa.string(),
    "state": pa.string(),
    "stops": pa.int64(),
    "late_of_five": pa.int64(),
    "wait": pa.float64(),
    "delay": pa.float64(),
    "weight": pa.float64(),
}


def make_rows() -> list[dict[str, Any]]:
    """Return the rows; a few columns have nulls, unknown keys and values out of range."""
    source = random.Random(2013)  # noqa: S311 - data of a test, no noise of a release
    rows = []
    for unit in range(N_UNITS):
        for _ in range(1 + int(3 * source.random())):
            day = FIRST_DAY + dt.timedelta(days=int(90 * source.random()))
            delay = 12 + 30 * _normal(source)
            rows.append(
                {
                    "person": f"p{unit:03d}",
                    "day": day.isoformat(),
                    "origin": _one_of(source, ("EWR", "EWR", "JFK", "JFK", "JFK", "LGA", "XXX")),
                    "month": day.month,
                    "cancelled": _one_of(source, ("true", "false", "false", "false", "")),
                    "carrier": _one_of(source, ("UA", "UA", "DL", "AA", "")),
                    "state": _one_of(source, ("a", "a", "b", "c")),
                    "stops": int(-3 * math.log(1 - source.random())),
                    "late_of_five": sum(source.random() < 0.3 for _ in range(5)),
                    "wait": round(-8 * math.log(1 - source.random()), 3),
                    "delay": round(delay, 2),
                    "weight": round(60 + 0.3 * delay + 9 * _normal(source), 2),
                }
            )
    return rows


def write_rows(path: Path) -> None:
    """Write the rows as CSV; an empty field is a null."""
    rows = make_rows()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> pa.Table:
    """Read the rows with their types."""
    with path.open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    return pa.table(
        {name: pa.array([_typed(row[name], kind) for row in read], kind) for name, kind in COLUMNS.items()}
    )


def _typed(text: str, kind: pa.DataType) -> object:
    if not text:
        return None
    if pa.types.is_boolean(kind):
        return text == "true"
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(text)
    return text if pa.types.is_string(kind) else int(text) if pa.types.is_integer(kind) else float(text)


def _normal(source: random.Random) -> float:
    return math.sqrt(-2 * math.log(1 - source.random())) * math.cos(2 * math.pi * source.random())


def _one_of(source: random.Random, values: tuple[str, ...]) -> str:
    return values[int(len(values) * source.random())]
