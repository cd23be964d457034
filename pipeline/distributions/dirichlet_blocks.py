"""Joint distributions of the probabilities of count tables: one distribution for every block of entries."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from suffice.pipeline.distributions.dirichlet import DirichletDistribution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.statistics.count_table import CountTable
    from suffice.typing import Floats

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

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser, of all distributions of a cell."""
        from scipy.special import gammaln  # noqa: PLC0415 - slow to import

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


class Piece(Protocol):
    """Some of a statistic's probabilities, independent of the others: a distribution of their own."""

    @property
    def mean(self) -> Floats:
        """Means, (n_cells, n_entries)."""

    @property
    def sd(self) -> Floats:
        """Standard deviations, shaped as the means."""

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws, (draws, n_cells, n_entries)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseTables:
    """Probabilities behind latent counts, piece by piece.

    Attributes
    ----------
    pieces : tuple of (Piece, ndarray of int64, ndarray of int64)
        Independent posteriors, which of their entries are taken, and where these stand.
    apart : tuple of str
        Tables that share margins with others which their posterior does not see.
    """

    pieces: tuple[tuple[Piece, Starts, Starts], ...]
    apart: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._joined([piece.mean for piece, _, _ in self.pieces])

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._joined([piece.sd for piece, _, _ in self.pieces])

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles of independent draws."""
        return np.moveaxis(np.quantile(self.sample(draws, rng)[parameter], q, axis=0), 0, -1)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        return {"probability": self._joined([piece.sample(draws, rng) for piece, _, _ in self.pieces])}

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The worst of all chains, where there are any, and which tables are taken apart from others."""
        return diagnostics_of(
            [dict(getattr(piece, "diagnostics", {})) for piece, _, _ in self.pieces], self.apart
        )

    def _joined(self, parts: Sequence[Floats]) -> Floats:
        size = sum(len(positions) for _, _, positions in self.pieces)
        result = np.empty((*parts[0].shape[:-1], size))
        for part, (_, taken, positions) in zip(parts, self.pieces, strict=True):
            result[..., positions] = part[..., taken]
        return result


def diagnostics_of(pieces: Sequence[Mapping[str, Any]], apart: Sequence[str]) -> dict[str, Any]:
    """Return how some pieces were drawn, the worst numbers of all, and tables apart as ``not_reconciled``."""
    found: dict[str, Any] = {}
    for each in pieces:
        for key, value in each.items():
            if key == "sampler":
                known = str(found.get(key, value))
                found[key] = known if value in known else f"{known}; {value}"
            else:
                worst = max if key == "largest_r_hat" else min
                found[key] = worst(found.get(key, value), value)
    return {**found, **({"not_reconciled": ", ".join(apart)} if apart else {})}
