"""Time our engine beside others' on the same files, interleaved, on one machine.

python benchmarks/run.py [--rows 20000000] [--repetitions 5] [--only NAME ...]

What is not installed is left out and named. SUFFICE_TUMULT_PYTHON is the interpreter of an environment with
tmlt.analytics and Java, SUFFICE_OPENDP_PYTHON that of an environment with opendp[polars]; without them these
contenders are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from generate import CATEGORIES, MONTHS, REGIONS, reference_data
from measuring import Comparison, compare, print_comparison, versions
from workloads import (
    decode,
    duckdb_grouping_sets,
    duckdb_queries,
    n_threads,
    one_count_spec,
    ours,
    ours_with_noise,
    reference_spec,
    run_dask_dataframe,
    run_duckdb,
    run_polars,
)

from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREADS, LOCAL = "suffice", "suffice, processes"
DUCKDB, GROUPING_SETS, POLARS = "duckdb", "duckdb, grouping sets", "polars, streaming"
ROWS = "suffice, by row"
UNIT = {"column": "unit_id", "max_rows": "20"}
DASK, DECODING, TUMULT, OPENDP = "dask.dataframe", "decoding", "tumult analytics", "opendp"
GOALS = {DUCKDB: 0.4, GROUPING_SETS: 0.4, DECODING: 0.75, DASK: 1 / 6, TUMULT: 1 / 15}


def main() -> None:
    """Generate what is missing, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="contenders to run beside ours")
    options = parser.parse_args()
    directory = reference_data(options.rows)
    print(f"{options.rows:,} rows; {n_threads()} threads, warm cache\n{versions()}")
    with ExitStack() as stack:
        comparisons = [
            exact_statistics(directory, stack),
            one_count(directory, stack),
            bounding(directory, stack),
        ]
        for comparison in comparisons:
            chosen = {
                name: run
                for name, run in comparison.contenders.items()
                if name == THREADS or options.only is None or name in options.only
            }
            narrowed = Comparison(
                title=comparison.title,
                contenders=chosen,
                goals=comparison.goals,
                same_answer=comparison.same_answer & set(chosen),
            )
            print_comparison(narrowed, compare(narrowed, options.repetitions))


def exact_statistics(directory: Path, stack: ExitStack) -> Comparison:
    """Compare the exact statistics of the reference spec."""
    spec = reference_spec(directory)
    threads, local = (stack.enter_context(open_cluster_for_sums(kind)) for kind in ("threads", "local"))
    contenders: dict[str, Callable[[], int]] = {
        THREADS: lambda: ours(spec, threads),
        LOCAL: lambda: ours(spec, local),
        DUCKDB: lambda: run_duckdb(duckdb_queries(directory)),
        GROUPING_SETS: lambda: run_duckdb(duckdb_grouping_sets(directory)),
    }
    if installed("polars"):
        contenders[POLARS] = lambda: run_polars(directory)
    if installed("pandas"):
        contenders[DASK] = lambda: run_dask_dataframe(directory)
    same = frozenset(contenders)
    contenders[DECODING] = lambda: decode(directory)
    return Comparison(
        title="exact statistics: 1,440 groups, 5 categorical and 2 normal statistics",
        contenders=contenders,
        goals=GOALS,
        same_answer=same,
    )


def one_count(directory: Path, stack: ExitStack) -> Comparison:
    """Compare one noisy count query of three columns, with noise where there is any."""
    threads = stack.enter_context(open_cluster_for_sums("threads"))
    spec = one_count_spec(directory)
    query = duckdb_queries(directory)[list(CATEGORIES).index("category_5")]
    contenders: dict[str, Callable[[], int]] = {
        THREADS: lambda: ours_with_noise(spec, threads),
        DUCKDB: lambda: run_duckdb([query]),
    }
    for name, variable, script in (
        (TUMULT, "SUFFICE_TUMULT_PYTHON", "tumult.py"),
        (OPENDP, "SUFFICE_OPENDP_PYTHON", "opendp_counts.py"),
    ):
        if python := os.environ.get(variable):
            contenders[name] = stack.enter_context(answering(name, python, script, directory))
        else:
            print(f"left out: {name}, as {variable} is not set")
    return Comparison(
        title="one count of three columns, with noise (DuckDB: without)",
        contenders=contenders,
        goals={TUMULT: GOALS[TUMULT]},
    )


def bounding(directory: Path, stack: ExitStack) -> Comparison:
    """Compare bounding by unit, over ids in no order, with the same statistics row by row."""
    threads = stack.enter_context(open_cluster_for_sums("threads"))
    return Comparison(
        title="bounded by unit: at most 20 rows of each of the reference data's ids",
        contenders={
            THREADS: lambda: ours(reference_spec(directory, UNIT), threads),
            ROWS: lambda: ours(reference_spec(directory), threads),
        },
        goals={ROWS: 4.0},
    )


def installed(package: str) -> bool:
    """Tell whether a package is there; say so where it is not."""
    is_there = importlib.util.find_spec(package) is not None
    if not is_there:
        print(f"left out: {package} is not installed")
    return is_there


@contextmanager
def answering(name: str, python: str, script: str, directory: Path) -> Iterator[Callable[[], int]]:
    """Start another library in an environment that holds it, and yield what makes it answer the query."""
    task = {
        "files": f"{directory}/*.parquet",
        "threads": n_threads(),
        "keys": {
            "region": list(REGIONS),
            "month": list(range(MONTHS[0], MONTHS[-1] + 1)),
            "category_5": list(CATEGORIES["category_5"]),
        },
    }
    with tempfile.TemporaryDirectory() as workspace:  # Spark leaves a warehouse behind
        process = subprocess.Popen(
            [python, str(Path(__file__).parent / script), json.dumps(task)],
            cwd=workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        questions, answers = process.stdin, process.stdout
        if questions is None or answers is None or not (ready := answers.readline()):
            message = f"{name} did not start under {python}"
            raise SystemExit(message)
        print(f"{name}: {json.loads(ready)['ready']:.1f} s to start, not counted")

        def ask() -> int:
            questions.write("\n")
            questions.flush()
            return int(json.loads(answers.readline())["rows"])

        try:
            yield ask
        finally:
            questions.close()
            process.wait()


if __name__ == "__main__":
    main()
