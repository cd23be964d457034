"""Any prior of a mean and a variance, against dense quadrature and against conjugate results."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.posterior_terms import IGNORED
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from support.mean_variance import HALF_RANGE, MEAN, SD, dense, missed, released
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.typing import Floats


NAMES = ("mean", "variance")
posterior_of = partial(unrestricted_posterior, clipping=IGNORED)
"""What dense quadrature is compared with: it knows of no bounds."""


def nig(loc: float, precision: float, concentration: float, scale: float) -> JointDensity:
    """A conjugate prior as a log density."""
    return JointDensity(
        lambda m, v: -(concentration + 1.5) * np.log(v) - (scale + precision * (m - loc) ** 2 / 2) / v,
        mean=(-math.inf, math.inf),
        variance=(0, math.inf),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "public", "n_prior"),
    [(3, "1", False, Uniform(0, 5)), (2, "0.3", False, Fixed(2)), (6, "1", True, None), (1, "1", True, None)],
)
def test_moments_and_quantiles_are_those_of_dense_quadrature(
    n: int, epsilon: str, public: bool, n_prior: NPrior | None
) -> None:
    statistic = released(n, epsilon, public=public)
    posterior = posterior_of(statistic, prior=Independent(mean=MEAN, sd=SD), n_prior=n_prior)
    share = dense([statistic], [n_prior or Fixed(n)])
    far, off = missed(posterior, share)
    assert far < 0.01
    assert off < 0.008
    joint = JointDensity(
        lambda mean, sd: MEAN.logpdf(mean) + SD.logpdf(sd), mean=(-math.inf, math.inf), sd=(0, math.inf)
    )
    same = posterior_of(statistic, prior=joint, n_prior=n_prior)
    for name in NAMES:
        assert abs(same.mean(name)[0] - posterior.mean(name)[0]) < 0.005 * posterior.sd(name)[0]
    # The control: a standard deviation that is taken for a variance, or the other way round.
    wrong = posterior_of(statistic, prior=Independent(mean=MEAN, variance=SD), n_prior=n_prior)
    assert missed(wrong, share)[1] > 0.1


@pytest.mark.slow
def test_heavy_tails_of_a_variance_are_followed() -> None:
    """Under a half Cauchy a few rows leave a variance with a heavy tail, and with mass near 0."""
    statistic = released(10, "1", public=True)
    spread = stats.halfcauchy(scale=2)

    def log_prior(mean: Floats, variance: Floats) -> Floats:
        sd = np.sqrt(variance)
        return np.asarray(stats.norm(0, 10).logpdf(mean) + spread.logpdf(sd) - np.log(sd))

    low, high = np.linspace(-30.0, -9.0, 25)[:-1], np.linspace(-9.0, 7.0, 90)
    log_variances = np.concatenate([low, high])
    share = dense([statistic], [Fixed(10)], log_prior, log_variances)
    posterior = posterior_of(statistic, prior=Independent(mean=stats.norm(0, 10), sd=spread))
    far, off = missed(posterior, share, log_variances)
    assert far < 0.01
    assert off < 0.008
    # The control: a tail as thin as a half normal's.
    thin = posterior_of(statistic, prior=Independent(mean=stats.norm(0, 10), sd=stats.halfnorm(scale=3)))
    assert missed(thin, share, log_variances)[0] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "public"),
    [(0, "1", False), (20, "1", False), (100, "1", True), (10**4, "0.1", False), (10**9, "1", True)],
)
@pytest.mark.parametrize("family", ["normal", "lognormal"])
def test_a_conjugate_density_gives_the_conjugate_result(
    n: int, epsilon: str, public: bool, family: str
) -> None:
    statistic = released(n, epsilon, public=public, family=family)
    numbers = (1.0, 0.5, 4.0, 20.0)
    expected = posterior_of(statistic, prior=NormalInverseGamma(*numbers))
    posterior = posterior_of(statistic, prior=nig(*numbers))
    assert posterior.parameters == expected.parameters
    for name in expected.parameters:
        sd = expected.sd(name)
        assert np.all(np.abs(posterior.mean(name) - expected.mean(name)) < 0.01 * sd)
        assert posterior.sd(name) == pytest.approx(sd, rel=0.02)
        for level in (0.025, 0.5, 0.975):
            gap = posterior.quantile(name, level) - expected.quantile(name, level)
            assert np.all(np.abs(gap) < 0.1 * sd)


@pytest.mark.parametrize("public", [True, False])
def test_plug_in_posteriors_are_exact(public: bool) -> None:
    statistic = released(30, "1", public=public)
    numbers = (1.0, 0.5, 4.0, 20.0)
    expected = posterior_of(statistic, prior=NormalInverseGamma(*numbers), method="plug-in")
    posterior = posterior_of(statistic, prior=nig(*numbers), method="plug-in")
    for name in NAMES:
        assert posterior.mean(name) == pytest.approx(expected.mean(name), rel=1e-7)
        assert posterior.sd(name) == pytest.approx(expected.sd(name), rel=1e-6)
        interval, other = posterior.credible_interval(name), expected.credible_interval(name)
        assert np.max(np.abs(interval - other)) < 0.005 * expected.sd(name)[0]


@pytest.mark.slow
def test_draws_follow_the_distribution() -> None:
    """Ten comparisons of 40,000 draws with six standard errors: a false alarm has a chance below 1e-7."""
    statistic = released(20)
    posterior = posterior_of(statistic, prior="Independent(mean=Laplace(1, 2), sd=LogNormal(0.7, 0.5))")
    size = 40_000
    draws = posterior.sample(size, np.random.default_rng())
    for name in NAMES:
        for level in (0.025, 0.25, 0.5, 0.975):
            below = np.mean(draws[name] < posterior.quantile(name, level))
            assert abs(below - level) < 6 * math.sqrt(level * (1 - level) / size) + 1e-3
        assert abs(draws[name].mean() - posterior.mean(name)[0]) < 6 * posterior.sd(name)[0] / size**0.5


def test_prior_and_data_far_apart_are_resolved() -> None:
    """A normal prior of a known variance against 1,000 exact rows, fifty of its deviations away."""
    statistic = released(1000, "1000", public=True, mean=5.0, variance=4.0)
    prior = Independent(mean=stats.norm(0, 0.1), variance=stats.truncnorm(-30, 30, 4, 0.02))
    posterior = posterior_of(statistic, prior=prior)
    noise = statistic.plan.scale / 2**32 * 2 * HALF_RANGE / 1000  # of the mean: hardly any
    data = 4.0 / 1000 + 2 * noise**2
    centre = 5.0 + (0.7 * noise)
    expected = centre * 0.01 / (0.01 + data)
    assert abs(posterior.mean("mean")[0] - expected) < 0.2 * posterior.sd("mean")[0]


@pytest.mark.slow
def test_heavy_tails_leave_no_moments() -> None:
    statistic = released(4, "0.5")
    posterior = posterior_of(statistic, prior="Independent(mean=Cauchy(0, 2), variance=InverseGamma(1.5, 5))")
    assert np.isnan(posterior.mean("mean")[0])
    assert np.isinf(posterior.sd("mean")[0])
    assert np.isfinite(posterior.mean("variance")[0])
    assert np.isinf(posterior.sd("variance")[0])
    none = posterior_of(statistic, prior=Independent(mean=stats.cauchy(0, 2), sd=SD), n_prior=Fixed(0))
    for level in (0.02, 0.5, 0.9):
        assert stats.cauchy(0, 2).cdf(none.quantile("mean", level)[0]) == pytest.approx(level, abs=1e-3)
        assert SD.cdf(none.quantile("variance", level)[0] ** 0.5) == pytest.approx(level, abs=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", ["Normal(0, 10)", "Cauchy(0, 10)"])
def test_a_prior_far_from_the_data_raises_no_tails(far: str) -> None:
    """Where references are inaccurate, next to nothing times a large ratio of priors is no posterior."""
    plan = statistic_plan(
        {"family": "normal", "lower": "0", "upper": "100"}, epsilon="0.2632", public_n=False
    )
    # Of some 3,000 rows about 50.
    statistic = noisy_statistic(plan, np.array([[13300986653654, 25053175540597, 13946498464619]]))
    near, other = (
        posterior_of(
            statistic, prior=f"Independent(mean={mean}, sd=HalfNormal(5))", n_prior=Reciprocal(10**12)
        )
        for mean in ("Normal(50, 10)", far)
    )
    for name in NAMES:
        assert np.isfinite(near.sd(name)[0])
        assert other.sd(name) == pytest.approx(near.sd(name), rel=0.02)
        draws = other.sample(20_000, np.random.default_rng(0))[name]
        assert np.max(np.abs(draws - other.mean(name))) < 9.0 * other.sd(name)[0]


@pytest.mark.slow
def test_no_rows_are_no_way_out_where_prior_and_data_are_apart() -> None:
    """Of 300 rows that scatter fifteen times as much as the prior allows: noise did that."""
    prior = "Independent(mean=Normal(0, 10), sd=Uniform(0.1, 0.2))"
    doubtful, certain = (
        posterior_of(released(300, "5"), prior=prior, n_prior=Uniform(least, 1000)) for least in (0, 1)
    )
    for name in NAMES:
        assert doubtful.mean(name) == pytest.approx(certain.mean(name), rel=1e-4)
        assert doubtful.sd(name) == pytest.approx(certain.sd(name), rel=1e-3)
    assert doubtful.sd("mean")[0] < 0.1
    with pytest.raises(PriorError, match="so far apart"):
        posterior_of(released(8000, "5"), prior=prior, n_prior=Uniform(0, 20_000))


@pytest.mark.slow
def test_rows_that_are_all_but_impossible_leave_moments() -> None:
    """N is private: with little noise no rows, or one, are out of the question."""
    prior = "Independent(mean=Normal(0, 10), sd=HalfCauchy(2))"
    many = posterior_of(released(100, "5"), prior=prior, n_prior=Uniform(0, 1000))
    certain = posterior_of(released(100, "5"), prior=prior, n_prior=Uniform(50, 1000))
    assert many.sd("variance") == pytest.approx(certain.sd("variance"), rel=1e-3)
    # The control: with more noise they are not.
    few = posterior_of(released(10, "1"), prior=prior, n_prior=Uniform(0, 1000))
    assert np.isinf(few.mean("variance")[0])


def test_heavy_tails_leave_moments_where_enough_rows_are_certain() -> None:
    prior = "Independent(mean=Normal(0, 10), sd=HalfCauchy(2))"
    three = posterior_of(released(3, public=True), prior=prior)
    assert np.isfinite(three.mean("variance")[0])
    assert np.isinf(three.sd("variance")[0])
    # The control: one row leaves the variance without a mean.
    of_one_row = posterior_of(released(1, public=True), prior=prior)
    assert np.isinf(of_one_row.mean("variance")[0])


def flat(mean: Floats, spread: Floats) -> Floats:
    return np.zeros_like(mean + spread)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (JointDensity(flat, mean=(-math.inf, math.inf), sd=(0, 5)), "improper"),
        (JointDensity(flat, mean=(-1, 1), variance=(0, math.inf)), "improper"),
        (JointDensity(lambda m, v: -np.log(v) + 0 * m, mean=(-1, 1), variance=(0, 5)), "improper"),
        (JointDensity(lambda m, v: m[:-1] + v[:-1], mean=(-1, 1), variance=(0, 5)), "shape"),
        (JointDensity(lambda m, v: math.log(m) + v, mean=(-1, 1), variance=(0, 5)), "arrays"),
        (JointDensity(lambda m, v: np.nan * m * v, mean=(-1, 1), variance=(0, 5)), "NaN"),
        (JointDensity(lambda m, v: -np.inf + 0 * m * v, mean=(-1, 1), variance=(0, 5)), "no density"),
        (Independent(mean="Normal(0, 1)", sd="Normal(0, 1)"), r"0\.\.inf"),
    ],
)
@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
def test_what_is_no_proper_prior_is_refused(prior: Any, words: str, method: str) -> None:
    with pytest.raises(PriorError, match=words), np.errstate(all="ignore"):
        posterior_of(released(4), prior=prior, method=method)


def test_a_plug_in_posterior_without_any_variance_is_refused() -> None:
    statistic = released(6, "1", public=True, mean=1.0, variance=0.0)
    assert posterior_of(statistic, prior=Independent(mean=MEAN, sd=SD)).sd("variance")[0] > 0.0
    with pytest.raises(PriorError, match="improper"):
        posterior_of(statistic, prior=Independent(mean=MEAN, sd=stats.halfnorm(scale=5)), method="plug-in")


@pytest.mark.parametrize("given", [{}, {"sd": SD, "variance": SD}])
def test_one_of_variance_and_sd_is_stated(given: Any) -> None:
    with pytest.raises(PriorError, match="variance= or sd="):
        Independent(mean=MEAN, **given)
    with pytest.raises(PriorError, match=r"write it as Independent\(mean="):
        Independent(mean=MEAN, **given)
    with pytest.raises(PriorError, match="lacks the prior of the mean: write it as Independent"):
        Independent(sd=SD)
    with pytest.raises(PriorError, match="mean"):
        JointDensity(flat, sd=(0, 1))
    ends = dict.fromkeys(given, (0, 1))
    with pytest.raises(PriorError, match="variance= or sd="):
        JointDensity(flat, mean=(-1, 1), **ends)


@pytest.mark.parametrize("ends", [(1, 1), (-1, 1), (0, math.nan), 3, (0, 1, 2)])
def test_supports_are_intervals(ends: Any) -> None:
    with pytest.raises(PriorError):
        JointDensity(flat, mean=(-1, 1), sd=ends)
