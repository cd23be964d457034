r"""Hyperparameters of a population, integrated over on a grid that is fitted to their posterior.

Model. Of cells c with the likelihoods of ``cells``,

.. math::
    Z_c(h) = \sum_{ij} w_{cij} \, f(x_{ci} - b (v_{cj} - v_0) \mid m, s), \qquad
    p(h \mid y) \propto p(h) \prod_c Z_c(h), \qquad h = (m, s, b) \qquad (1)

with public hyperpriors, of the line's unit:

.. math:: m \sim \mathrm{Logistic}(m_0, \kappa), \qquad s \sim \mathrm{HalfNormal}(1), \qquad
    b \sim \mathrm{Normal}(0, .5^2). \qquad (2)

Of logits :math:`m_0` = 0 and :math:`\kappa` = 1, which is a uniform law of the probability; of logarithms,
which have no natural unit, :math:`m_0` is about where all cells are and :math:`\kappa` = 2. A half-normal law
of the spread is flat next to 0, where an inverse gamma one would decide (Gelman 2006).

Method. The integral over h is a product of Gauss-Legendre rules. Where to put them follows from the normal
approximation of each cell's likelihood, :math:`\hat x_c` with the precision :math:`q_c` (Fay, Herriot 1979):
given s and b, m is about

.. math:: \hat m = \frac{\sum_c \omega_c (\hat x_c - b (\hat v_c - v_0))}{\sum_c \omega_c}, \qquad
    \omega_c = \frac{q_c}{1 + s^2 q_c}, \qquad (3)

    m = \hat m + t \Bigl(\tfrac 3 {\pi^2 \kappa^2} + \sum_c \omega_c\Bigr)^{-1/2},

and the rules are over (t, s, b): neither the width nor the place of the former depends much on the others.
The approximation only says where to look: weights are those of (1), and the ends of the rules follow their
means and standard deviations until these lie inside, first of some hundred cells, then of all. Spreads far
below what any cell can tell are one spread, ``LEAST`` of the standard deviation of m at s = 0.

Symbols: t, s, b: nodes of the three rules; log p(h | y): ``log_weight``.

References
----------
Fay, Herriot. Estimates of income for small places. J. Amer. Statist. Assoc. 74, 1979. Gelman. Prior
distributions for variance parameters in hierarchical models. Bayesian Anal. 1, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Cells, Floats

SLOPE_SD = 0.5
COEFFICIENT_SD = 1.0
"""Of covariates: for each standard deviation, or from 0 to 1 of an indicator (``regression``)."""
LOG_SPREAD_SD = float(np.pi / np.sqrt(8.0))
"""Of the logarithm of a half-normal number, whatever its scale."""
BLOCK = 256
_NODES = {100: (15, 17, 21), 2000: (11, 13, 11), None: (9, 9, 7)}
"""Nodes of the rules over t, s and b, up to so many cells: of more, less is left to integrate over."""
LEAST = 0.5
"""Of the standard deviation of m at s = 0: spreads below are one, as no cells can tell them."""
FIRST_CELLS, MORE = 512, 5
ROUNDS = 8
_T_REACH = 4.3
_NEGLIGIBLE = 1e-7
_FLOOR = 1e-300
_REFERENCE_SD = 3.0
FARTHEST, FINEST = 40.0, 1.0 / 400.0
"""Of where slopes move cells, in units of the line: beyond, narrow laws fall between nodes and evidence is
too high (a slope of 2 moves cells of 2 records 26 units from those of 10^6). Of it, the least width."""
_KEPT_NODES = 12_000
"""Cells whose nodes are kept between rounds: 5 kB each."""


@dataclass(frozen=True, slots=True)
class LocationPrior:
    """A logistic law of m."""

    centre: float
    scale: float

    def log_density(self, location: Floats) -> Floats:
        """But for a constant."""
        gap = np.abs(location - self.centre) / self.scale
        result: Floats = -gap - 2.0 * np.log1p(np.exp(-gap))
        return result

    @property
    def precision(self) -> float:
        """One over the variance."""
        return 3.0 / (np.pi * self.scale) ** 2


def location_prior(line: Line, middle: float) -> LocationPrior:
    """Return the hyperprior of m on a line."""
    return LocationPrior(0.0, 1.0) if line is Line.LOGIT else LocationPrior(middle, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The normal approximation of each cell's likelihood."""

    mean: Floats
    precision: Floats
    log_size: Floats

    def omega(self, spread: Floats) -> Floats:
        """Return the weights of (3), (n_spreads, n_cells)."""
        q = self.precision
        result: Floats = q / (1.0 + spread[:, None] ** 2 * q)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Ends of the rules over t, s and b: middles and half widths."""

    t: tuple[float, float]
    s: tuple[float, float]
    b: tuple[float, float]


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
    weight : ndarray of shape (n_slopes, n_nodes), float64
        Adds up to 1.
    grid : ResidualGrid
    settled : bool
        Whether the posterior lies within the ends of the rules.
    prior_log_spread_sd : float
        The standard deviation of log s under its hyperprior.
    """

    location: Floats
    spread: Floats
    drawn_spread: Floats
    slope: Floats
    weight: Floats
    grid: ResidualGrid
    settled: bool = True

    prior_log_spread_sd: float = LOG_SPREAD_SD

    def components(self, population: Population, number: int, rows: Any) -> list[tuple[float, Floats]]:
        """Return shares and densities, on the grid, of the components at some nodes of a slope."""
        return population.components(self.grid.points, self.location[number][rows], self.spread[number][rows])

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


