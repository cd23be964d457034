r"""Marginal posteriors of cells' parameters, as masses of places on a line.

Method. Moments are sums over places. Distribution functions are sums over ``_FINER`` times as many places, by
cubics through the masses, and chords between these; places at either end that have less than ``_NOTHING`` of
the mass are left out.

Symbols: x: ``position``; posterior probability of what a place stands for: ``mass``, (n_cells, n_positions).
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Cells, Floats

_FINER = 8
_BLOCK = 256
_NOTHING, _PADDING = 1e-18, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMarginal:
    """The distribution of one parameter in every cell, as masses at nodes.

    Attributes
    ----------
    line : Line
    position, mass : ndarray of shape (n_cells, n_positions), float64
        Nodes on the line, and what of the posterior each stands for.
    spacing : ndarray of shape (n_cells, n_positions), float64
        Masses over it are densities.
    """

    line: Line
    position: Floats
    mass: Floats
    spacing: Floats

    def mean(self) -> Floats:
        """Means."""
        mean: Floats = np.sum(self.mass * self.line.parameter(self.position), axis=1)
        return mean

    def sd(self) -> Floats:
        """Posterior standard deviations."""
        gap = self.line.parameter(self.position) - self.mean()[:, None]
        return np.asarray(np.sqrt(np.sum(self.mass * gap**2, axis=1)))

    def quantiles(self, q: Sequence[float]) -> Floats:
        """Quantiles (n_cells, n_levels), from the distribution function; they rest on no draws."""
        result = np.empty((len(self.position), len(q)))
        first, width = _held(self.mass)
        # Cells that are about as wide as each other together.
        order = np.argsort(width, kind="stable")
        for start in range(0, len(order), _BLOCK):
            cells = order[start : start + _BLOCK]
            n = int(width[cells[-1]])
            columns = np.minimum(first[cells], self.mass.shape[1] - n)[:, None] + np.arange(n)
            within = cells[:, None], columns
            result[cells] = _quantiles(self.position[within], self.mass[within], np.asarray(q))
        return self.line.parameter(result)

    def density(self, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        height = self.mass / self.spacing
        values = np.zeros(points.shape)
        for cell, row in enumerate(points):
            known = self.position[cell], height[cell]

            def log_density(position: Floats, known: tuple[Floats, Floats] = known) -> Floats:
                with np.errstate(divide="ignore"):
                    return np.asarray(np.log(np.interp(position, *known, left=0.0, right=0.0)))

            values[cell] = self.line.density(row, log_density)
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMarginals:
    """What is known of every cell that has one parameter.

    Attributes
    ----------
    name : str
        The parameter's.
    line : Line
    position, mass, spacing : ndarray of shape (n_cells, n_positions), float64
        As of ``NodeMarginal``.
    own_share : ndarray of shape (n_cells,), float64
        How much of an answer is the cell's own, in 0..1.
    outside : ndarray of shape (n_cells,), float64
        How probable it is that a cell does not follow the others.
    """

    name: str
    line: Line
    position: Floats
    mass: Floats
    spacing: Floats
    own_share: Floats
    outside: Floats

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.position)

    @property
    def _marginal(self) -> NodeMarginal:
        return NodeMarginal(line=self.line, position=self.position, mass=self.mass, spacing=self.spacing)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._marginal.mean()

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._marginal.sd()

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles; they rest on no draws."""
        return self._marginal.quantiles(q)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        return self._marginal.density(points)


def _quantiles(position: Floats, mass: Floats, q: Floats) -> Floats:
    """Return quantiles of some cells on the line, (n_cells, len(q))."""
    place, below = _finer(position, mass)
    n = below.shape[1]
    flat = (below + np.arange(len(below))[:, None]).ravel()
    wanted = q + np.arange(len(below))[:, None]
    after = np.searchsorted(flat, wanted)
    # Before the first place of a cell is the last of the one before.
    start = np.arange(len(below))[:, None] * n
    after = np.clip(after, start + 1, start + n - 1)
    low, high = flat[after - 1], flat[after]
    share = np.divide(wanted - low, high - low, out=np.zeros_like(wanted), where=high > low)
    left, right = place.ravel()[after - 1], place.ravel()[after]
    result: Floats = left + np.clip(share, 0.0, 1.0) * (right - left)
    return result


def _held(mass: Floats) -> tuple[Cells, Cells]:
    """Return the first place of each cell that has mass, and how many places hold it, with a few more."""
    n = mass.shape[1]
    is_in = mass > _NOTHING
    first = np.maximum(np.argmax(is_in, axis=1) - _PADDING, 0)
    last = np.minimum(n - np.argmax(is_in[:, ::-1], axis=1) + _PADDING, n)
    return first, last - first


def _finer(position: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return places on the line and distribution functions there, (n_cells, n_fine)."""
    n = position.shape[1]
    # The mass of a node is spread over half a step on either side.
    place = (np.arange(n * _FINER) + 0.5) / _FINER - 0.5
    first = np.clip(np.floor(place).astype(np.int64) - 1, 0, n - 4)
    taps = cubic(place - first)
    fine = np.zeros((2, len(mass), n * _FINER))
    for tap, weight in enumerate(taps):
        fine[0] += position[:, first + tap] * weight
        fine[1] += mass[:, first + tap] * weight
    finer_mass = np.maximum(fine[1], 0.0)
    below = np.cumsum(finer_mass, axis=1)
    # To the middle of each fine step.
    below = (below - finer_mass / 2.0) / below[:, -1:]
    return np.maximum.accumulate(fine[0], axis=1), below
