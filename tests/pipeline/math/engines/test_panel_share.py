"""Shares of jumps: with none of them behind much noise, the step of places is not what they leave of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperpriors import LevelsPrior, LocationPrior
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.panel import PanelModel
from suffice.pipeline.math.engines.pooled.panel_chains import panel_blocks
from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
from suffice.pipeline.math.engines.pooled.panel_share import shares_about, shares_of
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_steps import Points

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

N, TIMES, STEP, NOISE, SPREAD = 1200, 10, 0.06, 0.33, 0.5
NO_WALK = np.zeros(TIMES)


@dataclass(frozen=True)
class NormalCells:
    """Cells that are seen with normal noise; a ``CellsSource``."""

    values: Floats
    has_sizes: ClassVar[bool] = False
    middle: ClassVar[float] = 0.0

    @property
    def n_cells(self) -> int:
        return len(self.values)

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        value = self.values[cells]
        x, log_dx = nodes_of_positions(value, np.full(len(value), NOISE), focus, (-60.0, 60.0))
        log_likelihood = -0.5 * ((x - value[:, None]) / NOISE) ** 2
        return Nodes.of(x, log_dx, np.zeros((len(x), 1)), log_likelihood[:, :, None])


def panel_of(jumps: float) -> PanelModel:
    """Return places whose walks start at the middle, of which a share of the steps are jumps."""
    rng = np.random.default_rng(4)
    of_steps = rng.normal(0.0, STEP, (N, TIMES))
    of_steps += (rng.random((N, TIMES)) < jumps) * rng.laplace(0.0, 1.0, (N, TIMES))
    x = rng.normal(0.0, SPREAD, (N, 1)) + np.cumsum(of_steps, axis=1)
    source = NormalCells((x + rng.normal(0.0, NOISE, x.shape)).ravel())
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
    """Log evidence of no jumps over that of 1 % is 51 (sd 10), so that 1 % is kept with a chance below 1e-5.

    Taken for known, 1 % leaves a step 2 standard deviations too small.
    """
    panel = panel_of(0.0)
    kept = shares_of(panel, np.log(0.2), SPREAD, 0.0, NO_WALK)
    assert max(each.share for each in kept) < 0.01
    best = kept[0]
    # Six standard deviations: a chance below 1e-6 with what the share moves it by.
    assert abs(best.log_step - np.log(STEP)) < 6.0 * best.sd
    assert 0.04 < best.sd < 0.2


@pytest.mark.slow
def test_many_jumps_are_told_from_few() -> None:
    kept = shares_of(panel_of(0.05), np.log(0.2), SPREAD, 0.0, NO_WALK)
    assert kept[0].share == pytest.approx(0.0316, rel=0.01)
    assert [each.share for each in kept] == [kept[0].share]


def test_shares_are_half_a_decade_apart_and_at_most_one_half() -> None:
    np.testing.assert_allclose(shares_about(0.01), [0.000316, 0.001, 0.00316, 0.01, 0.0316], rtol=1e-2)
    assert shares_about(0.4)[-1] == 0.5
