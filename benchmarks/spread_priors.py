"""Cover the variance of normal columns of any scale under the default prior, and time its posterior.

    PYTHONPATH=tests python benchmarks/spread_priors.py [--cells 400] [--sd 0.1 3] [--rows 100]

Bounds are -10 and 10, epsilon is 0.5, N is private under its default prior, and every cell has the same true
mean and standard deviation. A line has the share of cells whose 95 % interval holds the true variance, the
median upper end of the intervals, that of an oracle's, whose prior is InverseGamma(3, 2 variance) and who
knows the mean's scale, and beside them the standard deviation that noise alone gives an estimated variance.
The last column is the processor time of a summary under the default prior over that under one component, the
same cells in turn.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

BOUND, EPSILON, MASS = 10, "0.5", 0.95
MEANS, SDS, ROWS = (0.0, 5.0), (0.01, 0.1, 1.0, 3.0), (20, 100, 1000)
LEAST = 0.9
"""The share of cells that have to hold the truth."""


def main() -> None:
    """Print a line for every number of rows, mean and standard deviation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--oracle-cells", type=int, default=40)
    parser.add_argument("--sd", type=float, nargs="*", default=SDS)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    arguments = parser.parse_args()
    rng = np.random.default_rng()
    print(versions())
    print(f"{'rows':>6}{'mean':>6}{'sd':>6}{'held':>8}{'upper end':>11}{'oracle':>9}{'noise sd':>10}{'x':>7}")
    low = 0
    for n in arguments.rows:
        for sd in arguments.sd:
            for mean in MEANS:
                statistic = released(n, mean, sd, arguments.cells, rng)
                intervals, seconds = summary(statistic, None)
                held = np.mean((intervals[:, 0] <= sd**2) & (sd**2 <= intervals[:, 1]))
                few = statistic.take(np.arange(min(arguments.oracle_cells, arguments.cells)))
                oracle, _ = summary(few, NormalInverseGamma(0, sd**2 / 25, 3, 2 * sd**2))
                one = NormalInverseGamma(0, 1, 3, BOUND**2 / 2)
                ratio = seconds / summary(statistic, one)[1]
                low += held < LEAST
                print(
                    f"{n:6}{mean:6.0f}{sd:6g}{held:8.1%}{np.median(intervals[:, 1]):11.3g}"
                    f"{np.median(oracle[:, 1]):9.3g}{noise_sd(statistic, n):10.3g}{ratio:7.1f}",
                    flush=True,
                )
    print(f"settings below {LEAST:.0%}: {low}")


def released(n: int, mean: float, sd: float, cells: int, rng: np.random.Generator) -> NoisyStatistic:
    """Cells of n normal records each, clipped to the bounds, and noise."""
    entry = {"column": "x", "lower": str(-BOUND), "upper": str(BOUND)}
    model = generative_model_for("normal", n=n, epsilon=EPSILON, conditions=(entry, None))
    sums = model.sums(np.tile([mean, sd**2], (cells, 1)), np.full(cells, n), rng)
    noise = discrete_laplace(model.scale, (cells, len(model.plan.components)), rng)
    totals = model.family.totals(model.entry, model.plan.design, sums.clipped)
    return noisy_statistic(model.plan, totals + noise.astype(object))


def summary(statistic: NoisyStatistic, prior: Prior | None) -> tuple[Floats, float]:
    """Return intervals (n_cells, 2) of the variance, and processor seconds for both parameters' summaries."""
    start = time.process_time()
    posterior = posterior_of(statistic, prior=prior)
    for parameter in posterior.parameters:
        posterior.mean(parameter), posterior.sd(parameter)
        interval = posterior.credible_interval(parameter, MASS)
    return interval, time.process_time() - start


def noise_sd(statistic: NoisyStatistic, n: int) -> float:
    """Return the standard deviation that noise gives the sum of squares of n known rows, over n."""
    (squares,) = (part for part in statistic.plan.quantities if part.name == "total_of_squares")
    variance = sum(float(part) ** 2 for part in squares.coefficients.values())
    return math.sqrt(2.0 * variance) * statistic.plan.scale / n


if __name__ == "__main__":
    main()
