"""Time cells with one sum by compiled loops beside arrays, in turns: moments and shortest 95 % intervals.

    PYTHONPATH=tests python benchmarks/one_sum.py [--cells 512] [--turns 5] [--default-priors] [FAMILY]

N is private and from 1 to a million, evenly over its logarithm. Times are processor seconds; code is compiled
before anything is timed. Successes are by nested rules, all others by blocks of records and sums together
(docs/decisions/0166-pairs-by-nested-rules.md, 0187-blocks-of-records-and-sums.md). Default priors of rates
and scales are spread (0188-spread-priors-in-loops.md).
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
from measuring import versions
from posteriors import cells_of

from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.math.distributions import many_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.posterior.posterior import Posterior

FAMILIES = ("bernoulli", "binomial", "poisson", "geometric", "negative_binomial", "exponential")
GOAL, GOAL_EPSILON, GOAL_CELLS = 0.1, "0.1", 10_000


def main() -> None:
    """Print a line for each family and epsilon, and how long ten thousand cells take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", default=FAMILIES)
    parser.add_argument("--cells", type=int, default=512)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--default-priors", action="store_true")
    given = parser.parse_args()
    rng = np.random.default_rng()
    for loops in (many_cells.PAIRS, many_cells.BLOCKS, many_cells.SPREAD, many_cells.QUANTILES):
        importlib.import_module(loops.module)
    print(versions())
    print("| family | epsilon | ms a cell by arrays | by loops | ratio |\n|---|---|---|---|---|")
    for family in given.families:
        for epsilon in ("1", "0.1"):
            posterior = cells_of(family, given.cells, epsilon, None, rng, is_default=given.default_priors)
            taken: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(1 + given.turns):
                for nested, times in taken.items():
                    times.append(1000.0 * seconds(posterior, nested=nested) / given.cells)
            blocks, rules = (statistics.median(times[1:]) for times in taken.values())
            pairs = zip(taken[False][1:], taken[True][1:], strict=True)
            ratio = statistics.median(after / before for before, after in pairs)
            goal = f" (goal {GOAL})" if epsilon == GOAL_EPSILON else ""
            print(f"| {family} | {epsilon} | {blocks:.3g} | {rules:.3g} | {ratio:.3f}{goal} |", flush=True)
        posterior = cells_of(family, GOAL_CELLS, GOAL_EPSILON, None, rng, is_default=given.default_priors)
        start, before = time.perf_counter(), time.process_time()
        summarise(posterior())
        wall, processor = time.perf_counter() - start, time.process_time() - before
        print(f"{family}: {GOAL_CELLS} cells in {wall:.2f} s, {processor:.2f} processor seconds", flush=True)
        shares = []
        for _ in range(given.turns):
            alone, both = (wall_seconds(posterior, threads) for threads in (1, 2))
            shares.append(both / alone)
        print(f"{family}: two threads take {statistics.median(shares):.2f} of one's time", flush=True)


def seconds(posterior: Callable[[], Posterior], *, nested: bool) -> float:
    """Time a summary."""
    with mock.patch.object(many_cells, "is_compiled", return_value=nested):
        start = time.process_time()
        summarise(posterior())
        return time.process_time() - start


def wall_seconds(posterior: Callable[[], Posterior], threads: int) -> float:
    """Time a summary by some threads."""
    with mock.patch.object(many_cells, "processors", return_value=threads):
        start = time.perf_counter()
        summarise(posterior())
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