class KeptNodes:
    """Nodes of a source, a block at a time, kept where there are few cells."""

    def __init__(self, source: CellsSource, cells: Cells) -> None:
        self.source, self.cells = source, cells
        self._focus: Focus | None = None
        self._kept: list[Nodes] = []

    def __call__(self, focus: Focus) -> Iterator[tuple[Cells, Nodes]]:
        """Give places of cells among these, and their nodes."""
        if self._focus != focus:
            self._focus, self._kept = focus, []
        places = np.arange(len(self.cells))
        for number, start in enumerate(range(0, len(places), BLOCK)):
            block = places[start : start + BLOCK]
            if number < len(self._kept):
                yield block, self._kept[number]
                continue
            nodes = self.source.nodes(self.cells[block], focus)
            if len(places) <= _KEPT_NODES:
                self._kept.append(nodes)
            yield block, nodes


def fitted(source: CellsSource, population: Population, line: Line) -> tuple[Hyperparameters, KeptNodes]:
    """Return the posterior of the hyperparameters, on a grid that is fitted to it, and nodes of all cells."""
    has_slope = population.slope and source.has_sizes
    n, n_cells = min(FIRST_CELLS, source.n_cells), source.n_cells
    prior = location_prior(line, source.middle)
    box, middle = None, source.middle
    while True:
        cells = np.unique(np.linspace(0, n_cells - 1, n).astype(np.int64))
        blocks = KeptNodes(source, cells)
        moments = moments_of(blocks, middle)
        if box is None:
            box = first_box(moments, prior, has_slope=has_slope)
        result, box = _settled(blocks, population, moments, box, prior, has_slope=has_slope)
        if n == n_cells:
            return result, blocks
        known, n = n, min(n * MORE, n_cells)
        middle = result.mean(result.location)
        # More cells tell t in finer units: what differs from the approximation stays.
        finer = (n / known) ** 0.5
        box = replace(box, t=(box.t[0] * finer, box.t[1] * finer))


def moments_of(blocks: KeptNodes, middle: float) -> Moments:
    """Work out the normal approximation, about where the population is: by two rounds."""
    n = len(blocks.cells)
    mean, precision, log_size = np.zeros(n), np.zeros(n), np.zeros(n)
    sd = _REFERENCE_SD
    focus = Focus(centre=middle, width=0.5)
    for _ in range(2):
        for block, nodes in blocks(focus):
            known = moments_about(nodes.position, np.sum(nodes.weight, axis=2), middle, sd)
            mean[block], precision[block] = known.mean, known.precision
            reference = _near(nodes.position, middle, sd)
            of_v = np.sum(nodes.weight * reference[:, :, None], axis=1)
            log_size[block] = np.sum(of_v * nodes.log_size, axis=1) / np.sum(of_v, axis=1)
        omega = precision / (1.0 + precision)
        middle = float(np.sum(omega * mean) / np.sum(omega))
        sd = 2.0
    return Moments(mean=mean, precision=precision, log_size=log_size)


def _near(position: Floats, middle: float, sd: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((position - middle) / sd) ** 2))


def moments_about(position: Floats, weight: Floats, middle: float, sd: float = 2.0) -> Moments:
    """Return the normal approximation of likelihoods at nodes, sizes left out.

    It is the posterior under Normal(middle, sd^2), less that law.
    """
    weight = weight * _near(position, middle, sd)
    weight /= np.sum(weight, axis=1, keepdims=True)
    first = np.sum(weight * position, axis=1)
    variance = np.sum(weight * (position - first[:, None]) ** 2, axis=1)
    precision = np.maximum(1.0 / variance - sd**-2.0, 1e-4)
    return Moments(
        mean=middle + (first - middle) / (variance * precision),
        precision=precision,
        log_size=np.zeros_like(first),
    )


