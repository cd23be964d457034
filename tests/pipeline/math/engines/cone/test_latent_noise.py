"""The coordinates of noise on a cone: their law against plans and another sampler, and their gradient."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.math.engines.cone.latent_noise import ConePoints, LatentConeNoise
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
from support.slopes import assert_gradient

STEPS = 1 << 16
DESIGNS = [(1, True), (2, True), (4, True), (2, False), (3, False)]


def noise_of(columns: int, *, linear: bool) -> ConeNoise:
    return ConeNoise(rate=Fraction(1, 2), columns=columns, linear=linear, steps=STEPS)


@pytest.mark.parametrize(("columns", "linear"), DESIGNS)
def test_coordinates_make_the_noise_of_plans(columns: int, linear: bool) -> None:
    """Components' covariances by 100,000 draws, within seven standard errors by their fourth moments.

    Of 400 in all, skewness of 5 included, a false alarm has the chance 1e-8.
    """
    rng, size = np.random.default_rng(), 100_000
    points, noise = ConePoints(columns=columns, linear=linear), noise_of(columns, linear=linear)
    assert points.n_components == noise.n_components
    first, second = (points.at(points.draw(size, rng)) for _ in range(2))
    drawn = 2.0 * (first.t * first.components - second.t * second.components)
    expected = noise.covariance / float(STEPS) ** 4
    products = drawn[:, None] * drawn[None]
    error = products.std(axis=2) / np.sqrt(size)
    assert (np.abs(products.mean(axis=2) - expected) < 7 * error).all()


def test_a_column_alone_has_the_law_of_its_triangle() -> None:
    """Of one column K is |P_01| <= P_00 beside 0 <= P_11 <= P_00: G_11 is a squared radius of a ball of 3.

    False alarms of 1e-7 each.
    """
    points, rng = ConePoints(columns=1, linear=True), np.random.default_rng()
    drawn = points.at(points.draw(20_000, rng))
    # |x|^2 of a point of the ball of R^m is Beta(m / 2, 1); a coordinate of it is 2 Beta - 1 of (m + 1) / 2.
    assert stats.kstest(drawn.components[2], stats.beta(1.5, 1.0).cdf).pvalue > 1e-7
    assert stats.kstest((drawn.components[1] + 1.0) / 2.0, stats.beta(2.0, 2.0).cdf).pvalue > 1e-7
    assert stats.kstest(drawn.t, stats.gamma(3).cdf).pvalue > 1e-7
    # The control: Gamma(2), of D - 1, is .27 away, which is missed with a chance below 1e-300.
    assert stats.kstest(drawn.t, stats.gamma(2).cdf).pvalue < 1e-7


@pytest.mark.parametrize(("columns", "linear"), DESIGNS)
def test_the_density_of_coordinates_is_that_of_their_draws(columns: int, linear: bool) -> None:
    """The score has mean 0, and E[x score] = -1, within seven standard errors: a wrong term moves them.

    Of 80 means, skewness of 4 included, a false alarm has the chance 2e-9.
    """
    rng, size = np.random.default_rng(), 50_000
    points = ConePoints(columns=columns, linear=linear)
    x = points.draw(size, rng)
    nothing = np.zeros((points.n_components, size))
    score = points.at(x).pulled(nothing)
    centred = x - points.centre()[:, None]
    for values, expected in ((score, 0.0), (centred * score, -1.0)):
        error = values.std(axis=1) / np.sqrt(size)
        assert (np.abs(values.mean(axis=1) - expected) < 7 * error).all()


@pytest.mark.parametrize(("columns", "linear"), DESIGNS)
def test_the_gradient_is_that_of_the_density(columns: int, linear: bool) -> None:
    rng = np.random.default_rng(7)
    noise = noise_of(columns, linear=linear)
    values = np.rint(rng.normal(size=(2, noise.n_components)) * 20.0 * STEPS**2).astype(object)
    law = LatentConeNoise.of(noise, values)
    moments, x = rng.normal(size=(law.coefficients.shape[1], 6)) * 10.0, law.draw(6, rng)
    _, by_moments, by_coordinates = law(moments, x)
    both, by_both = np.concatenate([moments, x]), np.concatenate([by_moments, by_coordinates])
    assert_gradient(lambda at: law(at[: len(moments)], at[len(moments) :])[0], both, by_both)


def test_released_numbers_have_the_law_that_is_taken_for_theirs() -> None:
    """y - m is P - Q behind normal noise: at true matrices the residual is h of the variance, (2)."""
    noise = noise_of(3, linear=True)
    law = LatentConeNoise.of(noise, np.zeros((1, noise.n_components), dtype=object))
    assert law.precision @ law.covariance == pytest.approx(np.eye(noise.n_components) / 0.2, abs=1e-9)
    assert law.precision_of_moments == pytest.approx(1.0 / np.diag(law.covariance))


def test_without_first_moments_nothing_is_said_of_them() -> None:
    noise = noise_of(2, linear=False)
    law = LatentConeNoise.of(noise, np.zeros((1, noise.n_components), dtype=object))
    assert law.coefficients.shape == (4, 6)
    assert law.precision_of_moments[1:3].tolist() == [0.0, 0.0]
    _, by_moments, _ = law(np.ones((6, 1)), law.draw(1, np.random.default_rng(7)))
    assert by_moments[1:3].tolist() == [[0.0], [0.0]]
