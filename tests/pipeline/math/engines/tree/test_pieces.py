"""A tree in pieces says what it says as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.math.engines.tree import pieces
from suffice.pipeline.math.engines.tree.division import PIECE_WEIGHTS, leaves_of_a_piece
from suffice.pipeline.math.engines.tree.messages import Ragged
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.passes import LeafKeys
from suffice.pipeline.math.engines.tree.piece_tasks import in_turn
from suffice.pipeline.math.engines.tree.pieces import PiecewisePosterior, piecewise_posterior
from suffice.pipeline.math.engines.tree.populations import POPULATIONS
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from support.small_trees import node_counts, released_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from suffice.pipeline.math.engines.tree.division import Division
    from suffice.pipeline.math.engines.tree.posterior import TreePosterior

POPULATION = POPULATIONS["contaminated"]
ROUNDED = 1e-8
"""What rounding and cut tails move, and no more."""


def a_tree(seed: int = 3, scales: tuple[float | None, ...] = (3.0, 3.0, None, 2.0)) -> NoisyTree:
    rng = np.random.default_rng(seed)
    # Parents in no order, and families of one child.
    leaf_parents = rng.permutation(np.append(np.arange(39) % 4, 4))
    parents = (np.array([0, 0, 0]), np.array([2, 0, 1, 1, 0]), leaf_parents)
    leaves = rng.poisson(rng.gamma(0.7, 10.0, 40))
    return released_tree(parents, leaves, scales, rng)


def test_a_piece_is_as_large_as_its_widest_leaf_allows() -> None:
    """No leaf was released, so that each may hold all of its state, and one state is far larger."""
    leaves, tail = np.repeat([50_000, 50], [2, 60]), 1e-12
    parents = (np.zeros(31, np.int64), np.repeat(np.arange(31), 2))
    keys = LeafKeys.of(released_tree(parents, leaves, (2.0, 2.0, None), np.random.default_rng(7)), tail)
    windows = keys.bounds - keys.low(None, tail) + 1
    assert np.average(windows, weights=keys.number) < windows.max() / 10.0
    assert leaves_of_a_piece(keys, None, tail) * windows.max() <= PIECE_WEIGHTS


def backwards(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """A cluster gives results in any order."""
    yield from reversed(list(in_turn(task, arguments)))


@pytest.fixture(autouse=True)
def as_large_trees_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weigh four points, as for trees of many leaves."""
    monkeypatch.setattr("suffice.pipeline.math.engines.tree.hyperparameters.MANY_LEAVES", 30)


def in_pieces(tree: NoisyTree, most: int, monkeypatch: pytest.MonkeyPatch) -> PiecewisePosterior:
    monkeypatch.setattr("suffice.pipeline.math.engines.tree.division.PIECE_LEAVES", most)
    return piecewise_posterior(tree, POPULATION, backwards)


def difference(whole: TreePosterior, posterior: PiecewisePosterior) -> float:
    """The largest of evidence, moments and chances."""
    largest = abs(whole.log_evidence - posterior.log_evidence)
    for level in range(whole.tree.depth + 1):
        for of_whole, in_pieces in ((whole.means, posterior.means), (whole.sds, posterior.sds)):
            largest = max(largest, float(np.abs(of_whole(level) - in_pieces(level)).max()))
        laws = whole.laws(level), posterior.laws(level)
        for node in range(whole.tree.n_nodes(level)):
            rows = [dense(law, node) for law in laws]
            width = min(map(len, rows))
            largest = max(largest, float(np.abs(rows[0][:width] - rows[1][:width]).max()))
    return largest


def dense(law: Ragged, node: int) -> np.ndarray:
    return np.concatenate([np.zeros(law.low[node]), law.row(node)])


