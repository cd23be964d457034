"""Counts behind noise in order of time: a source of cells that walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions
from suffice.pipeline.math.engines.pooled.series import CellsInOrder

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

SCALE = 0.3


@dataclass(frozen=True)
class NoisyCounts:
    """Counts behind noise of a scale; a ``CellsSource`` without sizes."""

    values: Floats
    scale: float
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        return len(self.values)

    @property
    def middle(self) -> float:
        return float(np.log(max(float(np.mean(self.values)), 1.0)))

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        value = self.values[cells]
        count = np.maximum(value, self.scale + 0.5)
        spread = np.sqrt(count + 2.0 * self.scale**2) / count
        x, log_dx = nodes_of_positions(np.log(count), spread, focus, (-60.0, 34.0))
        counts = NoisyCount(values=value[:, None], scales=np.array([self.scale]))
        return Nodes.of(x, log_dx, np.zeros((len(x), 1)), counts.log_likelihood(x)[:, :, None])


def series_of(values: list[float], scale: float, times: list[int] | None = None) -> CellsInOrder:
    """Return counts as one series; of `times`, which leave gaps."""
    times = [*range(len(values))] if times is None else times
    cell = np.full((1, max(times) + 1), -1)
    cell[0, times] = np.arange(len(values))
    return CellsInOrder(
        sources=((NoisyCounts(np.array(values, dtype=float), scale), np.arange(len(values))),), cell=cell
    )
