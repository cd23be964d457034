r"""Posteriors combined: ratios to the prior, and products over data sets.

Every posterior here is a mixture of conjugate distributions with natural parameters :math:`\eta` and
normaliser :math:`Z(\eta)`; the prior has :math:`\eta_0`. Two questions are answered.

How much denser a mixture is than the prior at x. In its coordinate every conjugate distribution of one
parameter has two numbers :math:`\eta_i` and shares two functions t(x) with the prior, so that

.. math::
    \log \frac{\sum_i \omega_i p_i(x)}{p_0(x)} = \log \sum_i \omega_i \frac{p_i(x_0)}{p_0(x_0)}
    e^{(\eta_i - \eta_0) \cdot (t(x) - t(x_0))} \qquad (1)

Where a component is the prior, its ratio is constant, however far out. Summands are kept to seven digits.

R disjoint data sets that share their parameters alone. With independent draws :math:`\eta_r` of each mixture,

.. math::
    p(\theta \mid y_1, \dots, y_R) \propto \mathrm{E} \left[ w \, p(\theta; \eta) \right], \quad
    \eta = \sum_r \eta_r - (R - 1) \eta_0, \quad
    w = \frac{Z(\eta)\, Z(\eta_0)^{R - 1}}{Z(\eta_1) \cdots Z(\eta_R)} \qquad (2)

The weight w is the evidence that the latent statistics come from one parameter. Data sets are merged two at
a time, in a tree (Lindsten et al., JCGS 26, 2017); each draw of one meets ``PARTNERS`` of the other. This is
exact as the number of draws grows; where fewer than ``FEWEST_EFFECTIVE`` count, the product is refused:

.. math:: n_{\text{eff}} = 1 / \sum_i \bar w_i^2, \qquad \sum_i \bar w_i = 1 \qquad (3)

============ ================ ========================================= ==========================
symbol       in the code      meaning                                   shape
============ ================ ========================================= ==========================
eta          ``eta``          natural parameters of draws               (n_particles, n_cells, k)
eta_i-eta_0  ``numbers``      of components, less those of the prior    (2, n_components)
t(x)-t(x_0)  ``rises``        the functions they multiply               (2, n)
w            ``weight``       importance weights of pairs               (n_shifts, n_particles, n_cells)
n_eff        ``effective``    effective draws                           (n_cells,)
============ ================ ========================================= ==========================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.adaptive_blocks import SLICE
from suffice.pipeline.math.distributions.composite import ConjugateMixture, PiecewiseTables
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution, BlockDirichlet
from suffice.pipeline.math.distributions.distribution import Distribution, coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.composite import Piece
    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, MixtureOfConjugates
    from suffice.typing import Floats, Rows

    Entries: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureRatio:
    """Made by ``MixtureRatio.of``.

    Attributes
    ----------
    start : ndarray of shape (n_components,), float64
        Log weights and ratios at one position.
    numbers : ndarray of shape (2, n_components), float64
        Those of all distributions less those of the prior.
    rises : callable
        Positions (n,) -> by how much the two functions are higher than at that position, (2, n).
    """

    start: Floats
    numbers: Floats
    rises: Callable[[Floats], Floats]

    @classmethod
    def of(cls, prior: Distribution, distributions: Distribution, log_weight: Floats) -> Self:
        """Take the prior, one distribution, and the components of the mixture with their log weights."""
        coordinate = coordinate_of(distributions)
        at = coordinate.centre[[int(np.argmax(log_weight))]]
        return cls(
            start=log_weight + coordinate.log_density(at) - coordinate_of(prior).log_density(at),
            # (1): t is the same for all, so numbers are subtracted, not densities.
            numbers=_numbers(distributions, at) - _numbers(prior, at),
            rises=_rises(distributions, at),
        )

    def __call__(self, position: Floats) -> Floats:
        """Log ratio at positions (n,)."""
        return self.of_classes(position, np.ones((len(self.start), 1), dtype=np.float32))[:, 0]

    def of_classes(self, position: Floats, members: NDArray[np.float32]) -> Floats:
        """Log ratios at positions (n,) of components by class: (n_components, n_classes), 0 or 1 each."""
        log_ratio, step = np.empty((len(position), members.shape[1])), max(1, SLICE // len(self.start))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            rises = self.rises(position).T
            for first in range(0, len(position), step):
                part = slice(first, first + step)
                terms = rises[part] @ self.numbers
                terms += self.start
                top = terms.max(axis=1, keepdims=True)
                terms -= top
                # Of what is between 0 and 1, seven digits are enough.
                parts = terms.astype(np.float32)
                log_ratio[part] = top + np.log(np.exp(parts, out=parts) @ members)
        return np.where(np.isnan(log_ratio), -np.inf, log_ratio)


def _numbers(distribution: Distribution, at: Floats) -> Floats:
    """Every distribution's two numbers."""
    if isinstance(distribution, NormalDistribution):
        # -(x - m)^2 / (2 s^2) = const + (m - x0) / s^2 (x - x0) - (x - x0)^2 / (2 s^2).
        precision = distribution.scale**-2.0
        return np.stack([(distribution.loc - at) * precision, precision])
    if isinstance(distribution, GammaDistribution):
        # Of x = log of a gamma: a x - b e^x = const + a (x - x0) - b e^x0 (e^(x - x0) - 1).
        return np.stack([distribution.concentration, distribution.rate * np.exp(at)])
    if isinstance(distribution, InverseGammaDistribution):
        # Of x = log of an inverse gamma: -a x - b e^-x, the same with x0 - x.
        return np.stack([distribution.concentration, distribution.scale * np.exp(-at)])
    if isinstance(distribution, BetaDistribution):
        return np.stack([distribution.concentration1, distribution.concentration0])
    raise TypeError(type(distribution).__name__)


