from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from suffice.pipeline.math.distributions import laplace_sums
from suffice.pipeline.math.distributions.laplace_sums import log_density_of_sum, upper_tail

FAR = np.array([0.0, 0.3, 2.0, 20.0, 100.0, 600.0])
"""Up to tails of 1e-260."""


def tail(
    x: np.ndarray, *scales: float, counts: tuple[float, ...] = (), variance: float = 0.0, third: float = 0.0
) -> np.ndarray:
    return upper_tail(
        x,
        np.tile(np.array(scales), (len(x), 1)),
        np.array(counts or (1.0,) * len(scales)),
        np.full(len(x), variance),
        np.full(len(x), third),
    )


def test_one_two_and_unequal_laplace_numbers() -> None:
    assert tail(FAR, 1.0) == pytest.approx(np.exp(-FAR) / 2, rel=1e-3)
    assert tail(FAR, 1.0, counts=(2.0,)) == pytest.approx((2 + FAR) * np.exp(-FAR) / 4, rel=1e-3)
    unequal = 2 / 3 * np.exp(-FAR) - 1 / 6 * np.exp(-2 * FAR)
    assert tail(FAR, -1.0, 0.5) == pytest.approx(unequal, rel=1e-3)
    assert tail(3.0 * FAR, 3.0, 1.5) == pytest.approx(unequal, rel=1e-3)
    assert tail(-FAR, 1.0) == pytest.approx(1 - np.exp(-FAR) / 2, rel=1e-3)


@pytest.mark.parametrize("terms", [1, 2, 5, 12])
def test_equal_numbers_have_a_closed_tail(terms: int) -> None:
    x = np.append(-FAR, FAR)
    computed = tail(2.0 * x, -2.0, counts=(float(terms),))
    # Through the saddle point, as a variance next to nothing has it.
    assert computed == pytest.approx(tail(2.0 * x, 2.0, counts=(float(terms),), variance=1e-12), rel=1e-3)
    of_first, of_second = np.exp(-FAR) / 2, (2 + FAR) * np.exp(-FAR) / 4
    if terms <= 2:
        assert computed[len(FAR) :] == pytest.approx(of_second if terms == 2 else of_first, rel=1e-12)


@pytest.mark.parametrize("terms", [1, 2, 5, 12, 13, 60, 400])
def test_the_density_of_a_sum(terms: int) -> None:
    """Against the mean of normal densities whose variance is twice a gamma number, on its log."""
    x = np.array([0.0, 0.1, 1.0, 7.0, 40.0])
    log_gamma = np.linspace(-60.0, 12.0, 200_001)
    exponent = (terms - 0.5) * log_gamma - np.exp(log_gamma) - x[:, None] ** 2 / 4 / np.exp(log_gamma)
    exact = logsumexp(exponent, axis=1)
    log_density = log_density_of_sum(-x, terms)
    assert log_density - log_density[2] == pytest.approx(exact - exact[2], abs=1e-6)


def test_the_expansion_takes_over_where_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(0.0, 300.0, 1000)
    exact = log_density_of_sum(x, 12)
    monkeypatch.setattr(laplace_sums, "_EXACT", 11)
    difference = log_density_of_sum(x, 12) - exact
    assert np.ptp(difference) < 2e-6
    monkeypatch.setattr(laplace_sums, "_EXACT", 1)
    assert np.ptp(log_density_of_sum(x, 2) - np.log1p(x) + x) > 1e-3, "the control: too few terms"


def test_what_is_beside_the_noise() -> None:
    x = np.array([-2.0, 0.0, 1.0, 5.0, 20.0, 37.0])
    assert tail(x, 1e-3, variance=1.0) == pytest.approx(stats.norm.sf(x), rel=3e-3)
    for shape in (0.5, 4.0, 100.0):
        above = np.array([0.1, 1.0, 5.0, 20.0]) * np.sqrt(shape)
        exact = stats.gamma.sf(above + shape, shape)
        assert tail(above, 1e-3, variance=shape, third=2 * shape) == pytest.approx(exact, rel=3e-3)
        # Far out, the short tail of a skewed number counts as a normal one, which is longer.
        short = tail(above[1:], 1e-3, variance=shape, third=-2 * shape)
        assert np.all(short >= stats.gamma.cdf(shape - above[1:], shape))


def test_a_sum_of_all() -> None:
    draws = np.random.default_rng(5).standard_normal(400_000) * 2.0
    draws += np.random.default_rng(6).laplace(size=(400_000, 7)).sum(axis=1)
    x = np.array([1.0, 5.0, 10.0])
    share = (draws[:, None] >= x).mean(axis=0)
    # Six standard errors: a false alarm in one of 10^8.
    assert np.all(np.abs(tail(x, 1.0, counts=(7.0,), variance=4.0) - share) < 6 * np.sqrt(share / 400_000))


@pytest.mark.parametrize(("terms", "scale"), [(1, 0.3), (2, 1.0), (60, 1.0), (60, 10.0), (2000, 2.0)])
def test_sums_of_discrete_numbers_have_the_mass_of_their_transform(terms: int, scale: float) -> None:
    q, size = math.exp(-1.0 / scale), 1 << 16
    cosine = np.cos(2.0 * np.pi * np.arange(size) / size)
    mass = np.fft.ifft(((1.0 - q) ** 2 / (1.0 - 2.0 * q * cosine + q * q)) ** terms).real[:400]
    known = mass > 1e-9
    log_mass = laplace_sums.log_mass_of_sum(399, terms, scale)
    assert np.exp(log_mass[known]) == pytest.approx(mass[known], rel=1e-5)
