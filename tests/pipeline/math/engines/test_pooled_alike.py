"""Thousands of cells that released the same: what one is off by, all are off by together."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
from scipy.special import gammaln, log_expit, logsumexp

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.contaminated import ContaminatedPopulation
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.normal import normal_density
from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid, sharpened
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.normal_cells import NormalCells

if TYPE_CHECKING:
    from suffice.typing import Floats

CELLS, TRUE, FALSE = 3000, 20, 80


class Alike(ContaminatedPopulation):
    """The default population, without slopes on log size: all sizes are the same."""

    slope: ClassVar[bool] = False


def cells_of(n: int) -> CountCells:
    """Cells that released 20 and 80 each, behind noise of scale 1."""
    true, false = (
        NoisyCount(values=np.full((n, 1), float(each)), scales=np.ones(1)) for each in (TRUE, FALSE)
    )
    return CountCells(true=true, false=false, n_prior=Reciprocal(10**12))


def likelihood(x: Floats) -> Floats:
    """That of a cell's logit, but for a factor: a sum over all counts, N with its prior 1 / (N + 1)."""
    true, false = (each + np.arange(-min(each, 40), 41) for each in (TRUE, FALSE))
    n = true[:, None] + false
    log_weight = gammaln(n + 1) - gammaln(true + 1)[:, None] - gammaln(false + 1) - np.log(n + 1.0)
    log_weight -= np.abs(true - TRUE)[:, None] + np.abs(false - FALSE)
    # By the total, and what of it is true.
    log_value = [
        logsumexp(log_weight + true[:, None] * yes + false * no)
        for yes, no in zip(log_expit(x), log_expit(-x), strict=True)
    ]
    return np.asarray(np.exp(log_value - np.max(log_value)))


def exact(n: int) -> tuple[float, float, float]:
    """Mean and standard deviation of the location, and the mean of the spread, by even grids."""
    x = np.linspace(-3.2, 0.4, 721)
    of_cell = likelihood(x)
    sd = float(np.sqrt(np.cov(x, aweights=of_cell)))
    centre = float(np.average(x, weights=of_cell))
    location = centre + np.linspace(-8.0, 8.0, 97) * sd / n**0.5
    spread = np.linspace(0.0, 12.0, 121)[1:] * sd / n**0.5
    # The population is narrower than the grid of x is fine: about the location the likelihood is a parabola.
    curve = np.gradient(np.gradient(of_cell, x), x)
    at, bend = (np.interp(location, x, each) for each in (of_cell, curve))
    wide = normal_density(x, location, np.full(len(location), 2.0)) @ of_cell * (x[1] - x[0])
    z = 0.95 * (at + 0.5 * spread[:, None] ** 2 * bend) + 0.05 * wide
    log_weight = n * np.log(z) + log_expit(location) + log_expit(-location) - 0.5 * spread[:, None] ** 2
    weight = np.exp(log_weight - np.max(log_weight))
    weight /= np.sum(weight)
    of_location = np.sum(weight, axis=0)
    mean = float(of_location @ location)
    of_spread = float(np.sum(weight, axis=1) @ spread)
    return mean, float(np.sqrt(of_location @ (location - mean) ** 2)), of_spread


@pytest.mark.slow
def test_three_thousand_equal_cells_are_as_a_fine_grid_has_them() -> None:
    """The location and the spread, of which 3,000 cells say that it is next to nothing."""
    known, _ = fitted(cells_of(CELLS), Alike("contaminated"), Line.LOGIT)
    assert known.settled
    mean, sd, spread = exact(CELLS)
    assert abs(known.mean(known.location) - mean) < 0.3 * sd
    assert known.sd(known.location) == pytest.approx(sd, rel=0.03)
    assert known.mean(known.drawn_spread) == pytest.approx(spread, rel=0.04)


@pytest.mark.parametrize("reach", [0.04, 0.3])
def test_integrals_under_narrow_populations_are_those_of_fine_nodes(reach: float) -> None:
    """Log evidence of 3,000 cells is off by less than .2 nats wherever narrow populations are.

    Newton's method that starts from brackets as wide as the likelihood is off by 34, weights on the two
    nearest points by .6.
    """
    cells, centre = cells_of(1), -1.388
    focus = Focus(centre=centre, width=0.0024, reach=reach)
    places, spreads = (
        each.ravel() for each in np.meshgrid(np.linspace(-0.024, 0.024, 13), [0.0024, 0.005, 0.01, 0.02])
    )

    def log_evidence(nodes_focus: Focus, grid_focus: Focus) -> Floats:
        nodes = cells.nodes(np.zeros(1, dtype=np.int64), nodes_focus)
        grid = ResidualGrid(focus=grid_focus, origin=4.6)
        density = sharpened(normal_density(grid.points, centre + places, spreads))
        z = grid.placed(nodes, 0.0).measure()[0] @ density.T
        return np.asarray(np.log(z) + nodes.log_scale[0])

    finer = Focus(centre=centre, width=0.0008, reach=0.06)
    gap = CELLS * (log_evidence(focus, focus) - log_evidence(finer, finer))
    assert np.max(np.abs(gap - np.median(gap))) < 0.2


def test_integrals_are_those_over_nodes_where_a_grid_is_coarse() -> None:
    """Of normal cells and populations: by densities as they are, integrals are off by up to .03."""
    cells = NormalCells(np.linspace(-3.0, 3.0, 25), np.full(25, 0.1))
    focus, scale = Focus(centre=0.0, width=0.2), np.array([0.3, 0.5, 1.0])
    nodes = cells.nodes(np.arange(25), focus)
    grid = ResidualGrid(focus=focus, origin=0.0)
    location = np.array([-2.0, 1.5, 0.3])
    z = grid.placed(nodes, 0.0).measure() @ sharpened(normal_density(grid.points, location, scale)).T
    exact = normal_density(cells.values, location, np.hypot(scale, 0.1)).T * 0.1 * np.sqrt(2.0 * np.pi)
    is_near = exact > 0.2 * np.max(exact, axis=0)
    np.testing.assert_allclose((z * np.exp(nodes.log_scale)[:, None])[is_near], exact[is_near], rtol=3e-3)
