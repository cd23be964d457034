"""The probability of what was released, against sums and integrals over everything latent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats

from suffice import Density, Dirichlet
from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.pool import observed_again
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.normal.moment_weights import BERNSTEIN
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def noise(plan: StatisticPlan, gap: Any) -> np.ndarray:
    """Chances of the discrete noise."""
    chance: np.ndarray = np.tanh(0.5 / plan.scale) * np.exp(-np.abs(np.asarray(gap, float)) / plan.scale)
    return chance


def plan_of(family: str, *, epsilon: str = "1", **keys: Any) -> StatisticPlan:
    return statistic_plan({"family": family, "column": "x", **keys}, epsilon=epsilon, public_n=False)


def bernoulli(*counts: tuple[int, int], epsilon: str = "1") -> NoisyStatistic:
    return noisy_statistic(plan_of("bernoulli", epsilon=epsilon), np.array(counts))


def by_enumeration(statistics: list[NoisyStatistic], a: float, b: float) -> float:
    """Of one cell's counts, each N in 0..40 as likely."""
    total = 0.0
    for n in range(41):
        true = np.arange(n + 1)
        mass = stats.betabinom.pmf(true, n, a, b)
        for statistic in statistics:
            no, yes = map(int, statistic.values[0])
            mass = mass * noise(statistic.plan, no - (n - true)) * noise(statistic.plan, yes - true)
        total += float(np.sum(mass)) / 41
    return float(np.log(total))


@pytest.mark.parametrize("counts", [(7, 5), (-2, 12), (60, 3)])
def test_two_counts(counts: tuple[int, int]) -> None:
    statistic = bernoulli(counts)
    peaked, flat = by_enumeration([statistic], 2, 3), by_enumeration([statistic], 1, 1)
    asked: dict[str, Any] = {"n_prior": "Uniform(0, 40)"}
    assert unrestricted_posterior(statistic, prior="Beta(2, 3)", **asked).log_evidence == pytest.approx(
        peaked, abs=1e-6
    )
    mixture = unrestricted_posterior(statistic, prior="Mixture(0.3, Beta(2, 3), 0.9, Beta(1, 1))", **asked)
    mixed = np.logaddexp(np.log(0.25) + peaked, np.log(0.75) + flat)
    assert mixture.log_evidence == pytest.approx(mixed, abs=1e-6)
    density = unrestricted_posterior(statistic, prior=Density.of(stats.beta(2, 3)), **asked)
    assert density.log_evidence == pytest.approx(peaked, abs=1e-3)


def test_the_same_counts_twice() -> None:
    both = [bernoulli((7, 5)), bernoulli((9, 2), epsilon="0.5")]
    posterior = unrestricted_posterior(observed_again(both), prior="Beta(2, 3)", n_prior="Uniform(0, 40)")
    assert posterior.log_evidence == pytest.approx(by_enumeration(both, 2, 3), abs=1e-6)


@pytest.mark.parametrize("concentration", [(1.0, 1.0, 1.0), (2.0, 0.5, 1.0)])
def test_counts_of_categories(concentration: tuple[float, ...]) -> None:
    plan = plan_of("categorical", categories=["a", "b", "c"], other="false")
    statistic = noisy_statistic(plan, np.array([[3, 5, -1]]))
    total, a = 0.0, sum(concentration)
    for n in range(26):
        for first in range(n + 1):
            second = np.arange(n - first + 1)
            counts = (np.full_like(second, first), second, n - first - second)
            log_mass: Any = special.gammaln(a) - special.gammaln(a + n) + special.gammaln(n + 1)
            for count, alpha in zip(counts, concentration, strict=True):
                log_mass = log_mass + special.gammaln(alpha + count) - special.gammaln(alpha)
                log_mass = log_mass - special.gammaln(count + 1)
            mass = np.exp(log_mass)
            for count, value in zip(counts, (3, 5, -1), strict=True):
                mass = mass * noise(plan, value - count)
            total += float(np.sum(mass)) / 26
    posterior = unrestricted_posterior(statistic, prior=Dirichlet(*concentration), n_prior="Uniform(0, 25)")
    assert posterior.log_evidence == pytest.approx(np.log(total), abs=1e-6)


