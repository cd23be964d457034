r"""Products of noise-aware posteriors that share their parameters and nothing else.

A noise-aware posterior is a mixture of conjugate distributions, one for every value of the latent statistics.
With R disjoint data sets and independent draws :math:`\eta_r` of each mixture,

.. math::
    p(\theta \mid y_1, \dots, y_R) \propto \mathrm{E} \left[ w \,
        \mathrm{Conjugate}(\theta; \eta) \right], \qquad
    w = \frac{Z(\eta)\, Z(\eta_0)^{R - 1}}{Z(\eta_1) \cdots Z(\eta_R)}, \quad
    \eta = \sum_r \eta_r - (R - 1) \eta_0,

with Z of ``distribution``: the weight is the evidence that the latent statistics come from one parameter.
Data sets are merged two at a time, in a balanced tree, so that the weights are even; each draw of one meets
``PARTNERS`` of the other. This is importance sampling, exact as the number of draws grows, and free of
Markov chains; how many of the draws count is stated. The independent pieces of count tables are multiplied
one by one.

References
----------
Lindsten et al. Divide-and-conquer with sequential Monte Carlo. JCGS 26, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.composite import ConjugateMixture, PiecewiseTables
from suffice.pipeline.math.distributions.dirichlet import BlockDirichlet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.composite import Piece
    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, MixtureOfConjugates
    from suffice.typing import Floats, Rows

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
    factors_of_tables = table_factors(distribution.pieces)
    return factors_of_tables if len(factors_of_tables) == len(distribution.pieces) else None


def table_factors(pieces: Iterable[Piece]) -> list[TableFactor]:
    """Return the factors of pieces that are mixtures of Dirichlet distributions."""
    known = [(getattr(distribution, "posterior", None), taken) for distribution, taken, _ in pieces]
    return [TableFactor(piece, taken) for piece, taken in known if isinstance(piece, MixturePiece)]


PARTICLES = 2**12
PARTNERS = 16
MORE = 32
"""Times as many draws are taken in cells where too few of them count."""
ENOUGH_EFFECTIVE = 600.0
FEWEST_EFFECTIVE = 200.0
"""Below so many effective draws a pooled posterior would rest on chance."""
CELLS = 128
"""Cells that are multiplied at a time: some 8 million pairs, within a few hundred megabytes."""
NUMBERS = 1024
"""Components of all cells that are multiplied at a time, for the same reason."""


def product(
    distributions: Sequence[MixtureOfConjugates], rng: np.random.Generator, particles: int = PARTICLES
) -> ConjugateMixture:
    """Multiply posteriors, of the same cells and under one prior, of parameters that they share.

    Parameters
    ----------
    distributions : sequence
        Noise-aware distributions of disjoint data.
    rng : numpy.random.Generator
        For the draws that the result rests on.
    particles : int
        Draws a cell.
    """
    like = distributions[0].prior_distribution()
    return _mixture(like, *_tree(distributions, like, particles, rng))


def products(
    factors: Callable[[Rows], Sequence[tuple[MixtureOfConjugates, ...]]],
    cells: int,
    width: int,
    rng: np.random.Generator,
) -> list[ConjugateMixture]:
    """Multiply posteriors of independent groups of parameters, over many cells.

    Where few draws agree in a cell, it has ``MORE`` of them, then thinned.

    Parameters
    ----------
    factors : callable
        Cells -> for every group, the distributions of all data sets.
    cells, width : int
        How many there are, and the components of each.
    rng : numpy.random.Generator
        For the draws that the result rests on.

    Raises
    ------
    UsageError
        Where so few draws count even so that the result would rest on chance.
    """
    step = min(CELLS, max(1, NUMBERS // width))
    merged: list[list[tuple[ConjugateDistribution, Floats, Floats]]] = []
    for start in range(0, cells, step):
        rows = np.arange(start, min(start + step, cells))
        merged.append([])
        for position, factor in enumerate(factors(rows)):
            like = factor[0].prior_distribution()
            eta, effective = _tree(factor, like, PARTICLES, rng)
            for cell in np.flatnonzero(effective < ENOUGH_EFFECTIVE).tolist():
                alone = _of_cell(factors(rows[[cell]])[position], rng)
                eta[:, [cell]], effective[[cell]] = alone
            merged[-1].append((like, eta, effective))
    joined = []
    for group in zip(*merged, strict=True):
        likes, etas, counts = zip(*group, strict=True)
        joined.append(_mixture(likes[0], np.concatenate(etas, axis=1), np.concatenate(counts)))
    return joined


def _of_cell(distributions: Sequence[MixtureOfConjugates], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Multiply posteriors of a single cell in which few draws agree: as ``_tree``."""
    like = distributions[0].prior_distribution()
    eta, effective = _tree(distributions, like, MORE * PARTICLES, rng)
    if float(np.min(effective)) < FEWEST_EFFECTIVE:
        message = (
            f"of {MORE * PARTICLES} draws only {np.min(effective):.0f} count in some cell: the pooled data "
            "barely fit one parameter, or say too little about it: give a stronger prior, or keep cells "
            "with where"
        )
        raise UsageError(message)
    return eta[:PARTICLES], np.minimum(effective, float(PARTICLES))


