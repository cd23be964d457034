"""Data sets of several columns that share parameters: the density of all latent moments, and its chains."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.multivariate.evidence import NormalEvidence, RegressionEvidence
from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, LatentTarget
from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.sensitivity import Design
from support.joint import STEPS, plan_of, spec_of
from support.noisy import noisy_statistic
from support.slopes import assert_gradient
from support.unrestricted import pooled, unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

UNIT = {"lower": -1, "upper": 1}
NORMAL: dict[str, Any] = {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}}
REGRESSION: dict[str, Any] = {
    "family": "linear_regression",
    "predictors": {"x": UNIT},
    "outcome": {"y": UNIT},
}
PRIORS: dict[str, Any] = {
    "multivariate_normal": suffice.NormalInverseWishart([0.1, -0.1], 4, 9, [[0.5, 0.2], [0.2, 0.7]]),
    "linear_regression": suffice.NormalInverseGammaRegression([0.3, 0.1], [4, 4], 5, 0.5),
}


def target_of(*, linear: bool, rng: np.random.Generator) -> LatentTarget:
    """Two columns, the first with a normal distribution of its own, far from the kinks."""
    evidence = NormalEvidence(
        loc=rng.normal(size=1) / 5, precision=1.3, df=6.0, scale=np.array([[0.8]]), linear=linear
    )
    return LatentTarget(
        size=2,
        linear=linear,
        evidence=(evidence,),
        latent_n=LatentN(lowest=3.5, highest=1e6, reciprocal=True, fixed=False),
        scaled=NoisyTotals(
            coefficients=rng.normal(size=(6, 6)) / 10,
            values=1e4 * rng.choice([-1.0, 1.0], size=(2, 6)),
            scale=np.ones(6),
        ),
    )


def regression(*, linear: bool, rng: np.random.Generator) -> RegressionEvidence:
    size = 1 + linear
    return RegressionEvidence(
        loc=rng.normal(size=size), precision=np.eye(size), concentration=3.0, scale=0.5, linear=linear
    )


@pytest.mark.parametrize("linear", [True, False])
def test_the_gradient_over_all_data_sets_is_that_of_the_density(linear: bool) -> None:
    rng = np.random.default_rng(7)
    targets = (target_of(linear=linear, rng=rng), target_of(linear=linear, rng=rng))
    target = SharedTarget(targets=targets, shared=(regression(linear=linear, rng=rng),))
    size = targets[0].n_coordinates
    x = rng.normal(size=(2 * size, 4)) * 0.3
    x[[0, size]] -= 9
    _, gradient = target(x)
    assert_gradient(lambda x: target(x)[0], x, gradient)
    first, second = (
        part.state(x[position : position + size]) for position, part in ((0, targets[0]), (size, targets[1]))
    )
    total = target.total(x)
    assert total.n == pytest.approx(first.n + second.n)
    assert total.n * total.second == pytest.approx(first.n * first.second + second.n * second.second)
    if linear:
        outer = total.mean[:, None] * total.mean[None, :]
        assert total.spread == pytest.approx(total.second - outer, abs=1e-9)


def test_one_data_set_has_the_density_of_its_own_target() -> None:
    rng = np.random.default_rng(7)
    alone, evidence = target_of(linear=True, rng=rng), regression(linear=True, rng=rng)
    x = rng.normal(size=(alone.n_coordinates, 4)) * 0.3
    whole = dataclasses.replace(alone, evidence=(*alone.evidence, evidence))
    density = SharedTarget(targets=(alone,), shared=(evidence,))(x)
    for expected, computed in zip(whole(x), density, strict=True):
        assert expected == pytest.approx(computed)


def released(entry: dict[str, Any], totals: Any, epsilon: str, rng: np.random.Generator) -> NoisyStatistic:
    plan = plan_of(entry, epsilon=epsilon, public_n=False)
    noise = np.rint(rng.laplace(0, plan.scale, totals.shape)).astype(np.int64)
    return noisy_statistic(plan, totals + noise.astype(object))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("entry", [NORMAL, REGRESSION], ids=lambda entry: str(entry["family"]))
def test_without_noise_to_speak_of_the_data_sets_are_one(entry: dict[str, Any]) -> None:
    """The conjugate update with the sums of both: 1,000 rows, and 3,000 with the same moments."""
    rng, prior = np.random.default_rng(7), PRIORS[entry["family"]]
    # Rows, sums of x and y, of x^2, x y and y^2: standard deviations of 0.3, a correlation of 0.6.
    moments = np.array([1000, 100, -50, 100, 49, 92.5]) * STEPS ** np.array([0, 1, 1, 2, 2, 2])
    sums = np.array([[int(number) for number in moments]], dtype=object)
    spec = spec_of(entry, epsilon="20", public_n=False)
    totals = FAMILIES[entry["family"]].totals(spec.statistics["s"], Design.PARTITION_OF_UNITY, sums)
    parts = [released(entry, totals * times, "20", rng) for times in (1, 3)]
    posterior = pooled(parts, prior=prior, n_prior=None, rng=rng)
    plain = posterior_of(
        dataclasses.replace(parts[0], values=parts[0].values + parts[1].values), prior=prior, method="plug-in"
    )
    single = unrestricted_posterior(parts[0], prior=prior)
    assert posterior.diagnostics["largest_r_hat"] < 1.1
    assert posterior.diagnostics["sampler"].startswith("MCMC")
    for parameter in posterior.parameters:
        sd = plain.sd(parameter)
        # Means of conditional distributions that hardly differ: six standard errors, and a little noise.
        reach = 6 / np.sqrt(posterior.diagnostics["fewest_effective_draws"]) + 0.1
        assert np.all(np.abs(posterior.mean(parameter) - plain.mean(parameter)) < reach * sd)
        assert posterior.sd(parameter) == pytest.approx(sd, rel=0.1)
        assert np.all(posterior.sd(parameter) < 0.7 * single.sd(parameter))
