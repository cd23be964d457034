"""Log emissions against sums written out, their limits, and the likelihood in NumPyro.

Exact counts are drawn from their law: every branch, and a law that is nearly right is found out.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, logsumexp

from suffice.pipeline.ask.models.noisy_counts import EmissionTable, draw_latent_counts, log_emission
from support.noisy import noisy_statistic, statistic_plan


def summed(released: int, expected: float, scale: float) -> float:
    """The sum over all counts that have a part in it."""
    widest = max(released, expected)
    n = np.arange(int(widest + 12 * math.sqrt(max(expected, 1.0)) + 40 * scale + 60))
    terms = n * math.log(expected) - expected - gammaln(n + 1.0) - np.abs(released - n) / scale
    return float(logsumexp(terms)) + math.log(math.tanh(0.5 / scale))


def test_a_released_count_below_zero() -> None:
    assert log_emission(-3, 0.5, 5.0) == pytest.approx(-2.996545, abs=5e-7)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    released=st.integers(-200, 6000),
    log_expected=st.floats(-20.0, math.log(6000.0)),
    scale=st.sampled_from([0.01, 0.05, 0.3, 1.0, 5.0, 50.0]),
)
def test_against_the_sum(released: int, log_expected: float, scale: float) -> None:
    log_probability, wanted = (
        log_emission(released, math.exp(log_expected), scale),
        summed(released, math.exp(log_expected), scale),
    )
    assert abs(float(log_probability) - wanted) <= 1e-10 * max(1.0, abs(wanted))


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
    tabled = table.take(rows).log_emission(roots)
    wanted = log_emission(released[rows], roots**2, scale)
    likely = wanted > -60.0
    assert np.max(np.abs(tabled - wanted)[likely]) < (1e-5 if scale >= 2.0 else 2e-4)
    assert np.max(np.abs(tabled / wanted - 1.0)) < 0.05
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


DRAWS = 40_000
CASES = [
    (released, expected, scale)
    for scale in (0.2, 1.0, 5.0, 50.0)
    for released in (-5, 0, 1, 3, 40, 300)
    for expected in (0.02, 0.3, 0.9, 6.0, 45.0, 330.0)
]
THRESHOLD = float(np.sqrt(np.log(2.0 * len(CASES) / 1e-7) / (2.0 * DRAWS)))
"""Of the distance of distribution functions: Massart's bound, 1e-7 over all cases together."""


def distance(drawn: np.ndarray, released: int, expected: float, scale: float) -> float:
    n = np.arange(max(drawn.max(), 900) + 1)
    log_weight = n * np.log(expected) - gammaln(n + 1.0) - np.abs(n - released) / scale
    chance = np.exp(log_weight - log_weight.max())
    empirical = np.cumsum(np.bincount(drawn, minlength=len(n))) / len(drawn)
    return float(np.max(np.abs(empirical - np.cumsum(chance) / chance.sum())))


@pytest.mark.slow
@pytest.mark.parametrize("scale", sorted({scale for _, _, scale in CASES}))
def test_draws_follow_their_law(scale: float) -> None:
    cases = [(released, expected) for released, expected, other in CASES if other == scale]
    released, expected = (np.repeat(np.array(each), DRAWS) for each in zip(*cases, strict=True))
    drawn = draw_latent_counts(released, expected, scale, np.random.default_rng())
    for place, (y, mu) in enumerate(cases):
        of_case = drawn[place * DRAWS : (place + 1) * DRAWS]
        assert distance(of_case, y, mu, scale) < THRESHOLD
    # The controls: an expected count of 45 that is taken for 54, and a noise for one a fifth wider.
    none = drawn[cases.index((0, 45.0)) * DRAWS :][:DRAWS]
    assert distance(none, 0, 54.0, scale) > THRESHOLD
    if scale in {1.0, 5.0}:
        near = drawn[cases.index((300, 330.0)) * DRAWS :][:DRAWS]
        assert distance(near, 300, 330.0, 1.2 * scale) > THRESHOLD


def test_without_noise_nothing_is_latent() -> None:
    released = np.array([0, 3, 900])
    assert draw_latent_counts(released, np.ones(3), 0.0, np.random.default_rng(7)).tolist() == [0, 3, 900]


def test_large_counts() -> None:
    """Beyond the table of factorials: the mean of a normal count behind wide noise, within 6 errors: 2e-9."""
    released, expected, scale = np.full(4000, 2_000_000), np.full(4000, 2_001_000.0), 1e6
    drawn = draw_latent_counts(released, expected, scale, np.random.default_rng())
    # Noise so wide has no say but for its tilt, which is by a factor of exp(-/+1e-6) here.
    assert abs(drawn.mean() - 2_001_000.0) < 6.0 * np.sqrt(2_001_000.0 / 4000) + 3.0
    assert drawn.std() == pytest.approx(np.sqrt(2_001_000.0), rel=0.1)
