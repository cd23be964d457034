"""Probabilities of count tables, known piece by piece.

Where no closed form is known, a distribution answers by its draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats, Rows

    Piece: TypeAlias = tuple[Distribution, Rows | slice, Rows]
    """A distribution, which of its entries are taken, and where these stand."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


class Draws(ABC):
    """A distribution whose quantiles are those of its draws."""

    __slots__ = ()

    @abstractmethod
    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles are those of draws."""
        return True

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Return None: only draws are known."""
        return None

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles of draws."""
        drawn = np.moveaxis(self.sample(draws, rng)[parameter], 0, -1)
        return np.moveaxis(np.quantile(drawn, q, axis=-1, overwrite_input=True), 0, -1)


def from_draws(distribution: object) -> bool:
    """Tell whether the quantiles of a distribution are those of draws: other draws give slightly others."""
    return bool(getattr(distribution, "is_from_draws", False))


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


class TablePosterior(Protocol):
    """What is known of the probabilities of a table's entries."""

    @property
    def mean(self) -> Floats:
        """Means, (n_cells, n_entries)."""

    @property
    def sd(self) -> Floats:
        """Standard deviations, shaped as the means."""

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draws, (draws, n_cells, n_entries)."""


@dataclass(frozen=True, slots=True)
class Probabilities(Draws):
    """Probabilities behind latent counts, as a posterior shows them."""

    posterior: TablePosterior

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on; empty where draws are independent."""
        return dict(getattr(self.posterior, "diagnostics", {}))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.posterior.mean

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.posterior.sd

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        return {"probability": self.posterior.sample(draws, rng)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseTables(Draws):
    """Probabilities of all entries of tables.

    Attributes
    ----------
    pieces : tuple of (Distribution, ndarray of int64 or slice, ndarray of int64)
        Independent distributions, which of their entries are taken, and where these stand.
    apart : tuple of str
        Tables that share margins with others which their posterior does not see.
    """

    pieces: tuple[Piece, ...]
    apart: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The worst of all chains, where there are any, and which tables are taken apart from others."""
        diagnostics = worst_diagnostics([getattr(piece, "diagnostics", {}) for piece, _, _ in self.pieces])
        return {**diagnostics, **({"not_reconciled": ", ".join(self.apart)} if self.apart else {})}

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._joined([piece.mean(parameter) for piece, _, _ in self.pieces])

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._joined([piece.sd(parameter) for piece, _, _ in self.pieces])

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities; None where those of a piece are not known."""
        result = np.empty(points.shape)
        for piece, taken, positions in self.pieces:
            whole = np.zeros((*piece.mean(parameter).shape, points.shape[-1]))
            whole[:, taken] = points[:, positions]
            density = piece.density(parameter, whole)
            if density is None:
                return None
            result[:, positions] = density[:, taken]
        return result

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        (name,) = self.parameters
        return {name: self._joined([piece.sample(draws, rng)[name] for piece, _, _ in self.pieces])}

    def _joined(self, parts: Sequence[Floats]) -> Floats:
        size = sum(len(positions) for _, _, positions in self.pieces)
        result = np.empty((*parts[0].shape[:-1], size))
        for part, (_, taken, positions) in zip(parts, self.pieces, strict=True):
            result[..., positions] = part[..., taken]
        return result


def worst_diagnostics(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how some pieces were drawn, and the worst numbers of all."""
    merged: dict[str, Any] = {}
    for each in pieces:
        for key, value in each.items():
            if key == "sampler":
                known = str(merged.get(key, value))
                merged[key] = known if value in known else f"{known}; {value}"
            else:
                worst = max if key == "largest_r_hat" else min
                merged[key] = worst(merged.get(key, value), value)
    return merged
