"""Time the noise of many cells: the draws alone, all that comes after the sums of a release, and samples.

python benchmarks/noise_rate.py [--cells 1000000]
"""

from __future__ import annotations

import argparse
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import peak_megabytes, processor_seconds, versions
from workloads import make_spec, n_threads

from suffice.pipeline.rows.chunk.exact_sums import ExactTotals
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.mechanism.noise import discrete_laplace
from suffice.pipeline.rows.mechanism.sampling import CellSampler
from suffice.pipeline.rows.reduce.tree import zero_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.storage.releases.release_parquet import encode_statistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

GOAL = 10.0
FAMILIES = {
    "bernoulli": {"family": "bernoulli", "column": "x"},
    "normal": {"family": "normal", "column": "x", "lower": "0", "upper": "1"},
}

GRIDS = (65, 1025, 4097)
RECORDS = (0, 10_000, 100_000_000)
CANDIDATES = 200_000


def main() -> None:
    """Draw, add and encode; print seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=1_000_000)
    cells = parser.parse_args().cells
    print(f"noise of {cells:,} cells; {n_threads()} threads\n{versions()}\n")
    print(f"{'':34}{'wall s':>9}{'CPU s':>9}{'draws / CPU s':>15}{'peak MB':>9}")
    wall = timed(
        "draws, one a cell",
        lambda: draw(cells),
        cells,
    )
    for name, entry in FAMILIES.items():
        spec = make_spec("absent", {"g": {"range": ["1", str(cells)]}}, {"s": entry})
        plan, totals = compile_plan(spec), ExactTotals(zero_sums(chunk_job(spec)))
        (statistic,) = plan.statistics
        noisy: list[NDArray[Any]] = []
        timed(
            f"{name}: noise and addition",
            lambda: noisy.extend(block for _, block in privatize(totals, spec, plan)),  # noqa: B023 - called at once
            cells * len(statistic.components),
        )
        timed(f"{name}: its file", lambda: encode_statistic(statistic, np.concatenate(noisy)), 0)  # noqa: B023
    for grid, n in itertools.product(GRIDS, RECORDS):
        time_sample(grid, n)
    if cells == 1_000_000:
        print(f"goal: the draws in {GOAL:.0f} s: {'met' if wall <= GOAL else 'MISSED'}")


def time_sample(grid: int, n: int) -> None:
    """Draw three points of a grid in each of some cells of so many records, in one thread."""
    sample = {"draws": "3", "within": ["0.005", "0.5"], "grid": str(grid), "prior": "Beta(1, 30)"}
    entry = {"family": "bernoulli", "column": "x", "sample": sample}
    spec = make_spec("absent", {}, {"s": entry})
    sampler = CellSampler.of(compile_plan(spec).statistics[0], spec.statistics["s"])
    n_cells = max(10, CANDIDATES // (3 * grid))
    sums = np.array([[n - n // 10, n // 10]] * n_cells, dtype=object)

    def drawn() -> None:
        scores = sampler.scores(sums)
        out = np.zeros((n_cells, 3), np.int64)
        for cell in range(n_cells):
            sampler.selector.draw_into(scores[cell], out[cell])

    start = processor_seconds()
    drawn()
    seconds = processor_seconds() - start
    each = seconds / (3 * n_cells)
    print(
        f"sample: {grid:,} points, {n:,} records: {1e3 * each:.2f} ms a draw, {1e6 * each / grid:.1f} "
        "microseconds a candidate"
    )


def draw(size: int) -> None:
    """Draw as many threads do that the mechanism starts."""
    sampler = discrete_laplace(scale=10.0, loss=PrivacyLoss.of_epsilon(Fraction(1)), l1_sensitivity=1)
    with ThreadPoolExecutor(n_threads()) as threads:
        for drawn in sampler.start(np.zeros(size, np.int64), threads):
            drawn.result()


def timed(name: str, step: Callable[[], object], draws: int) -> float:
    """Run a step once and print what it took; return seconds."""
    wall, processor = time.perf_counter(), processor_seconds()
    step()
    wall, processor = time.perf_counter() - wall, processor_seconds() - processor
    rate = f"{draws / processor:15,.0f}" if draws else " " * 15
    print(f"{name:34}{wall:9.2f}{processor:9.2f}{rate}{peak_megabytes():9,.0f}")
    return wall


if __name__ == "__main__":
    main()
