r"""Draws of the latent pairs (N, S) of a noisy sum, by rejection from tiles that bound their weight.

Model, weight W(N, S) and symbols as in ``noisy_sum``. A tile is a run of consecutive N, the
largest of which is :math:`N_+`, times an interval of x, the position of ``noisy_sum`` (A or log A, in which
W is a density). For every N of the run,

.. math::
    \log W(N, S) \le h + s \, (x - x_0), \qquad x_0 \le x < x_0 + L \qquad (2)

    h = \log W(N_+, x_0) + \beta + \Delta, \qquad
    \Delta = \max_{N \le N_+, \, x} \bigl(\log W(N, x) - \log W(N_+, x)\bigr) \qquad (3)

In the code, :math:`N_+, x_0, L, s, h` are ``n``, ``left``, ``length``, ``slope`` and ``height`` of
``Tiles``, each (n_tiles,). s is the slope of the chord of log W(N_+, x); :math:`\beta` is 1.25 times its
bulge seen half way. In :math:`\Delta` the noise has its Lipschitz bound, the rest 1.25 times the most seen
at the middle and the least N of the run. So (2) is an estimate, not a theorem; where it holds, draws are
exact, but for tiles e^-18 below the highest: the chance that a draw falls in any is under 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import divide
from suffice.pipeline.math.distributions.quadrature import POINTS
from suffice.pipeline.math.engines.one_sum.nodes import blocks_of_n, cut, ranges_of

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

NATS = 18.0
"""How far below the highest weight pairs are left out: all of them together have under 1e-6."""
_RISE = 25.0
"""Nats that a block's weight may span."""
_RUN = 0.25
"""Nats that the noise's distribution may change by in a run of N."""
_OF_N = 1.0 / 16.0
"""Length of a run over its N."""
_ACCEPTED = 0.2
"""Share of proposals below which runs are shortened."""
_FLAT = 0.1
"""Nats that a tile's weight may bulge by."""
_MOST_PARTS = 8
_BULGE = 1.25
"""How much more log W may rise between the points where it is looked at than it does at them."""
_SLACK = 1e-7
_INNER = np.array([0.0, 0.5, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles of all runs of some cells, cell by cell; made by ``tiles_of``.

    Attributes
    ----------
    cell, n, spread : ndarray of shape (n_tiles,)
        The tile's cell, its largest N, and how many values of N it stands for.
    left, length, slope, height : ndarray of shape (n_tiles,), float64
        Where the tile begins, how long it is, and its bound: height + slope (place - left).
    cumulative : ndarray of shape (n_tiles,), float64
        The bounds' cumulative masses, by cell, with the cell's number added.
    accepted : ndarray of shape (n_cells,), float64
        About the share of proposals that are accepted.
    """

    sums: NoisySums
    cell: Cells
    n: Floats
    spread: Floats
    left: Floats
    length: Floats
    slope: Floats
    height: Floats
    cumulative: Floats
    accepted: Floats

    def sample(self, cells: Cells, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """One pair (N, S) for every entry of ``cells``, each in T's unit."""
        n, total = np.empty(len(cells)), np.empty(len(cells))
        pending = np.arange(len(cells))
        while pending.size:
            chosen = cells[pending]
            # A tile by its mass under (2), then position and N; the factor keeps cell + u below cell + 1.
            target = chosen + rng.random(len(pending)) * (1.0 - 2.0**-38)
            tile = np.searchsorted(self.cumulative, target, side="right")
            offset = self._offsets(tile, rng)
            back = np.floor(rng.random(len(pending)) * self.spread[tile])
            count, point = self.n[tile] - back, self.left[tile] + offset
            possible = count >= self.sums.least_n(point)
            log_weight = self.sums.log_joint(chosen, np.where(possible, count, self.n[tile]), point[:, None])
            bound = self.height[tile] + self.slope[tile] * offset
            # Accepted with probability W / bound, the draws follow W itself.
            accepted = possible & (np.log1p(-rng.random(len(pending))) < log_weight[:, 0] - bound)
            done = pending[accepted]
            amount = np.where(count < 1.0, 0.0, self.sums.amount(point))
            n[done], total[done] = count[accepted], self.sums.total(count, amount)[accepted]
            pending = pending[~accepted]
        return n, total

    def _offsets(self, tile: Cells, rng: np.random.Generator) -> Floats:
        """Positions behind the tiles' left ends, by the exponential distributions of their bounds."""
        rise = self.slope[tile] * self.length[tile]
        share = rng.random(len(tile))
        steep = np.abs(rise) > 1e-9
        safe = np.where(steep, rise, 1.0)
        # Rises go from the high end, so that nothing overflows.
        # u = (1 - e^(-|r| t)) / (1 - e^-|r|) solved for t in 0..1: an exponential that falls from 0 on.
        down = -np.log1p(share * np.expm1(-np.abs(safe))) / np.abs(safe)
        position = np.where(steep, np.where(rise > 0.0, 1.0 - down, down), share)
        offset: Floats = position * self.length[tile]
        if self.sums.is_sum:
            offset = np.minimum(np.floor(offset), self.length[tile] - 1.0)
        return offset


def tiles_of(sums: NoisySums) -> Tiles:
    """Prepare exact draws from every cell."""
    longest = np.full(sums.n_cells, _RUN / max(sums.change_per_row, 1e-15))
    while True:
        tiles = _tiles(sums, longest)
        # Under a prior that ties S to N closely, runs have to be short.
        poor = (tiles.accepted < _ACCEPTED) & (longest > 1.0)
        if not np.any(poor):
            return tiles
        longest = np.where(poor, longest / 4.0, longest)


def _tiles(sums: NoisySums, longest: Floats) -> Tiles:
    """Tiles of runs of N up to so long (n_cells,)."""
    cell, n, spread = _runs(sums, longest)
    row, left, right, peak = divide(
        lambda row, point: sums.log_joint(cell[row], n[row], point),
        *ranges_of(sums, cell, n),
        group=cell,
        is_sum=sums.is_sum,
        most_rise=_RISE,
        longest=sums.longest,
        nats=NATS,
    )
    value = sums.log_joint(cell[row], n[row], _positions(sums, left, right, _INNER))
    bulge = np.abs(value[:, 1] - (value[:, 0] + value[:, 2]) / 2.0)
    # The bulge of a parabola above its chord falls by m^2 where a block is cut in m.
    parts = np.clip(np.ceil(np.sqrt(bulge / _FLAT)), 1.0, _MOST_PARTS)
    if sums.is_sum:  # these may be rough
        parts = np.where(right - left <= POINTS, POINTS / 2.0, parts)
    row, left, right = cut(row, left, right, parts, is_sum=sums.is_sum)
    order = np.argsort(row, kind="stable")
    row, left, right = row[order], left[order], right[order]
    length = right - left
    draw_cell = cell[row]
    positions = _positions(sums, left, right, _INNER)
    value = sums.log_joint(draw_cell, n[row], positions) - peak[draw_cell][:, None]
    across = np.maximum(positions[:, 2] - positions[:, 0], 1e-300)
    slope = (value[:, 2] - value[:, 0]) / across
    chord = value[:, :1] + (value[:, 2] - value[:, 0])[:, None] * _INNER
    bulge = _BULGE * np.max(np.maximum(value - chord, 0.0), axis=1) + _SLACK
    # (3).
    height = value[:, 0] + bulge + _rise(sums, (draw_cell, n[row]), spread[row], positions)
    # The integral of e^(h + s (x - x_0)) over the tile: its larger end times the mean of an exponential.
    mass = np.exp(np.maximum(height, height + slope * length)) * length * _share(slope * length)
    if sums.is_sum:
        # Rounded down, a position from the exponential is k with probability in proportion to e^(s k).
        # The sum of e^(s k) over k = 0..L-1 is s / (e^s - 1) times the integral of e^(s x) over 0..L.
        mass *= _per_integer(slope)
    mass *= spread[row]
    cells = sums.n_cells
    total = np.bincount(draw_cell, mass, cells)
    cumulative = np.cumsum(mass / total[draw_cell])
    first = np.searchsorted(draw_cell, draw_cell, side="left")
    before = np.where(first > 0, cumulative[np.maximum(first - 1, 0)], 0.0)
    cumulative = np.minimum(cumulative - before, 1.0) + draw_cell
    ends = np.searchsorted(draw_cell, np.arange(cells), side="right") - 1
    cumulative[ends] = np.arange(1.0, cells + 1.0)
    return Tiles(
        sums=sums,
        cell=draw_cell,
        n=n[row],
        spread=spread[row],
        left=left,
        length=length,
        slope=slope,
        height=height + peak[draw_cell],
        cumulative=cumulative,
        accepted=np.bincount(draw_cell, mass * np.exp(value[:, 0] - height), cells) / total,
    )


def _runs(sums: NoisySums, longest: Floats) -> tuple[Cells, Floats, Floats]:
    """Every N that matters, in runs: cell, largest N and number, each (n_runs,), cell by cell."""
    low, high = sums.n_prior.support
    if low == high:
        cells = np.arange(sums.n_cells)
        return cells, np.full(len(cells), float(low)), np.ones(len(cells))
    blocks = blocks_of_n(sums, NATS)
    run = np.maximum(np.minimum(longest[blocks.row], _OF_N * blocks.left), 1.0)
    parts = np.ceil(blocks.length / run)
    cell, first, after = cut(blocks.row, blocks.left, blocks.right, parts, is_sum=True)
    order = np.argsort(cell, kind="stable")
    return cell[order], after[order] - 1.0, (after - first)[order]


def _positions(sums: NoisySums, left: Floats, right: Floats, inner: Floats) -> Floats:
    last = right - 1.0 if sums.is_sum else right
    return left[:, None] + (last - left)[:, None] * inner


def _rise(sums: NoisySums, rows: tuple[Cells, Floats], spread: Floats, positions: Floats) -> Floats:
    """How far above that of its largest N the weight of a run's others may be, (n_tiles,)."""
    cell, n = rows
    rise = np.zeros(len(n))
    several = np.flatnonzero(spread > 1.0)
    if not several.size:
        return rise
    cell, positions = cell[several], positions[several]
    last, back = n[several, None], spread[several, None] - 1.0
    at_last = sums.log_density(cell, last, positions) + sums.n_prior.log_prob(last)
    observed = np.zeros(len(several))
    for part in (0.5, 1.0):
        other = np.maximum(last - part * back, sums.least_n(positions))
        observed = np.maximum(
            observed,
            np.max(sums.log_density(cell, other, positions) + sums.n_prior.log_prob(other) - at_last, axis=1),
        )
    # The noise changes by at most sum(R / b) nats a row: |y - (R N - A)| is Lipschitz in N.
    rise[several] = _BULGE * observed + sums.change_per_row * back[:, 0]
    return rise


def _share(rise: Floats) -> Floats:
    """Mean of an exponential that changes by this many nats, over its highest value."""
    size = np.abs(rise)
    return np.divide(-np.expm1(-size), size, out=np.ones_like(size), where=size > 1e-12)


def _per_integer(slope: Floats) -> Floats:
    """Ratio of e^(s k) to the integral of e^(s x) over k..k + 1."""
    steep = np.abs(slope) > 1e-9
    return np.divide(slope, np.expm1(slope), out=np.ones_like(slope), where=steep)
