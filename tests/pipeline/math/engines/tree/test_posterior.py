"""Joint draws, hyperparameters, intervals and refusals of the posterior of a tree."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.engines.tree.drawing import draw_tree
from suffice.pipeline.math.engines.tree.least_squares import least_squares
from suffice.pipeline.math.engines.tree.messages import Ragged
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import POPULATIONS, named_population
from suffice.pipeline.math.engines.tree.posterior import TAIL, mixed_marginals, tree_posterior
from suffice.pipeline.math.engines.tree.summaries import equal_tailed, moments, shortest
from support.small_trees import enumerated, node_counts, random_tree, released_tree

if TYPE_CHECKING:
    from suffice.typing import Floats

FALSE_ALARM = 1e-7
PARENTS = (np.array([0, 0, 0]), np.array([0, 1, 1, 2, 2, 2]))


def small_tree(scales: tuple[float | None, ...] = (2.0, 2.0, 2.0)) -> NoisyTree:
    leaves = np.array([0, 3, 1, 12, 0, 5])
    return released_tree(PARENTS, leaves, scales, np.random.default_rng(5))


def test_draws_are_whole_and_add_up_at_every_level() -> None:
    posterior = tree_posterior(small_tree((2.0, None, 3.0)), POPULATIONS["contaminated"])
    drawn = posterior.draws(500, np.random.default_rng(1))
    assert [level.shape for level in drawn] == [(500, 1), (500, 3), (500, 6)]
    assert all((level >= 0).all() and level.dtype == np.int64 for level in drawn)
    for above, expected in zip(node_counts(PARENTS, drawn[-1]), drawn, strict=True):
        np.testing.assert_array_equal(above, expected)


def p_value_of_draws(tree: NoisyTree, drawn_from: NoisyTree, n: int, rng: np.random.Generator) -> float:
    """Of draws of leaves against their enumerated joint law; rare states are one."""
    population, point = POPULATIONS["contaminated"], np.array([0.5, 0.0])
    _, _, leaves, chances = enumerated(tree, population, point)
    drawn = tuple(np.empty((n, tree.n_nodes(level)), np.int64) for level in range(tree.depth + 1))
    draw_tree(Passer.of(drawn_from, population, TAIL).up(point), drawn, np.arange(n), rng)
    shape = leaves.max(axis=0) + 1
    inside = (drawn[-1] < shape).all(axis=1)
    states = np.ravel_multi_index(tuple(drawn[-1][inside].T), tuple(shape))
    times = np.bincount(states, minlength=len(leaves)).astype(np.float64)
    often = chances * n >= 10.0
    observed = np.append(times[often], n - times[often].sum())
    expected = np.append(chances[often], 1.0 - chances[often].sum()) * n
    return float(stats.chisquare(observed, expected).pvalue)


def test_draws_have_the_enumerated_joint_law() -> None:
    """Chi-square of 36 states that expect 12 or more; the control has p-values below 1e-300."""
    # 20,000 draws tell chances of a state that differ by .015.
    rng = np.random.default_rng()
    parents = (np.array([0, 0]), np.array([1, 0, 1]))
    tree = released_tree(parents, np.array([2, 0, 1]), (0.8, None, 0.9), np.random.default_rng(2))
    assert p_value_of_draws(tree, tree, 20_000, rng) > FALSE_ALARM
    # The control: noise of the root forgotten.
    wrong = NoisyTree(parents=parents, values=tree.values, scales=(0.1, None, 0.9))
    assert p_value_of_draws(tree, wrong, 20_000, rng) < FALSE_ALARM


def integrated_means(passer: Passer) -> Floats:
    """Means of the leaves, the hyperparameters integrated over on a dense grid."""
    total, weight = np.zeros(passer.tree.n_leaves), 0.0
    for log_mean in np.arange(-9.0, 11.0, 0.5):
        for log_spread in np.arange(-7.0, 2.01, 0.5):
            point = np.array([log_mean, log_spread])
            upward = passer.up(point)
            evidence = np.exp(upward.log_evidence + passer.population.log_hyperprior(point))
            total += evidence * moments(mixed_marginals([upward], np.ones(1))[0][-1])[0]
            weight += evidence
    return total / weight


@pytest.mark.slow
def test_hyperparameters_are_integrated_over_and_not_plugged_in() -> None:
    tree = NoisyTree(
        parents=(np.array([0, 0, 0]),),
        values=(np.array([6]), np.array([0, 1, 5])),
        scales=(0.6, 1.0),
    )
    population = POPULATIONS["contaminated"]
    posterior = tree_posterior(tree, population)
    exact = integrated_means(Passer.of(tree, population, TAIL))
    difference = np.abs(posterior.means(1) - exact).max()
    assert difference < 0.01
    # The mutant: at the heaviest point alone.
    plugged_in, _, _ = mixed_marginals(posterior.hyperparameters.upwards[:1], np.ones(1))
    assert np.abs(moments(plugged_in[1])[0] - exact).max() > 3.0 * difference


@pytest.mark.parametrize("scales", [(3.0, 3.0, 3.0), (None, 3.0, 3.0), (2.0, 3.0, None), (None, None, 4.0)])
def test_any_levels_may_be_released(scales: tuple[float | None, ...]) -> None:
    posterior = tree_posterior(small_tree(scales), POPULATIONS["contaminated"])
    for level in range(3):
        chances = [posterior.marginals[level].row(node).sum() for node in range(len(posterior.means(level)))]
        np.testing.assert_allclose(chances, 1.0, atol=1e-9)
    # Means add up exactly, as counts do.
    for level in (0, 1):
        sums = np.bincount(PARENTS[level], posterior.means(level + 1))
        np.testing.assert_allclose(sums, posterior.means(level), atol=1e-6)
    assert posterior.rounding < 1e-9
    assert posterior.cut < 1e-8


def test_large_trees_take_four_points_and_agree_with_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    parents = (np.repeat(np.arange(1), 20), np.repeat(np.arange(20), 15))
    leaves = rng.poisson(rng.gamma(1.0, 20.0, 300))
    tree = released_tree(parents, leaves, (5.0, 5.0, 5.0), rng)
    lattice = tree_posterior(tree, POPULATIONS["contaminated"])
    monkeypatch.setattr("suffice.pipeline.math.engines.tree.hyperparameters.MANY_LEAVES", 100)
    four = tree_posterior(tree, POPULATIONS["contaminated"])
    assert len(four.hyperparameters.weights) == 4
    assert len(lattice.hyperparameters.weights) > 4
    assert four.log_evidence == pytest.approx(lattice.log_evidence, abs=0.5)
    for level in range(3):
        assert (np.abs(four.means(level) - lattice.means(level)) < 0.05 * lattice.sds(level)).all()


def test_summaries_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(4)
    rows = [rng.dirichlet(np.full(width, 0.3)) for width in (1, 3, 8, 20, 21)]
    width = np.array([len(row) for row in rows])
    low = np.array([0, 4, 1, 7, 2])
    laws = Ragged(low, width, np.cumsum(width) - width, np.concatenate(rows))
    means, sds = moments(laws)
    lower, upper = equal_tailed(laws, 0.8)
    begin, end = shortest(laws, 0.8)
    for node, row in enumerate(rows):
        counts = low[node] + np.arange(len(row))
        assert means[node] == pytest.approx(row @ counts)
        assert sds[node] == pytest.approx(np.sqrt(row @ (counts - row @ counts) ** 2), abs=1e-9)
        assert row[counts < lower[node]].sum() <= 0.1 < row[counts <= lower[node]].sum()
        assert row[counts > upper[node]].sum() <= 0.1 < row[counts >= upper[node]].sum()
        assert row[(counts >= begin[node]) & (counts <= end[node])].sum() >= 0.8
        shorter = int(end[node] - begin[node])
        assert all(row[start : start + shorter].sum() < 0.8 for start in range(len(row) - shorter + 1))


def test_least_squares_is_that_of_the_normal_equations() -> None:
    tree = small_tree((2.0, None, 3.0))
    rows, values, precisions = [], [], []
    below = [node_counts(PARENTS, np.eye(6, dtype=np.int64))[level].T for level in range(3)]
    for design, released, scale in zip(below, tree.values, tree.scales, strict=True):
        if released is not None and scale is not None:
            rows.append(design)
            values.append(released)
            precisions.append(np.full(len(released), (2.0 * np.sinh(0.5 / scale)) ** 2))
    design, precision = np.concatenate(rows), np.concatenate(precisions)
    covariance = np.linalg.inv(design.T * precision @ design)
    leaves = covariance @ (design.T @ (precision * np.concatenate(values)))
    points, sds = least_squares(tree)
    # The standard deviation of discrete Laplace noise is 1 / (sqrt(2) sinh(1 / 2b)).
    for level, weights in enumerate(below):
        np.testing.assert_allclose(points[level], weights @ leaves, atol=1e-9)
        variance = np.einsum("ij,jk,ik->i", weights, covariance, weights)
        np.testing.assert_allclose(sds[level], np.sqrt(2.0 * variance), atol=1e-9)
    with pytest.raises(UsageError, match="all leaves"):
        least_squares(small_tree((2.0, 2.0, None)))


@pytest.mark.parametrize("name", ["contaminated", "negative-binomial", "zero-inflated"])
def test_populations_are_probabilities(name: str) -> None:
    counts = np.arange(200_000.0)
    for point in ([0.0, -8.0, 1.0], [2.0, 0.0, -3.0], [4.0, 0.5, 0.0]):
        log_weight = POPULATIONS[name].log_weight(counts, np.array(point))
        # Of the outliers' law m / (n + m) is beyond n.
        mean = np.exp(point[0])
        beyond = 0.0 if name == "negative-binomial" else 0.05 * mean / (len(counts) + mean)
        if name == "zero-inflated":
            beyond /= 1.0 + np.exp(point[2])
        assert np.exp(log_weight).sum() + beyond == pytest.approx(1.0, abs=1e-7)
    poisson = POPULATIONS["negative-binomial"].log_weight(counts[:30], np.array([1.0, -9.0]))
    assert poisson == pytest.approx(stats.poisson.logpmf(counts[:30], np.exp(1.0)), abs=1e-3)


def test_hyperpriors_are_probabilities() -> None:
    grid = np.arange(-60.0, 60.0, 0.05)
    spreads = np.arange(-30.0, 4.0, 0.05)
    population = POPULATIONS["contaminated"]
    of_means = [np.exp(population.log_hyperprior(np.array([mean, 0.0]))) for mean in grid]
    of_spreads = [np.exp(population.log_hyperprior(np.array([0.0, spread]))) for spread in spreads]
    at = np.exp(population.log_hyperprior(np.zeros(2)))
    assert np.sum(of_means) * np.sum(of_spreads) * 0.05**2 / at == pytest.approx(1.0, abs=1e-4)
    empty = [POPULATIONS["zero-inflated"].log_hyperprior(np.array([0.0, 0.0, logit])) for logit in grid]
    assert np.sum(np.exp(empty)) * 0.05 / at == pytest.approx(1.0, abs=1e-4)


@pytest.mark.slow
def test_empty_leaves_among_large_ones_are_told_by_their_share() -> None:
    """40 of 160 leaves are empty, the others have some 200 records: noise of 6 is next to nothing beside.

    Of one data set: five standard deviations of the share's logit are allowed for.
    """
    rng = np.random.default_rng(7)
    parents = (np.zeros(8, np.int64), np.repeat(np.arange(8), 20))
    leaves = np.where(np.arange(160) % 4 == 0, 0, rng.poisson(rng.gamma(4.0, 50.0, 160)))
    tree = released_tree(parents, leaves, (6.0, 6.0, 6.0), rng)
    with_share = tree_posterior(tree, POPULATIONS["zero-inflated"])
    logit = with_share.hyperparameters.weights @ with_share.hyperparameters.points[:, 2]
    # Binomial: a standard deviation of .18.
    assert abs(logit - np.log(1.0 / 3.0)) < 0.9
    without = tree_posterior(tree, POPULATIONS["contaminated"])
    assert with_share.log_evidence > without.log_evidence + 5.0
    widths = []
    for posterior in (with_share, without):
        lower, upper = posterior.interval(2, 0.95)
        widths.append(float(np.mean((upper - lower)[leaves == 0])))
    assert widths[0] < 0.5 * widths[1]


def test_refusals_say_the_rule() -> None:
    values = (np.array([3]), np.array([1, 2]))
    parents = (np.array([0, 0]),)
    with pytest.raises(UsageError, match="nothing to learn"):
        NoisyTree(parents=parents, values=(None, None), scales=(None, None))
    with pytest.raises(UsageError, match="scale above 0"):
        NoisyTree(parents=parents, values=values, scales=(1.0, 0.0))
    with pytest.raises(UsageError, match="both or neither"):
        NoisyTree(parents=parents, values=values, scales=(1.0, None))
    with pytest.raises(UsageError, match="a value of each"):
        NoisyTree(parents=parents, values=(values[0], values[0]), scales=(1.0, 1.0))
    with pytest.raises(UsageError, match="sizes are of all 2 leaves"):
        NoisyTree(parents=parents, values=values, scales=(1.0, 1.0), sizes=np.array([1.0, 0.0]))
    with pytest.raises(UsageError, match=r"2\^52"):
        NoisyTree(parents=parents, values=(np.array([2**53]), values[1]), scales=(1.0, 1.0))
    with pytest.raises(PriorError, match="flat prior"):
        named_population("flat")
    with pytest.raises(PriorError, match="contaminated"):
        named_population("normal")


def test_random_trees_have_several_levels() -> None:
    rng = np.random.default_rng(8)
    tree = random_tree(rng)
    assert tree.depth >= 3
    assert all(len(below) >= len(above) for above, below in pairwise(tree.parents))
