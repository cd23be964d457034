"""A mean and a variance behind several releases, under any prior, against dense quadrature."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.posterior_terms import IGNORED
from suffice.pipeline.ask.pooling.pool import MOST_BY_QUADRATURE, observed_again
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.families.normal import noisy_moments
from suffice.pipeline.math.distributions.composite import ConjugateMixture
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.mean_variance.distribution import MeanVarianceDistribution
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Uniform
from support.mean_variance import HALF_RANGE, MEAN, SD, dense, missed, released
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

PRIOR = Independent(mean=MEAN, sd=SD)
JOINT = JointDensity(
    lambda mean, sd: MEAN.logpdf(mean) + SD.logpdf(sd), mean=(-math.inf, math.inf), sd=(0, math.inf)
)
CONJUGATE = NormalInverseGamma(1, 0.5, 4, 20)


def joint(parts: list[NoisyStatistic], prior: Any = PRIOR, n_prior: NPrior | None = None) -> Posterior:
    """Without clipping, as the dense products that it is compared with."""
    return pooled(parts, prior=prior, n_prior=n_prior, clipping=IGNORED, rng=np.random.default_rng(7))


Rows = list[tuple[int, str, float, float]]
"""Of every release: rows, epsilon, mean and variance."""
AGREE: Rows = [(6, "1", 2.0, 5.0), (4, "0.5", 1.0, 3.0)]
APART: Rows = [(6, "2", 6.0, 5.0), (6, "2", -5.0, 2.0)]
WINDOWS: Rows = [(5, "1", 2.0, 5.0), (3, "1", 1.0, 9.0), (4, "2", 3.0, 2.0)]
PRIVATE: Rows = [(3, "1", 2.0, 5.0), (2, "0.5", -2.0, 3.0)]


def of_rows(rows: Rows, family: str = "normal", *, public: bool) -> list[NoisyStatistic]:
    return [
        released(n, epsilon, public=public, family=family, mean=mean, variance=variance)
        for n, epsilon, mean, variance in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "family", "n_prior"),
    [
        (AGREE, "normal", None),
        (APART, "normal", None),
        (WINDOWS, "normal", None),
        (PRIVATE, "normal", Uniform(0, 5)),
        ([(n, epsilon, 0.5 * mean, 0.3 * v) for n, epsilon, mean, v in AGREE], "lognormal", None),
    ],
)
def test_moments_and_quantiles_are_those_of_the_product(
    rows: Rows, family: str, n_prior: NPrior | None
) -> None:
    parts = of_rows(rows, family, public=n_prior is None)
    n_priors = [n_prior or Fixed(n) for n, *_ in rows]
    half_range = HALF_RANGE if family == "normal" else math.log(100.0)
    share = dense(parts, n_priors, half_range=half_range)
    far, off = missed(joint(parts, n_prior=n_prior), share, half_range=half_range)
    assert far < 0.02
    assert off < 0.015
    # The control: the last release counts twice.
    wrong = joint([*parts, parts[-1]], n_prior=n_prior)
    assert missed(wrong, share, half_range=half_range)[0] > 0.05


@pytest.mark.slow
def test_observations_at_the_same_data_are_one_likelihood() -> None:
    parts = [released(6, "1", public=True), released(6, "0.7", public=True, mean=0.5, variance=9.0)]
    together = observed_again(parts)
    share = dense([together], [Fixed(6)])
    posterior = unrestricted_posterior(together, prior=JOINT, clipping=IGNORED)
    assert max(missed(posterior, share)) < 0.01
    # The control: two observations at one data set are no two data sets.
    assert missed(joint(parts), share)[0] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("prior", [PRIOR, CONJUGATE, Mixture(1, CONJUGATE, 3, CONJUGATE)])
@pytest.mark.parametrize("public", [True, False])
def test_one_release_alone_is_its_own_posterior(prior: Any, public: bool) -> None:
    part = released(40, "1", public=public)
    single, alone = unrestricted_posterior(part, prior=prior, clipping=IGNORED), joint([part], prior)
    assert isinstance(alone.distribution, MeanVarianceDistribution)
    for name in single.parameters:
        sd = single.sd(name)[0]
        # A plane's own posterior is the same numbers; a conjugate one is worked out in another way.
        reach = 1e-9 if isinstance(single.distribution, MeanVarianceDistribution) else 0.01
        assert abs(alone.mean(name)[0] - single.mean(name)[0]) < reach * sd
        assert alone.sd(name)[0] == pytest.approx(sd, rel=reach)


def test_kinds_of_the_same_prior_and_orders_of_releases_agree() -> None:
    parts = of_rows(WINDOWS, public=True)
    given = joint(parts)
    for other in (joint(parts, JOINT), joint(parts[::-1])):
        for name in given.parameters:
            assert abs(other.mean(name)[0] - given.mean(name)[0]) < 5e-3 * given.sd(name)[0]
            assert other.sd(name) == pytest.approx(given.sd(name), rel=5e-3)
    half = Mixture(1, NormalInverseGamma(-2, 3, 6, 20), 2, NormalInverseGamma(3, 3, 6, 20))
    density = JointDensity(
        lambda m, v: np.logaddexp(
            -7.5 * np.log(v) - (20 + 1.5 * (m + 2) ** 2) / v,
            math.log(2) - 7.5 * np.log(v) - (20 + 1.5 * (m - 3) ** 2) / v,
        ),
        mean=(-math.inf, math.inf),
        variance=(0, math.inf),
    )
    mixed, stated = joint(parts, half), joint(parts, density)
    for name in mixed.parameters:
        assert abs(mixed.mean(name)[0] - stated.mean(name)[0]) < 5e-3 * mixed.sd(name)[0]
        assert mixed.sd(name) == pytest.approx(stated.sd(name), rel=5e-3)


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize(("mean", "n", "epsilon"), [(2.5, 10**5, "10"), (5.0, 10**4, "20")])
def test_data_that_disagree_are_pooled_as_their_sums(public: bool, mean: float, n: int, epsilon: str) -> None:
    """Little noise, and dozens of standard deviations apart: against conjugate algebra of exact sums."""
    parts = [released(n, epsilon, public=public, mean=true_mean) for true_mean in (2.0, mean)]
    posterior = joint(parts, CONJUGATE)
    centre, spread = (2.0 + mean) / 2.0, 5.0 + (mean - 2.0) ** 2 / 4.0
    assert abs(posterior.mean("mean")[0] - centre) < 0.2 * posterior.sd("mean")[0]
    assert posterior.sd("mean")[0] == pytest.approx(math.sqrt(spread / (2 * n)), rel=0.02)
    assert posterior.sd("variance")[0] == pytest.approx(spread * math.sqrt(1 / n), rel=0.02)


def test_few_rows_of_all_releases_together_leave_moments() -> None:
    """Under a half Cauchy prior the variance has a mean from two rows on, wherever these are."""
    prior = "Independent(mean=Normal(0, 10), sd=HalfCauchy(2))"
    of_one_row = released(1, public=True)
    assert np.isinf(joint([of_one_row], prior).mean("variance")[0])
    two = joint([of_one_row, released(1, "0.5", public=True)], prior)
    assert np.isfinite(two.mean("variance")[0])
    assert np.isinf(two.sd("variance")[0])
    four = joint([of_one_row] * 2 + [released(2, public=True)], prior)
    assert np.isfinite(four.sd("variance")[0])


@pytest.mark.slow
def test_cells_that_are_rolled_up_take_any_prior() -> None:
    parts = of_rows([(40, "1", 2.0, 5.0), (40, "1", 1.0, 5.0)], public=False)
    statistic = dataclasses.replace(
        parts[0],
        values=np.concatenate([part.values for part in parts]),
        groups={"month": ["1", "2"]},
    )
    merged = roll_up(statistic, "month").posterior(
        prior=PRIOR, n_prior=Uniform(0, 100), assume="one parameter"
    )
    separate = joint(parts, n_prior=Uniform(0, 100))
    for name in merged.parameters:
        assert merged.mean(name) == pytest.approx(separate.mean(name))


def test_a_conjugate_prior_with_its_mass_at_an_end_is_sampled_and_says_so() -> None:
    parts = of_rows(AGREE, public=True)
    weak = joint(parts, NormalInverseGamma(0, 1e-4, 0.05, 0.05))
    assert isinstance(weak.distribution, ConjugateMixture)
    assert weak.diagnostics["sampler"] == "importance"
    assert joint(parts, CONJUGATE).diagnostics == {}
    # A mixture is not: what is wrong with it is said, and not what importance sampling does not take.
    with pytest.raises(PriorError, match="its integral does not converge"):
        joint(parts, Mixture(1, NormalInverseGamma(0, 1e-4, 0.05, 0.05), 1, CONJUGATE))


@pytest.mark.slow
def test_very_many_cells_under_a_conjugate_prior_are_sampled_and_say_so() -> None:
    """The first of them is that of quadrature within six errors of a few hundred draws that count."""
    parts = of_rows(AGREE, public=True)
    many = [part.take(np.zeros(MOST_BY_QUADRATURE // 2 + 1, dtype=np.int64)) for part in parts]
    sampled, exact = joint(many, CONJUGATE), joint(parts, CONJUGATE)
    assert sampled.diagnostics["sampler"] == "importance"
    error = exact.sd("mean")[0] * 6 / np.sqrt(sampled.diagnostics["fewest_effective_draws"])
    assert abs(sampled.mean("mean")[0] - exact.mean("mean")[0]) < error


def test_improper_priors_are_refused() -> None:
    flat = JointDensity(lambda m, v: np.zeros_like(m + v), mean=(-math.inf, math.inf), sd=(0, 5))
    with pytest.raises(PriorError, match="improper"):
        joint(of_rows(AGREE, public=True), flat)


@pytest.mark.parametrize(
    ("n", "epsilon", "prior"),
    [
        (100, "5", "Independent(mean=Normal(0, 5), sd=Uniform(0.01, 0.02))"),
        (10**6, "10", "Independent(mean=Uniform(100, 101), sd=Uniform(0.01, 0.02))"),
    ],
)
def test_what_lies_beyond_the_noise_that_is_covered_is_refused(
    n: int, epsilon: str, prior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is found in grids that cover 250 nats; the second has no likelihood to all digits."""
    monkeypatch.setattr("suffice.pipeline.ask.inference.any_joint_prior._DEPTHS", (28.0,))
    parts = [released(n, epsilon, public=True, mean=true_mean) for true_mean in (-2.0, 2.0)]
    with pytest.raises(UsageError, match="barely fit"):
        joint(parts, prior)
    with pytest.raises(PriorError, match="so far apart"):
        joint(parts[:1], prior)


