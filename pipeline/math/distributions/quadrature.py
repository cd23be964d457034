r"""Quadrature over blocks of a smooth weight, for integrals and sums; distributions known at its nodes.

Question. Integrals and sums over integers of a weight whose logarithm is smooth in every block,

.. math:: \int_l^r w(x) \, dx \approx \sum_i \omega_i w(x_i),
    \qquad \sum_{k = l}^{r - 1} w(k) \approx \sum_i \omega_i w(x_i), \qquad (1)

with n nodes. Integrals take Gauss-Legendre rules, exact to degree 2 n - 1. Sums over a length N > n take the
Gauss rule of the discrete uniform distribution, exact to degree 2 n - 1 where the weight is smooth between
integers: its nodes are the eigenvalues of the Jacobi matrix of the discrete Chebyshev polynomials,

.. math:: \beta_k = \frac{k^2 (N^2 - k^2)}{4 (4 k^2 - 1)}, \qquad k = 1, \dots, n - 1, \qquad (2)

in the off-diagonal as roots, about (N - 1) / 2, and its weights N times the squares of the eigenvectors'
first entries (Golub and Welsch). Where it is not smooth n of the integers are the nodes, exact to degree n -
1. Up to n integers are summed singly.

A gridded distribution has the density f of a position, known at the nodes of every panel. Its distribution
function is the integral of the polynomial through them,

.. math:: F(x) = F(l) + \sum_i f(x_i) \int_l^x \ell_i(t) \, dt, \qquad (3)

taken for linear between ``_KNOTS`` steps of a panel, with :math:`\ell_i` the nodes' Lagrange polynomials.

Symbols:

- n: ``points``, 3, 5, 8 or 12
- N: ``length``, integers in a block
- F: ``below``, plus the number of the cell, so that a single ascending array serves all cells

Method. Numerical. Blocks longer than ``LONGEST`` take nodes and weights, in units of the block, interpolated
linearly in 1 / N^2 towards those of the integral; what is left is of order 1024^-4. Moments are the rule's
sums, infinite where the integral does not fall towards an end of the line.

References
----------
Golub, Welsch. Calculation of Gauss quadrature rules. Math. Comp. 23, 1969. DLMF 3.5 and 18.19.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats

    Cell: TypeAlias = tuple[Floats, Floats, Callable[[Floats], Floats]]


POINTS = 12
FEWER = (3, 5, 8, POINTS)
"""Numbers of nodes to choose from."""
LONGEST = 1024
"""Integers in a block beyond which rules are interpolated towards those of integrals."""
SHORT = 64
"""Integers in the longest block of most short questions: rules up to here take a tenth of the time of all."""
_KNOTS = 32
"""Steps of the distribution function in a panel."""
_NEGLIGIBLE = 1e-12


def integral_rule(left: Floats, right: Floats, points: int = POINTS) -> tuple[Floats, Floats]:
    """Nodes and weights (n_blocks, points) of integrals from left to right."""
    nodes, weights = gauss(points)
    # The affine map of -1..1 to left..right.
    half = (right - left)[:, None] / 2.0
    return (left + right)[:, None] / 2.0 + half * nodes, half * weights


@cache
def gauss(points: int) -> tuple[Floats, Floats]:
    """Nodes and weights on -1..1, worked out once."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def interpolate(values: Floats, share: Floats) -> Floats:
    """Return polynomials with these values (n, points) at the nodes, at shares 0..1 of the way: (n,)."""
    points = values.shape[1]
    # Coefficients in Legendre polynomials, by the inverse of their values at the nodes, and these at the
    # place.
    basis = np.polynomial.legendre.legvander(2.0 * share - 1.0, points - 1)
    return np.asarray(np.sum((basis @ _to_legendre(points)) * values, axis=1), dtype=np.float64)