def test_a_positive_sum() -> None:
    plan = plan_of("exponential", upper="10", lattice_bits="6")
    total, amount, step = 0.0, np.linspace(0.0, 4000.0, 200_001), 10 / 64
    for n in range(10):
        if n == 0:
            total += float(noise(plan, 60) * noise(plan, 150)) / 10
            continue
        density = stats.betaprime.pdf(amount * step / 3, n, 2) * step / 3
        chance = density * noise(plan, 60 - amount) * noise(plan, 150 - (64 * n - amount))
        total += float(np.trapezoid(chance, amount)) / 10
    posterior = unrestricted_posterior(
        noisy_statistic(plan, np.array([[60, 150]])), prior="Gamma(2, 3)", n_prior="Uniform(0, 9)"
    )
    assert posterior.log_evidence == pytest.approx(np.log(total), abs=1e-3)


@pytest.mark.slow
def test_two_normal_records() -> None:
    plan = plan_of("normal", lower="-2", upper="2", epsilon="2")
    unit = 4 * (1 << 16) ** 2
    released = (np.array([1.2, 0.6, 0.9]) * unit).astype(np.int64)
    grid = np.linspace(-40.0, 40.0, 1601)
    first, second = np.meshgrid(grid, grid)
    log_noise = np.zeros_like(first)
    # Coefficients of the three components in 1, z and z^2.
    for value, (constant, slope, curvature) in zip(released, BERNSTEIN, strict=True):
        exact_value = 2 * constant + slope * (first + second) / 2 + curvature * (first**2 + second**2) / 4
        log_noise -= np.abs(value - exact_value * unit) / plan.scale

    def exact(loc: float, precision: float, a: float, s: float) -> float:
        shape = np.eye(2) + 1 / precision
        gap = np.stack([first - loc, second - loc], axis=-1)
        square = np.einsum("...i,ij,...j", gap, np.linalg.inv(shape), gap)
        density = a / (2 * np.pi * s) / np.sqrt(np.linalg.det(shape)) * (1 + square / (2 * s)) ** (-a - 1)
        mass = np.sum(density * np.exp(log_noise)) * (grid[1] - grid[0]) ** 2
        return float(np.log(mass) + 3 * np.log(np.tanh(0.5 / plan.scale)))

    statistic = noisy_statistic(plan, released[None])
    of_first, of_second = exact(0.2, 2, 3, 1), exact(0, 1, 3, 4)
    # The model of unclipped records, whose values may lie anywhere.
    asked: dict[str, Any] = {"n_prior": 2, "clipping": "ignored"}
    posterior = unrestricted_posterior(statistic, prior="NormalInverseGamma(0.2, 2, 3, 1)", **asked)
    assert posterior.log_evidence == pytest.approx(of_first, abs=0.003)
    mixture = "Mixture(1, NormalInverseGamma(0.2, 2, 3, 1), 3, NormalInverseGamma(0, 1, 3, 4))"
    mixed = np.logaddexp(np.log(0.25) + of_first, np.log(0.75) + of_second)
    assert unrestricted_posterior(statistic, prior=mixture, **asked).log_evidence == pytest.approx(
        mixed, abs=0.003
    )


@pytest.mark.slow
def test_evidence_is_of_the_prior_within_the_bounds() -> None:
    """Rates of records up to 8: a prior of which 48 % lies above, and the same cut off by its statement."""
    statistic = noisy_statistic(plan_of("poisson", upper="8"), np.array([[100, 300], [10, 70], [-20, 330]]))
    whole = stats.gamma(2, scale=5)
    cut = Density(whole.logpdf, 0.0, 8.0)
    asked: dict[str, Any] = {"n_prior": "Uniform(0, 200)", "clipping": "ignored"}
    restricted = posterior_of(statistic, prior="Gamma(2, 0.2)", **asked)
    stated = posterior_of(statistic, prior=cut, **asked)
    assert restricted.log_evidence == pytest.approx(stated.log_evidence, abs=1e-3)
    rates = np.array([0.5, 3.0, 7.9, 8.1])
    assert restricted.prior_density("rate", rates) == pytest.approx(
        np.where(rates < 8.0, whole.pdf(rates) / whole.cdf(8.0), 0.0), rel=1e-6
    )
    # The control: without the restriction they are far apart.
    unrestricted = unrestricted_posterior(statistic, prior="Gamma(2, 0.2)", **asked)
    assert np.max(np.abs(unrestricted.log_evidence - stated.log_evidence)) > 0.3


