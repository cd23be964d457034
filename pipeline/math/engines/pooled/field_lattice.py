r"""Hyperparameters of a smooth field with cells' own parts, integrated over on a lattice.

Model (BYM2: Riebler, Sørbye, Simpson, Rue 2016). On the line, less what a slope on log size explains,

.. math::
    x_c - b (v_c - v_0) = z_c = m + s \bigl(\sqrt \rho \, u_c + \sqrt{1 - \rho} \, w_c\bigr) \qquad (1)

with the smooth field u of ``field_map``, and w standard normal (of the default population, a share of
outliers has a wider part of its own, as in ``contaminated``). Islands have :math:`z_c = m + s w_c`.
Hyperpriors are those of ``hyperparameters``, and :math:`\rho` is uniform on 0..1.

Method. With :math:`\theta = (\log s, \operatorname{logit} \rho, b)`, p(theta | y) is the prior times (3) of
``field_propagation``. Where it is follows from the normal approximation of each cell's likelihood, about
where a population without a map is: its mode, and its covariance there. The lattice of ``hyper_lattice`` is
followed from the mode, the slope first; if its covariance turns out to be another one, so is the lattice.

References
----------
Riebler, Sørbye, Simpson, Rue. An intuitive Bayesian spatial model for disease mapping that accounts for
scaling. Stat. Methods Med. Res. 25, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.contaminated import SHARE
from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField, Sites
from suffice.pipeline.math.engines.pooled.field_propagation import Measures, propagated
from suffice.pipeline.math.engines.pooled.hyper_lattice import (
    STEP,
    followed,
    in_steps,
    mode_and_covariance,
    next_covariance,
    weights_of,
)
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.hyperpriors import SLOPE_SD, location_prior
from suffice.pipeline.math.engines.pooled.normal_approximation import Moments

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource
    from suffice.pipeline.math.engines.pooled.field_map import FieldMap
    from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid
    from suffice.typing import Floats

_ROUNDS = 3
_LOG_SPREAD = (-6.0, 3.0)
_LOGIT = 8.0
_OF_WIDTH, _FINEST, _FARTHEST, _OF_SLOPE = 1.0, 1.0 / 60.0, 15.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPoint:
    """One point of the lattice.

    Attributes
    ----------
    theta : ndarray of shape (2,) or (3,), float64
        log s, logit rho, and b where there is one.
    log_weight : float
        log p(theta | y), but for a constant.
    sites : Sites
    cavity_mean, cavity_variance : ndarray of shape (n_cells,), float64
    level_mean, level_variance : ndarray of shape (n_levels,), float64
    """

    theta: Floats
    log_weight: float
    sites: Sites
    cavity_mean: Floats
    cavity_variance: Floats
    level_mean: Floats
    level_variance: Floats

    @property
    def spread(self) -> float:
        """S of (1)."""
        return float(np.exp(self.theta[0]))

    @property
    def of_map(self) -> float:
        """The share rho of (1)."""
        return float(1.0 / (1.0 + np.exp(-self.theta[1])))

    @property
    def slope(self) -> float:
        """The slope b of (1)."""
        return float(self.theta[2]) if len(self.theta) > 2 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldModel:
    """The model (1) of some cells, and where to look.

    Attributes
    ----------
    field_map : FieldMap
    population : Population
        Of cells' own parts.
    blocks : KeptNodes
    grid : ResidualGrid
    prior : LocationPrior
    moments : Moments
    has_slope : bool
    steepest : float
        The steepest slope that nodes reach for.
    """

    field_map: FieldMap
    population: Population
    blocks: KeptNodes
    grid: ResidualGrid
    prior: LocationPrior
    moments: Moments
    has_slope: bool
    steepest: float = np.inf
    _kept: dict[float, Measures] = field(default_factory=dict, init=False, repr=False, compare=False)

    def log_prior(self, theta: Floats) -> float:
        """The density of theta: of a half-normal s, a uniform rho and a normal b."""
        of_slope = 0.5 * (theta[2] * self.moments.size_unit / SLOPE_SD) ** 2 if self.has_slope else 0.0
        return float(log_hyperprior(theta) - of_slope)

    def is_inside(self, theta: Floats) -> bool:
        """Whether nodes reach for it."""
        return is_possible(theta) and (not self.has_slope or abs(float(theta[2])) <= self.steepest)

    def residuals(self, theta: Floats) -> list[tuple[float, Floats]]:
        """Shares and variances of cells' own parts, (n_cells,)."""
        return own_parts(self.population, self.field_map, theta)

    @staticmethod
    def scale(theta: Floats) -> float:
        """The standard deviation of the smooth field."""
        return float(np.exp(theta[0]) / np.sqrt(1.0 + np.exp(-theta[1])))

    def approximate(self, theta: Floats) -> tuple[float, GaussianField, Sites]:
        """Return log p(theta | y), the field, and its sites, with a normal likelihood of each cell."""
        slope = theta[2] if self.has_slope else 0.0
        value = self.moments.mean - slope * (self.moments.log_size - self.grid.origin)
        tau = 1.0 / (1.0 / self.moments.precision + self.residuals(theta)[0][1])
        n_levels = self.field_map.n_levels
        sites = Sites(
            tau=tau,
            nu=tau * value,
            level_tau=np.full(n_levels, self.prior.precision),
            level_nu=np.full(n_levels, self.prior.precision * self.prior.centre),
        )
        law = GaussianField.of(self.field_map, self.scale(theta), sites)
        of_cells = 0.5 * float(np.sum(np.log(tau) - tau * value**2))
        return law.log_integral + of_cells + self.log_prior(theta), law, sites

    def measures(self, slope: float) -> Measures:
        """Likelihoods of all cells as measures of z."""
        if slope not in self._kept:
            weights = [
                self.grid.placed(nodes, slope).measure().astype(np.float32)
                for _, nodes in self.blocks(self.grid.focus)
            ]
            self._kept[slope] = Measures.of(
                self.grid.points, np.concatenate(weights), self.grid.focus.apart**2
            )
        return self._kept[slope]

    def at(self, theta: Floats, start: Sites) -> FieldPoint | None:
        """Propagate from this start, or else from normal likelihoods; None where neither settles."""
        point = self._from(theta, start)
        if point is None:
            try:
                point = self._from(theta, self.approximate(theta)[2])
            except np.linalg.LinAlgError:
                return None
        return point

    def _from(self, theta: Floats, start: Sites) -> FieldPoint | None:
        try:
            result = propagated(
                self.field_map,
                self.measures(float(theta[2]) if self.has_slope else 0.0),
                scale=self.scale(theta),
                residuals=self.residuals(theta),
                level_prior=self.prior,
                start=start,
            )
        except np.linalg.LinAlgError:
            return None
        if not result.settled:
            return None
        return FieldPoint(
            theta=theta,
            log_weight=result.log_evidence + self.log_prior(theta),
            sites=result.sites,
            cavity_mean=result.cavity_mean,
            cavity_variance=result.cavity_variance,
            level_mean=result.field.level_mean,
            level_variance=result.field.level_variance,
        )


