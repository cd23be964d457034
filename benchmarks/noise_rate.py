"""Time the noise of many cells: the draws alone, then all that comes after the sums of a release.

python benchmarks/noise_rate.py [--cells 1000000]
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import peak_megabytes, processor_seconds, versions
from workloads import make_spec, n_threads

from suffice.pipeline.chunk.exact_totals import ExactTotals
from suffice.pipeline.chunk.partition import chunk_job
from suffice.pipeline.mechanism.mechanism import privatize
from suffice.pipeline.mechanism.noise import discrete_laplace
from suffice.pipeline.reduce.tree import zero_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.storage.releases.release_parquet import encode_statistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

GOAL = 10.0
FAMILIES = {
    "bernoulli": {"family": "bernoulli", "column": "x"},
    "normal": {"family": "normal", "column": "x", "lower": "0", "upper": "1"},
}


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
        timed(f"{name}: its file", lambda: encode_statistic(statistic, plan.groups, np.concatenate(noisy)), 0)  # noqa: B023
    if cells == 1_000_000:
        print(f"goal: the draws in {GOAL:.0f} s: {'met' if wall <= GOAL else 'MISSED'}")


def draw(size: int) -> None:
    """Draw as many threads do that the mechanism starts."""
    sampler = discrete_laplace(scale=10.0, l1_sensitivity=1, epsilon=Fraction(1))
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
