"""Joint distributions of the probabilities of count tables: one distribution for every block of entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.dirichlet import DirichletDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats, Rows

    Starts: TypeAlias = NDArray[np.int64]


def block_starts(tables: Sequence[CountTable]) -> Starts:
    """First entry of every distribution: each table holds one of its last variable per row of the others."""
    lengths = np.concatenate([np.full(table.size // table.shape[-1], table.shape[-1]) for table in tables])
    starts: Starts = np.cumsum(lengths) - lengths
    return starts


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDirichlet(DirichletDistribution):
    """Independent Dirichlet distributions side by side.

    Attributes
    ----------
    concentration : ndarray of shape (n_cells, n_entries), float64
        Of every cell's distributions, one after the other.
    starts : ndarray of shape (n_blocks,), int64
        The first entry of each distribution, ascending from 0.
    """

    starts: Starts

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, *self.concentration.shape)
        return {"probability": sample_blocks(np.broadcast_to(self.concentration, size), self.starts, rng)}

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""
        return replace(self, concentration=self.concentration[cells])

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser, of all distributions of a cell."""
        from scipy.special import gammaln

        totals = np.add.reduceat(self.concentration, self.starts, axis=-1)
        log_z: Floats = np.sum(gammaln(self.concentration), axis=-1) - np.sum(gammaln(totals), axis=-1)
        return log_z

    def _total(self) -> Floats:
        return block_totals(self.concentration, self.starts)


def block_totals(values: Floats, starts: Starts) -> Floats:
    """Sum every block along the last axis, and repeat its total for each of its entries."""
    lengths = np.diff(np.append(starts, values.shape[-1]))
    totals: Floats = np.repeat(np.add.reduceat(values, starts, axis=-1), lengths, axis=-1)
    return totals


def sample_blocks(concentration: Floats, starts: Starts, rng: np.random.Generator) -> Floats:
    """One draw for every block along the last axis, without underflow at small concentrations."""
    small = concentration < 1.0
    gammas = rng.standard_gamma(np.where(small, concentration + 1.0, concentration))
    if np.any(small):
        # Gamma(a) is Gamma(a + 1) times U^(1 / a): in logs, or small concentrations are all zero.
        logs = np.log(gammas)
        logs[small] += np.log1p(-rng.random(int(np.sum(small)))) / concentration[small]
        lengths = np.diff(np.append(starts, logs.shape[-1]))
        gammas = np.exp(logs - np.repeat(np.maximum.reduceat(logs, starts, axis=-1), lengths, axis=-1))
    return gammas / block_totals(gammas, starts)
