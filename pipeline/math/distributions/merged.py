r"""Distribution functions and quantiles of mixtures of very many conjugate distributions.

Model. A cell's posterior is a mixture over latent pairs (N, S) with weights w,

.. math:: F(x) = \sum_i w_i F_i(x), \qquad f(x) = \sum_i w_i f_i(x), \qquad (1)

each part conjugate, with a centre c and a width s on the line of ``distribution.py``.

Merging. Pairs whose distributions all but coincide are merged first: those of about the same width whose
centres differ by little of it, or of the centres' spread. With the place :math:`(c - \bar c) / u` and the
level :math:`\log_2(s / s_{\min})` of a pair on a lattice, pairs of the same lattice point become

.. math:: w = \sum w_i, \qquad (N, S) = \frac{\sum w_i (N_i, S_i)} w, \qquad
    \tau^2 = \frac{\sum w_i (c_i - \bar c)^2} w - \Bigl(\frac{\sum w_i (c_i - \bar c)} w\Bigr)^2, \qquad (2)

and a merged distribution is widened by the variance :math:`\tau^2` of its parts' centres.

Quantiles. With the normal deviate :math:`d(x) = \Phi^{-1}(F(x))`, the root of

.. math:: d(x) = \Phi^{-1}(q) \qquad (3)

is found by secants within a bracket: d is nearly linear where a mixture is nearly normal. Many levels cost as
much as a few where rough quantiles do: a coarser mixture's F is tabulated at positions about the mean, and
then, in turns, where the table so far has the levels; between knots d is taken for linear.

Averages over a part are by Gauss-Hermite quadrature of 9 nodes against :math:`e^{-z^2 / 2}`,

.. math:: E g(x) = \frac{\sum_j \omega_j \, e^{z_j^2 / 2} f(c + s z_j) \, g(c + s z_j)}
    {\sum_j \omega_j \, e^{z_j^2 / 2} f(c + s z_j)}. \qquad (4)

Symbols:

- N, S: ``n`` and ``total``, (n_components,)
- w: ``weight``, (n_components,), > 0, of sum 1 over a cell
- c, s: ``centre`` and ``width``, (n_components,), on the line
- tau^2: ``scatter``, (n_components,); q: ``level``, in 0..1

Method. Merging changes a distribution function by about a thousandth at most, and less with the square of
``fineness``. ``find_quantile`` is right to 1e-4 standard deviations. Half of rough quantiles are right to
.001 of an interval's width; far out in tails of several decades they are not.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from suffice.pipeline.math.distributions.distribution import coordinate_of, widened
from suffice.pipeline.math.distributions.smoothing import GRID, least_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Cells, Floats


_PER_SPREAD = 24.0
_PER_WIDTH = 4.0
_PER_OCTAVE = 3.0
"""Lattice points within the centres' spread, the narrowest width, and a doubling of the width."""
_LEVELS = 72
_POSITIONS = 2048
_NEGLIGIBLE = 5e-7
"""Weight up to which pairs are left out."""
_ROUGHLY, _NEXT_TO_NOTHING = 0.4, 1e-5
"""Fineness, and weight that is left out, with which quantiles are looked for at first."""
FINE = 5.0
"""Fineness at which densities are right to some 1e-4 of the highest though scatter is left out."""
_KEYS = 2 * _POSITIONS + 1
_MOST_NUMBERS = 1 << 21
_REACH = 12.0
"""Widths of a part within which its quantiles are looked for."""
_AT_A_TIME = 1 << 14
"""Numbers of components, and as many positions, that a processor's cache holds."""
_HERMITE_NODES, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_MOST_ROUNDS = 60
_CLOSE, _NEAR = 1e-4, 0.03
_FEWER = 0.8
"""Share of the cells below which those that are open are taken alone."""
_AT_FIRST = np.linspace(-8.0, 6.0, 15)
"""Standard deviations from the mean; logarithms and logits have the longer tails below."""
_EVERY = (4, 2)
"""Of ascending levels, how many apart are those at which turns look."""
_LEAST = 1e-15
"""Probability that counts as 0."""


