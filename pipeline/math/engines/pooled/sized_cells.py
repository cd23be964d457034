r"""Cells whose sizes come from one law, which all of them tell.

Model. The reciprocal prior of a number of records is flat in v = log(1 + N). Where noise hides a small cell,
it leaves much of its mass next to 0 records, and a slope on log size then moves the cell to where one of no
records would be. All sizes together say how large cells are:

.. math::
    v_c \sim .95 \, \mathrm{Normal}(\mu, \tau^2) + .05 \, \mathrm{Normal}(\mu, \tau^2 + 3^2), \qquad
    \mu \sim \text{uniform}, \quad \tau \sim \mathrm{HalfNormal}(2), \qquad
    f(v) = \mathrm{E}(p(v \mid \mu, \tau) \mid y), \qquad (1)

and f is the prior of the size of every cell: that of one more cell of the same kind. A cell is one among many
in it.

Method. Likelihoods of v are those of nodes, positions weighed by a normal law about where all cells are. Of
(mu, tau) there is a grid of ``_LOCATIONS`` by ``_SPREADS``; of many cells ``_MOST_CELLS`` tell f.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus, TellsRecords
from suffice.pipeline.math.engines.pooled.kept_nodes import BLOCK
from suffice.pipeline.math.engines.pooled.normal import normal_density

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.typing import Cells, Floats

_OUTLIERS, _WIDE, _SPREAD_SD = 0.05, 3.0, 2.0
_LOCATIONS, _SPREADS = 41, 24
_MOST_CELLS = 512
_REFERENCE_SD = 2.0
_POINTS = 256
_FLOOR = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedCells:
    """Cells whose sizes have the prior f of (1); a ``CellsSource``.

    Attributes
    ----------
    source : CellsSource
    at, log_density : ndarray of shape (n_points,), float64
        Log sizes, and log f there.
    judges_sizes : bool
        Whether a cell is the more probable, the more so its size is under f. Otherwise it is as probable
        under the reference law of positions as it is without f, and scores go with those of cells alone.
    """

    source: CellsSource
    at: Floats
    log_density: Floats
    judges_sizes: bool = False

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.source.n_cells

    @property
    def has_sizes(self) -> bool:
        """As of the cells."""
        return self.source.has_sizes

    @property
    def middle(self) -> float:
        """As of the cells."""
        return self.source.middle

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells, sizes weighed by f."""
        nodes = self.source.nodes(cells, focus)
        moved = nodes.with_sizes(np.interp(nodes.log_size, self.at, self.log_density))
        if self.judges_sizes:
            return moved
        near = _near(nodes, self.middle)
        before, after = (np.sum(each.weight * near, axis=(1, 2)) for each in (nodes, moved))
        return replace(moved, log_scale=nodes.log_scale + np.log(before / after))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedCounts(SizedCells):
    """The same of cells whose parts and records can be told: ``Movable``, and ``TellsRecords``."""

    def moved(self, cells: Cells, shifts: Floats) -> SizedCounts:
        """Return the given cells with so many units more in the first part, and less in the last."""
        source: Any = self.source
        # Alternatives of one cell are judged beside each other.
        return replace(self, source=source.moved(cells, shifts), judges_sizes=True)

    def parts(self, cells: Cells) -> tuple[Floats, Floats, Floats, float]:
        """Return the first and the last part, about the number of records, and the scale of the noise."""
        source: Any = self.source
        parts: tuple[Floats, Floats, Floats, float] = source.parts(cells)
        return parts

    def records(self, position: Floats, log_size: Floats, rng: np.random.Generator) -> Floats:
        """Draw numbers of records at positions and log sizes, (n_draws, n_cells)."""
        source: Any = self.source
        drawn: Floats = source.records(position, log_size, rng)
        return drawn


def sized(source: CellsSource) -> CellsSource:
    """Return cells, whose sizes have a reciprocal prior, with f of (1) in its place.

    Cells without latent sizes, and less than two, stay as they are.
    """
    if not source.has_sizes or source.n_cells < 2:
        return source
    size, likelihood = _of_sizes(source)
    low, high = float(np.min(size)), float(np.max(size))
    location = np.linspace(low, high, _LOCATIONS)
    spread = np.geomspace(0.15, max(high - low, 1.0), _SPREADS)
    m, s = (each.ravel() for each in np.meshgrid(location, spread, indexing="ij"))
    log_weight = np.log(s) - 0.5 * (s / _SPREAD_SD) ** 2
    for v, of_cell in zip(size, likelihood, strict=True):
        log_weight += np.log(np.maximum(_law(v, m, s) @ of_cell, _FLOOR))
    weight = np.exp(log_weight - np.max(log_weight))
    at = np.linspace(0.0, high + 4.0 * _WIDE, _POINTS)
    density = (weight / np.sum(weight)) @ _law(at, m, s)
    kind = SizedCounts if isinstance(source, TellsRecords) else SizedCells
    return kind(source=source, at=at, log_density=np.log(np.maximum(density, _FLOOR)))


def _law(v: Floats, location: Floats, spread: Floats) -> Floats:
    """Densities of v, (n_laws, n_points)."""
    usual, wide = (normal_density(v, location, each) for each in (spread, np.hypot(spread, _WIDE)))
    return np.asarray((1.0 - _OUTLIERS) * usual + _OUTLIERS * wide)


def _of_sizes(source: CellsSource) -> tuple[Floats, Floats]:
    """Return log sizes of nodes of some cells, and their likelihoods, (n_cells, n_sizes) each."""
    n = min(source.n_cells, _MOST_CELLS)
    cells = np.unique(np.linspace(0, source.n_cells - 1, n).astype(np.int64))
    sizes, likelihoods = [], []
    for start in range(0, len(cells), BLOCK):
        nodes = source.nodes(cells[start : start + BLOCK], Focus(centre=source.middle, width=0.5))
        sizes.append(nodes.log_size)
        likelihoods.append(np.sum(nodes.weight * _near(nodes, source.middle), axis=1))
    size, likelihood = np.concatenate(sizes), np.concatenate(likelihoods)
    return size, likelihood / np.sum(likelihood, axis=1, keepdims=True)


def _near(nodes: Nodes, middle: float) -> Floats:
    """The reference law of positions, (n_cells, n_positions, 1)."""
    return np.asarray(np.exp(-0.5 * ((nodes.position - middle) / _REFERENCE_SD) ** 2))[:, :, None]
