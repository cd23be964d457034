"""Pooled probabilities of count tables: the independent pieces of a posterior are multiplied one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from suffice.pipeline.math.distributions.dirichlet_blocks import BlockDirichlet
from suffice.pipeline.math.distributions.piecewise import PiecewiseTables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.piecewise import Piece
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
    taken: Entries | slice

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
    if not isinstance(distribution, PiecewiseTables):
        return None
    found = table_factors(distribution.pieces)
    return found if len(found) == len(distribution.pieces) else None


def table_factors(pieces: Iterable[Piece]) -> list[TableFactor]:
    """Return the factors of pieces that are mixtures of Dirichlet distributions."""
    known = [(getattr(distribution, "posterior", None), taken) for distribution, taken, _ in pieces]
    return [TableFactor(piece, taken) for piece, taken in known if isinstance(piece, MixturePiece)]
