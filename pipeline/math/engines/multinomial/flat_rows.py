r"""Rows of counts under a flat prior: geometric between their kinks, so sums and draws have closed forms.

Where the prior's concentration is 1, the log weight of a count c = 0, 1, ... behind discrete Laplace noise,

.. math::
    \log w(c) = -\sum_l \rho_l |c - y_l| - s c,

is linear on every piece between noisy values: on each, a row is a truncated geometric distribution of the
distance d = 0..L-1 from the piece's higher end, and falls by :math:`\kappa` a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
    from suffice.typing import Floats, Rows


_LEVEL = 0.3
"""Nats over a piece below which its moments come from a series: the closed forms cancel there."""
_LEAST_FALL = 1e-200


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricRows:
    """The pieces of every row; made by ``GeometricRows.of``.

    Attributes
    ----------
    first, length : ndarray of shape (n_cells, n_categories, n_pieces), float64
        The first count of a piece and how many there are: none, where kinks coincide or are negative; the
        last piece has no end.
    slope, at_first, at_last : ndarray, shaped as first
        How much the log weight rises a count, and what it is at both ends, untilted.
    """

    first: Floats
    length: Floats
    slope: Floats
    at_first: Floats
    at_last: Floats

    @classmethod
    def of(cls, counts: NoisyCounts) -> Self:
        """Cut the rows of all cells at their kinks."""
        values = np.moveaxis(counts.totals.by_release, 1, 2).copy()
        rates = counts.rates
        order = np.argsort(values, axis=2)
        kinks = np.maximum(np.floor(np.take_along_axis(values, order, axis=2)), -1.0)
        before = np.full((*kinks.shape[:2], 1), -1.0)
        first = np.concatenate([before, kinks], axis=2) + 1.0
        last = np.concatenate([kinks, np.full_like(before, np.inf)], axis=2)
        passed = np.concatenate([np.zeros_like(before), np.cumsum(rates[order], axis=2)], axis=2)
        at_first, at_last = np.zeros_like(first), np.zeros_like(first)
        for value, rate in zip(np.moveaxis(values, 2, 0), rates, strict=True):
            at_first -= rate * np.abs(first - value[:, :, None])
            at_last -= rate * np.abs(last - value[:, :, None])
        return cls(
            first=first,
            length=last - first + 1.0,
            slope=np.sum(rates) - 2.0 * passed,
            at_first=at_first,
            at_last=at_last,
        )

    def take(self, cells: Rows) -> GeometricRows:
        """The given cells, in the given order."""
        return GeometricRows(
            first=self.first[cells],
            length=self.length[cells],
            slope=self.slope[cells],
            at_first=self.at_first[cells],
            at_last=self.at_last[cells],
        )

    def distinct(self) -> tuple[GeometricRows, Rows, Floats]:
        """Rows that differ, which of them every category has, and how many have it: of one cell.

        Several cells are returned as they are: rows of large tables are alike because most combinations are
        rare, and a cell of few categories is worked out faster beside others.
        """
        cells, categories, pieces = self.first.shape
        if cells > 1:
            return self, np.arange(categories), np.ones(categories)
        columns = (self.first, self.slope, self.at_first, self.at_last)
        lines = np.stack(columns, axis=2).reshape(categories, len(columns) * pieces)
        _, rows, of_category, times = np.unique(
            lines, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        different = GeometricRows(
            first=self.first[:, rows],
            length=self.length[:, rows],
            slope=self.slope[:, rows],
            at_first=self.at_first[:, rows],
            at_last=self.at_last[:, rows],
        )
        return different, of_category.ravel(), times.astype(np.float64)

    def tilted(self, tilt: Floats) -> TiltedRows:
        """All rows at every tilt s (n_cells, n_tilts) of their cell; s > 0."""
        columns = (self.first, self.length, self.slope, self.at_first, self.at_last)
        first, length, slope, at_first, at_last = (
            np.moveaxis(column, 2, 0)[:, :, :, None] for column in columns
        )
        steep = slope - tilt[:, None, :]
        rises = steep > 0.0
        top = np.where(rises, first + length - 1.0, first)
        fall = np.maximum(np.abs(steep), _LEAST_FALL)
        filled = -np.expm1(-fall * length)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(rises, at_last, at_first) - tilt[:, None, :] * top + np.log(filled)
        logs = np.where(length > 0.0, logs - np.log(-np.expm1(-fall)), -np.inf)
        highest = np.max(logs, axis=0)
        share = np.exp(logs - highest)
        total = np.sum(share, axis=0)
        return TiltedRows(
            top=top,
            sign=np.where(rises, -1.0, 1.0),
            length=np.broadcast_to(length, top.shape),
            fall=fall,
            filled=filled,
            share=share / total,
            log_sum=highest + np.log(total),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltedRows:
    """Rows at given tilts; made by ``GeometricRows.tilted``.

    Attributes
    ----------
    top, sign, length, fall, filled, share : (n_pieces, n_cells, n_categories, n_tilts), float64
        The higher end of a piece and whether distances count up (1) or down (-1) from it, their number, their
        fall, one minus the part that the end cuts off, and the row's probability of the piece.
    log_sum : ndarray of shape (n_cells, n_categories, n_tilts), float64
        Log of the row's sum.
    """

    top: Floats
    sign: Floats
    length: Floats
    fall: Floats
    filled: Floats
    share: Floats
    log_sum: Floats

    def moments(self) -> tuple[Floats, Floats]:
        """Means and variances of all rows, shaped as ``log_sum``."""
        distance, spread = truncated_geometric_moments(self.fall, self.length)
        means = np.where(self.share > 0.0, self.top + self.sign * distance, 0.0)
        mean = np.sum(self.share * means, axis=0)
        return mean, np.sum(self.share * (spread + (means - mean) ** 2), axis=0)

    def sample(self, slots: Rows, of_category: Rows, rng: np.random.Generator) -> Floats:
        """Independent counts (n_categories, n_slots) from the rows that the categories have.

        A slot is a tilt of a cell: cell * n_tilts + tilt.
        """
        pieces = len(self.top)
        counts = np.empty((len(of_category), len(slots)))
        for position_of, category in enumerate(of_category):
            # One line for every slot and piece: what a draw needs of it lies close together.
            ends = np.cumsum(self.share[:, :, category], axis=0)
            lines = np.stack(
                [
                    ends - self.share[:, :, category],
                    self.filled[:, :, category] / np.maximum(self.share[:, :, category], 1e-300),
                    self.sign[:, :, category] / self.fall[:, :, category],
                    self.top[:, :, category],
                ]
            ).reshape(4, pieces, -1)
            uniform = rng.random(len(slots))
            position = slots
            for piece in range(pieces - 1):
                after = uniform >= ends[piece].ravel()[slots]
                position = position + after * lines.shape[2]
            before, stretch, scale, top = (line.ravel()[position] for line in lines)
            steps = np.trunc(np.log1p(-np.clip((uniform - before) * stretch, 0.0, 1.0 - 2.0**-53)) * scale)
            counts[position_of] = np.maximum(top - steps, 0.0)
        return counts


def truncated_geometric_moments(fall: Floats, length: Floats) -> tuple[Floats, Floats]:
    r"""Mean and variance of d = 0..L-1 with weights :math:`e^{-\kappa d}`; L may be infinite, kappa > 0."""
    across = fall * length
    level = across < _LEVEL
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = 1.0 / np.expm1(fall) - np.where(across < 700.0, length / np.expm1(across), 0.0)
        variance = 0.25 / np.sinh(0.5 * fall) ** 2
        variance -= np.where(across < 700.0, (0.5 * length / np.sinh(0.5 * across)) ** 2, 0.0)
    if np.any(level):
        fall, length = fall[level], np.maximum(length[level], 1.0)
        square, step = length * length, fall * fall
        eighth, sixth, fourth = square**4 - 1.0, square**3 - 1.0, square**2 - 1.0
        mean[level] = (length - 1.0) / 2.0 - fall * (
            (square - 1.0) / 12.0
            - step * (fourth / 720.0 - step * (sixth / 30240.0 - step * eighth / 1209600.0))
        )
        variance[level] = (square - 1.0) / 12.0 - step * (
            fourth / 240.0 - step * (sixth / 6048.0 - step * eighth / 172800.0)
        )
    return mean, np.maximum(variance, 0.0)
