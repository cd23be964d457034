"""Posteriors behind latent sums, against enumeration and dense quadrature with scipy's distributions."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, betaln, gammainc, gammaln, logit

from suffice.pipeline.math.distributions.dirichlet import Beta, beta_cdf
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import (
    Gamma,
    GammaDistribution,
    InverseGamma,
    InverseGammaDistribution,
    gamma_cdf,
)
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.engines.one_sum import tiles as drawing
from suffice.pipeline.math.engines.one_sum.noisy_sum import SumSupport
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.engines.one_sum.tiles import tiles_of
from suffice.pipeline.math.priors.mixtures import SpreadGamma, SpreadInverseGamma
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


FALSE_ALARM = 2e-9
"""Of every single statistical comparison; there are fewer than 300."""


def negative_binomial(successes: float) -> Callable[[Floats, float, Beta], Floats]:
    def log_prob(total: Floats, n: float, prior: Beta) -> Floats:
        r, a, b = successes * n, prior.concentration1, prior.concentration0
        rising: Floats = gammaln(r + total) - gammaln(r) - gammaln(total + 1)
        return rising + betaln(a + r, b + total) - betaln(a, b)

    return log_prob


def beta_prime(shape: float, share: float = 1.0) -> Callable[[Floats, float, Any], Floats]:
    def log_prob(total: Floats, n: float, prior: Gamma | InverseGamma) -> Floats:
        scale = prior.rate if isinstance(prior, Gamma) else prior.scale
        distribution = stats.betaprime(shape * n, prior.concentration, scale=scale / share)
        return np.asarray(distribution.logpdf(total))

    return log_prob


def poisson(total: Floats, n: float, prior: Gamma) -> Floats:
    return np.asarray(stats.nbinom.logpmf(total, prior.concentration, prior.rate / (prior.rate + n)))


def binomial(total: Floats, n: float, prior: Beta) -> Floats:
    return np.asarray(stats.betabinom.logpmf(total, 8 * n, prior.concentration1, prior.concentration0))


def normal(total: Floats, n: float, prior: Normal) -> Floats:
    return np.asarray(stats.norm.logpdf(total, n * prior.loc, math.sqrt(n * 4.0 + n * n * prior.scale**2)))


DISTRIBUTIONS: dict[str, tuple[dict[str, str], Callable[[Floats, float, Any], Floats], list[Prior]]] = {
    "binomial": ({"trials": "8"}, binomial, [Beta(1, 1), Beta(0.1, 0.3), Beta(900, 300)]),
    "poisson": ({"upper": "8"}, poisson, [Gamma(1, 0.25), Gamma(0.2, 0.05), Gamma(4e4, 2e4)]),
    "geometric": ({"upper": "8"}, negative_binomial(1.0), [Beta(1, 1), Beta(2.5, 0.2), Beta(90, 200)]),
    "negative_binomial": (
        {"successes": "0.4", "upper": "8"},
        negative_binomial(0.4),
        [Beta(1, 1), Beta(3, 0.3)],
    ),
    "exponential": ({"upper": "8"}, beta_prime(1.0), [Gamma(1, 4), Gamma(0.3, 1), Gamma(500, 1500)]),
    "gamma": ({"shape": "0.5", "upper": "8"}, beta_prime(0.5), [Gamma(1, 8), Gamma(300, 900)]),
    "weibull": ({"shape": "2", "upper": "4"}, beta_prime(1.0), [Gamma(1, 8)]),
    "pareto": ({"minimum": "1", "upper": "50"}, beta_prime(1.0), [Gamma(1, 2), Gamma(40, 60)]),
    "laplace": ({"location": "-3", "half_range": "8"}, beta_prime(1.0), [InverseGamma(3, 4)]),
    "normal_known_mean": (
        {"mean": "5", "half_range": "4"},
        beta_prime(0.5, 0.5),
        [InverseGamma(3, 8), InverseGamma(2.5, 1), InverseGamma(300, 900)],
    ),
    "normal_known_variance": (
        {"variance": "4", "lower": "-2", "upper": "10"},
        normal,
        [Normal(4, 3), Normal(-20, 0.05)],
    ),
}
COUNTS = {"binomial", "poisson", "geometric", "negative_binomial"}

NOISY = [[3.0, 9.0], [9.0, -0.5], [-2.0, -3.0], [25.0, 1.0]]
"""Noisy components in multiples of one record's share."""