def _mixture(like: ConjugateDistribution, eta: Floats, effective: Floats) -> ConjugateMixture:
    """Return the mixture with these natural parameters (n_particles, n_cells, n_natural)."""
    particles, cells, size = eta.shape
    return ConjugateMixture(
        conditional=like.from_natural(eta.reshape(-1, size)),
        n_states=particles,
        n_cells=cells,
        diagnostics={
            "sampler": "importance",
            "draws": particles,
            "fewest_effective_draws": float(np.min(effective)),
        },
        in_turn=False,
    )


def _tree(
    distributions: Sequence[MixtureOfConjugates],
    like: ConjugateDistribution,
    particles: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Merge data sets two by two: natural parameters (n_particles, n_cells, n_natural), how many count."""
    start = like.natural()[0]
    level = [_draws(distribution, particles, rng) for distribution in distributions]
    effective = np.full(level[0].shape[1], float(particles))
    while len(level) > 1:
        merged = []
        for left, right in zip(level[::2], level[1::2], strict=False):
            eta, count = _merge(like, start, left, right, rng)
            merged.append(eta)
            effective = np.minimum(effective, count)
        level = merged + level[2 * len(merged) :]
    return level[0], effective


def _draws(distribution: MixtureOfConjugates, particles: int, rng: np.random.Generator) -> Floats:
    """Natural parameters (n_particles, n_cells, n_natural) of independent draws."""
    eta = distribution.mixture(particles, rng).natural()
    return eta.reshape(particles, -1, eta.shape[-1])


def _merge(
    like: ConjugateDistribution, start: Floats, left: Floats, right: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Pair draws of two data sets, and keep as many pairs by their weights; how many count, (n_cells,)."""
    particles, cells, _ = left.shape
    shifts = rng.choice(particles, min(PARTNERS, particles), replace=False)
    log_z_left, others = _log_z(like, left), _log_z(like, right)
    weight = np.empty((len(shifts), particles, cells))
    for position, shift in enumerate(shifts):
        together = left + np.roll(right, shift, axis=0) - start
        weight[position] = _log_z(like, together) - log_z_left - np.roll(others, shift, axis=0)
    weight = np.exp(weight - np.max(weight, axis=(0, 1)))
    weight /= np.sum(weight, axis=(0, 1))
    # A draw that meets several partners counts once.
    by_left = np.sum(weight, axis=0)
    by_right = np.sum(
        [np.roll(part, -shift, axis=0) for part, shift in zip(weight, shifts, strict=True)], axis=0
    )
    effective = 1.0 / np.maximum(np.sum(by_left**2, axis=0), np.sum(by_right**2, axis=0))
    chosen = _systematic(weight.reshape(-1, cells), particles, rng)
    shift_of, first = np.divmod(chosen, particles)
    second = (first - shifts[shift_of]) % particles
    cell = np.arange(cells)
    return left[first, cell] + right[second, cell] - start, effective


def _log_z(like: ConjugateDistribution, eta: Floats) -> Floats:
    return like.from_natural(eta).log_normaliser()


def _systematic(shares: Floats, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Choose indices (size, n_cells) with these shares (n, n_cells), evenly spread, in random order."""
    cells = shares.shape[1]
    chosen = np.empty((size, cells), dtype=np.int64)
    for cell in range(cells):
        ends = np.cumsum(shares[:, cell])
        targets = (np.arange(size) + rng.random()) / size * ends[-1]
        chosen[:, cell] = rng.permutation(np.minimum(np.searchsorted(ends, targets), len(ends) - 1))
    return chosen
