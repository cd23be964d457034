"""Posteriors under any prior, against enumeration with the same prior and against conjugate results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, xlog1py, xlogy

import suffice
from suffice.errors import PriorError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


ENTRIES: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "binomial": {"trials": "3"},
    "poisson": {"upper": "6"},
    "geometric": {"upper": "8"},
    "exponential": {"upper": "8"},
    "pareto": {"minimum": "1", "upper": "50"},
    "laplace": {"location": "-3", "half_range": "8"},
    "normal_known_mean": {"mean": "5", "half_range": "4"},
    "normal_known_variance": {"variance": "4", "lower": "-2", "upper": "10"},
}


def released(
    family: str, shares: list[list[float]], *, epsilon: str = "0.8", public_n: int | None = None
) -> NoisyStatistic:
    """Noisy components in multiples of one record's share."""
    plan = statistic_plan(
        {"family": family, **ENTRIES[family]}, epsilon=epsilon, public_n=public_n is not None
    )
    reach = 1 if family == "bernoulli" else plan.partition_total or round(plan.l1_sensitivity)
    values = np.rint(np.array(shares) * reach).astype(np.int64)
    return noisy_statistic(plan, values[:, -len(plan.components) :], public_n=public_n)


def of_binomial(s: Floats, n: int, p: Floats) -> Floats:
    """Return the log probabilities of a binomial's sums, which scipy would take the factorials of anew."""
    return np.asarray(gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1) + xlogy(s, p) + xlog1py(n - s, -p))


# The log probability of sums 0, 1, ..., given N >= 1 and the parameters (n_parameters, 1).
SUMS: dict[str, Callable[[Floats, int, Floats], Floats]] = {
    "bernoulli": of_binomial,
    "binomial": lambda s, n, p: of_binomial(s, 3 * n, p),
    "poisson": lambda s, n, p: np.asarray(s * np.log(n * p) - n * p - gammaln(s + 1)),
    "geometric": lambda s, n, p: np.asarray(
        gammaln(s + n) - gammaln(n) - gammaln(s + 1) + n * np.log(p) + s * np.log1p(-p)
    ),
}
MOST = {"bernoulli": 1, "binomial": 3}
"""The largest value of a record, where sums are bounded."""


def test_sums_have_the_distributions_of_scipy() -> None:
    s, p = np.arange(13.0), np.array([[0.01], [0.4], [0.999]])
    for family, law in {
        "bernoulli": stats.binom(12, p),
        "binomial": stats.binom(12, p),
        "poisson": stats.poisson(12 * p),
        "geometric": stats.nbinom(12, p),
    }.items():
        n = 12 // MOST.get(family, 1)
        assert SUMS[family](s, n, p) == pytest.approx(law.logpmf(s), rel=1e-12, abs=1e-12)


def enumerated(
    statistic: NoisyStatistic, prior: Any, n_prior: NPrior, positions: Floats, weights: Floats
) -> tuple[float, float, Floats]:
    """Mean, standard deviation and probabilities of the places of the first cell's parameter."""
    family, scale = statistic.plan.family, statistic.plan.scale
    values = statistic.values[0].astype(np.float64)
    if family == "bernoulli":
        values = values[::-1]
    reach = {"bernoulli": 1, "binomial": 3, "poisson": 6, "geometric": 8}[family]
    terms = []
    for n in range(n_prior.support[0], n_prior.support[1] + 1):
        # Sums beyond that are 19 scales of the noise and more from what was released: e^-19 at most.
        total = np.arange(min(250.0, MOST.get(family, math.inf) * n + 1.0)) if n else np.zeros(1)
        log_distribution = SUMS[family](total, n, positions[:, None]) if n else np.zeros((len(positions), 1))
        noise = np.abs(values[0] - total)
        if len(values) == 2:
            noise = noise + np.abs(values[1] - (reach * n - total))
        log_n = n_prior.log_prob(np.array([float(n)]))[0]
        terms.append(np.exp(log_distribution) @ np.exp(log_n - noise / scale))
    # Where no sum is likelier than the smallest double, nothing is left.
    with np.errstate(divide="ignore"):
        log_value = np.log(np.sum(terms, axis=0)) + prior(positions)
    share = np.exp(log_value - log_value.max()) * weights
    share /= share.sum()
    mean = float(share @ positions)
    return mean, math.sqrt(share @ (positions - mean) ** 2), share


