"""Distributions of a mean and a variance whose joint density is known on rectangles, cell by cell.

Of sums that are known without noise it is the prior times their likelihood.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.engines.mean_variance.panels import (
    KNOTS,
    PANELS,
    cumulative,
    interpolation,
    node_weights,
    positions,
    thinned,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.mean_variance.panels import LogDensity, Panels
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import DensityOnGrid
    from suffice.typing import Cells, Floats

    Exists: TypeAlias = tuple[tuple[bool, bool], tuple[bool, bool]]
    """Whether there are a mean and a standard deviation of the mean, and of the variance."""

_END = 95.0
_HUGE, _TINY = 1e70, -320.0
_GRID = np.arange(-200.0, 200.5, 0.5)
_OCTAVES = np.exp2(np.arange(-40.0, 140.0, 0.5))


@dataclass(frozen=True, slots=True)
class Exact:
    """The log of likelihood and prior, but for a constant, of sums that are known, in half ranges."""

    prior: DensityOnGrid
    n: float
    total: float
    squares: float

    def __call__(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log densities at positions (n, p) and (n, q): (n, p, q)."""
        product = self.prior.log_density(mean, log_variance)
        if self.n > 0.0:
            average = self.total / self.n
            within = max(self.squares - self.total * average, 0.0)
            about = within + self.n * (np.clip(mean, -_HUGE, _HUGE) - average) ** 2
            scale = np.exp(-np.maximum(log_variance, _TINY))
            product = product - self.n * log_variance[:, None, :] / 2.0
            product = product - about[:, :, None] * scale[:, None, :] / 2.0
        return product

    @property
    def edges(self) -> tuple[Floats, Floats]:
        """Positions along both sides between which nothing but the product's own peak is narrow."""
        ladders = [[self.prior.edges[0]], [self.prior.edges[1]]]
        if self.n > 0.0:
            average = self.total / self.n
            variance = max(self.squares / self.n - average**2, 1e-12)
            ladders[0].append(average + math.sqrt(variance / self.n) * PANELS)
            ladders[1].append(math.log(variance) + math.sqrt(2.0 / self.n) * PANELS)
        first, second = (
            thinned(ladder, self.prior.first[side], self.prior.last[side])
            for side, ladder in enumerate(ladders)
        )
        return first, second


def exists(prior: DensityOnGrid, product: LogDensity) -> Exists:
    """Which moments exist: those of which the integrals fall towards the ends of the grid.

    Likelihoods are bounded, but for a variance of 0: what falls under the prior does under the posterior.
    """
    ends = [
        [sign for sign, is_open in zip((-1.0, 1.0), prior.is_open[0], strict=True) if is_open],
        [1.0] if prior.is_open[1][1] else [],
    ]
    of_mean, of_variance = (
        [
            all(
                _falls(prior, prior.log_density, side, sign, degree)
                or _falls(prior, product, side, sign, degree)
                for sign in ends[side]
            )
            for degree in (1.0, 2.0)
        ]
        for side in (0, 1)
    )
    return (of_mean[0], of_mean[1]), (of_variance[0], of_variance[1])


def _falls(prior: DensityOnGrid, density: LogDensity, side: int, sign: float, degree: float) -> bool:
    """Whether the integral of a power of a parameter falls towards an end of the grid."""
    if side == 0:
        logs = np.array([_END - 1.0, _END])
        across = np.unique(np.clip(_GRID, prior.lowest, prior.last[1]))
        value = density(sign * np.exp(logs)[None], across[None])[0]
        size = np.logaddexp.reduce(value, axis=1) + (degree + 1.0) * logs
    else:
        end = min(prior.last[1], 2.0 * _END)
        logs = np.array([end - 2.0, end])
        mean = np.concatenate([-_OCTAVES[::-1], _OCTAVES])
        mean = np.unique(np.clip(mean, prior.first[0], prior.last[0]))
        value = density(mean[None], logs[None])[0]
        size = np.logaddexp.reduce(value + np.log(np.gradient(mean))[:, None], axis=0) + degree * logs
    return bool(size[1] < size[0] or np.isneginf(size[1]))


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


