r"""Posteriors of series with a trend or a season: hyperparameters integrated over, cells by propagation.

Model. ``ordered_law``, of which each series has its own levels, slopes and seasons; hyperparameters are
shared.

Method. At each point :math:`\theta` of the lattice (``hyper_lattice``) a cell's posterior is its exact
likelihood times what all other times say of it (``ordered_propagation``),

.. math::
    p(x_t \mid y) = \sum_\theta p(\theta \mid y)
    \frac{L_t(x_t) \, \mathrm{Normal}(x_t; \mu_t, \omega_t)}{Z_t}, \qquad
    \text{own}_t = 1 - \sum_\theta p(\theta \mid y)
    \frac{\mathrm{Var}(x_t \mid y, \theta)}{\omega_t}. \qquad (1)

Joint draws take :math:`\theta` first, then a normal path of each series, then each cell from (1) at the rank
of its normal number: a normal copula with exact margins.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field_error import FieldError
from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
from suffice.pipeline.math.engines.pooled.hyper_lattice import FINER, STEP, mode_and_covariance, resolved
from suffice.pipeline.math.engines.pooled.hyperpriors import location_prior
from suffice.pipeline.math.engines.pooled.marginals import LineMarginals
from suffice.pipeline.math.engines.pooled.ordered_law import Normal
from suffice.pipeline.math.engines.pooled.ordered_propagation import Tilted, errors, propagated
from suffice.pipeline.math.engines.pooled.series import focus_of
from suffice.pipeline.math.engines.pooled.walk_steps import points_of
from suffice.pipeline.math.engines.pooled.walked import Walked

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.ordered_law import OrderedLaw
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walk_steps import Points
    from suffice.typing import Cells, Floats

LONGEST = 1_000
"""Times of a series: the work goes with their third power."""
_FIRST_CELLS = 1_500
_FEWEST, _MOST = 161, 1601
_APART, _TOO_MUCH = 0.45, 5e-3
_NEGLIGIBLE = 1e-4
_DRAWS, _MOST_CHECKED, _SEED = 4_000, 40, 33
_FAR = (-2.5, 0.0, 1.5)
"""Where hyperparameters are taken to place points, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPoint:
    """All series at one value of the hyperparameters.

    Attributes
    ----------
    theta : ndarray of shape (n_theta,), float64
    log_weight : float
        log p(theta | y), but for a constant.
    tau, nu, mu, omega : ndarray of shape (n_series, n_times), float64
        As of ``PropagatedSeries``.
    """

    theta: Floats
    log_weight: float
    tau: Floats
    nu: Floats
    mu: Floats
    omega: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate:
    """Series under normal approximations of their likelihoods.

    Attributes
    ----------
    law : OrderedLaw
    prior : LocationPrior
    mean, precision : ndarray of shape (n_series, n_times), float64
    """

    law: OrderedLaw
    prior: LocationPrior
    mean: Floats
    precision: Floats

    def at(self, theta: Floats) -> Normal:
        """Return the normal law of x less its prior mean."""
        covariance = self.law.covariance(theta, self.mean.shape[1], self.prior)
        return Normal.of(covariance, self.precision, self.precision * (self.mean - self.prior.centre))

    def mode(self) -> tuple[Floats, Floats]:
        """Return about where theta is, of some of the series, and its covariance if all were like these."""
        n_series, n_times = self.mean.shape
        n_few = int(np.clip(_FIRST_CELLS // n_times, min(n_series, 4), n_series))
        rows = np.unique(np.linspace(0, n_series - 1, n_few).astype(np.int64))
        few = replace(self, mean=self.mean[rows], precision=self.precision[rows])

        def loss(theta: Floats) -> float:
            if not self.law.is_possible(theta):
                return 1e10
            return -float(np.sum(few.at(theta).log_integral)) - self.law.log_prior(theta)

        mode, covariance = mode_and_covariance(loss, self.law.start, self.law.sizes)
        return mode, covariance * len(rows) / n_series

    def smooth(self, mode: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Return means and variances of x at some values of theta, (n_thetas, n_series, n_times)."""
        sd = np.sqrt(np.diag(covariance))
        laws = []
        for far in _FAR:
            theta = mode + far * np.where([name == "coefficient" for name in self.law.names], 0.0, sd)
            laws.append(self.at(theta if self.law.is_possible(theta) else mode))
        means = np.array([law.mean for law in laws]) + self.prior.centre
        return means, np.array([law.variance for law in laws])

    def points(self, smooth: tuple[Floats, Floats], most: int = _MOST) -> Points:
        """Return points that hold each series."""
        return points_of(
            self.mean, self.precision, smooth, apart=_APART, least_points=_FEWEST, most_points=most
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedDistribution(LineMarginals):
    """Made by ``ordered_distribution``; no jumps are told, and ``outside`` is 0.

    Attributes
    ----------
    law : OrderedLaw
    walked : Walked
        Likelihoods on points.
    points : tuple of OrderedPoint
    weight : ndarray of shape (n_points,), float64
        Adds up to 1.
    error : FieldError
        What propagation is off by, at the most probable hyperparameters.
    settled : bool
        Whether the lattice tells the integral, and points are fine enough and hold all.
    """

    law: OrderedLaw
    walked: Walked = field(repr=False)
    points: tuple[OrderedPoint, ...] = field(repr=False)
    weight: Floats = field(repr=False)
    error: FieldError
    settled: bool

    @property
    def shape(self) -> tuple[int, int]:
        """How many series and times there are."""
        n_series, n_times = self.walked.cells.cell.shape
        return n_series, n_times

    @property
    def known(self) -> dict[str, tuple[float, float]]:
        """Posterior means and standard deviations of the hyperparameters, by name."""
        values = [self.law.values(point.theta) for point in self.points]
        return {name: self._moments(np.array([each[name] for each in values])) for name in self.law.names}

    @property
    def log_sd(self) -> dict[str, float]:
        """Posterior standard deviations of logarithms of standard deviations."""
        thetas = np.array([point.theta for point in self.points]).T
        return {
            name: self._moments(each)[1]
            for name, each in zip(self.law.names, thetas, strict=True)
            if name != "coefficient"
        }

    def _moments(self, values: Floats) -> tuple[float, float]:
        mean = float(self.weight @ values)
        return mean, float(np.sqrt(self.weight @ (values - mean) ** 2))

    def seasons(self) -> tuple[Floats, Floats]:
        """Return posterior means and standard deviations of effects, (n_series, n_effects).

        Given x they are normal; x is of propagation's normal law.
        """
        n_series, n_times = self.walked.cells.cell.shape
        n_effects = self.law.season or 0
        first, second = np.zeros((2, n_series, n_effects))
        for point, each in zip(self.points, self.weight.tolist(), strict=True):
            prior = self.law.covariance(point.theta, n_times, self.walked.prior)
            of_effects = self.law.of_season(point.theta, np.arange(n_effects), np.arange(n_effects))
            with_x = self.law.of_season(point.theta, np.arange(n_effects), np.arange(n_times))
            # E(effects | x) = A x.
            a = np.linalg.solve(prior, with_x.T).T
            law = Normal.of(prior, point.tau, point.nu)
            mean = law.mean @ a.T
            left = np.diag(of_effects) - np.sum(a * with_x, axis=1)
            variance = left + np.einsum("ij,njk,ik->ni", a, law.covariance, a)
            first += each * mean
            second += each * (variance + mean**2)
        return first, np.sqrt(np.maximum(second - first**2, 0.0))

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: hyperparameters first, then a path of every series."""
        from scipy.special import ndtr

        of_points = rng.multinomial(draws, self.weight)
        position = np.empty((draws, self.n_cells))
        cell, n_times = self.walked.cells.cell, self.walked.cells.cell.shape[1]
        for block in self.walked.blocks():
            done = 0
            for point, count in zip(self.points, of_points.tolist(), strict=True):
                if not count:
                    continue
                covariance = self.law.covariance(point.theta, n_times, self.walked.prior)
                law = Normal.of(covariance, point.tau[block.series], point.nu[block.series])
                for row, series in enumerate(block.series.tolist()):
                    root = np.linalg.cholesky(law.covariance[row] + 1e-12 * np.eye(n_times))
                    normal = rng.standard_normal((count, n_times)) @ root.T / np.sqrt(law.variance[row])
                    rank = ndtr(normal)
                    grid = block.grid[row]
                    gap = grid - self.walked.prior.centre - point.mu[series][:, None]
                    mass = block.likelihood[row] * np.exp(-0.5 * gap**2 / point.omega[series][:, None])
                    for time in np.flatnonzero(cell[series] >= 0).tolist():
                        ends = np.cumsum(mass[time])
                        middle = (ends - mass[time] / 2.0) / ends[-1]
                        position[done : done + count, cell[series, time]] = np.interp(
                            rank[:, time], middle, grid
                        )
                done += count
        return {self.name: self.line.parameter(position[rng.permutation(draws)])}

    def left_out(self) -> HeldOutScores:
        """Return how probable what each cell released is, given all other times and series.

        At each point of hyperparameters it is the integral of the exact likelihood under what propagation
        has all others say of the cell.
        """
        cells = self.walked.cells
        log_z = np.empty((len(self.points), self.n_cells))
        for block in self.walked.blocks():
            row, time = np.nonzero(cells.cell[block.series] >= 0)
            of_block = cells.cell[block.series][row, time]
            focus = focus_of(*self.walked.points.ends)
            highest = cells.highest(block.series, block.grid, focus)[row, time]
            places = block.grid - self.walked.prior.centre
            for number, point in enumerate(self.points):
                tilted = Tilted.of(
                    places, block.likelihood, point.mu[block.series], point.omega[block.series]
                )
                log_z[number, of_block] = tilted.log_z[row, time] + highest
        return HeldOutScores.of_nodes(log_z, self.weight, "expectation propagation")


def ordered_distribution(cells: CellsInOrder, name: str, line: Line, law: OrderedLaw) -> OrderedDistribution:
    """Return the posterior of every cell's parameter.

    Parameters
    ----------
    cells : CellsInOrder
    name : str
        The parameter's.
    line : Line
    law : OrderedLaw

    Raises
    ------
    numpy.linalg.LinAlgError
        Where propagation does not settle.
    """
    prior, n_series = location_prior(line, cells.middle), len(cells.cell)
    mean, precision = cells.moments(np.arange(n_series))
    approximate = Approximate(law=law, prior=prior, mean=mean, precision=precision)
    mode, covariance = approximate.mode()
    smooth = approximate.smooth(mode, covariance)
    walked = Walked(cells, approximate.points(smooth), prior, 0.0)
    is_fine = walked.points.are_fine_for(float(np.sqrt(np.min(smooth[1]))))

    def at(theta: Floats, near: OrderedPoint | None) -> OrderedPoint | None:
        start = (precision, precision * (mean - prior.centre)) if near is None else (near.tau, near.nu)
        return _propagated(walked, law, theta, start)

    step = FINER if len(mode) < 3 else STEP
    points, weight, settled = resolved(at, law.is_possible, mode, covariance, step)
    kept = np.flatnonzero(weight > _NEGLIGIBLE * np.max(weight))
    points, weight = [points[number] for number in kept], weight[kept] / np.sum(weight[kept])
    mass, own_share, beyond = _marginals(walked, points, weight)
    series_of = np.empty(cells.n_cells, dtype=np.int64)
    row, time = np.nonzero(cells.cell >= 0)
    series_of[cells.cell[row, time]] = row
    best = points[int(np.argmax(weight))]
    return OrderedDistribution(
        name=name,
        line=line,
        position=walked.points.grid(series_of),
        mass=mass,
        spacing=np.broadcast_to(walked.points.spacing, mass.shape),
        own_share=own_share,
        outside=np.zeros(cells.n_cells),
        law=law,
        walked=walked,
        points=tuple(points),
        weight=weight,
        error=_error(walked, law, best),
        settled=settled and is_fine and beyond < _TOO_MUCH,
    )


def _propagated(
    walked: Walked, law: OrderedLaw, theta: Floats, start: tuple[Floats, Floats]
) -> OrderedPoint | None:
    """Propagate all series at one point; None where they do not settle from this start."""
    cell = walked.cells.cell
    covariance = law.covariance(theta, cell.shape[1], walked.prior)
    tau, nu, mu, omega = np.empty((4, *cell.shape))
    log_weight = law.log_prior(theta)
    for block in walked.blocks():
        rows = block.series
        try:
            result = propagated(
                covariance,
                block.grid - walked.prior.centre,
                block.likelihood,
                cell[rows] >= 0,
                (start[0][rows], start[1][rows]),
            )
        except np.linalg.LinAlgError:
            return None
        if not result.settled:
            return None
        tau[rows], nu[rows], mu[rows], omega[rows] = result.tau, result.nu, result.mu, result.omega
        log_weight += float(np.sum(result.log_evidence))
    return OrderedPoint(theta=theta, log_weight=log_weight, tau=tau, nu=nu, mu=mu, omega=omega)


def _marginals(walked: Walked, points: list[OrderedPoint], weight: Floats) -> tuple[Floats, Floats, float]:
    """Return masses (n_cells, n_points) and own shares by (1), and about what lies beyond the points."""
    cells = walked.cells
    mass, own_share = np.zeros((cells.n_cells, walked.points.most)), np.zeros(cells.n_cells)
    beyond = 0.0
    for block in walked.blocks():
        row, time = np.nonzero(cells.cell[block.series] >= 0)
        of_block = cells.cell[block.series][row, time]
        total = np.zeros((len(row), block.grid.shape[1]))
        likelihood = block.likelihood[row, time]
        for point, each in zip(points, weight.tolist(), strict=True):
            mu, omega = (of_all[block.series][row, time][:, None] for of_all in (point.mu, point.omega))
            gap = block.grid[row] - walked.prior.centre - mu
            here = likelihood * np.exp(-0.5 * gap**2 / omega)
            here /= np.sum(here, axis=1, keepdims=True)
            total += each * here
            first = np.sum(here * gap, axis=1)
            variance = np.sum(here * gap**2, axis=1) - first**2
            own_share[of_block] += each * np.clip(1.0 - variance / omega[:, 0], 0.0, 1.0)
        start = (walked.points.most - total.shape[1]) // 2
        mass[of_block, start : start + total.shape[1]] = total
        beyond = max(beyond, float(np.max(total[:, 0] + total[:, -1])) / walked.points.spacing)
    return mass, own_share, beyond


def _error(walked: Walked, law: OrderedLaw, best: OrderedPoint) -> FieldError:
    """Estimate what propagation is off by, of some of the series."""
    cell, rng = walked.cells.cell, np.random.default_rng(_SEED)
    chosen: Cells = np.unique(np.linspace(0, len(cell) - 1, min(_MOST_CHECKED, len(cell))).astype(np.int64))
    covariance = law.covariance(best.theta, cell.shape[1], walked.prior)
    off, of_sd, is_of_all = [], [], True
    for block in walked.blocks(chosen):
        rows = block.series
        is_seen, places = cell[rows] >= 0, block.grid - walked.prior.centre
        start = best.tau[rows], best.nu[rows]
        at = propagated(covariance, places, block.likelihood, is_seen, start)
        mean, sd, of_all = errors(at, places, block.likelihood, is_seen, _DRAWS, rng)
        off.append(mean[is_seen])
        of_sd.append(sd[is_seen])
        is_of_all = is_of_all and bool(np.all(of_all))
    return FieldError(mean=np.concatenate(off), sd=np.concatenate(of_sd), is_of_all=is_of_all)