@cache
def _to_legendre(points: int) -> Floats:
    """Coefficients of Legendre polynomials from values at the nodes, (points, points)."""
    nodes, _ = gauss(points)
    basis = np.polynomial.legendre.legvander(nodes, points - 1)
    return np.asarray(np.linalg.inv(basis), dtype=np.float64)


def sum_rule(
    left: Floats, right: Floats, points: int = POINTS, *, at_integers: bool = False
) -> tuple[Floats, Floats]:
    """Nodes and weights (n_blocks, points) of sums over left..right - 1; surplus nodes have weight 0.

    Parameters
    ----------
    left, right : ndarray of shape (n_blocks,), float64 integers
    points : int
        How many nodes.
    at_integers : bool
        Take integers for nodes.
    """
    length = right - left
    longest = SHORT if np.all(length <= SHORT) else LONGEST
    table_nodes, table_weights = (_integer_table if at_integers else gauss_table)(points, longest)
    index = np.minimum(length, longest).astype(np.int64)
    nodes, weights = table_nodes[index], table_weights[index]
    long = length > LONGEST
    if np.any(long):
        rule = _rule_at_integers if at_integers else _long_gauss_rule
        nodes[long], weights[long] = rule(length[long], points)
    return left[:, None] + nodes, weights


@cache
def gauss_table(points: int, longest: int) -> tuple[Floats, Floats]:
    """Gauss rules of 0..length - 1 by length, from the recurrence of the discrete Chebyshev polynomials."""
    nodes, weights = _short_rules(points, longest)
    lengths = np.arange(points + 1.0, longest + 1.0)
    from_middle, weights[points + 1 :] = gauss_rules(lengths, points)
    nodes[points + 1 :] = from_middle + (lengths[:, None] - 1.0) / 2.0
    return nodes, weights


def gauss_rules(lengths: Floats, points: int) -> tuple[Floats, Floats]:
    """Nodes, from the middle, and weights (n_lengths, points) by (2), of lengths between integers too."""
    degree = np.arange(1.0, points)
    # (2).
    square = degree**2 * (lengths[:, None] ** 2 - degree**2) / (4.0 * (4.0 * degree**2 - 1.0))
    matrix = np.zeros((len(lengths), points, points))
    position = np.arange(points - 1)
    matrix[:, position, position + 1] = matrix[:, position + 1, position] = np.sqrt(square)
    # Golub and Welsch: eigenvalues are nodes, first entries of eigenvectors roots of weights.
    values, vectors = np.linalg.eigh(matrix)
    return values, lengths[:, None] * vectors[:, 0, :] ** 2


def _long_gauss_rule(length: Floats, points: int) -> tuple[Floats, Floats]:
    """Nodes and weights in units of the block are smooth in one over the square of its length."""
    gauss_nodes, gauss_weights = gauss_table(points, LONGEST)
    limit_nodes, limit_weights = gauss(points)
    # (2) times 4 / N^2 is k^2 (1 - k^2 / N^2) / (4 k^2 - 1): its rules are functions of 1 / N^2, and at 0
    # that of the integral.
    near = (LONGEST / length[:, None]) ** 2
    at_longest = (2.0 * gauss_nodes[LONGEST] + 1.0) / LONGEST - 1.0
    relative = limit_nodes + (at_longest - limit_nodes) * near
    limit = limit_weights / 2.0
    # Weights over N, likewise.
    weights = length[:, None] * (limit + (gauss_weights[LONGEST] / LONGEST - limit) * near)
    return (length[:, None] * (relative + 1.0) - 1.0) / 2.0, weights


@cache
def _integer_table(points: int, longest: int) -> tuple[Floats, Floats]:
    """The same with integers for nodes."""
    nodes, weights = _short_rules(points, longest)
    lengths = np.arange(points + 1.0, longest + 1.0)
    nodes[points + 1 :], weights[points + 1 :] = _rule_at_integers(lengths, points)
    return nodes, weights


