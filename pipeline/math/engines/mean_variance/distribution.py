r"""Joint densities of a mean and a variance on rectangles, and the distributions that they are.

Model: a position is (x, lambda), a mean in half ranges about the centre and a log variance. A density f of
it is known at any position. The question is its integrals: moments, marginal quantiles and densities,
draws.

.. math::
    Z = \sum_r |r| \sum_{ij} \omega_i \omega_j f(x_{ri}, \lambda_{rj}), \qquad
    f(x, \lambda) \approx \sum_{kl} c_{kl} P_k(x) P_l(\lambda) \quad \text{in } r \qquad (1)

    F(x) = \frac 1 Z \int_{-\infty}^x \int f \, d\lambda \, dx \qquad (2)

Method and error: the plane is cut into rectangles r with Gauss nodes, 8 x 8. A rectangle is judged by its
last Legendre coefficients c along either side, in shares of all mass, and cut in two across the side along
which they are large, until none is above 3e-5 (``_TOLERANCE``); with it f is a polynomial wherever it
matters. A rectangle whose corners lie 45 nats below the highest is left out, unless it is as large as that.
Distribution functions (2) are exact integrals of the polynomials at 16 knots a rectangle and linear between
them. Which moments exist is decided by who has the density (``product``), not by the sums, which are
finite.

====== ================ ====================================== ============================ ================
symbol in the code      meaning                                shape                        unit
====== ================ ====================================== ============================ ================
r      ``left``,        corners of rectangles                  (n_panels, 2)                half ranges,
       ``right``                                                                            none
f      ``log_value``    log density at the nodes               (n_panels, 8, 8)             nats
|r| f  ``share``        density times area, of mass 1          (n_panels, 8, 8)             none
omega  ``node_weights`` weights of the nodes                   (8, 8)                       none
====== ================ ====================================== ============================ ================
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.typing import Cells, Floats

    LogDensity: TypeAlias = Callable[[Floats, Floats], Floats]
    """Positions (n, p) and (n, q) along both sides of n rectangles -> log densities (n, p, q)."""
    Exists: TypeAlias = tuple[tuple[bool, bool], tuple[bool, bool]]
    """Whether there are a mean and a standard deviation of the mean, and of the variance."""

POINTS = 8
KNOTS = 16
"""Steps of a distribution function along a side of a rectangle."""
_TOLERANCE = 3e-5
"""The last coefficients of a rectangle, in shares of all mass."""
_MOST_ROUNDS = 30
_MOST_PANELS = 4000
_NATS = 45.0
"""A rectangle whose corners lie so much below the highest is left out, unless it is as large as that."""
_FLAT = 0.5
_ZOOMS = 200
_RUNG = 0.5
PANELS = np.array([-12.0, -8.0, -5.0, -2.5, 0.0, 2.5, 5.0, 8.0, 12.0])


class NowhereError(Exception):
    """A density is zero wherever it was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Rectangles and a density at their Gauss nodes.

    Attributes
    ----------
    left, right : ndarray of shape (n_panels, 2), float64
        Lower and upper corners.
    log_value : ndarray of shape (n_panels, POINTS, POINTS), float64
        Log density at the nodes, the first coordinate first.
    """

    left: Floats
    right: Floats
    log_value: Floats

    @classmethod
    def of(cls, density: LogDensity, left: Floats, right: Floats) -> Self:
        """Cut rectangles until the density is a polynomial in each."""
        value = density(*positions(left, right))
        for _ in range(_MOST_ROUNDS):
            rough = _roughness(left, right, value)
            cut = np.any(rough > _TOLERANCE, axis=1)
            if not np.any(cut) or len(left) > _MOST_PANELS:
                break
            # Halving divides the last of 8 coefficients of a smooth function by some 2^7.
            lower, upper = halves(left[cut], right[cut], np.argmax(rough[cut], axis=1))
            left, right = np.concatenate([left[~cut], lower]), np.concatenate([right[~cut], upper])
            value = np.concatenate([value[~cut], density(*positions(lower, upper))])
        return cls(left=left, right=right, log_value=value)

    def shares(self) -> tuple[Floats, float]:
        """Densities times areas, (n_panels, POINTS, POINTS), of mass 1 in all; and the log of the mass."""
        top = float(np.max(self.log_value))
        value = np.exp(self.log_value - top)
        _, weights = _rule()
        # Nodes stand for density times area.
        value *= np.prod(self.right - self.left, axis=1)[:, None, None]
        # Z of (1).
        total = float(np.einsum("i,j,rij->", weights, weights, value))
        return value / total, top + float(np.log(total))


def halves(left: Floats, right: Floats, along: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Cut every rectangle in two across one side."""
    rows = np.arange(len(left))
    middle = (left[rows, along] + right[rows, along]) / 2.0
    first, second = right.copy(), left.copy()
    first[rows, along] = second[rows, along] = middle
    return np.concatenate([left, second]), np.concatenate([first, right])


