"""Coverage under the default prior of a normal column, of true scales far below its bounds too.

With a fixed truth the 95 % interval of the variance has to hold it in at least 90 % of the cells. With truths
from the prior itself intervals have to be nominal, whatever part of the mixture they are of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.typing import Floats, Rows

ENTRY = {"column": "x", "lower": "-10", "upper": "10"}
LEAST, MASS = 0.9, 0.95
CELLS, AUDIT_CELLS, NOMINAL_CELLS = 40, 400, 500
CONTROL = NormalInverseGamma(0, 1, 3, 50)
"""Of the scale of the bounds alone."""
FEW = [(100, 0.0, 0.1)]
ALL = [(n, mean, sd) for n in (20, 100, 1000) for sd in (0.01, 0.1, 1.0, 3.0) for mean in (0.0, 5.0)]
MASSES = (0.5, 0.8, 0.95)
FALSE_ALARM = 1e-6 / (2 * len(ALL) + 2 * 2 * 2 * len(MASSES))
"""Of one setting or level: 1e-6 over the whole file."""


def posterior_given(
    truth: Floats, rows: Rows, n_prior: Uniform | None, prior: Prior | None, *, clipped: bool
) -> Posterior:
    """Posterior of cells with these means and variances, (n_cells, 2), and numbers of rows; epsilon 0.5."""
    rng = np.random.default_rng()
    model = generative_model_for("normal", n=1, epsilon="0.5", conditions=(ENTRY, None))
    sums = model.sums(truth, rows, rng)
    exact = model.family.totals(model.entry, model.plan.design, sums.clipped if clipped else sums.unclipped)
    noise = discrete_laplace(model.scale, exact.shape, rng)
    statistic = noisy_statistic(model.plan, exact + noise.astype(object))
    return posterior_of(statistic, prior=prior, n_prior=n_prior)


def enough(n: int, mean: float, sd: float, cells: int, prior: Prior | None = None) -> bool:
    """Whether so many cells hold the true variance as is likely where at least 90 % of all do."""
    truth = np.tile([mean, sd**2], (cells, 1))
    posterior = posterior_given(truth, np.full(cells, n), None, prior, clipped=True)
    low, high = posterior.credible_interval("variance", MASS).T
    held = int(np.sum((low <= sd**2) & (sd**2 <= high)))
    return held >= binom.ppf(FALSE_ALARM, cells, LEAST)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "mean", "sd"), FEW)
def test_a_variance_far_below_the_bounds_is_held(n: int, mean: float, sd: float) -> None:
    assert enough(n, mean, sd, CELLS)
    assert not enough(n, mean, sd, CELLS, CONTROL)


@pytest.mark.audit
@pytest.mark.parametrize(("n", "mean", "sd"), ALL)
def test_a_variance_of_any_scale_is_held(n: int, mean: float, sd: float) -> None:
    assert enough(n, mean, sd, AUDIT_CELLS)


@pytest.mark.audit
@pytest.mark.parametrize("n", [30, 2000])
def test_truths_from_the_default_are_covered_nominally(n: int) -> None:
    """Rows are summed without clipping: the mixture has truths as wide as the bounds."""
    rng = np.random.default_rng()
    model = generative_model_for("normal", n=n, epsilon="0.5", conditions=(ENTRY, None))
    truth = model.truth(NOMINAL_CELLS, rng)
    rows = rng.integers(0, 2 * n, NOMINAL_CELLS, endpoint=True)
    posterior = posterior_given(truth, rows, Uniform(0, 2 * n), None, clipped=False)
    for position, parameter in enumerate(("mean", "variance")):
        for mass in MASSES:
            low, high = posterior.credible_interval(parameter, mass).T
            held = int(np.sum((low <= truth[:, position]) & (truth[:, position] <= high)))
            least, most = binom.interval(1.0 - FALSE_ALARM, NOMINAL_CELLS, mass)
            assert least <= held <= most, (parameter, mass, held)
