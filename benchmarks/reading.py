"""Time what a consumer waits for: opening and verifying a release of 10,000 cells on local files.

python benchmarks/reading.py
"""

from __future__ import annotations

import datetime as dt
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.manifest import compose_manifest
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import open_release, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

GOAL = 0.3
N_REPETITIONS = 7
LEDGER_ID, RELEASE_ID, HASH = "ab" * 16, "0123456789abcdef", "cd" * 32

SPEC = {
    "name": "reading",
    "dataset": "nobody",
    "source": {"parquet": "absent/"},
    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
    "groups": {
        "station": [f"station-{number:03}" for number in range(100)],
        "hour": {"range": [0, 99]},
    },
    "statistics": {
        "kind": {"family": "categorical", "column": "kind", "categories": ["a", "b", "c", "d"]},
        "late": {"family": "bernoulli", "column": "late"},
        "stops": {"family": "poisson", "column": "stops", "upper": 20},
        "delay": {"family": "normal", "column": "delay", "lower": -60, "upper": 180},
    },
}
"""10,000 cells of every family: 110,000 numbers in four files."""


def publish(root: Path) -> str:
    """Publish a release of random numbers, and return its directory."""
    plan = compile_plan(load_spec(SPEC))
    store = open_store(str(root), ledger_id=LEDGER_ID, create=True)
    rng = np.random.default_rng(1)
    files = []
    for statistic in plan.statistics:
        values = rng.integers(-1000, 2**40, (plan.n_cells, len(statistic.components))).astype(object)
        data = encode_statistic(statistic, values)
        files.append(store.write_data(plan.name, "all", RELEASE_ID, statistic.name, data, rows=values.size))
    manifest = compose_manifest(
        plan,
        window="all",
        amendment=0,
        amends=None,
        release_id=RELEASE_ID,
        public_n=None,
        input_verified=False,
        files=files,
        ledger_id=LEDGER_ID,
        drawing_sequence=1,
        drawing_hash=HASH,
        created=dt.datetime(2026, 1, 31, tzinfo=dt.UTC),
    )
    store.put_manifest(plan.name, "all", RELEASE_ID, manifest)
    return store.release_uri(plan.name, "all", RELEASE_ID)


def median_seconds(step: Callable[[], object]) -> tuple[float, float]:
    """Return the time of the first run, and the median of further ones."""
    times = []
    for _ in range(1 + N_REPETITIONS):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return times[0], statistics.median(times[1:])


def main() -> None:
    """Publish, read, print."""
    with tempfile.TemporaryDirectory() as directory:
        uri = publish(Path(directory) / "store")
        opening = median_seconds(lambda: open_release(uri))
        verifying = median_seconds(lambda: verify_release(uri))
    print("reading a release of 10,000 cells in four statistics, seconds: first, then median")
    for name, (first, median) in {"open": opening, "verify": verifying}.items():
        print(f"  {name:<7} {first:.3f}  {median:.3f}")
    met = max(*opening, *verifying) < GOAL
    print(f"  goal: each under {GOAL}: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
