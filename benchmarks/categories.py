"""Time cells of categories by their law beside draws, in turns: moments and shortest 95 % intervals.

    PYTHONPATH=tests python benchmarks/categories.py [--cells 200] [--turns 5]

N is private. Times are processor seconds. The draws are 4,000 a cell, which is what intervals were made of
before; what both are off by: docs/decisions/0167-categories-by-their-law.md.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from measuring import versions

from suffice.pipeline.math.distributions.intervals import shortest_intervals, shortest_of_draws
from suffice.pipeline.math.engines.multinomial.count_posterior import CountsDistribution, count_posterior
from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

SETTINGS = ((5, 5000, 1.0), (5, 30, 1.0), (5, 5000, 0.1), (5, 30, 0.1), (30, 5000, 1.0), (30, 5000, 0.1))
"""Numbers of categories and of records, and epsilon."""
GOAL, GOAL_SETTING = 0.2, (5, 5000, 1.0)
MASS, DRAWS, MANY = 0.95, 4000, 30


def main() -> None:
    """Print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng()
    print(versions())
    print("| categories | N | epsilon | ms a cell by draws | by law | ratio |\n|---|---|---|---|---|---|")
    for setting in SETTINGS:
        cells = given.cells if setting[0] < MANY else max(1, given.cells // 6)
        counts = cells_of(*setting, cells, rng)
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(1 + given.turns):
            for by_law, times in enumerate(taken):
                start = time.process_time()
                distribution = CountsDistribution(count_posterior(counts))
                if by_law:
                    shortest_intervals(distribution, "probability", MASS, (0.0, 1.0), DRAWS, rng)
                else:
                    shortest_of_draws(distribution.posterior.sample(DRAWS, rng), MASS, (0.0, 1.0))
                times.append(1000.0 * (time.process_time() - start) / cells)
        draws, law = (statistics.median(times[1:]) for times in taken)
        ratio = statistics.median(b / a for a, b in zip(taken[0][1:], taken[1][1:], strict=True))
        goal = f" (goal {GOAL})" if setting == GOAL_SETTING else ""
        categories, n, epsilon = setting
        print(f"| {categories} | {n} | {epsilon} | {draws:.3g} | {law:.3g} | {ratio:.3f}{goal} |", flush=True)


def cells_of(categories: int, n: int, epsilon: float, cells: int, rng: np.random.Generator) -> NoisyCounts:
    """Simulate noisy cells under the default prior of N."""
    counts = rng.multinomial(n, rng.dirichlet(np.ones(categories), cells))
    noisy = counts + discrete_laplace(1.0 / epsilon, counts.shape, rng)
    return NoisyCounts.of(
        NoisyTotals.of_counts([noisy.astype(np.float64)], [1.0 / epsilon]),
        concentration=np.ones(categories),
        n_prior=Reciprocal(10**12),
    )


if __name__ == "__main__":
    main()
