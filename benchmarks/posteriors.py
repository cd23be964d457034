"""Time noise-aware posteriors: cells summarised, and independent draws, by family.

    PYTHONPATH=tests python benchmarks/posteriors.py [--cells 10000] [FAMILY ...]

A summary is the posterior with its means, standard deviations and 95 % intervals. A quarter of the cells each
is behind an epsilon of 0.01, 0.1, 1 and 5; N is private under the default prior, from 1 to a million and
evenly over its logarithm, or public and 1,000. Draws are timed beyond those that prepare them. A cell of a
calibration is a posterior and 199 draws, N0 = 10,000 and epsilon 0.1. Clipping is
ignored. All times are processor seconds.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

EPSILONS = ("0.01", "0.1", "1", "5")
PUBLIC_N, LARGEST_N, CALIBRATION_N = 1000, 10**6, 10**4
RECORDS = 1000
"""Records drawn of a cell; a larger one is a multiple of such a cell."""
DRAWN_CELLS, FEW, MANY = 50, 1000, 21_000
CALIBRATION_CELLS, CALIBRATION_DRAWS = 256, 199
COUNTS = ("bernoulli", "binomial", "poisson", "geometric", "negative_binomial")
CONTINUOUS = ("exponential", "pareto", "laplace", "normal_known_mean", "normal_known_variance")
SLOW = ("normal", "categorical", "contingency")
"""Families of which a fiftieth of the cells are timed."""
GOAL_CELLS, GOAL_DRAWS = 2000.0, 1e6
"""A second, of counts."""


def main() -> None:
    """Time the families, and print a line for each and for both designs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--cells", type=int, default=10_000)
    arguments = parser.parse_args()
    rng = np.random.default_rng()
    print(versions())
    print(
        f"{'':22}{'N':9}{'ms a cell, by epsilon':>32}{'cells/s':>9}{'million draws/s':>32}{'calibration':>13}"
    )
    for family in arguments.families or (*COUNTS, *CONTINUOUS, *SLOW):
        cells = arguments.cells // (50 if family in SLOW else 1) // len(EPSILONS)
        for public_n in (None, PUBLIC_N):
            seconds = [
                summary_seconds(cells_of(family, cells, epsilon, public_n, rng)) for epsilon in EPSILONS
            ]
            rates = [
                draws_a_second(cells_of(family, DRAWN_CELLS, epsilon, public_n, rng)) for epsilon in EPSILONS
            ]
            line = f"{family:22}{'public' if public_n else 'private':9}"
            line += joined([1000.0 * second / cells for second in seconds])
            line += f"{len(EPSILONS) * cells / sum(seconds):9,.0f}" + joined([rate / 1e6 for rate in rates])
            if public_n is None:
                line += f"{1000.0 * calibration_seconds(family, rng) / CALIBRATION_CELLS:10.2f} ms"
            print(line, flush=True)
    print(f"goals for counts: {GOAL_CELLS:,.0f} cells/s, {GOAL_DRAWS:,.0f} draws/s")


def cells_of(
    family: str,
    cells: int,
    epsilon: str,
    public_n: int | None,
    rng: np.random.Generator,
    *,
    is_default: bool = False,
) -> Callable[[], Posterior]:
    """Simulate noisy cells; their posterior, under their own prior or the default, when it is called for."""
    generative_model = generative_model_for(
        family, n=public_n or LARGEST_N, epsilon=epsilon, public_n=public_n is not None
    )
    sizes = np.exp(rng.random(cells) * np.log(LARGEST_N)).astype(np.int64)
    noisy = simulated(generative_model, sizes if public_n is None else np.full(cells, public_n), rng)
    prior = None if is_default else generative_model.prior
    return lambda: posterior_of(noisy, prior=prior, clipping="ignored")


def simulated(
    generative_model: GenerativeModel, sizes: NDArray[np.int64], rng: np.random.Generator
) -> NoisyStatistic:
    """Draw records of every cell, sum them and add noise."""
    times = np.maximum(sizes // RECORDS, 1)
    sums = generative_model.sums(generative_model.truth(len(sizes), rng), sizes // times, rng).clipped
    noise = discrete_laplace(generative_model.scale, (len(sizes), len(generative_model.plan.components)), rng)
    return generative_model.noisy(sums * times[:, None].astype(object), noise)


def summary_seconds(posterior: Callable[[], Posterior]) -> float:
    """Time means, standard deviations and intervals."""
    start = time.process_time()
    summarise(posterior())
    return time.process_time() - start


def draws_a_second(posterior: Callable[[], Posterior]) -> float:
    """Time many draws of every cell beside few of them."""
    made, seconds = posterior(), []
    for draws in (1, FEW, MANY):
        start = time.process_time()
        made.sample(draws)
        seconds.append(time.process_time() - start)
    return (MANY - FEW) * made.n_groups / (seconds[2] - seconds[1])


def calibration_seconds(family: str, rng: np.random.Generator) -> float:
    """Time what a calibration does with its cells."""
    generative_model = generative_model_for(family, n=CALIBRATION_N, epsilon="0.1")
    noisy = simulated(generative_model, generative_model.sizes(CALIBRATION_CELLS, rng), rng)
    start = time.process_time()
    posterior_of(
        noisy, prior=generative_model.prior, n_prior=generative_model.n_prior, clipping="ignored"
    ).sample(CALIBRATION_DRAWS)
    return time.process_time() - start


def joined(numbers: Sequence[float]) -> str:
    """Numbers in columns."""
    return "".join(f"{number:8.2f}" for number in numbers)


if __name__ == "__main__":
    main()
