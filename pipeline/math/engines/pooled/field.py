r"""Posteriors of cells' parameters under a smooth field on a map, hyperparameters integrated over.

Model. ``field_lattice``: :math:`z_c = m + s (\sqrt \rho \, u_c + \sqrt{1 - \rho} \, w_c)`.

Method. At each point h of the lattice all other cells say of a cell that its z is of
:math:`\sum_k \epsilon_k \mathrm{Normal}(\mu, V_k)` (``field_propagation``), so that

.. math::
    p(x_c \mid y) = \sum_h \frac{p(h \mid y)}{Z_c(h)} \sum_j w_{cj}(x_c) \sum_k \epsilon_k
    \mathrm{Normal}(x_c - b (v_{cj} - v_0); \mu_c(h), V_{ck}(h)), \qquad (1)

the exact likelihood of the cell times what the others say. How much of an answer is the cell's own is

.. math:: \text{own}_c = \sum_h p(h \mid y) \sum_k P(k \mid y, h) \,
    \bigl(1 - \mathrm{Var}(z_c \mid y, h, k) / V_{ck}(h)\bigr). \qquad (2)

Joint draws take h first, then a normal field, then each cell from (1) at the rank of a normal number that
goes with the field as z does: a normal copula with exact margins.

References
----------
Rue, Martino, Chopin. Approximate Bayesian inference for latent Gaussian models by using integrated nested
Laplace approximations. J. R. Stat. Soc. B 71, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution, drawn_sizes
from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField
from suffice.pipeline.math.engines.pooled.field_lattice import field_model, lattice
from suffice.pipeline.math.engines.pooled.field_propagation import Tilted
from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.pipeline.math.engines.pooled.field_lattice import FieldModel, FieldPoint
    from suffice.pipeline.math.engines.pooled.field_map import FieldMap
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Cells, Floats

_NEGLIGIBLE = 1e-4
_OF_LEVEL, _WEIGHT_OF_LEVEL = np.polynomial.hermite_e.hermegauss(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDistribution(PooledDistribution):
    """Made by ``field_distribution``: a ``PooledDistribution`` of cells on a map.

    Attributes
    ----------
    model : FieldModel
    points : tuple of FieldPoint
        Of hyperparameters, those with a weight.
    point_weight : ndarray of shape (n_points,), float64
        Adds up to 1.
    """

    model: FieldModel
    points: tuple[FieldPoint, ...]
    point_weight: Floats

    @property
    def of_map(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of rho, the share of the variance that is the map's."""
        values = np.array([point.of_map for point in self.points])
        mean = float(self.point_weight @ values)
        return mean, float(np.sqrt(self.point_weight @ (values - mean) ** 2))

    def plug_in(self) -> NoReturn:
        """Refuse: a field is not worked out at means of hyperparameters.

        Raises
        ------
        UsageError
        """
        message = "cells on a map have no answer with hyperparameters plugged in: pool them without adjacency"
        raise UsageError(message)

    def population_draws(self, log_size: Floats, rng: np.random.Generator) -> NoReturn:  # noqa: ARG002
        """Refuse: new cells have no place on the map.

        Raises
        ------
        UsageError
        """
        message = "new cells have no neighbours on a map: pool cells without adjacency"
        raise UsageError(message)

    def _joint(self, draws: int, rng: np.random.Generator, *, with_sizes: bool) -> tuple[Floats, Floats]:
        """Draw hyperparameters, then a field, then every cell; its size given its position."""
        from scipy.special import ndtr

        position, log_size = np.empty((draws, self.n_cells)), np.zeros((draws, self.n_cells))
        counts, done = rng.multinomial(draws, self.point_weight / np.sum(self.point_weight)), 0
        for point, each in zip(self.points, counts.tolist(), strict=True):
            if not each:
                continue
            tilted = _tilted(self.model, point)
            field = GaussianField.of(self.model.field_map, self.model.scale(point.theta), point.sites)
            together = correlation(tilted, point.cavity_mean)
            normal = (field.drawn(each, rng)[0] - field.mean) / np.sqrt(field.variance) * together
            normal += np.sqrt(1.0 - together**2) * rng.standard_normal(normal.shape)
            rank = ndtr(normal)
            for (cells, nodes), whole in zip(
                self.blocks(self.model.grid.focus), _masses(self.model, [point], np.ones(1)), strict=True
            ):
                rows = slice(done, done + each)
                position[rows, cells], chosen = _at_ranks(nodes, np.sum(whole, axis=2), rank[:, cells])
                if with_sizes:
                    log_size[rows, cells] = _sizes_at(nodes, whole, chosen, rng)
            done += each
        order = rng.permutation(draws)
        return position[order], log_size[order]

    def left_out(self) -> HeldOutScores:
        """Return how probable what each cell released is, given all others.

        At each point of hyperparameters it is the integral of the exact likelihood under what propagation
        has all others say of the cell: Z of (2) of ``field_propagation``.
        """
        log_scale = np.concatenate([nodes.log_scale for _, nodes in self.blocks(self.model.grid.focus)])
        log_z = np.array([_tilted(self.model, point).log_z for point in self.points])
        return HeldOutScores.of_nodes(log_z + log_scale, self.point_weight, "expectation propagation")


