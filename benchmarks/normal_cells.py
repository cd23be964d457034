"""Time normal cells by nested rules beside boxes, in turns: moments, evidence and 95 % intervals.

    PYTHONPATH=tests python benchmarks/normal_cells.py [--cells 120] [--turns 3]

N is from 1 to a million, evenly over its logarithm, and private; the prior is the default one. Times are
processor seconds of one thread, medians over turns. How far both are from boxes thirty times as fine:
docs/decisions/0178-parts-of-a-normals-prior-as-vectors.md, and
0186-conjugate-priors-by-nested-rules.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions
from posteriors import LARGEST_N, simulated

from suffice.pipeline.families.normal import default_prior, noisy_moments
from suffice.pipeline.math.engines.normal.moment_posterior import MomentPosterior
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.generative_models import generative_model_for

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments

LEVELS = (0.025, 0.975)
GOAL = 0.15
"""Of the time by boxes."""


def main() -> None:
    """Print a line for each epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=120)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        # One thread: processor time of several counts waiting for caches twice.
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    rng = np.random.default_rng()
    print(versions())
    print("| epsilon | ms a cell by boxes | by nodes | ratio | goal | settled |\n|---|---|---|---|---|---|")
    for epsilon in ("1", "0.1"):
        noisy = cells_of(epsilon, given.cells, rng)
        seconds(noisy.take(np.arange(1)), nested=True)
        taken: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(given.turns):
            for nested, times in taken.items():
                times.append(1000.0 * seconds(noisy, nested=nested) / given.cells)
        settled = np.mean(np.isfinite(MomentPosterior(noisy=noisy, nested=True).error[:, 4]))
        boxes, nodes = (statistics.median(times) for times in taken.values())
        ratio = statistics.median(b / a for a, b in zip(*taken.values(), strict=True))
        print(f"| {epsilon} | {boxes:.3g} | {nodes:.3g} | {ratio:.3f} | {GOAL} | {settled:.3f} |", flush=True)


def cells_of(epsilon: str, cells: int, rng: np.random.Generator) -> NoisyMoments:
    """Simulate cells of a release."""
    model = generative_model_for("normal", n=LARGEST_N, epsilon=epsilon)
    sizes = np.exp(rng.random(cells) * np.log(LARGEST_N)).astype(np.int64)
    noisy = simulated(model, sizes, rng)
    return noisy_moments(noisy, default_prior(noisy.plan.parameters), Reciprocal(10**12))


def seconds(noisy: NoisyMoments, *, nested: bool) -> float:
    """Time all that a summary asks for."""
    start = time.process_time()
    posterior = MomentPosterior(noisy=noisy, nested=nested)
    for parameter in range(2):
        posterior.quantiles(parameter, LEVELS)
    return time.process_time() - start


if __name__ == "__main__":
    main()
