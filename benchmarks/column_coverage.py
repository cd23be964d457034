"""Measure how often intervals of two columns hold their mean, variance and covariance.

    PYTHONPATH=tests python benchmarks/column_coverage.py [--cells 100] [--only fixed|drawn|near] [--sd 0.1]

Bounds are +-10, epsilon is 2, and N, of the order of N0 = 1,000, is private. ``fixed``: in every cell both
columns have mean 1, the standard deviation that the row names, and correlation .5; the posterior has the
family's default prior. ``near``: the same under NormalInverseWishart about these numbers. ``drawn``: the
truths are drawn from that prior, so that intervals of an exact posterior hold as often as they say. A row a
setting and parameter: the share of truths within central intervals, and the share above each median.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import versions

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families.multivariate_normal import FAMILY, simulate
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.joint import plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.typing import Floats

MASSES = (0.5, 0.8, 0.95)
PARAMETERS = ("mean", "variance", "covariance")
EPSILON, N0, MEAN, CORRELATION = "2", 1000, 1.0, 0.5
BATCH = 100
"""Cells whose chains run side by side."""


def main() -> None:
    """Print three lines for every setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--only", choices=("fixed", "near", "drawn"))
    parser.add_argument("--sd", type=float, choices=(0.1, 1.0))
    arguments = parser.parse_args()
    print(versions())
    heading = "".join(f"{100 * mass:>7.0f} %" for mass in MASSES)
    print(f"{'truth':8}{'sd':>5}  {'parameter':12}{heading}{'above':>9}{'R-hat':>9}{'ESS':>7}{'s':>7}")
    rng = np.random.default_rng()
    for way in ("fixed", "near", "drawn"):
        for sd in (0.1, 1.0):
            if arguments.only in (None, way) and arguments.sd in (None, sd):
                _lines(way, sd, arguments.cells, rng)


def _lines(way: str, sd: float, cells: int, rng: np.random.Generator) -> None:
    bounds = {"lower": "-10", "upper": "10"}
    entry: dict[str, Any] = {"family": "multivariate_normal", "columns": {"x": bounds, "y": bounds}}
    plan = plan_of(entry, epsilon=EPSILON, public_n=False)
    spec = spec_of(entry, epsilon=EPSILON, public_n=False).statistics["s"]
    off = CORRELATION * sd**2
    # Six degrees of freedom: the mean of the covariances is that of the fixed truth.
    near = NormalInverseWishart([MEAN, MEAN], 4, 6, [[3 * sd**2, 3 * off], [3 * off, 3 * sd**2]])
    held: dict[str, list[Floats]] = {name: [] for name in PARAMETERS}
    above: dict[str, list[Floats]] = {name: [] for name in PARAMETERS}
    r_hat, effective, started = 1.0, np.inf, time.process_time()
    for start in range(0, cells, BATCH):
        size = min(BATCH, cells - start)
        fixed = np.tile([MEAN, MEAN, sd**2, sd**2, off], (size, 1))
        truth = FAMILY.truth(near, plan.parameters, size, rng) if way == "drawn" else fixed
        sizes = rng.integers(4, 2 * N0, size, endpoint=True) if way == "drawn" else np.full(size, N0)
        totals = FAMILY.totals(spec, plan.design, simulate(spec, truth, sizes, rng).clipped)
        noise = discrete_laplace(plan.scale, totals.shape, rng).astype(object)
        released = noisy_statistic(plan, totals + noise)
        prior = None if way == "fixed" else near
        posterior = posterior_of(released, prior=prior, n_prior=Uniform(4, 2 * N0))
        r_hat = max(r_hat, posterior.diagnostics["largest_r_hat"])
        effective = min(effective, posterior.diagnostics["fewest_effective_draws"])
        drawn = posterior.sample(4000, rng)
        for name, true_values in zip(PARAMETERS, np.split(truth, [2, 4], axis=1), strict=True):
            ends = [(1.0 + sign * mass) / 2.0 for mass in MASSES for sign in (-1.0, 1.0)]
            *limits, median = np.quantile(drawn[name].reshape(4000, size, -1), [*ends, 0.5], axis=0)
            low, high = np.stack(limits[::2]), np.stack(limits[1::2])
            held[name].append(np.mean((low <= true_values) & (true_values <= high), axis=2).T)
            above[name].append(np.mean(true_values > median, axis=1))
    for name in PARAMETERS:
        shares = "".join(f"{100 * share:9.1f}" for share in np.concatenate(held[name]).mean(axis=0))
        print(
            f"{way:8}{sd:>5g}  {name:12}{shares}{100 * np.mean(np.concatenate(above[name])):9.1f}"
            f"{r_hat:9.3f}{effective:7.0f}{time.process_time() - started:7.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
