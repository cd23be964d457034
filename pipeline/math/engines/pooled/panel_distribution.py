r"""Posteriors of the cells of a panel: hyperparameters integrated over, and joint draws.

Model. ``panel``.

Method. The lattice of ``hyper_lattice`` is followed over :math:`\theta` = (log d, log s, logit :math:`\rho`),
of whose steps one alone changes d, at each share of jumps by itself. At each d the recursions' law at the
anchor is a mixture over s and :math:`\rho`,

.. math:: \bar f_i(z) = \sum_{h} \frac{p(h \mid y)}{Z_i(h)} \sum_k \epsilon_k
    \mathrm{Normal}(z; \mu_i(h), V_{ik}(h)), \qquad (1)

so that one recursion answers for all of them: what it says of a time adds up to p(d | y), and without the
cell of that time to :math:`\sum_h p(h \mid y) / Z_{it}(h)`, of which ``held_out_scores`` is made. What is
known of the common walk comes last: positions move by its mean, and what they are uncertain of it is folded
in, by the characteristic function of a normal law.

Joint draws take :math:`\theta` first, then the common walk, a normal field, each place at the anchor by its
rank (a normal copula with exact margins, as ``field``), and its path both ways from there by the recursions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field import correlation
from suffice.pipeline.math.engines.pooled.field_error import field_error
from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField
from suffice.pipeline.math.engines.pooled.field_propagation import Tilted
from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
from suffice.pipeline.math.engines.pooled.marginals import LineMarginals
from suffice.pipeline.math.engines.pooled.panel_common import CommonPosterior

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.field_error import FieldError
    from suffice.pipeline.math.engines.pooled.panel import PanelModel
    from suffice.pipeline.math.engines.pooled.panel_chains import PanelSmoothed
    from suffice.pipeline.math.engines.pooled.panel_lattice import AtStep, PanelLattice, PanelPoint
    from suffice.pipeline.math.engines.pooled.panel_step_law import StepLaw
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.typing import Cells, Floats, Mask

_NEAR = 1.0
"""Standard deviations that the common walk may be from where the lattice was followed about it."""
_TOO_MUCH = 5e-3
"""What of a posterior may lie beyond the points."""
_FLOOR = 1e-300
_SEED = 33
"""Of the draws that measure an error; no answer rests on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelDistribution(LineMarginals):
    """Made by ``panel_distribution``; ``outside`` is how probable it is that a jump leads to a cell.

    Attributes
    ----------
    model : PanelModel
    cells : CellsInOrder
    points : tuple of PanelPoint
    weight : ndarray of shape (n_points,), float64
        Adds up to 1.
    step_law : StepLaw
        Of d; points leave out what hardly moves a cell.
    steps : dict of (float, float) to AtStep
        By log d and the share of jumps.
    common : ndarray of shape (n_times,), float64
        The posterior mean of the common walk.
    common_sd : ndarray of shape (n_times,), float64
    common_jumped : ndarray of shape (n_times,), float64
        How probable it is that a jump of all series leads to each time.
    common_step : CommonPosterior
        Of all d together.
    outlying : ndarray of shape (n_series,), float64
        How probable it is that each place is an outlier of the map.
    typical_log_size : float or None
        What v of ``panel`` is 0 at.
    error : FieldError
        What propagation is off by at the anchor, at the most probable hyperparameters.
    settled : bool
    log_held_out, effective : ndarray of shape (n_cells,), float64
        As ``HeldOutScores`` has them.
    """

    model: PanelModel = field(repr=False)
    cells: CellsInOrder = field(repr=False)
    points: tuple[PanelPoint, ...] = field(repr=False)
    weight: Floats = field(repr=False)
    step_law: StepLaw = field(repr=False)
    steps: dict[tuple[float, float], AtStep] = field(repr=False)
    common: Floats
    common_sd: Floats
    common_jumped: Floats
    common_step: CommonPosterior = field(repr=False)
    outlying: Floats
    typical_log_size: float | None
    error: FieldError
    settled: bool
    log_held_out: Floats = field(repr=False)
    effective: Floats = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """How many series and times there are."""
        n_series, n_times = self.cells.cell.shape
        return n_series, n_times

    @property
    def known(self) -> dict[str, tuple[float, float]]:
        """Posterior means and standard deviations of steps, by name."""
        return {
            "step": self.step_law.moments,
            "common_step": _moments(self.common_step.step, self.common_step.weight),
        }

    @property
    def log_sd(self) -> dict[str, float]:
        """Posterior standard deviations of logarithms of standard deviations."""
        return {
            "step": self.step_law.log_sd,
            "common_step": _moments(np.log(self.common_step.step), self.common_step.weight)[1],
            "spread": _moments(self._thetas[:, 1], self.weight)[1],
        }

    @property
    def noise_over_step(self) -> float:
        """What half of the cells have at least for a variance of noise, over that of a step."""
        best = self.points[int(np.argmax(self.weight))]
        tau = self.steps[best.key].told.tau
        return float(np.exp(-2.0 * best.theta[0]) / np.median(tau[tau > 0.0]))

    @property
    def _thetas(self) -> Floats:
        return np.array([point.theta for point in self.points])

    @property
    def share_of_jumps(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of the share of steps that are jumps."""
        return _moments(np.array([point.jumps for point in self.points]), self.weight)

    @property
    def spread(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of s."""
        return _moments(np.exp(self._thetas[:, 1]), self.weight)

    @property
    def of_map(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of rho, the share of that variance that is the map's."""
        return _moments(1.0 / (1.0 + np.exp(-self._thetas[:, 2])), self.weight)

    def level(self, place: int) -> tuple[float, float]:
        """Return posterior mean and standard deviation of a level, or of b: the last where there is one."""
        mean, variance = (
            np.array([getattr(point, name)[place] for point in self.points])
            for name in ("level_mean", "level_variance")
        )
        whole, between = _moments(mean, self.weight)
        return whole, float(np.sqrt(between**2 + self.weight @ variance))

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        position = np.empty((draws, self.n_cells))
        done = 0
        counts = rng.multinomial(draws, self.weight).tolist()
        for point, count in zip(self.points, counts, strict=True):
            if count:
                position[done : done + count] = self._drawn(point, count, rng)
                done += count
        return {self.name: self.line.parameter(position[rng.permutation(draws)])}

    def _drawn(self, point: PanelPoint, count: int, rng: np.random.Generator) -> Floats:
        """Draw positions at one point of the hyperparameters, (count, n_cells)."""
        from scipy.special import ndtr

        at, cell = self.steps[point.key], self.cells.cell
        model = at.places.model
        theta, anchor = point.theta[1:], model.common_walk.anchor
        tilted = Tilted.of(
            at.places.measure, point.cavity_mean, point.cavity_variance, at.places.residuals(theta)
        )
        law = GaussianField.of(model.field_map, at.places.scale(theta), point.sites)
        together = correlation(tilted, point.cavity_mean)
        normal = (law.drawn(count, rng)[0] - law.mean) / np.sqrt(law.variance) * together
        normal += np.sqrt(1.0 - together**2) * rng.standard_normal(normal.shape)
        rank, common = ndtr(normal), at.known.drawn(count, rng) - at.places.common
        result = np.empty((count, self.n_cells))
        cavity = point.cavity_mean, point.cavity_variance
        for chains in model.chains(at.places.step, at.places.common):
            rows = chains.block.series
            mass = chains.measure * at.places.law(theta, cavity, chains.block)
            ends = np.cumsum(mass, axis=1)
            wanted = rank[:, rows].T * ends[:, -1:]
            first = np.array([np.searchsorted(*each) for each in zip(ends, wanted, strict=True)])
            path = chains.paths(np.minimum(first, mass.shape[1] - 1), rng)
            # A draw lies within half a spacing of its point, by as much as the others of its path.
            shift = (rng.random(first.shape) - 0.5) * model.spacing
            z = chains.block.grid[:, 0][:, None, None] + model.spacing * path + shift[:, :, None]
            moved = np.einsum("nij,dj->ndi", at.told.moved(rows, anchor), common, optimize=True)
            x = z + at.places.common + moved
            row, time = np.nonzero(chains.block.is_seen)
            result[:, cell[rows[row], time]] = x[row, :, time].T
        return result

    def left_out(self) -> HeldOutScores:
        """Return how probable what each cell released is, given all other times and places."""
        return HeldOutScores(
            log_predictive=self.log_held_out,
            effective=self.effective,
            approximation="expectation propagation on the map, and a normal law of the common walk",
        )


def _moments(values: Floats, weight: Floats) -> tuple[float, float]:
    mean = float(weight @ values)
    return mean, float(np.sqrt(max(float(weight @ (values - mean) ** 2), 0.0)))


def mixture(
    lattice: PanelLattice,
    pairs: Cells,
    points: list[PanelPoint],
    weight: Floats,
    step_law: StepLaw,
    cells: CellsInOrder,
    name: str,
    line: Line,
    *,
    typical: float | None,
    settled: bool,
) -> PanelDistribution:
    """Return (1) with all that is said of it, by points and weights of a lattice."""
    model, anchor = lattice.model, lattice.model.common_walk.anchor
    n_series, n_times = cells.cell.shape
    chosen_at: dict[tuple[float, float], list[int]] = {}
    for number, point in enumerate(points):
        chosen_at.setdefault(point.key, []).append(number)
    keys = sorted(chosen_at)
    shares = np.array([np.sum(weight[chosen_at[key]]) for key in keys])
    known = _together([lattice.steps[key].known for key in keys], shares)
    common, covariance = known.mean, known.covariance
    # What series say of the common walk was worked out about another place.
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0)) + 1e-3 * model.spacing
    is_near = bool(np.max(np.abs(common - lattice.common) / sd) < _NEAR)
    widened = np.zeros((n_series, n_times))
    for key, share in zip(keys, shares.tolist(), strict=True):
        widened += share * lattice.steps[key].told.widened(covariance, anchor)
    most = max(block.grid.shape[1] for block in model.blocks)
    mass = np.zeros((cells.n_cells, most))
    position = np.empty((cells.n_cells, most))
    own_share, outside, inverse, squared = np.zeros((4, cells.n_cells))
    beyond = 0.0
    for key, share in zip(keys, shares.tolist(), strict=True):
        places = lattice.steps[key].places
        for chains in places.model.chains(places.step, common):
            block = chains.block
            law = np.zeros_like(block.grid)
            for number in chosen_at[key]:
                point = points[number]
                cavity = point.cavity_mean, point.cavity_variance
                scaled = weight[number] * np.exp(-point.log_z[block.series])
                law += scaled[:, None] * places.law(point.theta[1:], cavity, block)
            smoothed = chains.smoothed(law, with_jumps=True)
            row, time = np.nonzero(block.is_seen)
            of_block = cells.cell[block.series][row, time]
            add = widened[block.series][row, time]
            start = (most - block.grid.shape[1]) // 2
            mass[of_block, start : start + block.grid.shape[1]] += share * smoothed.mass[row, time]
            of_all, of_others = (each[row, time] + add for each in smoothed.variances())
            own_share[of_block] += share * np.clip(1.0 - of_all / of_others, 0.0, 1.0)
            outside[of_block] += share * _to_cells(smoothed, block.is_seen)[row, time]
            log_z = smoothed.log_z[row, time] + chains.height[row, time]
            inverse[of_block] += share * np.exp(-log_z)
            squared[of_block] += share * np.exp(-2.0 * log_z)
    for block in model.blocks:
        row, time = np.nonzero(block.is_seen)
        of_block = cells.cell[block.series][row, time]
        middle = block.grid[row, block.grid.shape[1] // 2]
        further = model.spacing * (np.arange(most) - most // 2)
        position[of_block] = (middle + common[time])[:, None] + further
        add = widened[block.series][row, time]
        mass[of_block] = _folded(mass[of_block], add / model.spacing**2)
        start, stop = (most - block.grid.shape[1]) // 2, (most + block.grid.shape[1]) // 2 - 1
        ends = mass[of_block, start] + mass[of_block, stop]
        beyond = max(beyond, float(np.max(ends)) / model.spacing)
    best = points[int(np.argmax(weight))]
    error = field_error(
        lattice.steps[best.key].places,  # type: ignore[arg-type]
        best.of_field,
        pairs,
        np.random.default_rng(_SEED),
    )
    return PanelDistribution(
        name=name,
        line=line,
        position=position,
        mass=mass / np.sum(mass, axis=1, keepdims=True),
        spacing=np.broadcast_to(model.spacing, mass.shape),
        own_share=own_share,
        outside=np.clip(outside, 0.0, 1.0),
        model=model,
        cells=cells,
        points=tuple(points),
        weight=weight,
        step_law=step_law,
        steps={key: lattice.steps[key] for key in keys},
        common=common,
        common_sd=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
        common_jumped=known.jumped,
        common_step=known,
        outlying=np.sum(weight[:, None] * np.array([point.outlying for point in points]), axis=0),
        typical_log_size=typical,
        error=error,
        settled=bool(settled and is_near and beyond < _TOO_MUCH),
        log_held_out=-np.log(np.maximum(inverse, _FLOOR)),
        effective=inverse**2 / np.maximum(squared, _FLOOR),
    )


def _together(parts: list[CommonPosterior], shares: Floats) -> CommonPosterior:
    """Return the mixture of what is known of the common walk at each d."""
    return CommonPosterior(
        step=np.concatenate([part.step for part in parts]),
        weight=np.concatenate(
            [share * part.weight for part, share in zip(parts, shares.tolist(), strict=True)]
        ),
        means=np.concatenate([part.means for part in parts]),
        covariances=np.concatenate([part.covariances for part in parts]),
        jumped=np.sum(shares[:, None] * np.array([part.jumped for part in parts]), axis=0),
        log_integral=0.0,
    )


def _to_cells(smoothed: PanelSmoothed, is_seen: Mask) -> Floats:
    """Return how probable it is that a jump lies between a cell and the one before, (n_series, n_times)."""
    result = np.zeros_like(smoothed.jumped)
    since = np.zeros(len(result))
    was_seen = np.zeros(len(result), dtype=bool)
    for time in range(result.shape[1]):
        since += smoothed.jumped[:, time]
        here = is_seen[:, time]
        result[here & was_seen, time] = np.minimum(since[here & was_seen], 1.0)
        since[here] = 0.0
        was_seen |= here
    return result


def _folded(mass: Floats, variance: Floats) -> Floats:
    """Return masses on even points, widened by normal laws of these variances, in squared spacings."""
    n = mass.shape[1]
    padded = 2 * n
    frequency = 2.0 * np.pi * np.fft.rfftfreq(padded)
    result = np.empty_like(mass)
    for start in range(0, len(mass), 2048):
        rows = slice(start, start + 2048)
        wave = np.fft.rfft(mass[rows], padded, axis=1)
        wave *= np.exp(-0.5 * variance[rows, None] * frequency**2)
        result[rows] = np.maximum(np.fft.irfft(wave, padded, axis=1)[:, :n], 0.0)
    return result