def _rule_at_integers(length: Floats, points: int) -> tuple[Floats, Floats]:
    """Rules of 0..length - 1 whose nodes are the integers next to those of Gauss and Legendre."""
    legendre = np.polynomial.legendre
    gauss, _ = legendre.leggauss(points)
    nodes = np.rint(length[:, None] / 2.0 * (1.0 + gauss) - 0.5)
    half = points // 2
    for position in range(1, half):  # near the ends they may coincide
        nodes[:, position] = np.maximum(nodes[:, position], nodes[:, position - 1] + 1.0)
    nodes[:, points - half :] = length[:, None] - 1.0 - nodes[:, :half][:, ::-1]
    # Weights that reproduce the sums of the first n Legendre polynomials, as the Gauss rule has them exactly.
    exact_nodes, exact_weights = sum_rule(np.zeros_like(length), length, points)
    unit = 2.0 / length[:, None]
    at_exact = legendre.legvander(unit * (exact_nodes + 0.5) - 1.0, points - 1)
    sums = np.sum(exact_weights[:, :, None] * at_exact, axis=1)
    at_nodes = legendre.legvander(unit * (nodes + 0.5) - 1.0, points - 1)
    return nodes, np.linalg.solve(np.swapaxes(at_nodes, 1, 2), sums[:, :, None])[:, :, 0]


