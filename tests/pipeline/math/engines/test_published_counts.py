"""Posteriors from published counts, against plain sums over every count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import betabinom, binom, halfnorm, nbinom, poisson

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.noise_laws import LAWS
from suffice.pipeline.math.engines.published_counts import (
    LatentCount,
    PublishedCount,
    SharedLikelihood,
    parameter_posterior,
    prior_on_line,
)
from suffice.pipeline.math.engines.tabled_counts import count_posterior
from suffice.pipeline.math.engines.tabled_shares import shares_posterior
from suffice.pipeline.math.engines.varying_counts import ENDS, REGULAR, SCALE, VaryingLikelihood
from suffice.pipeline.math.priors.density import Density, DensityOnLine
from suffice.pipeline.math.priors.record_count import Reciprocal, Uniform

INTERVALS = [(500.0, 500.0), (-math.inf, 89.0), (495.0, 505.0), (-math.inf, 0.0), (-20.0, -20.0)]
CASES = [(name, spread, *ends) for name in LAWS for spread in (0.7, 10.0, 300.0) for ends in INTERVALS]


def even_prior(upper: float) -> tuple[Any, Any]:
    density = Density(np.zeros_like, 0.0, upper)
    return prior_on_line(DensityOnLine.of(density, Line.LOGARITHM, 0.0))


def plain(published: PublishedCount, rates: np.ndarray, most: float) -> np.ndarray:
    counts = np.arange(most + 1.0)
    log_term = poisson.logpmf(counts, rates[:, None]) + published.log_likelihood(counts)
    total: np.ndarray = np.logaddexp.reduce(log_term, axis=1)
    return total


@pytest.mark.parametrize(("name", "spread", "low", "high"), CASES)
def test_rate_likelihood_is_the_sum_over_all_counts(
    name: str, spread: float, low: float, high: float
) -> None:
    published = PublishedCount(LAWS[name](spread), low, high)
    nearest = max(published.nearest, 1.0)
    rates = np.unique(
        np.concatenate([np.geomspace(0.01, 3.0 * nearest, 30), nearest * np.linspace(0.8, 1.2, 9)])
    )
    exact = plain(published, rates, 2.0 * published.window()[1] + 200.0)
    likely = exact > exact.max() - 25.0

    likelihood = SharedLikelihood([LatentCount(published)], Line.LOGARITHM)(np.log(rates))

    assert likelihood[likely] == pytest.approx(exact[likely], abs=1e-8)


def test_exposure_scales_the_rate() -> None:
    published = PublishedCount(LAWS["geometric"](3.0), 40.0, 40.0)
    position = np.log([5.0, 8.0, 12.0])

    by_exposure = SharedLikelihood([LatentCount(published, 4.0)], Line.LOGARITHM)(position)

    assert by_exposure == pytest.approx(plain(published, 4.0 * np.exp(position), 500.0), abs=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_posterior_of_a_rate_has_the_moments_of_a_dense_grid(name: str) -> None:
    cells = [
        PublishedCount(LAWS[name](8.0), *ends) for ends in [(60.0, 60.0), (-math.inf, 49.0), (-9.0, -9.0)]
    ]
    log_prior, edges = even_prior(1e4)

    posterior = parameter_posterior(
        "rate", Line.LOGARITHM, [[LatentCount(cell)] for cell in cells], log_prior, edges
    )

    rates = np.arange(0.025, 220.0, 0.05)
    for row, cell in enumerate(cells):
        weight = np.exp(plain(cell, rates, 500.0))
        weight /= weight.sum()
        mean = np.sum(weight * rates)
        sd = math.sqrt(np.sum(weight * (rates - mean) ** 2))
        quantiles = posterior.distribution.quantiles("rate", [0.025, 0.5, 0.975], 1, np.random.default_rng(0))
        exact = np.interp([0.025, 0.5, 0.975], np.cumsum(weight), rates)
        assert posterior.distribution.mean("rate")[row] == pytest.approx(mean, abs=1e-3 * sd)
        assert posterior.distribution.sd("rate")[row] == pytest.approx(sd, rel=1e-3)
        assert quantiles[row] == pytest.approx(exact, abs=0.06)


def test_pooled_cells_multiply_also_where_one_is_far_from_the_others() -> None:
    """The far cell is 400 scales away: counts far from what was published hold its likelihood."""
    law = LAWS["laplace"](2.0)
    near, far = PublishedCount(law, 20.0, 20.0), PublishedCount(law, 820.0, 820.0)
    cells = [[LatentCount(near)] * 60 + [LatentCount(far)]]
    log_prior, edges = even_prior(1e4)

    distribution = parameter_posterior("rate", Line.LOGARITHM, cells, log_prior, edges).distribution

    rates = np.linspace(14.0, 30.0, 2001)
    log_weight = 60.0 * plain(near, rates, 1000.0) + plain(far, rates, 1000.0)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert distribution.mean("rate")[0] == pytest.approx(np.sum(weight * rates), rel=1e-5)


def test_what_cannot_be_resolved_is_refused() -> None:
    published = PublishedCount(LAWS["gaussian"](1.0), 1e9, 1e9)
    log_prior, edges = even_prior(10.0)

    with pytest.raises(PriorError, match="disagree so much"):
        parameter_posterior("rate", Line.LOGARITHM, [[LatentCount(published)]], log_prior, edges)
    with pytest.raises(PriorError, match="disagree so much"):
        count_posterior([published], Uniform(0, 10))


def test_probability_of_a_public_total_is_the_plain_sum() -> None:
    published = PublishedCount(LAWS["discrete_gaussian"](4.0), -math.inf, 29.0)
    shares = np.array([0.02, 0.2, 0.3, 0.4])
    counts = np.arange(101.0)
    exact = np.logaddexp.reduce(
        binom.logpmf(counts, 100, shares[:, None]) + published.log_likelihood(counts), axis=1
    )

    log_likelihood = SharedLikelihood([LatentCount(published, 100.0)], Line.LOGIT)(
        np.log(shares / (1.0 - shares))
    )

    assert log_likelihood == pytest.approx(exact, abs=1e-9)


def test_probability_of_a_noisy_total_is_the_plain_double_sum() -> None:
    successes = PublishedCount(LAWS["geometric"](2.0), 12.0, 12.0)
    total = PublishedCount(LAWS["laplace"](3.0), 47.5, 48.5)
    prior = Reciprocal(10_000)
    shares = np.array([0.1, 0.25, 0.5])
    n, s = np.arange(0.0, 300.0), np.arange(0.0, 300.0)
    log_n = total.log_likelihood(n) + prior.log_prob(n)
    exact = [
        np.logaddexp.reduce(
            (binom.logpmf(s[None, :], n[:, None], p) + successes.log_likelihood(s) + log_n[:, None]).ravel()
        )
        for p in shares
    ]

    cell = LatentCount(successes, total=total, total_prior=prior)
    log_likelihood = SharedLikelihood([cell], Line.LOGIT)(np.log(shares / (1.0 - shares)))

    assert log_likelihood == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("name", LAWS)
def test_count_posterior_is_prior_times_likelihood(name: str) -> None:
    cells = [
        PublishedCount(LAWS[name](6.0), *ends) for ends in [(30.0, 30.0), (-math.inf, 19.0), (8.0, 12.0)]
    ]
    prior = Uniform(0, 5000)

    distribution = count_posterior(cells, prior).distribution

    counts = np.arange(5001.0)
    for row, cell in enumerate(cells):
        weight = np.exp(cell.log_likelihood(counts) + prior.log_prob(counts))
        weight /= weight.sum()
        mean = np.sum(weight * counts)
        median = counts[np.searchsorted(np.cumsum(weight), 0.5)]
        assert distribution.mean("count")[row] == pytest.approx(mean, rel=1e-9)
        assert distribution.quantiles("count", [0.5], 1, np.random.default_rng(0))[row, 0] == median
        assert distribution.density("count", np.array([[11.0]] * 3))[row, 0] == pytest.approx(
            weight[11], rel=1e-9
        )


def test_shares_of_two_categories_are_those_of_the_plain_double_sum() -> None:
    """Prior of N 1 / (N + 3) under Dirichlet(1, 2); 40,000 draws, seven standard errors: 3e-12."""
    law = LAWS["geometric"](1.5)
    first, second = PublishedCount(law, 9.0, 9.0), PublishedCount(law, -math.inf, 5.0)
    concentration = np.array([1.0, 2.0])
    n = np.arange(60.0)
    a, b = np.meshgrid(n, n, indexing="ij")
    total = a + b
    log_weight = betabinom.logpmf(a, total, 1.0, 2.0) - np.log(total + 3.0)
    log_weight += first.log_likelihood(n)[:, None] + second.log_likelihood(n)[None, :]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    exact = np.sum(weight * (a + 1.0) / (total + 3.0))

    distribution = shares_posterior([[first, second]], concentration)
    drawn = distribution.sample(40_000, np.random.default_rng())["probability"][:, 0, 0]

    assert drawn.mean() == pytest.approx(exact, abs=7.0 * drawn.std() / 200.0)
    # The control: a Dirichlet that counts the suppressed category as empty is not it.
    assert abs((9.0 + 1.0) / (9.0 + 3.0) - exact) > 7.0 * drawn.std() / 200.0


def test_shares_of_many_records_are_sharp() -> None:
    law = LAWS["discrete_gaussian"](2.0)
    cells = [[PublishedCount(law, value, value) for value in (7000.0, 2000.0, 1000.0)]]

    distribution = shares_posterior(cells, np.ones(3))

    assert distribution.mean("probability")[0] == pytest.approx([0.7, 0.2, 0.1], abs=0.002)
    assert distribution.sd("probability")[0, 0] == pytest.approx(math.sqrt(0.21 / 10_000), rel=0.05)


def test_log_factorials_are_those_of_gammaln() -> None:
    """A likelihood of nothing but a Poisson count, by hand."""
    published = PublishedCount(LAWS["geometric"](1e-3), 3.0, 3.0)  # next to no noise
    log_likelihood = SharedLikelihood([LatentCount(published)], Line.LOGARITHM)(np.log([2.0]))

    assert log_likelihood[0] == pytest.approx(3.0 * math.log(2.0) - 2.0 - gammaln(4.0), abs=1e-12)


def varied(rates: Any, v: float, counts: np.ndarray) -> np.ndarray:
    """Return probabilities of counts whose rates have the relative standard deviation v."""
    k = v**-2.0
    probability: np.ndarray = nbinom.pmf(counts, k, k / (k + rates[:, None]))
    return probability


def regular(rates: np.ndarray, every: int, counts: np.ndarray) -> np.ndarray:
    """Return probabilities of every so-manieth event, by where the first one is: each is as likely."""
    probability = np.zeros((len(rates), len(counts)))
    for first in range(every):
        low, high = every * counts - first - 1.0, every * (counts + 1.0) - first - 1.0
        mean = every * rates[:, None]
        probability += (poisson.cdf(high, mean) - poisson.cdf(low, mean)) / every
    return probability


@pytest.mark.parametrize(
    "counts", [(9, 22, None, 41, 30, None), (20, 21, None, 22, 21, 20, 22, 21, None, 21)]
)
def test_a_mean_rate_is_the_plain_sum_over_counts_and_spreads(counts: tuple[int | None, ...]) -> None:
    """Of days that vary, and of days more regular than a Poisson count."""
    law = LAWS["geometric"](1.5)
    cells = [
        LatentCount(
            PublishedCount(law, -math.inf if n is None else float(n), 19.0 if n is None else float(n)), 2.0
        )
        for n in counts
    ]
    log_prior, edges = even_prior(200.0)
    likelihood = VaryingLikelihood(cells, 36.0, log_prior, edges)
    rates = np.linspace(6.0, 30.0, 49)
    every_count = np.arange(400.0)
    weights = np.exp([cell.published.log_likelihood(every_count) for cell in cells])

    def plain_mean(probability: Any) -> np.ndarray:
        product: np.ndarray = np.prod(probability @ weights.T, axis=1)
        return product

    log_v = np.linspace(math.log(ENDS[0]), math.log(ENDS[1]), 161)
    prior_v = halfnorm.pdf(np.exp(log_v), scale=SCALE) * np.exp(log_v) * (log_v[1] - log_v[0])
    exact = 0.5 * sum(
        prior * plain_mean(varied(2.0 * rates, math.exp(v), every_count))
        for v, prior in zip(log_v, prior_v, strict=True)
        if v > -6.0
    )
    exact += (
        0.5
        * halfnorm.cdf(math.exp(-6.0), scale=SCALE)
        * plain_mean(poisson.pmf(every_count, 2.0 * rates[:, None]))
    )
    for each in REGULAR:
        exact += 0.5 / len(REGULAR) * plain_mean(regular(2.0 * rates, each, every_count))
    log_likelihood = likelihood(np.log(rates))

    likely = exact > exact.max() * 1e-4
    assert np.count_nonzero(likely) > 5
    assert log_likelihood[likely] == pytest.approx(np.log(exact[likely]), abs=5e-3)
