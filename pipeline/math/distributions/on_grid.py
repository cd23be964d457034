"""Distributions of one parameter whose density is known at the nodes of a quadrature rule, cell by cell."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.quadrature import POINTS, integral_rule, interpolate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats

    Cell: TypeAlias = tuple[Floats, Floats, Callable[[Floats], Floats]]

_KNOTS = 32
"""Steps of the distribution function in a panel."""
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class GriddedDistribution:
    """Made by ``GriddedDistribution.of``.

    Attributes
    ----------
    name : str
        The parameter's.
    line : Line
        Where knots are positions.
    means, sds : ndarray of shape (n_cells,), float64
        Infinite where the prior's tails leave none; a mean of both signs is NaN then.
    position, below : ndarray of shape (n_knots,), float64
        Knots cell by cell, and the distribution function there plus the number of the cell.
    cell : ndarray of shape (n_panels,), int64
        The cell that a panel is of; ascending.
    left, right : ndarray of shape (n_panels,), float64
        Ends of panels, as positions.
    height : ndarray of shape (n_panels, POINTS), float64
        Densities of positions at the nodes of the rule in every panel.
    log_mass : ndarray of shape (n_cells,), float64
        Log of the integral of what was given as the density.
    log_evidence : ndarray of shape (n_cells,), float64, or None
        Where that density is a likelihood times a prior with a known normaliser.
    """

    name: str
    line: Line
    means: Floats
    sds: Floats
    position: Floats
    below: Floats
    cell: NDArray[np.int64]
    left: Floats
    right: Floats
    height: Floats
    log_mass: Floats
    log_evidence: Floats | None = None

    @classmethod
    def of(cls, name: str, line: Line, cells: Iterable[Cell]) -> Self:
        """Integrate in every cell: panels from left to right, and the log density but for a constant."""
        means, sds, position, below, log_mass = [], [], [], [], []
        cell_of, lefts, rights, height = [], [], [], []
        for cell, (left, right, log_density) in enumerate(cells):
            nodes, weights = integral_rule(left, right)
            log_value = log_density(nodes.ravel()).reshape(nodes.shape)
            value = np.exp(log_value - np.max(log_value))
            mass = value * weights
            total = np.sum(mass)
            log_mass.append(float(np.max(log_value) + np.log(total)))
            mean, sd = _moments(line, nodes, mass / total, log_value)
            means.append(mean)
            sds.append(sd)
            kept = np.sum(mass, axis=1) > _NEGLIGIBLE * total
            steps = np.diff(value[kept] @ _cumulative().T * (right - left)[kept, None] / 2.0, axis=1)
            steps = np.maximum(steps, 0.0)
            ends = np.cumsum(steps).reshape(steps.shape)
            starts = np.concatenate([[0.0], ends[:-1, -1]])
            function = np.concatenate([starts[:, None], ends], axis=1) / ends[-1, -1]
            share = np.linspace(0.0, 1.0, _KNOTS + 1)
            position.append((left[kept, None] + (right - left)[kept, None] * share).ravel())
            below.append(cell + np.minimum(function, 1.0).ravel())
            cell_of.append(np.full(int(np.sum(kept)), cell))
            lefts.append(left[kept])
            rights.append(right[kept])
            height.append(value[kept] / ends[-1, -1])
        return cls(
            name=name,
            line=line,
            means=np.array(means),
            sds=np.array(sds),
            position=np.concatenate(position),
            below=np.concatenate(below),
            cell=np.concatenate(cell_of),
            left=np.concatenate(lefts),
            right=np.concatenate(rights),
            height=np.concatenate(height),
            log_mass=np.array(log_mass),
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.means

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations; infinite where there is none."""
        return self.sds

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from the distribution function; they rest on no draws."""
        return self._inverse(np.broadcast_to(np.asarray(q), (len(self.means), len(q))).T).T

    def cdf(self, points: Floats) -> Floats:
        """Distribution functions at points (n_cells, n_points), linear between knots."""
        starts = np.searchsorted(self.cell, np.arange(len(self.means) + 1)) * (_KNOTS + 1)
        values = np.empty(points.shape)
        for row, (first, last) in enumerate(itertools.pairwise(starts)):
            position = np.clip(self.line.position(points[row]), *self.line.ends)
            values[row] = np.interp(position, self.position[first:last], self.below[first:last] - row)
        return values

    def take(self, cells: NDArray[np.int64]) -> Self:
        """Return the distribution of some cells, ascending."""
        kept = np.isin(self.cell, cells)
        knots = np.repeat(kept, _KNOTS + 1)
        cell = np.searchsorted(cells, self.cell[kept])
        return replace(
            self,
            means=self.means[cells],
            sds=self.sds[cells],
            position=self.position[knots],
            below=self.below[knots] + np.repeat(cell - self.cell[kept], _KNOTS + 1),
            cell=cell,
            left=self.left[kept],
            right=self.right[kept],
            height=self.height[kept],
            log_mass=self.log_mass[cells],
            log_evidence=None if self.log_evidence is None else self.log_evidence[cells],
        )

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points), from those at the nodes."""
        starts = np.searchsorted(self.cell, np.arange(len(self.means) + 1))
        values = np.zeros(points.shape)
        for row, (first, last) in enumerate(itertools.pairwise(starts)):
            log_height = partial(self._log_height, slice(first, last))
            values[row] = self.line.density(points[row], log_height)
        return values

    def _log_height(self, panels: slice, position: Floats) -> Floats:
        """Log densities of positions of one cell, which has these panels."""
        left, right, height = self.left[panels], self.right[panels], self.height[panels]
        panel = np.clip(np.searchsorted(left, position, side="right") - 1, 0, len(left) - 1)
        inside = np.clip(position, left[panel], right[panel])
        share = (inside - left[panel]) / (right[panel] - left[panel])
        value = np.maximum(interpolate(height[panel], share), 0.0)
        # Far out densities fall as exponentials do, of which the logarithms are smoother.
        known = np.all(height > 0.0, axis=1)[panel]
        value[known] = np.exp(interpolate(np.log(height[panel[known]]), share[known]))
        # Beyond the outermost panels there is next to nothing, spread evenly up to an end of the domain.
        to_an_end = np.isfinite(np.where(position < inside, *self.line.domain))
        value = np.where((position == inside) | to_an_end, value, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(value) + self.line.log_slope(position) - self.line.log_slope(inside)

    def average(self, function: Callable[[Floats], Floats], cells: NDArray[np.int64]) -> Floats:
        """Averages in some cells of a function of positions on the line, taken between knots."""
        mass = np.diff(self.below)
        value = function((self.position[1:] + self.position[:-1]) / 2.0)
        # Between the last knot of a cell and the first of the next there is none.
        averages = np.bincount(self.below[:-1].astype(np.int64), mass * value, len(self.means))
        return np.asarray(averages[cells], dtype=np.float64)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        return {self.name: self._inverse(rng.random((draws, len(self.means))))}

    def _inverse(self, level: Floats) -> Floats:
        """Parameters below which there is this much, by cells on the last axis."""
        wanted = level + np.arange(len(self.means))
        after = np.clip(np.searchsorted(self.below, wanted, side="right"), 1, len(self.below) - 1)
        low, high = self.below[after - 1], self.below[after]
        share = np.divide(wanted - low, high - low, out=np.zeros_like(wanted), where=high > low)
        start = self.position[after - 1]
        return self.line.parameter(start + share * (self.position[after] - start))


def _moments(line: Line, nodes: Floats, share: Floats, log_value: Floats) -> tuple[float, float]:
    """Mean and standard deviation, where the integrals converge towards the ends of the line."""
    parameter = line.parameter(nodes)
    exists = [
        all(_converges(line, nodes, log_value, degree, end) for end in (0, -1)) for degree in (1.0, 2.0)
    ]
    if not exists[0]:
        return (np.nan if line.domain[0] < 0.0 else np.inf), np.inf
    mean = float(np.sum(share * parameter))
    if not exists[1]:
        return mean, np.inf
    return mean, float(np.sqrt(np.sum(share * (parameter - mean) ** 2)))


def _converges(line: Line, nodes: Floats, log_value: Floats, degree: float, end: int) -> bool:
    """Whether the integral of a power of the parameter falls towards an end where numbers end."""
    if not np.isinf(line.domain[end]):
        return True
    positions, values = nodes[end, [0, -1]], log_value[end, [0, -1]]
    near, far = (0, 1) if end else (1, 0)
    if abs(positions[far]) < 0.5 * abs(line.ends[end]) or values[far] == -np.inf:
        return True
    size = np.log(np.abs(line.parameter(positions))) * degree
    if line.domain[0] < 0.0:
        size += np.log(np.abs(positions))
    return bool((values + size)[far] < (values + size)[near])


@cache
def _cumulative() -> Floats:
    """Integrals from -1 to evenly spaced positions of the polynomials that are 1 at one node of the rule."""
    nodes, _ = np.polynomial.legendre.leggauss(POINTS)
    ends = np.linspace(-1.0, 1.0, _KNOTS + 1)
    inner, weights = integral_rule(np.full(_KNOTS + 1, -1.0), ends)
    vander = np.polynomial.legendre.legvander(inner, POINTS - 1) * weights[:, :, None]
    inverse = np.linalg.inv(np.polynomial.legendre.legvander(nodes, POINTS - 1))
    matrix: Floats = np.sum(vander, axis=1) @ inverse
    return matrix
