"""Time the chunk's kernels as an image has them beside the same kernels for this machine's processor.

python benchmarks/portable_code.py [--rows 4000000] [--repetitions 9]

An image's machine code is for every processor of the architecture. Two processes, one of each kind, take
turns; counted are the seconds of processors, for reading, decoding and summing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import IO, cast

from generate import reference_data
from workloads import ours, reference_spec

from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums

PORTABLE = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
UNITS = {"rows": "row", "limited units": {"column": "unit_id", "max_rows": "20"}}


def work(n_rows: int, unit: str) -> None:
    """Print the seconds of one pass for each line that comes in."""
    spec = reference_spec(reference_data(n_rows), UNITS[unit])
    with open_cluster_for_sums("threads") as cluster:
        for _ in sys.stdin:
            started = time.process_time()
            ours(spec, cluster)
            print(time.process_time() - started, flush=True)


def main() -> None:
    """Run both in turn, and print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--work", choices=UNITS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.rows, options.work)
        return
    reference_data(options.rows)
    with tempfile.TemporaryDirectory() as directory:
        for unit in UNITS:
            compare(unit, options.rows, options.repetitions, directory)


def compare(unit: str, n_rows: int, repetitions: int, directory: str) -> None:
    """Time one workload; the first pass, which compiles, is not counted."""
    workers = {
        name: start(unit, n_rows, {**variables, "NUMBA_CACHE_DIR": f"{directory}/{name}"})
        for name, variables in {"generic": PORTABLE, "native": {}}.items()
    }
    taken: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(1 + repetitions):
        for name, worker in workers.items():
            cast("IO[str]", worker.stdin).write("\n")
            taken[name].append(float(cast("IO[str]", worker.stdout).readline()))
    for name, worker in workers.items():
        worker.communicate()
        seconds = statistics.median(taken[name][1:])
        print(f"{unit:14} {name:8} {seconds:7.3f} s {n_rows / seconds / 1e6:7.1f} million rows/s")
    ratios = [ours / theirs for ours, theirs in zip(taken["generic"][1:], taken["native"][1:], strict=True)]
    print(f"{unit:14} ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def start(unit: str, n_rows: int, variables: dict[str, str]) -> subprocess.Popen[str]:
    """Start a process that waits for lines."""
    return subprocess.Popen(
        [sys.executable, __file__, "--rows", str(n_rows), "--work", unit],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


if __name__ == "__main__":
    main()
