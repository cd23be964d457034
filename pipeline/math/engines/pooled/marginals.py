r"""One parameter's marginal distribution in every cell, as masses at nodes on its line.

Distribution functions are sums over ``_FINER`` times as many places, by cubics through the masses of nodes,
and chords between these. Quantiles rest on no draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats

_FINER = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMarginal:
    """Masses at nodes.

    Attributes
    ----------
    line : Line
    position, mass : ndarray of shape (n_cells, n_positions), float64
        Nodes on the line, and what of the distribution each stands for.
    spacing : ndarray of shape (n_cells, n_positions), float64
        Masses over it are densities.
    """

    line: Line
    position: Floats
    mass: Floats
    spacing: Floats
    _fine: list[tuple[Floats, Floats]] = field(default_factory=list, init=False, repr=False, compare=False)

    def mean(self) -> Floats:
        """Means."""
        mean: Floats = np.sum(self.mass * self.line.parameter(self.position), axis=1)
        return mean

    def sd(self) -> Floats:
        """Standard deviations."""
        gap = self.line.parameter(self.position) - self.mean()[:, None]
        return np.asarray(np.sqrt(np.sum(self.mass * gap**2, axis=1)))

    def _finer(self) -> tuple[Floats, Floats]:
        """Places on the line and distribution functions there, (n_cells, n_fine)."""
        if not self._fine:
            n = self.position.shape[1]
            # The mass of a node is spread over half a step on either side.
            place = (np.arange(n * _FINER) + 0.5) / _FINER - 0.5
            first = np.clip(np.floor(place).astype(np.int64) - 1, 0, n - 4)
            taps = cubic(place - first)
            fine = [
                np.sum([values[:, first + tap] * weight for tap, weight in enumerate(taps)], axis=0)
                for values in (self.position, self.mass)
            ]
            mass = np.maximum(fine[1], 0.0)
            below = np.cumsum(mass, axis=1)
            # To the middle of each fine step.
            below = (below - mass / 2.0) / below[:, -1:]
            self._fine.append((np.maximum.accumulate(fine[0], axis=1), below))
        return self._fine[0]

    def quantiles(self, q: Sequence[float]) -> Floats:
        """Quantiles (n_cells, n_levels), from the distribution function."""
        place, below = self._finer()
        n = below.shape[1]
        flat = (below + np.arange(len(below))[:, None]).ravel()
        wanted = np.asarray(q) + np.arange(len(below))[:, None]
        after = np.searchsorted(flat, wanted)
        # Before the first place of a cell is the last of the one before.
        start = np.arange(len(below))[:, None] * n
        after = np.clip(after, start + 1, start + n - 1)
        low, high = flat[after - 1], flat[after]
        share = np.divide(wanted - low, high - low, out=np.zeros_like(wanted), where=high > low)
        left, right = place.ravel()[after - 1], place.ravel()[after]
        return self.line.parameter(left + np.clip(share, 0.0, 1.0) * (right - left))

    def density(self, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        height = self.mass / self.spacing
        values = np.zeros(points.shape)
        for cell, row in enumerate(points):
            known = self.position[cell], height[cell]

            def log_density(position: Floats, known: tuple[Floats, Floats] = known) -> Floats:
                with np.errstate(divide="ignore"):
                    return np.asarray(np.log(np.interp(position, *known, left=0.0, right=0.0)))

            values[cell] = self.line.density(row, log_density)
        return values
