"""Products of posteriors against enumeration and conjugate algebra; ratios of mixtures to their prior."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, gammaln

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGamma,
    NormalInverseGammaDistribution,
)
from suffice.pipeline.math.engines.combined import FEWEST_EFFECTIVE, MixtureRatio, product
from suffice.pipeline.math.priors.record_count import NPrior, Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, Distribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


FALSE_ALARM = 1e-8
"""Of every single comparison with draws; there are fewer than fifty."""
FAR = float(stats.norm.isf(FALSE_ALARM / 2))

BERNOULLI: dict[str, Any] = {"family": "bernoulli"}
CATEGORICAL: dict[str, Any] = {"family": "categorical", "categories": ["a", "b", "c"]}


def counts(statistic: dict[str, Any], row: list[int], epsilon: str) -> NoisyStatistic:
    plan = statistic_plan(statistic, epsilon=epsilon, public_n=False)
    return noisy_statistic(plan, np.array([row], dtype=object))


def distributions_of(parts: list[NoisyStatistic], prior: str, n_prior: NPrior) -> list[Any]:
    return [unrestricted_posterior(part, prior=prior, n_prior=n_prior).distribution for part in parts]


class Enumeration:
    """The pooled posterior by a sum over every vector of latent counts of every release."""

    def __init__(self, rows: list[list[int]], scales: list[float], alpha: Floats, n_prior: NPrior) -> None:
        total = np.zeros((1, len(alpha)))
        log_weight = np.zeros(1)
        for row, scale in zip(rows, scales, strict=True):
            high = n_prior.support[1]
            vectors = np.array(
                [c for c in itertools.product(range(high + 1), repeat=len(alpha)) if sum(c) <= high], float
            )
            n = vectors.sum(axis=1)
            log_weights = (
                n_prior.log_prob(n)
                + gammaln(n + 1)
                - gammaln(vectors + 1).sum(axis=1)
                - np.abs(np.array(row) - vectors).sum(axis=1) / scale
            )
            total = (total[:, None] + vectors).reshape(-1, len(alpha))
            log_weight = (log_weight[:, None] + log_weights).ravel()
            total, position = np.unique(total, axis=0, return_inverse=True)
            top = log_weight.max()
            log_weight = np.log(np.bincount(position.ravel(), np.exp(log_weight - top))) + top
        self.alpha = alpha + total
        log_weight += gammaln(self.alpha).sum(axis=1) - gammaln(self.alpha.sum(axis=1))
        self.probability = np.exp(log_weight - log_weight.max())
        self.probability /= self.probability.sum()

    def moments(self) -> tuple[Floats, Floats]:
        whole = self.alpha.sum(axis=1, keepdims=True)
        mean = self.probability @ (self.alpha / whole)
        square = self.probability @ (self.alpha * (self.alpha + 1) / (whole * (whole + 1)))
        return mean, np.sqrt(square - mean**2)

    def cdf(self, category: int, x: float) -> float:
        alpha = self.alpha[:, category]
        return float(self.probability @ betainc(alpha, self.alpha.sum(axis=1) - alpha, x))


CASES = [
    (BERNOULLI, "Beta(1, 1)", [1.0, 1.0], [[9, 3], [14, 8]], ["1", "1"], 30),
    (BERNOULLI, "Beta(2, 5)", [5.0, 2.0], [[9, 3], [-4, 8], [20, 2]], ["1", "0.3", "0.5"], 30),
    (BERNOULLI, "Beta(0.5, 0.5)", [0.5, 0.5], [[5, -1], [7, 2], [3, 3], [9, 0]], ["0.5"] * 4, 20),
    (CATEGORICAL, "Dirichlet(1)", [1.0, 1.0, 1.0], [[6, 3, 0], [5, -2, 4]], ["1", "0.5"], 14),
]


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "prior", "alpha", "rows", "epsilons", "most"), CASES)
def test_pooled_posteriors_equal_enumeration(
    statistic: dict[str, Any],
    prior: str,
    alpha: list[float],
    rows: list[list[int]],
    epsilons: list[str],
    most: int,
) -> None:
    """The bound allows for the draws of each merge that count, and for 20,000 draws of the product."""
    parts = [counts(statistic, row, epsilon) for row, epsilon in zip(rows, epsilons, strict=True)]
    n_prior = Uniform(0, most)
    distribution = product(distributions_of(parts, prior, n_prior), np.random.default_rng(7))
    exact = Enumeration(rows, [part.plan.scale for part in parts], np.array(alpha), n_prior)
    mean, sd = exact.moments()
    shown: Any = 1 if statistic is BERNOULLI else slice(None)
    effective = distribution.diagnostics["fewest_effective_draws"]
    assert effective >= FEWEST_EFFECTIVE
    merges = len(parts) - 1
    # Every merge adds a variance of one over its effective draws.
    reach = FAR * np.sqrt(merges / effective)
    assert np.all(np.abs(distribution.mean("probability")[0] - mean[shown]) < reach * sd[shown])
    assert np.all(np.abs(distribution.sd("probability")[0] / sd[shown] - 1) < 2 * reach)
    draws = distribution.sample(20_000, np.random.default_rng(8))["probability"][:, 0]
    entry, position = (draws, 1) if statistic is BERNOULLI else (draws[:, 0], 0)
    for x in (0.2, 0.4, 0.6):
        assert np.mean(entry < x) == pytest.approx(exact.cdf(position, x), abs=reach / 2 + FAR * 0.5 / 141)


def test_weights_left_out_are_found_out() -> None:
    """Adding up latent counts as they come is no product of posteriors; errors are those of 2,000 draws."""
    rows = [[25, -6], [2, 3]]
    parts = [counts(BERNOULLI, row, "0.2") for row in rows]
    n_prior = Uniform(0, 30)
    exact = Enumeration(rows, [part.plan.scale for part in parts], np.ones(2), n_prior)
    mean, sd = exact.moments()
    rng = np.random.default_rng(7)
    distributions = distributions_of(parts, "Beta(1, 1)", n_prior)
    eta = sum(distribution.mixture(2**13, rng).natural() for distribution in distributions) - 1.0
    naive = distributions[0].prior_distribution().from_natural(np.asarray(eta)).mean("probability").mean()
    right = product(distributions, rng).mean("probability")[0]
    reach = FAR * np.sqrt(1 / 2000)
    assert abs(right - mean[1]) < reach * sd[1]
    assert abs(naive - mean[1]) > reach * sd[1]


def test_releases_that_contradict_each_other_are_refused() -> None:
    parts = [counts(CATEGORICAL, row, "1") for row in ([100_000, 5, 5], [5, 100_000, 5])]
    with pytest.raises(UsageError, match="barely fit"):
        pooled(parts, prior=None, n_prior=None, rng=np.random.default_rng(7))


def test_many_cells_are_pooled_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are simulations: .005 allows for their errors."""
    plan = statistic_plan(CATEGORICAL, epsilon="1", public_n=False)
    values = np.array([[90, 10, 5], [50, 50, 9], [10, 90, 4], [70, 30, 0], [30, 70, 8]], dtype=object)
    parts = [noisy_statistic(plan, values), noisy_statistic(plan, values + 3)]
    whole = pooled(parts, prior=None, n_prior=None, rng=np.random.default_rng(7))
    monkeypatch.setattr("suffice.pipeline.math.engines.combined.CELLS", 2)
    batched = pooled(parts, prior=None, n_prior=None, rng=np.random.default_rng(8))
    assert batched.groups == whole.groups
    assert batched.mean("probability") == pytest.approx(whole.mean("probability"), abs=0.005)
    assert batched.sample(7)["probability"].shape == (7, 5, 3)