def own_parts(population: Population, field_map: FieldMap, theta: Floats) -> list[tuple[float, Floats]]:
    """Return shares and variances of cells' own parts, (n_cells,), at log s and logit rho."""
    spread, share = np.exp(theta[0]), 1.0 / (1.0 + np.exp(theta[1]))
    spreads = np.where(field_map.variance > 0.0, spread * np.sqrt(share), spread)
    parts = [each**2 for each in population.spreads(spreads)]
    shares = [1.0 - SHARE, SHARE] if population.is_contaminated else [1.0]
    return list(zip(shares, parts, strict=True))


def log_hyperprior(theta: Floats) -> float:
    """Log density of log s and logit rho: of a half-normal s and a uniform rho."""
    return float(
        theta[0] - 0.5 * np.exp(2.0 * theta[0]) - np.logaddexp(0.0, theta[1]) - np.logaddexp(0.0, -theta[1])
    )


def is_possible(theta: Floats) -> bool:
    """Tell whether theta is among what is looked at: beyond, the hyperpriors leave next to nothing."""
    return bool(_LOG_SPREAD[0] < theta[0] < _LOG_SPREAD[1] and abs(theta[1]) < _LOGIT)


def field_model(
    source: CellsSource, population: Population, line: Line, field_map: FieldMap
) -> tuple[FieldModel, Floats, Floats]:
    """Return the model of cells on a map, about where theta is, and its covariance.

    Points are dense where the field is expected.
    """
    hyper, blocks = fitted(source, population, line, has_spread_slope=False)
    model = FieldModel(
        field_map=field_map,
        population=population,
        blocks=blocks,
        grid=hyper.grid,
        prior=location_prior(line, source.middle),
        moments=_moments(hyper, blocks, source.n_cells),
        has_slope=population.slope and source.has_sizes,
    )
    mode, covariance = _approximate_mode(model)
    return _focused(model, mode, covariance), mode, covariance