def first_box(
    moments: Moments, of_location: LocationPrior, *, has_slope: bool = False, covariates: Floats | None = None
) -> Box:
    """Return where the normal approximation has its posterior; covariates are (n_cells, n_coefficients)."""
    spreads = np.geomspace(1e-3, 5.0, 60)
    size = moments.log_size - np.mean(moments.log_size)
    further = np.zeros((len(size), 0)) if covariates is None else covariates
    design = np.column_stack([np.ones_like(size), size if has_slope else np.zeros_like(size), further])
    prior = np.array([of_location.precision, SLOPE_SD**-2.0, *[COEFFICIENT_SD**-2.0] * further.shape[1]])
    log_weight, slopes, slope_variances = [], [], []
    for spread, omega in zip(spreads, moments.omega(spreads), strict=True):
        a = design.T @ (omega[:, None] * design) + np.diag(prior)
        gap = moments.mean - of_location.centre
        score = design.T @ (omega * gap)
        solved = np.linalg.solve(a, score)
        value = -0.5 * np.sum(np.log1p(spread**2 * moments.precision)) - 0.5 * np.sum(omega * gap**2)
        value += 0.5 * score @ solved - 0.5 * np.linalg.slogdet(a)[1]
        log_weight.append(value - 0.5 * spread**2 + np.log(spread))
        slopes.append(solved[1])
        slope_variances.append(np.linalg.inv(a)[1, 1])
    weight = np.exp(np.array(log_weight) - np.max(log_weight))
    weight /= np.sum(weight)
    spread = float(np.sum(weight * spreads))
    spread_sd = float(np.sqrt(np.sum(weight * (spreads - spread) ** 2))) + 0.02 * spread
    slope = float(np.sum(weight * slopes))
    variance = float(np.sum(weight * (np.array(slope_variances) + (np.array(slopes) - slope) ** 2)))
    return Box(t=(0.0, _T_REACH), s=spread_ends(spread, spread_sd), b=(slope, 5.0 * variance**0.5))


def spread_ends(mean: float, sd: float) -> tuple[float, float]:
    """Return the middle and half width of a rule over s, whose posterior has a tail to the right."""
    low, high = max(mean - 4.5 * sd, 0.0), mean + 5.5 * sd
    return (low + high) / 2.0, (high - low) / 2.0


def rule_sizes(n_cells: int) -> tuple[int, int, int]:
    """Return how many nodes the rules over t, s and b have."""
    return next(sizes for most, sizes in _NODES.items() if most is None or n_cells <= most)


