r"""Panels: places on a map, each with a walk of its own, and a walk that all have in common.

Model (Knorr-Held 2000, interaction II). On the line, of place i at time t,

.. math::
    x_{it} = \gamma_t + z_{it}, \qquad
    z_{ia} = m + b v_i + s \bigl(\sqrt \rho \, u_i + \sqrt{1 - \rho} \, w_i\bigr), \qquad (1)

    z_{it} - z_{i,t-1} \sim (1 - \pi) \, \mathrm{Normal}(0, d^2) + \pi \, \mathrm{Laplace}(0, 1), \qquad (2)

with the smooth field u of ``field_map``, parts w of places' own, of which a share are outliers, the common
walk :math:`\gamma` of ``panel_common``, and the time a in the middle, from where steps go both ways. v is
about the log size of a place, less its mean over places (``CellsInOrder.log_sizes``). Hyperpriors are those
of ``field_lattice`` and ``walk_steps``: s half-normal(1), :math:`\rho` uniform, d and g half-normal.

Method. Given :math:`\gamma` and d, what a series says of :math:`z_{ia}` is one function M_i, by exact
recursions, jumps included (``panel_chains``): to the field it is a cell, and s, :math:`\rho`, m, b and u
follow as in ``field_propagation``, by one sparse precision matrix. For each d a recursion of all series is
needed, for s and :math:`\rho` none.

:math:`\gamma` has as many dimensions as there are times, and all series tell it: p(y | gamma) is taken for
normal about where it is high. Its gradient is exact,

.. math:: \frac{\partial}{\partial \gamma_t} \log p(y \mid \gamma)
    = \sum_i \operatorname{E}\Bigl(\frac{d}{dx} \log L_{it}(x_{it}) \Bigm| y\Bigr), \qquad (3)

as propagation's evidence does not move with its factors. Second derivatives are those of normal likelihoods
with the precisions :math:`T_i` of cells by which their scores follow x, and of normal steps whose precision
is that of both kinds, as probable as they are: with the covariance :math:`\Sigma_i` of what is a place's
own, and that of the field, levels and b given all, G,

.. math:: R_i = (\Sigma_i + T_i^{-1})^{-1}, \qquad r_i = R_i 1, \qquad
    H = \sum_i R_i - \sum_{ij} r_i G_{ij} r_j', \qquad
    \frac{\partial \operatorname{E} x_i}{\partial \gamma} = (I - \Sigma_i R_i)
    \Bigl(I - 1 \sum_j G_{ij} r_j'\Bigr). \qquad (4)

Newton's method finds :math:`\gamma`; its posterior is a mixture of normal laws over g and over which steps
are jumps. Positions are worked out at its mean, and widened by (4) times its covariance.

Symbols: z: on ``grid``; d: ``step``; g: ``common_step``; a: ``anchor``; :math:`\theta` = (log d, log s,
logit :math:`\rho`).

References
----------
Knorr-Held. Bayesian modelling of inseparable space-time variation in disease risk. Statist. Med. 19, 2000.
Louis. Finding the observed information matrix when using the EM algorithm. J. R. Stat. Soc. B 44, 1982.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField, Sites
from suffice.pipeline.math.engines.pooled.field_lattice import FieldModel, log_hyperprior, own_parts
from suffice.pipeline.math.engines.pooled.field_propagation import Measures, Propagated, propagated
from suffice.pipeline.math.engines.pooled.jump_sets import JUMP_VARIANCE
from suffice.pipeline.math.engines.pooled.panel_chains import Chains
from suffice.pipeline.math.engines.pooled.walk import StepKernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.math.engines.pooled.field_map import FieldMap
    from suffice.pipeline.math.engines.pooled.hyperpriors import LevelsPrior
    from suffice.pipeline.math.engines.pooled.panel_chains import PanelBlock, PanelSmoothed
    from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Cells, Floats

_LEAST_SD = 0.7
"""Of a law of z at the anchor, in spacings of points."""
_DROPPED = 1e-12
_REFERENCE_SD, _LEAST_PRECISION = 3.0, 1e-4
_TURNS, _NEAR = 6, 0.05
_FARTHEST = 1.0
"""Of a step of Newton's method, in units of the line."""
_FLOOR = 1e-37
_LEAST_TOLD = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelModel:
    """The model (1) and (2) of some series.

    Attributes
    ----------
    field_map : FieldMap
        Of places, with their sizes as its covariate where they have some.
    population : Population
        Of places' own parts.
    prior : LevelsPrior
    blocks : sequence of PanelBlock
        The widest first.
    middle : float
        About where all cells are.
    common_walk : CommonWalk
    step_scale : float
        Of the half-normal hyperprior of d.
    jumps : float
    """

    field_map: FieldMap
    population: Population
    prior: LevelsPrior
    blocks: Sequence[PanelBlock]
    middle: float
    common_walk: CommonWalk
    step_scale: float
    jumps: float

    @property
    def n_series(self) -> int:
        """How many there are."""
        return self.field_map.n_cells

    @property
    def spacing(self) -> float:
        """Of points of z."""
        return self.blocks[0].spacing

    @property
    def reach(self) -> float:
        """How far the common walk may go on the tables of likelihoods."""
        return min(block.reach for block in self.blocks)

    def log_prior(self, theta: Floats) -> float:
        """Log density of theta, but for a constant."""
        of_step = theta[0] - 0.5 * np.exp(2.0 * theta[0]) / self.step_scale**2
        return float(of_step) + log_hyperprior(theta[1:])

    def chains(self, step: float, common: Floats) -> Iterator[Chains]:
        """Give recursions of all series, a block at a time."""
        for block in self.blocks:
            kernel = StepKernel.of(step, block.spacing, block.grid.shape[1], self.jumps)
            # Without jumps messages of seven digits would vanish between cells that are far apart.
            kernel = kernel.of_seven_digits() if self.jumps else kernel
            yield Chains.of(block, kernel, common, self.common_walk.anchor)

    def places(self, step: float, common: Floats) -> Places:
        """Return what series say of z at the anchor."""
        n_points = self.blocks[0].grid.shape[1]
        points, weight = np.empty((self.n_series, n_points)), np.zeros((self.n_series, n_points), np.float32)
        log_scale = np.empty(self.n_series)
        further = np.arange(n_points) - n_points // 2
        for chains in self.chains(step, common):
            rows, n = chains.block.series, chains.block.grid.shape[1]
            points[rows] = chains.block.grid[:, n // 2][:, None] + self.spacing * further
            start = (n_points - n) // 2
            weight[rows, start : start + n] = np.where(chains.measure > _DROPPED, chains.measure, 0.0)
            log_scale[rows] = chains.log_scale
        place = np.arange(self.n_series)
        is_there = weight > 0.0
        measure = Measures(
            points=points,
            weight=weight * np.float32(self.spacing),
            low=points[place, np.argmax(is_there, axis=1)],
            high=points[place, n_points - 1 - np.argmax(is_there[:, ::-1], axis=1)],
            least=(_LEAST_SD * self.spacing) ** 2,
        )
        return Places(
            model=self, step=step, common=common, measure=measure, log_scale=float(np.sum(log_scale))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Series as cells of a map, at one step and one common walk; it stands for a ``FieldModel`` of them.

    Attributes
    ----------
    model : PanelModel
    step : float
    common : ndarray of shape (n_times,), float64
    measure : Measures
        M of all series.
    log_scale : float
        What M are divided by, of all together.
    """

    model: PanelModel
    step: float
    common: Floats
    measure: Measures
    log_scale: float
    _moments: list[tuple[Floats, Floats]] = field(default_factory=list, repr=False, compare=False)

    @property
    def field_map(self) -> FieldMap:
        """Of places."""
        return self.model.field_map

    @property
    def prior(self) -> LevelsPrior:
        """Of levels, and of b."""
        return self.model.prior

    def measures(self, slope: float) -> Measures:  # noqa: ARG002
        """M: the slope is a coefficient of the field."""
        return self.measure

    @staticmethod
    def scale(theta: Floats) -> float:
        """The standard deviation of the smooth field, at log s and logit rho."""
        return FieldModel.scale(theta)

    def residuals(self, theta: Floats) -> list[tuple[float, Floats]]:
        """Shares and variances of places' own parts, at log s and logit rho."""
        return own_parts(self.model.population, self.field_map, theta)

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """The normal approximation of each M: means and precisions."""
        if not self._moments:
            middle = np.full(self.model.n_series, self.model.middle)
            variances = [np.full(self.model.n_series, _REFERENCE_SD**2)]
            ((_, first, variance),) = self.measure.moments(middle, variances)
            told = np.maximum(1.0 / np.maximum(variance, 1e-9) - _REFERENCE_SD**-2.0, _LEAST_PRECISION)
            mean = middle + (first - middle) * (1.0 + _REFERENCE_SD**-2.0 / told)
            self._moments.append((mean, told))
        return self._moments[0]

    def approximate(self, theta: Floats) -> tuple[float, Sites]:
        """Return log p(theta | y) with normal likelihoods of places, but for a constant, and sites."""
        mean, precision = self.moments
        tau = 1.0 / (1.0 / precision + self.residuals(theta)[0][1])
        level_tau, level_nu = self.prior.normal(self.field_map.n_levels)
        sites = Sites(tau=tau, nu=tau * mean, level_tau=level_tau, level_nu=level_nu)
        law = GaussianField.of(self.field_map, self.scale(theta), sites)
        of_places = 0.5 * float(np.sum(np.log(tau) - tau * mean**2))
        return law.log_integral + of_places + log_hyperprior(theta), sites

    def propagated(self, theta: Floats, start: Sites | None) -> Propagated | None:
        """Propagate from a start, or else from normal likelihoods; None where neither settles."""
        for each in (start, None):
            try:
                sites = self.approximate(theta)[1] if each is None else each
                result = propagated(
                    self.field_map,
                    self.measure,
                    scale=self.scale(theta),
                    residuals=self.residuals(theta),
                    level_prior=self.prior,
                    start=sites,
                )
            except np.linalg.LinAlgError:
                continue
            if result.settled:
                return result
        return None

    def law(self, theta: Floats, cavity: tuple[Floats, Floats], block: PanelBlock) -> Floats:
        """Return what all other series say of z at the anchor, on a block's points: a density."""
        mu, omega = cavity[0][block.series][:, None], cavity[1][block.series][:, None]
        total = np.zeros(block.grid.shape, np.float32)
        square = ((block.grid - mu) ** 2).astype(np.float32)
        for share, variance in self.residuals(theta):
            of_part = np.maximum(omega + variance[block.series][:, None], self.measure.least)
            high = (share / np.sqrt(2.0 * np.pi * of_part)).astype(np.float32)
            total += high * np.exp(square * (-0.5 / of_part).astype(np.float32))
        return np.asarray(np.maximum(total, np.float32(_FLOOR)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What all series say of the common walk, at one d and about one common walk: (3) and (4).

    Attributes
    ----------
    precision, linear : ndarray of shape (n_times, n_times) and (n_times,), float64
        H and h of ``panel_common``.
    offset : float
        log p(y | gamma) at the common walk, less h' gamma - gamma' H gamma / 2 there.
    tau : ndarray of shape (n_series, n_times), float64
        Precisions of cells.
    step_variance : ndarray of shape (n_series, n_times - 1), float64
        Of steps, wide where there is a jump.
    place_variance : ndarray of shape (n_series,), float64
        Variances of places' own parts.
    of_field : ndarray of shape (n_series, n_times), float64
        Sums of G r of (4).
    """

    precision: Floats
    linear: Floats
    offset: float
    tau: Floats
    step_variance: Floats
    place_variance: Floats
    of_field: Floats

    @classmethod
    def of(cls, places: Places, theta: Floats, at: Propagated) -> Told:
        """Work out (3) and (4) where propagation is."""
        model, n_times = places.model, len(places.common)
        gradient = np.zeros(n_times)
        tau, place_variance = np.zeros((model.n_series, n_times)), np.empty(model.n_series)
        step_variance = np.empty((model.n_series, n_times - 1))
        cavity = at.cavity_mean, at.cavity_variance
        for chains in model.chains(places.step, places.common):
            rows = chains.block.series
            smoothed = chains.smoothed(places.law(theta, cavity, chains.block), with_jumps=True)
            of_series, told = smoothed.gradient()
            gradient += np.sum(of_series, axis=0)
            tau[rows] = np.where(chains.block.is_seen, np.maximum(told, _LEAST_TOLD), 0.0)
            jumped = smoothed.jumped[:, 1:]
            # Precisions of either kind of step, by how probable each is.
            step_variance[rows] = 1.0 / ((1.0 - jumped) / places.step**2 + jumped / JUMP_VARIANCE)
            place_variance[rows] = own_variance(places, theta, cavity, smoothed)
        gradient[model.common_walk.anchor] = 0.0
        total, row = np.zeros((n_times, n_times)), np.empty((model.n_series, n_times))
        for rows in _chunks(model.n_series, n_times):
            matrix = responses(
                tau[rows], step_variance[rows], place_variance[rows], model.common_walk.anchor
            )[1]
            total += np.sum(matrix, axis=0)
            row[rows] = np.sum(matrix, axis=2)
        level_tau = np.maximum(at.sites.level_tau, 1e-6)
        sites = Sites(
            tau=np.sum(row, axis=1),
            nu=np.zeros(model.n_series),
            level_tau=level_tau,
            level_nu=np.zeros_like(level_tau),
        )
        of_field = GaussianField.of(model.field_map, places.scale(theta), sites).times(row)
        precision = total - row.T @ of_field
        precision = (precision + precision.T) / 2.0
        linear = gradient + precision @ places.common
        return cls(
            precision=precision,
            linear=linear,
            offset=-float(linear @ places.common - 0.5 * places.common @ precision @ places.common),
            tau=tau,
            step_variance=step_variance,
            place_variance=place_variance,
            of_field=of_field,
        )

    def moved(self, rows: Cells, anchor: int) -> Floats:
        """Return the last of (4) for some series, (n_rows, n_times, n_times)."""
        sigma, matrix = responses(self.tau[rows], self.step_variance[rows], self.place_variance[rows], anchor)
        n_times = sigma.shape[1]
        left = np.eye(n_times) - sigma @ matrix
        return np.asarray(left - np.sum(left, axis=2)[:, :, None] * self.of_field[rows][:, None, :])

    def widened(self, covariance: Floats, anchor: int) -> Floats:
        """Return what variances of x are larger by, (n_series, n_times), for a covariance of gamma."""
        result = np.empty_like(self.tau)
        for rows in _chunks(*self.tau.shape):
            moved = self.moved(rows, anchor)
            result[rows] = np.einsum("nij,nij->ni", moved @ covariance, moved)
        return np.maximum(result, 0.0)


def own_variance(
    places: Places, theta: Floats, cavity: tuple[Floats, Floats], smoothed: PanelSmoothed
) -> Floats:
    """Return variances of places' own parts, by how probable each component is, (n_rows,)."""
    block, anchor = smoothed.chains.block, smoothed.chains.anchor
    mu, omega = (each[block.series][:, None] for each in cavity)
    mass = smoothed.mass[:, anchor]
    total, precision = np.zeros(len(mass)), np.zeros(len(mass))
    whole = places.law(theta, cavity, block)
    for share, variance in places.residuals(theta):
        of_part = variance[block.series]
        wide = np.maximum(omega + of_part[:, None], places.measure.least)
        density = share * np.exp(-0.5 * (block.grid - mu) ** 2 / wide) / np.sqrt(2.0 * np.pi * wide)
        here = np.einsum("ij,ij->i", mass, density / whole)
        total += here
        precision += here / np.maximum(of_part, 1e-9)
    return np.asarray(total / precision)


def responses(
    tau: Floats, step_variance: Floats, place_variance: Floats, anchor: int
) -> tuple[Floats, Floats]:
    """Return Sigma and R of (4), (n_rows, n_times, n_times) each."""
    n_rows, n_times = tau.shape
    away = np.zeros((n_rows, n_times))
    away[:, anchor + 1 :] = np.cumsum(step_variance[:, anchor:], axis=1)
    away[:, :anchor] = np.cumsum(step_variance[:, :anchor][:, ::-1], axis=1)[:, ::-1]
    side = np.sign(np.arange(n_times) - anchor)
    sigma = np.where(side[:, None] == side, np.minimum(away[:, :, None], away[:, None, :]), 0.0)
    sigma += place_variance[:, None, None]
    root = np.sqrt(tau)
    inner = np.eye(n_times) + root[:, :, None] * sigma * root[:, None, :]
    matrix = root[:, :, None] * np.linalg.inv(inner) * root[:, None, :]
    return sigma, matrix


def _chunks(n_series: int, n_times: int) -> Iterator[Cells]:
    at_once = max(1, 4_000_000 // n_times**2)
    for start in range(0, n_series, at_once):
        yield np.arange(start, min(start + at_once, n_series))


def common_at(
    model: PanelModel, step: float, theta: Floats, common: Floats
) -> tuple[Places, Propagated, Floats]:
    """Find the common walk at one step, at log s and logit rho, from a start.

    Returns what is known where series were last asked, and where the walk is by that.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where propagation does not settle.
    """
    start: Sites | None = None
    turn = 0
    while True:
        places = model.places(step, common)
        at = places.propagated(theta, start)
        if at is None:
            message = "propagation does not settle"
            raise np.linalg.LinAlgError(message)
        told = Told.of(places, theta, at)
        known = model.common_walk.posterior(told.precision, told.linear)
        sd = np.sqrt(np.diag(known.covariance)) + 1e-3 * model.spacing
        move = known.mean - common
        turn += 1
        is_near = float(np.max(np.abs(move) / sd)) < _NEAR
        # Tails of likelihoods have next to no second derivatives: Newton's step is too long there.
        common = common + move * min(1.0, _FARTHEST / float(np.max(np.abs(move)) + _FLOOR))
        # Beyond the tables nothing is known.
        if turn == _TURNS or is_near or float(np.max(np.abs(common))) > model.reach:
            return places, at, common
        start = at.sites