_NEGLIGIBLE = 1e-13
_SLOTS = 2**16
_LARGEST_LOG = 690.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanVarianceDistribution:
    """Made by ``MeanVarianceDistribution.of``.

    Attributes
    ----------
    names : (str, str)
        The mean's and the variance's.
    centre, half_range : float
        What the positions' unit is, in the column's.
    means, sds : ndarray of shape (n_cells, 2), float64
        In the column's unit; NaN or infinite where there are none.
    cell : ndarray of shape (n_panels,), int64
        The cell that a rectangle is of; ascending.
    left, right : ndarray of shape (n_panels, 2), float64
        Corners, of mean and log variance.
    share : ndarray of shape (n_panels, POINTS, POINTS), float64
        Densities at the nodes times the area; of mass 1 in every cell.
    """

    names: tuple[str, str]
    centre: float
    half_range: float
    means: Floats
    sds: Floats
    cell: Cells
    left: Floats
    right: Floats
    share: Floats

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        unit: tuple[float, float],
        cells: Iterable[tuple[Panels, Exists]],
    ) -> Self:
        """Integrate in every cell; `unit` is the centre and the half range."""
        centre, half_range = unit
        parts, means, sds = [], [], []
        for number, (panels, exists) in enumerate(cells):
            share, _ = panels.shares()
            mass = np.einsum("ij,rij->r", node_weights(), share)
            moments = _moments(panels, share)
            means.append([mean if has[0] else np.nan for (mean, _), has in zip(moments, exists, strict=True)])
            sds.append([sd if has[1] else np.inf for (_, sd), has in zip(moments, exists, strict=True)])
            if not exists[1][0]:
                means[-1][1] = np.inf
            kept = mass > _NEGLIGIBLE
            parts.append((np.full(np.sum(kept), number), panels.left[kept], panels.right[kept], share[kept]))
        cell, left, right, shares = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(
            names=names,
            centre=centre,
            half_range=half_range,
            means=np.array([0.0 + centre, 0.0]) + np.array(means) * [half_range, half_range**2],
            sds=np.array(sds) * [half_range, half_range**2],
            cell=cell,
            left=left,
            right=right,
            share=shares,
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.names

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        kept = np.isin(self.cell, cells)
        return replace(
            self,
            means=self.means[cells],
            sds=self.sds[cells],
            cell=np.searchsorted(cells, self.cell[kept]),
            left=self.left[kept],
            right=self.right[kept],
            share=self.share[kept],
        )

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.means[:, self.names.index(parameter)]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.sds[:, self.names.index(parameter)]

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from the marginal distribution function; they rest on no draws."""
        side = self.names.index(parameter)
        marginal = self._marginal(side)
        mass = np.maximum(np.diff(marginal @ cumulative().T, axis=1), 0.0)
        ends = np.linspace(0.0, 1.0, KNOTS + 1)
        edges = self.left[:, side, None] + (self.right - self.left)[:, side, None] * ends
        starts = np.searchsorted(self.cell, np.arange(len(self.means) + 1))
        blocks = [
            _quantiles(edges[first:last], mass[first:last], np.asarray(q))
            for first, last in itertools.pairwise(starts)
        ]
        return self._parameter(side, np.array(blocks))

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities at points (n_cells, n_points), from the rectangles that they lie beside."""
        side = self.names.index(parameter)
        if side == 0:
            position, slope = (points - self.centre) / self.half_range, np.full(points.shape, self.half_range)
        else:
            slope = np.maximum(points, np.finfo(np.float64).tiny)
            position = np.log(slope / self.half_range**2)
        marginal, left = self._marginal(side), self.left[:, side]
        width = self.right[:, side] - left
        starts = np.searchsorted(self.cell, np.arange(len(self.means) + 1))
        values = np.zeros(points.shape)
        for row, (first, last) in enumerate(itertools.pairwise(starts)):
            share = (position[row] - left[first:last, None]) / width[first:last, None]
            panel, point = np.nonzero((share >= 0.0) & (share < 1.0))
            part = interpolation(share[panel, point])
            value = np.einsum("np,np->n", part, marginal[first + panel]) / width[first + panel]
            values[row] = np.bincount(point, value, points.shape[1])
        density: Floats = np.where(points > 0.0, 1.0, side == 0) * np.maximum(values, 0.0) / slope
        return density

    def _marginal(self, side: int) -> Floats:
        """Densities of one parameter at the nodes of every rectangle, times its width: (n_panels, POINTS)."""
        weights = np.sum(node_weights(), axis=0)
        marginal: Floats = np.einsum("rij,j->ri" if side == 0 else "rji,j->ri", self.share, weights)
        return marginal

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        cells = len(self.means)
        ends = np.cumsum(np.einsum("ij,rij->r", node_weights(), self.share))
        starts = np.searchsorted(self.cell, np.arange(cells + 1))
        below = np.concatenate([[0.0], ends])
        drawn = np.empty((2, draws * cells))
        for start in range(0, drawn.shape[1], _SLOTS):
            cell = np.arange(start, min(start + _SLOTS, drawn.shape[1])) % cells
            first, last = below[starts[cell]], below[starts[cell + 1]]
            chosen = np.searchsorted(ends, first + rng.random(len(cell)) * (last - first), side="right")
            chosen = np.clip(chosen, starts[cell], starts[cell + 1] - 1)
            density = self.share[chosen]
            along = _inverse(np.einsum("rij,j->ri", density, np.sum(node_weights(), axis=0)), rng)
            given = np.einsum("ri,rij->rj", interpolation(along), density)
            position = np.stack([along, _inverse(given, rng)], axis=1)
            corner = self.left[chosen]
            drawn[:, start : start + len(cell)] = (corner + (self.right[chosen] - corner) * position).T
        return {
            name: self._parameter(side, drawn[side].reshape(draws, cells))
            for side, name in enumerate(self.names)
        }

    def _parameter(self, side: int, position: Floats) -> Floats:
        """Parameters in the column's unit."""
        if side == 0:
            return self.centre + self.half_range * position
        return self.half_range**2 * np.exp(position)


def _moments(panels: Panels, share: Floats) -> list[tuple[float, float]]:
    """Mean and standard deviation of mean and variance, in half ranges, as if they existed."""
    first, second = positions(panels.left, panels.right)
    moments = []
    variance = np.exp(np.minimum(second, _LARGEST_LOG))
    mass = node_weights() * share
    root = np.sqrt(mass)
    for values in (first[:, :, None], variance[:, None, :]):
        mean = float(np.sum(mass * values))
        # Far out, where the share is next to nothing, squares of the values alone would overflow.
        with np.errstate(over="ignore"):
            square = float(np.sum((root * (values - mean)) ** 2))
        moments.append((mean, float(np.sqrt(square))))
    return moments


def _quantiles(edges: Floats, mass: Floats, q: Floats) -> Floats:
    """Quantiles of pieces (n, KNOTS), in each of which mass is spread evenly."""
    low, high, mass = edges[:, :-1].ravel(), edges[:, 1:].ravel(), mass.ravel() / np.sum(mass)
    positions_ = np.unique(edges)

    def below(index: NDArray[np.int64]) -> Floats:
        share = np.clip((positions_[index][:, None] - low) / (high - low), 0.0, 1.0)
        total: Floats = share @ mass
        return total

    first, last = np.zeros(len(q), dtype=np.int64), np.full(len(q), len(positions_) - 1)
    while np.any(last - first > 1):
        middle = (first + last) // 2
        less = below(middle) < q
        first, last = np.where(less, middle, first), np.where(less, last, middle)
    at_first, at_last = below(first), below(last)
    step = np.divide(q - at_first, at_last - at_first, out=np.zeros(len(q)), where=at_last > at_first)
    position: Floats = positions_[first] + np.clip(step, 0.0, 1.0) * (positions_[last] - positions_[first])
    return position


def _inverse(values: Floats, rng: np.random.Generator) -> Floats:
    """Draws 0..1 from densities given at nodes, (n, POINTS) -> (n,)."""
    steps = np.maximum(np.diff(values @ cumulative().T, axis=1), 0.0)
    steps[np.sum(steps, axis=1) <= 0.0] = 1.0
    function = np.cumsum(steps, axis=1)
    wanted = rng.random(len(values)) * function[:, -1]
    index = np.minimum(np.sum(function <= wanted[:, None], axis=1), KNOTS - 1)
    rows = np.arange(len(values))
    step = steps[rows, index]
    part = np.divide(wanted - (function[rows, index] - step), step, out=np.zeros_like(step), where=step > 0.0)
    position: Floats = (index + np.clip(part, 0.0, 1.0)) / KNOTS
    return position
