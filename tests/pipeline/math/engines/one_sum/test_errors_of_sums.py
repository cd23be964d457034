"""Errors that cells with one sum state, and those that finer blocks say they have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.many_cells import Loops
from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaBinomial, GammaPoisson, NoisySums
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.mixtures import SpreadGamma
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

TOLERABLE, BEYOND, OF_ARRAYS = 0.002, 5e-4, 2e-4
"""Of means in standard deviations, of these over themselves, of log evidences; what is stated is no bound."""
PLACES = np.array([[0.3, 2.0], [4.0, 9.0], [40.0, 170.0], [-1.0, 0.5]])
"""Both sums in scales of the noise."""
SPREAD = SpreadGamma(1.0)
SUCCESSES: tuple[Marginal, Update, float] = (
    BetaBinomial(concentration1=2.0, concentration0=3.0, trials=1.0),
    lambda n, total: BetaDistribution(concentration1=2.0 + total, concentration0=3.0 + n - total),
    1.0,
)
POISSON: tuple[Marginal, Update, float] = (
    GammaPoisson(concentration=4.0, rate=1.0),
    lambda n, total: GammaDistribution(concentration=4.0 + total, rate=1.0 + n),
    1.0,
)
SCALES: tuple[Marginal, Update, float] = (
    SpreadGammaGamma(weights=SPREAD.weights, concentration=3.0, rates=SPREAD.rates, shape=1.0, share=1.0),
    lambda n, total: GammaDistribution(concentration=3.0 + n, rate=SPREAD.rates[0] + total),
    1.0 / 1024.0,
)


def cells_of(
    model: tuple[Marginal, Update, float], scale: float, reach: float
) -> tuple[NoisySums, Update]:  # fmt: skip
    marginal, update, step = model
    totals = NoisyTotals(
        values=np.rint(PLACES * scale),
        scale=np.array([scale, scale]),
        coefficients=np.array([[0.0, 1.0], [reach, -1.0]]),
        releases=1,
    )
    prior = Reciprocal(10**9)
    return NoisySums(totals=totals, step=step, lower=0.0, marginal=marginal, n_prior=prior), update


@pytest.mark.parametrize(
    ("model", "scale", "reach", "has_error"),
    [
        pytest.param(SUCCESSES, 20.0, 1.0, True, id="successes"),
        pytest.param(POISSON, 400.0, 40.0, True, id="both"),
        pytest.param(POISSON, 2.0, 40.0, False, id="sums alone"),
        pytest.param(SCALES, 10_240.0, 1024.0, False, id="spread"),
    ],
)
def test_answers_of_loops_miss_finer_ones_by_what_is_tolerable(
    model: tuple[Marginal, Update, float],
    scale: float,
    reach: float,
    has_error: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is stated is about as much as they miss, where anything is stated."""
    monkeypatch.setattr(Loops, "pay", lambda _, __: True)
    posterior = LatentSumPosterior.of(*cells_of(model, scale, reach))
    misses = posterior.misses()
    assert np.max(misses) < TOLERABLE
    assert np.all(np.isfinite(posterior.error)) == has_error
    if has_error:
        assert np.all(misses <= posterior.error + BEYOND)
    few = np.array([1, 3])
    np.testing.assert_allclose(posterior.take(few).misses(), misses[few], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("model", "scale", "reach"), [(POISSON, 400.0, 40.0), (SCALES, 10_240.0, 1024.0)])
def test_answers_that_are_off_miss_finer_ones_by_as_much(
    model: tuple[Marginal, Update, float], scale: float, reach: float
) -> None:
    """Of arrays nothing is stated; a mean, a deviation and an evidence that are off by known amounts are."""
    posterior = LatentSumPosterior.of(*cells_of(model, scale, reach))
    assert np.all(np.isnan(posterior.error))
    assert np.max(posterior.misses()) < OF_ARRAYS
    means, sds = posterior.near
    for wrong in (
        replace(posterior, near=(means + 0.01 * sds, sds)),
        replace(posterior, near=(means, np.exp(0.01) * sds)),
        replace(posterior, log_evidence=posterior.log_evidence - 0.01),
    ):
        assert wrong.misses() == pytest.approx(0.01, abs=2.0 * OF_ARRAYS)


def test_design_effects_leave_the_error_of_the_evidence() -> None:
    """Moments are of divided pairs, of which finer blocks have others."""
    posterior = LatentSumPosterior.of(*cells_of(POISSON, 400.0, 40.0)).tempered(np.full((4, 2), 2.0))
    assert np.all(np.isnan(posterior.error))
    assert np.max(posterior.misses()) < OF_ARRAYS
    wrong = replace(posterior, log_evidence=posterior.log_evidence + 0.5)
    assert wrong.misses() == pytest.approx(0.5, abs=OF_ARRAYS)