def positions(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Gauss nodes along both sides, each (n_panels, POINTS)."""
    nodes, _ = _rule()
    first, second = ((left + right) / 2.0)[:, :, None].transpose(1, 0, 2) + ((right - left) / 2.0).T[
        :, :, None
    ] * nodes
    return first, second


def around(density: LogDensity, edges: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Rectangles that a density may matter in: between the edges, and about its highest place.

    Returns
    -------
    left, right : ndarray of shape (n_panels, 2), float64

    Raises
    ------
    NowhereError
    """
    peak, scale = highest(density, edges)
    finer = [
        thinned([given, peak[side] + scale[side] * PANELS], given[0], given[-1])
        for side, given in enumerate(edges)
    ]
    value = density(finer[0][None], finer[1][None])[0]
    corner = np.maximum(
        np.maximum(value[:-1, :-1], value[1:, :-1]), np.maximum(value[:-1, 1:], value[1:, 1:])
    )
    # A rectangle may matter by its height, or by its height times its area.
    area = np.log(np.diff(finer[0]))[:, None] + np.log(np.diff(finer[1]))
    kept = (corner > np.max(corner) - _NATS) | (corner + area > np.max(corner + area) - _NATS)
    first, second = np.nonzero(kept)
    left = np.stack([finer[0][first], finer[1][second]], axis=1)
    return left, np.stack([finer[0][first + 1], finer[1][second + 1]], axis=1)


def overlaps(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Rectangles that some and others have in common; each are corners, (n, 2)."""
    left = np.maximum(first[0][:, None], second[0])
    right = np.minimum(first[1][:, None], second[1])
    both = np.all(left < right, axis=2)
    return left[both], right[both]


def covering(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Those of some rectangles that have something in common with others."""
    left = np.maximum(first[0][:, None], second[0])
    right = np.minimum(first[1][:, None], second[1])
    kept = np.any(np.all(left < right, axis=2), axis=1)
    return first[0][kept], first[1][kept]


def thinned(ladders: Sequence[Floats], first: float, last: float) -> Floats:
    """Edges of several ladders from first to last: those of wide rungs only where no others are as near."""
    ladders = [ladder[(ladder > first) & (ladder < last)] for ladder in ladders]
    gap = [np.gradient(ladder) if len(ladder) > 1 else np.full(len(ladder), np.inf) for ladder in ladders]
    return finest(np.concatenate(ladders), np.concatenate(gap), first, last)


def finest(edge: Floats, gap: Floats, first: float, last: float) -> Floats:
    """Of edges, each of such a gap, those to which none of a smaller gap is near, from first to last."""
    kept = np.array([first, last])
    for number in np.argsort(gap, kind="stable"):
        # Edges near finer ones add rectangles, and nothing else.
        if np.min(np.abs(kept - edge[number])) > _RUNG * min(gap[number], last - first):
            kept = np.append(kept, edge[number])
    return np.sort(kept)


def highest(density: LogDensity, edges: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Where a density is highest, from the best corner on, and steps along which it hardly falls there."""
    value = density(edges[0][None], edges[1][None])[0]
    if not np.any(np.isfinite(value)):
        raise NowhereError
    start = np.unravel_index(int(np.argmax(value)), value.shape)
    ends = np.array([[given[0], given[-1]] for given in edges])
    position = np.array([given[at] for given, at in zip(edges, start, strict=True)])
    step = np.array(
        [max(np.diff(given)[max(at - 1, 0) : at + 1]) for given, at in zip(edges, start, strict=True)]
    )
    offsets = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    for _ in range(_ZOOMS):
        near = np.clip(position[:, None] + step[:, None] * offsets, ends[:, :1], ends[:, 1:])
        value = density(near[:1], near[1:])[0]
        best = np.unravel_index(int(np.argmax(value)), value.shape)
        top = value[best]
        moved = np.array([near[0, best[0]], near[1, best[1]]])
        if np.any(moved != position) and top > value[2, 2]:
            position = moved
            continue
        # Steps are halved until the density falls by less than half a nat along each: its width there.
        falls = np.array([top - min(value[1, 2], value[3, 2]), top - min(value[2, 1], value[2, 3])])
        if np.all(falls <= _FLAT):
            break
        step = np.where(falls > _FLAT, step / 2.0, step)
    return position, step


def _roughness(left: Floats, right: Floats, log_value: Floats) -> Floats:
    """The last coefficients along either side, in shares of all mass: (n_panels, 2)."""
    value: Floats = np.exp(log_value - np.max(log_value))
    value *= np.prod(right - left, axis=1)[:, None, None]
    _, weights = _rule()
    value /= float(np.sum(np.einsum("i,j,rij->r", weights, weights, value)))
    # What a polynomial leaves out is about as large as its last coefficients; of an even function one is 0.
    last = _coefficients()[-2:]
    along_first = np.einsum("ci,rij->rcj", last, value)
    along_second = np.einsum("cj,rij->rci", last, value)
    return np.stack(
        [np.sum(np.abs(along_first), axis=1) @ weights, np.sum(np.abs(along_second), axis=1) @ weights],
        axis=1,
    )


@cache
def _rule() -> tuple[Floats, Floats]:
    """Nodes on -1..1, and weights that sum to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    return nodes, weights / 2.0


@cache
def _coefficients() -> Floats:
    """Legendre coefficients (of each degree) from values at the nodes."""
    nodes, _ = _rule()
    matrix = np.linalg.inv(np.polynomial.legendre.legvander(nodes, POINTS - 1))
    return np.asarray(matrix, dtype=np.float64)


def coefficients(value: Floats) -> Floats:
    """Coefficients of products of Legendre polynomials from values at the nodes, both (n, POINTS, POINTS)."""
    return np.asarray(_coefficients() @ value @ _coefficients().T, dtype=np.float64)


def polynomials(share: Floats) -> Floats:
    """Legendre polynomials at positions 0..1 along a side: (..., POINTS)."""
    return np.asarray(np.polynomial.legendre.legvander(2.0 * share - 1.0, POINTS - 1), dtype=np.float64)


def interpolation(share: Floats) -> Floats:
    """What values at the nodes count at positions 0..1 along a side: (n, POINTS)."""
    return np.asarray(polynomials(share) @ _coefficients(), dtype=np.float64)


@cache
def cumulative() -> Floats:
    """Integrals from 0 to even positions of polynomials that are 1 at one node, (KNOTS + 1, POINTS)."""
    nodes, weights = _rule()
    ends = np.linspace(0.0, 1.0, KNOTS + 1)
    inner = ends[:, None] * (nodes + 1.0) / 2.0
    parts = interpolation(inner.ravel()).reshape(KNOTS + 1, POINTS, POINTS)
    # int_0^e p = e int_0^1 p(e s) ds, by the same Gauss rule: exact for a polynomial of degree 7.
    matrix: Floats = ends[:, None] * np.einsum("j,kji->ki", weights, parts)
    return matrix


def node_weights() -> Floats:
    """Weights of the nodes of a unit square, (POINTS, POINTS)."""
    _, weights = _rule()
    return np.outer(weights, weights)


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
        # (2) between knots; polynomials may dip below 0 where there is nothing.
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
            # The density of v is that of log v over v.
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
        # The integral over the other side, by the Gauss rule.
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
            # A draw of x from its marginal in the rectangle, then of lambda from f(x, .).
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
            # Var = E (x - E x)^2, with the root of the mass inside of the square.
            square = float(np.sum((root * (values - mean)) ** 2))
        moments.append((mean, float(np.sqrt(square))))
    return moments


def _quantiles(edges: Floats, mass: Floats, q: Floats) -> Floats:
    """Quantiles of pieces (n, KNOTS), in each of which mass is spread evenly."""
    low, high, mass = edges[:, :-1].ravel(), edges[:, 1:].ravel(), mass.ravel() / np.sum(mass)
    positions_ = np.unique(edges)

    def below(index: NDArray[np.int64]) -> Floats:
        # Rectangles overlap along a side: each adds what lies below.
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
    # The inverse of the distribution function, linear between knots.
    wanted = rng.random(len(values)) * function[:, -1]
    index = np.minimum(np.sum(function <= wanted[:, None], axis=1), KNOTS - 1)
    rows = np.arange(len(values))
    step = steps[rows, index]
    part = np.divide(wanted - (function[rows, index] - step), step, out=np.zeros_like(step), where=step > 0.0)
    position: Floats = (index + np.clip(part, 0.0, 1.0)) / KNOTS
    return position
