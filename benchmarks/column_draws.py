"""Time the chains of regressions: effective draws a second of one core, by number of predictors.

    PYTHONPATH=tests python benchmarks/column_draws.py [--cells 1] [--predictors 5]

Rows are 2,000 by default, predictors normal of standard deviation 1 within +-5 and correlated .3, epsilon 2,
and all priors are stated or default ones of the family. Effective draws are of the worst parameter of the
worst cell, times cells; time is that of the processor, warm-up included.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from measuring import versions

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families.linear_regression import FAMILY, simulate
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace, normal_rows
from support.joint import plan_of, spec_of
from support.noisy import noisy_statistic

EPSILON = "2"


def main() -> None:
    """Print a line for a stated prior of the coefficients, and one for the default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=1)
    parser.add_argument("--predictors", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000)
    arguments = parser.parse_args()
    print(versions())
    size, rng = arguments.predictors, np.random.default_rng()
    bounds = {"lower": "-5", "upper": "5"}
    entry: dict[str, Any] = {
        "family": "linear_regression",
        "noise": "laplace",
        "predictors": {f"x{position}": bounds for position in range(size)},
        "outcome": {"y": {"lower": "-20", "upper": "20"}},
    }
    plan = plan_of(entry, epsilon=EPSILON, public_n=False)
    spec = spec_of(entry, epsilon=EPSILON, public_n=False).statistics["s"]
    stated = NormalInverseGammaRegression(0, 0.5, 4, 3)
    truth = FAMILY.truth(stated, plan.parameters, arguments.cells, rng)
    covariance = np.broadcast_to(0.7 * np.eye(size) + 0.3, (arguments.cells, size, size))
    mean = np.zeros((arguments.cells, size))
    sizes = np.full(arguments.cells, arguments.rows)
    sums = simulate(spec, truth, sizes, rng, lambda _, source: normal_rows(mean, covariance, source))
    totals = FAMILY.totals(spec, plan.design, sums.clipped)
    released = noisy_statistic(plan, totals + discrete_laplace(plan.scale, totals.shape, rng).astype(object))
    for name, prior in (("stated", stated), ("default", None)):
        started = time.process_time()
        diagnostics = posterior_of(released, prior=prior).diagnostics
        seconds = time.process_time() - started
        effective = diagnostics["fewest_effective_draws"] * arguments.cells
        print(
            f"{name:8} prior: {effective:7,} effective draws in {seconds:5.1f} s, "
            f"{effective / seconds:8,.0f} a second; R-hat {diagnostics['largest_r_hat']}"
        )


if __name__ == "__main__":
    main()
