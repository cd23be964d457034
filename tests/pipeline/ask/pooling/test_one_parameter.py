"""Products of likelihoods of one parameter, against enumeration and dense sums over all latent statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError, UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import ConjugateMixture
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.record_count import Uniform
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


ONE_PARAMETER = [name for name, family in FAMILIES.items() if family.latent]
BERNOULLI = {"family": "bernoulli"}
BINOMIAL = {"family": "binomial", "trials": "3"}
POISSON = {"family": "poisson", "upper": "6"}
EXPONENTIAL = {"family": "exponential", "upper": "4", "lattice_bits": "5"}
N_PRIOR = Uniform(0, 12)


def noisy(entry: dict[str, str], shares: list[float], epsilon: str) -> NoisyStatistic:
    """Noisy components in multiples of one record's share."""
    plan = statistic_plan(entry, epsilon=epsilon, public_n=False)
    reach = plan.partition_total or 1
    return noisy_statistic(plan, np.rint(np.array([shares]) * reach))


def joint(parts: list[NoisyStatistic], prior: Any = None, n_prior: Any = N_PRIOR) -> Posterior:
    """Without clipping, which the sums below know nothing of."""
    return pooled(parts, prior=prior, n_prior=n_prior, clipping="ignored", rng=np.random.default_rng(7))


def log_distribution_of(family: str, total: Floats, n: int, theta: Floats) -> Floats:
    """Log distribution of the sum of n records, (n_parameters, n_totals)."""
    match family:
        case "bernoulli" | "binomial":
            log_distribution = stats.binom.logpmf(total, n if family == "bernoulli" else 3 * n, theta)
        case "poisson":
            log_distribution = stats.poisson.logpmf(total, n * theta)
        case _:
            log_distribution = stats.gamma.logpdf(total, n, scale=1 / theta)
    return np.asarray(log_distribution, dtype=np.float64)


def log_likelihood(statistic: NoisyStatistic, parameter: Floats) -> Floats:
    """Log probability of the first cell's noisy components: a sum over N, and a dense one over its sum."""
    plan, (first, second) = statistic.plan, statistic.values[0].astype(np.float64)
    if plan.family == "bernoulli":
        first, second = second, first
    reach = plan.partition_total or 1
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
    step = 1.0 if plan.family == "bernoulli" else (upper - lower) / reach
    # A sum over midpoints stands for an integral where sums are continuous.
    offset = 0.5 if plan.family == "exponential" else 0.0
    terms = []
    for n in range(N_PRIOR.lower, N_PRIOR.upper + 1):
        amount = np.arange(-10.0 * reach, 40.0 * reach) + offset if n else np.zeros(1)
        total, theta = lower * n + step * amount, parameter[:, None]
        log_distribution = (
            np.zeros((len(parameter), 1)) if n == 0 else log_distribution_of(plan.family, total, n, theta)
        )
        if plan.family == "exponential" and n:
            log_distribution = log_distribution + np.log(step)
        noise = (np.abs(first - amount) + np.abs(second - (reach * n - amount))) / plan.scale
        terms.append(np.logaddexp.reduce(log_distribution - noise, axis=1))
    log_sum: Floats = np.logaddexp.reduce(terms, axis=0)
    return log_sum


PROBABILITIES = np.linspace(0.001, 0.999, 500)
RATES = np.linspace(0.01, 8.0, 400)
PROBLEMS: list[tuple[dict[str, str], list[list[float]], list[str], Any, Any, Floats]] = [
    (BERNOULLI, [[9, 3], [4, 8], [7, -2]], ["1", "0.3", "0.5"], None, stats.uniform(), PROBABILITIES),
    (BINOMIAL, [[3, 2], [9, 1]], ["0.8", "2"], "Beta(2, 5)", stats.beta(2, 5), PROBABILITIES),
    (POISSON, [[3, 2], [1, 9], [2, 5]], ["0.8"] * 3, "Gamma(3, 2)", stats.gamma(3, scale=1 / 2), RATES),
    (POISSON, [[3, 2], [1, 9]], ["0.8", "2"], stats.lognorm(0.5), stats.lognorm(0.5), RATES),
    (EXPONENTIAL, [[3, 2], [6, 9]], ["1", "2"], "Gamma(4, 4)", stats.gamma(4, scale=1 / 4), RATES),
]


