"""Fields without a circle: sums along trees against sums over all combinations."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.math.engines.field import NoisyField, features, margins
from suffice.pipeline.math.engines.field_forest import Forest, NoisyForest, forest_of

SIZES = (2, 3, 2, 4, 2, 3)
PAIRS = [(0, 1), (2, 1), (1, 3), (5, 4)]
"""Two trees, one with a variable of three edges; pairs in both directions."""


def both() -> tuple[NoisyField, NoisyForest]:
    """Return the same field twice; the tables of two variables alone were released too."""
    x = features(SIZES, PAIRS)
    released = [*PAIRS, (1,), (4,)]
    m = np.concatenate([margins(SIZES, table) for table in released])
    rng = np.random.default_rng(5)
    known = {
        "counts": rng.integers(2, 90, len(m)).astype(float),
        "scales": rng.uniform(1.0, 3.0, len(m)),
        "sds": np.array([np.inf, *rng.uniform(0.5, 2.0, x.shape[1] - 1)]),
    }
    forest = forest_of(SIZES, PAIRS)
    assert isinstance(forest, Forest)
    places = np.concatenate([np.arange(forest.entries[t].start, forest.entries[t].stop) for t in released])
    return NoisyField(features=x, margins=m, **known), NoisyForest(forest=forest, released=places, **known)


def test_density_gradients_and_tables_are_those_of_all_combinations() -> None:
    field, forest = both()
    rng = np.random.default_rng(6)
    eta = 0.4 * rng.normal(size=(field.features.shape[1], 4))
    zeta = eta + 0.2 * rng.normal(size=eta.shape)
    value, by_eta, by_zeta = field.log_density(eta, zeta)
    of_forest = forest.log_density(eta, zeta)
    # The determinant (4) is known up to a constant.
    np.testing.assert_allclose(of_forest[0] - of_forest[0][0], value - value[0], atol=1e-8)
    np.testing.assert_allclose(of_forest[1], by_eta, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(of_forest[2], by_zeta, rtol=1e-7, atol=1e-7)
    for ours, theirs in zip(forest.tables(eta), field.tables(eta), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_curvature_and_start_are_those_of_all_combinations() -> None:
    field, forest = both()
    eta, precision = forest.centre()
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
    _, forest = both()
    eta = np.zeros((forest.forest.linear.shape[1], 1))
    assert forest.log_density(eta + 99.0, eta)[0] == -np.inf


@pytest.mark.parametrize(
    "pairs", [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 3), (3, 1)]], ids=["all", "part"]
)
def test_a_circle_is_no_forest(pairs: list[tuple[int, int]]) -> None:
    assert forest_of(SIZES, pairs) is None
