r"""A mean and a variance given that they are those of records within bounds.

Model. The mean and the variance of records within l..u satisfy

.. math:: l \le \mu \le u, \qquad \sigma^2 \le (u - \mu)(\mu - l) \le (u - l)^2 / 4, \qquad (1)

the inequality of Bhatia and Davis, and that of Popoviciu. In half ranges about the middle that is
:math:`\mu^2 + \sigma^2 \le 1`. Of a mixture of normal inverse gamma distributions i, with weights w_i, both
marginals given (1) are one integral each:

.. math:: p(\sigma^2 \mid A) \propto \sum_i w_i \, \mathrm{IG}_i(\sigma^2) \,
    P_i\bigl(|\mu| \le \sqrt{1 - \sigma^2} \bigm| \sigma^2\bigr), \qquad (2)

.. math::
    p(\mu \mid A) \propto \sum_i w_i \, t_i(\mu) \, P_i(\sigma^2 \le 1 - \mu^2 \mid \mu), \qquad
    \sigma^2 \mid \mu \sim \mathrm{IG}\bigl(a_i + \tfrac 1 2,\ b_i + \tfrac{\kappa_i} 2 (\mu - m_i)^2\bigr).
    \qquad (3)

Symbols:

- l, u: ``mean_limits``, in the parameter's unit
- i, w, a, b, kappa: of ``joint_components``
- IG, t: ``log_density``; P_i: ``slices`` of (2), and ``room`` of (3)

Method. Both are integrated over components and places together, by a lattice of points: components are taken
as often as they matter, in order, and places are even shares of a Cauchy distribution beside each, within the
region's ends. Every point has the ratio of densities times P_i for its weight. Sums over points are P(A | y),
means, standard deviations and distribution functions; beside dense sums levels are right to .005, means to
.005 standard deviations, standard deviations to 1 % and P(A | y) to .001 (tests). ``error`` of a cell is half
of what two lattices differ by that are half as fine. Of distributions that are no such mixture, and of cells
of which less than ``LEAST`` is left, joint draws outside of (1) are left out (rejection), and moments and
quantiles are those of the rest. So are draws of any cell.

References
----------
Bhatia, Davis. A better bound on the variance. Amer. Math. Monthly 107, 2000. Silverman. Density estimation
for statistics and data analysis. 1986.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws, from_draws
from suffice.pipeline.math.distributions.joint_components import KnowsComponents
from suffice.pipeline.math.distributions.within_limits import (
    FAR,
    NEGLIGIBLE,
    Tabulated,
    WithinLimits,
    bounded_moments,
    impossible,
    near_limits,
    uncut,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.joint_components import JointComponents
    from suffice.typing import Floats


LEAST = 1e-10
"""Probability of the region below which nothing is known of what is left there."""
_LEVELS = np.sin(np.linspace(0.0, np.pi / 2.0, 129)) ** 2
"""Of a distribution function where a table has knots, closer together where quantiles bend."""
_TAIL = 1e-6
"""Probability on either side beyond which tables end."""
_NODES = 1 << 14
"""Points of a lattice."""
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
"""Its multiples less whole numbers are as even in 0..1 as they are beside their order."""
_WIDER = 1.5
"""Widths of components, that of the Cauchy distribution in their place."""
_SMALLEST = 1e-8
"""Of all that matters, what a component has that is left out."""
_SPARED = 0.01
"""Probability of the region that each component is taken to have at least, where it is chosen."""
_DRAWN, _KEPT, _FEWEST, _MOST_ROUNDS = 20_000, 8000, 500, 5
"""Draws of a round, of a cell's that are kept at most, and that are enough; and rounds."""
_NUMBERS = 1 << 22