@pytest.mark.parametrize(("entry", "shares", "epsilons", "prior", "distribution", "positions"), PROBLEMS)
def test_moments_and_quantiles_are_those_of_the_product(
    entry: dict[str, str],
    shares: list[list[float]],
    epsilons: list[str],
    prior: Any,
    distribution: Any,
    positions: Floats,
) -> None:
    """The mean of 4,000 draws too, within six standard errors."""
    parts = [noisy(entry, share, epsilon) for share, epsilon in zip(shares, epsilons, strict=True)]
    posterior = joint(parts, prior)
    (name,) = posterior.parameters
    log_value = distribution.logpdf(positions) + sum(log_likelihood(part, positions) for part in parts)
    share = np.exp(log_value - log_value.max())
    share /= share.sum()
    mean = share @ positions
    sd = np.sqrt(share @ (positions - mean) ** 2)
    # The grid has an end.
    assert abs(posterior.mean(name)[0] - mean) < 2e-3 * sd
    assert posterior.sd(name)[0] == pytest.approx(sd, rel=2e-3)
    for level in (0.025, 0.5, 0.975):
        below = np.interp(posterior.quantile(name, level)[0], positions, np.cumsum(share) - share / 2)
        assert below == pytest.approx(level, abs=3e-3)
    assert posterior.diagnostics == {}
    draws = posterior.sample(4000, np.random.default_rng(7))[name]
    assert abs(np.mean(draws) - mean) < 6 * sd / np.sqrt(4000)


