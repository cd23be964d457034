"""Time to read tables beside reading their very files as Parquet, in one run; and CSV beside Parquet.

    python benchmarks/table_reading.py [--rows 4000000]

Each time is that of one thread for all columns, from pinning to the last block, the order of the contenders
alternating; the ratio is that of the medians. `read` leaves out pinning: it is the part that grows with rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from suffice.pipeline.rows import sources
from suffice.pipeline.spec.spec import load_spec

GOAL = 1.1
N_REPETITIONS = 9
N_FILES = 4
BLOCK_ROWS = 1 << 17
CATALOG = "benchmark"
COLUMNS = ("amount", "city", "day", "count", "flag")


def generated(n_rows: int) -> pa.Table:
    """Rows of five columns: a number, a text of 200 values, a date, an integer, a truth value."""
    rng = np.random.default_rng(1)
    cities = pa.array([f"city-{number:03}" for number in range(200)])
    return pa.table(
        {
            "amount": rng.normal(10.0, 60.0, n_rows).round(2),
            "city": cities.take(pa.array(rng.integers(0, 200, n_rows))),
            "day": pa.array(rng.integers(15_706, 16_071, n_rows).astype(np.int32)).cast(pa.date32()),
            "count": rng.integers(0, 1000, n_rows),
            "flag": rng.random(n_rows) < 0.3,
        }
    )


def write_tables(directory: Path, table: pa.Table) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Write the same rows in each format, and return its source and that of its files."""
    os.environ[f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI"] = uri = f"sqlite:///{directory}/catalog.db"
    catalog = load_catalog(CATALOG, type="sql", uri=uri, warehouse=f"file://{directory}/warehouse")
    catalog.create_namespace("a")
    made = catalog.create_table("a.b", schema=table.schema)
    size = -(-table.num_rows // N_FILES)
    (directory / "csv").mkdir()
    for number in range(N_FILES):
        part = table.slice(number * size, size)
        write_deltalake(directory / "delta", part, mode="append")
        made.append(part)
        if number == 0:
            arrow_csv.write_csv(part, directory / "csv" / "a.csv")
    types = {"amount": "number", "day": "date", "count": "integer", "flag": "boolean"}
    files = sorted(map(str, (directory / "delta").glob("*.parquet")))
    return {
        "delta": ({"delta": f"{directory}/delta"}, {"parquet": f"{directory}/delta/*.parquet"}),
        "iceberg": (
            {"iceberg": "a.b", "catalog": CATALOG},
            {"parquet": f"{directory}/warehouse/**/*.parquet"},
        ),
        "csv": ({"csv": f"{directory}/csv", "columns": types}, {"parquet": files[0]}),
    }


def spec_of(source: dict[str, Any]) -> Any:
    """Return a spec that reads all columns."""
    return load_spec(
        {
            "name": "reading",
            "dataset": "nobody",
            "source": source,
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "groups": {"city": ["city-001"], "day": {"from": "2013-01", "to": "2013-12", "every": "month"}},
            "statistics": {
                "amount": {"family": "normal", "column": "amount", "lower": "0", "upper": "1"},
                "count": {"family": "poisson", "column": "count", "upper": "9"},
                "flag": {"family": "bernoulli", "column": "flag"},
            },
        }
    )


def timed(spec: Any) -> tuple[int, list[float]]:
    """Read everything, and return the rows and the seconds: in all, of the processor, of reading alone."""
    started, used = time.perf_counter(), time.process_time()
    pin = sources.pin(spec)
    splits = sources.splits(pin)
    pinned = time.perf_counter()
    n_rows = sum(batch.num_rows for split in splits for batch in sources.read(split, COLUMNS, BLOCK_ROWS))
    ended = time.perf_counter()
    return n_rows, [ended - started, time.process_time() - used, ended - pinned]


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    n_rows = parser.parse_args().rows
    print("kind     rows       s, median     as Parquet   ratio: wall  processor  read")
    with tempfile.TemporaryDirectory() as directory:
        for kind, pair in write_tables(Path(directory), generated(n_rows)).items():
            specs = [spec_of(source) for source in pair]
            times: list[list[list[float]]] = [[], []]
            checksums = set()
            for repetition in range(1 + N_REPETITIONS):
                for which in (0, 1) if repetition % 2 else (1, 0):
                    rows, seconds = timed(specs[which])
                    checksums.add(rows)
                    if repetition:
                        times[which].append(seconds)
            (rows,) = checksums
            ours, parquet = (
                [statistics.median(column) for column in zip(*each, strict=True)] for each in times
            )
            wall, processor, read = (
                of_ours / of_parquet for of_ours, of_parquet in zip(ours, parquet, strict=True)
            )
            verdict = "" if kind == "csv" else f"  goal {GOAL}: {'met' if processor <= GOAL else 'MISSED'}"
            print(
                f"{kind:<8} {rows:<10,} {ours[0]:<13.3f} {parquet[0]:<12.3f} {wall:<11.2f}  {processor:<9.2f}"
                f"  {read:.2f}{verdict}"
            )


if __name__ == "__main__":
    main()