@pytest.mark.parametrize(
    ("most", "scales"),
    [
        (7, (3.0, 3.0, None, 2.0)),
        (15, (None, None, None, 2.0)),
        (1000, (None, 3.0, 3.0, 2.0)),
        (2, (3.0, 3.0, 2.0, 2.0)),
    ],
)
def test_marginals_are_those_of_the_whole(
    most: int, scales: tuple[float | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = a_tree(scales=scales)
    whole, posterior = tree_posterior(tree, POPULATION), in_pieces(tree, most, monkeypatch)
    assert (posterior.passer.division.n_pieces > 1) == (most < 1000)
    assert difference(whole, posterior) < ROUNDED
    for level in range(tree.depth + 1):
        for mass in (0.95, 0.8):
            for ends in ("interval", "highest_density"):
                expected = getattr(whole, ends)(level, mass)
                np.testing.assert_array_equal(getattr(posterior, ends)(level, mass), expected)


@pytest.mark.slow
def test_leaves_may_lack_values(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    parents = (np.array([0, 0]), np.array([0, 0, 0, 1, 1]))
    tree = released_tree(parents, np.array([3, 0, 5, 2, 1]), (1.0, 2.0, None), rng)
    assert difference(tree_posterior(tree, POPULATION), in_pieces(tree, 3, monkeypatch)) < ROUNDED


def test_leaves_that_differ_are_weighed_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    passer = in_pieces(a_tree(), 7, monkeypatch).passer
    point = np.array([2.0, 0.0])
    tasks: list[tuple[Any, ...]] = []

    def counted(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        tasks.extend(arguments)
        return backwards(task, tasks)

    expected = passer.log_evidence_of_leaves(point)
    monkeypatch.setattr(pieces, "_KEY_WEIGHTS", 300)
    object.__setattr__(passer, "run", counted)
    assert passer.log_evidence_of_leaves(point) == pytest.approx(expected, abs=1e-10)
    assert len(tasks) > 3


def test_what_the_top_says_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    # The mutant: pieces hear nothing of the rest.
    tree = a_tree()
    single = pieces._single

    def nothing(messages: Ragged, row: int) -> Ragged:
        message = single(messages, row)
        return Ragged(message.low, message.width, message.offset, np.ones_like(message.weights))

    monkeypatch.setattr(pieces, "_single", nothing)
    assert difference(tree_posterior(tree, POPULATION), in_pieces(tree, 7, monkeypatch)) > 1e-3


def test_draws_add_up_and_have_the_marginals_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, n = a_tree(), 3000
    posterior = in_pieces(tree, 7, monkeypatch)
    drawn = posterior.draws(n, np.random.default_rng(1))
    assert all((level >= 0).all() and level.dtype == np.int64 for level in drawn)
    for expected, of_level in zip(node_counts(tree.parents, drawn[-1]), drawn, strict=True):
        np.testing.assert_array_equal(of_level, expected)
    # 49 means within 6 standard errors: a false alarm once in 10^7, of a fixed seed never.
    for level, of_level in enumerate(drawn):
        error = posterior.sds(level) / np.sqrt(n)
        assert (np.abs(of_level.mean(axis=0) - posterior.means(level)) < 6.0 * error + 1e-9).all()
    weights = (np.arange(40) < 20).astype(np.int64)
    sums = posterior.weighted_draws(n, weights, np.random.default_rng(2))
    others = drawn[-1] @ weights
    assert abs(sums.mean() - others.mean()) < 6.0 * others.std() * np.sqrt(2.0 / n)
    assert 0.9 < sums.std() / others.std() < 1.1


def test_pieces_are_drawn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two states that are alike, and known: their counties are independent of each other.
    tree = NoisyTree(
        parents=(np.array([0, 0]), np.array([0, 0, 1, 1])),
        values=(np.array([40]), np.array([20, 20]), np.array([9, 11, 9, 11])),
        scales=(0.05, 0.05, 3.0),
    )
    monkeypatch.setattr("suffice.pipeline.math.engines.tree.division.PIECE_LEAVES", 2)
    posterior = piecewise_posterior(tree, POPULATIONS["reciprocal"])
    assert len(posterior.passer.batches) == 2
    counties = posterior.draws(1000, np.random.default_rng(1))[-1]
    correlation = np.atleast_2d(np.corrcoef(counties.T))
    # 6 standard errors: a false alarm once in 5e8, of a fixed seed never.
    assert abs(correlation[0, 2]) < 6.0 / np.sqrt(1000)
    assert correlation[0, 1] < -0.9, "the control: counties of one state"


def test_draws_are_a_function_of_the_generator_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = a_tree()
    posterior = in_pieces(tree, 7, monkeypatch)
    in_order = piecewise_posterior(tree, POPULATION)
    for ours, theirs in zip(
        posterior.draws(20, np.random.default_rng(1)),
        in_order.draws(20, np.random.default_rng(1)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_levels_above_the_pieces_are_drawn_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = in_pieces(a_tree(), 7, monkeypatch)

    def refuse(*_: Any) -> Iterator[Any]:
        raise AssertionError

    object.__setattr__(posterior.passer, "run", refuse)
    drawn = posterior.draws(10, np.random.default_rng(1), [1])
    assert drawn[1].shape == (10, 3)
    with pytest.raises(AssertionError):
        posterior.draws(10, np.random.default_rng(1), [posterior.tree.depth])


def test_pieces_have_all_nodes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    division: Division = in_pieces(a_tree(), 7, monkeypatch).passer.division
    for place, nodes in enumerate(division.nodes):
        np.testing.assert_array_equal(
            np.sort(nodes), np.arange(division.tree.n_nodes(division.level + place))
        )
    assert np.diff(division.bounds[-1]).max() < 14
    batches = division.batches(14)
    assert [start for start, _ in batches[1:]] == [stop for _, stop in batches[:-1]]
    assert (batches[0][0], batches[-1][1]) == (0, division.n_pieces)
