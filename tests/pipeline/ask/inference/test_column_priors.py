"""Priors of named parameters of several columns: against conjugate answers, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import suffice
from suffice import LogPrior
from suffice.errors import PriorError
from suffice.pipeline.ask.inference import any_column_prior
from suffice.pipeline.ask.inference.any_joint_prior import draw
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.coefficients import parse_stated
from suffice.pipeline.math.priors.record_count import Fixed
from support.joint import plan_of
from support.noisy import noisy_statistic
from support.regression_by_simulation import PREDICTORS, ROWS, released
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

NOISE = (0.5, -0.3, 0.8, 0.2, -0.6, 0.1)
COLUMNS = {"family": "multivariate_normal", "columns": {name: {"lower": "-1", "upper": "1"} for name in "xy"}}


def of_regression() -> NoisyStatistic:
    return released("2", 0.5, NOISE)


def of_columns() -> NoisyStatistic:
    return noisy_statistic(plan_of(COLUMNS, epsilon="2", public_n=False), of_regression().values)


def inverse_gamma(v: Floats, concentration: float, scale: float) -> Floats:
    return np.asarray(-(concentration + 1) * np.log(v) - scale / v)


def conjugate_density(x: Floats, intercept: Floats, v: Floats) -> Floats:
    """NormalInverseGammaRegression([0.2, 0], [2, 8], 4, 0.1), in its own units."""
    squared = 2.0 * (x - 0.2) ** 2 + 8.0 * intercept**2
    return inverse_gamma(v, 4.0, 0.1) - np.log(v) - squared / 2.0 / v


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plug-in", pytest.param("noise-aware", marks=pytest.mark.slow)])
def test_a_conjugate_prior_by_its_density_has_the_conjugate_answer(method: str) -> None:
    """Both rest on chains: their errors add up, 6 of them. Control: the default prior's answer."""
    statistic = of_regression()
    terms: dict[str, Any] = {"method": method}
    if method == "noise-aware":
        terms |= {"n_prior": Fixed(ROWS), "predictor_prior": PREDICTORS}
    prior = LogPrior(conjugate_density, parameters=("x", "intercept", "variance"))
    posterior = unrestricted_posterior(statistic, prior=prior, **terms)
    conjugate = "NormalInverseGammaRegression([0.2, 0], [2, 8], 4, 0.1)"
    expected = unrestricted_posterior(statistic, prior=conjugate, **terms)
    default = unrestricted_posterior(statistic, **terms)
    rate = 1.0 / posterior.diagnostics["fewest_effective_draws"]
    rate += 1.0 / expected.diagnostics.get("fewest_effective_draws", np.inf)
    moved = []
    for name in ("coefficient", "intercept", "variance"):
        sd = np.ravel(expected.sd(name))[0]
        apart, control = (
            np.ravel(posterior.mean(name) - other.mean(name))[0] / sd / np.sqrt(rate)
            for other in (expected, default)
        )
        assert abs(apart) < 6.0
        moved.append(abs(control))
        assert np.ravel(posterior.sd(name))[0] == pytest.approx(sd, rel=0.15)
    assert max(moved) > 6.0
    assert "approximate" in " ".join(posterior.notes)