DISTRIBUTIONS: list[tuple[ConjugateDistribution, Any]] = [
    (
        BetaDistribution(concentration1=np.array([3.5]), concentration0=np.array([2.0])),
        lambda x: stats.beta(3.5, 2.0).logpdf(x),
    ),
    (
        GammaDistribution(concentration=np.array([2.0]), rate=np.array([3.0])),
        lambda x: stats.gamma(2, scale=1 / 3).logpdf(x),
    ),
    (
        InverseGammaDistribution(concentration=np.array([2.0]), scale=np.array([3.0]), name="variance"),
        lambda x: stats.invgamma(2, scale=3).logpdf(x),
    ),
    (
        NormalDistribution(loc=np.array([0.4]), scale=np.array([0.3])),
        lambda x: stats.norm(0.4, 0.3).logpdf(x),
    ),
]
"""Distributions of one parameter, with their log densities."""


def sufficient(distribution: ConjugateDistribution, x: Floats) -> Floats:
    """T(theta) of the natural parameters, beside what does not depend on them."""
    match distribution:
        case BetaDistribution():
            return np.stack([np.log1p(-x), np.log(x)])
        case GammaDistribution():
            return np.stack([np.log(x), -x])
        case InverseGammaDistribution():
            return np.stack([-np.log(x), -1 / x])
        case _:
            return np.stack([-(x**2) / 2, x])


