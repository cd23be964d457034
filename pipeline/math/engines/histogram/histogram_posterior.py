r"""The posterior of a histogram's bins: expected counts, latent counts and shares, in every cell.

Model. The count of bin j is Poisson with mean :math:`\mu_j = w_j e^{x_j}`, or 0, and is released behind
discrete Laplace noise: once, several times, or as the sum of cells behind as many noises. Sums of Poisson
counts are Poisson, so that a sum of cells says of the law of all their records together what a cell says of
its own. Log intensities of ordered bins walk (``bin_walk``); an atom, a bin that is one value, has a log mean
of its own, level on the grid, or no records with the chance a half. The shares of the law that records come
from, and those of the records that were counted, are

.. math::
    p_j = \frac{\mu_j}{\sum_i \mu_i}, \qquad
    \hat p_j = \frac{k_j}{\sum_i k_i}. \qquad (1)

Where nothing is left to divide by, shares are those of the widths: nothing is known of them.

Method. Exact on a grid (``bin_grid``), by a filter forward and draws backward; latent counts given means are
exact draws (``emission``). A public N is not conditioned on: counts add up to what the noise leaves open.
Moments of shares are those of ``MOMENT_DRAWS`` draws, the same for the same release.

Symbols: :math:`\mu`: ``means``, (draws, n_cells, n_bins); k: ``counts``, likewise; y: ``totals.values``,
(n_cells, n_releases * n_bins).
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.engines.histogram import bin_walk
from suffice.pipeline.math.engines.histogram.bin_grid import SPACING, BinGrid, n_points_of
from suffice.pipeline.math.engines.histogram.bin_walk import STEPS, Filtered, first_state, transitions
from suffice.pipeline.math.engines.histogram.emission import Pieces, counts_given

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats, Mask, Rows

MOMENT_DRAWS = 1000
"""Draws that means and standard deviations of shares rest on."""
_NUMBERS = 1 << 23
"""Of one filter: 64 MB."""


class Bins(Protocol):
    """Public bins in order: the ends of each, and which are single values."""

    @property
    def lower(self) -> Sequence[float] | Floats:
        """Lower ends, (n_bins,), in the column's unit."""

    @property
    def upper(self) -> Sequence[float] | Floats:
        """Upper ends, (n_bins,); the lower one of an atom."""

    @property
    def is_atom(self) -> Sequence[bool] | Mask:
        """Whether a bin is a single value, (n_bins,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Cells of one grid, filtered.

    Attributes
    ----------
    cells : ndarray of int64
        Which they are.
    grid : BinGrid
    walk : Filtered
        Over the bins that are no atoms.
    atoms : ndarray of shape (n_cells, n_atoms, n_states), float64
        The posterior of each atom's state.
    """

    cells: Rows
    grid: BinGrid
    walk: Filtered
    atoms: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPosterior(Draws):
    """Shares of bins behind noisy counts, as a posterior shows them; made by ``histogram_posterior``.

    Attributes
    ----------
    totals : NoisyTotals
        A noisy count for every bin, of every release of the same rows.
    noises : int
        How many noises are in each count: those of the cells that are added up.
    lower, upper : ndarray of shape (n_bins,), float64
        Ends of the bins, in order.
    is_atom : ndarray of shape (n_bins,), bool
        Which bins are single values.
    n_prior : NPrior or None
        The prior of N; not used where it is fixed.
    steps : tuple of float
        The walk's standard deviations.
    spacing : float
        Between the grid's points.
    """

    totals: NoisyTotals
    lower: Floats
    upper: Floats
    is_atom: Mask
    n_prior: NPrior | None = None
    noises: int = 1
    steps: tuple[float, ...] = STEPS
    spacing: float = SPACING
    _moments: dict[str, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.totals.n_cells

    @property
    def width(self) -> Floats:
        """Widths of the bins, (n_bins,); of atoms the largest, which says where their grid lies."""
        width = self.upper - self.lower
        return np.where(self.is_atom, np.max(width, where=~self.is_atom, initial=0.0) or 1.0, width)

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""
        return replace(self, totals=self.totals.take(cells))

    def mean(self, parameter: str) -> Floats:
        """Means of shares."""
        return self._moment("mean")

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations of shares."""
        return self._moment("sd")

    def _moment(self, name: str) -> Floats:
        if not self._moments:
            drawn = self.sample(MOMENT_DRAWS, np.random.default_rng(0))["probability"]
            self._moments.update(mean=np.mean(drawn, axis=0), sd=np.std(drawn, axis=0))
        return self._moments[name]

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws of the law's shares, (draws, n_cells, n_bins)."""
        return {"probability": self.shares(self.means(draws, rng))}

    def shares(self, counts: Floats) -> Floats:
        """Return (1) of means or counts, (..., n_bins)."""
        total = np.sum(counts, axis=-1, keepdims=True)
        level = self.width / np.sum(self.width)
        return np.where(total > 0.0, counts / np.where(total > 0.0, total, 1.0), level)

    def means(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draw expected counts of all bins jointly, (draws, n_cells, n_bins)."""
        result = np.empty((draws, self.n_cells, len(self.lower)))
        for fitted in self.fitted():
            states = np.empty((draws, len(fitted.cells), len(self.is_atom)), dtype=np.int16)
            states[:, :, ~self.is_atom] = fitted.walk.drawn(draws, rng)
            states[:, :, self.is_atom] = _chosen(fitted.atoms, draws, rng)
            result[:, fitted.cells] = fitted.grid.means(states, rng)
        return result

    def counts(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Draw the counts of the records that were counted, given expected counts; shaped as these."""
        y, scale = self._noisy(), self.totals.scale_by_release
        if self.noises > 1:
            return counts_given(means, Pieces.of_sum(y[0], float(scale[0, 0]), self.noises), rng)
        return counts_given(means, Pieces.of_product(y, 1.0 / scale[:, None]), rng)

    def _noisy(self) -> Floats:
        """What was released, (n_releases, n_cells, n_bins)."""
        return np.swapaxes(self.totals.by_release, 0, 1)

    def expected_counts(self) -> tuple[Floats, Floats]:
        """Means and standard deviations of expected counts, (n_cells, n_bins) each, without draws.

        Exact but for where in the interval of a grid point they are: a thousandth of them or so.
        """
        mean, square = np.zeros((2, self.n_cells, len(self.lower)))
        for fitted in self.fitted():
            states = np.empty_like(fitted.grid.emission)
            states[:, ~self.is_atom] = fitted.walk.marginals()
            states[:, self.is_atom] = fitted.atoms
            first, second = fitted.grid.moments()
            mean[fitted.cells] = np.sum(states[:, :, :-1] * first, axis=2)
            square[fitted.cells] = np.sum(states[:, :, :-1] * second, axis=2)
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    def log_evidence(self) -> Floats:
        """Log probability of the released counts, (n_cells,)."""
        result = np.empty(self.n_cells)
        for fitted in self.fitted():
            walk = fitted.walk.log_evidence
            of_atoms = fitted.grid.emission[:, self.is_atom] @ first_state(len(fitted.grid.position))
            by_step = np.logaddexp.reduce(walk, axis=0) - np.log(len(walk))
            result[fitted.cells] = by_step + fitted.grid.log_largest + np.sum(np.log(of_atoms), axis=1)
        return result

    def fitted(self) -> Iterator[Fitted]:
        """Filter cells of equal grids together, a part at a time."""
        y, scale = self._noisy(), self.totals.scale_by_release
        n_points = n_points_of(y, scale, self.width, self.spacing, self.noises)
        for size in np.unique(n_points):
            alike = np.flatnonzero(n_points == size)
            n_kernels = len(bin_walk.KINDS) * len(self.steps)
            at_once = max(1, _NUMBERS // (n_kernels * scale.shape[1] * int(size + 1)))
            for first in range(0, len(alike), at_once):
                cells = alike[first : first + at_once]
                grid = BinGrid.of(y[:, cells], scale, self.width, int(size), self.spacing, self.noises)
                matrices = transitions(self.steps, grid.spacing, len(grid.position))
                atoms = grid.emission[:, self.is_atom] * first_state(len(grid.position))
                yield Fitted(
                    cells=cells,
                    grid=grid,
                    walk=Filtered.of(grid.emission[:, ~self.is_atom], matrices),
                    atoms=atoms / np.sum(atoms, axis=2, keepdims=True),
                )


def _chosen(probability: Floats, draws: int, rng: np.random.Generator) -> Cells:
    """Draw states of atoms, (draws, n_cells, n_atoms)."""
    n_states = probability.shape[2]
    ends = np.cumsum(probability.reshape(-1, n_states), axis=1)
    if not len(ends):
        return np.empty((draws, *probability.shape[:2]), dtype=np.int64)
    wanted = rng.random((draws, len(ends)))
    states = [
        np.searchsorted(row, column * row[-1], side="right")
        for row, column in zip(ends, wanted.T, strict=True)
    ]
    limited: Cells = np.minimum(np.stack(states, axis=1), n_states - 1)
    return limited.reshape(draws, *probability.shape[:2])


def histogram_posterior(
    totals: NoisyTotals, bins: Bins, n_prior: NPrior | None = None, *, noises: int = 1
) -> HistogramPosterior:
    """Return the posterior of a histogram's shares.

    Parameters
    ----------
    totals : NoisyTotals
        A noisy count for every bin, of one release or of several of the same rows: (n_cells, n_releases *
        n_bins).
    bins : Bins
        Public bins in order of their values, atoms among them.
    n_prior : NPrior, optional
        Stated in the posterior; it has no part in it.
    noises : int, >= 1
        How many noises are in each count, where cells are added up.

    Raises
    ------
    UsageError
        Where there are other counts than bins, or sums of cells in several releases.
    """
    lower, upper = (np.asarray(ends, dtype=np.float64) for ends in (bins.lower, bins.upper))
    if totals.releases > 1 and noises > 1:
        message = "a histogram of several cells together is of one release: ask of each release alone"
        raise UsageError(message)
    n_counts = totals.values.shape[1] // totals.releases
    if n_counts != len(lower):
        message = f"a histogram of {len(lower)} bins has as many counts, not {n_counts}"
        raise UsageError(message)
    is_atom: Any = np.asarray(bins.is_atom, dtype=np.bool_)
    return HistogramPosterior(
        totals=totals, lower=lower, upper=upper, is_atom=is_atom, n_prior=n_prior, noises=noises
    )
