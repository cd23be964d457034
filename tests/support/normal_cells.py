"""Cells with normal likelihoods, of which everything is known: a source of pooled cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats


@dataclass(frozen=True)
class NormalCells:
    """Positions that are seen with normal noise; a ``CellsSource`` without sizes.

    Parameters
    ----------
    values, sd : ndarray of shape (n_cells,), float64
        What is seen, and the standard deviation of its noise.
    """

    values: Floats
    sd: Floats
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def middle(self) -> float:
        """About where they are."""
        return float(np.mean(self.values))

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Return places and log likelihoods."""
        value, sd = self.values[cells], self.sd[cells]
        x, log_dx = nodes_of_positions(value, sd, focus, (-60.0, 60.0))
        log_likelihood = -0.5 * ((x - value[:, None]) / sd[:, None]) ** 2
        return Nodes.of(x, log_dx, np.zeros((len(x), 1)), log_likelihood[:, :, None])