N_PRIORS: list[NPrior] = [Fixed(12), Fixed(0), Fixed(1), Uniform(0, 30), Uniform(7, 7), Reciprocal(40)]


def plan_of(family: str, epsilon: str, *, public_n: bool) -> StatisticPlan:
    entry = {"family": family, **DISTRIBUTIONS[family][0]}
    if family not in COUNTS:
        entry["lattice_bits"] = "12"
    return statistic_plan(entry, epsilon=epsilon, public_n=public_n)


def released(
    family: str, epsilon: str, prior: Prior, n_prior: NPrior, *, public_n: bool
) -> tuple[StatisticPlan, NDArray[np.int64], Posterior]:
    plan = plan_of(family, epsilon, public_n=public_n)
    reach = plan.partition_total or round(plan.l1_sensitivity)
    values = np.rint(np.array(NOISY) * reach).astype(np.int64)[:, : len(plan.components)]
    n = n_prior.n if isinstance(n_prior, Fixed) else None
    statistic = noisy_statistic(plan, values, public_n=n if public_n else None)
    return (
        plan,
        values,
        unrestricted_posterior(
            statistic, prior=prior, n_prior=None if public_n else n_prior, clipping="ignored"
        ),
    )


class Enumeration:
    """Every N, and every S or a dense grid of it, with its probability, of one cell."""

    def __init__(
        self,
        family: str,
        plan: StatisticPlan,
        values: NDArray[np.int64],
        prior: Prior,
        n_prior: NPrior,
        further: tuple[tuple[NDArray[np.int64], float], ...] = (),
    ) -> None:
        lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
        reach = plan.partition_total or plan.l1_sensitivity
        self.step = (upper - lower) / reach
        lowest = -(reach // 2) if family == "normal_known_variance" else 0
        low, high = n_prior.support
        parts = []
        for n in range(low, high + 1):
            kinks, scales = [], []
            for observed, scale in ((values, plan.scale), *further):
                kinks += (
                    [observed[0] - lowest * n]
                    if len(observed) == 1
                    else [observed[0], reach * n - observed[1]]
                )
                scales += [scale] * len(observed)
            if n == 0:
                amount, width, log_prob = np.zeros(1), np.ones(1), np.zeros(1)
            else:
                amount, width = self._grid(family, kinks, n, reach, plan.scale, prior)
                log_prob = DISTRIBUTIONS[family][1](lower * n + self.step * amount, n, prior)
                log_prob = log_prob + (0.0 if family in COUNTS else math.log(self.step))
            noise = sum(np.abs(kink - amount) / scale for kink, scale in zip(kinks, scales, strict=True))
            total = lower * n + self.step * amount
            weight = n_prior.log_prob(np.array([float(n)]))[0] + log_prob + np.log(width) - noise
            parts.append(np.stack([np.full(len(total), float(n)), total, weight]))
        self.n, self.total, log_weight = np.concatenate(parts, axis=1)
        weight = np.exp(log_weight - log_weight.max())
        self.log_evidence = log_weight.max() + math.log(weight.sum())
        self.probability = weight / weight.sum()

    @staticmethod
    def _grid(
        family: str, kinks: list[float], n: int, reach: int, scale: float, prior: Prior
    ) -> tuple[Floats, Floats]:
        span = 45 * scale + abs(max(kinks)) + 20 * reach * n
        if family == "binomial":
            return np.arange(8.0 * n + 1), np.ones(8 * n + 1)
        if family in COUNTS:
            return np.arange(span), np.ones(len(np.arange(span)))
        nodes, weights = np.polynomial.legendre.leggauss(20)
        if family == "normal_known_variance":
            assert isinstance(prior, Normal)
            centre, sd = n * (prior.loc + 2) / 12 * reach, math.sqrt(n * 4 + (n * prior.scale) ** 2)
            around = centre + sd / 12 * reach * np.linspace(-9, 9, 90)
            edges = np.concatenate([np.linspace(-span, span, 300), around, kinks])
        else:
            edges = np.concatenate(
                [np.linspace(-60.0, math.log(span), 215), [math.log(kink) for kink in kinks if kink > 0]]
            )
        edges = np.unique(edges)
        half = np.diff(edges)[:, None] / 2
        position, width = (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
        if family == "normal_known_variance":
            return position, width
        return np.exp(position), width * np.exp(position)


PROBLEMS = [
    (family, prior, ("0.5", "4")[turn % 2], n_prior, public_n)
    for family, (_, _, priors) in DISTRIBUTIONS.items()
    for turn, (n_prior, prior) in enumerate(itertools.product(N_PRIORS, priors))
    for public_n in ((False, True) if isinstance(n_prior, Fixed) else (False,))
]


@pytest.mark.parametrize(("family", "prior", "epsilon", "n_prior", "public_n"), PROBLEMS)
def test_moments_equal_dense_sums(
    family: str, prior: Prior, epsilon: str, n_prior: NPrior, public_n: bool
) -> None:
    plan, values, posterior = released(family, epsilon, prior, n_prior, public_n=public_n)
    distribution = posterior.distribution
    assert isinstance(distribution, LatentSumPosterior)
    for cell in range(len(NOISY)):
        dense = Enumeration(family, plan, values[cell], prior, n_prior)
        conjugate = distribution.update(dense.n, dense.total)
        means, sds = conjugate.mean(distribution.name), conjugate.sd(distribution.name)
        mean = dense.probability @ means
        sd = math.sqrt(dense.probability @ (sds**2 + (means - mean) ** 2))
        if math.isfinite(sd):
            assert abs(distribution.means[cell] - mean) < 1e-6 * sd
            assert distribution.sds[cell] == pytest.approx(sd, rel=1e-6)
        else:
            assert distribution.sds[cell] == math.inf
        assert distribution.log_evidence[cell] == pytest.approx(dense.log_evidence, abs=3e-6)


def test_moments_equal_dense_sums_where_noise_is_wide() -> None:
    # Far more of N and S matter than nodes are taken of them.
    prior, n_prior = Beta(0.3, 0.4), Reciprocal(300)
    plan, values, posterior = released("binomial", "0.01", prior, n_prior, public_n=False)
    distribution = posterior.distribution
    assert isinstance(distribution, LatentSumPosterior)
    for cell in range(2):
        dense = Enumeration("binomial", plan, values[cell], prior, n_prior)
        means = distribution.update(dense.n, dense.total).mean(distribution.name)
        assert abs(distribution.means[cell] - dense.probability @ means) < 2e-6 * distribution.sds[cell]
        assert distribution.log_evidence[cell] == pytest.approx(dense.log_evidence, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["exponential", "laplace"])
def test_moments_equal_dense_sums_where_rows_are_rougher_in_n_than_they_look(family: str) -> None:
    # What blocks of N are judged by is about the sum over S only: with noise of ten rows, means were off by
    # up to 3e-4 standard deviations.
    prior, n_prior = DISTRIBUTIONS[family][2][0], Reciprocal(150)
    plan = plan_of(family, "0.1", public_n=False)
    values = np.rint(np.array([[30.0, 70.0], [5.0, 60.0]]) * (plan.partition_total or 1)).astype(np.int64)
    found = unrestricted_posterior(
        noisy_statistic(plan, values), prior=prior, n_prior=n_prior, clipping="ignored"
    )
    distribution = found.distribution
    assert isinstance(distribution, LatentSumPosterior)
    for cell in range(2):
        dense = Enumeration(family, plan, values[cell], prior, n_prior)
        conjugate = distribution.update(dense.n, dense.total)
        means, sds = conjugate.mean(distribution.name), conjugate.sd(distribution.name)
        mean = dense.probability @ means
        sd = math.sqrt(dense.probability @ (sds**2 + (means - mean) ** 2))
        assert abs(distribution.means[cell] - mean) < 1e-6 * sd
        assert distribution.sds[cell] == pytest.approx(sd, rel=1e-6)


@pytest.mark.parametrize(("n_prior", "public_n"), [(Uniform(0, 30), False), (Fixed(12), True)])
@pytest.mark.parametrize("family", list(DISTRIBUTIONS))
def test_several_releases_of_the_same_sums_equal_dense_sums(
    family: str, n_prior: NPrior, public_n: bool
) -> None:
    prior = DISTRIBUTIONS[family][2][0]
    plan, values, _ = released(family, "0.5", prior, n_prior, public_n=public_n)
    observations = [
        (values, plan),
        (values[::-1].copy(), plan_of(family, "2", public_n=public_n)),
        (values + 5, plan_of(family, "0.1", public_n=public_n)),
    ]
    n = 12 if public_n else None
    one, *further = (noisy_statistic(own, observed, public_n=n) for observed, own in observations)
    together = dataclasses.replace(one, further=tuple(further))
    distribution = unrestricted_posterior(
        together, prior=prior, n_prior=None if public_n else n_prior
    ).distribution
    assert isinstance(distribution, LatentSumPosterior)
    draws = distribution.sample(DRAWS, np.random.default_rng())[distribution.name]
    for cell in range(len(NOISY)):
        others = tuple((observed[cell], own.scale) for observed, own in observations[1:])
        dense = Enumeration(family, plan, values[cell], prior, n_prior, others)
        conjugate = distribution.update(dense.n, dense.total)
        means, sds = conjugate.mean(distribution.name), conjugate.sd(distribution.name)
        mean = dense.probability @ means
        sd = math.sqrt(dense.probability @ (sds**2 + (means - mean) ** 2))
        assert abs(distribution.means[cell] - mean) < 1e-6 * sd
        assert distribution.sds[cell] == pytest.approx(sd, rel=1e-6)
        assert distribution.log_evidence[cell] == pytest.approx(dense.log_evidence, abs=3e-6)
        # Draws take another route than moments. Some laws have no third moment: shares below the mean have
        # Hoeffding's bound, and means of draws none.
        at_mean = coordinate_of(conjugate).cdf(np.full(len(dense.n), line_of(distribution.name)(mean)))
        assert abs(np.mean(draws[:, cell] < mean) - dense.probability @ at_mean) < LARGEST_DISTANCE


def line_of(name: str) -> Callable[[float], float]:
    """Return the map of a parameter onto the line of its coordinate."""
    lines: dict[str, Callable[[float], float]] = {"probability": logit, "mean": float}
    return lines.get(name, math.log)


LEVELS = (0.025, 0.25, 0.5, 0.9, 0.975)


@pytest.mark.slow
@pytest.mark.parametrize("n_prior", [Fixed(12), Uniform(0, 30), Reciprocal(40)])
@pytest.mark.parametrize(
    ("family", "prior"),
    [(family, prior) for family, (_, _, priors) in DISTRIBUTIONS.items() for prior in priors[:2]],
)
def test_quantiles_are_within_two_thousandths_of_their_level(
    family: str, prior: Prior, n_prior: NPrior
) -> None:
    plan, values, posterior = released(family, "0.5", prior, n_prior, public_n=False)
    distribution = posterior.distribution
    assert isinstance(distribution, LatentSumPosterior)
    quantiles = distribution.quantiles(distribution.name, LEVELS, 0, np.random.default_rng(7))
    line = line_of(distribution.name)
    for cell in (0, 2, 3):
        dense = Enumeration(family, plan, values[cell], prior, n_prior)
        kept = dense.probability > 1e-12
        conjugate = coordinate_of(distribution.update(dense.n[kept], dense.total[kept]))
        for level, quantile in zip(LEVELS, quantiles[cell], strict=True):
            below = dense.probability[kept] @ conjugate.cdf(np.full(int(kept.sum()), line(quantile)))
            assert abs(below - level) < 2e-3


@pytest.mark.parametrize("concentration", [45.0, 1e3, 1e6])
def test_distribution_functions_of_narrow_distributions_are_close_to_exact_ones(concentration: float) -> None:
    a = np.full(1000, concentration)
    position = np.linspace(-6, 6, 1000) / math.sqrt(concentration)
    assert gamma_cdf(a, a * np.exp(position)) == pytest.approx(gammainc(a, a * np.exp(position)), abs=1e-5)
    for ratio in (1.0, 5.0):
        logit_position = -math.log(ratio) + position * math.sqrt(1 + 1 / ratio)
        exact = betainc(a, a * ratio, 1 / (1 + np.exp(-logit_position)))
        assert beta_cdf(a, a * ratio, logit_position) == pytest.approx(exact, abs=1e-5)


DRAWS = 20_000
# Dvoretzky, Kiefer, Wolfowitz: P(distance > t) <= 2 exp(-2 n t^2), for every distribution and every n.
LARGEST_DISTANCE = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * DRAWS))


