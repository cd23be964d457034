r"""Distributions that consist of others: of pieces, of states, of blocks of cells, and of cells of two kinds.

Where no closed form is known, a distribution answers by its draws.

Mixture over states. Given each of J equally likely states of the latent statistics, a cell has a conjugate
distribution with mean :math:`m_j` and standard deviation :math:`s_j`. The mixture's are

.. math:: E \theta = \frac 1 J \sum_j m_j, \qquad
    \mathrm{Var} \theta = \frac 1 J \sum_j s_j^2 + \frac 1 J \sum_j (m_j - E \theta)^2, \qquad (1)

the law of total variance. Draws take a state and draw from its distribution.

Symbols:

- J: ``n_states``
- m_j, s_j: ``conditional.mean`` and ``conditional.sd``, (J n_cells, ...), state by state

Method. (1) is exact given the states. Quantiles of draws have the standard error sqrt(q (1 - q) / draws) over
the density, and the error of the states besides.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from suffice.pipeline.math.distributions.distribution import Distribution, DistributionOfCells
    from suffice.typing import Cells, Floats, Mask, Rows

    CellProgress: TypeAlias = Callable[[int, int], None]
    """Gets the number of cells that are done, and of all, after each block."""
    Piece: TypeAlias = tuple[Distribution, Rows | slice, Rows]
    """A distribution, which of its entries are taken, and where these stand."""


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


def worst_diagnostics(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how some pieces were drawn, and the worst numbers of all."""
    merged: dict[str, Any] = {}
    for each in pieces:
        for key, value in each.items():
            if key == "sampler":
                known = str(merged.get(key, value))
                merged[key] = known if value in known else f"{known}; {value}"
            else:
                worst = max if key.startswith("largest") else min
                merged[key] = worst(merged.get(key, value), value)
    return merged


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConjugateMixture(Draws):
    """A mixture of conjugate distributions in every cell, each given one state of the latent statistics.

    Means and standard deviations are those of the mixture; draws take a state and draw from its
    distribution.

    Attributes
    ----------
    conditional : DistributionOfCells
        Given every state, state by state and then cell by cell.
    n_states, n_cells : int
    diagnostics : dict of str to int, float or str
        How the states were drawn, and how many of them count.
    in_turn : bool
        Whether no state comes back before all have been taken, in all cells at once; else every draw in
        every cell takes one at random.
    """

    conditional: DistributionOfCells
    n_states: int
    n_cells: int
    diagnostics: Mapping[str, Any]
    in_turn: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.conditional.parameters

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """What each parameter is of, where it is of several."""
        components: Mapping[str, tuple[str, ...]] = getattr(self.conditional, "components", {})
        return components

    def take(self, cells: Cells) -> Self:
        """Return the mixture of some cells."""
        rows = (np.arange(self.n_states)[:, None] * self.n_cells + cells).ravel()
        return replace(self, conditional=self.conditional.at(rows), n_cells=len(cells))

    def mean(self, parameter: str) -> Floats:
        """Means, averaged over the conditional distributions' own."""
        mean: Floats = self._by_state(self.conditional.mean(parameter)).mean(axis=0)
        return mean

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, from the conditional distributions' own."""
        # (1): the mean of the variances, and the variance of the means.
        within = np.mean(self._by_state(self.conditional.sd(parameter)) ** 2, axis=0)
        means = self._by_state(self.conditional.mean(parameter))
        # A state without a mean has no variance either.
        is_endless = np.isinf(means).any(axis=0)
        sd: Floats = np.sqrt(within + np.where(is_endless, 0.0, means).var(axis=0))
        return np.where(is_endless, np.inf, sd)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        parts = []
        for states in self._chosen(draws, rng):
            # A state for every draw and cell, then its conjugate distribution.
            taken = np.arange(self.n_cells) + states * self.n_cells
            drawn = self.conditional.at(taken.ravel()).sample(1, rng)
            parts.append(
                {name: values[0].reshape(*taken.shape, *values.shape[2:]) for name, values in drawn.items()}
            )
        return {name: np.concatenate([part[name] for part in parts]) for name in self.parameters}

    def _chosen(self, draws: int, rng: np.random.Generator) -> list[Rows]:
        """States to draw from, (n, n_cells) or one for all cells (n, 1)."""
        if not self.in_turn:
            return [rng.integers(0, self.n_states, (draws, self.n_cells))]
        chosen = states_in_turn(self.n_states, draws, rng)[:, None]
        return [chosen[start : start + self.n_states] for start in range(0, draws, self.n_states)]

    def _by_state(self, values: Floats) -> Floats:
        return values.reshape(self.n_states, self.n_cells, *values.shape[1:])