@pytest.mark.slow
def test_evidence_of_normal_columns_is_of_the_prior_within_the_bounds() -> None:
    """p(y | A) / p(y) = P(A | y) / P(A), both shares by draws: within six standard errors of 100,000."""
    plan = plan_of("normal", lower="0", upper="10", epsilon="0.5")
    unit = 4 * (1 << 16) ** 2
    statistic = noisy_statistic(plan, (np.array([[8.0, 9.0, 8.0], [30.0, 9.0, 2.0]]) * unit).astype(np.int64))
    asked: dict[str, Any] = {"prior": "NormalInverseGamma(2, 0.1, 3, 60)", "clipping": "ignored"}
    restricted, whole = posterior_of(statistic, **asked), unrestricted_posterior(statistic, **asked)
    rng = np.random.default_rng(1)

    def share(mean: Any, variance: Any) -> Any:
        return np.mean(variance <= mean * (10.0 - mean), axis=0)

    prior = NormalInverseGamma(2, 0.1, 3, 60).sample(100_000, rng)
    of_prior, given = share(*prior.T), share(*whole.sample(100_000, rng).values())
    error = 6.0 * np.sqrt((1 / given - 1 + 1 / of_prior - 1) / 100_000 + (1 / given - 1) / 20_000)
    expected = np.log(given) - np.log(of_prior)
    assert np.min(np.abs(expected)) > 0.3  # it matters in both
    assert np.all(np.abs(restricted.log_evidence - whole.log_evidence - expected) < error)


@pytest.mark.parametrize(
    ("family", "keys", "prior", "released"),
    [
        ("poisson", {"upper": "10"}, "Gamma(60, 2)", (20, 30)),
        ("poisson", {"upper": "10"}, "Gamma(200, 10)", (20, 30)),
        ("geometric", {"upper": "10"}, "Beta(2, 200)", (-15, 40)),
        (
            "normal_known_variance",
            {"lower": "0", "upper": "10", "variance": "4"},
            "Normal(17, 0.5)",
            (20, 30),
        ),
        ("normal", {"lower": "0", "upper": "10"}, "NormalInverseGamma(60, 200, 3, 40)", None),
        ("normal", {"lower": "0", "upper": "10"}, "NormalInverseGamma(30, 20, 6, 40)", None),
    ],
)
def test_a_prior_beyond_the_bounds_has_no_evidence(
    family: str, keys: dict[str, str], prior: str, released: tuple[int, int] | None
) -> None:
    plan = plan_of(family, **keys)
    values = np.array([released or (1 << 33, 1 << 33, 1 << 33)])
    posterior = posterior_of(
        noisy_statistic(plan, values), prior=prior, n_prior="Uniform(0, 100)", clipping="ignored"
    )
    with pytest.raises(UsageError, match="less than a hundredth"):
        _ = posterior.log_evidence
    (name, *_) = posterior.parameters
    density = posterior.prior_density(name, np.array([1.0, 5.0]))
    assert density is None or np.isfinite(density).all()


def test_where_there_is_no_evidence_the_reason_is_said() -> None:
    refused = {
        "takes the released values for exact": unrestricted_posterior(bernoulli((7, 5)), method="plug-in"),
        "several disjoint data sets": pooled(
            [bernoulli((7, 5)), bernoulli((9, 2))], prior=None, n_prior=None, rng=np.random.default_rng(1)
        ),
        "models clipping": unrestricted_posterior(
            noisy_statistic(plan_of("poisson", upper="3"), np.array([[200, 40]])),
            prior="Gamma(2, 1)",
            clipping="modelled",
        ),
    }
    plan = statistic_plan(
        {
            "family": "naive_bayes",
            "outcome": {"y": ["0", "1"]},
            "features": {"a": ["0", "1"], "b": ["0", "1"]},
        },
        epsilon="1",
        public_n=False,
    )
    refused["no normaliser"] = unrestricted_posterior(
        noisy_statistic(plan, np.full((1, len(plan.components)), 9))
    )
    for reason, posterior in refused.items():
        with pytest.raises(UsageError, match=reason):
            _ = posterior.log_evidence


