"""Default intervals of rates and categories hold truths that are all but zero, and such as are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.typing import Floats

LEAST, CONTROL = 0.9, 0.6
"""The share of intervals that has to hold a truth, and one that is to be told from it."""
FALSE_ALARM = 1e-6 / 12
CELLS = next(
    cells
    for cells in range(10, 1000)
    if binom.cdf(binom.ppf(FALSE_ALARM, cells, LEAST) - 1, cells, CONTROL) > 1.0 - 1e-6
)
"""So many that a share of ``CONTROL`` is taken for ``LEAST`` once in a million times."""
TRUTH = np.array([0.0001, 0.001, 0.01, 0.05, 0.1389, 0.2, 0.25, 0.35])


def share_held(entry: dict[str, Any], n: int, epsilon: str, interval: str | None) -> Floats:
    """How many cells' 95 % intervals hold each truth."""
    rng = np.random.default_rng()
    plan = statistic_plan(entry, epsilon=epsilon, public_n=False)
    truth = TRUTH if entry["family"] == "categorical" else TRUTH[:4]
    if entry["family"] == "categorical":
        counts, shape = rng.multinomial(n, truth, CELLS), (CELLS, len(truth))
    else:
        true = rng.binomial(n, np.tile(truth, CELLS))
        counts, shape = np.stack([n - true, true], axis=1), (CELLS, len(truth))
    statistic = noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng))
    ends = posterior_of(statistic).credible_interval("probability", interval=interval, draws=2000)
    ends = ends.reshape(*shape, 2)
    held: Floats = np.sum((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0)
    return held


CATEGORIES: dict[str, Any] = {
    "family": "categorical",
    "column": "x",
    "categories": [f"c{k}" for k in range(8)],
}
RATES: dict[str, Any] = {"family": "bernoulli", "column": "x"}


def check(entry: dict[str, Any], n: int, epsilon: str) -> None:
    least = binom.ppf(FALSE_ALARM, CELLS, LEAST)
    assert np.all(share_held(entry, n, epsilon, None) >= least)
    assert share_held(entry, n, epsilon, "central")[0] < least


@pytest.mark.slow
def test_rare_categories_are_held() -> None:
    check(CATEGORIES, 300, "1")


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_rare_rates_are_held(epsilon: str) -> None:
    check(RATES, 300, epsilon)
