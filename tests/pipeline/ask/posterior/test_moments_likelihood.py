"""Likelihoods of a mean and a standard deviation: against dense quadrature, and their stated error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import conjugate_default
from suffice.pipeline.ask.posterior.likelihood import likelihood_of
from suffice.pipeline.ask.posterior.moments_likelihood import MomentsLikelihood
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.record_count import Fixed
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

MEAN = np.linspace(-0.6, 0.6, 9)
SD = np.linspace(0.2, 0.9, 9)


def released(rows: list[list[float]], family: str = "normal") -> NoisyStatistic:
    bounds = {"lower": "-1", "upper": "1"} if family == "normal" else {"lower": "0.1", "upper": "10"}
    plan = statistic_plan({"family": family, **bounds}, epsilon="1", public_n=False)
    unit = 4 * 4**16
    return noisy_statistic(
        plan, np.array([[round(part * unit) for part in row] for row in rows], dtype=object)
    )


def asked(statistic: NoisyStatistic, n_prior: Any = None) -> MomentsLikelihood:
    answer = likelihood_of(statistic, n_prior, lambda posterior: posterior, uuid4().hex)
    assert isinstance(answer, MomentsLikelihood)
    return answer


def integrated(statistic: NoisyStatistic, n: int, mean: float, sd: float) -> float:
    """Over the mean and the deviations of n rows, on a dense grid of both."""
    family = FAMILIES["normal"]
    assert family.mean_and_variance is not None
    like = conjugate_default(family, statistic.plan.parameters)
    totals = family.mean_and_variance.noisy(statistic, like, Fixed(n)).totals
    of_rows = mean + sd / np.sqrt(n) * np.linspace(-9.0, 9.0, 801)
    log_ratio = np.linspace(-14.0, 5.5, 1001)
    ratio = np.exp(log_ratio)[:, None]
    log_weight = stats.norm.logpdf(of_rows, mean, sd / np.sqrt(n)) + stats.chi2.logpdf(ratio, n - 1)
    log_weight = log_weight + log_ratio[:, None] + np.log(sd)
    second = of_rows**2 + ratio * sd**2 / n
    for (a, b, c), rate, value in zip(totals.coefficients, totals.rate, totals.values[0], strict=True):
        log_weight = log_weight - rate * np.abs(value - n * (a + b * of_rows + c * second))
    return float(np.logaddexp.reduce(log_weight.ravel()))


@pytest.mark.slow
def test_it_is_the_integral_over_moments_to_its_error() -> None:
    statistic = released([[11.0, 16.0, 2.0]])
    likelihood = asked(statistic, Fixed(6))
    value, error = likelihood.log_prob_and_error(MEAN, SD)

    def apart(n: int) -> Floats:
        at_middle = integrated(statistic, n, likelihood.middle[0, 0], np.exp(likelihood.middle[0, 1] / 2.0))
        exact = [integrated(statistic, n, mean, sd) for mean, sd in zip(MEAN, SD, strict=True)]
        return np.asarray(np.abs(value[0] - (np.array(exact) - at_middle)))

    assert np.all(apart(6) <= error[0] + 1e-3)
    assert np.all(error < 0.06)
    # Another number of rows is seen.
    assert np.max(apart(9)) > 3 * np.max(error)


def test_the_highest_is_about_the_released_moments() -> None:
    likelihood = asked(released([[300.0, 450.0, 200.0], [260.0, 400.0, 240.0]]))
    mean, sd = np.meshgrid(np.linspace(-0.2, 0.1, 13), np.linspace(0.15, 0.75, 25))
    value, error = likelihood.log_prob_and_error(mean.ravel(), sd.ravel())
    # n = 950 and 900, t = -100 and -20, q = n less twice the second: 50 and 100.
    best = np.argmax(value, axis=1)
    np.testing.assert_allclose(mean.ravel()[best], [-100 / 950, -20 / 900], atol=0.03)
    np.testing.assert_allclose(sd.ravel()[best], [0.204, 0.333], atol=0.03)
    assert np.all(error[np.arange(2), best] < 0.05)
    # Far off, it says that it does not know.
    assert np.max(error) > 0.5


def test_a_lognormal_is_of_logarithms() -> None:
    likelihood = asked(released([[30.0, 45.0, 20.0]], "lognormal"))
    assert likelihood.parameters == ("log_mean", "log_sd")
    assert likelihood.log_prob(0.1, 1.2).shape == (1, 1)


def test_what_is_none_is_refused() -> None:
    likelihood = asked(released([[30.0, 45.0, 20.0], [11.0, 16.0, 2.0]]))
    assert likelihood.log_prob(np.zeros((2, 3)), 0.4).shape == (2, 3)
    assert "2 cells" in repr(likelihood)
    for mean, sd, why in (
        (np.zeros((3, 3)), 0.4, "shape"),
        (np.zeros(3), np.ones(2), "shape"),
        (np.nan, 0.4, "finite"),
        (0.0, 0.0, "above 0"),
        (0.0, -1.0, "above 0"),
    ):
        with pytest.raises(UsageError, match=why):
            likelihood.log_prob(mean, sd)
