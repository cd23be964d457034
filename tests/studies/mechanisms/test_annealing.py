"""Annealed importance sampling: the prices of paths, weights and indices, held against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from studies.mechanisms.annealing import anneal, annealing_cost, log_weights
from suffice.errors import UsageError


def test_no_loss_exceeds_its_price_and_weights_reach_theirs() -> None:
    for epsilons in ((0.0, 0.5, 1.0), (0.2, 0.6, 2.0)):
        cost = annealing_cost(epsilons)
        assert cost.path == pytest.approx(epsilons[0] + epsilons[1])
        assert cost.weight_change == pytest.approx((epsilons[2] - epsilons[0]) / 2)
        assert cost.index == pytest.approx(epsilons[2] - epsilons[0])
        assert 0.5 * cost.path < cost.path_loss <= cost.path
        assert cost.weight_change_found == pytest.approx(cost.weight_change, rel=1e-9)
        assert 0.99 * cost.index < cost.index_loss <= cost.index


def test_a_path_of_many_records_comes_near_its_price() -> None:
    cost = annealing_cost((0.0, 2.0, 3.0), n_points=3, most_records=60)
    assert 0.95 * cost.path < cost.path_loss <= cost.path


def test_costs_are_those_of_plain_loops() -> None:
    """Three records, three points, three levels: every path, every pair of paths and every neighbour."""
    epsilons, grid, delta = (0.1, 0.4, 1.0), (0.2, 0.5, 0.8), math.log(4)
    powers = [each / (2 * delta) for each in epsilons]

    def likelihood(ones: int, zeros: int, place: int) -> float:
        return ones * math.log(grid[place]) + zeros * math.log(1 - grid[place])

    def chance(ones: int, zeros: int, path: tuple[int, ...]) -> float:
        product = 1.0
        for power, state in zip(powers[:-1], path, strict=True):
            weights = [math.exp(power * likelihood(ones, zeros, place)) for place in range(3)]
            product *= weights[state] / sum(weights)
        return product

    def weight(ones: int, zeros: int, path: tuple[int, ...]) -> float:
        rises = [after - before for before, after in itertools.pairwise(powers)]
        return math.exp(
            sum(rise * likelihood(ones, zeros, state) for rise, state in zip(rises, path, strict=True))
        )

    paths = list(itertools.product(range(3), repeat=2))
    costs = {"path": 0.0, "weight": 0.0, "index": 0.0}
    for size in (1, 2, 3):
        for ones in range(size):
            here, there = (ones, size - ones), (ones + 1, size - ones - 1)
            for path in paths:
                ratio = math.log(chance(*here, path) / chance(*there, path))
                costs["path"] = max(costs["path"], abs(ratio))
                ratio = math.log(weight(*here, path) / weight(*there, path))
                costs["weight"] = max(costs["weight"], abs(ratio))
            for left, right in itertools.product(paths, repeat=2):
                first, second = (
                    weight(*each, left) / (weight(*each, left) + weight(*each, right))
                    for each in (here, there)
                )
                costs["index"] = max(costs["index"], abs(math.log(first / second)))
    cost = annealing_cost(epsilons, least=0.2, n_points=3, most_records=3)
    assert cost.path_loss == pytest.approx(costs["path"], rel=1e-9)
    assert cost.weight_change_found == pytest.approx(costs["weight"], rel=1e-9)
    assert cost.index_loss == pytest.approx(costs["index"], rel=1e-9)


def test_weights_are_those_of_importance_sampling() -> None:
    """The mean weight of 20,000 chains is the ratio of normalisers; weighted states have the last law."""
    epsilons, grid = (0.0, 1.0, 2.0, 4.0), np.linspace(0.1, 0.9, 81)
    chains = anneal(6, 14, epsilons, n_chains=20_000, weights_epsilon=1e12, rng=np.random.default_rng(1))
    likelihood = 6 * np.log(grid) + 14 * np.log1p(-grid)
    last = np.exp(likelihood * 4.0 / (2 * math.log(9)))
    weights = np.exp(chains.noisy_log_weights)
    error = weights.std() / math.sqrt(weights.size)
    assert error < 0.02 * last.mean()
    assert weights.mean() == pytest.approx(last.mean(), abs=6 * error)
    mean = last @ grid / last.sum()
    share = weights / weights.sum()
    spread = math.sqrt(share**2 @ (chains.states[:, -1] - mean) ** 2)
    assert share @ chains.states[:, -1] == pytest.approx(mean, abs=6 * spread)
    assert chains.states[:, 0].mean() == pytest.approx(0.5, abs=6 * grid.std() / math.sqrt(20_000))
    assert log_weights(np.array([1.0, 2.0]), np.array([0.0, 0.5, 2.0])) == 0.5 + 3.0


def test_the_drawn_index_follows_the_weights() -> None:
    """200 draws of one of 300 chains: their states have the last law's mean, and not the one before's."""
    rng = np.random.default_rng(2)
    grid = np.linspace(0.1, 0.9, 81)
    likelihood = 1 * np.log(grid) + 40 * np.log1p(-grid)
    last = np.exp(likelihood * 4.0 / (2 * math.log(9)))
    frequencies = []
    for _ in range(200):
        chains = anneal(1, 40, (0.0, 4.0), n_chains=300, weights_epsilon=1.0, rng=rng)
        frequencies.append(chains.states[chains.index, -1])
    error = 6 * float(np.std(frequencies)) / math.sqrt(200)
    assert np.mean(frequencies) == pytest.approx(last @ grid / last.sum(), abs=error + 0.005)
    assert error + 0.005 < abs(0.5 - last @ grid / last.sum())


def test_noise_and_prices_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(3)
    chains = anneal(6, 14, (0.5, 1.0, 2.0), n_chains=3000, weights_epsilon=0.5, rng=rng)
    assert chains.paths_epsilon == pytest.approx(3000 * 1.5)
    assert chains.weights_epsilon == 0.5
    assert chains.index_epsilon == pytest.approx(1.5)
    # 3,000 chains share the noise: its scale is 4,500, beside which weights do not show.
    assert np.abs(chains.noisy_log_weights).mean() == pytest.approx(4500, rel=6 / math.sqrt(3000))


def test_outputs_say_that_they_are_no_releases_and_nonsense_is_refused() -> None:
    rng = np.random.default_rng(4)
    for output in (
        annealing_cost((0.0, 1.0), n_points=3, most_records=2),
        anneal(1, 2, (0.0, 1.0), n_chains=2, weights_epsilon=1.0, rng=rng),
    ):
        assert output.label == "not a release"
        assert str(output).startswith("not a release\n")
        assert output.csv().startswith("# not a release\n")
    for epsilons in ((1.0,), (1.0, 0.5), (-0.1, 1.0), (0.0, math.inf)):
        with pytest.raises(UsageError, match="epsilons"):
            annealing_cost(epsilons)
    with pytest.raises(UsageError, match="n_chains"):
        anneal(1, 2, (0.0, 1.0), n_chains=0, weights_epsilon=1.0, rng=rng)
