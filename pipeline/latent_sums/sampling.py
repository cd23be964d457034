r"""Independent draws of the latent (N, S), by rejection.

Every block is cut into tiles. On a tile the log weight is proposed by its chord, raised by as much as the
weight bulges above it, and a proposal is accepted by its true weight. N is drawn together with S: each N that
matters has tiles of its own. In cells where more than ``MOST_ROWS`` of them matter, which takes noise that
hides some fifty rows, only the nodes of the rule of N have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.latent_sums.latent import blocks_of, cut, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.latent_sums.noisy import NoisySums

    Floats: TypeAlias = NDArray[np.float64]
    Cells: TypeAlias = NDArray[np.int64]

MOST_ROWS = 2048
"""Values of N up to which each has tiles of its own."""
_TILES = 6
_BULGE = 1.25
"""How much more a weight may rise above its chord than it does half way between its ends."""
_SLACK = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles of all rows of some cells, cell by cell; made by ``tiles_of``.

    Attributes
    ----------
    cell, n, spread : ndarray of shape (n_tiles,)
        The tile's cell, its N, and how many values of N it stands for.
    left, length, slope, height : ndarray of shape (n_tiles,), float64
        Where the tile begins, how long it is, and its bound: height + slope (place - left).
    cumulative : ndarray of shape (n_tiles,), float64
        The bounds' cumulative masses, by cell, with the cell's number added.
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

    def sample(self, cells: Cells, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """One pair (N, S) for every entry of ``cells``, each in T's unit."""
        n, total = np.empty(len(cells)), np.empty(len(cells))
        pending = np.arange(len(cells))
        while pending.size:
            chosen = cells[pending]
            # The factor keeps cell + u below cell + 1 in float64 for the cells of a batch.
            target = chosen + rng.random(len(pending)) * (1.0 - 2.0**-38)
            tile = np.searchsorted(self.cumulative, target, side="right")
            offset = self._offsets(tile, rng)
            count, place = self.n[tile], self.left[tile] + offset
            log_weight = self.sums.log_joint(chosen, count, place[:, None])[:, 0]
            bound = self.height[tile] + self.slope[tile] * offset
            accepted = np.log1p(-rng.random(len(pending))) < log_weight - bound
            done = pending[accepted]
            amount = np.where(count < 1.0, 0.0, self.sums.amount(place))
            n[done], total[done] = count[accepted], self.sums.total(count, amount)[accepted]
            pending = pending[~accepted]
        return n, total

    def _offsets(self, tile: Cells, rng: np.random.Generator) -> Floats:
        """Places behind the tiles' left ends, by the exponential laws of their bounds."""
        rise = self.slope[tile] * self.length[tile]
        share = rng.random(len(tile))
        steep = np.abs(rise) > 1e-9
        safe = np.where(steep, rise, 1.0)
        # Rises go from the high end, so that nothing overflows.
        down = -np.log1p(share * np.expm1(-np.abs(safe))) / np.abs(safe)
        position = np.where(steep, np.where(rise > 0.0, 1.0 - down, down), share)
        offset: Floats = position * self.length[tile]
        if self.sums.is_sum:
            offset = np.minimum(np.floor(offset), self.length[tile] - 1.0)
        return offset


def tiles_of(sums: NoisySums) -> Tiles:
    """Prepare exact draws from every cell."""
    cell, n, spread = rows_of(sums, MOST_ROWS)
    row, left, right, peak = blocks_of(sums, cell, n)
    row, left, right = cut(row, left, right, _TILES, is_sum=sums.is_sum)
    order = np.argsort(row, kind="stable")
    row, left, right = row[order], left[order], right[order]
    length = right - left
    last = right - 1.0 if sums.is_sum else right
    inner = np.array([0.0, 0.5, 1.0])
    places = left[:, None] + (last - left)[:, None] * inner
    value = sums.log_joint(cell[row], n[row], places) - peak[cell[row]][:, None]
    across = np.where(last > left, last - left, 1.0)
    slope = (value[:, 2] - value[:, 0]) / across
    chord = value[:, :1] + (value[:, 2] - value[:, 0])[:, None] * inner
    bulge = _BULGE * np.max(np.maximum(value - chord, 0.0), axis=1) + _SLACK
    height = value[:, 0] + bulge
    mass = np.exp(np.maximum(height, height + slope * length)) * length * _share(slope * length)
    if sums.is_sum:
        # The proposal's law of an integer is that of the integers' own exponential.
        mass *= _per_integer(slope)
    mass *= spread[row]
    own = cell[row]
    cells = len(sums.first)
    total = np.bincount(own, mass, cells)
    cumulative = np.cumsum(mass / total[own])
    first = np.searchsorted(own, own, side="left")
    before = np.where(first > 0, cumulative[np.maximum(first - 1, 0)], 0.0)
    cumulative = np.minimum(cumulative - before, 1.0) + own
    ends = np.searchsorted(own, np.arange(cells), side="right") - 1
    cumulative[ends] = np.arange(1.0, cells + 1.0)
    return Tiles(
        sums=sums,
        cell=own,
        n=n[row],
        spread=spread[row],
        left=left,
        length=length,
        slope=slope,
        height=height + peak[own],
        cumulative=cumulative,
    )


def _share(rise: Floats) -> Floats:
    """Mean of an exponential that changes by this many nats, over its highest value."""
    size = np.abs(rise)
    return np.divide(-np.expm1(-size), size, out=np.ones_like(size), where=size > 1e-12)


def _per_integer(slope: Floats) -> Floats:
    """Ratio of the sum of an exponential at integers, from each on, to its integral."""
    steep = np.abs(slope) > 1e-9
    return np.divide(slope, np.expm1(slope), out=np.ones_like(slope), where=steep)
