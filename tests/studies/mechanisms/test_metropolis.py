"""Steps of Metropolis and of Barker: what they cost, enumerated, and what they leave as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from studies.mechanisms.metropolis import Rule, acceptance, draw_chain, kernel, step_cost
from suffice.errors import UsageError

RULES: tuple[Rule, ...] = ("metropolis", "barker")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.150), (1.0, 0.238)])
def test_a_step_of_metropolis_needs_a_large_delta(epsilon: float, delta: float) -> None:
    cost = step_cost(epsilon, rule="metropolis")
    assert cost.temperature == pytest.approx(2 * math.log(9) / epsilon)
    assert cost.delta == pytest.approx(delta, abs=5e-4)
    assert cost.largest_log_ratio > 2 * epsilon
    # Theorem C.1 takes the chance of a rejection, which is safe and larger still.
    assert cost.delta < cost.delta_of_decision < cost.largest_rejection


@pytest.mark.parametrize(("epsilon", "loss"), [(0.5, 0.4966), (1.0, 1.0000)])
def test_a_step_of_barker_is_purely_private(epsilon: float, loss: float) -> None:
    """The worst of an 81-point grid is .4957 with the new state alone and .9999; the bound is attained."""
    cost = step_cost(epsilon, rule="barker")
    assert cost.delta == 0.0
    assert cost.delta_of_decision == 0.0
    assert cost.largest_log_ratio == pytest.approx(loss, abs=1e-3)
    assert cost.largest_log_ratio <= epsilon


def test_costs_are_those_of_plain_loops() -> None:
    """Four records on five points: every data set, neighbour and state in plain loops."""
    epsilon, least, n_points, n_records = 0.7, 0.2, 5, 4
    grid = [least + (1 - 2 * least) * place / (n_points - 1) for place in range(n_points)]
    tempered = 2 * math.log((1 - least) / least) / epsilon

    def chances(ones: int, zeros: int, state: int, rule: Rule) -> list[float]:
        def likelihood(place: int) -> float:
            return ones * math.log(grid[place]) + zeros * math.log(1 - grid[place])

        ratios = []
        for place in range(n_points):
            ratio = math.exp((likelihood(place) - likelihood(state)) / tempered)
            ratios.append((min(1.0, ratio) if rule == "metropolis" else ratio / (1 + ratio)) / n_points)
        ratios[state] += 1 - sum(ratios)
        return ratios

    for rule in RULES:
        delta = largest = 0.0
        for size in range(1, n_records + 1):
            for ones in range(size):
                for state in range(n_points):
                    pair = (
                        chances(ones, size - ones, state, rule),
                        chances(ones + 1, size - ones - 1, state, rule),
                    )
                    for here, there in (pair, pair[::-1]):
                        both = list(zip(here, there, strict=True))
                        delta = max(delta, sum(max(0.0, a - math.exp(epsilon) * b) for a, b in both))
                        largest = max(largest, *(math.log(a / b) for a, b in both))
        cost = step_cost(epsilon, rule=rule, least=least, n_points=n_points, most_records=n_records)
        assert cost.delta == pytest.approx(delta, abs=1e-9)
        assert cost.largest_log_ratio == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_the_tempered_posterior_is_invariant(rule: Rule) -> None:
    grid = np.linspace(0.1, 0.9, 41)
    likelihood = 6 * np.log(grid) + 14 * np.log1p(-grid)
    posterior = np.exp(likelihood / 3.0)
    posterior /= posterior.sum()
    moves = kernel(likelihood, 3.0, rule)
    assert moves.min() > 0
    np.testing.assert_allclose(moves.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(posterior @ moves, posterior, rtol=1e-10)
    balance = posterior[:, None] * moves
    np.testing.assert_allclose(balance, balance.T, rtol=1e-9, atol=1e-18)
    assert acceptance(likelihood, 3.0, rule).max() <= 1.0


def test_a_chain_adds_up_what_its_steps_cost_and_goes_where_they_lead() -> None:
    """The states of 40,000 steps, each 40th of them: chi-square below its 1e-7 quantile."""
    rng = np.random.default_rng(1)
    cost = step_cost(2.0, rule="barker", n_points=9)
    chain = draw_chain(6, 14, n_steps=40_000, cost=cost, rng=rng)
    assert chain.epsilon == 80_000.0
    assert chain.delta == 0.0
    grid = np.linspace(0.1, 0.9, 9)
    log_posterior = (6 * np.log(grid) + 14 * np.log1p(-grid)) / cost.temperature
    expected = np.exp(log_posterior) / np.exp(log_posterior).sum() * 1000
    states = chain.states[40::40]
    seen = np.array([np.isclose(states, point).sum() for point in grid])
    assert seen.sum() == 1000
    assert ((seen - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-7, 8)
    untempered = np.exp(log_posterior * cost.temperature)
    wrong = untempered / untempered.sum() * 1000
    assert ((seen - wrong) ** 2 / wrong).sum() > stats.chi2.isf(1e-7, 8)


def test_outputs_say_that_they_are_no_releases() -> None:
    cost = step_cost(0.5, rule="metropolis", n_points=5, most_records=3)
    chain = draw_chain(1, 2, n_steps=100, cost=cost, rng=np.random.default_rng(2))
    assert chain.delta == 1.0
    for output in (cost, chain):
        assert output.label == "not a release"
        assert str(output).startswith("not a release\n")
        assert output.csv().startswith("# not a release\n")
    assert chain.csv().splitlines()[2:4] == ["step,state", "0,0.5"]
    with pytest.raises(UsageError, match="epsilon"):
        step_cost(-1.0, rule="barker")
    with pytest.raises(UsageError, match="grid"):
        step_cost(1.0, rule="barker", n_points=1)
    with pytest.raises(UsageError, match="least"):
        step_cost(1.0, rule="barker", least=0.5)


def test_a_chain_states_no_cost_that_was_not_enumerated() -> None:
    cost = step_cost(0.5, rule="metropolis", n_points=5, most_records=3)
    with pytest.raises(UsageError, match="at most 3 records"):
        draw_chain(2, 2, n_steps=1, cost=cost, rng=np.random.default_rng(3))
