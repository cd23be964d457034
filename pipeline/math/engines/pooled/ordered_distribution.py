r"""Posteriors of series with a trend or a season: hyperparameters integrated over, cells by propagation.

Model. ``ordered_law``, of which each series has its own levels, slopes and seasons; hyperparameters are
shared.

Method. At each point :math:`\theta` of the lattice (``hyper_lattice``), and given which steps A of a series
are jumps (``ordered_jumps``), a cell's posterior is its exact likelihood times what all other times say of it
(``ordered_propagation``),

.. math::
    p(x_t \mid y) = \sum_{\theta, A} p(\theta, A \mid y)
    \frac{L_t(x_t) \, \mathrm{Normal}(x_t; \mu_t, \omega_t)}{Z_t}, \qquad
    \text{own}_t = 1 - \sum_{\theta, A} p(\theta, A \mid y)
    \frac{\mathrm{Var}(x_t \mid y, \theta, A)}{\omega_t}. \qquad (1)

Joint draws take :math:`\theta` and A first, then a normal path of each series, then each cell from (1) at the
rank of its normal number: a normal copula with exact margins.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field_error import FieldError
from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
from suffice.pipeline.math.engines.pooled.hyper_lattice import FINER, STEP, mode_and_covariance, resolved
from suffice.pipeline.math.engines.pooled.hyperpriors import location_prior
from suffice.pipeline.math.engines.pooled.jump_sets import jump_sets
from suffice.pipeline.math.engines.pooled.marginals import LineMarginals
from suffice.pipeline.math.engines.pooled.ordered_jumps import Parts, with_jumps
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
_FIRST_CELLS, _FIRST_SERIES = 1_500, 12
_NEGLIGIBLE_SET = 0.05
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
    parts : Parts
        Of all series, by their jumps.
    """

    theta: Floats
    log_weight: float
    parts: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate:
    """Series under normal approximations of their likelihoods.

    Attributes
    ----------
    law : OrderedLaw
    prior : LocationPrior
    mean, precision : ndarray of shape (n_series, n_times), float64
    jumps : float
        The share of steps that may be jumps where the mode is looked for, in 0..1.
    """

    law: OrderedLaw
    prior: LocationPrior
    mean: Floats
    precision: Floats
    jumps: float = 0.0

    def at(self, theta: Floats) -> Normal:
        """Return the normal law of x less its prior mean."""
        covariance = self.law.covariance(theta, self.mean.shape[1], self.prior)
        return Normal.of(covariance, self.precision, self.precision * (self.mean - self.prior.centre))

    def mode(self) -> tuple[Floats, Floats]:
        """Return about where theta is, of some of the series, and its covariance if all were like these."""
        n_series, n_times = self.mean.shape
        n_few = int(np.clip(_FIRST_CELLS // n_times, min(n_series, 4), n_series))
        if self.jumps:
            # A jump that is taken for a step would place the lattice far off.
            n_few = min(n_few, _FIRST_SERIES)
        rows = np.unique(np.linspace(0, n_series - 1, n_few).astype(np.int64))
        few = replace(self, mean=self.mean[rows], precision=self.precision[rows])

        def loss(theta: Floats) -> float:
            if not self.law.is_possible(theta):
                return 1e10
            log_evidence = few.at(theta).log_integral + few.of_jumps(theta)
            return -float(np.sum(log_evidence)) - self.law.log_prior(theta)

        mode, covariance = mode_and_covariance(loss, self.law.start, self.law.sizes)
        return mode, covariance * len(rows) / n_series

    def of_jumps(self, theta: Floats) -> Floats:
        """Return what jumps add to the log evidence of each series."""
        n_times = self.mean.shape[1]
        if not self.jumps:
            return np.zeros(len(self.mean))
        covariance = self.law.covariance(theta, n_times, self.prior)
        moves, none = self.law.moves(theta, n_times), (n_times - 1) * float(np.log1p(-self.jumps))
        added = [
            np.logaddexp.reduce(
                jump_sets(
                    covariance, np.diag(q), q * (mean - self.prior.centre), moves, self.jumps, _NEGLIGIBLE_SET
                ).log_weight
            )
            for mean, q in zip(self.mean, self.precision, strict=True)
        ]
        return np.asarray(np.array(added) + none)

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
    """Made by ``ordered_distribution``; ``outside`` is how probable it is that a jump leads to a cell.

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
            parts, moves = point.parts, self.law.moves(point.theta, n_times)
            rows = parts.among(np.arange(n_series))
            priors = parts.covariances(rows, prior, moves)
            # E(effects | x) = A x.
            a = np.linalg.solve(priors, np.broadcast_to(with_x.T, (len(rows), *with_x.T.shape)))
            a = a.transpose(0, 2, 1)
            law = Normal.of(priors, parts.tau[rows], parts.nu[rows])
            mean = np.einsum("nij,nj->ni", a, law.mean)
            left = np.diag(of_effects) - np.sum(a * with_x, axis=2)
            variance = left + np.einsum("nij,njk,nik->ni", a, law.covariance, a)
            share = each * parts.share[rows][:, None]
            np.add.at(first, parts.series[rows], share * mean)
            np.add.at(second, parts.series[rows], share * (variance + mean**2))
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
                moves, parts = self.law.moves(point.theta, n_times), point.parts
                for place, series in enumerate(block.series.tolist()):
                    rows = parts.among(np.array([series]))
                    share = parts.share[rows] / np.sum(parts.share[rows])
                    each = rng.choice(rows, count, p=share)
                    chosen, of_draw = np.unique(each, return_inverse=True)
                    law = Normal.of(
                        parts.covariances(chosen, covariance, moves), parts.tau[chosen], parts.nu[chosen]
                    )
                    root = np.linalg.cholesky(law.covariance + 1e-12 * np.eye(n_times))
                    normal = np.einsum("dj,dij->di", rng.standard_normal((count, n_times)), root[of_draw])
                    rank = ndtr(normal / np.sqrt(law.variance)[of_draw])
                    grid = block.grid[place]
                    for number, row in enumerate(chosen.tolist()):
                        draws_of = done + np.flatnonzero(of_draw == number)
                        gap = grid - self.walked.prior.centre - parts.mu[row][:, None]
                        mass = block.likelihood[place] * np.exp(-0.5 * gap**2 / parts.omega[row][:, None])
                        for time in np.flatnonzero(cell[series] >= 0).tolist():
                            ends = np.cumsum(mass[time])
                            middle = (ends - mass[time] / 2.0) / ends[-1]
                            position[draws_of, cell[series, time]] = np.interp(
                                rank[of_draw == number, time], middle, grid
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
                rows, place = _rows_of(point.parts, block.series)
                tilted = Tilted.of(
                    places[place], block.likelihood[place], point.parts.mu[rows], point.parts.omega[rows]
                )
                # Without a cell the sets of jumps are weighed anew, as hyperparameters are.
                inverse = np.zeros((len(block.series), tilted.log_z.shape[1]))
                np.add.at(inverse, place, point.parts.share[rows][:, None] * np.exp(-tilted.log_z))
                log_z[number, of_block] = highest - np.log(inverse[row, time])
        return HeldOutScores.of_nodes(log_z, self.weight, "expectation propagation")


def _rows_of(parts: Parts, series: Cells) -> tuple[Cells, Cells]:
    """Return the rows of some series that count, and which of these series each is of."""
    rows = parts.among(series)
    order = np.argsort(series)
    return rows, order[np.searchsorted(series, parts.series[rows], sorter=order)]


def ordered_distribution(
    cells: CellsInOrder, name: str, line: Line, law: OrderedLaw, *, jumps: float = 0.0
) -> OrderedDistribution:
    """Return the posterior of every cell's parameter.

    Parameters
    ----------
    cells : CellsInOrder
    name : str
        The parameter's.
    line : Line
    law : OrderedLaw
    jumps : float
        The share of steps that are jumps, in 0..1.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where propagation does not settle.
    """
    prior, n_series = location_prior(line, cells.middle), len(cells.cell)
    mean, precision = cells.moments(np.arange(n_series))
    approximate = Approximate(law=law, prior=prior, mean=mean, precision=precision, jumps=jumps)
    mode, covariance = approximate.mode()
    smooth = approximate.smooth(mode, covariance)
    walked = Walked(cells, approximate.points(smooth), prior, 0.0)
    is_fine = walked.points.are_fine_for(float(np.sqrt(np.min(smooth[1]))))

    def at(theta: Floats, near: OrderedPoint | None) -> OrderedPoint | None:
        start = precision, precision * (mean - prior.centre)
        if near is not None:
            # Those without jumps come first.
            start = near.parts.tau[:n_series], near.parts.nu[:n_series]
        return _propagated(walked, law, theta, start, jumps)

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
        outside=_outside(cells, points, weight),
        law=law,
        walked=walked,
        points=tuple(points),
        weight=weight,
        error=_error(walked, law, best),
        settled=settled and is_fine and beyond < _TOO_MUCH,
    )


def _propagated(
    walked: Walked, law: OrderedLaw, theta: Floats, start: tuple[Floats, Floats], jumps: float
) -> OrderedPoint | None:
    """Propagate all series at one point; None where they do not settle from this start."""
    cell = walked.cells.cell
    prior = law.covariance(theta, cell.shape[1], walked.prior)
    log_weight, parts = law.log_prior(theta), []
    for block in walked.blocks():
        rows = block.series
        result = with_jumps(
            block,
            law,
            theta,
            prior,
            walked.prior.centre,
            cell[rows] >= 0,
            (start[0][rows], start[1][rows]),
            jumps,
        )
        if result is None:
            return None
        parts.append(result[0])
        log_weight += result[1]
    return OrderedPoint(theta=theta, log_weight=log_weight, parts=Parts.together(len(cell), parts))


def _outside(cells: CellsInOrder, points: list[OrderedPoint], weight: Floats) -> Floats:
    """Return how probable it is that a jump leads to each cell, (n_cells,)."""
    is_seen = cells.cell >= 0
    total = np.zeros(is_seen.shape)
    for point, each in zip(points, weight.tolist(), strict=True):
        total += each * point.parts.led_to(is_seen)
    result = np.zeros(cells.n_cells)
    result[cells.cell[is_seen]] = total[is_seen]
    return result


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
            parts, (numbers, place) = point.parts, _rows_of(point.parts, block.series)
            # Series have as many sets of jumps as they have: of the first, the second, and so on.
            turn = np.zeros(len(numbers), dtype=np.int64)
            for series in np.unique(place).tolist():
                turn[place == series] = np.arange(np.sum(place == series))
            for nth in range(int(np.max(turn)) + 1):
                of_series = np.full(len(block.series), -1)
                of_series[place[turn == nth]] = numbers[turn == nth]
                cells_of = np.flatnonzero(of_series[row] >= 0)
                at, when = of_series[row[cells_of]], time[cells_of]
                share, omega = each * parts.share[at], parts.omega[at, when]
                gap = block.grid[row[cells_of]] - walked.prior.centre - parts.mu[at, when][:, None]
                here = likelihood[cells_of] * np.exp(-0.5 * gap**2 / omega[:, None])
                here /= np.sum(here, axis=1, keepdims=True)
                total[cells_of] += share[:, None] * here
                first = np.sum(here * gap, axis=1)
                variance = np.sum(here * gap**2, axis=1) - first**2
                own_share[of_block[cells_of]] += share * np.clip(1.0 - variance / omega, 0.0, 1.0)
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
        # Of each series the most probable set of jumps.
        parts, (numbers, of_series) = best.parts, _rows_of(best.parts, rows)
        order = numbers[np.lexsort((-parts.share[numbers], of_series))]
        likely = order[np.unique(np.sort(of_series), return_index=True)[1]]
        wide = parts.covariances(likely, covariance, law.moves(best.theta, cell.shape[1]))
        start = parts.tau[likely], parts.nu[likely]
        at = propagated(wide, places, block.likelihood, is_seen, start)
        mean, sd, of_all = errors(at, places, block.likelihood, is_seen, _DRAWS, rng)
        off.append(mean[is_seen])
        of_sd.append(sd[is_seen])
        is_of_all = is_of_all and bool(np.all(of_all))
    return FieldError(mean=np.concatenate(off), sd=np.concatenate(of_sd), is_of_all=is_of_all)