def panels(edges: Floats) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


NEAR = np.geomspace(1e-14, 0.01, 60)
UNIT, RATE = (
    np.unique(np.concatenate([NEAR, np.linspace(0.01, 0.99, 60), 1 - NEAR])),
    np.concatenate([np.geomspace(1e-9, 0.05, 40), np.linspace(0.06, 60, 200), np.geomspace(61, 1e7, 60)]),
)
RIGHT = stats.truncnorm(-3, 7, loc=0.3, scale=0.1)
TWO_BUMPS = Density(lambda p: np.logaddexp(-(((p - 0.2) / 0.01) ** 2), -(((p - 0.9) / 0.02) ** 2)), 0, 1)
HALF_CAUCHY = stats.halfcauchy(scale=0.5)
PROBLEMS: list[tuple[str, list[float], Any]] = [
    ("bernoulli", [7, 3], RIGHT),
    ("bernoulli", [-2, 1], stats.uniform(0.25, 0.5)),
    ("bernoulli", [9, 4], TWO_BUMPS),
    ("bernoulli", [9, 1], stats.beta(200, 1)),
    ("binomial", [4, 7], RIGHT),
    ("binomial", [4, 7], stats.arcsine()),
    ("geometric", [4, 7], RIGHT),
    ("poisson", [5, 4], stats.lognorm(0.5, scale=2)),
    ("poisson", [-1, -2], HALF_CAUCHY),
    ("poisson", [5, 4], stats.lognorm(0.05, scale=12)),
    ("poisson", [5, 4], Density(lambda rate: -((rate - 2) ** 2), 1.5, math.inf)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "row", "prior"), PROBLEMS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize(
    ("n_prior", "public"), [(Uniform(0, 20), False), (Fixed(9), False), (Fixed(9), True)]
)
def test_moments_and_quantiles_are_those_of_enumeration(
    family: str, row: list[float], prior: Any, n_prior: NPrior, public: bool
) -> None:
    statistic = released(family, [row, row], public_n=9 if public else None)
    posterior = unrestricted_posterior(
        statistic, prior=prior, n_prior=None if public else n_prior, clipping="ignored"
    )
    density = Density.of(prior)
    assert density is not None
    edges = RATE if family == "poisson" else UNIT
    ends = [max(density.lower, edges[0]), min(density.upper, edges[-1])]
    (name,) = posterior.parameters
    levels = (0.025, 0.5, 0.975)
    quantiles = [posterior.quantile(name, level)[0] for level in levels]
    edges = np.concatenate([edges, np.linspace(0.1, 1, 91), quantiles, ends])
    positions, weights = panels(np.unique(np.clip(edges, *ends)))
    mean, sd, share = enumerated(statistic, density.log_density, n_prior, positions, weights)
    if prior is HALF_CAUCHY and not public and n_prior.support[0] == 0:
        assert posterior.mean(name)[0] == math.inf  # no rows at all leave the prior, which has no mean
    else:
        assert abs(posterior.mean(name)[0] - mean) < 1e-4 * sd
        assert posterior.sd(name)[0] == pytest.approx(sd, rel=1e-4)
    for level, quantile in zip(levels, quantiles, strict=True):
        assert abs(share[positions < quantile].sum() - level) < 2e-4


CONJUGATE: list[tuple[str, Prior, Any]] = [
    ("bernoulli", Beta(2, 5), stats.beta(2, 5)),
    ("binomial", Beta(0.5, 0.5), Density(lambda p: -0.5 * np.log(p) - 0.5 * np.log1p(-p), 0, 1)),
    ("geometric", Beta(2, 5), stats.beta(2, 5)),
    ("poisson", Gamma(3, 1.5), stats.gamma(3, scale=1 / 1.5)),
    ("exponential", Gamma(300, 900), stats.gamma(300, scale=1 / 900)),
    ("pareto", Gamma(2, 3), Density(lambda shape: np.log(shape) - 3 * shape, 0, math.inf)),
    ("laplace", InverseGamma(3, 4), stats.invgamma(3, scale=4)),
    ("normal_known_mean", InverseGamma(3, 8), stats.invgamma(3, scale=8)),
    ("normal_known_variance", Normal(-20, 0.05), stats.norm(-20, 0.05)),
    (
        "normal_known_variance",
        Normal(4, 3),
        Density(lambda mean: -((mean - 4) ** 2) / 18, -math.inf, math.inf),
    ),
]


@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
@pytest.mark.parametrize(("family", "conjugate", "density"), CONJUGATE)
@pytest.mark.parametrize("public_n", [None, 12])
def test_a_conjugate_density_gives_the_conjugate_result(
    family: str, conjugate: Prior, density: Any, public_n: int | None, method: str
) -> None:
    statistic = released(family, [[3, 9], [-2, -3], [25, 1]], epsilon="0.5", public_n=public_n)
    expected = unrestricted_posterior(statistic, prior=conjugate, method=method, clipping="ignored")
    posterior = unrestricted_posterior(statistic, prior=density, method=method, clipping="ignored")
    (name,) = expected.parameters
    sd = expected.sd(name)
    finite = np.isfinite(sd)
    assert np.all(np.isinf(posterior.sd(name)) == ~finite)
    assert np.all(np.abs(posterior.mean(name) - expected.mean(name))[finite] < 1e-4 * sd[finite])
    assert posterior.sd(name)[finite] == pytest.approx(sd[finite], rel=2e-4)


def test_draws_follow_the_distribution() -> None:
    statistic = released("poisson", [[5, 4], [30, 2]])
    posterior = unrestricted_posterior(statistic, prior=stats.lognorm(0.5, scale=2), n_prior=Reciprocal(100))
    draws = posterior.sample(20_000, np.random.default_rng())["rate"]
    # Six standard errors of shares and means: 2e-9 to 5e-9 each of ten.
    for level in (0.025, 0.25, 0.5, 0.975):
        below = np.mean(draws < posterior.quantile("rate", level), axis=0)
        assert np.all(np.abs(below - level) < 6 * math.sqrt(level * (1 - level) / 20_000))
    assert np.all(np.abs(draws.mean(axis=0) - posterior.mean("rate")) < 6 * posterior.sd("rate") / 141)


@pytest.mark.parametrize("n", [10**3, 10**6, 10**9])
def test_many_rows_drown_any_prior(n: int) -> None:
    statistic = released("bernoulli", [[0.7 * n, 0.3 * n]])
    posterior = unrestricted_posterior(statistic, prior=RIGHT)
    default = unrestricted_posterior(statistic)
    sd = default.sd("probability")
    assert np.all(np.abs(posterior.mean("probability") - default.mean("probability")) < 0.1 * sd)
    assert posterior.sd("probability") == pytest.approx(sd, rel=0.02)


def answer(statistic: NoisyStatistic, prior: Any) -> Posterior:
    return unrestricted_posterior(statistic, prior=prior, n_prior=Uniform(0, 20))


@pytest.mark.parametrize(
    ("family", "prior", "words"),
    [
        ("poisson", Density(np.zeros_like, 0, math.inf), "improper"),
        ("poisson", Density(lambda rate: -np.log(rate), 0, 5), "improper"),
        ("poisson", Density(lambda rate: -np.log(rate), 1e-3, math.inf), "improper"),
        ("bernoulli", Density(lambda p: -np.log(p) - np.log1p(-p), 0, 1), "improper"),
        ("normal_known_variance", Density(np.zeros_like, -math.inf, math.inf), "improper"),
        ("normal_known_variance", Density(lambda mean: mean**2, -math.inf, math.inf), "improper"),
        ("bernoulli", Density(lambda p: np.full_like(p, np.nan), 0, 1), "NaN"),
        ("bernoulli", Density(lambda p: np.full_like(p, np.inf), 0, 1), "infinite"),
        ("bernoulli", Density(lambda p: np.full_like(p, -np.inf), 0, 1), "no density"),
        ("bernoulli", Density(lambda _p: 0.0, 0, 1), "shape"),
        ("bernoulli", Density(lambda p: p[:-1], 0, 1), "shape"),
        ("bernoulli", Density(math.log, 0, 1), "array"),
        ("bernoulli", stats.norm(0.3, 0.1), "0..1"),
        ("poisson", Density(lambda rate: -rate, -1, math.inf), "0..inf"),
        ("poisson", stats.multivariate_normal([0, 0]), "continuous"),
    ],
)
@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
def test_what_is_no_proper_prior_is_refused(family: str, prior: Any, words: str, method: str) -> None:
    with pytest.raises(PriorError, match=words):
        unrestricted_posterior(released(family, [[5, 4]]), prior=prior, method=method)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (math.nan, 1), ("0", 1), (False, 1)])
