"""Fields of many variables: sums along trees of cliques against sums over all combinations."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.math.engines.field import NoisyField, features, margins
from suffice.pipeline.math.engines.field_tree import NoisyTree, tree_of

SIZES = (2, 3, 2, 4, 2, 3)
PAIRS = {
    "trees": [(0, 1), (2, 1), (1, 3), (5, 4)],
    "circle": [(0, 1), (2, 1), (3, 2), (0, 3), (5, 4)],
    "triangles": [(0, 1), (2, 1), (2, 0), (2, 3), (0, 3), (3, 4)],
}
"""Pairs in both directions, and variables that nothing connects."""
each_graph = pytest.mark.parametrize("graph", PAIRS)


def both(graph: str) -> tuple[NoisyField, NoisyTree]:
    """Return the same field twice; the tables of two variables alone were released too."""
    pairs = PAIRS[graph]
    x = features(SIZES, pairs)
    released = [*pairs, (1,), (4,)]
    m = np.concatenate([margins(SIZES, table) for table in released])
    rng = np.random.default_rng(5)
    known = {
        "counts": rng.integers(2, 90, len(m)).astype(float),
        "scales": rng.uniform(1.0, 3.0, len(m)),
        "sds": np.array([np.inf, *rng.uniform(0.5, 2.0, x.shape[1] - 1)]),
    }
    tree = tree_of(SIZES, pairs)
    assert tree.has_circle == (graph != "trees")
    assert tree.largest == {"trees": 12, "circle": 16, "triangles": 16}[graph]
    places = np.concatenate([np.arange(tree.entries[t].start, tree.entries[t].stop) for t in released])
    return NoisyField(features=x, margins=m, **known), NoisyTree(tree=tree, released=places, **known)


@each_graph
def test_density_gradients_and_tables_are_those_of_all_combinations(graph: str) -> None:
    field, tree = both(graph)
    rng = np.random.default_rng(6)
    eta = 0.4 * rng.normal(size=(field.features.shape[1], 4))
    zeta = eta + 0.2 * rng.normal(size=eta.shape)
    value, by_eta, by_zeta = field.log_density(eta, zeta)
    of_tree = tree.log_density(eta, zeta)
    # Along trees the determinant (5) is known up to a constant.
    np.testing.assert_allclose(of_tree[0] - of_tree[0][0], value - value[0], atol=1e-7)
    np.testing.assert_allclose(of_tree[1], by_eta, rtol=1e-9, atol=1e-8)
    if graph == "trees":
        np.testing.assert_allclose(of_tree[2], by_zeta, rtol=1e-7, atol=1e-7)
    else:  # a guide
        cosine = np.sum(of_tree[2] * by_zeta, axis=0) / np.linalg.norm(by_zeta, axis=0)
        assert (cosine / np.linalg.norm(of_tree[2], axis=0) > 0.99).all()
    for ours, theirs in zip(tree.tables(eta), field.tables(eta), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@each_graph
def test_curvature_and_start_are_those_of_all_combinations(graph: str) -> None:
    field, tree = both(graph)
    eta, precision = tree.centre()
    m = np.exp(field.features @ eta)
    size = len(eta)
    np.testing.assert_allclose(
        -precision[:size, size:], field.features.T @ (m[:, None] * field.features), atol=1e-6
    )
    expected, _ = field.tables(eta[:, None])
    total, _ = field.tables(field.centre()[0][:, None])
    # A start, near enough for chains to find the rest of the way.
    assert 0.5 < expected[0] / total[0] < 2.0
    assert np.linalg.eigvalsh(precision).min() > 0.0


def test_a_proposal_far_out_has_no_density() -> None:
    _, tree = both("trees")
    eta = np.zeros((tree.tree.linear.shape[1], 1))
    assert tree.log_density(eta + 99.0, eta)[0] == -np.inf