def legendre_rule(ends: tuple[float, float], n: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of a rule, by its middle and half width."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return ends[0] + ends[1] * nodes, ends[1] * weights


def _settled(
    blocks: KeptNodes,
    population: Population,
    moments: Moments,
    box: Box,
    prior: LocationPrior,
    *,
    has_slope: bool,
) -> tuple[Hyperparameters, Box]:
    """Weigh a grid, and move its ends until the posterior lies inside."""
    for _ in range(ROUNDS):
        result, t = _weighed(blocks, population, moments, box, prior, has_slope=has_slope)
        n_t, n_s, n_b = rule_sizes(len(blocks.cells))
        known = {
            "t": (result.mean(t), result.sd(t), n_t),
            "s": (result.mean(result.drawn_spread), result.sd(result.drawn_spread), n_s),
            "b": (result.mean(result.slopes), result.sd(result.slopes), n_b),
        }
        moved: dict[str, tuple[float, float]] = {}
        is_settled = True
        for name, (mean, sd, n) in known.items():
            ends = getattr(box, name)
            if name == "b" and not has_slope:
                continue
            moved[name], is_inside = followed(name, ends, mean, sd, n)
            is_settled &= is_inside
        if is_settled:
            return result, box
        box = replace(box, **moved)
    return replace(result, settled=False), box


def followed(
    name: str, ends: tuple[float, float], mean: float, sd: float, n: int
) -> tuple[tuple[float, float], bool]:
    """Return middle and half width of a rule of n nodes that a posterior asks for, and whether it has it."""
    centre, half = ends
    # Where nodes are too far apart to tell, the standard deviation is theirs; at an end it is larger.
    gap = mean - centre
    at_an_end = gap > 0.6 * half or (gap < -0.6 * half and not (name == "s" and centre <= half))
    width = max(sd, (0.45 if at_an_end else 0.8 / n) * half)
    near = spread_ends(mean, width) if name == "s" else (mean, _T_REACH * width)
    is_inside = abs(near[0] - centre) < 0.25 * half and 0.7 < near[1] / half < 1.35
    return (ends if is_inside else near), is_inside


def _weighed(
    blocks: KeptNodes,
    population: Population,
    moments: Moments,
    box: Box,
    prior: LocationPrior,
    *,
    has_slope: bool,
) -> tuple[Hyperparameters, Floats]:
    """Return nodes and weights of the posterior within a box, and t at the nodes."""
    n_t, n_s, n_b = rule_sizes(len(blocks.cells))
    (t, of_t), (s, of_s) = legendre_rule(box.t, n_t), legendre_rule(box.s, n_s)
    b, of_b = legendre_rule(box.b, n_b) if has_slope else (np.zeros(1), np.ones(1))
    # (3). Sizes are taken from where they tell nothing of the location.
    omega = moments.omega(s)
    typical = omega[len(s) // 2]
    origin = float(np.sum(typical * moments.log_size) / np.sum(typical))
    x = moments.mean - b[:, None] * (moments.log_size - origin)
    centre = (x @ omega.T + prior.precision * prior.centre) / (np.sum(omega, axis=1) + prior.precision)
    sd = (np.sum(omega, axis=1) + prior.precision) ** -0.5
    least = LEAST * float((np.sum(moments.precision) + prior.precision) ** -0.5)
    shape = (len(b), len(s) * len(t))
    location = (centre[:, :, None] + sd[:, None] * t).reshape(shape)
    drawn = np.broadcast_to(np.repeat(s, len(t)), shape)
    log_prior = prior.log_density(location) - 0.5 * drawn**2
    if has_slope:
        log_prior = log_prior - 0.5 * (b[:, None] / SLOPE_SD) ** 2
    # dm = sd dt.
    log_rule = np.log(np.repeat(of_s * sd, len(t)) * np.tile(of_t, len(s))) + np.log(of_b)[:, None]
    spread = np.maximum(drawn, least)
    lowest = max(float(box.s[0] - box.s[1]), least)
    # Where narrow populations may be, of small cells and of large ones.
    about = float(np.mean(location))
    sizes = np.array([max(np.min(moments.log_size) - 1.5, 0.0), np.max(moments.log_size) + 0.5])
    moved = b[:, None, None] * (sizes - origin)[:, None] if has_slope else np.zeros((1, 1, 1))
    gap = np.max(np.abs(location[:, None, :] + moved - about), axis=1)
    reach = min(float(np.max(gap[spread <= 2.0 * lowest], initial=0.0)), FARTHEST)
    # Narrower ones than this share of where they may be are told apart once the box is smaller.
    lowest = max(lowest, reach * FINEST)
    spread = np.maximum(spread, lowest)
    focus = Focus(centre=about, width=lowest, reach=reach if reach > 2.0 * lowest else 0.0)
    kept_focus = blocks_focus(blocks, focus)
    grid = ResidualGrid(focus=kept_focus, origin=origin)
    log_weight = log_prior + log_rule
    densities = [
        sum(share * density for share, density in population.components(grid.points, m, each))
        for m, each in zip(location, spread, strict=True)
    ]
    for _, nodes in blocks(kept_focus):
        for number, slope in enumerate(b):
            z = grid.placed(nodes, float(slope)).measure() @ np.asarray(densities[number]).T
            log_weight[number] += np.sum(np.log(np.maximum(z, _FLOOR)), axis=0)
    weight = np.exp(log_weight - np.max(log_weight))
    weight /= np.sum(weight)
    weight[weight < _NEGLIGIBLE * np.max(weight)] = 0.0
    result = Hyperparameters(
        location=location,
        spread=spread,
        drawn_spread=drawn,
        slope=b,
        weight=weight / np.sum(weight),
        grid=grid,
    )
    return result, np.broadcast_to(np.tile(t, len(s)), shape)


def blocks_focus(blocks: KeptNodes, focus: Focus) -> Focus:
    """Return the focus whose nodes are kept, where it is near enough to the one that is wanted."""
    known = blocks._focus  # noqa: SLF001 - of this file
    if (
        known is not None
        and 0.4 * focus.width <= known.width <= focus.width
        and float(np.max(np.abs(known.centre - focus.centre))) + focus.reach < known.width + known.reach
    ):
        return known
    return focus
