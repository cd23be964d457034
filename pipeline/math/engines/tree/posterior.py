r"""The joint posterior of all counts of a tree, mixed over the hyperparameters of its leaves.

Marginals are mixtures of those of every point (``passes``), with the weights of ``hyperparameters``. A draw
has a point of its own, by these weights, and goes down the tree from the root's total.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.engines.tree.drawing import draw_tree
from suffice.pipeline.math.engines.tree.hyperparameters import weighed_points
from suffice.pipeline.math.engines.tree.messages import Ragged
from suffice.pipeline.math.engines.tree.passes import Downward, Passer
from suffice.pipeline.math.engines.tree.summaries import equal_tailed, moments, shortest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.tree.hyperparameters import WeighedPoints
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.passes import Upward
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Counts, Floats

TAIL = 1e-12
"""The share of a message that is cut at most, on either side."""
MOST_DRAWN = 1 << 22
"""Counts that draws hold at a time, where they are not asked for themselves."""


@dataclass(frozen=True, kw_only=True)
class MixedTree:
    """What posteriors of a tree have in common, be it whole or in pieces.

    Attributes
    ----------
    tree : NoisyTree
        The tree and what was released of it.
    hyperparameters : WeighedPoints
    marginals : tuple of Ragged
        Of every level that this process holds: the chances of each node's counts.
    rounding, cut : float
        What rounding and the cut of tails may change a chance by, about.
    most_drawn : int
        Counts that draws hold at a time, where they are not asked for themselves.
    """

    tree: NoisyTree = field(repr=False)
    hyperparameters: WeighedPoints
    marginals: tuple[Ragged, ...] = field(repr=False)
    rounding: float
    cut: float
    most_drawn: ClassVar[int] = MOST_DRAWN

    @property
    def log_evidence(self) -> float:
        """The log chance of what was released; of weights that are no probability but for a constant."""
        return self.hyperparameters.log_evidence


@dataclass(frozen=True, kw_only=True)
class TreePosterior(MixedTree):
    """The joint law of all counts, given what was released."""

    def means(self, level: int) -> Floats:
        """Return posterior means of a level's counts."""
        return moments(self.marginals[level])[0]

    def sds(self, level: int) -> Floats:
        """Return posterior standard deviations of a level's counts."""
        return moments(self.marginals[level])[1]

    def interval(self, level: int, mass: float) -> tuple[Counts, Counts]:
        """Return intervals with at most (1 - mass) / 2 of the chance outside on either side."""
        return equal_tailed(self.marginals[level], mass)

    def highest_density(self, level: int, mass: float) -> tuple[Counts, Counts]:
        """Return the shortest intervals that hold at least so much of the chance."""
        return shortest(self.marginals[level], mass)

    def laws(self, level: int) -> Ragged:
        """Return the chances of each of a level's counts."""
        return self.marginals[level]

    def weighted_draws(self, n: int, weights: Counts, rng: np.random.Generator) -> Counts:
        """Draw the sum of leaves times whole weights, (n,)."""
        at_a_time = max(1, MOST_DRAWN // self.tree.n_leaves)
        sums = [self.draws(min(at_a_time, n - begin), rng)[-1] @ weights for begin in range(0, n, at_a_time)]
        return np.concatenate(sums)

    def draws(
        self,
        n: int,
        rng: np.random.Generator,
        levels: Sequence[int] | None = None,  # noqa: ARG002
    ) -> tuple[Counts, ...]:
        """Draw all counts jointly: of every level an array of shape (n, n_nodes); all, whatever is asked."""
        weights = self.hyperparameters.weights
        times = rng.multinomial(n, weights)
        drawn = tuple(
            np.empty((n, self.tree.n_nodes(level)), np.int64) for level in range(self.tree.depth + 1)
        )
        # Draws of one point stand together otherwise.
        places = rng.permutation(n)
        for upward, begin, number in zip(
            self.hyperparameters.upwards, np.cumsum(times) - times, times, strict=True
        ):
            if number:
                draw_tree(upward, drawn, places[begin : begin + number], rng)
        return drawn


def tree_posterior(tree: NoisyTree, population: Population, *, tail: float = TAIL) -> TreePosterior:
    """Return the joint posterior of the counts of a tree.

    Parameters
    ----------
    tree : NoisyTree
    population : Population
        Of the leaves' counts.
    tail : float
        The share of a message that is cut at most, on either side.
    """
    hyperparameters = weighed_points(Passer.of(tree, population, tail))
    marginals, rounding, cut = mixed_marginals(hyperparameters.upwards, hyperparameters.weights)
    return TreePosterior(
        tree=tree, hyperparameters=hyperparameters, marginals=marginals, rounding=rounding, cut=cut
    )


def mixed_marginals(upwards: Sequence[Upward], weights: Floats) -> tuple[tuple[Ragged, ...], float, float]:
    """Return mixtures of the marginals of every level over points, and what these are off by."""
    ways = [Downward(upward) for upward in upwards]
    return mixed(ways, weights), max(way.rounding for way in ways), max(way.cut for way in ways)


def mixed(ways: Sequence[Downward], weights: Floats) -> tuple[Ragged, ...]:
    """Return mixtures of the marginals of every level over ways down, each at a point of its own."""
    levels = []
    for level in range(ways[0].upward.tree.depth + 1):
        windows = [way.upward.windows(level) for way in ways]
        low = np.min([low for low, _ in windows], axis=0)
        width = np.max([low + width for low, width in windows], axis=0) - low
        offset = np.cumsum(width) - width
        level_law = Ragged(low, width, offset, np.zeros(int(width.sum())))
        for way, weight in zip(ways, weights.tolist(), strict=True):
            for members, block in way.level(level):
                level_law.add(members, block, weight)
        levels.append(level_law)
    return tuple(levels)