def test_supports_are_intervals(ends: tuple[Any, Any]) -> None:
    with pytest.raises(PriorError):
        Density(np.zeros_like, *ends)


def test_densities_are_functions() -> None:
    with pytest.raises(PriorError, match="function"):
        Density(3.0, 0, 1)  # type: ignore[arg-type]


def test_a_text_says_where_densities_are_given() -> None:
    with pytest.raises(PriorError, match=r"suffice\.Density"):
        unrestricted_posterior(released("poisson", [[5, 4]]), prior="zipfian(0.5)")


@pytest.mark.slow
def test_heavy_tails_are_reached_and_leave_no_mean() -> None:
    statistic = released("normal_known_variance", [[3, 2], [-3, 2]], epsilon="0.1")
    posterior = unrestricted_posterior(statistic, prior=stats.cauchy(4, 1), n_prior=Uniform(0, 20))
    assert np.all(np.isnan(posterior.mean("mean")))
    assert np.all(np.isinf(posterior.sd("mean")))
    # With no rows at all, the posterior is the prior.
    none = unrestricted_posterior(statistic, prior=stats.cauchy(4, 1), n_prior=Fixed(0))
    for level in (0.01, 0.25, 0.5, 0.99):
        assert stats.cauchy(4, 1).cdf(none.quantile("mean", level)) == pytest.approx(level, abs=1e-4)