class DrawnWithin(Draws):
    """Joint draws of a mean and a variance, of which those outside of a region are left out."""

    def __init__(self, drawn: dict[str, Floats]) -> None:
        self._drawn = drawn

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self._drawn)

    def mean(self, parameter: str) -> Floats:
        """Means of the draws."""
        return np.asarray(np.mean(self._drawn[parameter], axis=0))

    def sd(self, parameter: str) -> Floats:
        """Standard deviations of the draws."""
        return np.asarray(np.std(self._drawn[parameter], axis=0))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles of all draws that were kept."""
        return np.asarray(np.quantile(self._drawn[parameter], q, axis=0).T)

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Densities at points (n_cells, n_points), by normal kernels as wide as Silverman's rule has it.

        Of a variance they are kernels of its logarithm. What they carry over the outermost draw is folded
        back, so that nothing is lost at a limit.
        """
        in_logs = parameter == self.parameters[1]
        values = np.empty(points.shape)
        for cell, at in enumerate(points):
            drawn = np.sort(self._drawn[parameter][:: max(1, _KEPT // 1000), cell])
            is_inside = (at >= drawn[0]) & (at <= drawn[-1])
            position = np.clip(at, drawn[0], drawn[-1])
            # The density of v is that of log v over v.
            slope = 1.0 / position if in_logs else 1.0
            if in_logs:
                drawn, position = np.log(drawn), np.log(position)
            low, high = drawn[0], drawn[-1]
            # Silverman's rule of thumb, .9 min(sd, iqr / 1.349) n^(-1/5).
            iqr = np.subtract(*np.quantile(drawn, [0.75, 0.25])) / 1.349
            width = max(0.9 * min(np.std(drawn), iqr) * len(drawn) ** -0.2, np.finfo(np.float64).tiny)
            # Reflection at the outermost draws: kernels keep their mass within.
            folded = np.concatenate([drawn, 2.0 * low - drawn, 2.0 * high - drawn])
            kernels = np.exp(-0.5 * ((position[:, None] - folded) / width) ** 2)
            value = slope * np.sum(kernels, axis=1) / (len(drawn) * width * np.sqrt(2.0 * np.pi))
            values[cell] = np.where(is_inside, value, 0.0)
        return values

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draws of these draws."""
        first = next(iter(self._drawn.values()))
        chosen = rng.integers(len(first), size=(draws, first.shape[1]))
        return {name: np.take_along_axis(drawn, chosen, axis=0) for name, drawn in self._drawn.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TabulatedJointly:
    """A mean and a variance within a region, by the tables of both; draws are joint ones.

    Attributes
    ----------
    tables : dict of str to Tabulated
        By parameter.
    drawn : callable
        Without arguments -> joint draws. It remembers them.
    error : ndarray of shape (n_cells,), float64
        Of distribution functions; see the module. NaN where tables are those of draws.
    """

    tables: Mapping[str, Tabulated]
    drawn: Callable[[], DrawnWithin]
    error: Floats

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.tables)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.tables[parameter].mean(parameter)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.tables[parameter].sd(parameter)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from the table; they rest on no draws."""
        return self.tables[parameter].quantiles(parameter, q, draws, rng)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points), from the table."""
        return self.tables[parameter].density(parameter, points)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        return self.drawn().sample(draws, rng)


def within_region(plain: Distribution, mean_limits: tuple[float, float]) -> Distribution:
    """Restrict a mean and a variance to those of records within two bounds, (3)."""
    of_mean, of_variance = plain.parameters
    low, high = mean_limits
    limits = {of_mean: mean_limits, of_variance: (0.0, (high - low) ** 2 / 4.0)}
    cut = near_limits(plain, of_mean, mean_limits)
    (mean, sd), (variance, of_it) = bounded_moments(plain, of_mean), bounded_moments(plain, of_variance)
    with np.errstate(invalid="ignore", over="ignore"):
        # (u - mu)(mu - l) at the farthest likely mean, d = min(u - mu, mu - l): d (u - l - d).
        farthest = np.minimum(high - mean, mean - low) - FAR * sd
        cut |= ~(variance + FAR * of_it < farthest * (high - low - farthest))
    known: Any = plain
    # What is known by draws alone, as a pool of very many cells is, stays as it is.
    can_be_cut = hasattr(plain, "take") and not from_draws(plain)
    if can_be_cut and cut.any():
        # Of cells that may be cut off: quantiles say more, and take longer.
        cut_cells = known.take(np.flatnonzero(cut))
        ends, rng = [NEGLIGIBLE, 1.0 - NEGLIGIBLE], np.random.default_rng(0)
        with np.errstate(over="ignore"):
            first, last = cut_cells.quantiles(of_mean, ends, 0, rng).T
            most = cut_cells.quantiles(of_variance, ends[1:], 0, rng)[:, 0]
        # The same at a quantile of the mean.
        nearest = np.minimum(first - low, high - last)
        is_cut = (nearest < 0.0) | (most > nearest * (high - low - nearest))
        for name, each in limits.items():
            is_cut |= impossible(cut_cells, name, each)
        cut[cut] = is_cut
    cells = np.flatnonzero(cut)
    if not cells.size or not can_be_cut:
        return uncut(plain, limits, np.zeros_like(cut))
    cut_cells = known.take(cells)
    by_tables = isinstance(cut_cells, KnowsComponents)
    share = np.ones(len(cut))
    inner: Distribution
    inner, share[cells] = (_tabulated if by_tables else _left_of_draws)(cut_cells, mean_limits)
    return WithinLimits(plain=plain, limits=limits, inner=inner, cut=cut, share=share)


class Marginal(NamedTuple):
    """One parameter of one cell: knots, the distribution function there, moments, P(A | y) and error."""

    knots: Floats
    below: Floats
    mean: float
    sd: float
    inside: float
    error: float


def _tabulated(plain: Any, mean_limits: tuple[float, float]) -> tuple[TabulatedJointly, Floats]:
    """Tabulate both marginals of cells that are all cut; with P(A | y)."""
    low, high = mean_limits
    centre, half_range = (low + high) / 2.0, (high - low) / 2.0
    marginals = list(map(marginals_within, plain.joint_components(centre, half_range)))
    knots = np.array([[marginal.knots for marginal in both] for both in marginals])
    numbers = np.array([[marginal[2:] for marginal in both] for both in marginals])
    # In the columns' unit.
    knots[:, 0], knots[:, 1] = centre + half_range * knots[:, 0], half_range**2 * knots[:, 1]
    numbers[:, 0, 0] = centre + half_range * numbers[:, 0, 0]
    numbers[:, 0, 1] *= half_range
    numbers[:, 1, :2] *= half_range**2
    share, error = numbers[..., 2].mean(axis=1), numbers[..., 3].max(axis=1)
    few = np.flatnonzero(~(numbers[..., 2].min(axis=1) >= LEAST))
    if few.size:
        # Prior and released values contradict each other.
        drawn, share[few] = _left_of_draws(plain.take(few), mean_limits)
        error[few] = np.nan
        for row, name in enumerate(plain.parameters):
            knots[few, row] = drawn.quantiles(name, _LEVELS.tolist(), 0, np.random.default_rng(0))
            numbers[few, row, 0], numbers[few, row, 1] = drawn.mean(name), drawn.sd(name)
    tables = {
        name: Tabulated(
            name=name,
            knots=knots[:, row],
            below=np.broadcast_to(_LEVELS, knots[:, row].shape),
            moments=functools.partial(_pair, numbers[:, row, 0], numbers[:, row, 1]),
        )
        for row, name in enumerate(plain.parameters)
    }
    drawn_once = functools.cache(lambda: _left_of_draws(plain, mean_limits)[0])
    return TabulatedJointly(tables=tables, drawn=drawn_once, error=error), share


def _pair(means: Floats, sds: Floats) -> tuple[Floats, Floats]:
    return means, sds


def marginals_within(components: JointComponents) -> tuple[Marginal, Marginal]:
    """Return the marginals of one cell within the region, in half ranges: of the mean and of the variance."""
    matters = components.weight * (components.inside() + _SPARED)
    kept = np.flatnonzero(matters > _SMALLEST * np.sum(matters))
    few, matters = components.take(kept), matters[kept]
    return _marginal(few, matters, is_variance=False), _marginal(few, matters, is_variance=True)


def _marginal(components: JointComponents, matters: Floats, *, is_variance: bool) -> Marginal:
    """Integrate (3), or (2) over the variance's logarithm, by a lattice of components and places."""
    points, weight = _points(components, matters, is_variance=is_variance)
    values = np.exp(points) if is_variance else points
    total = float(np.sum(weight))
    if not total >= LEAST:
        return Marginal(knots=_LEVELS, below=_LEVELS, mean=0.0, sd=0.0, inside=0.0, error=np.nan)
    weight /= total
    mean = float(np.sum(weight * values))
    order = np.argsort(values)
    # Ends of a table are where next to nothing is left: places of a Cauchy distribution go on and on.
    knots = np.interp(_LEVELS.clip(_TAIL, 1.0 - _TAIL), _sums(weight[order]), values[order])
    # The points in turn are two lattices, each half as fine.
    halves = [
        np.interp(knots, values[half], _sums(weight[half]))
        for half in (order[order % 2 == 0], order[order % 2 == 1])
    ]
    return Marginal(
        knots=knots,
        below=_LEVELS,
        mean=mean,
        sd=float(np.sqrt(np.sum(weight * (values - mean) ** 2))),
        inside=total,
        error=float(np.max(np.abs(halves[0] - halves[1]))) / 2.0,
    )


def _sums(weight: Floats) -> Floats:
    """Return the distribution function at points, each of which is half below itself."""
    below = np.cumsum(weight) - weight / 2.0
    total = below[-1] + weight[-1] / 2.0
    return np.asarray(below / total)


def _points(components: JointComponents, matters: Floats, *, is_variance: bool) -> tuple[Floats, Floats]:
    """Return places of a parameter within the region, and the mass that each stands for."""
    loc, width = components.line(is_variance=is_variance)
    # Components are taken as often as they matter, from one side to the other.
    order = np.argsort(loc)
    ends = np.cumsum(matters[order])
    number = np.arange(_NODES) + 0.5
    chosen = order[np.searchsorted(ends, ends[-1] / _NODES * number).clip(max=len(order) - 1)]
    each, loc, width = components.take(chosen), loc[chosen], width[chosen]
    # Places are those of Cauchy distributions within the region: no tail is as heavy.
    low, high = (-np.inf, 0.0) if is_variance else (-1.0, 1.0)
    first, last = (np.arctan((end - loc) / (_WIDER * width)) / np.pi for end in (low, high))
    level = first + (last - first) * np.modf(number * _GOLDEN)[0]
    away = _WIDER * np.tan(np.pi * level)
    points = np.clip(loc + width * away, low, high)
    wide = np.pi * width * _WIDER * (1.0 + (away / _WIDER) ** 2) * (last - first)
    density = np.exp(each.log_density(points, is_variance=is_variance))
    kept = each.slices(points) if is_variance else each.room(points)
    share = components.weight[chosen] / matters[chosen] * ends[-1] / _NODES
    return points, share * wide * density * kept


def _left_of_draws(known: Any, mean_limits: tuple[float, float]) -> tuple[DrawnWithin, Floats]:
    """Return joint draws that lie within the region, and their share."""
    cells = len(known.mean(known.parameters[0]))
    step = max(1, _NUMBERS // _DRAWN)
    parts = [
        _drawn_within(known.take(np.arange(start, min(start + step, cells))), mean_limits)
        for start in range(0, cells, step)
    ]
    *drawn, share = (np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True))
    return DrawnWithin(dict(zip(known.parameters, drawn, strict=True))), share


def _drawn_within(known: Distribution, mean_limits: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Draws within the region, (draws, n_cells) of the mean and of the variance; their share, (n_cells,)."""
    low, high = mean_limits
    # Always the same draws: what is asked of a posterior twice is answered alike.
    rng = np.random.default_rng(0)
    cells = len(known.mean(known.parameters[0]))
    means: list[list[Floats]] = [[] for _ in range(cells)]
    variances: list[list[Floats]] = [[] for _ in range(cells)]
    share, made = np.empty(cells), 0
    for _ in range(_MOST_ROUNDS):
        made += _DRAWN
        mean, variance = known.sample(_DRAWN, rng).values()
        # (3).
        inside = (mean >= low) & (mean <= high) & (variance <= (high - mean) * (mean - low))
        for cell in range(cells):
            means[cell].append(mean[inside[:, cell], cell])
            variances[cell].append(variance[inside[:, cell], cell])
        if min(sum(map(len, parts)) for parts in means) >= _FEWEST:
            break
    kept_draws = np.empty((2, _KEPT, cells))
    for cell in range(cells):
        first, second = np.concatenate(means[cell]), np.concatenate(variances[cell])
        # Where no draw lies within, half a draw stands for less than one.
        share[cell] = max(len(first), 0.5) / made
        if len(first) < _FEWEST:
            # Prior and released values contradict each other: the nearest that bounded records can have.
            first = np.clip(mean[:, cell], low, high)
            second = np.minimum(variance[:, cell], (high - first) * (first - low))
        kept_draws[:, :, cell] = np.resize(first, _KEPT), np.resize(second, _KEPT)
    return kept_draws[0], kept_draws[1], share