def _rises(distribution: Distribution, at: Floats) -> Callable[[Floats], Floats]:
    """Return the functions that they multiply."""
    if isinstance(distribution, NormalDistribution):
        return lambda position: _parabola(position - at)
    if isinstance(distribution, GammaDistribution):
        return lambda position: _exponential(position - at)
    if isinstance(distribution, InverseGammaDistribution):
        return lambda position: _exponential(at - position)
    return lambda position: _logits(position - at, at)


def _parabola(distance: Floats) -> Floats:
    return np.stack([distance, -0.5 * distance * distance])


def _exponential(distance: Floats) -> Floats:
    return np.stack([distance, -np.expm1(distance)])


def _logits(distance: Floats, at: Floats) -> Floats:
    """Rises of the logs of a probability and of its complement from the logit `at`."""
    # log p(x) - log p(x0) = -log(1 + (1 - p0) (e^-(x - x0) - 1)), and likewise of 1 - p: no difference of
    # logs.
    rest = 1.0 / (1.0 + np.exp(at))
    return -np.stack([np.log1p(rest * np.expm1(-distance)), np.log1p(rest * np.exp(at) * np.expm1(distance))])


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
                # The error of (2) falls as one over the root of n_eff: more draws where few agree.
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
        # (2) with R = 2: eta = eta_1 + eta_2 - eta_0, and log w = log Z(eta) - log Z(eta_1) - log Z(eta_2).
        together = left + np.roll(right, shift, axis=0) - start
        weight[position] = _log_z(like, together) - log_z_left - np.roll(others, shift, axis=0)
    weight = np.exp(weight - np.max(weight, axis=(0, 1)))
    weight /= np.sum(weight, axis=(0, 1))
    # A draw that meets several partners counts once.
    by_left = np.sum(weight, axis=0)
    by_right = np.sum(
        [np.roll(part, -shift, axis=0) for part, shift in zip(weight, shifts, strict=True)], axis=0
    )
    # (3), of the data set whose draws are weighed less evenly.
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
        # Systematic resampling: one uniform number for all, so that counts differ from n w by less than 1.
        targets = (np.arange(size) + rng.random()) / size * ends[-1]
        chosen[:, cell] = rng.permutation(np.minimum(np.searchsorted(ends, targets), len(ends) - 1))
    return chosen