def distance(draws: Floats, values: Floats, probability: Floats, *, is_integral: bool = False) -> float:
    """Kolmogorov's, to the distribution with these probabilities, or those of the nodes of an integral.

    Steps at nodes would be a distance of their own, of up to .016 of a Pareto total's.
    """
    points = np.quantile(draws, np.linspace(0.01, 0.99, 50))
    # A total of no records is 0, a step and no node of an integral: nothing rises to it from the node before.
    is_node = (values != 0.0) if is_integral else np.ones(len(values), dtype=bool)
    order = np.argsort(values[is_node])
    nodes, weights = values[is_node][order], probability[is_node][order]
    below = np.cumsum(weights)
    if is_integral:
        exact = np.interp(points, nodes, below - weights / 2.0)
        exact += np.sum(probability[~is_node]) * (points >= 0.0)
    else:
        position = np.searchsorted(nodes, points, side="right")
        exact = np.where(position > 0, below[np.maximum(position - 1, 0)], 0.0)
    observed = np.searchsorted(np.sort(draws), points, side="right") / len(draws)
    return float(np.max(np.abs(exact - observed)))


@pytest.mark.parametrize("n_prior", [Fixed(12), Uniform(0, 30), Reciprocal(40)])
@pytest.mark.parametrize("family", list(DISTRIBUTIONS))
def test_latent_pairs_are_drawn_from_the_enumerated_distribution(family: str, n_prior: NPrior) -> None:
    prior = DISTRIBUTIONS[family][2][0]
    plan, values, posterior = released(family, "0.5", prior, n_prior, public_n=False)
    distribution = posterior.distribution
    assert isinstance(distribution, LatentSumPosterior)
    cells = np.array([0, 2])
    n, total = tiles_of(distribution.sums.take(cells)).sample(
        np.repeat([0, 1], DRAWS), np.random.default_rng()
    )
    for position, cell in enumerate(cells):
        dense = Enumeration(family, plan, values[cell], prior, n_prior)
        part = slice(position * DRAWS, (position + 1) * DRAWS)
        assert distance(n[part], dense.n, dense.probability) < LARGEST_DISTANCE
        is_integral = distribution.sums.marginal.support is not SumSupport.INTEGERS
        assert (
            distance(total[part], dense.total, dense.probability, is_integral=is_integral) < LARGEST_DISTANCE
        )


