"""Several releases of the same exact statistics: in every family each adds its own noise's distribution."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.ask.pooling.pool import observed_again
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.sensitivity import Constants
from support.generative_models import generative_model_for
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


EXACT = [name for name, family in FAMILIES.items() if not family.by_mcmc(Constants())]
"""All that are worked out without chains."""
MCMC = [name for name, family in FAMILIES.items() if family.by_mcmc(Constants())]


@cache
def generative_model_of(family: str) -> GenerativeModel:
    return generative_model_for(family, n=40)


def totals(generative_model: GenerativeModel, rng: np.random.Generator) -> NDArray[np.object_]:
    """Exact sums of three data sets that the model draws."""
    return generative_model.sums(generative_model.truth(3, rng), np.array([50, 40, 20]), rng).clipped


def typical_totals(generative_model: GenerativeModel, rng: np.random.Generator) -> NDArray[np.object_]:
    """Sums of one data set that hardly vary: averages of 400 that the model draws."""
    sums = generative_model.sums(generative_model.truth(400, rng), np.full(400, 40), rng).clipped
    averages: NDArray[np.object_] = np.sum(sums, axis=0, keepdims=True) // 400
    return averages


def observation(
    generative_model: GenerativeModel, exact: NDArray[np.object_], noise: float, moved: int = 0
) -> NoisyStatistic:
    """Exact sums moved by some lattice steps, as seen through that many times the model's noise."""
    plan = dataclasses.replace(generative_model.plan, scale=generative_model.plan.scale * noise)
    steps = np.full((len(exact), len(plan.components)), moved)
    return dataclasses.replace(generative_model, plan=plan).noisy(exact, steps)


def posterior(generative_model: GenerativeModel, *observations: NoisyStatistic) -> Posterior:
    return unrestricted_posterior(
        observed_again(observations), prior=generative_model.prior, n_prior=generative_model.believed_n_prior
    )


def assert_equal(left: Posterior, right: Posterior) -> None:
    """Equal moments: but for quadrature, or within six standard errors of two runs of MCMC."""
    by_mcmc = [each.diagnostics.get("fewest_effective_draws") for each in (left, right)]
    reach = 1e-2 if left.family in {"normal", "lognormal"} else 1e-4
    if any(by_mcmc):
        reach = 6 * np.sqrt(sum(1 / count for count in by_mcmc if count))
    for parameter in left.parameters:
        sd = left.sd(parameter)
        assert np.all(np.abs(left.mean(parameter) - right.mean(parameter)) <= reach * sd + 1e-12)
        # Squares of a skew distribution scatter more than the distribution itself.
        assert right.sd(parameter) == pytest.approx(sd, rel=(3 if any(by_mcmc) else 1) * reach)


# Chains of a regression take minutes here; those of a multivariate normal are the same code.
@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        *EXACT,
        *(
            pytest.param(family, marks=pytest.mark.audit if family == "linear_regression" else ())
            for family in MCMC
        ),
    ],
)
def test_two_equal_observations_through_twice_the_noise_are_one_observation(family: str) -> None:
    """As |y - s| / 2b + |y - s| / 2b is |y - s| / b."""
    generative_model = generative_model_of(family)
    exact = totals(generative_model, np.random.default_rng(7))
    twice = [
        observation(generative_model, exact, 2.0, moved=1),
        observation(generative_model, exact, 2.0, moved=1),
    ]
    assert_equal(
        posterior(generative_model, observation(generative_model, exact, 1.0, moved=1)),
        posterior(generative_model, *twice),
    )


@pytest.mark.parametrize("family", EXACT)
def test_a_observation_through_overwhelming_noise_says_nothing(family: str) -> None:
    generative_model = generative_model_of(family)
    exact = totals(generative_model, np.random.default_rng(7))
    alone = observation(generative_model, exact, 1.0)
    assert_equal(
        posterior(generative_model, alone),
        posterior(generative_model, alone, observation(generative_model, exact, 1e7, moved=1000)),
    )


@pytest.mark.parametrize("family", EXACT)
def test_another_observation_narrows_and_their_order_does_not_matter(family: str) -> None:
    """At one typical value: narrower than the best of them, wider than with far less noise.

    Of all parameters together, and not at any value: a variance need not be, whose released value is low.
    Over twelve typical values of each family both differences were more than 30 of their standard deviations.
    """
    generative_model = generative_model_of(family)
    exact = typical_totals(generative_model, np.random.default_rng(7))
    observations = [observation(generative_model, exact, times) for times in (30.0, 10.0, 20.0)]
    together = posterior(generative_model, *observations)
    swapped = posterior(generative_model, *observations[::-1])
    single, clear = (
        posterior(generative_model, observations[1]),
        posterior(generative_model, observation(generative_model, exact, 0.5)),
    )
    for parameter in together.parameters:
        assert np.array_equal(together.mean(parameter), swapped.mean(parameter))
    spread, narrower, wider = (
        np.mean([np.log(each.sd(parameter)) for parameter in each.parameters])
        for each in (together, clear, single)
    )
    assert narrower < spread < wider


def test_several_observations_take_any_prior_as_one_does() -> None:
    generative_model = generative_model_of("poisson")
    exact = totals(generative_model, np.random.default_rng(7))
    observations = observed_again(
        [observation(generative_model, exact, 1.0), observation(generative_model, exact, 2.0, moved=2)]
    )
    conjugate = unrestricted_posterior(
        observations, prior="Gamma(4, 1)", n_prior=generative_model.believed_n_prior
    )
    density = unrestricted_posterior(
        observations, prior=stats.gamma(4), n_prior=generative_model.believed_n_prior
    )
    mixture = "Mixture(0.2, Gamma(4, 1), 0.8, Gamma(4, 1))"
    mixed = unrestricted_posterior(observations, prior=mixture, n_prior=generative_model.believed_n_prior)
    assert_equal(conjugate, density)
    assert_equal(conjugate, mixed)


@pytest.mark.parametrize("family", EXACT)
def test_draws_have_the_moments_of_the_pooled_posterior(family: str) -> None:
    """Within six errors of 4,000 draws."""
    generative_model, draws = generative_model_of(family), 4000
    rng = np.random.default_rng(7)
    exact = totals(generative_model, rng)
    together = posterior(
        generative_model,
        observation(generative_model, exact, 1.0),
        observation(generative_model, exact, 2.0, moved=2),
    )
    for parameter, drawn in together.sample(draws, rng).items():
        error = np.abs(np.mean(drawn, axis=0) - together.mean(parameter))
        assert np.all(error < 6 * together.sd(parameter) / np.sqrt(draws))
