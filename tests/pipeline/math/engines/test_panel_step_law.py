"""The law of a panel's step below its lattice, and what series behind noise say of the common walk."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperpriors import LevelsPrior, LocationPrior
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.panel import PanelModel, Told
from suffice.pipeline.math.engines.pooled.panel_chains import panel_blocks
from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
from suffice.pipeline.math.engines.pooled.panel_step_law import StepLaw
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_steps import Points
from support.normal_cells import NormalCells

if TYPE_CHECKING:
    from suffice.typing import Floats

N, TIMES, ANCHOR = 6, 5, 2
THETA = np.array([np.log(0.4), 0.0])


def lattice(log_density: Any, apart: float, depth: float = 4.5) -> tuple[list[Any], Floats]:
    """Points of log d and two more, normal ones, that lie at most so far below the highest."""
    near = np.arange(-3, 4) * 1.5
    points, heights = [], []
    for u, a, b in itertools.product(np.arange(-12.0, 3.0, apart), near, near):
        points.append(SimpleNamespace(theta=np.array([u, a, b]), jumps=0.01))
        heights.append(float(log_density(u)) - 0.5 * (a**2 + b**2))
    height = np.array(heights)
    kept = np.flatnonzero(height > np.max(height) - depth)
    weight = np.exp(height[kept])
    return [points[number] for number in kept], weight / np.sum(weight)


@pytest.mark.parametrize(
    ("decay", "off"),
    [pytest.param(30.0, 0.1, id="hidden behind noise"), pytest.param(-400.0, 0.0, id="well told")],
)
def test_the_tail_below_the_lattice_is_that_of_the_density(decay: float, off: float) -> None:
    """Densities d exp(-c (d^2 - m)^2), of which a negative c stands for one that is far from 0."""
    middle = 0.0 if decay > 0.0 else 0.04

    def log_density(u: Any) -> Any:
        return u - abs(decay) * (np.exp(2.0 * u) - middle) ** 2 * (10.0 if decay < 0.0 else 1.0)

    u = np.linspace(-14.0, 2.0, 200_001)
    exact = np.exp(log_density(u))
    exact /= np.sum(exact)
    below = np.cumsum(exact)
    sd = float(np.sqrt(exact @ u**2 - (exact @ u) ** 2))
    apart = 0.5 if decay > 0.0 else 0.1
    points, weight = lattice(log_density, apart)
    law = StepLaw.of(points, weight)
    assert law.log_sd == pytest.approx(sd, rel=0.03)
    for level in (0.025, 0.5, 0.975):
        assert float(law.quantiles((level,))[0]) == pytest.approx(
            np.exp(u[np.searchsorted(below, level)]), rel=0.08
        )
    mean = float(law.moments[0])
    assert mean == pytest.approx(float(exact @ np.exp(u)), rel=0.03)
    # What points of the lattice have by themselves.
    cut = np.array([point.theta[0] for point in points])
    of_cut = float(np.sqrt(weight @ cut**2 - (weight @ cut) ** 2))
    assert abs(of_cut / sd - 1.0) >= off


@pytest.mark.slow
def test_second_derivatives_are_right_where_noise_hides_whether_steps_are_jumps() -> None:
    """Beside differences of the evidence: tails of jumps make the ratio of variances of cells too small."""
    rng = np.random.default_rng(3)
    cell = np.arange(N * TIMES).reshape(N, TIMES)
    values = 0.4 * rng.normal(size=(N, 1)) + rng.normal(size=(N, TIMES))
    cells = CellsInOrder(
        sources=((NormalCells(values.ravel(), np.ones(N * TIMES)), cell.ravel()),), cell=cell
    )
    points = Points(centre=np.zeros(N), spacing=0.08, reach=np.full(N, 90))
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
    common = np.array([0.1, -0.1, 0.0, 0.2, 0.1])
    model = PanelModel(
        field_map=FieldMap.of(N, pairs, np.zeros(N, dtype=np.int64)),
        population=NormalPopulation("logit-normal"),
        prior=LevelsPrior(LocationPrior(0.0, 1.0), None),
        blocks=panel_blocks(cells, points, common),
        middle=0.0,
        common_walk=CommonWalk(n_times=TIMES, anchor=ANCHOR, scale=0.3, jumps=0.0),
        step_scale=0.3,
        jumps=0.02,
    )

    def evidence(walk: Floats) -> float:
        places = model.places(0.03, walk)
        at = places.propagated(THETA, None)
        assert at is not None
        return at.log_evidence + places.log_scale

    places = model.places(0.03, common)
    at = places.propagated(THETA, None)
    assert at is not None
    told = Told.of(places, THETA, at)
    here = evidence(common)
    bends, wanted = [], []
    for direction in np.eye(TIMES)[[0, 1, 3, 4]]:
        # Both sides of it, once as far again: Richardson's extrapolation.
        second = [
            (evidence(common + h * direction) + evidence(common - h * direction) - 2.0 * here) / h**2
            for h in (0.2, 0.4)
        ]
        wanted.append(-(4.0 * second[0] - second[1]) / 3.0)
        bends.append(float(direction @ told.precision @ direction))
    np.testing.assert_allclose(bends, wanted, rtol=0.2)
    whole = replace(model, jumps=0.0)
    without = whole.places(0.03, common)
    of_none = without.propagated(THETA, None)
    assert of_none is not None
    # Steps that may be jumps say less of what all have in common.
    assert np.all(np.diag(told.precision) <= np.diag(Told.of(without, THETA, of_none).precision) + 1e-6)
