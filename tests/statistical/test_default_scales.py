"""Coverage under default priors of one scale, truths far below the bound, and conflict of a stated one.

Truths are even in the logarithm from a tenth to a 10,000th of the bound of T. Of all cells together the 95 %
interval has to hold the truth in at least 90 %. The control is the prior of one record at half the bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

CASES: dict[str, tuple[dict[str, str], float, str]] = {
    "exponential": ({"upper": "100"}, 100.0, "Gamma(1, 50)"),
    "gamma": ({"shape": "2", "upper": "100"}, 50.0, "Gamma(1, 25)"),
    "weibull": ({"shape": "1.7", "upper": "60"}, 60.0**1.7, "Gamma(1, 527)"),
    "pareto": ({"minimum": "1", "upper": "1e4"}, math.log(1e4), "Gamma(1, 4.6)"),
    "laplace": ({"location": "0", "half_range": "60"}, 60.0, "InverseGamma(3, 30)"),
    "normal_known_mean": ({"mean": "0", "half_range": "60"}, 3600.0, "InverseGamma(3, 1800)"),
}
"""Entry, bound of the scale, and the control."""
SCALES = ("laplace", "normal_known_mean")
LEAST, MASS = 0.9, 0.95
CELLS, AUDIT_CELLS = 100, 1000
SETTINGS = ((30, "1"), (300, "0.1"), (300, "1"), (5000, "0.1"), (5000, "1"))
FALSE_ALARM = 1e-6 / (2 * (len(SETTINGS) + 1) * len(CASES))
"""Of one setting: 1e-6 over the whole file."""


def posterior_given(family: str, scale: Floats, n: int, epsilon: str, prior: str | None) -> Posterior:
    rng = np.random.default_rng()
    entry: dict[str, Any] = {"column": "x", **CASES[family][0]}
    model = generative_model_for(family, n=n, epsilon=epsilon, conditions=(entry, None))
    truth = scale if family in SCALES else 1.0 / scale
    exact = model.family.totals(
        model.entry, model.plan.design, model.sums(truth, np.full(len(scale), n), rng).clipped
    )
    noise = discrete_laplace(model.scale, exact.shape, rng)
    return posterior_of(noisy_statistic(model.plan, exact + noise.astype(object)), prior=prior)


def enough(family: str, n: int, epsilon: str, cells: int, prior: str | None = None) -> bool:
    """Whether so many cells hold the truth as is likely where at least 90 % of all do."""
    scale = CASES[family][1] * 10.0 ** -np.random.default_rng().uniform(1.0, 4.0, cells)
    posterior = posterior_given(family, scale, n, epsilon, prior)
    (parameter,) = posterior.parameters
    low, high = posterior.credible_interval(parameter, MASS).T
    truth = scale if family in SCALES else 1.0 / scale
    return int(np.sum((low <= truth) & (truth <= high))) >= binom.ppf(FALSE_ALARM, cells, LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["exponential", "laplace"])
def test_a_scale_far_below_the_bound_is_held(family: str) -> None:
    assert enough(family, 30, "1", CELLS)
    assert not enough(family, 30, "1", CELLS, CASES[family][2])


@pytest.mark.audit
@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize(("n", "epsilon"), SETTINGS)
def test_a_scale_of_any_size_is_held(family: str, n: int, epsilon: str) -> None:
    assert enough(family, n, epsilon, AUDIT_CELLS)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["exponential", "laplace"])
def test_a_prior_that_noise_multiplies_conflicts_with_all_cells_together(family: str) -> None:
    """Truths are at 1 % of the bound: no cell alone is far out, at 30 records and epsilon 1.

    Of 15 releases the log Bayes factors added up to 387 (sd 8), forty standard deviations from no conflict.
    """
    _, upper, stated = CASES[family]
    conflict = posterior_given(family, np.full(CELLS, upper / 100.0), 30, "1", stated).conflict
    assert conflict.is_against_all
    assert f"under {conflict.alternative} as" in conflict.lines()[-1]


@pytest.mark.parametrize("family", ["exponential", "laplace"])
def test_a_prior_that_the_truths_are_from_does_not_conflict(family: str) -> None:
    """Of 40 such releases the log Bayes factors added up to -268 (sd 8): 0 is 33 standard deviations away."""
    rng = np.random.default_rng(7)
    scale = CASES[family][1] * 0.05 / rng.standard_gamma(40.0, CELLS) * 40.0
    stated = f"{'Inverse' if family in SCALES else ''}Gamma(40, {40 * 0.05 * CASES[family][1]})"
    conflict = posterior_given(family, scale, 300, "1", stated).conflict
    assert len(conflict.log_bayes_factors) == CELLS
    assert np.sum(conflict.log_bayes_factors) < 0.0
    assert not conflict.is_against_all