@pytest.mark.parametrize("means", [(2.0,), (2.0, 1.0, 1.5, 1.7), (2.0, -1.0)])
def test_rows_without_deviations_leave_the_distribution_of_the_noise(means: tuple[float, ...]) -> None:
    """Under a prior of small variances alone: the noise at N rows of one value each, on a dense grid."""
    n, sd = 100, 0.015
    parts = [released(n, "1", public=True, mean=mean, variance=2e-4) for mean in means]
    posterior = joint(parts, "Independent(mean=Normal(0, 5), sd=Uniform(0.0149, 0.0151))")
    position = np.linspace(-6.0, 6.0, 100_001)
    log_density = -(position**2) / 50
    square = (position**2 + sd**2) / HALF_RANGE**2
    for part in parts:
        noisy = noisy_moments(part, CONJUGATE, Fixed(n)).totals
        for (_, b, c), value, rate in zip(noisy.coefficients, noisy.values[0], noisy.rate, strict=True):
            log_density -= rate * np.abs(value - n * (b * position / HALF_RANGE + c * square))
    share = np.exp(log_density - np.max(log_density))
    share /= np.sum(share)
    mean = share @ position
    spread = math.sqrt(share @ (position - mean) ** 2)
    assert abs(posterior.mean("mean")[0] - mean) < 0.015 * spread
    assert posterior.sd("mean")[0] == pytest.approx(spread, rel=0.015)