class _LogDensity(Protocol):
    def __call__(self, position: Floats, share: float) -> Floats:
        """Log densities at positions on the line, smoothed over a share of the spread."""


class WeighedPairs(Protocol):
    """Latent pairs (N, S) with their probabilities, cell by cell."""

    @property
    def cell(self) -> Cells:
        """The cell that a pair is of; ascending."""

    @property
    def n(self) -> Floats:
        """N of every pair."""

    @property
    def total(self) -> Floats:
        """S of every pair."""

    @property
    def weight(self) -> Floats:
        """Posterior probabilities, which sum to 1 over a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Merged pairs (N, S), cell by cell.

    Attributes
    ----------
    cell : ndarray of shape (n_components,), int64
        Ascending.
    n, total, weight : ndarray of shape (n_components,), float64
        Weights sum to 1 over a cell.
    scatter : ndarray of shape (n_components,), float64
        Variance of the centres that were merged.
    """

    cell: Cells
    n: Floats
    total: Floats
    weight: Floats
    scatter: Floats

    @classmethod
    def of(
        cls,
        nodes: WeighedPairs,
        update: Callable[[Floats, Floats], Distribution],
        cells: int,
        *,
        fineness: float = 1.0,
        negligible: float = _NEGLIGIBLE,
        within_widths: bool = False,
    ) -> Self:
        """Merge the nodes of some cells; `update` gives their conjugate distributions.

        What merging changes falls with the square of `fineness`; nodes up to the weight `negligible` are
        left out. Only nodes of about the same width are merged where that is asked: narrow ones, of few and
        of many records, are else taken together wherever their centres agree.
        """
        kept = np.flatnonzero(nodes.weight > negligible)
        cell: Cells = nodes.cell[kept]
        weight, n, total = (column[kept] for column in (nodes.weight, nodes.n, nodes.total))
        coordinate = coordinate_of(update(n, total))
        centre, width = coordinate.centre, coordinate.width
        # The mean of the centres, about which places are counted.
        middle = np.bincount(cell, weight * centre, cells)
        away = centre - middle[cell]
        spread = np.sqrt(np.bincount(cell, weight * away * away, cells))
        narrowest = np.full(cells, np.inf)
        np.minimum.at(narrowest, cell, width)
        # u: a share of the centres' spread, or of the narrowest width.
        unit = np.maximum(spread / _PER_SPREAD, narrowest / _PER_WIDTH) / fineness
        per_octave, levels = _PER_OCTAVE * fineness, int(_LEVELS * fineness)
        least = narrowest if within_widths else _PER_WIDTH * fineness * unit
        relative = np.maximum(width * (1.0 / least)[cell], 1.0)
        # The lattice of widths is even in their logarithm.
        level = np.minimum(per_octave * np.log2(relative), levels - 1.0).astype(np.int64)
        # Far out in the tails positions grow, so that their number is bounded.
        point = away * (1.0 / unit)[cell] * np.exp2(np.arange(levels) / -per_octave)[level]
        point /= 1.0 + np.abs(point) / _POSITIONS
        position, occupied_cell = _numbered(cell, level, np.rint(point).astype(np.int64), cells)
        occupied = np.flatnonzero(occupied_cell >= 0)
        occupied_cell = occupied_cell[occupied]

        def summed(values: Floats) -> Floats:
            """Over what is merged."""
            return np.bincount(position, values)[occupied].astype(np.float64, copy=False)

        total_weight = summed(weight)
        # (2).
        shifts = summed(weight * away) / total_weight
        squares = summed(weight * away * away) / total_weight
        return cls(
            cell=occupied_cell,
            n=summed(weight * n) / total_weight,
            total=summed(weight * total) / total_weight,
            weight=total_weight / np.bincount(cell, weight, cells)[occupied_cell],
            scatter=np.maximum(squares - shifts**2, 0.0),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self], cells: Sequence[int]) -> Self:
        """Those of consecutive cells, so many in each part."""
        first = np.cumsum([0, *cells[:-1]])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("n", "total", "weight", "scatter")
        }
        return cls(
            cell=np.concatenate([part.cell + start for part, start in zip(parts, first, strict=True)]),
            **columns,
        )

    def take(self, cells: Cells) -> Self:
        """Those of some cells, ascending, which are numbered anew."""
        start, stop = (np.searchsorted(self.cell, cells, side=side) for side in ("left", "right"))
        count = stop - start
        cell_of = np.repeat(np.arange(len(cells)), count)
        chosen = np.arange(len(cell_of)) + np.repeat(start - np.cumsum(count) + count, count)
        return replace(
            self,
            cell=cell_of,
            n=self.n[chosen],
            total=self.total[chosen],
            weight=self.weight[chosen],
            scatter=self.scatter[chosen],
        )

    def replaced(self, cells: Cells, other: Self) -> Self:
        """With those of some cells, ascending, taken from others, whose cells are numbered from 0."""
        kept = np.flatnonzero(~np.isin(self.cell, cells))
        cell = np.concatenate([self.cell[kept], cells[other.cell]])
        order = np.argsort(cell, kind="stable")
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(self, name)[kept], getattr(other, name)])[order]
            for name in ("n", "total", "weight", "scatter")
        }
        return replace(self, cell=cell[order], **columns)

    def tempered(self, levels: Floats) -> Self:
        """Split every pair evenly among its cell's levels, and divide N and S by each."""
        number = levels.shape[1]
        effect = levels[self.cell].ravel()
        return replace(
            self,
            cell=np.repeat(self.cell, number),
            n=np.repeat(self.n, number) / effect,
            total=np.repeat(self.total, number) / effect,
            weight=np.repeat(self.weight / number, number),
            scatter=np.repeat(self.scatter, number),
        )

    def average(
        self,
        update: Callable[[Floats, Floats], Distribution],
        function: Callable[[Floats], Floats],
        cells: int,
    ) -> Floats:
        """Averages (n_cells,) of a function on the line, by Gauss-Hermite quadrature in each component."""
        coordinate = widened(update(self.n, self.total), self.scatter).coordinate()
        nodes = _HERMITE_NODES[:, None]
        # (4), at x = c + s z.
        point = coordinate.centre + coordinate.width * nodes
        # What is nearly normal becomes exactly what it is, and has a mass of 1.
        log_ratio = coordinate.log_density(point) + nodes**2 / 2.0
        ratio = np.exp(log_ratio - np.max(log_ratio, axis=0)) * _HERMITE_WEIGHTS[:, None]
        value = np.sum(ratio * function(point), axis=0) / np.sum(ratio, axis=0)
        average: Floats = np.bincount(self.cell, self.weight * value, cells).astype(np.float64, copy=False)
        return average

    def density(
        self, update: Callable[[Floats, Floats], Distribution], points: Floats, *, at_once: int = 1 << 22
    ) -> Floats:
        """Densities at points (n_cells, n_points), smoothed where nodes would show; see ``smoothing``.

        The scatter of what was merged is left out of account.
        """
        values = np.empty(points.shape)
        line = coordinate_of(update(self.n[:1], self.total[:1])).line
        ends = np.searchsorted(self.cell, np.arange(len(points) + 1))
        _, _, mean, spread = self.about(update, len(points))
        for cell, (first, last) in enumerate(itertools.pairwise(ends)):

            def log_density(
                position: Floats, share: float, cell: int = cell, first: int = first, last: int = last
            ) -> Floats:
                value = np.zeros(len(position))
                step = max(1, at_once // len(position))
                for start in range(first, last, step):
                    part = slice(start, min(start + step, last))
                    given = update(self.n[part], self.total[part])
                    lacking = (share * spread[cell]) ** 2 - coordinate_of(given).width ** 2
                    coordinate = widened(given, np.maximum(lacking, 0.0)).coordinate()
                    # (1).
                    value += np.exp(coordinate.log_density(position[:, None])) @ self.weight[part]
                with np.errstate(divide="ignore"):
                    return np.log(value)

            grid = np.clip(mean[cell] + spread[cell] * GRID, *line.ends)

            def smoothed(share: float, grid: Floats = grid, of_cell: _LogDensity = log_density) -> Floats:
                return np.asarray(np.exp(of_cell(grid, share)))

            share = least_share(smoothed)
            values[cell] = line.density(points[cell], functools.partial(log_density, share=share))
        return values

    def cdf(self, update: Callable[[Floats, Floats], Distribution], points: Floats) -> Floats:
        """Distribution functions at points (n_cells, n_points)."""
        line = coordinate_of(update(self.n[:1], self.total[:1])).line
        below = self.below(update, np.clip(line.position(points), *line.ends))
        low, high = line.domain
        # At an end of the domain also what lies between it and the line's end, as a Beta(1, 0.01) has much.
        return np.where(points <= low, 0.0, np.where(points >= high, 1.0, below))

    def below(self, update: Callable[[Floats, Floats], Distribution], position: Floats) -> Floats:
        """Distribution functions at positions on the line (n_cells, n_positions)."""
        first = np.searchsorted(self.cell, np.arange(len(position)))
        values = np.empty(position.shape)
        # Several positions at a time where components are few: calls cost more than numbers there.
        step = max(1, _AT_A_TIME // len(self.cell))
        for start in range(0, position.shape[1], step):
            at = position[:, start : start + step].T[:, self.cell]
            n, total, scatter = (np.tile(column, len(at)) for column in (self.n, self.total, self.scatter))
            # F_i, widened by tau^2.
            shares = widened(update(n, total), scatter).coordinate().cdf(at.ravel()).reshape(at.shape)
            values[:, start : start + step] = np.add.reduceat(self.weight * shares, first, axis=1).T
        return values

    def quantiles(
        self,
        update: Callable[[Floats, Floats], Distribution],
        q: Sequence[float | Floats],
        cells: int,
        *,
        near: Floats | None = None,
    ) -> Floats:
        """Quantiles (n_cells, n_q), by bisection and secants on the distribution function.

        A level is the same for all cells, or one for each (n_cells,). Where it is known, `near` has about the
        quantiles.
        """
        rough = self.coarser(update, cells)
        line = coordinate_of(update(self.n[:1], self.total[:1])).line
        roughly = rough.positions(update, q, cells) if near is None else list(line.position(near).T)
        paces = [rough.paces(update, point, level) for point, level in zip(roughly, q, strict=True)]
        positions = self.positions(update, q, cells, list(zip(roughly, paces, strict=True)))
        return np.stack([line.parameter(point) for point in positions], axis=1)

    def coarser(self, update: Callable[[Floats, Floats], Distribution], cells: int) -> Components:
        """Merge much coarser: quantiles take a fraction of the time, and are right to about a hundredth."""
        return Components.of(self, update, cells, fineness=_ROUGHLY, negligible=_NEXT_TO_NOTHING)

    def positions(
        self,
        update: Callable[[Floats, Floats], Distribution],
        q: Sequence[float | Floats],
        cells: int,
        guesses: Sequence[tuple[Floats, Floats]] | None = None,
    ) -> list[Floats]:
        """Quantiles on the line, (n_cells,) by level; guesses are those of ``find_quantile``."""
        low, high, mean, sd = self.about(update, cells)

        def below(chosen: Cells) -> Callable[[Floats], Floats]:
            """The distribution functions of some cells."""
            mixture = self if len(chosen) == cells else self.take(chosen)
            cell, weight = mixture.cell, mixture.weight
            cdf = widened(update(mixture.n, mixture.total), mixture.scatter).coordinate().cdf
            start = np.searchsorted(cell, np.arange(len(chosen)))
            return lambda point: np.add.reduceat(weight * cdf(point[cell]), start)

        return [
            find_quantile(
                below, low, high, mean, sd, level, guess=None if guesses is None else guesses[number]
            )
            for number, level in enumerate(q)
        ]

    def about(self, update: Callable[[Floats, Floats], Distribution], cells: int) -> tuple[Floats, ...]:
        """Ends between which all quantiles are, means and standard deviations, on the line (n_cells,)."""
        coordinate = widened(update(self.n, self.total), self.scatter).coordinate()
        first = np.searchsorted(self.cell, np.arange(cells))
        # A bracket of quantiles: ``_REACH`` widths about the centres of all parts.
        low = np.minimum.reduceat(coordinate.centre - _REACH * coordinate.width, first)
        high = np.maximum.reduceat(coordinate.centre + _REACH * coordinate.width, first)
        mean = np.add.reduceat(self.weight * coordinate.centre, first)
        # Var x = E (c^2 + s^2) - (E x)^2 over the parts.
        square = np.add.reduceat(self.weight * (coordinate.centre**2 + coordinate.width**2), first)
        return low, high, mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    def paces(
        self, update: Callable[[Floats, Floats], Distribution], point: Floats, level: float | Floats
    ) -> Floats:
        """How far quantiles at these positions move while the level's normal deviate moves by 1."""
        from scipy.special import ndtri

        coordinate = widened(update(self.n, self.total), self.scatter).coordinate()
        log_density = coordinate.log_density(point[self.cell])
        density = np.bincount(self.cell, self.weight * np.exp(log_density), len(point))
        # dx / dd = phi(d) / f(x).
        normal = np.exp(-0.5 * ndtri(level) ** 2) / np.sqrt(2.0 * np.pi)
        return np.asarray(normal / np.maximum(density, 1e-300))


def _numbered(cell: Cells, level: Cells, point: Cells, cells: int) -> tuple[Cells, Cells]:
    """Numbers of (cell, level, place), ascending; and the cell of every number, -1 where there is none."""
    keys = []
    for column in (level, point):
        least, most = np.zeros((2, cells), dtype=np.int64)
        np.minimum.at(least, cell, column)
        np.maximum.at(most, cell, column)
        keys.append((least, most - least + 1))
    (lowest, heights), (first, spans) = keys
    sizes = heights * spans
    if np.sum(sizes) > _MOST_NUMBERS:
        key = (cell * _KEYS + level) * _KEYS + point + _POSITIONS
        used, position = np.unique(key, return_inverse=True)
        return position, used // _KEYS**2
    # Where they are few, all that could be are numbered, which takes no sorting.
    start = np.cumsum(sizes) - sizes - lowest * spans - first
    position = start[cell] + level * spans[cell] + point
    indices = np.full(int(np.sum(sizes)), -1)
    indices[position] = cell
    return position, indices


def find_quantile(
    below: Callable[[Cells], Callable[[Floats], Floats]],
    low: Floats,
    high: Floats,
    mean: Floats,
    sd: Floats,
    level: float | Floats,
    *,
    guess: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Find where distribution functions of many cells reach a level: normal guesses, then bracketed secants.

    Parameters
    ----------
    below : callable
        Indices of some cells, ascending -> their distribution functions: a position each -> probabilities.
    low, high : ndarray of shape (n_cells,)
        Positions between which the quantiles are.
    mean, sd : ndarray of shape (n_cells,)
        Of the distributions, about.
    level : float, or ndarray of shape (n_cells,)
        Strictly between 0 and 1.
    guess : (ndarray, ndarray) of shape (n_cells,), optional
        Better guesses than normal ones, and how far a position moves there about while the level's normal
        deviate moves by 1.

    Returns
    -------
    ndarray of shape (n_cells,)
        Positions that are right to 1e-4 of ``sd``.
    """
    from scipy.special import ndtri

    wanted = np.broadcast_to(np.asarray(ndtri(level)), mean.shape)
    start, pace = (mean + sd * wanted, sd) if guess is None else guess
    position = np.clip(start, low, high)
    refined = position.copy()
    active, left, right, other, previous = np.arange(len(position)), low, high, position, position
    cdf = below(active)
    for turn in range(_MOST_ROUNDS):
        # The left side of (3) less the right.
        value = np.asarray(ndtri(np.clip(cdf(position), 1e-15, 1.0 - 1e-15))) - wanted
        left, right = np.where(value < 0.0, position, left), np.where(value < 0.0, right, position)
        if turn == 0:
            usable = np.zeros(len(position), dtype=np.bool_)
            following = position - np.clip(value, -1.0, 1.0) * pace
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                # A secant through the last two positions.
                secant = position - value * (position - other) / (value - previous)
            # Outside of its bracket, and every fourth turn, a secant gives way to a bisection.
            usable = (secant > left) & (secant < right) & (turn % 4 != 3)
            following = np.where(usable, secant, (left + right) / 2.0)
        step = np.abs(np.clip(following, left, right) - position)
        # The error after a secant is about the product of the last two.
        close = usable & (step < _NEAR * sd)
        after = np.where(close, step * np.minimum(np.abs(position - other) / sd, 1.0), step)
        other, previous, position = position, value, np.clip(following, left, right)
        refined[active] = position
        open_ = (after > _CLOSE * sd) & (right - left > _CLOSE * sd)
        if not np.any(open_):
            break
        if np.count_nonzero(open_) < _FEWER * len(active):
            active, cdf = active[open_], below(active[open_])
            left, right, sd, wanted, position, other, previous = (
                column[open_] for column in (left, right, sd, wanted, position, other, previous)
            )
    return refined


def rough_quantiles(
    components: Components,
    update: Callable[[Floats, Floats], Distribution],
    q: Sequence[float],
    cells: int,
) -> Floats:
    """Return about the quantiles, (n_cells, n_q).

    Parameters
    ----------
    components : Components
        Of all cells.
    update : callable
        As in ``Components.of``.
    q : sequence of float, strictly between 0 and 1
    cells : int
        How many cells there are.
    """
    rough, wanted = components.coarser(update, cells), _deviates(np.asarray(q))
    # (3) for all levels from a table of d at knots.
    low, high, mean, sd = (column[:, None] for column in rough.about(update, cells))
    knots = np.clip(mean + sd * _AT_FIRST, low, high)
    known = _deviates(rough.below(update, knots))
    for step in _EVERY:
        at = _interpolated(np.append(wanted[::step], wanted[-1]), known, knots)
        knots = np.concatenate([knots, at], axis=1)
        known = np.concatenate([known, _deviates(rough.below(update, at))], axis=1)
        order = np.argsort(knots, axis=1)
        knots, known = (np.take_along_axis(table, order, axis=1) for table in (knots, known))
        # F does not fall; its rounding may.
        known = np.maximum.accumulate(known, axis=1)
    line = coordinate_of(update(components.n[:1], components.total[:1])).line
    return line.parameter(_interpolated(wanted, known, knots))


def _deviates(level: Floats) -> Floats:
    """Return normal deviates of levels."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(level, _LEAST, 1.0 - _LEAST)))


def _interpolated(wanted: Floats, known: Floats, values: Floats) -> Floats:
    """Return values, row by row, where known ones, which ascend, reach wanted ones."""
    return np.stack([np.interp(wanted, *row) for row in zip(known, values, strict=True)])
