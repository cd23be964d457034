"""Time the exact statistics beside DuckDB's GROUP BYs and beside decoding alone, interleaved, on one machine.

python benchmarks/run.py [--rows 20000000] [--repetitions 5]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
from generate import CATEGORIES, MONTHS, REGIONS, reference_data

from suffice.pipeline.chunk import chunk_job
from suffice.pipeline.cluster import open_cluster
from suffice.pipeline.exact import to_python
from suffice.pipeline.reduce import exact_sums
from suffice.pipeline.sources.parquet import open_source
from suffice.pipeline.spec import Spec, load_spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.cluster import Cluster

NUMBERS = {"amount": ("-60", "180"), "ratio": ("0", "1")}
GOALS = {"duckdb": 0.4, "decoding": 1.4}


def main() -> None:
    """Generate what is missing, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    directory = reference_data(options.rows)
    spec = reference_spec(directory)
    workers = len(os.sched_getaffinity(0))
    with open_cluster("threads") as cluster:
        contenders: dict[str, Callable[[], int]] = {
            "suffice": lambda: count_ours(spec, cluster),
            "duckdb": lambda: count_duckdb(directory, workers),
            "decoding": lambda: decode(directory, workers),
        }
        times, counted = interleave(contenders, options.repetitions)
    print_table(options.rows, workers, times)
    if counted["suffice"] != counted["duckdb"]:
        message = "the totals differ from DuckDB's"
        raise SystemExit(message)


def reference_spec(directory: Path) -> Spec:
    """Return the spec: 1,440 groups, 5 categorical and 2 normal statistics."""
    categorical = {
        name: {"family": "categorical", "column": name, "categories": list(values), "other": "true"}
        for name, values in CATEGORIES.items()
    }
    normal = {
        name: {"family": "normal", "column": name, "lower": lower, "upper": upper}
        for name, (lower, upper) in NUMBERS.items()
    }
    return load_spec(
        {
            "name": "benchmark",
            "dataset": "benchmark",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "groups": {"region": list(REGIONS), "month": {"range": [str(MONTHS[0]), str(MONTHS[-1])]}},
            "statistics": {**categorical, **normal},
        }
    )


def count_ours(spec: Spec, cluster: Cluster) -> int:
    """Compute the exact statistics from the files; return a checksum of the totals."""
    source = open_source(spec)
    sums = to_python(exact_sums(chunk_job(spec), source.partitions, cluster))
    return sum(int(table.sum()) for table in sums.values())


def count_duckdb(directory: Path, workers: int) -> int:
    """Compute the same totals with exact GROUP BYs; return the same checksum.

    One query per statistic, as that is faster here than GROUPING SETS; sums of lattice values in HUGEINT.
    """
    connection = duckdb.connect(config={"threads": workers})
    files = f"read_parquet('{directory}/*.parquet')"
    regions = ", ".join(f"'{region}'" for region in REGIONS)
    inside = f"region IN ({regions}) AND month BETWEEN {MONTHS[0]} AND {MONTHS[-1]}"
    total = 0
    for column in CATEGORIES:
        rows = connection.execute(
            f"FROM {files} SELECT region, month, {column}, count(*) WHERE {inside} GROUP BY ALL"
        ).fetchall()
        total += sum(row[-1] for row in rows)
    for column, (lower, upper) in NUMBERS.items():
        centre, half = (float(lower) + float(upper)) / 2, (float(upper) - float(lower)) / 2
        lattice = f"round_even((({column} - {centre}) / {half}) * 65536, 0)"
        rows = connection.execute(
            f"FROM (FROM {files} SELECT region, month, "
            f"CAST(greatest(least({lattice}, 65536), -65536) AS BIGINT) AS x "
            f"WHERE {inside} AND NOT isnan({column})) "
            "SELECT region, month, count(x), sum(x), sum(x * x) GROUP BY ALL"
        ).fetchall()
        total += sum(int(value) for row in rows for value in row[2:])
    return total


def decode(directory: Path, workers: int) -> int:
    """Decode the same columns with pyarrow alone, texts as dictionaries, a row group per thread."""
    texts = ["region", *CATEGORIES]
    columns = [*texts, "month", *NUMBERS]

    def read(path: Path, group: int) -> int:
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            return int(file.read_row_group(group, columns=columns, use_threads=False).num_rows)

    paths = sorted(directory.glob("*.parquet"))
    groups = [(path, group) for path in paths for group in range(pq.read_metadata(path).num_row_groups)]
    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(lambda place: read(*place), groups))


def interleave(
    contenders: dict[str, Callable[[], int]], repetitions: int
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Run all contenders once to warm up, then in turn; return seconds and what each counted."""
    counted = {name: run() for name, run in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repetitions):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return times, counted


def print_table(n_rows: int, workers: int, times: dict[str, list[float]]) -> None:
    """Print medians, and our time as a ratio of each."""
    packages = ("suffice", "pyarrow", "duckdb", "numba", "numpy", "dask")
    print(
        f"{n_rows:,} rows, 1,440 groups, 5 categorical and 2 normal statistics; {workers} threads, warm cache"
    )
    print(f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages))
    ours = statistics.median(times["suffice"])
    print(f"\n{'':10} {'median s':>9} {'least s':>9} {'ours / it':>10} {'goal':>6}")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        ratios: tuple[Any, Any] = ("", "")
        if name in GOALS:
            ratios = (f"{ours / median:.2f}", f"{GOALS[name]:.1f}")
        print(f"{name:10} {median:9.3f} {min(seconds):9.3f} {ratios[0]:>10} {ratios[1]:>6}")


if __name__ == "__main__":
    main()
