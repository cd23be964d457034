r"""The grid of log intensities of a histogram's bins, and what was released as emissions on it.

Model. The expected count of a bin of width :math:`w_j` with the log intensity x is :math:`w_j e^x`; an atom
counts as a bin of the largest width, which only says where its grid lies.

Method. Points are h = .1 apart, from an expected count of .05 in the widest bin, below which a bin counts as
one of no records, to where the noise cannot hide more records than that: y + 8 b + 8 :math:`\sqrt{y + 8 b}` +
8, with the chance e^-8 a bin. How many there are follows from a cell's own released counts, in multiples of
16, and beyond 320 they are farther apart. A grid point stands for the interval about it, in which the
emission is averaged over as many places as it takes to see it; draws of a point choose among the places by
their emission. So the emission is exact but for a thousandth, and what the grid rounds is the walk's law:
differences of log intensities under h are not told apart.

Symbols: x: ``position``, (n_points,); h: ``spacing``; w: ``width``, (n_bins,); y: ``noisy``, (n_releases,
n_cells, n_bins); b: ``scale``, (n_releases, n_bins).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.histogram.emission import Pieces, log_emission

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Cells, Floats

SPACING = 0.1
"""Of log intensities."""
LEAST = 0.05
"""The lowest expected count on the grid, of the widest bin."""
_BLOCK, _MOST = 16, 320
_PLACES = (4, 16, 64, 256, 1024)
_SEEN = 0.4
"""Of the width of an emission: places that are no farther apart see it."""


def n_points_of(noisy: Floats, scale: Floats, width: Floats, spacing: float, noises: int = 1) -> Cells:
    """Return how many points the grid of every cell has, (n_cells,).

    `noisy` is (n_releases, n_cells, n_bins) and `scale` (n_releases, n_bins).
    """
    y, rate = np.maximum(noisy, 0.0), 1.0 / scale[:, None]
    # The nearest that the count can be to all releases, in scales: at one of them.
    apart = np.min([np.sum(np.abs(y - each) * rate, axis=0) for each in y], axis=0)
    total = np.sum(rate, axis=0)
    least = (8.0 * np.sqrt(noises) + apart + np.sum(y * rate, axis=0)) / np.where(total > 0.0, total, np.inf)
    highest = np.max((least + 8.0 * np.sqrt(least) + 8.0) / width, axis=1, initial=1.0 / np.max(width))
    wanted = np.log(highest * np.max(width) / LEAST) / spacing
    return np.asarray(np.ceil(wanted / _BLOCK) * _BLOCK, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Intervals about grid points in which an emission is averaged over several places.

    Attributes
    ----------
    number : ndarray of shape (n_rows, n_points), int64
        Which of the intervals it is; -1 where the emission is level in it.
    cumulative : ndarray of shape (n_intervals, n_places), float64
        The distribution function of the place.
    """

    number: Cells
    cumulative: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BinGrid:
    """Emissions of a batch of cells; made by ``BinGrid.of``.

    Attributes
    ----------
    position : ndarray of shape (n_points,), float64
    spacing : float
    width : ndarray of shape (n_bins,), float64
    emission : ndarray of shape (n_cells, n_bins, n_points + 1), float64
        Divided by the largest of its cell and bin; no records last.
    log_largest : ndarray of shape (n_cells,), float64
        The sum of the logs of what it was divided by.
    row : ndarray of shape (n_cells, n_bins), int64
        Which of the rows of the places a cell's bin has.
    places : tuple of Places
    """

    position: Floats
    spacing: float
    width: Floats
    emission: Floats
    log_largest: Floats
    row: Cells
    places: tuple[Places, ...]

    @classmethod
    def of(
        cls, noisy: Floats, scale: Floats, width: Floats, n_points: int, spacing: float, noises: int = 1
    ) -> Self:
        """Work out emissions on `n_points` points.

        Of `noisy`, (n_releases, n_cells, n_bins), behind noise of `scale`, (n_releases, n_bins); or of one
        release behind a sum of so many `noises` of one scale.
        """
        if n_points > _MOST:
            n_points, spacing = _MOST, spacing * n_points / _MOST
        position = np.log(LEAST / np.max(width)) + spacing * np.arange(n_points)
        # Bins of equal width and noise share what is worked out of equal counts.
        kinds, kind = np.unique(np.concatenate([width[None], scale]), axis=1, return_inverse=True)
        of_bins = np.broadcast_to(kind.reshape(-1), noisy.shape[1:]).reshape(1, -1)
        pairs, row = np.unique(
            np.concatenate([of_bins, noisy.reshape(len(noisy), -1)]), axis=1, return_inverse=True
        )
        of_kind, y = pairs[0].astype(np.int64), pairs[1:]
        b = kinds[1:, of_kind]
        mean = kinds[0][of_kind][:, None] * np.exp(position)
        pieces = (
            Pieces.of_product(y, 1.0 / b) if noises == 1 else Pieces.of_sum(y[0], float(scale[0, 0]), noises)
        )
        log_of, places = _averaged(mean, pieces, y, b, spacing, noises)
        log_of = np.concatenate([log_of, pieces.log_weight(0.0)[:, None]], axis=1)
        largest = np.max(log_of, axis=1, keepdims=True)
        row = row.reshape(noisy.shape[1:])
        return cls(
            position=position,
            spacing=spacing,
            width=width,
            emission=np.exp(log_of - largest)[row],
            log_largest=np.sum(largest[row, 0], axis=1),
            row=row,
            places=places,
        )

    def means(self, states: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        """Draw expected counts of bins (draws, n_cells, n_bins) in the intervals of their states."""
        n_points = len(self.position)
        is_empty = states == n_points
        point = np.where(is_empty, 0, states)
        # Somewhere in the interval, where the emission is level.
        share = rng.random(states.shape)
        row = np.broadcast_to(self.row, states.shape)
        for places in self.places:
            number = places.number[row, point]
            chosen = (number >= 0) & ~is_empty
            ends = places.cumulative[number[chosen]]
            n_places = ends.shape[1]
            place = np.sum(ends[:, :-1] < rng.random(len(ends))[:, None], axis=1)
            share[chosen] = (place + share[chosen]) / n_places
        means = self.width * np.exp(self.position[point] + (share - 0.5) * self.spacing)
        return np.where(is_empty, 0.0, means)

    def moments(self) -> tuple[Floats, Floats]:
        """Means and mean squares of expected counts about every point, (n_cells, n_bins, n_points) each."""
        mean = self.width[:, None] * np.exp(self.position)
        first = np.broadcast_to(mean, self.emission[:, :, :-1].shape).copy()
        second = first**2
        for places in self.places:
            number = places.number[self.row]
            chosen = number >= 0
            at = np.nonzero(chosen)
            probability = np.diff(places.cumulative, axis=1, prepend=0.0)
            n_places = probability.shape[1]
            factor = np.exp(((np.arange(n_places) + 0.5) / n_places - 0.5) * self.spacing)
            centre = mean[at[1], at[2]]
            first[at] = centre * (probability @ factor)[number[at]]
            second[at] = centre**2 * (probability @ factor**2)[number[at]]
        return first, second


def _averaged(
    mean: Floats, pieces: Pieces, y: Floats, b: Floats, spacing: float, noises: int
) -> tuple[Floats, tuple[Places, ...]]:
    """Return logs of emissions averaged over intervals, (n_rows, n_points), and the places that this took."""
    log_of = log_emission(mean, pieces.at((slice(None), None)))
    # How wide the emission is in x, and whether the interval is anywhere near it.
    sharpest = 1.0 / np.sum(1.0 / b, axis=0)[:, None]
    width = np.sqrt(mean + 2.0 * noises * sharpest**2) / mean
    lowest, highest = np.min(y, axis=0)[:, None], np.max(y, axis=0)[:, None]
    widest = np.max(b, axis=0)[:, None] * np.sqrt(noises)
    reach = 9.0 * np.sqrt(mean + np.maximum(highest, 0.0)) + 40.0 * widest + 1.0
    half = np.exp(spacing / 2.0)
    is_near = (mean * half > lowest - reach) & (mean / half < highest + reach)
    places, fewest = [], 1
    for n_places in _PLACES:
        wanted = spacing / (_SEEN * width)
        is_last = n_places == _PLACES[-1]
        chosen = is_near & (wanted > fewest) & (is_last | (wanted <= n_places))
        fewest = n_places
        if not np.any(chosen):
            continue
        at = np.nonzero(chosen)
        offset = ((np.arange(n_places) + 0.5) / n_places - 0.5) * spacing
        inner = log_emission(mean[at][:, None] * np.exp(offset), pieces.at((at[0], None)))
        peak = np.max(inner, axis=1, keepdims=True)
        ends = np.cumsum(np.exp(inner - peak), axis=1)
        log_of[at] = peak[:, 0] + np.log(ends[:, -1] / n_places)
        number = np.full(mean.shape, -1, dtype=np.int64)
        number[at] = np.arange(len(ends))
        places.append(Places(number=number, cumulative=ends / ends[:, -1:]))
    return log_of, tuple(places)
