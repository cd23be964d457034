"""Intervals of correlated columns of real flights hold their correlation and covariance by default."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy.stats import binom

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from support.cone_calibration import released
from support.honest_flights import flights
from support.joint import STEPS

CELLS, ROWS, EPSILON = 40, 1000, "0.3"
LEAST = 0.88
"""Of 90 % intervals. Of 40 cells fewer than 22 hold the truth with a chance below 1e-6, if 88 % do."""
FALSE_ALARM = 1e-6
BOUNDS = {"dep_delay": (-60.0, 100.0), "arr_delay": (-80.0, 100.0), "air_time": (0.0, 400.0)}
TOWARDS_0 = SpreadNormalInverseWishart(0, 1, 2.5)
"""The control: near correlations of 1 it falls as the former default did given standard deviations."""


def shares(prior: SpreadNormalInverseWishart | None) -> tuple[int, int]:
    """Return in how many cells intervals of the delays' correlation, and covariance, hold the truth."""
    rng = np.random.default_rng()
    table = flights().select(list(BOUNDS)).drop_null()
    columns = [
        (2.0 * np.clip(pc.cast(table[name], "float64").to_numpy(), low, high) - low - high) / (high - low)
        for name, (low, high) in BOUNDS.items()
    ]
    population = np.rint(np.column_stack(columns) * STEPS).astype(np.int64)
    known = np.cov(population.T / STEPS)
    sums = np.empty((CELLS, 10), dtype=object)
    for cell in range(CELLS):
        rows = population[rng.integers(0, len(population), ROWS)]
        products = [int(rows[:, i] @ rows[:, j]) for i in range(3) for j in range(i, 3)]
        sums[cell] = [ROWS, *(int(total) for total in rows.sum(axis=0)), *products]
    posterior = posterior_of(released(sums, EPSILON, rng, noise="laplace"), prior=prior)
    drawn = posterior.sample(2000, rng=rng)
    covariance, variance = drawn["covariance"][..., 0], drawn["variance"]
    correlation = covariance / np.sqrt(variance[..., 0] * variance[..., 1])
    held = []
    for values, truth in (
        (correlation, known[0, 1] / np.sqrt(known[0, 0] * known[1, 1])),
        (covariance, known[0, 1]),
    ):
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        held.append(int(np.sum((low <= truth) & (truth <= high))))
    return held[0], held[1]


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_correlations_that_noise_hides_are_held() -> None:
    """Delays at departure and arrival are correlated by .9; noise hides most of it."""
    least = binom.ppf(FALSE_ALARM, CELLS, LEAST)
    correlation, covariance = shares(None)
    assert correlation >= least
    assert covariance >= least
    assert shares(TOWARDS_0)[0] < least
