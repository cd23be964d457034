"""How a column's mean follows from parameters, as an error says it to who asks for a mean that is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from support.noisy import noisy_statistic, statistic_plan

LAWS: dict[str, tuple[dict[str, float], Any]] = {
    "bernoulli": ({"probability": 0.3}, stats.bernoulli(0.3)),
    "binomial": ({"trials": 7, "probability": 0.3}, stats.binom(7, 0.3)),
    "poisson": ({"rate": 2.5}, stats.poisson(2.5)),
    "geometric": ({"probability": 0.3}, stats.geom(0.3, loc=-1)),
    "negative_binomial": ({"successes": 2.5, "probability": 0.3}, stats.nbinom(2.5, 0.3)),
    "exponential": ({"rate": 0.4}, stats.expon(scale=1 / 0.4)),
    "gamma": ({"shape": 2.0, "rate": 0.4}, stats.gamma(2.0, scale=1 / 0.4)),
    "weibull": ({"shape": 1.7, "rate": 0.4}, stats.weibull_min(1.7, scale=0.4 ** (-1 / 1.7))),
    "pareto": ({"minimum": 2.0, "shape": 3.0}, stats.pareto(3.0, scale=2.0)),
    "lognormal": ({"log_mean": 0.5, "log_variance": 0.49}, stats.lognorm(0.7, scale=np.exp(0.5))),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_mean_in_words_is_that_of_the_law(name: str) -> None:
    symbols, law = LAWS[name]
    formula = FAMILIES[name].mean.removesuffix(" of a shape above 1").replace("^", "**")
    known = {**symbols, "exp": np.exp, "gamma_function": special.gamma}
    assert eval(formula, {}, known) == pytest.approx(law.mean())  # noqa: S307 - texts of our families


def test_every_mean_in_words_is_checked() -> None:
    assert {name for name, family in FAMILIES.items() if family.mean} == set(LAWS)


def test_who_asks_for_a_mean_that_is_no_parameter_is_told_how_it_follows() -> None:
    plan = statistic_plan({"family": "gamma", "shape": 2, "upper": 100}, epsilon="1", public_n=False)
    posterior = posterior_of(noisy_statistic(plan, np.array([[200, 900]])))
    with pytest.raises(UsageError, match=r"'mean': it has rate; the column's mean is shape / rate$"):
        posterior.probability("mean", below=4)
    with pytest.raises(UsageError, match=r"it has rate$"):
        posterior.probability("median", below=4)