def field_distribution(
    source: CellsSource, population: Population, name: str, line: Line, field_map: FieldMap
) -> FieldDistribution:
    """Return the posterior of every cell's parameter on a map.

    Parameters
    ----------
    source : CellsSource
    population : Population
        One that can be moved along the line: of cells' own parts.
    name : str
        The parameter's.
    line : Line
    field_map : FieldMap
    """
    model, mode, covariance = field_model(source, population, line, field_map)
    model, points, weight, settled = lattice(model, mode, covariance)
    kept = np.flatnonzero(weight > _NEGLIGIBLE * np.max(weight))
    points, weight = [points[number] for number in kept], weight[kept] / np.sum(weight[kept])
    own_share, outside = np.zeros(source.n_cells), np.zeros(source.n_cells)
    for point, each in zip(points, weight.tolist(), strict=True):
        tilted = _tilted(model, point)
        for share, part in zip(tilted.share, tilted.parts, strict=True):
            # (2).
            own_share += each * share * np.clip(1.0 - part.variance / part.total, 0.0, 1.0)
        if population.is_contaminated:
            outside += each * tilted.share[1]
    total = _masses(model, points, weight)
    nodes = [nodes for _, nodes in model.blocks(model.grid.focus)]
    mass = np.concatenate([np.sum(whole, axis=2) for whole in total])
    return FieldDistribution(
        name=name,
        line=line,
        position=np.concatenate([each.position for each in nodes]),
        mass=mass / np.sum(mass, axis=1, keepdims=True),
        spacing=np.concatenate([each.spacing for each in nodes]),
        own_share=own_share,
        outside=outside,
        hyperparameters=_hyperparameters(model, points, weight, settled=settled),
        population=population,
        blocks=model.blocks,
        model=model,
        points=tuple(points),
        point_weight=weight,
    )


def _hyperparameters(
    model: FieldModel, points: list[FieldPoint], weight: Floats, *, settled: bool
) -> Hyperparameters:
    """Sum up points as nodes of location, spread and slope; levels of several maps by their mean."""
    middle = np.array([np.mean(point.level_mean) for point in points])
    sd = np.array([np.sqrt(np.sum(point.level_variance)) / len(point.level_variance) for point in points])
    of_level = _WEIGHT_OF_LEVEL / np.sum(_WEIGHT_OF_LEVEL)
    spread = np.repeat(np.array([[point.spread] for point in points]), len(of_level), axis=1)
    slope = np.array([point.slope for point in points])
    return Hyperparameters(
        location=middle[:, None] + sd[:, None] * _OF_LEVEL,
        spread=spread,
        drawn_spread=spread,
        slope=slope if model.has_slope else slope[:1],
        spread_slope=np.zeros_like(spread),
        weight=weight[:, None] * of_level,
        grid=model.grid,
        settled=settled,
        size_unit=model.moments.size_unit,
    )


def _tilted(model: FieldModel, point: FieldPoint) -> Tilted:
    return Tilted.of(
        model.measures(point.slope), point.cavity_mean, point.cavity_variance, model.residuals(point.theta)
    )


