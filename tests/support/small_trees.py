"""Small random trees of noisy counts, and their posterior by enumeration of all counts of leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from support.noisy import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Floats


def random_parents(
    rng: np.random.Generator, n_levels: int, most_leaves: int
) -> tuple[NDArray[np.int64], ...]:
    """Unequal fan-outs, one and more, parents in any order."""
    while True:
        parents, nodes = [], 1
        for _ in range(n_levels):
            fan_out = rng.integers(1, 4, nodes)
            parents.append(rng.permutation(np.repeat(np.arange(nodes), fan_out)))
            nodes = int(fan_out.sum())
        if nodes <= most_leaves:
            return tuple(parents)


def node_counts(parents: Sequence[NDArray[np.int64]], leaves: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The counts of every level, (..., n_nodes), of those of leaves, (..., n_leaves)."""
    levels = [leaves]
    for above in reversed(parents):
        sums = np.zeros((*leaves.shape[:-1], int(above.max()) + 1), np.int64)
        for child, parent in enumerate(above.tolist()):
            sums[..., parent] += levels[0][..., child]
        levels.insert(0, sums)
    return levels


def released_tree(
    parents: tuple[NDArray[np.int64], ...],
    leaves: NDArray[np.int64],
    scales: Sequence[float | None],
    rng: np.random.Generator,
    sizes: Floats | None = None,
) -> NoisyTree:
    """A tree of counts with discrete Laplace noise on the levels that have a scale."""
    values = [
        None if scale is None else counts + discrete_laplace(scale, counts.shape, rng)
        for counts, scale in zip(node_counts(parents, leaves), scales, strict=True)
    ]
    return NoisyTree(parents=parents, values=tuple(values), scales=tuple(scales), sizes=sizes)


REACH = 34.0
"""Nats of noise beyond which counts are left out: e^-34 is 2e-15."""
MOST_STATES = 2e5


def most_counts(tree: NoisyTree) -> NDArray[np.int64]:
    """For each leaf a count that it exceeds with a chance near e^-REACH."""
    return tree.bounds(REACH).astype(np.int64)


def random_tree(rng: np.random.Generator) -> NoisyTree:
    """Three or four levels below the root, unequal fan-outs, levels without values, and little noise."""
    while True:
        parents = random_parents(rng, int(rng.integers(3, 5)), 6)
        n_leaves = len(parents[-1])
        leaves = np.minimum(rng.poisson(rng.gamma(1.0, 1.0, n_leaves)), 4)
        scales = [
            float(rng.uniform(0.1, 0.22)) if rng.random() < 0.65 else None for _ in range(len(parents) + 1)
        ]
        if all(scale is None for scale in scales):
            continue
        sizes = rng.uniform(0.5, 2.0, n_leaves) if rng.random() < 0.3 else None
        tree = released_tree(parents, leaves, scales, rng, sizes)
        if np.prod(most_counts(tree) + 1.0) < MOST_STATES:
            return tree


def enumerated(
    tree: NoisyTree, population: Population, point: Floats
) -> tuple[float, list[Floats], NDArray[np.int64], Floats]:
    """The log evidence, each level's marginals (n_nodes, n_counts), counts of leaves and their chances."""
    most = most_counts(tree)
    leaves = np.stack(np.meshgrid(*(np.arange(each + 1) for each in most), indexing="ij"), axis=-1)
    leaves = leaves.reshape(-1, tree.n_leaves)
    sizes = np.ones(tree.n_leaves) if tree.sizes is None else tree.sizes
    log_weight = population.log_weight(leaves.astype(np.float64), point, sizes).sum(axis=1)
    levels = node_counts(tree.parents, leaves)
    for counts, values, scale in zip(levels, tree.values, tree.scales, strict=True):
        if values is not None and scale is not None:
            log_weight = log_weight + (np.log(np.tanh(0.5 / scale)) - np.abs(counts - values) / scale).sum(
                axis=1
            )
    highest = log_weight.max()
    weight = np.exp(log_weight - highest)
    log_evidence = float(highest + np.log(weight.sum()))
    weight /= weight.sum()
    marginals = [
        np.stack(
            [
                np.bincount(counts[:, node], weight, minlength=int(most.sum()) + 1).astype(np.float64)
                for node in range(counts.shape[1])
            ]
        )
        for counts in levels
    ]
    return log_evidence, marginals, leaves, weight
