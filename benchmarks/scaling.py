"""Measure what a release costs by row, file, task and cell, and work out what larger ones would take.

python benchmarks/scaling.py [--rows 1e12] [--cores 1000] [--rows-a-file 1e6]

Costs are slopes between two sizes of the same work, in processor seconds of this machine; what is worked out
from them is no measurement. A task's cost is that of `scheduling.py`, given as --ms-a-task.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from generate import reference_data
from measuring import versions
from small_files import spec_of, write
from workloads import reference_spec

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import combine
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.rows.reduce.tree import (
    MOST_TASKS,
    SPLIT_EVERY,
    TASKS_PER_THREAD,
    most_tables,
    sums_bytes,
    zero_sums,
)
from suffice.pipeline.rows.sources.contract import pack

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.sources.contract import Split
    from suffice.pipeline.spec.spec import Spec

FEW_ROWS, MANY_ROWS = 10**6, 2 * 10**6
FEW_FILES, MANY_FILES = 200, 1000


def main() -> None:
    """Print the constants, then what they add up to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=1e12)
    parser.add_argument("--cores", type=int, default=1000)
    parser.add_argument("--rows-a-file", type=float, default=1e6)
    parser.add_argument("--ms-a-task", type=float, default=2.0)
    arguments = parser.parse_args()
    print(versions())
    row, addition, job = by_row()
    n_bytes = sums_bytes(job)
    pin, kept, sent = by_file()
    files = arguments.rows / arguments.rows_a_file
    tasks = max(MOST_TASKS, TASKS_PER_THREAD * arguments.cores)
    tasks = min(tasks, most_tables(job, arguments.cores))
    lines = {
        "reading and summing": (f"{1e9 * row:.0f} ns a row and core", arguments.rows * row / arguments.cores),
        "pinning, by the workers": (f"{1e6 * pin:.0f} us a file", files * pin / arguments.cores),
        "scheduling, one after the other": (
            f"{arguments.ms_a_task:.1f} ms a task",
            tasks * arguments.ms_a_task / 1000.0,
        ),
        "adding tables, one worker after the other": (
            f"{1e3 * addition:.2f} ms a table",
            SPLIT_EVERY * addition * math.ceil(math.log(tasks, SPLIT_EVERY)),
        ),
    }
    print(f"\n{arguments.rows:.0e} rows, {files:.0e} files, {arguments.cores} cores, {tasks} tasks")
    for name, (constant, seconds) in lines.items():
        print(f"{name:44}{constant:>28}{seconds:12,.1f} s")
    for name, constant, gigabytes in (
        ("memory of the calling process, for files", f"{kept:,.0f} B a file", files * kept / 1e9),
        ("sent to workers, for files", f"{sent:,.0f} B a file", files * sent / 1e9),
        ("sent between workers, tables", f"{n_bytes:,.0f} B a table", tasks * n_bytes / 1e9),
    ):
        print(f"{name:44}{constant:>28}{gigabytes:12,.2f} GB")


def by_row() -> tuple[float, float, ChunkJob]:
    """Return the seconds of a row, those of adding a table, and the job."""
    few, many = (reference_spec(reference_data(n_rows)) for n_rows in (FEW_ROWS, MANY_ROWS))
    job = chunk_job(many)
    more = least(partial(read_all, many)) - least(partial(read_all, few))
    tables = [zero_sums(job) for _ in range(SPLIT_EVERY)]
    return more / (MANY_ROWS - FEW_ROWS), least(partial(combine, tables)) / SPLIT_EVERY, job


def read_all(spec: Spec) -> None:
    """Sum all rows, a split after the other."""
    job = chunk_job(spec)
    for split in pinned_splits(spec):
        chunk(split, job)


def by_file() -> tuple[float, float, float]:
    """Return the seconds of pinning a file, its bytes in the calling process, and in the graph."""
    seconds, kept, sent = [], [], []
    for n_files in (FEW_FILES, MANY_FILES):
        with tempfile.TemporaryDirectory() as text:
            write(Path(text), n_files)
            spec = spec_of(text)
            seconds.append(least(partial(pinned_splits, spec)))
            tracemalloc.start()
            splits = pinned_splits(spec)
            kept.append(float(tracemalloc.get_traced_memory()[0]))
            tracemalloc.stop()
            sent.append(float(sum(len(pack(split)) for split in splits)))
    more = MANY_FILES - FEW_FILES
    return tuple((of[1] - of[0]) / more for of in (seconds, kept, sent))  # type: ignore[return-value]


def pinned_splits(spec: Spec) -> tuple[Split, ...]:
    """Pin all files, and divide them."""
    return sources.splits(sources.pin(spec))


def least(work: Callable[[], object], repetitions: int = 3) -> float:
    """Return the fewest processor seconds of a few runs, after one that compiles."""
    work()
    times = []
    for _ in range(repetitions):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


if __name__ == "__main__":
    main()
