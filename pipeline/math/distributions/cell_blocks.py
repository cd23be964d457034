"""Distributions of many cells, a block of cells at a time: memory stays where it is, and progress shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.composite import from_draws, worst_diagnostics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats

    CellProgress: TypeAlias = Callable[[int, int], None]
    """Gets the number of cells that are done, and of all, after each block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBlocks:
    """The distributions of consecutive blocks of cells, as one of all cells.

    Attributes
    ----------
    blocks : tuple of Distribution
        In the order of the cells; at least one.
    """

    blocks: tuple[Distribution, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.blocks[0].parameters

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The worst of all blocks; empty where draws are independent."""
        return worst_diagnostics([getattr(block, "diagnostics", {}) for block in self.blocks])

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return np.concatenate([block.mean(parameter) for block in self.blocks])

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return np.concatenate([block.sd(parameter) for block in self.blocks])

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles of some blocks are those of draws."""
        return any(map(from_draws, self.blocks))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles; draws, where they rest on any, are those of one block at a time."""
        return np.concatenate([block.quantiles(parameter, q, draws, rng) for block in self.blocks])

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities, block by block; None where those of one are not known."""
        parts, done = [], 0
        for block in self.blocks:
            after = done + len(block.mean(parameter))
            density = block.density(parameter, points[done:after])
            if density is None:
                return None
            parts.append(density)
            done = after
        return np.concatenate(parts)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        n_cells = sum(len(block.mean(self.parameters[0])) for block in self.blocks)
        drawn: dict[str, Floats] = {}
        done = 0
        for block in self.blocks:
            for name, values in block.sample(draws, rng).items():
                whole = drawn.setdefault(name, np.empty((draws, n_cells, *values.shape[2:])))
                whole[:, done : done + values.shape[1]] = values
            done += values.shape[1]
        return drawn


def blocks_of(distribution: Distribution) -> tuple[Distribution, ...]:
    """Return the distributions of consecutive cells that one consists of: itself, or its blocks."""
    return distribution.blocks if isinstance(distribution, CellBlocks) else (distribution,)
