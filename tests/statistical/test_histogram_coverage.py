"""Intervals of a histogram's quantiles hold the truth, and would not without the width of bins."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from suffice.pipeline.math.engines.histogram.column_law import column_law
from suffice.pipeline.math.engines.histogram.histogram_posterior import histogram_posterior
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

RELEASES = 200
LEVELS = {0.1: -1.2815515655446004, 0.5: 0.0, 0.9: 1.2815515655446004, 0.99: 2.3263478740408408}
"""Levels, and the standard normal's quantiles there."""
MISSES = 27
"""Of 200 intervals with a chance of .95 each: more than that have a chance of 4e-7."""


@pytest.mark.audit
@pytest.mark.parametrize(("n", "epsilon"), [(300, 1.0), (3_000, 0.1), (3_000, 1.0), (30_000, 0.1)])
def test_quantiles_of_a_lognormal_column_are_covered(n: int, epsilon: float) -> None:
    """The truth is no draw of the prior. Four levels: false alarm 2e-6 a setting at most."""
    rng = np.random.default_rng()
    edges = np.concatenate([np.arange(0.0, 60.0, 3.0), np.geomspace(60.0, 10_000.0, 40)])
    bins = SimpleNamespace(lower=edges[:-1], upper=edges[1:], is_atom=np.zeros(len(edges) - 1, dtype=bool))
    values = np.exp(rng.normal(3.0, 1.2, (RELEASES, n))).clip(0.0, 9_999.0)
    counts = np.stack([np.histogram(each, edges)[0] for each in values])
    p = -np.expm1(-epsilon)
    noise = rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
    posterior = histogram_posterior(
        NoisyTotals.of_counts([(counts + noise).astype(np.float64)], [1.0 / epsilon]), bins
    )
    column = column_law(posterior, 1_000, rng)
    for q, z in LEVELS.items():
        truth, known = np.exp(3.0 + 1.2 * z), column.quantile(q)
        assert np.sum((known.lower > truth) | (truth > known.upper)) <= MISSES


@pytest.mark.audit
def test_without_the_width_of_bins_coarse_bins_cover_nothing() -> None:
    """In 64 equal bins of 0..10,000 the median, 20, is anywhere in the first one."""
    rng = np.random.default_rng()
    edges = np.linspace(0.0, 10_000.0, 65)
    bins = SimpleNamespace(lower=edges[:-1], upper=edges[1:], is_atom=np.zeros(64, dtype=bool))
    values = np.exp(rng.normal(3.0, 1.2, (40, 3_000))).clip(0.0, 9_999.0)
    counts = np.stack([np.histogram(each, edges)[0] for each in values]).astype(np.float64)
    column = column_law(histogram_posterior(NoisyTotals.of_counts([counts], [1.0]), bins), 500, rng)
    known = column.median()
    assert np.all((known.lower <= np.exp(3.0)) & (np.exp(3.0) <= known.upper))
    evenly = column._quantiles(0.5)[0]
    low, high = np.quantile(evenly, [0.025, 0.975], axis=0)
    assert not np.any((low <= np.exp(3.0)) & (np.exp(3.0) <= high))