def _masses(model: FieldModel, points: list[FieldPoint], weight: Floats) -> list[Floats]:
    """Return (1) over some points and sizes, (n_cells, n_positions, n_sizes) of every block of cells."""
    masses: list[Floats] = []
    for slope in sorted({point.slope for point in points}):
        rows = [number for number, point in enumerate(points) if point.slope == slope]
        density = np.zeros(model.measures(slope).weight.shape, dtype=np.float32)
        for number in rows:
            point = points[number]
            tilted = _tilted(model, point)
            gap = (model.grid.points.astype(np.float32) - point.cavity_mean.astype(np.float32)[:, None]) ** 2
            for (share, _), part in zip(model.residuals(point.theta), tilted.parts, strict=True):
                log_scale = np.log(weight[number] * share) - 0.5 * np.log(2.0 * np.pi * part.total)
                exponent = gap * (-0.5 / part.total).astype(np.float32)[:, None]
                exponent += (log_scale - tilted.log_z).astype(np.float32)[:, None]
                density += np.exp(exponent, out=exponent)
        for number, (cells, nodes) in enumerate(model.blocks(model.grid.focus)):
            at_nodes = model.grid.placed(nodes, slope).at_nodes(density[cells].astype(np.float64))
            of_nodes = nodes.of_kept * at_nodes
            whole = np.bincount(nodes.kept, of_nodes, nodes.weight.size).astype(np.float64)
            mass = whole.reshape(nodes.weight.shape)
            if number < len(masses):
                masses[number] += mass
            else:
                masses.append(mass)
    return masses


def correlation(tilted: Tilted, cavity_mean: Floats) -> Floats:
    """Return the correlation of each cell's z with its sum of level and field, by (2) of propagation."""
    means = np.array([part.mean for part in tilted.parts])
    mean = np.sum(tilted.share * means, axis=0)
    covariance, variance = np.zeros_like(mean), np.zeros_like(mean)
    for share, part in zip(tilted.share, tilted.parts, strict=True):
        of_field = cavity_mean + part.ratio * (part.mean - cavity_mean)
        covariance += share * (part.ratio * part.variance + (part.mean - mean) * (of_field - tilted.mean))
        variance += share * (part.variance + (part.mean - mean) ** 2)
    result: Floats = np.clip(covariance / np.sqrt(variance * tilted.variance), 0.0, 1.0)
    return result


def _at_ranks(nodes: Nodes, mass: Floats, rank: Floats) -> tuple[Floats, Cells]:
    """Return positions (n_draws, n_cells) at ranks, and which nodes they are of, of all in C order.

    Each node's mass is spread over half a step about it.
    """
    n_cells, n = mass.shape
    before = np.arange(n_cells)
    ends = np.cumsum(mass, axis=1)
    ends /= ends[:, -1:]
    flat = (ends + before[:, None]).ravel()
    wanted = before + np.clip(rank, 1e-12, 1.0 - 1e-12)
    chosen = np.clip(np.searchsorted(flat, wanted), before * n, before * n + n - 1)
    low = np.where(chosen % n > 0, flat[chosen - 1], before)
    place = chosen % n + (wanted - low) / np.maximum(flat[chosen] - low, 1e-300) - 0.5
    place = np.clip(place, 0.0, n - 1.001)
    left = place.astype(np.int64)
    at = nodes.position.ravel()
    first = at[left + before * n]
    drawn: Floats = first + (place - left) * (at[left + before * n + 1] - first)
    return drawn, chosen


def _sizes_at(nodes: Nodes, whole: Floats, chosen: Cells, rng: np.random.Generator) -> Floats:
    """Draw log sizes (n_draws, n_cells) given the nodes of positions, in proportion to (1)."""
    n_sizes = whole.shape[2]
    ends = np.cumsum(whole.reshape(-1, n_sizes), axis=1)[chosen]
    wanted = rng.random(chosen.shape)[:, :, None] * ends[:, :, -1:]
    size = np.minimum(np.sum(ends <= wanted, axis=2), n_sizes - 1)
    return drawn_sizes(nodes, np.searchsorted(nodes.kept, chosen * n_sizes + size), rng)