def test_a_prior_is_named_in_its_posterior() -> None:
    posterior = answer(released("poisson", [[5, 4]]), stats.lognorm(0.5, scale=2))
    assert str(posterior.prior) == "scipy.stats.lognorm(0.5, scale=2) on 0..inf"
    assert str(suffice.Density(np.zeros_like, 0, 5)) == "Density on 0..5"


@pytest.mark.slow
def test_cells_have_the_posteriors_that_they_have_alone() -> None:
    statistic = released("exponential", [[3, 9], [-2, -3], [4000, 3900], [0, 0]], epsilon="0.1")
    prior = stats.halfcauchy(scale=1.0)
    together = unrestricted_posterior(statistic, prior=prior)
    for cell in range(4):
        alone = unrestricted_posterior(statistic.take(np.array([cell])), prior=prior)
        for level in (0.025, 0.5, 0.975):
            expected = alone.quantile("rate", level)[0]
            assert together.quantile("rate", level)[cell] == pytest.approx(expected, rel=1e-9)


def _flags() -> NoisyStatistic:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=False)
    return noisy_statistic(plan, np.array([[13_880, 6_120]]))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-4, 1e-5, 1e-6])
def test_a_spike_of_a_millionth_of_the_support_is_seen(width: float) -> None:
    """Half of the prior is uniform, half next to a point: the likelihood there weighs them."""
    prior = Density(
        lambda p: np.logaddexp(math.log(0.5) + stats.norm.logpdf(p, 0.3, width), math.log(0.5)), 0, 1
    )
    flat = posterior_of(_flags(), prior="Beta(1, 1)")
    (likelihood,) = np.ravel(np.asarray(flat.density("probability", np.array([0.3]))))
    share = likelihood / (likelihood + 1.0)
    expected = share * 0.3 + (1.0 - share) * flat.mean("probability")[0]
    mean = posterior_of(_flags(), prior=prior).mean("probability")[0]
    assert mean == pytest.approx(expected, abs=2e-5)
    assert abs(flat.mean("probability")[0] - expected) > 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-4, 3e-5, 1e-5])
