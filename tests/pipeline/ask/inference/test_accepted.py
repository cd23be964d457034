"""What errors say of the priors that a family takes, against the priors that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.chosen_priors import accepted_priors
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.mixtures import Mixture, parse_mixture
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic, statistic_plan


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_family_takes_what_its_errors_name_and_nothing_else(family: str) -> None:
    generative_model, rng = generative_model_for(family, n=20), np.random.default_rng(7)
    exact = generative_model.sums(generative_model.truth(1, rng), np.array([20]), rng).clipped
    statistic = generative_model.noisy(exact, np.zeros((1, len(generative_model.plan.components)), dtype=int))
    right: Any = generative_model.prior
    said = accepted_priors(FAMILIES[family])
    assert said.startswith(FAMILIES[family].prior.__name__)
    within = Density(np.zeros_like, 0.2, 0.4)
    offered: list[tuple[Any, str]] = [
        (Mixture(1, right, 2, right), "Mixture of such"),
        (within, "any density of one number"),
        (Independent(mean=stats.norm(), sd=stats.gamma(4)), "Independent"),
        (
            Gamma(1, 1) if isinstance(generative_model.prior, Beta | Dirichlet) else Beta(1, 1),
            "no family takes this",
        ),
    ]
    for prior, word in offered:
        if word in said:
            assert posterior_of(statistic, prior=prior, clipping="ignored").parameters
            continue
        for method in ("noise-aware", "plug-in"):
            with pytest.raises(PriorError) as refused:
                posterior_of(statistic, prior=prior, method=method)
            assert f"is {family}: its prior must be {said}; not {prior}" in str(refused.value)


def test_a_pooled_posterior_that_takes_no_mixture_says_of_what() -> None:
    plan = statistic_plan({"family": "categorical", "categories": ["a", "b"]}, epsilon="1", public_n=False)
    parts = [noisy_statistic(plan, np.array([[5, 4]])), noisy_statistic(plan, np.array([[6, 4]]))]
    mixture = Mixture(1, Dirichlet(1), 2, Dirichlet(3))
    with pytest.raises(PriorError, match="a pooled posterior of categorical statistics takes no mixture"):
        pooled(parts, prior=mixture, n_prior=None, rng=np.random.default_rng(7))
    with pytest.raises(
        PriorError,
        match=r"must be Dirichlet, a Mixture of such, or in Python a suffice.LogPrior; not Density",
    ):
        pooled(parts, prior=Density(np.zeros_like, 0, 1), n_prior=None, rng=np.random.default_rng(7))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mixture(-1, Gamma(1, 1), 2, Gamma(1, 1))", "weight must be a finite number above 0, not -1"),
        ("Mixture(1, Gamma(1, 1), -0.5, Gamma(1, 1))", r"weight .* not -0\.5"),
        ("Mixture([1], Gamma(1, 1))", "every weight must be a plain number"),
        ("Mixture(1, HalfCauchy(2), 2, Gamma(1, 1))", r"a conjugate prior, not HalfCauchy\(2\)"),
        ("Mixture(1, Mixture(1, Beta(1, 1)), 2, Beta(1, 1))", r"a conjugate prior, not Mixture\("),
        ("Mixture(1, Independent(mean=Normal(0, 1)))", r"a conjugate prior, not Independent\("),
    ],
)
def test_the_text_of_a_mixture_says_what_is_wrong_with_it(text: str, words: str) -> None:
    with pytest.raises(PriorError, match=words):
        parse_mixture(text)


def test_a_prior_that_leaves_its_domain_is_told_what_can_be_written_as_text() -> None:
    plan = statistic_plan({"family": "bernoulli"}, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.array([[5, 4]]))
    with pytest.raises(PriorError, match=r"truncate the prior, as Truncated\(Laplace\(0.3, 0.1\), 0, 1\)"):
        posterior_of(statistic, prior="Laplace(0.3, 0.1)")
    assert posterior_of(statistic, prior="Truncated(Laplace(0.3, 0.1), 0, 1)").mean("probability")[0] > 0


def fails(*_positions: Any) -> Any:
    """A density with a mistake in it."""
    nothing: dict[str, int] = {}
    return nothing["rate"]


@pytest.mark.parametrize(
    ("entry", "prior", "named"),
    [
        ({"family": "bernoulli"}, Density(fails, 0, 1, name="mine"), r"mine on 0\.\.1"),
        (
            {"family": "normal", "lower": "0", "upper": "1"},
            JointDensity(fails, mean=(0, 1), sd=(0, 1)),
            r"JointDensity on mean 0\.\.1, sd 0\.\.1",
        ),
    ],
)
def test_an_error_within_a_density_is_named_and_is_the_cause(
    entry: dict[str, Any], prior: Any, named: str
) -> None:
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.array([[5] * len(plan.components)]))
    with pytest.raises(PriorError, match=f"prior {named}: its log density raised KeyError") as refusal:
        posterior_of(statistic, prior=prior)
    assert isinstance(refusal.value.__cause__, KeyError)