def _short_rules(points: int, longest: int) -> tuple[Floats, Floats]:
    """Tables by length, filled for lengths up to so many: every integer has weight 1."""
    nodes, weights = np.zeros((longest + 1, points)), np.zeros((longest + 1, points))
    for length in range(1, points + 1):
        nodes[length, :length] = np.arange(length)
        weights[length, :length] = 1.0
    return nodes, weights


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
    below : ndarray of shape (n_knots,), float64
        The distribution function at evenly spaced knots of every panel, plus the number of the cell.
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
        lefts, rights, values = [], [], []
        for left, right, log_density in cells:
            nodes, _ = integral_rule(left, right)
            lefts.append(left)
            rights.append(right)
            values.append(log_density(nodes.ravel()).reshape(nodes.shape))
        cell = np.repeat(np.arange(len(lefts)), [len(left) for left in lefts])
        return cls.of_panels(
            name, line, cell, np.concatenate(lefts), np.concatenate(rights), np.concatenate(values)
        )

    @classmethod
    def of_panels(
        cls, name: str, line: Line, cell: NDArray[np.int64], left: Floats, right: Floats, log_value: Floats
    ) -> Self:
        """Integrate over panels (n_panels,), of cells one after the other from left to right.

        Parameters
        ----------
        cell : ndarray of shape (n_panels,), int64
            Ascending, and every number from 0 on.
        left, right : ndarray of shape (n_panels,), float64
        log_value : ndarray of shape (n_panels, POINTS), float64
            Log densities of positions at the nodes of the rule, but for a constant of each cell.
        """
        nodes, weights = integral_rule(left, right)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        top = np.maximum.reduceat(np.max(log_value, axis=1), first)
        # Constants of the log density cancel in all but the mass.
        value = np.exp(log_value - top[cell, None])
        mass = value * weights
        of_panel = np.sum(mass, axis=1)
        total = np.add.reduceat(of_panel, first)
        means, sds = _moments(line, nodes, mass / total[cell, None], log_value, first)
        kept = of_panel > _NEGLIGIBLE * total[cell]
        cell, left, right, value = cell[kept], left[kept], right[kept], value[kept]
        # (3), by steps; rounding and polynomials that dip below 0 may not make F fall.
        steps = np.diff(value @ _cumulative().T * (right - left)[:, None] / 2.0, axis=1)
        steps = np.cumsum(np.maximum(steps, 0.0), axis=1)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        whole = np.add.reduceat(steps[:, -1], first)[cell]
        share = steps[:, -1] / whole
        ends = np.cumsum(share)
        ends = ends - (ends - share)[first][cell]
        # One number where a panel ends and the next begins.
        starts = np.concatenate([[0.0], ends[:-1]])
        starts[first] = 0.0
        function = np.concatenate(
            [starts[:, None], starts[:, None] + steps[:, :-1] / whole[:, None], ends[:, None]], axis=1
        )
        function = np.maximum.accumulate(np.minimum(function, 1.0), axis=1)
        function[np.append(first[1:], len(cell)) - 1, -1] = 1.0
        return cls(
            name=name,
            line=line,
            means=means,
            sds=sds,
            below=(cell[:, None] + function).ravel(),
            cell=cell,
            left=left,
            right=right,
            height=value / whole[:, None],
            log_mass=top + np.log(total),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the distributions of consecutive cells as one."""
        if len(parts) == 1:
            return parts[0]
        offset = np.cumsum([0, *(len(part.means) for part in parts[:-1])])
        joint: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("means", "sds", "left", "right", "height", "log_mass")
        }
        evidences = [part.log_evidence for part in parts if part.log_evidence is not None]
        return replace(
            parts[0],
            **joint,
            below=np.concatenate([part.below + start for part, start in zip(parts, offset, strict=True)]),
            cell=np.concatenate([part.cell + start for part, start in zip(parts, offset, strict=True)]),
            log_evidence=np.concatenate(evidences) if evidences else None,
        )

    def _knots(self, panels: slice = slice(None)) -> Floats:
        """Positions of the knots of panels, (n_knots,)."""
        left, right = self.left[panels, None], self.right[panels, None]
        return np.ravel(left + (right - left) * np.linspace(0.0, 1.0, _KNOTS + 1))

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
        return self.inverse(np.broadcast_to(np.asarray(q), (len(self.means), len(q))).T).T

    def cdf(self, points: Floats) -> Floats:
        """Distribution functions at points (n_cells, n_points), linear between knots."""
        starts = np.searchsorted(self.cell, np.arange(len(self.means) + 1))
        values = np.empty(points.shape)
        for row, (first, last) in enumerate(itertools.pairwise(starts)):
            # At an end of the domain, which is beyond all panels, it is 0 or 1.
            position = self.line.position(points[row])
            below = self.below[first * (_KNOTS + 1) : last * (_KNOTS + 1)] - row
            values[row] = np.interp(position, self._knots(slice(first, last)), below)
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
            below=self.below[knots] + np.repeat(cell - self.cell[kept], _KNOTS + 1),
            cell=cell,
            left=self.left[kept],
            right=self.right[kept],
            height=self.height[kept],
            log_mass=self.log_mass[cells],
            log_evidence=None if self.log_evidence is None else self.log_evidence[cells],
        )

    def between(self, limits: tuple[float, float]) -> tuple[Self, Floats]:
        """Return the distribution given that the parameter is within limits, and its share there (n_cells,).

        Cells that have nothing there stay as they are, with a share of 0.
        """
        low, high = self.line.position(np.clip(limits, *self.line.domain))
        starts = np.searchsorted(self.cell, np.arange(len(self.means) + 1))
        share = np.ones(len(self.means))
        cells: list[Cell] = []
        for row, (first, last) in enumerate(itertools.pairwise(starts)):
            left, right = self.left[first:last], self.right[first:last]
            inside = (right > low) & (left < high)
            share[row] = float(np.any(inside))
            ends = (np.maximum(left, low)[inside], np.minimum(right, high)[inside])
            ends = ends if share[row] else (left, right)
            cells.append((*ends, partial(self._log_height, slice(first, last))))
        restricted = type(self).of(self.name, self.line, cells)
        # The heights that are known integrate to 1 over all panels.
        return restricted, share * np.minimum(np.exp(restricted.log_mass), 1.0)

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
        # The mass between knots times the function at the middle.
        mass = np.diff(self.below)
        position = self._knots()
        value = function((position[1:] + position[:-1]) / 2.0)
        # Between the last knot of a cell and the first of the next there is none.
        averages = np.bincount(self.below[:-1].astype(np.int64), mass * value, len(self.means))
        return np.asarray(averages[cells], dtype=np.float64)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        return {self.name: self.inverse(rng.random((draws, len(self.means))))}

    def inverse(self, level: Floats) -> Floats:
        """Return parameters below which there is this much, by cells on the last axis."""
        # F plus the number of the cell is sought, in all cells at once.
        wanted = level + np.arange(len(self.means))
        after = np.clip(np.searchsorted(self.below, wanted, side="right"), 1, len(self.below) - 1)
        low, high = self.below[after - 1], self.below[after]
        # F is linear between knots, and the same at both where a panel ends and the next begins.
        share = np.divide(wanted - low, high - low, out=np.zeros_like(wanted), where=high > low)
        panel, knot = np.divmod(after - 1, _KNOTS + 1)
        step = (self.right[panel] - self.left[panel]) / _KNOTS
        return self.line.parameter(self.left[panel] + (knot + share) * step)


def _moments(
    line: Line, nodes: Floats, share: Floats, log_value: Floats, first: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Means and standard deviations, where the integrals converge towards the ends of the line.

    `first` are the first panels of cells.
    """
    last = np.append(first[1:], len(nodes)) - 1
    exists = [
        _converges(line, nodes[first], log_value[first], degree, 0)
        & _converges(line, nodes[last], log_value[last], degree, -1)
        for degree in (1.0, 2.0)
    ]
    parameter = line.parameter(nodes)
    mean = np.add.reduceat(np.sum(share * parameter, axis=1), first)
    cell = np.repeat(np.arange(len(first)), last - first + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.sum(share * (parameter - mean[cell, None]) ** 2, axis=1)
        sd = np.sqrt(np.add.reduceat(away, first))
    mean = np.where(exists[0], mean, np.nan if line.domain[0] < 0.0 else np.inf)
    return mean, np.where(exists[0] & exists[1], sd, np.inf)


def _converges(line: Line, nodes: Floats, log_value: Floats, degree: float, end: int) -> NDArray[np.bool_]:
    """Whether the integral of a power of the parameter falls towards an end where numbers end, (n_cells,).

    Nodes and values are those of the outermost panel of every cell.
    """
    if not np.isinf(line.domain[end]):
        return np.ones(len(nodes), dtype=bool)
    positions, values = nodes[:, [0, -1]], log_value[:, [0, -1]]
    near, far = (0, 1) if end else (1, 0)
    known = (np.abs(positions[:, far]) < 0.5 * abs(line.ends[end])) | (values[:, far] == -np.inf)
    # The integrand is |theta|^k f, against the measure of the line.
    size = np.log(np.abs(line.parameter(positions))) * degree
    if line.domain[0] < 0.0:
        size += np.log(np.abs(positions))
    with np.errstate(invalid="ignore"):
        falls = (values + size)[:, far] < (values + size)[:, near]
    converges: NDArray[np.bool_] = known | falls
    return converges


@cache
def _cumulative() -> Floats:
    """Integrals from -1 to evenly spaced positions of the polynomials that are 1 at one node of the rule."""
    nodes, _ = np.polynomial.legendre.leggauss(POINTS)
    ends = np.linspace(-1.0, 1.0, _KNOTS + 1)
    # Integrals of Legendre polynomials by a rule that is exact for them, then those of Lagrange's.
    inner, weights = integral_rule(np.full(_KNOTS + 1, -1.0), ends)
    vander = np.polynomial.legendre.legvander(inner, POINTS - 1) * weights[:, :, None]
    inverse = np.linalg.inv(np.polynomial.legendre.legvander(nodes, POINTS - 1))
    matrix: Floats = np.sum(vander, axis=1) @ inverse
    return matrix