def evidence_within(statistic: NoisyStatistic, family: str, a: float, b: float) -> float:
    """Of one cell of records up to 10, each N in 0..12 as likely, under the prior where its records can be.

    That is a Poisson rate in 0..10, or a geometric probability in 1 / 11..1.
    """
    n, total = np.meshgrid(np.arange(13.0), np.arange(2000.0), indexing="ij")
    possible = (n > 0) | (total == 0)
    n, total = n[possible], total[possible]
    records = np.maximum(n, 1)
    if family == "poisson":
        log_mass = special.xlogy(total, records) + special.gammaln(a + total) - special.gammaln(a)
        log_mass += a * np.log(b) - (a + total) * np.log(b + n)
        within, of_prior = (
            stats.gamma.logcdf(10, a + total, scale=1 / (b + n)),
            stats.gamma.logcdf(10, a, scale=1 / b),
        )
    else:
        log_mass = special.gammaln(total + records) - special.gammaln(records)
        log_mass += special.betaln(a + n, b + total) - special.betaln(a, b)
        within, of_prior = stats.beta.logsf(1 / 11, a + n, b + total), stats.beta.logsf(1 / 11, a, b)
    log_mass += within - of_prior - special.gammaln(total + 1)
    (of_sum, of_rest), plan = statistic.values[0], statistic.plan
    chance = noise(plan, of_sum - total) * noise(plan, of_rest - (10 * n - total)) / 13
    return float(np.log(np.sum(chance * np.exp(log_mass))))


_SMALL = [(1.0, 1.0), (0.1, 0.1), (0.01, 0.01), (0.001, 0.001), (1.0, 0.01), (0.01, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("concentrations", _SMALL, ids=str)
@pytest.mark.parametrize("family", ["poisson", "geometric"])
def test_evidence_within_the_bounds_of_small_concentrations(
    family: str, concentrations: tuple[float, float]
) -> None:
    """What such a prior has nearer to 0 or 1 than numbers on the line go counts, in prior and posterior."""
    values = np.array([[0, 0], [25, 60], [2, 95], [-12, 9]])
    statistic = noisy_statistic(plan_of(family, upper="10"), values)
    a, b = concentrations
    kind = "Gamma" if family == "poisson" else "Beta"
    asked: dict[str, Any] = {"n_prior": "Uniform(0, 12)", "clipping": "ignored"}
    posterior = posterior_of(statistic, prior=f"{kind}({a!r}, {b!r})", **asked)
    cells = [statistic.take(np.array([cell])) for cell in range(len(values))]
    exact = [evidence_within(cell, family, a, b) for cell in cells]
    # The share that bounds leave is known to some thousandths.
    assert posterior.log_evidence == pytest.approx(exact, abs=2e-3)
    mixture = posterior_of(statistic, prior=f"Mixture(1, {kind}({a!r}, {b!r}), 3, {kind}(2, 1))", **asked)
    # Components count by what they have within.
    law = stats.gamma(a, scale=1 / b) if family == "poisson" else stats.beta(a, b)
    wide = stats.gamma(2) if family == "poisson" else stats.beta(2, 1)
    inside = [each.cdf(10) if family == "poisson" else each.sf(1 / 11) for each in (law, wide)]
    other = [evidence_within(cell, family, 2, 1) for cell in cells]
    mixed = np.average(np.exp([exact, other]), axis=0, weights=[inside[0], 3 * inside[1]])
    assert mixture.log_evidence == pytest.approx(np.log(mixed), abs=2e-3)


def test_quantiles_within_the_bounds_of_a_small_concentration() -> None:
    """Of no records: most of Gamma(0.001, 0.001) within 0..10 is nearer to 0 than numbers on the line go."""
    statistic = noisy_statistic(plan_of("poisson", upper="10"), np.array([[0, 0]]))
    posterior = posterior_of(statistic, prior="Gamma(0.001, 0.001)", n_prior=0, clipping="ignored")
    law = stats.gamma(0.001, scale=1000)
    levels = [0.5, 0.992, 0.996, 0.999]
    reached = law.cdf(np.array(posterior.quantile(levels))[0]) / law.cdf(10)
    assert reached[1:] == pytest.approx(levels[1:], abs=5e-4)
    assert posterior.quantile(0.5)[0] < 1e-15
