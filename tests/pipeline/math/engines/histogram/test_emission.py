"""The chance of a noisy count given a mean, beside direct sums; and latent counts given both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2, poisson

from suffice.pipeline.math.engines.histogram.emission import counts_given, log_emission

if TYPE_CHECKING:
    from suffice.typing import Floats

CASES = [
    (mean, noisy, epsilon)
    for epsilon in (0.05, 0.5, 4.0)
    for mean in (0.01, 3.0, 250.0, 20_000.0)
    for noisy in (-15.0, 0.0, 1.0, 230.0, 20_400.0)
    # The sum has what the chance is made of only where mean and noisy count are near.
    if abs(noisy - mean) < 40.0 / epsilon + 10.0 * np.sqrt(mean)
]


def log_terms(mean: float, noisy: float, epsilon: float) -> tuple[Floats, Floats]:
    """Return counts and the logs of Poisson(k) noise(y - k)."""
    k = np.arange(0.0, max(mean, noisy) + 60.0 / epsilon + 20.0 * np.sqrt(mean) + 50.0)
    constant = np.log(np.tanh(epsilon / 2.0))
    return k, poisson.logpmf(k, mean) - epsilon * np.abs(noisy - k) + constant


@pytest.mark.parametrize(("mean", "noisy", "epsilon"), CASES)
def test_the_closed_form_is_the_sum_over_counts(mean: float, noisy: float, epsilon: float) -> None:
    closed = log_emission(np.array([mean]), np.array([noisy]), np.exp(np.array([-epsilon])))
    assert closed[0] == pytest.approx(logsumexp(log_terms(mean, noisy, epsilon)[1]), rel=1e-10, abs=2e-9)


@pytest.mark.parametrize(
    ("mean", "noisy", "epsilon"),
    [(3.0, -2.0, 0.5), (3.0, 5.0, 0.5), (40.0, 60.0, 0.05), (250.0, 230.0, 4.0), (20_000.0, 20_400.0, 0.5)],
)
def test_latent_counts_have_their_law(mean: float, noisy: float, epsilon: float) -> None:
    """Chi-square of 20,000 draws in 20 groups or fewer: false alarm 1e-7 each; a scale .8 as large fails."""
    size, alarm = 20_000, 1e-7
    rng = np.random.default_rng()
    of_counts, log_law = log_terms(mean, noisy, epsilon)

    def statistic(law: Floats, drawn: Floats) -> tuple[float, int]:
        groups = np.minimum((np.cumsum(law) - law / 2.0) * 20.0, 19.0).astype(np.int64)
        expected = size * np.bincount(groups, law, minlength=20)
        counted = np.bincount(groups[drawn.astype(np.int64)], minlength=20)
        kept = expected > 5.0
        gap = (counted - expected)[kept] ** 2 / expected[kept]
        return float(np.sum(gap)), int(np.sum(kept)) - 1

    drawn = counts_given(np.full(size, mean), np.array([noisy]), np.exp(np.array([-epsilon])), rng)
    law = np.exp(log_law - logsumexp(log_law))
    value, freedom = statistic(law, drawn)
    assert value < chi2.isf(alarm, freedom)
    _, other = log_terms(mean, noisy, epsilon / 0.8)
    wrong, freedom = statistic(np.exp(other - logsumexp(other)), drawn)
    # Below 0 the noise has no part in the count but through its rate.
    assert wrong > chi2.isf(alarm, freedom)
    assert of_counts[0] == 0.0


def test_no_mean_has_no_count() -> None:
    drawn = counts_given(
        np.zeros((3, 2)), np.array([4.0, -1.0]), np.exp(np.array([-0.5, -0.5])), np.random.default_rng()
    )
    assert np.all(drawn == 0.0)
