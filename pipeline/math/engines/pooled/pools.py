"""Several pools of cells side by side: each has a population of its own, and pools are independent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.composite import from_draws, worst_diagnostics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.pooled.dirichlet import CategoryPool
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.math.engines.pooled.moment_pools import MomentPool
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledCells:
    """The cells of all pools, in their own order.

    Attributes
    ----------
    pools : tuple of PooledDistribution, of MomentPool, or of CategoryPool
    cells : tuple of ndarray of int64
        Which cells each pool holds.
    """

    pools: tuple[PooledDistribution | MomentPool | CategoryPool, ...]
    cells: tuple[Cells, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.pools[0].parameters

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return sum(map(len, self.cells))

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles are those of draws."""
        return any(map(from_draws, self.pools))

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on, of the worst pool; empty where draws are independent."""
        return worst_diagnostics([getattr(pool, "diagnostics", {}) for pool in self.pools])

    @property
    def by_one_population(self) -> tuple[PooledDistribution, ...]:
        """The pools whose cells have one parameter and one population each; empty of any others."""
        from suffice.pipeline.math.engines.pooled.distribution import (
            PooledDistribution,  # it is slow to import
        )

        return tuple(pool for pool in self.pools if type(pool) is PooledDistribution)

    def _in_order(self, parts: Sequence[Floats], axis: int = 0) -> Floats:
        order = np.argsort(np.concatenate(self.cells), kind="stable")
        return np.take(np.concatenate(parts, axis=axis), order, axis=axis)

    @property
    def own_share(self) -> Floats:
        """How much of each answer is the cell's own, (n_cells,)."""
        return self._in_order([pool.own_share for pool in self.pools])

    @property
    def outside(self) -> Floats:
        """How probable it is that each cell is an outlier of its population, (n_cells,)."""
        return self._in_order([pool.outside for pool in self.pools])

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._in_order([pool.mean(parameter) for pool in self.pools])

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._in_order([pool.sd(parameter) for pool in self.pools])

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles; those of categories are of draws."""
        return self._in_order([pool.quantiles(parameter, q, draws, rng) for pool in self.pools])

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Densities at points (n_cells, n_points); None of categories, which are known by draws."""
        parts = [
            pool.density(parameter, points[cells]) for pool, cells in zip(self.pools, self.cells, strict=True)
        ]
        known = [part for part in parts if part is not None]
        return self._in_order(known) if len(known) == len(parts) else None

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: independent between pools."""
        drawn = [pool.sample(draws, rng) for pool in self.pools]
        return {name: self._in_order([each[name] for each in drawn], axis=1) for name in self.parameters}

    def sample_with_records(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Joint draws of parameters and of numbers of records, (draws, n_cells) each."""
        drawn = [pool.sample_with_records(draws, rng) for pool in self.pools]  # type: ignore[union-attr]
        parameter, records = (self._in_order([each[place] for each in drawn], axis=1) for place in (0, 1))
        return parameter, records