def test_a_spike_of_an_unbounded_support_is_seen_where_its_mass_is(width: float) -> None:
    """Half of the prior is exponential, half next to a point where the likelihood is high."""

    def log_density(rate: np.ndarray) -> np.ndarray:
        near = stats.norm.logpdf(rate, 0.605, width)
        return np.asarray(np.logaddexp(near, -rate) - math.log(2.0))

    statistic = released("poisson", [[4_000, 36_000]], epsilon="1")
    plain = posterior_of(statistic, prior="Gamma(1, 1)")
    (likelihood,) = np.ravel(np.asarray(plain.density("rate", np.array([0.605])))) / math.exp(-0.605)
    share = likelihood / (likelihood + 1.0)
    expected = share * 0.605 + (1.0 - share) * plain.mean("rate")[0]
    seen = posterior_of(statistic, prior=Density(log_density, 0, math.inf)).mean("rate")[0]
    assert seen == pytest.approx(expected, abs=0.02 * plain.sd("rate")[0])
    assert abs(plain.mean("rate")[0] - expected) > 0.1 * plain.sd("rate")[0]


@pytest.mark.slow
def test_a_density_at_points_alone_is_refused_and_a_table_of_few_points_is_not() -> None:
    points = np.linspace(0.0, 1.0, 11)
    with pytest.raises(PriorError, match=r"not seen whole.*hints"):
        posterior_of(_flags(), prior=Density(lambda p: np.where(np.isin(p, points), 0.0, -np.inf), 0, 1))
    tables = (
        lambda p: np.interp(p, points, -((points - 0.3) ** 2)),
        lambda p: np.log(np.arange(1.0, 12.0))[np.rint(p * 10.0).astype(int)],
    )
    for table in tables:
        mean = posterior_of(_flags(), prior=Density(table, 0, 1)).mean("probability")
        assert mean == pytest.approx(6120 / 20_000, abs=5e-4)


@pytest.mark.slow
def test_a_histogram_is_seen_whole() -> None:
    """Its quantiles, which are hints, are not its steps: mass by exact sums over the ten bins."""
    edges = np.linspace(0.0, 1.0, 11)
    shares = np.diff(stats.beta.cdf(edges, 2, 5))
    of_histogram = posterior_of(_flags(), prior=stats.rv_histogram((shares, edges)).freeze())
    steps = Density(lambda p: np.log(shares)[np.minimum((p * 10.0).astype(int), 9)], 0, 1)
    expected = posterior_of(_flags(), prior=steps)
    for posterior in (of_histogram, expected):
        assert posterior.mean("probability") == pytest.approx(6120 / 20_000, abs=5e-4)
    assert of_histogram.sd("probability") == pytest.approx(expected.sd("probability"), rel=1e-4)


def test_a_distribution_function_that_disagrees_is_refused() -> None:
    """As of a spike that no scan sees: half of the mass is elsewhere."""
    hidden = Density(np.zeros_like, 0, 1, cdf=lambda p: 0.5 * p + 0.5 * (p >= 0.123456789))
    with pytest.raises(PriorError, match="not seen whole"):
        posterior_of(_flags(), prior=hidden)
    assert Density.of(stats.uniform(0, 1)) is not None
