"""The chance of a noisy count given a mean, beside direct sums; and latent counts given both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2, poisson

from suffice.pipeline.math.distributions.laplace_sums import log_mass_of_sum
from suffice.pipeline.math.engines.histogram.emission import Pieces, counts_given, log_emission

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
    closed = log_emission(np.array([mean]), Pieces.of_product(np.array([[noisy]]), np.array([[epsilon]])))
    assert closed[0] == pytest.approx(logsumexp(log_terms(mean, noisy, epsilon)[1]), rel=1e-10, abs=2e-9)


@pytest.mark.parametrize(
    ("mean", "noisy", "epsilon"),
    [(3.0, -2.0, 0.5), (3.0, 5.0, 0.5), (40.0, 60.0, 0.05), (250.0, 230.0, 4.0), (20_000.0, 20_400.0, 0.5)],
)
def test_latent_counts_have_their_law(mean: float, noisy: float, epsilon: float) -> None:
    """Chi-square of 40,000 draws in 20 groups or fewer: false alarm 1e-7 each.

    Groups expect 600 or more. A scale .8 as large is missed with a chance below 1e-9.
    """
    size, alarm = 40_000, 1e-7
    rng = np.random.default_rng()
    of_counts, log_law = log_terms(mean, noisy, epsilon)

    def statistic(law: Floats, drawn: Floats) -> tuple[float, int]:
        groups = np.minimum((np.cumsum(law) - law / 2.0) * 20.0, 19.0).astype(np.int64)
        expected = size * np.bincount(groups, law, minlength=20)
        counted = np.bincount(groups[drawn.astype(np.int64)], minlength=20)
        kept = expected > 5.0
        gap = (counted - expected)[kept] ** 2 / expected[kept]
        return float(np.sum(gap)), int(np.sum(kept)) - 1

    drawn = counts_given(
        np.full(size, mean), Pieces.of_product(np.array([[noisy]]), np.array([[epsilon]])), rng
    )
    law = np.exp(log_law - logsumexp(log_law))
    value, freedom = statistic(law, drawn)
    assert value < chi2.isf(alarm, freedom)
    _, other = log_terms(mean, noisy, epsilon / 0.8)
    wrong, freedom = statistic(np.exp(other - logsumexp(other)), drawn)
    # Below 0 the noise has no part in the count but through its rate.
    assert wrong > chi2.isf(alarm, freedom)
    assert of_counts[0] == 0.0


def test_no_mean_has_no_count() -> None:
    pieces = Pieces.of_product(np.array([[4.0, -1.0]]), np.array([[0.5, 0.5]]))
    drawn = counts_given(np.zeros((3, 2)), pieces, np.random.default_rng(7))
    assert np.all(drawn == 0.0)


SEVERAL = [
    (mean, noisy, rates)
    for mean in (0.01, 3.0, 250.0, 20_000.0)
    for noisy, rates in (
        ((4.0, -3.0), (0.5, 0.05)),
        ((230.0, 260.0, 230.0), (0.05, 4.0, 0.3)),
        ((-2.0, -9.0), (0.5, 0.4)),
        ((20_400.0, 19_700.0), (0.05, 0.05)),
    )
    if abs(min(noisy) - mean) < 900.0
]


def log_terms_of_several(
    mean: float, noisy: tuple[float, ...], rates: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Return counts and the logs of Poisson(k) times every noise."""
    k = np.arange(0.0, max(mean, *noisy) + 2_000.0)
    terms = poisson.logpmf(k, mean)
    for y, rate in zip(noisy, rates, strict=True):
        terms = terms - rate * np.abs(y - k) + np.log(np.tanh(rate / 2.0))
    return k, terms


def pieces_of(noisy: tuple[float, ...], rates: tuple[float, ...]) -> Pieces:
    return Pieces.of_product(np.array(noisy)[:, None], np.array(rates)[:, None])


@pytest.mark.parametrize(("mean", "noisy", "rates"), SEVERAL)
def test_several_releases_of_one_count_are_summed_over_it(
    mean: float, noisy: tuple[float, ...], rates: tuple[float, ...]
) -> None:
    _, terms = log_terms_of_several(mean, noisy, rates)
    closed = log_emission(np.array([mean]), pieces_of(noisy, rates))
    assert closed[0] == pytest.approx(logsumexp(terms), rel=1e-9, abs=2e-8)
    backwards = log_emission(np.array([mean]), pieces_of(noisy[::-1], rates[::-1]))
    assert closed[0] == pytest.approx(backwards[0], rel=1e-12, abs=1e-9)


def gap_of(drawn: Floats, terms: Floats) -> tuple[float, int]:
    """Return the chi-square of draws in 20 groups or fewer, and its degrees of freedom."""
    law = np.exp(terms - logsumexp(terms))
    groups = np.minimum((np.cumsum(law) - law / 2.0) * 20.0, 19.0).astype(np.int64)
    expected = len(drawn) * np.bincount(groups, law, minlength=20)
    counted = np.bincount(groups[drawn.astype(np.int64)], minlength=20)
    kept = expected > 5.0
    return float(np.sum((counted - expected)[kept] ** 2 / expected[kept])), int(np.sum(kept)) - 1


@pytest.mark.parametrize(
    ("mean", "noisy", "rates"),
    [
        (40.0, (60.0, 30.0), (0.3, 0.2)),
        (250.0, (100.0, 130.0, 110.0), (1.0, 1.0, 0.5)),  # far in the tail of every law
        (3.0, (-2.0, 6.0), (0.5, 0.3)),
    ],
)
def test_counts_behind_several_noises_have_their_law(
    mean: float, noisy: tuple[float, ...], rates: tuple[float, ...]
) -> None:
    """Chi-square of 20,000 draws: false alarm 1e-7 each; that of the first release alone always fails."""
    drawn = counts_given(np.full(20_000, mean), pieces_of(noisy, rates), np.random.default_rng())
    gap, freedom = gap_of(drawn, log_terms_of_several(mean, noisy, rates)[1])
    assert gap < chi2.isf(1e-7, freedom)
    gap, freedom = gap_of(drawn, log_terms_of_several(mean, noisy[:1], rates[:1])[1])
    assert gap > chi2.isf(1e-7, freedom)


@pytest.mark.parametrize("scale", [0.3, 4.0, 60.0])
@pytest.mark.parametrize("noises", [2, 5])
def test_a_sum_of_noises_is_within_six_thousandths(noises: int, scale: float) -> None:
    """Beside the law of the sum, term by term; two noises taken for one are off by far more."""
    sd = scale * np.sqrt(2.0 * noises)
    noisy = np.ceil(30.0 * sd)
    k = np.arange(0.0, 2.0 * noisy + 100.0)
    law = log_mass_of_sum(len(k), noises, scale)[np.abs(noisy - k).astype(np.int64)]
    for away, reach in ((0.0, 6e-3), (-4.0, 6e-3), (4.0, 6e-3), (-20.0, 0.05), (20.0, 0.05)):
        mean = noisy + away * sd
        expected = logsumexp(poisson.logpmf(k, mean) + law)
        ours, fewer = (
            log_emission(np.array([mean]), Pieces.of_sum(np.array([noisy]), scale, number))[0]
            for number in (noises, noises - 1)
        )
        assert ours == pytest.approx(expected, abs=reach)
        assert scale < 1.0 or away != 0.0 or abs(fewer - expected) > 0.02
