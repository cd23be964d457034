"""Planning in rho: the smallest one for a width, shares by need, and prices of counts beside sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.pipeline.ask.planning.divided_plan import divided_plan
from suffice.pipeline.ask.planning.division import Criterion, Need, criterion_of, divided
from suffice.pipeline.ask.planning.smallest_loss import Trials, parse_target, smallest_loss
from suffice.pipeline.ask.planning.width_search import counts_beside
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

DELAY = {"family": "normal", "column": "delay", "lower": -60, "upper": 180}


def spec_of(privacy: dict[str, str], statistics: dict[str, Any] | None = None, **more: Any) -> Spec:
    flag = {"flag": {"family": "bernoulli", "column": "flag"}}
    return load_spec(
        {
            "name": "flights",
            "dataset": "flights",
            "privacy": {"neighboring": "add_or_remove_one", **privacy},
            "statistics": flag if statistics is None else statistics,
            **more,
        }
    )


def test_a_target_takes_the_rho_that_costs_as_much_as_its_epsilon() -> None:
    """One Bernoulli statistic has D_2 = D_1: noise by rho is that by epsilon, where rho = epsilon^2 / 2."""
    asked: dict[str, Any] = {"n": 500, "simulations": 20, "rng": 7}
    in_epsilon = smallest_loss(spec_of({"epsilon": "1"}), "flag probability width 0.15", **asked)
    in_rho = smallest_loss(spec_of({"rho": "1"}), "flag probability width 0.15", **asked)
    assert in_epsilon.loss.epsilon is not None
    assert in_rho.loss == PrivacyLoss.of_rho(in_epsilon.loss.epsilon**2 / 2).rounded_up
    assert in_rho.width == pytest.approx(in_epsilon.width, rel=1e-6)
    assert in_rho.standard_error == pytest.approx(in_epsilon.standard_error * float(in_epsilon.loss.epsilon))
    printed = document(in_rho)
    assert printed["rho"] == in_rho.loss.text
    assert {"epsilon", "epsilon_standard_error", "statistic_epsilon"}.isdisjoint(printed)
    assert "\n(epsilon, delta) at most (" in str(in_rho)
    assert str(in_rho).startswith(f"target flag probability width 0.15: rho {in_rho.loss.text} (")


def test_a_part_of_rho_is_that_of_the_share() -> None:
    two = {"flag": {"family": "bernoulli", "column": "flag"}, "delay": {**DELAY, "share": 3}}
    trials = Trials.of(
        spec_of({"rho": "1"}, two), parse_target("flag probability width 0.1"), n=100, simulations=2, rng=1
    )
    assert trials.share == Fraction(1, 4)
    assert np.all(trials.widths(Fraction(1, 10)) > trials.widths(Fraction(10)))


@pytest.mark.parametrize("criterion", Criterion)
def test_divisions_of_rho_are_no_worse_than_any_other(criterion: Criterion) -> None:
    needs = [Need(cost=cost, power=power) for cost, power in ((9.0, 1.0), (1.0, 1.0), (4.0, 0.5))]
    best = criterion_of(needs, divided(needs, 2.0, criterion), criterion)
    rng = np.random.default_rng(3)
    for parts in rng.dirichlet(np.ones(3), size=500):
        assert criterion_of(needs, 2.0 * np.maximum(parts, 1e-6), criterion) >= best - 1e-9
    alone = divided(needs[:2], 1.0, criterion)
    ratio = {Criterion.SUM: 3.0, Criterion.MAXIMUM: 9.0}[criterion]
    assert alone[0] / alone[1] == pytest.approx(ratio), "rho_j goes as c^(1/2), or as c"


def test_a_spec_in_rho_is_divided_by_need() -> None:
    statistics = {"flag": {"family": "bernoulli", "column": "flag"}, "delay": DELAY}
    assume = {
        "rows": 500,
        "statistics": {
            "flag": {"typical": {"probability": "0.3"}},
            "delay": {"typical": {"mean": "20", "variance": "900"}},
        },
    }
    plans = {
        measure: divided_plan(spec_of({measure: "0.05"}, statistics, assume=assume))
        for measure in ("epsilon", "rho")
    }
    assert str(plans["rho"]).startswith("rho 0.05, divided so that the")
    printed = document(plans["rho"])
    assert printed["rho"] == "0.05"
    assert "epsilon" not in printed
    assert "epsilon_divided" not in printed["statistics"][0]
    assert plans["rho"].total_divided <= plans["rho"].total_now
    shares = {of: [float(each.share_divided) for each in plan.statistics] for of, plan in plans.items()}
    # The same needs: exponents are 1/3 and 1/2 of c_j; both blocks have D_2 = D_1, so the ratio of c is one.
    logs = {of: np.log(parts[0] / parts[1]) for of, parts in shares.items()}
    assert logs["rho"] == pytest.approx(1.5 * logs["epsilon"], rel=0.02)


def test_counts_beside_sums_cost_the_ratio_of_the_squares() -> None:
    spec = spec_of({"rho": "1"}, {"delay": {**DELAY, "count_clipped": {"weight": "1"}}})
    loss = PrivacyLoss.of_rho(Fraction(1, 10))
    prices = counts_beside(spec, "delay", loss)
    assert prices is not None
    assert prices.prices[-1].loss == loss, "with a weight of 1 it is the spec's own"
    assert float(prices.without.amount) == pytest.approx(0.1 / 2, rel=1e-6), "t^2 beside t^2 + t^2"
    assert "rho" in str(prices)
