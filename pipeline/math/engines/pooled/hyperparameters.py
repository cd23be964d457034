r"""Hyperparameters of a population, integrated over on a grid that is fitted to their posterior.

Model. Of cells c with the likelihoods of ``cells``,

.. math::
    Z_c(h) = \sum_{ij} w_{cij} \, f\bigl(x_{ci} - b (v_{cj} - v_0) \mid m, \, s \, e^{g (v_{cj} - v_0)}\bigr),
    \qquad p(h \mid y) \propto p(h) \prod_c Z_c(h), \qquad h = (m, s, b, g) \qquad (1)

with the public hyperpriors of ``hyperpriors``. Location and spread both have a slope on log size: parameters
often move with it, and small cells often differ by more than large ones.

Method. The integral over h is a product of Gauss-Legendre rules. Where to put them follows from
``normal_approximation``: given s and g, m is about

.. math:: \hat m = \frac{\sum_c \omega_c (\hat x_c - b_0 (\hat v_c - v_0))}{\sum_c \omega_c}, \qquad
    m = \hat m + t \Bigl(\tfrac 3 {\pi^2 \kappa^2} + \sum_c \omega_c\Bigr)^{-1/2}, \qquad (2)

at the middle b_0 of its rule, and the rules are over (t, s, b, g): neither the width nor the place of the
first depends much on the others, of b since v_0 is a weighted mean of log sizes. Populations are then the
same at all b (``shared_density``).
The approximation only says where to look: weights are those of (1), and the ends of the rules follow their
means and standard deviations until these lie inside, first of some hundred cells, then of more, then of all.
More cells begin where fewer have the posterior: the approximation is off by as much whatever their number
is. Nodes of up to ``KEPT_NODES`` cells are kept; of more they are made again for every look, a block at a
time. Spreads far below what any cell can tell are one, ``LEAST`` of the standard deviation of m at s = 0.

Spreads are those at knots of log size, and mixtures between them (``residual_grid``): knots are closer
together the steeper the slope may be, but for long ranges.

Symbols: t, s, b, g: nodes of the four rules; log p(h | y): ``log_weight``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperpriors import (
    LOG_SPREAD_SD,
    SLOPE_SD,
    location_prior,
    log_spread_slope_prior,
)
from suffice.pipeline.math.engines.pooled.kept_nodes import BLOCK, KEPT_NODES, KeptNodes, blocks_focus
from suffice.pipeline.math.engines.pooled.normal_approximation import (
    T_REACH,
    Box,
    first_box,
    moments_of,
    spread_ends,
)
from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid, sharpened
from suffice.pipeline.math.engines.pooled.shared_density import SharedDensity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.normal_approximation import Moments
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats

_NODES = {100: (15, 17, 21), 2000: (11, 13, 11), None: (9, 9, 7)}
"""Nodes of the rules over t, s and b, up to so many cells: of more, less is left to integrate over."""
_NODES_OF_ALL = {10: (11, 13, 13, 9), 100: (7, 11, 9, 7), 2000: (7, 11, 7, 7), None: (7, 9, 7, 5)}
"""The same over t, s, b and g."""
_APART, _KNOTS = 2.0, {2000: 12, None: 6}
"""Of knots: how far apart they are at most, and how many there are at most, up to so many cells."""
_RATIO, _RATIO_OF_TAILS = 0.7, 0.35
"""How far apart logarithms of spreads at two knots are at the steepest slopes of a box. The latter where an
outlier is in the tail of a population, whose density is another at once where its spread is."""
LEAST = 0.5
"""Of the standard deviation of m at s = 0: spreads below are one, as no cells can tell them."""
FIRST_CELLS, MORE = 512, 5
_SPARE = 1.2
"""How much wider rules for more cells begin than these tell."""
ROUNDS = 8
_NEGLIGIBLE = 1e-7
_FLOOR = 1e-300
_TOGETHER = 1 << 16
_BEND = 4.0
FARTHEST, FINEST, _FINEST_OF_KNOTS = 40.0, 1.0 / 400.0, 1.0 / 150.0
"""Of where slopes move cells, in units of the line: beyond, narrow laws fall between nodes and evidence is
too high (a slope of 2 moves cells of 2 records 26 units from those of 10^6). Of it, the least width, and that
where spreads have a slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """Nodes of the posterior of hyperparameters.

    Attributes
    ----------
    location, spread : ndarray of shape (n_slopes, n_nodes), float64
        m and s; spreads are at least what tells.
    drawn_spread : ndarray of shape (n_slopes, n_nodes), float64
        s itself.
    slope : ndarray of shape (n_slopes,), float64
    spread_slope : ndarray of shape (n_slopes, n_nodes), float64
        g; zeros where spreads do not depend on the size.
    weight : ndarray of shape (n_slopes, n_nodes), float64
        Adds up to 1.
    grid : ResidualGrid
    settled : bool
        Whether the posterior lies within the ends of the rules.
    size_unit : float
        u of ``hyperpriors``: what slopes are by.
    prior_log_spread_sd : float
        The standard deviation of log s under its hyperprior.
    """

    location: Floats
    spread: Floats
    drawn_spread: Floats
    slope: Floats
    spread_slope: Floats
    weight: Floats
    grid: ResidualGrid
    settled: bool = True
    size_unit: float = 1.0
    prior_log_spread_sd: float = LOG_SPREAD_SD

    def components(self, population: Population, number: int, rows: Any) -> list[tuple[float, Floats]]:
        """Return shares and densities, on the grid, of the components at some nodes of a slope."""
        return self.grid.components(
            population, *(each[number][rows] for each in (self.location, self.spread, self.spread_slope))
        )

    def densities(self, population: Population, number: int, rows: Any) -> Floats:
        """Return densities, on the grid, at some nodes of a slope."""
        chosen = np.arange(self.weight.shape[1])[rows]
        density = np.empty((len(chosen), self.grid.n_points))
        # Some at a time, that stay in a processor's cache.
        step = max(_TOGETHER // self.grid.n_points, 1)
        for start in range(0, len(chosen), step):
            parts = self.components(population, number, chosen[start : start + step])
            density[start : start + step] = sum(share * each for share, each in parts)
        return density

    def densities_by_slope(
        self, population: Population, n_cells: int, rows: Sequence[Any] | None = None
    ) -> Callable[[int], Floats]:
        """Return what tells the densities at the nodes of a slope, or at some of these.

        Those of many cells are kept, since every block of cells asks again; of few there are many nodes, and
        each slope is asked once.
        """

        def of_slope(number: int) -> Floats:
            return self.densities(population, number, slice(None) if rows is None else rows[number])

        return lru_cache(maxsize=None if n_cells > BLOCK else 1)(of_slope)

    def spread_variances(self, population: Population, log_size: float) -> list[float]:
        """Return posterior means of variances of the components, at a size."""
        growth = np.exp(self.spread_slope * (log_size - self.grid.origin))
        return [self.mean(spread**2) for spread in population.spreads(self.spread * growth)]

    def at_means(self) -> Self:
        """Return the one node of all hyperparameters at their posterior means."""
        names = ("location", "spread", "drawn_spread", "spread_slope")
        means: dict[str, Any] = {name: np.full((1, 1), self.mean(getattr(self, name))) for name in names}
        return replace(self, **means, slope=np.array([self.mean(self.slopes)]), weight=np.ones((1, 1)))

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on; nothing where all is quadrature."""
        return {}

    def mean(self, values: Floats) -> float:
        """Return a posterior mean."""
        return float(np.sum(self.weight * values))

    def sd(self, values: Floats) -> float:
        """Return a posterior standard deviation."""
        return float(np.sqrt(max(np.sum(self.weight * (values - self.mean(values)) ** 2), 0.0)))

    def most(self, values: Floats, chance: float = 0.975) -> float:
        """Return what a hyperparameter is at most, but for a chance."""
        order = np.argsort(values, axis=None)
        below = np.cumsum(self.weight.ravel()[order])
        return float(values.ravel()[order][np.searchsorted(below, chance * below[-1])])

    @property
    def log_spread_sd(self) -> float:
        """The posterior standard deviation of log s."""
        return self.sd(np.log(self.drawn_spread))

    @property
    def slopes(self) -> Floats:
        """The slope at every node."""
        return np.broadcast_to(self.slope[:, None], self.weight.shape)


def fitted(
    source: CellsSource, population: Population, line: Line, *, has_spread_slope: bool = True
) -> tuple[Hyperparameters, KeptNodes]:
    """Return the posterior of the hyperparameters, on a grid that is fitted to it, and nodes of all cells.

    Where neither the population nor the cells forbid it, the location has a slope on log size, and the
    spread has one if it is asked for.
    """
    has_slope = population.slope and source.has_sizes
    n, n_cells = min(FIRST_CELLS, source.n_cells), source.n_cells
    prior = location_prior(line, source.middle)
    known: Hyperparameters | None = None
    n_known, middle = n, source.middle
    while True:
        cells = np.unique(np.linspace(0, n_cells - 1, n).astype(np.int64))
        blocks = KeptNodes(source, cells)
        fit = Fit(
            blocks=blocks,
            population=population,
            moments=moments_of(blocks, middle, is_near=known is not None and not blocks.are_kept),
            prior=prior,
            has_slope=has_slope,
            has_spread_slope=has_slope and has_spread_slope,
        )
        known = fit.settled(fit.first_box() if known is None else fit.box_after(known, n / n_known))
        if n == n_cells:
            return known, blocks
        n_known, n = n, more_cells(n, n_cells)
        middle = known.mean(known.location)


def more_cells(n: int, n_cells: int) -> int:
    """Return how many cells come after n: all, once more of them than are kept would be asked in vain."""
    return n_cells if n * MORE >= n_cells or n >= KEPT_NODES else min(n * MORE, KEPT_NODES)


def rule_sizes(n_cells: int) -> tuple[int, int, int]:
    """Return how many nodes the rules over t, s and b have."""
    n_t, n_s, n_b = _of_cells(_NODES, n_cells)
    return n_t, n_s, n_b


def _of_cells(nodes: Mapping[int | None, tuple[int, ...]], n_cells: int) -> tuple[int, ...]:
    return next(sizes for most, sizes in nodes.items() if most is None or n_cells <= most)


def legendre_rule(ends: tuple[float, float], n: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of a rule, by its middle and half width."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return ends[0] + ends[1] * nodes, ends[1] * weights


def followed(
    name: str, ends: tuple[float, float], mean: float, sd: float, n: int
) -> tuple[tuple[float, float], bool]:
    """Return middle and half width of a rule of n nodes that a posterior asks for, and whether it has it."""
    centre, half = ends
    # Where nodes are too far apart to tell, the standard deviation is theirs; at an end it is larger.
    gap = mean - centre
    at_an_end = gap > 0.6 * half or (gap < -0.6 * half and not (name == "s" and centre <= half))
    width = max(sd, (0.45 if at_an_end else 0.8 / n) * half)
    near = spread_ends(mean, width) if name == "s" else (mean, T_REACH * width)
    is_inside = abs(near[0] - centre) < 0.25 * half and 0.7 < near[1] / half < 1.35
    return (ends if is_inside else near), is_inside


def even_rule(ends: tuple[float, float], n: int) -> tuple[Floats, Floats]:
    """Return evenly spaced nodes and weights, by the middle and half width."""
    step = 2.0 * ends[1] / n
    nodes: Floats = ends[0] - ends[1] + step * (np.arange(n, dtype=np.float64) + 0.5)
    return nodes, np.full(n, step, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Some cells: their nodes, normal approximations, and what all share."""

    blocks: KeptNodes
    population: Population
    moments: Moments
    prior: LocationPrior
    has_slope: bool
    has_spread_slope: bool

    def first_box(self) -> Box:
        """Return where the normal approximation has its posterior."""
        return first_box(
            self.moments, self.prior, has_slope=self.has_slope, has_spread_slope=self.has_spread_slope
        )

    def box_after(self, known: Hyperparameters, more: float) -> Box:
        """Return where the posterior is by that of a part of these cells, which are so many times as many.

        The normal approximation is off by as much whatever the number of cells is, many times what they tell.
        """
        finer = _SPARE * more**-0.5
        origin = self._origin(known.mean(known.drawn_spread), known.mean(known.spread_slope))
        moved = origin - known.grid.origin
        location = known.location + known.slopes * moved
        spread = known.drawn_spread * np.exp(known.spread_slope * moved)
        ends = {
            name: (known.mean(values), T_REACH * finer * known.sd(values))
            for name, values in (("b", known.slopes), ("g", known.spread_slope))
        }
        s, g = (np.array([known.mean(values)]) for values in (spread, known.spread_slope))
        centre, sd = self._location(s, g, ends["b"][0], origin)
        t = (known.mean(location) - float(centre[0])) / float(sd[0])
        return Box(
            t=(t, T_REACH * max(finer * known.sd(location) / float(sd[0]), 1.0)),
            s=spread_ends(known.mean(spread), finer * known.sd(spread)),
            **ends,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """How many nodes the rules have."""
        n_cells = len(self.blocks.cells)
        if not self.has_spread_slope:
            return dict(zip("tsb", rule_sizes(n_cells), strict=True))
        return dict(zip("tsbg", _of_cells(_NODES_OF_ALL, n_cells), strict=True))

    def settled(self, box: Box) -> Hyperparameters:
        """Weigh a grid, and move its ends until the posterior lies inside."""
        sizes = self.sizes
        if not self.has_slope:
            del sizes["b"]
        for _ in range(ROUNDS):
            result, t = self.weighed(box)
            known = {"t": t, "s": result.drawn_spread, "b": result.slopes, "g": result.spread_slope}
            moved: dict[str, tuple[float, float]] = {}
            is_settled = True
            for name, n in sizes.items():
                values = known[name]
                ends = getattr(box, name)
                moved[name], is_inside = followed(name, ends, result.mean(values), result.sd(values), n)
                is_settled &= is_inside
            if is_settled:
                return result
            box = replace(box, **moved)
        return replace(result, settled=False)

    def weighed(self, box: Box) -> tuple[Hyperparameters, Floats]:
        """Return nodes and weights of the posterior within a box, and t at the nodes."""
        moments, prior, sizes = self.moments, self.prior, self.sizes
        # Evenly spaced nodes do with fewer than Gauss's of what falls at both ends.
        rule = even_rule if self.has_spread_slope else legendre_rule
        (s, of_s), (t, of_t) = legendre_rule(box.s, sizes["s"]), rule(box.t, sizes["t"])
        b, of_b = rule(box.b, sizes["b"]) if self.has_slope else (np.zeros(1), np.ones(1))
        g, of_g = rule(box.g, sizes["g"]) if self.has_spread_slope else (np.zeros(1), np.ones(1))
        # Sizes are taken from where they tell nothing of the location.
        origin = self._origin(float(s[len(s) // 2]), box.g[0])
        # One row a pair of g and s; (2).
        s, g = np.tile(s, len(g)), np.repeat(g, len(s))
        centre, sd = self._location(s, g, box.b[0], origin)
        shape = (len(b), len(s) * len(t))
        location = np.broadcast_to((centre[:, None] + sd[:, None] * t).ravel(), shape)
        drawn, spread_slope = (np.broadcast_to(np.repeat(each, len(t)), shape) for each in (s, g))
        log_weight = prior.log_density(location) - 0.5 * drawn**2
        unit = moments.size_unit
        log_weight += log_spread_slope_prior(spread_slope * unit)
        log_weight -= 0.5 * (b[:, None] * unit / SLOPE_SD) ** 2
        # dm = sd dt.
        weight = np.repeat(np.outer(of_g, of_s).ravel() * sd, len(t)) * np.tile(of_t, len(s))
        log_weight += np.log(weight) + np.log(of_b)[:, None]
        grid, lowest = self._grid(box, location, drawn, b, spread_slope, origin)
        result = Hyperparameters(
            location=location,
            spread=np.maximum(drawn, lowest),
            drawn_spread=drawn,
            slope=b,
            spread_slope=spread_slope,
            weight=log_weight,
            grid=grid,
            size_unit=unit,
        )
        # The same of every slope.
        density = SharedDensity.of(sharpened(result.densities(self.population, 0, slice(None))))
        for _, nodes in self.blocks(grid.focus):
            for number, slope in enumerate(b):
                z = density.integrals(grid.placed(nodes, float(slope)).measure())
                log_weight[number] += np.sum(np.log(np.maximum(z, _FLOOR)), axis=0)
        weight = np.exp(log_weight - np.max(log_weight))
        weight /= np.sum(weight)
        weight[weight < _NEGLIGIBLE * np.max(weight)] = 0.0
        return replace(result, weight=weight / np.sum(weight)), np.broadcast_to(np.tile(t, len(s)), shape)

    def _location(
        self, spread: Floats, spread_slope: Floats, slope: float, origin: float
    ) -> tuple[Floats, Floats]:
        """Return what (2) moves and scales t by, of each pair of s and g."""
        moments, prior = self.moments, self.prior
        omega = moments.omega(spread, moments.growth(spread_slope, origin))
        x = moments.mean - slope * (moments.log_size - origin)
        told = np.sum(omega, axis=1) + prior.precision
        return (omega @ x + prior.precision * prior.centre) / told, told**-0.5

    def _origin(self, spread: float, spread_slope: float) -> float:
        moments = self.moments
        growth = moments.growth(np.array([spread_slope]), float(np.mean(moments.log_size)))
        omega = moments.omega(np.array([spread]), growth)[0]
        return float(np.sum(omega * moments.log_size) / np.sum(omega))

    def _grid(
        self, box: Box, location: Floats, spread: Floats, b: Floats, spread_slope: Floats, origin: float
    ) -> tuple[ResidualGrid, float]:
        """Return points that tell the populations of a box, and the least spread that they tell."""
        moments, prior = self.moments, self.prior
        sizes = np.array([max(np.min(moments.log_size) - 1.5, 0.0), np.max(moments.log_size) + 0.5])
        knots: tuple[float, ...] = (origin,)
        if self.has_spread_slope:
            steepest = abs(box.g[0]) + box.g[1] / 2.0
            ratio = _RATIO if self.population.is_contaminated else _RATIO_OF_TAILS
            apart = min(_APART, ratio / steepest)
            most = next(n for cells, n in _KNOTS.items() if cells is None or len(moments.mean) <= cells)
            n_knots = int(np.clip(np.ceil((sizes[1] - sizes[0]) / apart) + 1, 2, most))
            knots = tuple(np.linspace(float(sizes[0]), float(sizes[1]), n_knots).tolist())
        # At the sizes where populations are narrowest.
        narrowest = float(np.min(np.exp(box.g[0] * (sizes - origin))))
        least = LEAST * float((np.sum(moments.precision) + prior.precision) ** -0.5)
        # Of a node: below it, up to the end of a rule, there is no population that nodes are to tell.
        lowest = max(float(np.min(spread)) * narrowest, least)
        # Where populations are, of small cells and of large ones, and how narrow there.
        about = float(np.mean(location))
        beyond = sizes - origin
        moved = b[:, None, None] * beyond if self.has_slope else np.zeros((1, 1, 1))
        gap = np.max(np.abs(location[0, :, None] + moved - about), axis=0)
        width = np.maximum(spread[0, :, None] * np.exp(spread_slope[0, :, None] * beyond), least)
        # Beyond its even part (2) of ``cells`` has nodes as far apart as they are from it.
        reach = min(float(np.max(gap - width, initial=0.0)), FARTHEST)
        # Narrower ones than this share of where they may be are told apart once the box is smaller.
        lowest = max(lowest, reach * (_FINEST_OF_KNOTS if self.has_spread_slope else FINEST))
        # Sums over nodes are not as good where (2) of ``cells`` bends, so that it bends elsewhere.
        reach = reach + _BEND * lowest if reach > 2.0 * lowest else 0.0
        focus = Focus(centre=about, width=lowest, reach=reach)
        grid = ResidualGrid(
            focus=blocks_focus(self.blocks, focus), origin=origin, knots=knots, highest=moments.highest
        )
        return grid, lowest
