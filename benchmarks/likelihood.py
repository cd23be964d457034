"""Posteriors under new priors from a likelihood that is at hand, beside those that work sums out again.

``python -m benchmarks.likelihood``: CPU seconds, their ratio, and how far means are apart.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import stats

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.likelihood import Likelihood, likelihood_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

CELLS = 1000


def simulated(cells: int) -> NoisyStatistic:
    """Return Bernoulli cells of 25 to 500 records, as they may have been released."""
    spec = load_spec(
        {
            "name": "simulated",
            "dataset": "simulated",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": "0.8", "neighboring": "add_or_remove_one"},
            "statistics": {"flag": {"family": "bernoulli", "column": "flag"}},
        }
    )
    (plan,) = compile_plan(spec).statistics
    rng = np.random.default_rng(3)
    values = np.stack([rng.integers(20, 400, cells), rng.integers(5, 100, cells)], axis=1).astype(object)
    keys: list[str | int] = list(range(cells))
    return NoisyStatistic(
        plan=plan, values=values, groups={"cell": keys}, public_n=None, max_total_rows=10**12
    )


def main() -> None:
    """Print what a thousand cells take."""
    statistic = simulated(CELLS)
    prior = stats.beta(2, 9)
    began = time.process_time()
    likelihood = likelihood_of(statistic, None, lambda posterior: posterior, "benchmark")
    if not isinstance(likelihood, Likelihood):
        raise TypeError
    built = time.process_time() - began
    began = time.process_time()
    now = likelihood.posterior(prior)
    from_table = time.process_time() - began
    began = time.process_time()
    before = posterior_of(statistic, prior=prior, clipping="ignored")
    anew = time.process_time() - began
    apart = np.max(np.abs(now.mean("probability") - before.mean("probability")) / before.sd("probability"))
    error = likelihood.error.max()
    print(f"{CELLS} cells: the likelihood {built:.2f} s, once; largest error {error:.1e} nats")
    print(f"a posterior from it {from_table:.2f} s, anew {anew:.2f} s: {anew / from_table:.1f} times")
    print(f"means are at most {apart:.1e} standard deviations apart")


if __name__ == "__main__":
    main()