@pytest.mark.audit
def test_particles_have_the_answer_of_weights_where_both_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are refused by hand, so that particles answer; which of both it was is said."""
    statistic = of_regression()
    terms: dict[str, Any] = {"n_prior": Fixed(ROWS), "predictor_prior": PREDICTORS}
    prior = "Coefficients(SpikeAndSlab(0.5, Normal(0, 0.5)), intercept=Normal(0, 0.5), sd=HalfNormal(0.3))"
    weighed = unrestricted_posterior(statistic, prior=prior, **terms)
    monkeypatch.setattr(any_column_prior, "LARGEST_SHAPE", -np.inf)
    tempered = unrestricted_posterior(statistic, prior=prior, **terms)
    assert "largest_pareto_k" in weighed.diagnostics
    assert tempered.diagnostics["largest_r_hat"] <= 1.05
    assert "tempered" in tempered.diagnostics["sampler"]
    rate = sum(1.0 / each.diagnostics["fewest_effective_draws"] for each in (weighed, tempered))
    # 11 errors: those of islands are of Student's t with 15 degrees of freedom.
    for name in ("coefficient", "intercept", "variance"):
        apart = np.ravel(tempered.mean(name) - weighed.mean(name)) / np.ravel(weighed.sd(name))
        assert np.max(np.abs(apart)) < 11.0 * np.sqrt(rate)
    zeros = [each.probability("coefficient", at=0.0, draws=20_000)[0, 0] for each in (weighed, tempered)]
    assert 0.05 < zeros[0] < 0.95
    assert abs(zeros[0] - zeros[1]) < 11.0 * 0.5 * np.sqrt(rate)


@pytest.mark.slow
def test_correlations_and_means_may_be_stated() -> None:
    """Under a plug-in posterior; a narrow prior of a mean or a correlation moves it there."""
    statistic = of_columns()
    default = unrestricted_posterior(statistic, method="plug-in")
    of_mean = LogPrior(lambda m: -((m - 0.2) ** 2) / 2 / 0.05**2, parameters=("mean[x]",))
    posterior = unrestricted_posterior(statistic, prior=of_mean, method="plug-in")
    low, high = sorted((default.mean("mean")[0, 0], 0.2))
    assert low < posterior.mean("mean")[0, 0] < high
    of_both = LogPrior(
        lambda a, b, r: -10 * np.log(a / b) ** 2 - (np.log(a * b) + 3) ** 2 - 50 * (r - 0.8) ** 2,
        parameters=("sd[x]", "sd[y]", "correlation[y,x]"),
    )
    drawn = unrestricted_posterior(statistic, prior=of_both, method="plug-in").sample(
        2000, np.random.default_rng(0)
    )
    correlation = drawn["covariance"][:, 0, 0] / np.sqrt(np.prod(drawn["variance"][:, 0], axis=1))
    assert 0.5 < correlation.mean() < 0.9


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (LogPrior(lambda x: 0 * x, parameters=("x",)), "improper"),
        (LogPrior(lambda sd: -np.log(sd), parameters=("sd",)), "improper"),
        (LogPrior(lambda w: -(w**2), parameters=("w",)), "there is no 'w': name x"),
        (LogPrior(lambda a, b: -a - b, parameters=("sd", "variance")), "not both"),
        ("Coefficients(q=Normal(0, 1))", "there is no 'q'"),
        ("Coefficients(sd=0.5*Point(1) + 0.5*HalfNormal(1))", "takes no point masses"),
        ("Horseshoe(0.1)", "must be NormalInverseGammaRegression, Coefficients"),
    ],
    ids=[
        "flat",
        "flat in log sd",
        "no column",
        "two spreads",
        "no coefficient",
        "points of sd",
        "one number",
    ],
)
def test_what_is_no_prior_of_a_regression_is_refused(prior: Any, words: str) -> None:
    with pytest.raises(PriorError, match=words):
        posterior_of(of_regression(), prior=prior, method="plug-in")


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("Coefficients(Normal(0, 1))", "must be NormalInverseWishart"),
        (LogPrior(lambda m: -m, parameters=("mean[q]",)), "there is no 'mean\\[q\\]'"),
        (LogPrior(lambda a, b: -a - b, parameters=("sd[x]", "sd[y]")), "must name all correlations"),
        (LogPrior(lambda m: 0 * m, parameters=("mean[x]",)), "improper"),
    ],
    ids=["coefficients", "no column", "no correlations", "flat"],
)
def test_what_is_no_prior_of_columns_is_refused(prior: Any, words: str) -> None:
    with pytest.raises(PriorError, match=words):
        posterior_of(of_columns(), prior=prior, method="plug-in")


def test_more_points_than_can_be_looked_at_are_refused() -> None:
    prior = suffice.Coefficients(suffice.Points(dict.fromkeys(range(300), 1.0)))
    with pytest.raises(PriorError, match="300 sub-models"):
        posterior_of(of_regression(), prior=prior, method="plug-in")


@pytest.mark.slow
def test_draws_of_a_prior_are_of_it() -> None:
    """What calibration draws: named parameters from what is stated, by Kolmogorov and Smirnov (2e-7)."""
    constants, family = of_regression().plan.parameters, FAMILIES["linear_regression"]
    size = 20_000
    stated = parse_stated("Coefficients(SpikeAndSlab(0.5, Normal(0, 1)), sd=HalfNormal(0.5))")
    slope, _, variance = draw(stated, family, constants, size, np.random.default_rng()).T
    assert abs(np.mean(slope == 0.0) - 0.5) < 6 * 0.5 / np.sqrt(size)
    most = 2.95 / np.sqrt(size / 2)
    assert stats.kstest(slope[slope != 0.0], "norm").statistic < most
    assert stats.kstest(np.sqrt(variance), stats.halfnorm(scale=0.5).cdf).statistic < most
    by_density = LogPrior(lambda x, sd: -(x**2) / 2 - sd, parameters=("x", "sd"))
    slope, _, variance = draw(by_density, family, constants, size, np.random.default_rng()).T
    # Weighed draws, 100,000: were 2,000 of them to count, a false alarm below 1e-10.
    assert stats.kstest(slope, "norm").statistic < 3 * most
    assert stats.kstest(np.sqrt(variance), "expon").statistic < 3 * most
