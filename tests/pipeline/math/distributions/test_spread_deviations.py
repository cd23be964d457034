"""Standard deviations and correlations of columns: their densities, their draws, and that they are apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import spread_deviations
from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart, updated_given_scales
from suffice.pipeline.math.priors.by_name import parse_prior

DRAWS = 20_000
SMIRNOV = 2.9
"""Over the root of n: beyond it a largest distance of distribution functions lies once in 1e7."""


def test_standard_deviations_are_drawn_from_their_density() -> None:
    """Kolmogorov and Smirnov; the control is flat in the variance up to 1."""
    x = np.linspace(-16.0, 3.0, 20_001)
    density = np.exp(spread_deviations.log_density(np.exp(x), np.log))
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2.0 * np.diff(x))])
    assert below[-1] == pytest.approx(1.0, abs=1e-6)
    slopes = np.gradient(np.log(density), x)
    assert spread_deviations.slope(np.exp(x))[1:-1] == pytest.approx(slopes[1:-1], abs=1e-3)
    drawn = np.log(spread_deviations.sample((DRAWS,), np.random.default_rng()))
    assert stats.kstest(drawn, lambda at: np.interp(at, x, below)).statistic < SMIRNOV / np.sqrt(DRAWS)
    flat = stats.kstest(drawn, lambda at: np.exp(2.0 * np.minimum(at, 0.0))).statistic
    assert flat > SMIRNOV / np.sqrt(DRAWS)


@pytest.mark.parametrize("columns", [2, 5])
@pytest.mark.parametrize("concentration", [0.5, 2.0])
def test_correlations_have_one_law_at_any_number_of_columns(columns: int, concentration: float) -> None:
    """And are independent of standard deviations: 4e-7 in all. The control has the other concentration."""
    prior = SpreadNormalInverseWishart(0, [1.0] * columns, concentration)
    _, covariance = prior.sample(DRAWS, np.random.default_rng(), columns)
    sd = np.sqrt(np.einsum("nii->ni", covariance))
    correlation = covariance[:, 0, 1] / sd[:, 0] / sd[:, 1]
    law = stats.beta(concentration, concentration, loc=-1, scale=2)
    other = stats.beta(2.5 - concentration, 2.5 - concentration, loc=-1, scale=2)
    assert stats.kstest(correlation, law.cdf).statistic < SMIRNOV / np.sqrt(DRAWS)
    assert stats.kstest(correlation, other.cdf).statistic > SMIRNOV / np.sqrt(DRAWS)
    # 6 standard errors of a rank correlation of independent numbers: 2e-9.
    assert abs(stats.spearmanr(sd[:, 0], np.abs(correlation)).statistic) < 6.0 / np.sqrt(DRAWS)


def test_the_density_of_correlations_of_two_columns_is_that_of_a_beta_distribution() -> None:
    at = np.linspace(-0.99, 0.99, 7)
    matrices = np.ones((7, 2, 2))
    matrices[:, 0, 1] = matrices[:, 1, 0] = at
    for concentration in (0.3, 1.0):
        law = stats.beta(concentration, concentration, loc=-1, scale=2)
        density = spread_deviations.log_density_of_correlations(matrices, concentration)
        assert density == pytest.approx(law.logpdf(at))


def test_a_concentration_is_read_and_named() -> None:
    prior = parse_prior("SpreadNormalInverseWishart([0, 1], [2, 3], 2)")
    assert prior == SpreadNormalInverseWishart((0, 1), (2, 3), 2)
    assert str(parse_prior("SpreadNormalInverseWishart(0, 1)")) == "SpreadNormalInverseWishart(0, 1, 0.5)"
    with pytest.raises(PriorError, match="concentration"):
        SpreadNormalInverseWishart(0, 1, 0)


def test_a_column_that_does_not_vary_has_a_density_and_a_slope() -> None:
    """Far below the least expected the density falls as the square: exact, and without a warning."""
    deviation = np.array([1e-60, 1e-45, 1e-30])
    np.testing.assert_allclose(spread_deviations.slope(deviation), 2.0, rtol=1e-12)
    steps = np.diff(spread_deviations.log_density(deviation, np.log))
    np.testing.assert_allclose(steps, 2.0 * 15.0 * np.log(10.0), rtol=1e-12)


@pytest.mark.parametrize("short", [0.0, 1e-14, -1e-14], ids=["multiples", "rounded up", "rounded down"])
def test_columns_that_are_multiples_of_each_other_have_draws(short: float) -> None:
    """A scatter of rank 1, and one that rounding took past it: draws keep to the line of the columns."""
    n, cells = 100_000.0, 200
    spread = np.array([[1.0, 0.5], [0.5, 0.25 - short]]) / 100.0
    mean = np.array([0.25, -0.5])
    rng = np.random.default_rng(7)
    distribution = updated_given_scales(
        SpreadNormalInverseWishart(0.0, 1.0),
        Moments(
            n=np.full(cells, n),
            total=np.tile(n * mean, (cells, 1)),
            products=np.tile(n * (spread + np.outer(mean, mean)), (cells, 1, 1)),
            centre=np.zeros(2),
            half_range=np.ones(2),
        ),
        ("a", "b"),
        np.full((cells, 2), 1e-30),
        np.full(cells, n / 2.0),
        rng,
    )
    drawn = distribution.sample(1, rng)
    away = (drawn["mean"] - mean) @ np.array([-0.5, 1.0])
    assert np.abs(drawn["mean"] - mean).max() > 1e-5
    assert np.abs(away).max() < 1e-6
    assert np.isfinite(drawn["covariance"]).all()


def test_means_given_scales_are_drawn_from_the_product_of_two_normal_laws() -> None:
    """Squared distances by the product's own matrix are chi-squared: 40,000 of them, two-sided at 1e-7.

    The control: half the weight of the rows leaves a matrix that they are too near for.
    """
    n, cells, weight = 6.0, 20_000, 2.5
    spread, mean, variance = np.array([[0.2, 0.09], [0.09, 0.06]]), np.array([0.25, -0.5]), [0.3, 0.02]
    distribution = updated_given_scales(
        SpreadNormalInverseWishart([0.5, 0.0], [1.0, 2.0]),
        Moments(
            n=np.full(cells, n),
            total=np.tile(n * mean, (cells, 1)),
            products=np.tile(n * (spread + np.outer(mean, mean)), (cells, 1, 1)),
            centre=np.array([0.1, 0.2]),
            half_range=np.array([2.0, 1.0]),
        ),
        ("a", "b"),
        np.tile(variance, (cells, 1)),
        np.full(cells, weight),
        np.random.default_rng(),
    )
    # In half ranges of the moments: the prior's, then (5) by inverses.
    unit = np.array([0.5, 2.0])
    centre = np.array([0.4 / 2.0, -0.2])
    of_prior = np.linalg.inv(np.diag((unit / 2.0) ** 2))
    of_rows = 2.0 * n * np.linalg.inv(np.diag(variance * unit**2) + n * spread)
    drawn = (distribution.loc - [0.1, 0.2]) / [2.0, 1.0]

    def chance(weight: float) -> float:
        precision = of_prior + weight * of_rows
        middle = np.linalg.solve(precision, of_prior @ centre + weight * of_rows @ mean)
        distance = np.einsum("ci,ij,cj", drawn - middle, precision, drawn - middle)
        return float(2.0 * min(stats.chi2.sf(distance, 2 * cells), stats.chi2.cdf(distance, 2 * cells)))

    assert chance(weight) > 1e-7
    assert chance(weight / 2.0) < 1e-7
