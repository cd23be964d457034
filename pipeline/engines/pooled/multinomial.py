"""Pooled probabilities of count tables: the independent pieces of a posterior are multiplied one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from suffice.pipeline.distributions.dirichlet_blocks import BlockDirichletLaw, PiecesLaw, diagnostics_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.engines.pooled.importance_sampling import PooledLaw

    Floats: TypeAlias = NDArray[np.float64]
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

    def prior_law(self) -> BlockDirichletLaw:
        """The prior, as the law of one cell."""
        return self._law(self.piece.prior_concentration[None])

    def mixture(self, draws: int, rng: np.random.Generator) -> BlockDirichletLaw:
        """Laws given independent draws of the latent counts, draw by draw, then by cell."""
        given = self.piece.sample_given(draws, rng)
        return self._law(given.reshape(-1, given.shape[-1]))

    def _law(self, concentration: Floats) -> BlockDirichletLaw:
        block = self.piece.block[self.taken]
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        return BlockDirichletLaw(concentration=concentration[:, self.taken], starts=starts)


def factors_of(law: Any) -> list[Any] | None:
    """Return mixtures of conjugate laws whose product a law is; None where it is no such product."""
    if hasattr(law, "mixture"):
        return [law]
    if isinstance(law, PiecesLaw) and all(isinstance(piece, MixturePiece) for piece, _, _ in law.pieces):
        return [TableFactor(piece, taken) for piece, taken, _ in law.pieces]  # type: ignore[arg-type]
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledTablesLaw:
    """Pooled probabilities, piece by piece.

    Attributes
    ----------
    pieces : tuple of (PooledLaw or PiecesLaw, ndarray of int64)
        Independent laws, and where their entries stand.
    apart : tuple of str
        Tables that share margins with others which their posterior does not see.
    """

    pieces: tuple[tuple[PooledLaw | PiecesLaw, Entries], ...]
    apart: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on, and which tables are taken apart from others."""
        return diagnostics_of([law.diagnostics for law, _ in self.pieces], self.apart)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._joined([law.mean(parameter) for law, _ in self.pieces])

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._joined([law.sd(parameter) for law, _ in self.pieces])

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles of draws."""
        return np.moveaxis(np.quantile(self.sample(draws, rng)[parameter], q, axis=0), 0, -1)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        (name,) = self.parameters
        return {name: self._joined([law.sample(draws, rng)[name] for law, _ in self.pieces])}

    def _joined(self, parts: Sequence[Floats]) -> Floats:
        size = sum(len(places) for _, places in self.pieces)
        result = np.empty((*parts[0].shape[:-1], size))
        for part, (_, places) in zip(parts, self.pieces, strict=True):
            result[..., places] = part
        return result