@pytest.mark.parametrize(
    ("family", "prior"),
    [
        ("binomial", Beta(0.1, 0.3)),
        ("binomial", Beta(20, 7)),
        ("poisson", Gamma(0.2, 0.05)),
        ("geometric", Beta(90, 200)),
        ("gamma", Gamma(1, 8)),
        ("normal_known_variance", Normal(4, 3)),
    ],
)
def test_runs_of_n_are_drawn_as_one_by_one(
    family: str, prior: Prior, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Runs much longer than draws are quick with: what makes up for their length has to make up for all of it.
    monkeypatch.setattr(drawing, "_RUN", 2.0)
    monkeypatch.setattr(drawing, "_OF_N", 0.5)
    monkeypatch.setattr(drawing, "_ACCEPTED", 0.0)
    plan = plan_of(family, "0.1", public_n=False)
    n_prior = Uniform(40, 79)
    values = np.rint(np.array([[20.0, 37.0]]) * (plan.partition_total or 0)).astype(np.int64)
    statistic = noisy_statistic(plan, values)
    distribution = unrestricted_posterior(
        statistic, prior=prior, n_prior=n_prior, clipping="ignored"
    ).distribution
    assert isinstance(distribution, LatentSumPosterior)
    tiles = tiles_of(distribution.sums)
    assert np.max(tiles.spread) > 10.0
    n, total = tiles.sample(np.zeros(DRAWS, dtype=np.int64), np.random.default_rng())
    dense = Enumeration(family, plan, values[0], prior, n_prior)
    assert distance(n, dense.n, dense.probability) < LARGEST_DISTANCE
    assert distance(total, dense.total, dense.probability) < LARGEST_DISTANCE


def test_informative_priors_far_from_noisy_sums_win() -> None:
    """The mean of 4,000 draws is within 80 of its standard errors."""
    # The noise's window around y ends before the posterior begins.
    plan = statistic_plan({"family": "binomial", "trials": "1"}, epsilon="0.1", public_n=True)
    statistic = noisy_statistic(plan, np.array([[10**5]]), public_n=10**6)
    posterior = unrestricted_posterior(statistic, prior=Beta(1e5, 1e5))
    assert posterior.mean("probability")[0] == pytest.approx((1e5 + 359_927) / (2e5 + 1e6), abs=1e-6)
    draws = posterior.sample(4000, np.random.default_rng())["probability"][:, 0]
    assert np.mean(draws) == pytest.approx(posterior.mean("probability")[0], abs=6e-4)


@pytest.mark.parametrize("family", list(DISTRIBUTIONS))
@pytest.mark.parametrize(("n", "epsilon"), [(10**12, "20"), (10**9, "0.1"), (20, "0.01")])
def test_any_size_is_resolved(family: str, n: int, epsilon: str) -> None:
    plan = plan_of(family, epsilon, public_n=False)
    reach = plan.partition_total or 0
    values = np.array([[n * reach // 4 - 7, n * reach - n * reach // 4 + 11]], dtype=object)
    posterior = unrestricted_posterior(
        noisy_statistic(plan, values), prior=DISTRIBUTIONS[family][2][0], clipping="ignored"
    )
    (name,) = posterior.parameters
    draws = posterior.sample(2000, np.random.default_rng())[name][:, 0]
    low, middle, high = posterior.distribution.quantiles(
        name, (0.025, 0.5, 0.975), 0, np.random.default_rng()
    )[0]
    assert low < middle < high
    # Seven standard errors of a share: 3e-9 for one of 5 %, by the exact binomial, in each of 33 cases.
    assert abs(np.mean(draws < middle) - 0.5) < 7 * 0.5 / math.sqrt(2000)
    assert abs(np.mean((low < draws) & (draws < high)) - 0.95) < 7 * math.sqrt(0.95 * 0.05 / 2000)


def updated(prior: Prior, n: Floats, total: Floats) -> GammaDistribution | InverseGammaDistribution:
    """Return what a component's posteriors are given N and S."""
    if isinstance(prior, Gamma):
        return GammaDistribution(concentration=prior.concentration + n, rate=prior.rate + total)
    assert isinstance(prior, InverseGamma)
    return InverseGammaDistribution(concentration=prior.concentration + n, scale=prior.scale + total)


@pytest.mark.parametrize(
    ("family", "prior", "epsilon", "values"),
    [
        ("exponential", SpreadGamma(8), "4", [8.0, 4.0]),
        ("exponential", SpreadGamma(8), "0.5", [0.5, 9.0]),
        ("laplace", SpreadInverseGamma(8), "4", [2.0, 10.0]),
    ],
)
def test_moments_under_spread_priors_equal_dense_sums(
    family: str, prior: SpreadGamma | SpreadInverseGamma, epsilon: str, values: list[float]
) -> None:
    """Pairs that are e^-22 times as likely as others hold most of the first case's variance."""
    n_prior = Uniform(0, 12)
    plan = plan_of(family, epsilon, public_n=False)
    noisy = np.rint(np.array([values]) * (plan.partition_total or 1)).astype(np.int64)
    found = unrestricted_posterior(
        noisy_statistic(plan, noisy), prior=prior, n_prior=n_prior, clipping="ignored"
    )
    distribution = found.distribution
    assert isinstance(distribution, LatentSumPosterior)
    dense = [Enumeration(family, plan, noisy[0], one, n_prior) for one in prior.components]
    log_share = np.log(prior.weights) + np.array([one.log_evidence for one in dense])
    share = np.exp(log_share - log_share.max())
    conjugate = [
        updated(one, pairs.n, pairs.total) for one, pairs in zip(prior.components, dense, strict=True)
    ]
    weight = np.concatenate([part * pairs.probability for part, pairs in zip(share, dense, strict=True)])
    weight /= weight.sum()
    means = np.concatenate([one.mean(one.name) for one in conjugate])
    sds = np.concatenate([one.sd(one.name) for one in conjugate])
    mean = weight @ means
    sd = math.sqrt(weight @ (sds**2 + (means - mean) ** 2))
    assert abs(distribution.means[0] - mean) < 1e-5 * sd
    assert distribution.sds[0] == pytest.approx(sd, rel=1e-5)


@pytest.mark.parametrize(("family", "share"), [("exponential", "upper"), ("laplace", "half_range")])
def test_moments_of_a_spread_prior_equal_those_of_its_components(family: str, share: str) -> None:
    # Each component's tail is beside its mass, and the smallest one holds most of a rate's variance: of the
    # first cell the standard deviation is 9.44, and was once taken for 7.13.
    constants = {share: "100"} if family == "exponential" else {"location": "0", share: "100"}
    plan = statistic_plan({"family": family, **constants}, epsilon="1", public_n=False)
    values = np.array([[813873, 1159465], [813873 // 8, 1159465], [65536, 65536 * 300], [-65536, 65536 * 4]])
    statistic = noisy_statistic(plan, values)
    spread = SpreadGamma(100.0) if family == "exponential" else SpreadInverseGamma(100.0)
    found = unrestricted_posterior(statistic, prior=spread, clipping="ignored").distribution
    assert isinstance(found, LatentSumPosterior)
    parts = [
        unrestricted_posterior(statistic, prior=part, clipping="ignored").distribution
        for part in spread.components
    ]
    evidence = np.stack([part.log_evidence for part in parts]) + np.log(spread.weights)[:, None]  # type: ignore[attr-defined]
    probability = np.exp(evidence - np.logaddexp.reduce(evidence))
    means = np.stack([part.mean(found.name) for part in parts])
    sds = np.stack([part.sd(found.name) for part in parts])
    mean = np.sum(probability * means, axis=0)
    sd = np.sqrt(np.sum(probability * (sds**2 + (means - mean) ** 2), axis=0))
    assert np.all(np.abs(found.means - mean) < 1e-5 * sd)
    assert found.sds == pytest.approx(sd, rel=1e-5)


@pytest.mark.slow
def test_cells_of_all_sizes_have_moments_of_a_spread_prior() -> None:
    """Behind much noise most of a rate's mean is near, and its variance both near and far."""
    plan = statistic_plan({"family": "exponential", "upper": "60"}, epsilon="0.1", public_n=False)
    unit = plan.partition_total or 1
    n = np.rint(np.geomspace(1, 20_000, 40))
    rng = np.random.default_rng(3)
    noise = rng.laplace(scale=20.0, size=(40, 2))
    sums = np.stack([n / 6.0, n * 5.0 / 6.0], axis=1) + noise
    statistic = noisy_statistic(plan, np.rint(unit * sums).astype(np.int64))
    spread = SpreadGamma(60.0)
    whole = unrestricted_posterior(statistic, prior=spread, clipping="ignored").distribution
    parts = [
        unrestricted_posterior(statistic, prior=part, clipping="ignored").distribution
        for part in spread.components
    ]
    assert isinstance(whole, LatentSumPosterior)
    evidence = np.stack([part.log_evidence for part in parts]) + np.log(spread.weights)[:, None]  # type: ignore[attr-defined]
    probability = np.exp(evidence - np.logaddexp.reduce(evidence))
    means = np.stack([part.mean("rate") for part in parts])
    sds = np.stack([part.sd("rate") for part in parts])
    mean = np.sum(probability * means, axis=0)
    sd = np.sqrt(np.sum(probability * (sds**2 + (means - mean) ** 2), axis=0))
    assert np.max(np.abs(whole.means - mean) / sd) < 1e-4
    assert np.max(np.abs(whole.sds / sd - 1.0)) < 1e-4
    # The control: near pairs alone are farther off.
    assert np.max(np.abs(whole.near[1] / sd - 1.0)) > 1e-3
