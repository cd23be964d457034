r"""The posterior of a panel: where to look, and the integral over hyperparameters.

Method. Normal likelihoods of cells, without a map, say about where d, the common walk and all z are
(``panel_start``), some of the series by exact recursions where d and the share of jumps are
(``panel_share``), and a normal approximation of what series say at the anchor where s and :math:`\rho` are.
Points of z are closer together than ``_APART`` of the narrowest posterior, and go on until ``_BEYOND`` of
each series' lies further out. Newton's method then finds the common walk at the most probable d, s and
:math:`\rho`, about which the lattice is followed (``panel_lattice``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field_lattice import is_possible
from suffice.pipeline.math.engines.pooled.hyper_lattice import (
    followed,
    mode_and_covariance,
    resolved_with_steps,
    weights_of,
)
from suffice.pipeline.math.engines.pooled.hyperpriors import (
    SLOPE_SD,
    LevelsPrior,
    location_prior,
    size_unit,
)
from suffice.pipeline.math.engines.pooled.panel import PanelModel, Places, common_at
from suffice.pipeline.math.engines.pooled.panel_chains import panel_blocks
from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
from suffice.pipeline.math.engines.pooled.panel_distribution import PanelDistribution, mixture
from suffice.pipeline.math.engines.pooled.panel_lattice import PanelLattice
from suffice.pipeline.math.engines.pooled.panel_share import AtShare, shares_of
from suffice.pipeline.math.engines.pooled.panel_start import PanelStart
from suffice.pipeline.math.engines.pooled.panel_step_law import StepLaw
from suffice.pipeline.math.engines.pooled.walk_steps import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.field_map import FieldMap
    from suffice.pipeline.math.engines.pooled.field_propagation import Propagated
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.panel_chains import PanelBlock
    from suffice.pipeline.math.engines.pooled.panel_lattice import PanelPoint
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walk_steps import Points
    from suffice.typing import Cells, Floats

LONGEST = 400
"""Times of a panel: the work goes with their third power, of every place."""
_APART, _FEWEST, _MOST = 0.6, 121, 1601
_BEYOND = 2e-5
_FURTHER, _LONGER, _FARTHER = (0.5, 5.0), 3, 3
"""How far points go on at either end at a time, in units of the line, how often they may, and how often
tables may for the common walk alone."""
_SPARE = 0.2
"""How much further tables are to go than the common walk does."""
_NEGLIGIBLE, _NEGLIGIBLE_STEP = 1e-4, 2e-3
_DEPTH_OF_OTHERS = 3.5
"""How far below the highest point those of less probable shares of jumps go."""


def panel_distribution(
    cells: CellsInOrder,
    population: Population,
    name: str,
    line: Line,
    field_map: FieldMap,
    pairs: Cells,
    *,
    jumps: float,
    scale: float,
) -> PanelDistribution:
    """Return the posterior of every cell's parameter.

    Parameters
    ----------
    cells : CellsInOrder
    population : Population
        Of places' own parts: one that can be moved along the line.
    name : str
        The parameter's.
    line : Line
    field_map : FieldMap
        Of the series, in their order.
    pairs : ndarray of shape (n_pairs, 2), int64
        Of series that are neighbours.
    jumps : float
        The share of steps that are jumps, of each series and of the common walk, in 0..1.
    scale : float
        Of the half-normal hyperpriors of steps.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where propagation does not settle.
    """
    location = location_prior(line, cells.middle)
    n_series, n_times = cells.cell.shape
    mean, precision = cells.moments(np.arange(n_series))
    sizes = cells.log_sizes() if population.slope else None
    typical = None
    if sizes is not None and float(np.std(sizes)) > 0.0:
        typical = float(np.mean(sizes))
        field_map = replace(field_map, covariate=sizes - typical)
    common_walk = CommonWalk(n_times=n_times, anchor=n_times // 2, scale=scale, jumps=jumps)
    start = PanelStart(
        mean=mean, precision=precision, location=location, common_walk=common_walk, step_scale=scale
    )
    mode, covariance = start.mode()
    path = start.path(mode)
    common = path - path[common_walk.anchor]
    smooth = start.smooth(mode, float(covariance[0, 0] ** 0.5), path)
    points = points_of(
        mean - common, precision, smooth, apart=_APART, least_points=_FEWEST, most_points=_MOST
    )
    is_fine = points.are_fine_for(float(np.sqrt(np.min(smooth[1]))))

    def model_of(blocks: list[PanelBlock], jumps: float) -> PanelModel:
        return PanelModel(
            field_map=field_map,
            population=population,
            prior=_levels_prior(location, sizes if typical is not None else None),
            blocks=blocks,
            middle=cells.middle,
            common_walk=common_walk,
            step_scale=scale,
            jumps=jumps,
        )

    blocks, reached = panel_blocks(cells, points, common), common
    stated = model_of(blocks, jumps)
    at_shares = [AtShare(share=0.0, log_step=mode[0], sd=float(covariance[0, 0] ** 0.5), log_evidence=0.0)]
    if jumps:
        level = float(path[common_walk.anchor])
        at_shares = shares_of(stated, float(mode[0]), float(np.exp(mode[1])), level, common)
    best = at_shares[0]
    model, step = replace(stated, jumps=best.share), float(np.exp(best.log_step))
    theta, of_theta = _field_mode(model.places(step, common))
    for turn in range(_LONGER + _FARTHER):
        places, at, common = common_at(model, step, theta, common)
        longer = _longer(places, theta, at, points)
        is_far = float(np.max(np.abs(common))) > model.reach - _SPARE
        if not is_far and (turn >= _LONGER or not np.any(longer)):
            break
        points = points.longer(longer)
        if is_far:
            blocks, reached = panel_blocks(cells, points, common), common
        else:
            # Likelihoods of the others are there.
            kept_blocks = [block.take(longer[block.series] == 0) for block in blocks]
            blocks = [block for block in kept_blocks if len(block.series)]
            blocks += panel_blocks(cells, points, reached, np.flatnonzero(longer))
            blocks.sort(key=lambda block: -block.grid.shape[1])
        model = replace(model, blocks=blocks)
    lattice, points_of_theta, weight, settled = _over_shares(model, theta, of_theta, common, at_shares)
    # Each d takes recursions of all series: those that hardly count are left out whole.
    keys = [point.key for point in points_of_theta]
    of_all_at = np.array([np.sum(weight[[each == key for each in keys]]) for key in keys])
    kept = np.flatnonzero((weight > _NEGLIGIBLE * np.max(weight)) & (of_all_at > _NEGLIGIBLE_STEP))
    return mixture(
        lattice,
        pairs,
        [points_of_theta[number] for number in kept],
        weight[kept] / np.sum(weight[kept]),
        StepLaw.of(points_of_theta, weight),
        cells,
        name,
        line,
        typical=typical,
        settled=settled and is_fine,
    )


def _over_shares(
    model: PanelModel, theta: Floats, of_theta: Floats, common: Floats, at_shares: Sequence[AtShare]
) -> tuple[PanelLattice, list[PanelPoint], Floats, bool]:
    """Follow a lattice at the most probable share of jumps, and about as far at others, where they count.

    Of other shares the lattice has the same steps, about the same s and rho.
    """
    best = at_shares[0]
    whole = np.zeros((3, 3))
    whole[0, 0], whole[1:, 1:] = best.sd**2, of_theta
    lattice = PanelLattice(model=model, theta=theta, common=common)
    points, _, settled, steps = resolved_with_steps(
        lattice.at, lattice.is_possible, np.array([best.log_step, *theta]), whole
    )
    _, mean, _ = weights_of(points)
    highest = max(point.log_weight for point in points)
    for other in at_shares[1:]:
        centre = mean + np.array([other.log_step - best.log_step, 0.0, 0.0])
        of_share = replace(lattice, model=replace(model, jumps=other.share))
        try:
            further, is_whole = followed(
                of_share.at, of_share.is_possible, centre, steps, highest=highest, depth=_DEPTH_OF_OTHERS
            )
        except np.linalg.LinAlgError:
            continue
        points, settled = [*points, *further], settled and is_whole
    return lattice, points, weights_of(points)[0], settled


def _levels_prior(location: LocationPrior, sizes: Floats | None) -> LevelsPrior:
    return LevelsPrior(location, None if sizes is None else SLOPE_SD / size_unit(sizes))


def _field_mode(places: Places) -> tuple[Floats, Floats]:
    """Return about where log s and logit rho are, and their covariance."""

    def loss(theta: Floats) -> float:
        if not is_possible(theta):
            return 1e10
        try:
            return -places.approximate(theta)[0]
        except np.linalg.LinAlgError:
            return 1e10

    return mode_and_covariance(loss, [-1.0, 0.0], [0.7, 1.5])


def _longer(places: Places, theta: Floats, at: Propagated, points: Points) -> Cells:
    """Return how many more points each series needs, as something of it lies beyond."""
    model = places.model
    longer = np.zeros(model.n_series, dtype=np.int64)
    cavity = at.cavity_mean, at.cavity_variance
    for chains in model.chains(places.step, places.common):
        rows, n = chains.block.series, chains.block.grid.shape[1]
        smoothed = chains.smoothed(places.law(theta, cavity, chains.block))
        reach = points.reach[rows]
        ends = np.stack([n // 2 - reach, n // 2 + reach], axis=1)[:, None]
        at_ends = np.sum(np.take_along_axis(smoothed.mass, ends, axis=2), axis=2) / points.spacing
        beyond = np.max(np.where(chains.block.is_seen, at_ends, 0.0), axis=1)
        # Tails of jumps fall by a factor of e over 1, others faster.
        further = np.clip(np.log(np.maximum(beyond, _BEYOND) / _BEYOND), *_FURTHER) / points.spacing
        longer[rows] = np.where(beyond > _BEYOND, np.ceil(further), 0).astype(np.int64)
    return np.minimum(longer, np.maximum(_MOST // 2 - points.reach, 0))
