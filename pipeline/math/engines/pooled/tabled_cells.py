r"""Nodes of cells whose likelihood is tabulated, with the number of records integrated out.

The sizes of cells are not told apart there, so that populations have no slope on them.

Method. Positions are dense where the populations are, and where the table has its panels: half of the nodes
about the middle of what is within ``_NEAR`` nats of the highest value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import POSITIONS, REACH, Focus, Nodes, dense_nodes

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tabulated import Table
    from suffice.typing import Cells, Floats

_NEAR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TabledCells:
    """Cells of a ``Table``; a ``CellsSource``.

    Attributes
    ----------
    table : Table
    ends : (float, float)
        Of the line.
    """

    table: Table
    ends: tuple[float, float]

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.table.n_cells

    @property
    def has_sizes(self) -> bool:
        """False."""
        return False

    @property
    def middle(self) -> float:
        """The median of where likelihoods are highest."""
        centre, _ = self._where(np.arange(self.n_cells))
        return float(np.median(centre))

    def _where(self, cells: Cells) -> tuple[Floats, Floats]:
        """Middles and half widths of where cells are within some nats of their highest value."""
        centre, width = np.empty(len(cells)), np.empty(len(cells))
        for row, cell in enumerate(cells.tolist()):
            panels = slice(int(self.table.start[cell]), int(self.table.start[cell + 1]))
            left, right = self.table.left[panels], self.table.right[panels]
            place = (left[:, None] + (right - left)[:, None] * np.linspace(0.0, 1.0, 5)).ravel()
            value = self.table(np.array(cell), place)
            near = place[value > np.max(value) - _NEAR]
            centre[row] = place[np.argmax(value)]
            width[row] = np.clip((near[-1] - near[0]) / 4.0, 1e-3, 2.0)
        return centre, width

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells."""
        centre, width = self._where(cells)
        ones = np.ones(len(cells))
        x, log_dx = dense_nodes(
            np.maximum(np.minimum(centre, focus.centre) - REACH, self.ends[0]),
            np.minimum(np.maximum(centre, focus.centre) + REACH, self.ends[1]),
            (focus.centre * ones, focus.width * ones),
            (centre, width),
            n=POSITIONS,
        )
        return Nodes.of(x, log_dx, np.zeros((len(cells), 1)), self.table(cells[:, None], x)[:, :, None])
