"""Log emissions against sums written out, their limits, and the likelihood in NumPyro."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, logsumexp

from suffice.pipeline.ask.models.noisy_counts import EmissionTable, log_emission
from support.noisy import noisy_statistic, statistic_plan


def summed(released: int, expected: float, scale: float) -> float:
    """The sum over all counts that have a part in it."""
    widest = max(released, expected)
    n = np.arange(int(widest + 12 * math.sqrt(max(expected, 1.0)) + 40 * scale + 60))
    terms = n * math.log(expected) - expected - gammaln(n + 1.0) - np.abs(released - n) / scale
    return float(logsumexp(terms)) + math.log(math.tanh(0.5 / scale))


def test_a_released_count_below_zero() -> None:
    assert log_emission(-3, 0.5, 5.0) == pytest.approx(-2.996545, abs=5e-7)


@settings(max_examples=300, deadline=None)
@given(
    released=st.integers(-200, 6000),
    log_expected=st.floats(-20.0, math.log(6000.0)),
    scale=st.sampled_from([0.01, 0.05, 0.3, 1.0, 5.0, 50.0]),
)
def test_against_the_sum(released: int, log_expected: float, scale: float) -> None:
    found, wanted = (
        log_emission(released, math.exp(log_expected), scale),
        summed(released, math.exp(log_expected), scale),
    )
    assert abs(float(found) - wanted) <= 1e-10 * max(1.0, abs(wanted))


@pytest.mark.parametrize("scale", [0.3, 2.0, 20.0])
def test_chances_sum_to_one(scale: float) -> None:
    reach = int(40 * scale + 200)
    released = np.arange(-reach, reach + 30)
    assert np.exp(log_emission(released, 30.0, scale)).sum() == pytest.approx(1.0, abs=1e-12)


def test_without_noise_it_is_a_poisson_count() -> None:
    released, expected = np.arange(-2, 40)[:, None], np.array([0.01, 3.0, 25.0])
    wanted = np.asarray(stats.poisson.logpmf(released, expected))
    assert np.allclose(log_emission(released, expected, 0.0), wanted)
    # Of a count below 0 noise of a small scale leaves a small chance, as it leaves of no rows at all.
    nearly = log_emission(released[2:], expected, 0.01)
    assert np.allclose(nearly, np.maximum(wanted[2:], nearly.min()), atol=1e-9)
    assert log_emission(4, 0.0, 2.0) == pytest.approx(stats.dlaplace.logpmf(4, 0.5))


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.59, 0.61, 1.0, 5.0, 50.0])
def test_the_table_is_near(scale: float) -> None:
    """Worst where the logs are above -60, and within its bend far away; a root of 200 is beyond any table."""
    released = np.array([1, 2, 3, 5, 9, 20, 35, 150, 1200])
    table = EmissionTable.of(released, scale)
    rows = np.repeat(np.arange(len(released)), 4001)
    roots = np.tile(np.linspace(0.0, 45.0, 4001), len(released))
    found = table.take(rows).log_emission(roots)
    wanted = log_emission(released[rows], roots**2, scale)
    likely = wanted > -60.0
    assert np.max(np.abs(found - wanted)[likely]) < (1e-5 if scale >= 2.0 else 2e-4)
    assert np.max(np.abs(found / wanted - 1.0)) < 0.05
    every = np.arange(len(released))
    far = table.take(every).log_emission(np.full(len(released), 200.0))
    assert np.all(far < -700.0)
    if scale >= 5.0:
        assert np.allclose(far, log_emission(released, 40_000.0, scale), rtol=1e-6)


@pytest.mark.slow
def test_the_likelihood_in_numpyro_with_a_poisson_number_of_rows() -> None:
    """Given N the cell is multinomial there; summed over a Poisson N it is the product of our emissions."""
    numpyro = pytest.importorskip("numpyro")
    numpyro.enable_x64()
    from suffice import numpyro as likelihood

    family = {"family": "categorical", "categories": ["a", "b"], "other": "true"}
    plan = statistic_plan(family, epsilon="0.5", public_n=False)
    released = np.array([6, -2, 3])
    theta = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]])
    statistic = noisy_statistic(plan, np.array([released, released]).astype(object))
    rows, sizes = 0.6, np.arange(9)
    given_size = [likelihood.log_likelihood(statistic, n_prior=n, probability=theta) for n in sizes.tolist()]
    theirs = logsumexp(np.array(given_size) + stats.poisson.logpmf(sizes, rows)[:, None], axis=0)
    ours = log_emission(released, rows * theta, plan.scale).sum(axis=-1)
    # Theirs is known but for a constant; what is left out is a number of rows above 8.
    assert theirs[0] - theirs[1] == pytest.approx(ours[0] - ours[1], abs=1e-6)
    assert abs(ours[0] - ours[1]) > 0.01