def _moments(hyper: Hyperparameters, blocks: KeptNodes, n_cells: int) -> Moments:
    """Return the normal approximation of each likelihood, about where a population without a map is."""
    location, slope = hyper.mean(hyper.location), hyper.mean(hyper.slopes)
    of_reference = hyper.mean(hyper.spread**2) + hyper.mean((hyper.location - location) ** 2)
    reference = np.full(n_cells, location), np.full(n_cells, of_reference)
    weights, sizes = [], []
    for _, nodes in blocks(hyper.grid.focus):
        weights.append(hyper.grid.placed(nodes, slope).measure())
        near = np.exp(-0.5 * (nodes.position - location) ** 2 / (of_reference + 1.0))
        of_size = np.sum(nodes.weight * near[:, :, None], axis=1)
        sizes.append(np.sum(of_size * nodes.log_size, axis=1) / np.maximum(np.sum(of_size, axis=1), 1e-300))
    measures = Measures.of(hyper.grid.points, np.concatenate(weights), hyper.grid.focus.apart**2)
    ((_, mean, variance),) = measures.moments(reference[0], [reference[1]])
    highest = hyper.grid.highest
    size = np.minimum(np.concatenate(sizes), highest)
    precision = np.maximum(1.0 / variance - 1.0 / of_reference, 1e-3 / of_reference)
    # Of positions: what the slope explains is put back.
    position = location + (mean - location) / (variance * precision) + slope * (size - hyper.grid.origin)
    return Moments(mean=position, precision=precision, log_size=size, highest=highest)


def _approximate_mode(model: FieldModel) -> tuple[Floats, Floats]:
    """Return the mode of theta, and the covariance there, with a normal likelihood of each cell."""

    def loss(theta: Floats) -> float:
        if not model.is_inside(theta):
            return 1e10
        try:
            return -model.approximate(theta)[0]
        except np.linalg.LinAlgError:
            return 1e10

    n = 2 + model.has_slope
    return mode_and_covariance(loss, [-1.0, 0.0, 0.0][:n], [0.7, 1.5, 0.2][:n])


def _focused(model: FieldModel, theta: Floats, covariance: Floats) -> FieldModel:
    """Return the model with points that are dense enough for fields about theta."""
    least = np.array(theta)
    least[0] -= 2.0 * min(covariance[0, 0] ** 0.5, 0.7)
    least[1] = np.clip(least[1], -3.0, 3.0)
    _, law, _ = model.approximate(theta)
    narrow = model.approximate(least)[1].variance + model.residuals(least)[0][1]
    centre = float(np.mean(law.mean))
    reach, steepest = float(np.max(np.abs(law.mean - centre) + 4.0 * np.sqrt(law.variance))), 0.0
    if model.has_slope:
        # Small cells and large ones of the field are elsewhere on the line.
        sizes = model.moments.log_size
        ends = np.array([max(np.min(sizes) - 1.5, 0.0), np.max(sizes) + 0.5]) - model.grid.origin
        steepest = float(abs(theta[2]) + _OF_SLOPE * covariance[2, 2] ** 0.5)
        reach += float(steepest * np.max(np.abs(ends)))
    reach = min(reach, _FARTHEST)
    width = max(_OF_WIDTH * float(np.sqrt(np.min(narrow))), _FINEST * reach)
    focus = Focus(centre=centre, width=width, reach=reach if reach > 2.0 * width else 0.0)
    return replace(model, grid=replace(model.grid, focus=focus), steepest=steepest)


def lattice(
    model: FieldModel, centre: Floats, covariance: Floats
) -> tuple[FieldModel, list[FieldPoint], Floats, bool]:
    """Return the model, points, weights that add up to 1, and whether the integral is resolved."""
    start = model.approximate(centre)[2]
    points: list[FieldPoint] = []
    weight, settled = np.zeros(0), False
    for round_number in range(_ROUNDS):
        steps = _steps(covariance)
        points, is_whole = _followed(model, centre, steps, start)
        weight, mean, spread = weights_of(points)
        settled = is_whole and bool(np.min(in_steps(steps, spread)) > 0.5**2)
        if settled or round_number == _ROUNDS - 1:
            break
        start = points[int(np.argmax(weight))].sites
        centre, covariance = mean, next_covariance(steps, spread)
        # Nodes are to be dense where the posterior turned out to be.
        model = _focused(replace(model, steepest=np.inf), centre, covariance)
    return model, points, weight, settled


def _steps(covariance: Floats) -> Floats:
    """Return columns of steps, of which one changes the slope: each slope asks for its own measures."""
    order = np.roll(np.arange(len(covariance)), 1)
    steps = np.empty_like(covariance)
    steps[order] = STEP * np.linalg.cholesky(covariance[np.ix_(order, order)])
    return steps


def _followed(
    model: FieldModel, centre: Floats, steps: Floats, start: Sites
) -> tuple[list[FieldPoint], bool]:
    """Follow the lattice from a start of sites."""

    def at(theta: Floats, near: FieldPoint | None) -> FieldPoint | None:
        return model.at(theta, start if near is None else near.sites) if model.is_inside(theta) else None

    return followed(at, is_possible, centre, steps)
