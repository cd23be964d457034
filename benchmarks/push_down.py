"""Sum the same rows in one run: by DuckDB itself, by reading them from DuckDB, and from local Parquet.

python benchmarks/push_down.py [ROWS]
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from measuring import Comparison, compare, print_comparison, versions
from workloads import n_threads

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.chunk.sql_sums import sum_queries
from suffice.pipeline.rows.reduce.links import open_cluster_for_sums
from suffice.pipeline.rows.reduce.push_down import pushed_sums
from suffice.pipeline.rows.reduce.tree import exact_sums
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec

N_ROWS = 5_000_000
REPETITIONS = 5
QUERY = """
    SELECT 'station-' || (i % 50) AS station, (i % 12)::integer AS stops, i % 7 = 0 AS cancelled,
        sin(i) * 200 AS delay, (DATE '2013-01-01' + (i * 7919 % 365)::integer) AS day
    FROM range({n_rows}) r(i)
"""
STATIONS = [f"station-{number}" for number in range(50)]
COUNTS = {
    "stops": {"family": "poisson", "column": "stops", "upper": "9"},
    "cancelled": {"family": "bernoulli", "column": "cancelled"},
}
MOMENTS = {"delay": {"family": "normal", "column": "delay", "lower": "-60", "upper": "180"}}
WORKLOADS: dict[str, dict[str, Any]] = {
    "counts of all rows": {"statistics": COUNTS},
    "counts and moments by station": {"statistics": {**COUNTS, **MOMENTS}, "groups": {"station": STATIONS}},
    "counts and moments of a month by station": {
        "statistics": {**COUNTS, **MOMENTS},
        "groups": {"station": STATIONS},
        "window": {"column": "day", "every": "month"},
    },
}


def spec_of(source: dict[str, str], terms: dict[str, Any]) -> Spec:
    """Return the spec of a workload."""
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"}
    return load_spec(
        {"name": "benchmark", "dataset": "benchmark", "source": source, "privacy": privacy, **terms}
    )


def checksum(spec: Spec) -> int:
    """Pin a source, sum its rows, and return a number made of all sums."""
    window = "2013-03" if spec.window else "all"
    pin = sources.pin(spec, window)
    job = chunk_job(spec, window)
    if spec.pushes_down:
        (table,) = sources.schema(pin)
        totals = pushed_sums(job, sum_queries(job, table.columns), pin, n_threads=n_threads())
    else:
        with open_cluster_for_sums("threads") as cluster:
            totals = exact_sums(job, sources.splits(pin), cluster)
    sources.check(pin)
    sources.close(pin)
    numbers = [number for sums in to_python(totals.open_totals()).values() for number in sums.ravel()]
    return hash(tuple(map(int, numbers)))


def main() -> None:
    """Write, sum in turn, print."""
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    print(versions())
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with duckdb.connect(directory / "rows.duckdb") as connection:
            connection.execute(f"CREATE TABLE flights AS {QUERY.format(n_rows=n_rows)}")
            connection.execute(f"COPY flights TO '{directory}/rows.parquet' (FORMAT parquet)")
        table = {"duckdb": str(directory / "rows.duckdb"), "table": "main.flights"}
        entries = {
            "summed by DuckDB": {**table, "push_down": "true"},
            "read from DuckDB": table,
            "read from Parquet": {"parquet": str(directory / "rows.parquet")},
        }
        for what, terms in WORKLOADS.items():
            comparison = Comparison(
                title=f"{what}: {n_rows:,} rows, {n_threads()} threads",
                contenders={
                    kind: partial(checksum, spec_of(entry, terms)) for kind, entry in entries.items()
                },
                goals={"read from DuckDB": 1.0},
                same_answer=frozenset(entries),
            )
            print_comparison(comparison, compare(comparison, REPETITIONS))


if __name__ == "__main__":
    main()