def states_in_turn(n_states: int, draws: int, rng: np.random.Generator) -> Rows:
    """Return the states that draws take, (draws,); none comes back before all have been taken."""
    return np.concatenate([rng.permutation(n_states) for _ in range(-(-draws // n_states))])[:draws]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBlocks:
    """The distributions of consecutive blocks of cells, as one of all cells.

    Attributes
    ----------
    blocks : tuple of Distribution
        In the order of the cells; at least one.
    are_apart : bool
        Whether several blocks may be worked on at a time: together they take little memory, and none draws
        anything for quantiles but where ``is_from_draws`` says so.
    """

    blocks: tuple[Distribution, ...]
    are_apart: bool = False

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


def are_apart(distribution: Distribution) -> bool:
    """Tell whether several blocks may be worked on at a time: none takes draws of a generator of all."""
    return getattr(distribution, "are_apart", False) and not from_draws(distribution)


def blocks_of(distribution: Distribution) -> tuple[Distribution, ...]:
    """Return the distributions of consecutive cells that one consists of: itself, or its blocks."""
    return distribution.blocks if isinstance(distribution, CellBlocks) else (distribution,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCells:
    """A distribution whose cells stand for others too.

    Attributes
    ----------
    distribution : Distribution
        Of the different cells.
    of_cell : ndarray of shape (n_cells,), int64
        Which of them stands for each cell.
    turn : ndarray of shape (n_cells,), int64
        How many cells before it the same one stands for: cells that are alike have draws of their own.
    """

    distribution: Distribution
    of_cell: Cells
    turn: Cells

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.distribution.parameters

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The entries' names, by parameter."""
        return getattr(self.distribution, "components", {})

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Those of the different cells."""
        return dict(getattr(self.distribution, "diagnostics", {}))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.distribution.mean(parameter)[self.of_cell]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.distribution.sd(parameter)[self.of_cell]

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles are those of draws."""
        return from_draws(self.distribution)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles."""
        return self.distribution.quantiles(parameter, q, draws, rng)[self.of_cell]

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities, of one turn of all different cells after the other."""
        values = np.empty_like(points)
        for turn in range(int(self.turn.max()) + 1):
            cells = np.flatnonzero(self.turn == turn)
            asked = points[np.unique(self.of_cell, return_index=True)[1]]
            asked[self.of_cell[cells]] = points[cells]
            densities = self.distribution.density(parameter, asked)
            if densities is None:
                return None
            values[cells] = densities[self.of_cell[cells]]
        return values

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws, independent between all cells."""
        turns = int(self.turn.max()) + 1
        drawn = {}
        for name, values in self.distribution.sample(draws * turns, rng).items():
            # Every cell gets its turn of the draws of the one that stands for it.
            dealt = values.reshape(turns, -1, *values.shape[1:])[self.turn, :, self.of_cell]
            drawn[name] = np.ascontiguousarray(np.moveaxis(dealt, 0, 1))
        return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyClipped:
    """Parameters in cells some of which model clipping.

    Attributes
    ----------
    plain : Distribution
        Of all cells, without clipping.
    clipped : Distribution
        Of the cells that model it, in their order.
    modelled : ndarray of shape (n_cells,), bool
        Which they are.
    """

    plain: Distribution
    clipped: Distribution
    modelled: Mask

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.plain.parameters

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._joined(self.plain.mean(parameter), self.clipped.mean(parameter))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._joined(self.plain.sd(parameter), self.clipped.sd(parameter))

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles of some cells are those of draws."""
        return from_draws(self.plain) or from_draws(self.clipped)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles; they rest on draws only where those of the cells without clipping do."""
        plain, clipped = (
            distribution.quantiles(parameter, q, draws, rng) for distribution in (self.plain, self.clipped)
        )
        return self._joined(plain.T, clipped.T).T

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities."""
        plain = self.plain.density(parameter, points)
        clipped = self.clipped.density(parameter, points[self.modelled])
        return None if plain is None or clipped is None else self._joined(plain.T, clipped.T).T

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        plain, clipped = (distribution.sample(draws, rng) for distribution in (self.plain, self.clipped))
        return {name: self._joined(plain[name], clipped[name]) for name in self.parameters}

    def _joined(self, plain: Floats, clipped: Floats) -> Floats:
        joined = plain.copy()
        joined[..., self.modelled] = clipped
        return joined
