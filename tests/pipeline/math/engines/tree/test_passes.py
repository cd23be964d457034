"""Messages against enumeration of all counts of leaves."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import POPULATIONS
from suffice.pipeline.math.engines.tree.posterior import mixed_marginals
from support.small_trees import enumerated, random_tree

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Floats

TREES = 200
TAIL = 1e-18
"""Cut tails are then below rounding."""


def worst_difference(tree: NoisyTree, passed: NoisyTree, population: Population, point: Floats) -> float:
    """The largest difference of a chance, or of the evidence, between messages and enumeration."""
    log_evidence, expected, _, _ = enumerated(tree, population, point)
    passer = Passer.of(passed, population, TAIL)
    upward = passer.up(point)
    worst = float(abs(np.expm1(upward.log_evidence - log_evidence)))
    mixed, _, _ = mixed_marginals([upward], np.ones(1))
    for laws, chances in zip(mixed, expected, strict=True):
        for node, row in enumerate(chances):
            low, weights = int(laws.low[node]), laws.row(node)
            dense = np.zeros(max(len(row), low + len(weights)))
            dense[low : low + len(weights)] = weights
            dense[: len(row)] -= row
            worst = max(worst, float(np.abs(dense).max()))
    return worst


def cases(n: int) -> list[tuple[NoisyTree, Population, Floats]]:
    rng = np.random.default_rng(35)
    populations = list(POPULATIONS.values())
    return [
        (
            random_tree(rng),
            populations[int(rng.integers(len(populations)))],
            np.array([rng.uniform(-1.0, 1.5), rng.uniform(-1.5, 0.5), rng.uniform(-2.0, 1.0)]),
        )
        for _ in range(n)
    ]


@pytest.mark.slow
def test_messages_equal_enumeration() -> None:
    trees = cases(TREES)
    assert len({(tree.depth, tree.n_leaves) for tree, _, _ in trees}) > 5
    for tree, population, point in trees:
        assert worst_difference(tree, tree, population, point) < 1e-12


@pytest.mark.slow
def test_mutants_differ_from_enumeration() -> None:
    for tree, population, point in cases(20):
        released = [level for level, scale in enumerate(tree.scales) if scale is not None]
        scales = list(tree.scales)
        # Noise of a level forgotten: its values are taken for exact.
        scales[released[-1]] = 1e-2
        assert (
            worst_difference(tree, dataclasses.replace(tree, scales=tuple(scales)), population, point) > 1e-6
        )
        # Scales of two levels swapped, of which one has more nodes.
        if tree.n_nodes(released[0]) < tree.n_nodes(released[-1]):
            scales = list(tree.scales)
            scales[released[0]], scales[released[-1]] = scales[released[-1]], scales[released[0]]
            swapped = dataclasses.replace(tree, scales=tuple(scales))
            assert worst_difference(tree, swapped, population, point) > 1e-9
