"""Time a spec with three derived columns beside the same spec over files that store them.

python benchmarks/derived_columns.py [--rows 10000000] [--repetitions 5]

One thread: the ratio is that of the work. Reading is part of both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.spec import Spec, load_spec

GOAL = 1.5
CARRIERS = [f"{first}{second}" for first in "ABCD" for second in "WXYZ"]
DERIVED: dict[str, Any] = {
    "is_late": {"column": "delay", "above": "15"},
    "alliance": {
        "column": "carrier",
        "map": {carrier: "star" if carrier[0] in "AB" else "sky" for carrier in CARRIERS},
    },
    "hour": {"column": "time", "part": "hour", "time_zone": "Europe/Berlin"},
}


def make_spec(directory: Path, *, stored: bool) -> Spec:
    """Return the spec of files that store the columns, or of files that they are derived from."""
    return load_spec(
        {
            "name": "derived",
            "dataset": "benchmark",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            **({} if stored else {"derived": DERIVED}),
            "groups": {"alliance": ["star", "sky"]},
            "statistics": {
                "is_late": {"family": "bernoulli", "column": "is_late"},
                "hour": {"family": "categorical", "column": "hour", "categories": {"range": ["0", "23"]}},
                "delay": {"family": "normal", "column": "delay", "lower": "-60", "upper": "180"},
            },
        }
    )


def write(directory: Path, n_rows: int) -> tuple[Path, Path]:
    """Write random rows, and the same rows with the derived columns stored."""
    rng = np.random.default_rng(1)
    delay = rng.normal(10, 40, n_rows)
    delay[rng.random(n_rows) < 0.02] = np.nan
    carrier = pa.DictionaryArray.from_arrays(rng.integers(0, len(CARRIERS), n_rows).astype(np.int8), CARRIERS)
    seconds = np.sort(rng.integers(1_356_998_400, 1_388_534_400, n_rows))
    times = pa.array(seconds * 10**6, pa.timestamp("us", "UTC"))
    table = pa.table({"delay": pa.array(delay, from_pandas=True), "carrier": carrier, "time": times})
    plain, stored = directory / "plain", directory / "stored"
    for place in (plain, stored):
        place.mkdir()
    pq.write_table(table, plain / "a.parquet")
    job = chunk_job(make_spec(plain, stored=False))
    with_columns = pa.Table.from_batches(with_derived(table.to_batches(), job))
    pq.write_table(with_columns, stored / "a.parquet")
    return plain, stored


def seconds_of(spec: Spec) -> float:
    """Return the seconds that reading and summing all rows takes, one task after the other."""
    job, splits = chunk_job(spec), sources.splits(sources.pin(spec))
    started = time.perf_counter()
    for split in splits:
        chunk(split, job)
    return time.perf_counter() - started


def main() -> None:
    """Run both in turn, and print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        plain, stored = write(Path(directory), options.rows)
        specs = {"derived": make_spec(plain, stored=False), "stored": make_spec(stored, stored=True)}
        taken: dict[str, list[float]] = {name: [] for name in specs}
        for _ in range(1 + options.repetitions):
            for name, spec in specs.items():
                taken[name].append(seconds_of(spec))
    medians = {name: statistics.median(runs[1:]) for name, runs in taken.items()}
    for name, seconds in medians.items():
        print(f"{name:10}{seconds:8.3f} s {options.rows / seconds / 1e6:8.1f} million rows/s")
    ratio = statistics.median(
        ours / theirs for ours, theirs in zip(taken["derived"][1:], taken["stored"][1:], strict=True)
    )
    print(f"ratio {ratio:.2f} (goal {GOAL})")


if __name__ == "__main__":
    main()
