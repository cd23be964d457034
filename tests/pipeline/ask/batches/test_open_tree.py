"""A tree whose pieces are worked out by workers answers as it does in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import distributed
import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.batches.open_tree import open_tree
from suffice.pipeline.ask.trees.count_tree import CountTree
from suffice.pipeline.terms.declaration.key_tree import KeyTree
from support.dask_clusters import NO_SPILLING, by_address
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.small_trees import node_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.table import Table

N_LEAVES = 240


class OneTree:
    """What a release answers of its only tree."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        below = np.repeat(np.arange(12), N_LEAVES // 12)
        self.keys = KeyTree(
            levels=("nation", "state", "county"),
            keys=(("all",), tuple("abcdefghijkl"), tuple(map(str, range(N_LEAVES)))),
            parents=((0,) * 12, tuple(below.tolist())),
        )
        leaves = rng.poisson(rng.gamma(0.7, 20.0, N_LEAVES))
        self.levels = []
        plan = statistic_plan({"family": "bernoulli", "column": "ill"}, epsilon="2", public_n=False)
        for keys, counts in zip(
            self.keys.keys, node_counts((np.zeros(12, np.int64), below), leaves), strict=True
        ):
            values = np.stack([counts, 3 * counts], axis=1)
            values = values + discrete_laplace(plan.scale, values.shape, rng)
            self.levels.append(noisy_statistic(plan, values, groups={"place": list(keys)}))

    def tree(self, name: str, where: object = None, **terms: Any) -> CountTree:
        assert (name, where) == ("ill", None)
        return CountTree.of(self.keys, self.levels, **terms)


@pytest.fixture(scope="module")
def release() -> Any:
    return OneTree()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = "suffice.pipeline.math.engines.tree"
    monkeypatch.setattr(f"{engine}.division.PIECE_LEAVES", 60)
    monkeypatch.setattr(f"{engine}.hyperparameters.MANY_LEAVES", 100)


@pytest.fixture(params=["threads", pytest.param("workers", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "threads":
        yield "threads"
        return
    import dask.config

    with (
        dask.config.set(NO_SPILLING),
        by_address(2) as processes,
        distributed.Client(processes) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


def as_arrays(table: Table) -> dict[str, Any]:
    return {column: np.array([row[column] for row in table]) for column in ("mean", "sd", "lower", "upper")}


def test_answers_are_those_of_one_process(release: Release, cluster: Any) -> None:
    whole = release.tree("ill", population="negative-binomial")
    with open_tree(release, "ill", cluster=cluster, population="negative-binomial") as tree:
        for mass in (0.95, 0.5):
            for ours, theirs in (
                (tree.table(mass), whole.table(mass)),
                (tree.highest_density(mass, level="state"), whole.highest_density(mass, level="state")),
            ):
                expected = as_arrays(theirs)
                for column, values in as_arrays(ours).items():
                    np.testing.assert_allclose(values, expected[column], rtol=0.0, atol=1e-7)
        assert tree.log_evidence == pytest.approx(whole.log_evidence, abs=1e-6)
        assert tree.error == pytest.approx(whole.error, rel=1e-3)
        assert tree.notes == whole.notes
        drawn = tree.draws(20, 1, component="true")
        assert {level.dtype for level in drawn.values()} == {np.dtype(np.int64)}
        np.testing.assert_array_equal(drawn["county"].reshape(20, 12, -1).sum(axis=2), drawn["state"])
        np.testing.assert_array_equal(drawn["state"].sum(axis=1, keepdims=True), drawn["nation"])
        (false, true) = tree.roll_up({"state": ["a", "b"]}, draws=300, rng=1)
        means = {row["key"]: row for row in whole.table(level="state") if row["component"] == "true"}
        # The mean of 300 draws: within 6 standard errors, of a fixed seed.
        expected_mean = means["a"]["mean"] + means["b"]["mean"]
        error = (means["a"]["sd"] + means["b"]["sd"]) / np.sqrt(300)
        assert abs(true["mean"] - expected_mean) < 6.0 * error
        assert false["component"] == "false"
    with pytest.raises(UsageError, match="the tree is closed"):
        tree.draws(2, 1, component="true")
    assert len(tree.table()) == len(whole.table()), "what was asked before stays"


def test_a_tree_that_is_not_open_says_so(release: Release) -> None:
    tree = open_tree(release, "ill")
    for name in ("table", "draws", "tree", "notes"):
        with pytest.raises(UsageError, match=f"not open, and has no {name} yet: ask inside of with"):
            getattr(tree, name)
    assert not hasattr(tree, "tables")


def test_a_tree_is_opened_as_often_as_it_is_asked(release: Release) -> None:
    tree = open_tree(release, "ill", population="reciprocal")
    tables = []
    for _ in range(2):
        with tree as counted:
            tables.append(list(counted.table(level="nation")))
    assert tables[0] == tables[1]
