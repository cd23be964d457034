"""Trees of counts that are not drawn from the population that a posterior takes, and their noisy values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats, Rows


class World(NamedTuple):
    """A drawn tree, what was released of it, and what its states multiplied their leaves' rates by."""

    tree: NoisyTree
    counts: list[Counts]
    factors: Floats


@dataclass(frozen=True)
class Setting:
    """A law of trees: fan-outs, epsilon and its shares by level, median size and spreads."""

    fan_out: tuple[int, ...] = (8, 24)
    epsilon: float = 0.3
    shares: tuple[float, ...] = (1, 1, 1)
    median: float = 20.0
    spread: float = 1.2
    of_states: float = 0.5
    empty: float = 0.2
    is_pareto: bool = False

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales of noise."""
        return tuple(sum(self.shares) / (self.epsilon * share) for share in self.shares)

    def draw(self, rng: np.random.Generator) -> tuple[NoisyTree, list[Counts]]:
        """Draw a tree and what is released of it."""
        return self.world(rng)[:2]

    def world(self, rng: np.random.Generator) -> World:
        """Draw a tree with the factors of its states."""
        parents: list[Rows] = []
        nodes = 1
        for fan in self.fan_out:
            # Unequal fan-outs, of the mean that is stated.
            fans = np.maximum(rng.poisson(fan, nodes), 1) if parents else np.array([fan])
            parents.append(np.repeat(np.arange(nodes), fans))
            nodes = int(fans.sum())
        state = np.arange(nodes)
        for above in reversed(parents[1:]):
            state = above[state]
        tail = rng.pareto(1.2, nodes) if self.is_pareto else np.exp(rng.normal(0.0, self.spread, nodes))
        factors = np.exp(rng.normal(0.0, self.of_states, self.fan_out[0]))[state]
        leaves = np.where(rng.random(nodes) < self.empty, 0, rng.poisson(self.median * tail * factors))
        counts = [leaves]
        for above in reversed(parents):
            counts.insert(0, np.bincount(above, counts[0]).astype(np.int64))
        values = []
        for exact, scale in zip(counts, self.scales, strict=True):
            share = -np.expm1(-1.0 / scale)
            values.append(exact + rng.geometric(share, len(exact)) - rng.geometric(share, len(exact)))
        return World(
            NoisyTree(parents=tuple(parents), values=tuple(values), scales=self.scales), counts, factors
        )


SETTINGS = {
    "equal": Setting(),
    "leaf-heavy": Setting(shares=(1, 2, 4)),
    "root-heavy": Setting(shares=(4, 2, 1)),
    "epsilon-1": Setting(epsilon=1.0),
    "pareto": Setting(is_pareto=True, median=30.0, shares=(1, 2, 4)),
    "pareto-1": Setting(is_pareto=True, median=30.0, shares=(1, 2, 4), epsilon=1.0),
    "large": Setting(median=200.0, spread=0.8, shares=(1, 2, 4)),
    "sparse": Setting(median=4.0, spread=1.5, empty=0.5, shares=(1, 2, 4), epsilon=1.0),
    "deep": Setting(fan_out=(4, 4, 4, 6), shares=(1, 1, 2, 2, 4), epsilon=1.0),
    "few": Setting(fan_out=(3, 4), median=20.0),
    "few-poor": Setting(fan_out=(3, 4), median=20.0, epsilon=0.1, shares=(1, 2, 4)),
    "few-small": Setting(fan_out=(3, 4), median=4.0, epsilon=0.1),
    "one-state": Setting(fan_out=(1, 6), median=20.0, epsilon=0.1, shares=(1, 2, 4)),
}
