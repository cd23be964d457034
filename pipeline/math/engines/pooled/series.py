r"""Cells in order of time, and their likelihoods as functions of the position on the line.

Model. A series has at time t the position :math:`x_t`, of which a cell, where there is one, has the
likelihood :math:`L_t(x_t)`: the latent size of the cell is integrated out under its own prior. It has no
slope here: a size that moves with time is that of one cell, and tells nothing of a population.

Method. The nodes of ``cells`` give L times known weights at places that are dense where L is; log L between
them is a cubic through the four nearest, and beyond the last that has a weight, some 25 nats below the top,
it goes on as a straight line.

Symbols: x: ``grid``; log L: ``log_likelihood``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.pooled.cells import CellsSource
    from suffice.typing import Cells, Floats

_BLOCK = 256
_NODES_IN_REACH = 25.0
"""Units of the focus within its reach: nodes of ``cells`` are a ninetieth of the range apart, or less."""
_REFERENCE_SD = 3.0
_LEAST_PRECISION = 1e-4
_LEAST_SIZE_VARIANCE = 0.01
"""Of log sizes: a series' size moves from one time to the next by a tenth, however well it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsInOrder:
    """Cells of one or several sources, and which of them each time of each series has.

    Attributes
    ----------
    sources : tuple of (CellsSource, ndarray of int64)
        Each with the numbers of its cells among all of these: a series may be of several releases, whose
        noise differs.
    cell : ndarray of shape (n_series, n_times), int64
        Of each time; -1 where there is none.
    """

    sources: tuple[tuple[CellsSource, Cells], ...]
    cell: Cells
    _place: list[tuple[Cells, Cells]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return sum(len(cells) for _, cells in self.sources)

    @property
    def middle(self) -> float:
        """About where parameters of all cells are, on the line."""
        weights = [len(cells) for _, cells in self.sources]
        return float(np.average([source.middle for source, _ in self.sources], weights=weights))

    def _rows(self, cells: Cells, focus: Focus) -> tuple[Floats, Floats]:
        """Return places of some cells and log L there, (n_cells, n_positions)."""
        if not self._place:
            source_of, place = np.empty((2, self.n_cells), dtype=np.int64)
            for number, (_, own_cells) in enumerate(self.sources):
                source_of[own_cells], place[own_cells] = number, np.arange(len(own_cells))
            self._place.append((source_of, place))
        source_of, place = self._place[0]
        position, value = np.empty((2, len(cells), focus.n_positions))
        for number, (source, _) in enumerate(self.sources):
            here = np.flatnonzero(source_of[cells] == number)
            if not len(here):
                continue
            nodes = source.nodes(place[cells[here]], focus)
            with np.errstate(divide="ignore"):
                log_weight = np.log(np.sum(nodes.weight, axis=2)) - np.log(nodes.spacing)
            value[here] = _extended(nodes.position, log_weight) + nodes.log_scale[:, None]
            position[here] = nodes.position
        return position, value

    def log_likelihood(self, series: Cells, grid: Floats, focus: Focus) -> Floats:
        """Return log L of some series, (n_series, n_times, n_points), less its highest; zeros without a cell.

        Parameters
        ----------
        series : ndarray of int64
        grid : ndarray of shape (n_series, n_points), float64
            Evenly spaced points of each.
        focus : Focus
            Its reach covers all points.
        """
        return self.with_highest(series, grid, focus)[0]

    def highest(self, series: Cells, grid: Floats, focus: Focus) -> Floats:
        """Return what ``log_likelihood`` is less, (n_series, n_times): the highest of log L on the points."""
        return self.with_highest(series, grid, focus)[1]

    def with_highest(self, series: Cells, grid: Floats, focus: Focus) -> tuple[Floats, Floats]:
        """Return ``log_likelihood``, and what it is less."""
        result = np.zeros((len(series), self.cell.shape[1], grid.shape[1]))
        highest = np.zeros(result.shape[:2])
        for row, time, position, value in self._blocks(series, focus):
            dense = _between(position, value, grid[row])
            highest[row, time] = np.max(dense, axis=1)
            result[row, time] = dense - highest[row, time][:, None]
        return result, highest

    def moments(self, series: Cells) -> tuple[Floats, Floats]:
        """Return the normal approximation of each L: means and precisions, (n_series, n_times).

        The posterior under Normal(middle, 3^2), less that law; precisions are 0 where there is no cell.
        """
        middle = self.middle
        mean = np.full(self.cell[series].shape, middle)
        precision = np.zeros_like(mean)
        for row, time, position, value in self._blocks(series, Focus(centre=middle, width=0.5)):
            log_weight = value - 0.5 * ((position - middle) / _REFERENCE_SD) ** 2
            weight = np.exp(log_weight - np.max(log_weight, axis=1, keepdims=True))
            weight *= np.gradient(position, axis=1)
            weight /= np.sum(weight, axis=1, keepdims=True)
            first = np.sum(weight * position, axis=1)
            variance = np.sum(weight * (position - first[:, None]) ** 2, axis=1)
            told = np.maximum(1.0 / variance - _REFERENCE_SD**-2.0, _LEAST_PRECISION)
            precision[row, time] = told
            mean[row, time] = middle + (first - middle) / (variance * told)
        return mean, precision

    def log_sizes(self) -> Floats | None:
        """Return about the log size of each series, (n_series,): of log(1 + N), by how well cells tell it.

        None where sizes are public, or no part of what cells say.
        """
        if not all(source.has_sizes for source, _ in self.sources):
            return None
        mean, precision = np.zeros(self.n_cells), np.zeros(self.n_cells)
        for source, cells in self.sources:
            for start in range(0, len(cells), _BLOCK):
                rows = np.arange(start, min(start + _BLOCK, len(cells)))
                nodes = source.nodes(rows, Focus(centre=self.middle, width=0.5))
                near = np.exp(-0.5 * ((nodes.position - self.middle) / _REFERENCE_SD) ** 2)
                weight = np.einsum("ijk,ij->ik", nodes.weight, near)
                weight /= np.maximum(np.sum(weight, axis=1, keepdims=True), 1e-300)
                first = np.sum(weight * nodes.log_size, axis=1)
                variance = np.sum(weight * (nodes.log_size - first[:, None]) ** 2, axis=1)
                mean[cells[rows]], precision[cells[rows]] = first, 1.0 / (variance + _LEAST_SIZE_VARIANCE)
        is_seen = self.cell >= 0
        told = np.where(is_seen, precision[self.cell], 0.0)
        total = np.sum(told, axis=1)
        typical = float(np.average(mean, weights=precision))
        of_cells = np.sum(told * mean[self.cell], axis=1) / np.where(total > 0.0, total, 1.0)
        return np.asarray(np.where(total > 0.0, of_cells, typical))

    def _blocks(self, series: Cells, focus: Focus) -> Iterator[tuple[Cells, Cells, Floats, Floats]]:
        """Give rows and times of cells, a block at a time, with places and log L."""
        cell = self.cell[series]
        row, time = np.nonzero(cell >= 0)
        for start in range(0, len(row), _BLOCK):
            at = row[start : start + _BLOCK], time[start : start + _BLOCK]
            yield (*at, *self._rows(cell[at], focus))


def focus_of(low: float, high: float) -> Focus:
    """Return the focus whose nodes are dense over all points between two ends."""
    reach = (high - low) / 2.0
    return Focus(centre=(low + high) / 2.0, width=reach / _NODES_IN_REACH, reach=reach)


def _extended(position: Floats, log_weight: Floats) -> Floats:
    """Return log L with straight lines in the place of zeros at either end of each row."""
    value = log_weight.copy()
    is_known = np.isfinite(value)
    if np.all(is_known):
        return value
    n = value.shape[1]
    rows = np.arange(len(value))
    first = np.argmax(is_known, axis=1)
    last = n - 1 - np.argmax(is_known[:, ::-1], axis=1)
    for end, inner, outside in (
        (first, np.minimum(first + 2, last), np.arange(n) < first[:, None]),
        (last, np.maximum(last - 2, first), np.arange(n) > last[:, None]),
    ):
        span = position[rows, end] - position[rows, inner]
        rise = value[rows, end] - value[rows, inner]
        # Of a likelihood that has one place, or several parts, no slope is known.
        is_plain = (span != 0.0) & np.isfinite(rise)
        slope = np.where(is_plain, rise, 0.0) / np.where(is_plain, span, 1.0)
        line = value[rows, end][:, None] + slope[:, None] * (position - position[rows, end][:, None])
        value = np.where(outside, np.minimum(line, value[rows, end][:, None]), value)
    # Zeros between: of a likelihood with several parts.
    return np.where(np.isfinite(value), value, np.min(value, axis=1, where=is_known, initial=0.0)[:, None])


def _between(position: Floats, value: Floats, grid: Floats) -> Floats:
    """Return cubics through the four nearest places at the points of each row."""
    n = position.shape[1]
    first = np.stack([np.searchsorted(row, points) for row, points in zip(position, grid, strict=True)])
    first = np.clip(first - 2, 0, n - 4) + np.arange(len(position))[:, None] * n
    x, y = ([flat.take(first + tap) for tap in range(4)] for flat in (position.ravel(), value.ravel()))
    total = np.zeros_like(grid)
    for tap in range(4):
        weight = y[tap]
        for other in range(4):
            if other != tap:
                weight = weight * (grid - x[other]) / (x[tap] - x[other])
        total += weight
    return total
