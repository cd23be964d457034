"""The likelihood of clipped records: against simulated records, and where nothing is clipped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from suffice.pipeline.families import normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.mean_variance.clipped_records import ClippedRecords
from suffice.pipeline.math.engines.mean_variance.likelihood import LatentRows
from suffice.pipeline.math.priors.record_count import Fixed
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

STEPS = 1 << 16
DRAWS = 40_000
MEANS = np.array([0.5, 0.3, 0.8, 0.0, 0.5, 0.5])
SDS = np.array([0.5, 0.4, 0.6, 0.9, 0.2, 0.3])


@pytest.mark.slow
def test_moments_are_those_of_clipped_draws() -> None:
    """Sixteen means of a million draws within six standard errors: a false alarm has the chance 5e-8."""
    rng = np.random.default_rng()
    for mean, sd in ((0.0, 0.1), (0.7, 0.5), (1.5, 0.4), (0.0, 5.0)):
        x = np.clip(rng.normal(mean, sd, 10**6), -1.0, 1.0)
        clipped = ClippedRecords.of(np.array([mean]), np.array([2.0 * math.log(sd)]))
        away = x - clipped.mean[0]
        exact = (
            0.0,
            clipped.variance[0],
            clipped.skewed[0] * clipped.variance[0],
            clipped.kurtosis[0] * clipped.variance[0] ** 2,
        )
        for degree, value in enumerate(exact, start=1):
            powers = away**degree
            assert abs(powers.mean() - value) < 6.0 * powers.std() / 1000.0 + 1e-12


@pytest.mark.parametrize("log_variance", [-700.0, -300.0, 0.0, 300.0, 700.0])
@pytest.mark.parametrize("mean", [-1e70, -3.0, 0.0, 1.0, 1e70])
def test_moments_of_any_parameters_are_finite(mean: float, log_variance: float) -> None:
    clipped = ClippedRecords.of(np.array([mean]), np.array([log_variance]))
    expected, shape = clipped.deviations(7.0, np.linspace(-1.0, 1.0, 5))
    for values in (clipped.mean, clipped.variance, clipped.skewed, clipped.kurtosis, expected, shape):
        assert np.all(np.isfinite(values))
    assert np.all(shape > 0.0)
    assert np.all(expected >= 0.0)
    assert np.all(np.abs(clipped.mean) <= 1.0)


def simulated(values: list[int], scale: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Log likelihoods of every parameter, from the exact sums of simulated clipped records."""
    densities = []
    for mean, sd in zip(MEANS, SDS, strict=True):
        x = np.clip(rng.normal(mean, sd, (DRAWS, n)), -1.0, 1.0)
        total, squares = x.sum(axis=1), (x * x).sum(axis=1)
        ends, cross = (n + squares) / 4.0, total / 2.0
        components = (ends - cross, (n - squares) / 2.0, ends + cross)
        distance = sum(
            np.abs(value / (4.0 * STEPS**2) - component)
            for value, component in zip(values, components, strict=True)
        )
        densities.append(np.log(np.mean(np.exp(-distance / (scale / (4.0 * STEPS**2))))))
    return np.array(densities)


@pytest.mark.parametrize(("n", "epsilon"), [(3, "0.5"), (12, "0.5"), (40, "0.5"), (40, "1")])
def test_likelihoods_are_those_of_simulated_records(n: int, epsilon: str) -> None:
    """Within 0.15 of exact ones, errors of simulation included; without clipping they are off by far more."""
    rng = np.random.default_rng(n)
    plan = statistic_plan({"family": "normal", "lower": "-1", "upper": "1"}, epsilon=epsilon, public_n=False)
    x = np.rint(np.clip(rng.normal(0.7, 0.5, n), -1.0, 1.0) * STEPS).astype(object)
    total, squares = int(x.sum()), int((x * x).sum())
    sums = np.array([[n, total, squares]], dtype=object)
    spec = normal.NormalSpec.model_validate(
        {"family": "normal", "column": "x", "lower": "-1", "upper": "1"}, strict=False
    )
    values = normal.totals(spec, plan.design, sums) + discrete_laplace(plan.scale, (1, 3), rng)
    noisy = normal.noisy_moments(noisy_statistic(plan, values), NormalInverseGamma(0, 1, 3, 1), Fixed(n))
    exact = simulated([int(value) for value in values[0]], plan.scale, n, rng)
    of_each = []
    for clips in (True, False):
        rows = LatentRows.of(noisy, 20.0, clips=clips)
        log_likelihoods = [
            rows.log_likelihood(np.array([[mean]]), np.array([[2.0 * math.log(sd)]]))[0, 0, 0]
            for mean, sd in zip(MEANS, SDS, strict=True)
        ]
        top = int(np.argmax(exact))
        matters = exact > exact[top] - 4.0
        error = np.array(log_likelihoods) - exact
        of_each.append(np.max(np.abs(error - error[top])[matters]))
    clipped, unclipped = of_each
    assert clipped < 0.15
    if n >= 12:
        assert unclipped > 2.0 * clipped


def test_without_clipping_both_agree() -> None:
    """Bounds twelve standard deviations away: the same likelihood on a coarser grid."""
    plan = statistic_plan({"family": "normal", "lower": "-1", "upper": "1"}, epsilon="1", public_n=False)
    n, mean, sd = 200, 0.1, 0.07
    sums = [n * (1.0 - 2.0 * mean + mean**2 + sd**2), 2.0 * n * (1.0 - mean**2 - sd**2)]
    sums.append(n * (1.0 + 2.0 * mean + mean**2 + sd**2))
    values = np.array([[round(value * STEPS**2) for value in sums]], dtype=object)
    noisy = normal.noisy_moments(noisy_statistic(plan, values), NormalInverseGamma(0, 1, 3, 1), Fixed(n))
    places = (mean + np.linspace(-0.02, 0.02, 5))[None], (2.0 * np.log(sd) + np.linspace(-0.6, 0.6, 5))[None]
    clipped, plain = (
        LatentRows.of(noisy, 20.0, clips=clips).log_likelihood(*places) for clips in (True, False)
    )
    difference = clipped - plain
    assert np.ptp(difference[plain > np.max(plain) - 6.0]) < 0.05