@pytest.mark.parametrize(("distribution", "log_density"), DISTRIBUTIONS)
def test_normalisers_belong_to_their_natural_parameters(
    distribution: ConjugateDistribution, log_density: Any
) -> None:
    x = np.array([0.2, 0.5, 0.8])
    eta = distribution.natural()
    assert distribution.from_natural(eta).natural() == pytest.approx(eta)
    # Moving along eta changes the log density by T(theta) times the step, less the change of log Z.
    for direction in np.eye(eta.shape[1]) * 1e-4:
        up, down = distribution.from_natural(eta + direction), distribution.from_natural(eta - direction)
        slope = (up.log_normaliser() - down.log_normaliser()) / 2e-4
        grid = np.linspace(1e-9, 1 - 1e-9, 400_001) if isinstance(distribution, BetaDistribution) else None
        if grid is None:
            grid = (
                np.linspace(-3, 4, 700_001)
                if isinstance(distribution, NormalDistribution)
                else np.geomspace(1e-6, 1e5, 700_001)
            )
        weight = np.exp(log_density(grid)) * np.gradient(grid)
        expected = np.sum(weight * (direction @ sufficient(distribution, grid))) / 1e-4
        assert slope[0] == pytest.approx(expected, rel=1e-3)
    assert np.all(np.isfinite(log_density(x)))


def test_a_normal_inverse_gamma_adds_up_like_its_update() -> None:
    """Two halves of the data, pooled, are the whole: with sums without noise."""
    spec = {"family": "normal", "lower": "-60", "upper": "180", "lattice_bits": "10"}
    plan = statistic_plan(spec, epsilon="0.5", public_n=False)
    first, second = np.array([[5e6, 8e6, 6e6]]), np.array([[3e6, 9e6, 7e6]])
    conjugate = NormalInverseGamma(60, 1, 3, 7200)
    distributions: list[Any] = [
        posterior_of(
            noisy_statistic(plan, values.astype(np.int64)), prior=conjugate, method="plug-in"
        ).distribution
        for values in (first, second, first + second, np.zeros((1, 3)))
    ]
    assert all(isinstance(distribution, NormalInverseGammaDistribution) for distribution in distributions)
    left, right, both, prior = (distribution.natural() for distribution in distributions)
    assert left + right - prior == pytest.approx(both)
    further = distributions[2].from_natural(both)
    assert further.mean("mean") == pytest.approx(distributions[2].mean("mean"))
    assert further.sd("variance") == pytest.approx(distributions[2].sd("variance"))


def inverse_gamma(concentration: Floats, scale: Floats) -> Distribution:
    return InverseGammaDistribution(concentration=concentration, scale=scale, name="variance")


def beta(successes: Floats, rest: Floats) -> Distribution:
    return BetaDistribution(concentration1=successes, concentration0=rest)


def normal(strength: Floats, sums: Floats) -> Distribution:
    return NormalDistribution(loc=sums / strength, scale=1.0 / np.sqrt(strength))


def gamma(concentration: Floats, rate: Floats) -> Distribution:
    return GammaDistribution(concentration=concentration, rate=rate)


@pytest.mark.parametrize("distribution", [gamma, inverse_gamma, beta, normal])
@pytest.mark.parametrize("largest", [30.0, 1e5, 1e12])
def test_ratios_are_those_of_the_densities(
    distribution: Callable[[Floats, Floats], Distribution], largest: float
) -> None:
    rng = np.random.default_rng(7)
    n = largest * (1.0 + rng.random(500) / np.sqrt(largest))
    total = 0.4 * n + np.sqrt(n) * (rng.random(500) - 0.5)
    log_weight = np.log(rng.dirichlet(np.ones(500)))
    prior, distributions = distribution(np.array([2.0]), np.array([3.0])), distribution(2.0 + n, 3.0 + total)
    ratio = MixtureRatio.of(prior, distributions, log_weight)
    coordinate = coordinate_of(distributions)
    middle, width = float(np.mean(coordinate.centre)), float(np.max(coordinate.width))
    position = middle + width * np.linspace(-12.0, 12.0, 101)
    parts = coordinate.log_density(position[:, None]) + log_weight
    expected = np.logaddexp.reduce(parts, axis=1) - coordinate_of(prior).log_density(position[:, None])[:, 0]
    assert ratio(position) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("distribution", [gamma, inverse_gamma, beta, normal])
def test_what_is_the_prior_is_so_however_far_out(
    distribution: Callable[[Floats, Floats], Distribution],
) -> None:
    prior = distribution(np.array([2.0]), np.array([3.0]))
    both = distribution(np.array([2.0, 502.0]), np.array([3.0, 203.0]))
    ratio = MixtureRatio.of(prior, both, np.log([0.25, 0.75]))
    assert ratio(np.array([-190.0, 190.0])) == pytest.approx(np.log(0.25), abs=1e-9)
