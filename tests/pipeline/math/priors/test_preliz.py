"""Distributions of PreliZ: by a stand-in with its attributes, and by PreliZ itself where it is installed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior


class StandIn:
    """What is asked of a distribution of PreliZ 0.24: kind, support, numbers, functions."""

    def __init__(self, law: Any, kind: str, support: tuple[float, float], **numbers: float) -> None:
        self.kind, self.support, self.params_dict = kind, support, numbers
        self.is_frozen = all(math.isfinite(number) for number in numbers.values())
        self.logpdf = law.logpdf if kind == "continuous" else law.logpmf
        self.pdf = law.pdf if kind == "continuous" else law.pmf
        self.cdf, self.ppf = law.cdf, law.ppf


StandIn.__module__ = "preliz.distributions.standin"


def posterior_of(prior: Any) -> Any:
    plan = statistic_plan({"family": "poisson", "column": "x", "upper": "9"}, epsilon="1", public_n=False)
    return unrestricted_posterior(noisy_statistic(plan, np.array([[120, 780]])), prior=prior)


CASES: list[tuple[str, StandIn, Any]] = [
    ("HalfNormal", StandIn(stats.halfnorm(scale=2), "continuous", (0, math.inf), sigma=2.0), "HalfNormal(2)"),
    (
        "LogNormal",
        StandIn(stats.lognorm(1), "continuous", (0, math.inf), mu=0.0, sigma=1.0),
        "LogNormal(0, 1)",
    ),
    ("Poisson", StandIn(stats.poisson(3), "discrete", (0, math.inf), mu=3.0), stats.poisson(3)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "prior", "same"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_they_are_what_they_are_called(name: str, prior: StandIn, same: Any) -> None:
    posterior, expected = posterior_of(prior), posterior_of(same)
    assert abs(posterior.mean()[0] - expected.mean()[0]) < 1e-5 * expected.sd()[0]
    assert posterior.sd() == pytest.approx(expected.sd(), rel=1e-5)
    assert str(posterior.prior).startswith("preliz.StandIn(")
    assert name != "HalfNormal" or "sigma=2" in str(posterior.prior)


def test_one_without_its_numbers_is_refused() -> None:
    unfinished = StandIn(stats.halfnorm(), "continuous", (0, math.inf), sigma=math.nan)
    with pytest.raises(PriorError, match="must have all its numbers: StandIn lacks some"):
        posterior_of(unfinished)


def test_preliz_itself() -> None:
    preliz = pytest.importorskip("preliz", exc_type=ImportError)
    posterior, expected = posterior_of(preliz.HalfNormal(2)), posterior_of("HalfNormal(2)")
    assert posterior.mean() == pytest.approx(expected.mean(), rel=1e-7)
    assert str(posterior.prior) == "preliz.HalfNormal(sigma=2) on 0..inf"
