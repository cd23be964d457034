"""Default priors of several columns as references: densities against draws, sub-models against integrals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate, stats

from suffice.pipeline.math.distributions.normal_inverse_gamma import RegressionDistribution
from suffice.pipeline.math.distributions.spread_scales import (
    SpreadNormalInverseGammaRegression,
    SpreadNormalInverseWishart,
)
from suffice.pipeline.math.engines.multivariate.reference import (
    ColumnsReference,
    GivenCoefficients,
    RegressionReference,
)

if TYPE_CHECKING:
    from suffice.typing import Floats

REGRESSION = SpreadNormalInverseGammaRegression((2.0, 3.0, 10.0), (1.0, 2.0, 5.0))
COLUMNS = SpreadNormalInverseWishart((2.0, 3.0, 10.0), (1.0, 2.0, 5.0))
DRAWS = 30_000
ERRORS = 6.0
"""Of a mean of weights: 2e-9, and four times that at their skewness of 3."""


def is_one(weight: Floats) -> bool:
    return bool(abs(weight.mean() - 1.0) < ERRORS * weight.std() / np.sqrt(len(weight)))


@pytest.mark.parametrize("places", [(0,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_densities_are_those_of_draws(places: tuple[int, ...]) -> None:
    """A density over that of draws is 1 on average. Control: the density of other coefficients is not.

    Of ten means a false alarm has the chance 1e-7; the controls are a hundred standard errors off.
    """
    reference = RegressionReference.of(REGRESSION, 3, linear=True)
    beta, variance = REGRESSION.sample(DRAWS, np.random.default_rng(), 3, linear=True)
    part = beta[:, list(places)]
    narrow = stats.multivariate_normal(
        reference.shift[list(places)], np.diag(np.array([1.0, 1.0, 9.0])[list(places)])
    )
    log_narrow = np.asarray(narrow.logpdf(part))
    assert is_one(np.exp(log_narrow - reference.log_density(places, part, None)))
    of_variance = stats.invgamma(4, scale=20).logpdf(variance)
    assert is_one(np.exp(log_narrow + of_variance - reference.log_density(places, part, variance)))
    other = [place for place in (1, 2, 0) if place not in places or len(places) == 3][:1]
    if len(places) == 1:
        assert not is_one(np.exp(log_narrow - reference.log_density(other, part, None)))


def test_others_are_drawn_given_what_is_known() -> None:
    """Laws by Kolmogorov and Smirnov at 1e-13; rank correlations of .10 within six errors of .0082, 4e-9.

    The control, coefficients that have nothing in common, is six errors beyond, and is missed as rarely.
    """
    reference, rng = RegressionReference.of(REGRESSION, 3, linear=True), np.random.default_rng()
    beta, variance = REGRESSION.sample(DRAWS, rng, 3, linear=True)
    for given in (None, variance):
        whole, spread = reference.complete([1], beta[:, [1]], given, rng)
        for own, expected in ((whole[:, 0], beta[:, 0]), (whole[:, 2], beta[:, 2]), (spread, variance)):
            assert stats.ks_2samp(own, expected).statistic < 3.9 * np.sqrt(2.0 / DRAWS)
        assert np.array_equal(whole[:, 1], beta[:, 1])
        # Coefficients of one draw have the scale of the residuals in common.
        size, known = np.abs(whole[:, 0]), np.abs(beta[:, 1])
        expected_of = stats.spearmanr(np.abs(beta[:, 0]), known).statistic
        assert stats.spearmanr(size, known).statistic == pytest.approx(expected_of, abs=0.05)
        assert stats.spearmanr(np.roll(size, 1), known).statistic != pytest.approx(expected_of, abs=0.05)


def test_a_sub_model_counts_by_the_density_of_its_values() -> None:
    states = RegressionDistribution(
        loc=np.array([[0.5, -0.2]]),
        covariance=np.array([[[0.4, 0.1], [0.1, 0.3]]]),
        concentration=np.array([3.0]),
        scale=np.array([2.0]),
        predictors=("x", "z"),
        intercept=False,
    )
    given = GivenCoefficients.of(states, [1], [0.7])

    def joint(variance: float) -> float:
        return float(
            stats.norm.pdf(0.7, -0.2, np.sqrt(0.3 * variance)) * stats.invgamma(3, scale=2).pdf(variance)
        )

    known, _ = integrate.quad(joint, 0, np.inf)
    assert given.log_density()[0] == pytest.approx(np.log(known), abs=1e-6)
    at = np.array([1.3])
    of_variance = stats.norm.logpdf(0.7, -0.2, np.sqrt(0.3 * 1.3))
    assert given.log_density_given(at)[0] == pytest.approx(of_variance)
    zeros = given.coefficients(at, np.zeros((1, 2)))
    # E x given z: 0.5 + 0.1 / 0.3 of the distance.
    assert zeros[0] == pytest.approx([0.5 + 0.1 / 0.3 * 0.9, 0.7])


@pytest.mark.slow
@pytest.mark.parametrize("places", [(1,), (0, 1), (0, 1, 2)])
def test_densities_of_covariances_are_those_of_draws(places: tuple[int, ...]) -> None:
    """Weighed to known distributions, standard deviations and correlations have their means.

    Weights are heavy-tailed: of three columns 40 draws in 30,000 count, and six errors are .5 of a logarithm.
    """
    reference, part = ColumnsReference.of(COLUMNS, 3), list(places)
    _, covariance = COLUMNS.sample(DRAWS, np.random.default_rng(7), 3)
    inner = covariance[:, part][:, :, part]
    sd = np.sqrt(np.einsum("nii->ni", inner))
    correlation = inner / sd[:, :, None] / sd[:, None, :]
    # |R| to the power 1: r^2 of a pair is 1 / (d + 3) on average (LKJ of eta 2).
    log_wanted = stats.lognorm(0.5, scale=0.5).logpdf(sd).sum(axis=1) + np.linalg.slogdet(correlation)[1]
    weight = np.exp(log_wanted - reference.log_of_covariance(places, inner, ["sd"] * len(part)))
    weight /= weight.sum()
    error = ERRORS * np.sqrt(np.sum(weight**2))
    assert np.max(np.abs(weight @ np.log(sd) - np.log(0.5))) < 0.5 * error
    if len(part) > 1:
        alone = np.exp(np.linalg.slogdet(correlation)[1] - reference.log_of_covariance(places, inner, []))
        for each in (weight, alone / alone.sum()):
            assert each @ correlation[:, 0, 1] ** 2 == pytest.approx(
                1.0 / (len(part) + 3.0), abs=0.35 * error
            )
