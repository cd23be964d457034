"""Shares of jumps: with none of them behind much noise, the step of places is not what they leave of it."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperpriors import LevelsPrior, LocationPrior
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.panel import PanelModel
from suffice.pipeline.math.engines.pooled.panel_chains import panel_blocks
from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
from suffice.pipeline.math.engines.pooled.panel_share import shares_about, shares_of
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_steps import Points
from support.normal_cells import NormalCells

N, TIMES, STEP, NOISE, SPREAD = 1200, 10, 0.06, 0.33, 0.5
NO_WALK = np.zeros(TIMES)


def panel_of(jumps: float) -> PanelModel:
    """Return places whose walks start at the middle, of which a share of the steps are jumps."""
    rng = np.random.default_rng()
    of_steps = rng.normal(0.0, STEP, (N, TIMES))
    of_steps += (rng.random((N, TIMES)) < jumps) * rng.laplace(0.0, 1.0, (N, TIMES))
    x = rng.normal(0.0, SPREAD, (N, 1)) + np.cumsum(of_steps, axis=1)
    source = NormalCells((x + rng.normal(0.0, NOISE, x.shape)).ravel(), np.full(x.size, NOISE))
    numbers = np.arange(N * TIMES).reshape(N, TIMES)
    cells = CellsInOrder(sources=((source, numbers.ravel()),), cell=numbers)
    points = Points(centre=np.zeros(N), spacing=0.08, reach=np.full(N, 45))
    return PanelModel(
        field_map=FieldMap.of(N, np.array([[0, 1]]), np.zeros(N, dtype=np.int64)),
        population=NormalPopulation("logit-normal"),
        prior=LevelsPrior(LocationPrior(0.0, 1.0), None),
        blocks=panel_blocks(cells, points, NO_WALK),
        middle=0.0,
        common_walk=CommonWalk(n_times=TIMES, anchor=TIMES // 2, scale=0.3, jumps=0.01),
        step_scale=0.3,
        jumps=0.01,
    )


@pytest.mark.slow
def test_jumps_that_are_not_there_take_nothing_from_the_step_of_places() -> None:
    """Of 40 simulated panels the evidence of 1 % is 38 (sd 3.2) below the best, and 1 % is kept from 6 below.

    Log ratios of 9,600 series at one step each give Chernoff's bound of that: exp(6 t) E(exp(-t r))^1200 is
    5e-22 at t = 2.1. Taken for known, 1 % leaves a step 1.4 standard deviations too small.
    """
    panel = panel_of(0.0)
    kept = shares_of(panel, np.log(0.2), SPREAD, 0.0, NO_WALK)
    assert max(each.share for each in kept) < 0.01
    best = kept[0]
    # Of the same panels it is -0.26 (sd 0.83) standard deviations off: 5 are 5.7 sd away, a chance of 1e-8.
    assert abs(best.log_step - np.log(STEP)) < 5.0 * best.sd
    # Their logarithm is log 0.09 (sd 0.14): both ends are 5.6 sd away, a chance of 3e-8.
    assert 0.04 < best.sd < 0.2


@pytest.mark.slow
def test_many_jumps_are_told_from_few() -> None:
    """Of 16 panels the evidence of 1 % is 160 (sd 25) below that of 3 %; Chernoff's bound of 6 is 4e-15."""
    kept = shares_of(panel_of(0.05), np.log(0.2), SPREAD, 0.0, NO_WALK)
    assert kept[0].share == pytest.approx(0.0316, rel=0.01)
    assert [each.share for each in kept] == [kept[0].share]


def test_shares_are_half_a_decade_apart_and_at_most_one_half() -> None:
    np.testing.assert_allclose(shares_about(0.01), [0.000316, 0.001, 0.00316, 0.01, 0.0316], rtol=1e-2)
    assert shares_about(0.4)[-1] == 0.5
