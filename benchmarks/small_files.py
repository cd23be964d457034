"""Compare reading many files of 1,000 rows with decoding the same files, by CPU time.

python benchmarks/small_files.py [--files 10000]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import combine
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from collections.abc import Callable

GOAL = 1.5
N_ROWS = 1000
N_KEYS = 2000
COLUMNS = ("city", "heads", "amount")


def main() -> None:
    """Print the CPU seconds of decoding, of pinning, of reading, and of summing; the best of three."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    n_files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as text:
        paths = write(Path(text), n_files)
        spec = spec_of(text)
        splits = sources.splits(sources.pin(spec))
        job = chunk_job(spec)
        chunk(splits[0], job)  # compiles
        work: dict[str, Callable[[], object]] = {
            "decode": lambda: [decode(path) for path in paths],
            "pin": lambda: sources.splits(sources.pin(spec)),
            "read": lambda: [
                batch.num_rows for split in splits for batch in sources.read(split, COLUMNS, 1 << 17)
            ],
            "read and sum": lambda: combine([chunk(split, job) for split in splits]),
        }
        seconds = {name: min(cpu_seconds(each) for _ in range(3)) for name, each in work.items()}
    for name, value in seconds.items():
        print(f"{name:14} {value:8.3f} s  {value / seconds['decode']:6.2f} times decoding")
    ratio = (seconds["pin"] + seconds["read"]) / seconds["decode"]
    print(f"pin and read: {ratio:.2f} times decoding (goal {GOAL})")


def write(root: Path, n_files: int) -> list[str]:
    """Write files of random rows, whose texts come in another order in each."""
    rng = np.random.default_rng(1)
    paths = []
    for number in range(n_files):
        keys = rng.choice(N_KEYS, 20, replace=False)
        table = pa.table(
            {
                "city": pa.array([f"city-{key}" for key in rng.choice(keys, N_ROWS)]),
                "heads": rng.random(N_ROWS) < 0.5,
                "amount": rng.normal(size=N_ROWS),
                "other": rng.normal(size=N_ROWS),
            }
        )
        paths.append(os.fspath(root / f"{number:06}.parquet"))
        pq.write_table(table, paths[-1])
    return paths


def decode(path: str) -> int:
    """Read the columns of one file as pyarrow does, with its footer."""
    with pq.ParquetFile(path, read_dictionary=["city"]) as file:
        batches = file.iter_batches(1 << 17, columns=list(COLUMNS), use_threads=False)
        return sum(batch.num_rows for batch in batches)


def spec_of(directory: str) -> Spec:
    """Return a spec that reads the three columns."""
    return load_spec(
        {
            "name": "small",
            "dataset": "nobody",
            "source": {"parquet": directory},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "groups": {"city": [f"city-{key}" for key in range(N_KEYS)]},
            "statistics": {
                "heads": {"family": "bernoulli", "column": "heads"},
                "amount": {"family": "normal", "column": "amount", "lower": "-4", "upper": "4"},
            },
        }
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return how much CPU time all threads of this process take for it."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
