"""Grow rows, partitions and cells: time and peak memory, every point in a process of its own.

python benchmarks/growth.py [rows] [partitions] [cells]

A point runs twice in its process: the second run is timed, the peak is that of both. 10^8 rows are five
copies of the 20 million; the caches take some 3 GB of disk. Cells are the keys of ``unit_id``,
of one normal statistic.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from generate import divided_data, reference_data
from measuring import peak_megabytes, processor_seconds, versions
from workloads import decode, duckdb_queries, make_spec, n_threads, ours, reference_spec, run_duckdb

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster

ROWS = (10**6, 10**7, 10**8)
PARTITIONS = (10, 100, 1000, 10_000)
CELLS = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7)
DIVIDED_ROWS, CELL_ROWS = 10**7, 2 * 10**7
CONTENDERS = {
    "rows": ("suffice", "duckdb", "decoding"),
    "partitions": ("suffice", "decoding"),
    "cells": ("suffice", "duckdb"),
}


def main() -> None:
    """Run what was asked for, a process per point, and print tables."""
    if sys.argv[1:2] == ["--point"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
        return
    print(f"{n_threads()} threads, warm cache\n{versions()}")
    for kind in sys.argv[1:] or list(CONTENDERS):
        points = {"rows": ROWS, "partitions": PARTITIONS, "cells": CELLS}[kind]
        print(f"\n{kind:>12} {'':10}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'at rest':>9}", flush=True)
        for point in points:
            for contender in CONTENDERS[kind]:
                measured = in_a_process(kind, point, contender)
                print(
                    f"{point:12,} {contender:10}{measured['wall']:9.2f}{measured['processor']:9.2f}"
                    f"{measured['peak']:9,.0f}{measured['rest']:9,.0f}",
                    flush=True,
                )


def in_a_process(kind: str, point: int, contender: str) -> dict[str, float]:
    """Measure one point in a process of its own; its data are made before."""
    prepare(kind, point)
    command = [sys.executable, __file__, "--point", json.dumps([kind, point, contender])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def prepare(kind: str, point: int) -> Path:
    """Return the directory of a point's data."""
    if kind == "rows":
        return reference_data(point)
    return divided_data(DIVIDED_ROWS, point) if kind == "partitions" else reference_data(CELL_ROWS)


def measure(kind: str, point: int, contender: str) -> dict[str, float]:
    """Return seconds, and megabytes when everything is imported and at most."""
    directory = prepare(kind, point)
    with open_cluster_for_sums("threads") as cluster:
        work = {
            "suffice": lambda directory: our_work(kind, point, directory, cluster),
            "duckdb": lambda directory: run_duckdb(queries(kind, point, directory)),
            "decoding": decode,
        }[contender]
        rest = peak_megabytes()
        work(directory)
        wall, processor = time.perf_counter(), processor_seconds()
        work(directory)
        wall, processor = time.perf_counter() - wall, processor_seconds() - processor
    return {"wall": wall, "processor": processor, "peak": peak_megabytes(), "rest": rest}


def our_work(kind: str, point: int, directory: Path, cluster: Cluster) -> object:
    """Compute the exact statistics of a point."""
    if kind != "cells":
        return ours(reference_spec(directory), cluster)
    keys = {"unit_id": {"range": ["0", str(point - 1)]}}
    ratio = {"family": "normal", "column": "ratio", "lower": "0", "upper": "1"}
    spec = make_spec(directory, keys, {"ratio": ratio})
    # The sums stay in their tables, as they do until the noise is added.
    return exact_sums(chunk_job(spec), sources.splits(sources.pin(spec)), cluster).open_totals()


def queries(kind: str, point: int, directory: Path) -> list[str]:
    """Return DuckDB's queries for a point; those of many cells add their rows up in DuckDB."""
    if kind != "cells":
        return duckdb_queries(directory)
    rows = f"FROM read_parquet('{directory}/*.parquet')"
    inside = f"WHERE unit_id < {point}"
    lattice = "CAST(greatest(least(round_even((ratio - 0.5) / 0.5 * 65536, 0), 65536), -65536) AS BIGINT)"
    values = f"{rows} SELECT unit_id, {lattice} AS x {inside}"
    sums = f"FROM ({values}) SELECT unit_id, count(x) AS n, sum(x) AS s, sum(x * x) AS q GROUP BY ALL"
    return [f"FROM ({sums}) SELECT sum(n), sum(s), sum(q)"]


if __name__ == "__main__":
    main()
