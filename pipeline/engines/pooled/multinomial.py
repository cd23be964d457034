"""Pooled probabilities of count tables: the independent pieces of a posterior are multiplied one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from suffice.pipeline.distributions.dirichlet_blocks import BlockDirichlet, PiecewiseTables, diagnostics_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.engines.pooled.importance_sampling import PooledDistribution
    from suffice.typing import Floats

    Entries: TypeAlias = NDArray[np.int64]


@runtime_checkable
class MixturePiece(Protocol):
    """A piece that is a mixture of Dirichlet distributions, given latent counts."""

    @property
    def prior_concentration(self) -> Floats:
        """Of the prior, (n_entries,)."""

    @property
    def block(self) -> Entries:
        """Which distribution an entry is of, (n_entries,), ascending."""

    def sample_given(self, draws: int, rng: np.random.Generator) -> Floats:
        """Concentrations given independent draws of the counts, (draws, n_cells, n_entries)."""


@dataclass(frozen=True, slots=True)
class TableFactor:
    """Those probabilities of a piece that data sets share: the others are every data set's own."""

    piece: MixturePiece
    taken: Entries

    def prior_distribution(self) -> BlockDirichlet:
        """The prior, as the distribution of one cell."""
        return self._distribution(self.piece.prior_concentration[None])

    def mixture(self, draws: int, rng: np.random.Generator) -> BlockDirichlet:
        """Distributions given independent draws of the latent counts, draw by draw, then by cell."""
        given = self.piece.sample_given(draws, rng)
        return self._distribution(given.reshape(-1, given.shape[-1]))

    def _distribution(self, concentration: Floats) -> BlockDirichlet:
        block = self.piece.block[self.taken]
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        return BlockDirichlet(concentration=concentration[:, self.taken], starts=starts)


def factors_of(distribution: Any) -> list[Any] | None:
    """Return the mixtures of conjugate distributions whose product this is; None where it is no product."""
    if hasattr(distribution, "mixture"):
        return [distribution]
    if isinstance(distribution, PiecewiseTables) and all(
        isinstance(piece, MixturePiece) for piece, _, _ in distribution.pieces
    ):
        return [TableFactor(piece, taken) for piece, taken, _ in distribution.pieces]  # type: ignore[arg-type]
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledTablesDistribution:
    """Pooled probabilities, piece by piece.

    Attributes
    ----------
    pieces : tuple of (PooledDistribution or PiecewiseTables, ndarray of int64)
        Independent distributions, and where their entries stand.
    apart : tuple of str
        Tables that share margins with others which their posterior does not see.
    """

    pieces: tuple[tuple[PooledDistribution | PiecewiseTables, Entries], ...]
    apart: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on, and which tables are taken apart from others."""
        return diagnostics_of([distribution.diagnostics for distribution, _ in self.pieces], self.apart)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._joined([distribution.mean(parameter) for distribution, _ in self.pieces])

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._joined([distribution.sd(parameter) for distribution, _ in self.pieces])

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles of draws."""
        return np.moveaxis(np.quantile(self.sample(draws, rng)[parameter], q, axis=0), 0, -1)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        (name,) = self.parameters
        return {
            name: self._joined([distribution.sample(draws, rng)[name] for distribution, _ in self.pieces])
        }

    def _joined(self, parts: Sequence[Floats]) -> Floats:
        size = sum(len(positions) for _, positions in self.pieces)
        result = np.empty((*parts[0].shape[:-1], size))
        for part, (_, positions) in zip(parts, self.pieces, strict=True):
            result[..., positions] = part
        return result
