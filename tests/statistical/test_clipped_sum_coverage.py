"""Coverage of records before clipping, families with one sum, default priors, a truth that is not from them.

300 records of which 20 % lie beyond the bound, epsilon 1, N private. Of 95 % intervals at least 88 % have to
hold, and of 50 % ones 36 to 64 %. The control ignores clipping: of 4,000 its 95 % intervals held 41 % of
Poisson rates, and 0.6 % of exponential ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.ask.inference.posterior_terms import IGNORED, MODELLED
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.typing import Floats

CASES: dict[str, tuple[dict[str, str], float]] = {
    "exponential": ({"upper": "10"}, 0.160944),
    "gamma": ({"shape": "2", "upper": "10"}, 0.299431),
    "weibull": ({"shape": "1.5", "upper": "10"}, 0.0508948),
    "pareto": ({"minimum": "1", "upper": "100"}, 0.349485),
    "laplace": ({"location": "0", "half_range": "10"}, 6.213349),
    "normal_known_mean": ({"mean": "0", "half_range": "10"}, 60.886987),
    "poisson": ({"upper": "10"}, 8.15),
    "geometric": ({"upper": "10"}, 0.136120),
    "negative_binomial": ({"successes": "3", "upper": "10"}, 0.29),
}
"""Bounds, and the parameter under which some 20 % of all records are beyond them."""
N, CELLS, CONTROL_CELLS, AUDIT_CELLS = 300, 60, 200, 400
FALSE_ALARM = 1e-6 / (4 * len(CASES))


def held(family: str, cells: int, clipping: str) -> Floats:
    """How many intervals of 50 and of 95 % hold the truth."""
    entry, truth = CASES[family]
    model = generative_model_for(family, n=N, epsilon="1", conditions=({"column": "x", **entry}, None))
    rng = np.random.default_rng()
    sums = model.sums(np.full(cells, truth), np.full(cells, N), rng)
    assert 0.15 < sums.n_clipped / cells / N < 0.25
    exact = FAMILIES[family].totals(model.entry, model.plan.design, sums.clipped)
    noise = discrete_laplace(model.scale, exact.shape, rng)
    posterior = posterior_of(noisy_statistic(model.plan, exact + noise), clipping=clipping)
    (name,) = posterior.parameters
    ends = (posterior.credible_interval(name, mass).T for mass in (0.5, 0.95))
    return np.array([np.sum((low <= truth) & (truth <= high)) for low, high in ends])


def check(family: str, cells: int) -> None:
    half, most = held(family, cells, MODELLED)
    assert binom.cdf(half, cells, 0.36) > FALSE_ALARM
    assert binom.sf(half - 1, cells, 0.64) > FALSE_ALARM
    assert binom.cdf(most, cells, 0.88) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("family", list(CASES))
def test_intervals_hold_what_records_were_before_clipping(family: str) -> None:
    check(family, CELLS)


@pytest.mark.audit
@pytest.mark.parametrize("family", list(CASES))
def test_of_many_cells(family: str) -> None:
    check(family, AUDIT_CELLS)


@pytest.mark.parametrize("family", ["exponential", "poisson"])
def test_intervals_that_ignore_clipping_do_not(family: str) -> None:
    """Were 45 % to hold, as many as are asked for would with a chance below 1e-15."""
    _, most = held(family, CONTROL_CELLS, IGNORED)
    assert binom.cdf(most, CONTROL_CELLS, 0.88) < FALSE_ALARM