def typical(family: str) -> tuple[list[NoisyStatistic], Any, Any]:
    """Two data sets that hardly vary, averages of 400 that the model draws, behind noise of 0 and 1 scale."""
    generative_model, rng = generative_model_for(family, n=40), np.random.default_rng(7)
    sums = generative_model.sums(generative_model.truth(400, rng), np.full(400, 40), rng).clipped
    exact = (np.sum(sums, axis=0) // 400)[None]
    steps = np.full((1, len(generative_model.plan.components)), int(generative_model.plan.scale))
    return (
        [generative_model.noisy(exact, moved) for moved in (0 * steps, steps)],
        generative_model.prior,
        generative_model.believed_n_prior,
    )


@pytest.mark.parametrize("family", ONE_PARAMETER)
def test_one_release_is_itself_and_order_does_not_matter(family: str) -> None:
    parts, prior, n_prior = typical(family)
    single, alone = (
        unrestricted_posterior(parts[0], prior=prior, n_prior=n_prior, clipping="ignored"),
        joint(parts[:1], prior, n_prior),
    )
    together, swapped = joint(parts, prior, n_prior), joint(parts[::-1], prior, n_prior)
    assert isinstance(together.distribution, GriddedDistribution)
    (name,) = single.parameters
    for posterior, other in ((single, alone), (together, swapped)):
        assert np.all(np.abs(posterior.mean(name) - other.mean(name)) < 1e-3 * posterior.sd(name))
        assert other.sd(name) == pytest.approx(posterior.sd(name), rel=3e-3)


@pytest.mark.slow
def test_many_releases_that_agree_are_one_large_one() -> None:
    """Under little noise: 40 times 100 rows are 4,000, and their posterior is six times as narrow."""
    parts = [noisy(BERNOULLI, [70, 30], "20") for _ in range(40)]
    posterior = joint(parts, n_prior=None)
    exact = stats.beta(1201, 2801)
    assert posterior.mean("probability")[0] == pytest.approx(exact.mean(), abs=1e-3 * exact.std())
    assert posterior.sd("probability")[0] == pytest.approx(exact.std(), rel=1e-3)
    for level in (0.025, 0.1, 0.37, 0.5, 0.9, 0.999):
        assert exact.cdf(posterior.quantile("probability", level)[0]) == pytest.approx(level, abs=1e-3)


@pytest.mark.parametrize("rows", [[[9_000, 1_000], [7_000, 3_000]], [[900_000, 100_000], [890_000, 110_000]]])
def test_data_that_disagree_are_pooled_where_neither_alone_would_be(rows: list[list[float]]) -> None:
    """Two dozen standard deviations apart: the product lies where no posterior of one has any mass."""
    parts = [noisy(BERNOULLI, row, "20") for row in rows]
    posterior = joint(parts, n_prior=None)
    false, true = np.sum(rows, axis=0)
    exact = stats.beta(1 + true, 1 + false)
    assert posterior.mean("probability")[0] == pytest.approx(exact.mean(), abs=1e-2 * exact.std())
    assert posterior.sd("probability")[0] == pytest.approx(exact.std(), rel=1e-2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_data_that_disagree_behind_wide_noise_and_a_private_n_are_pooled() -> None:
    """Seven standard deviations apart, or noise that makes up for it: against the sum over all counts."""
    rows = [[1205.0, 364.0], [1256.0, 159.0]]
    parts = [noisy(BERNOULLI, row, "0.2") for row in rows]
    posterior = joint(parts, n_prior=Uniform(0, 3000))
    positions = np.linspace(0.1, 0.28, 91)
    log_value = np.zeros(len(positions))
    for part, row in zip(parts, rows, strict=True):
        scale = float(part.plan.scale)
        away = np.arange(-60.0 * scale, 60.0 * scale, 2.0).round()
        false, true = (row[0] + away)[:, None], np.maximum(row[1] + away, 0.0)
        log_distribution = stats.binom.logpmf(true, false + true, positions[:, None, None])
        log_distribution -= (np.abs(false - row[0]) + np.abs(true - row[1])) / scale
        log_value += np.logaddexp.reduce(log_distribution.reshape(len(positions), -1), axis=1)
    share = np.exp(log_value - log_value.max())
    share /= share.sum()
    mean = share @ positions
    sd = np.sqrt(share @ (positions - mean) ** 2)
    assert abs(posterior.mean("probability")[0] - mean) < 1e-2 * sd
    assert posterior.sd("probability")[0] == pytest.approx(sd, rel=1e-2)


@pytest.mark.slow
def test_data_that_no_parameter_explains_are_refused() -> None:
    parts = [noisy(BERNOULLI, row, "1") for row in ([1e5, 5.0], [5.0, 1e5])]
    with pytest.raises(UsageError, match="barely fit"):
        joint(parts, n_prior=None)


def test_priors_that_are_no_conjugate_ones_pool_as_well() -> None:
    parts = [noisy(BERNOULLI, [9, 3], "1"), noisy(BERNOULLI, [4, 8], "0.3")]
    conjugate = joint(parts, "Beta(2, 3)")
    halves = joint(parts, "Mixture(0.5, Beta(2, 3), 0.5, Beta(2, 3))")
    density = joint(parts, stats.beta(2, 3))
    for other in (halves, density):
        assert other.mean("probability") == pytest.approx(conjugate.mean("probability"), abs=1e-4)
        assert other.sd("probability") == pytest.approx(conjugate.sd("probability"), rel=1e-3)
    mixed = joint(parts, "Mixture(0.9, Beta(1, 9), 0.1, Beta(9, 1))")
    assert mixed.mean("probability")[0] != pytest.approx(conjugate.mean("probability")[0], abs=0.01)
    with pytest.raises(PriorError, match="improper"):
        joint(parts, Density(lambda p: -np.log(p) - np.log1p(-p), 0, 1))


def test_conjugate_priors_with_their_mass_at_an_end_fall_back_on_labelled_draws() -> None:
    parts = [noisy(BERNOULLI, [9, 3], "1"), noisy(BERNOULLI, [4, 8], "1")]
    posterior = joint(parts, "Beta(0.1, 0.1)")
    assert isinstance(posterior.distribution, ConjugateMixture)
    assert posterior.diagnostics["sampler"] == "importance"
