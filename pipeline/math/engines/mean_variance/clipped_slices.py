"""What N clipped records may have been, and the likelihood of that; see ``slices`` and ``clipped_records``.

Given a mean and a variance, the mean square deviation depends on the mean m of the records, so that sums over
it are no product of matrices as without clipping. They are smooth in the logarithm of its expectation, and in
the gamma's shape: worked out once for some of both, and interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.clipped_records import LEAST_SPREAD
from suffice.pipeline.math.engines.mean_variance.slices import log_height

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.mean_variance.clipped_records import ClippedRecords
    from suffice.pipeline.math.engines.mean_variance.slices import Slice
    from suffice.typing import Cells, Floats, Mask


_LEAST_SHAPE, _RATIO = 0.05, 1.5
"""The smallest shape of a gamma, and from each in the table to the next."""
_STEP = 0.6
"""Steps of the expectation's logarithm in the table, in widths of the gamma."""
_BEYOND = 13.0
"""Widths by which the table reaches beyond the deviations."""
_SMOOTH = 0.6
"""Least width of a gamma in steps of its grid: narrower ones would leave ripples."""
_ELEMENTS = 1 << 18
_LEAST = 1e-290


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSlice:
    """What N clipped records may have been.

    Attributes
    ----------
    rows : Slice
        Their means and deviations, and what the noise leaves of each.
    shape : ndarray of shape (n_shapes,), float64
        Of the gamma distributions in the table.
    start, step : ndarray of shape (n_shapes,), float64
        First logarithm of an expectation, and from each to the next.
    first, count : ndarray of shape (n_shapes,), int64
        Where a shape begins in the table, and how many expectations it has.
    table : ndarray of shape (n_in_all, n_means), float64
        Logs of the sums over deviations, less half the logarithm of the shape, where a shape is ready.
    is_ready : ndarray of shape (n_shapes,), bool
        Shapes that were asked for: most never are.
    """

    rows: Slice
    shape: Floats
    start: Floats
    step: Floats
    first: Cells
    count: Cells
    table: Floats
    is_ready: Mask

    @classmethod
    def of(cls, rows: Slice) -> Self:
        """Lay out the table."""
        if rows.n < 2.0:
            none, nowhere = np.empty(0), np.empty(0, dtype=np.int64)
            return cls(
                rows=rows,
                shape=none,
                start=none,
                step=none,
                first=nowhere,
                count=nowhere,
                table=none,
                is_ready=none.astype(np.bool_),
            )
        log_e = rows.log_e
        most = rows.n / LEAST_SPREAD
        if len(log_e) > 2:
            most = min(most, 1.0 / (_SMOOTH * (log_e[2] - log_e[1])) ** 2)
        levels = max(math.ceil(math.log(max(most / _LEAST_SHAPE, _RATIO)) / math.log(_RATIO)), 1)
        shape = np.geomspace(_LEAST_SHAPE, max(most, _LEAST_SHAPE * _RATIO), levels + 1)
        width = 1.0 / np.sqrt(shape)
        step = _STEP * width
        start = log_e[0] - _BEYOND * width
        # Mean squares of clipped records are at most 1.
        count = np.ceil((np.maximum(log_e[-1] + _BEYOND * width, 0.0) - start) / step).astype(np.int64) + 3
        first = np.concatenate([[0], np.cumsum(count)[:-1]])
        return cls(
            rows=rows,
            shape=shape,
            start=start,
            step=step,
            first=first,
            count=count,
            table=np.empty((int(np.sum(count)), len(rows.mean))),
            is_ready=np.zeros(len(shape), dtype=np.bool_),
        )

    def _prepare(self, levels: Cells) -> None:
        """Work out those parts of the table that are not there yet."""
        for level in np.unique(levels):
            if self.is_ready[level]:
                continue
            shape, first, count = float(self.shape[level]), self.first[level], self.count[level]
            expected = self.start[level] + self.step[level] * np.arange(count)
            sums = np.maximum(_gamma(shape, expected, self.rows.log_e) @ self.rows.weight, _LEAST)
            self.table[first : first + count] = np.log(sums) - math.log(shape) / 2.0
            self.is_ready[level] = True

    @property
    def n(self) -> float:
        """Number of records."""
        return self.rows.n

    def log_likelihood(self, records: ClippedRecords) -> Floats:
        """Log likelihoods under every mean and variance, (n,)."""
        found = np.empty(len(records.mean))
        batch = max(1, _ELEMENTS // len(self.rows.mean))
        for start in range(0, len(found), batch):
            part = slice(start, start + batch)
            found[part] = self._of(records.take(part))
        return found

    def _of(self, records: ClippedRecords) -> Floats:
        rows = self.rows
        width = rows.blur + records.variance[:, None] / rows.n
        value = (
            -((rows.mean - records.mean[:, None]) ** 2) / (2.0 * width) - np.log(2.0 * math.pi * width) / 2.0
        )
        if rows.n < 2.0:
            value += np.log(np.maximum(rows.weight[0], _LEAST))
        else:
            value += self._of_deviations(*records.deviations(rows.n, rows.mean))
        top = np.max(value, axis=1)
        log_likelihood: Floats = top + np.log(np.sum(np.exp(value - top[:, None]), axis=1))
        return log_likelihood

    def _of_deviations(self, expected: Floats, shape: Floats) -> Floats:
        """Logs of the sums over deviations given means, (n, n_means)."""
        rows = self.rows
        shape = np.clip(
            1.0 / (1.0 / shape + 1.0 / rows.alpha - 2.0 / (rows.n - 1.0)), self.shape[0], self.shape[-1]
        )
        level = np.clip(np.searchsorted(self.shape, shape) - 1, 0, len(self.shape) - 2)
        self._prepare(np.concatenate([level, level + 1]))
        position = np.log(expected)
        low, high = self._at(level, position), self._at(level + 1, position)
        # Far from its expectation, the log density of a gamma is linear in its shape.
        share = (shape - self.shape[level]) / (self.shape[level + 1] - self.shape[level])
        high -= low
        high *= share[:, None]
        high += low
        high += np.log(shape)[:, None] / 2.0
        return high

    def _at(self, level: Cells, position: Floats) -> Floats:
        """Interpolate between expectations; beyond them nothing changes, or nothing is left."""
        place = (position - self.start[level][:, None]) / self.step[level][:, None]
        last = self.count[level][:, None] - 1
        np.minimum(np.maximum(place, 0.0, out=place), last, out=place)
        index = place.astype(np.int64)
        np.minimum(np.maximum(index, 1, out=index), last - 2, out=index)
        place -= index
        index += self.first[level][:, None] - 1
        index *= self.table.shape[1]
        index += np.arange(self.table.shape[1])
        flat, after = self.table.ravel(), 1.0 - place
        product = place * after / 6.0
        # Cubic, through two on either side.
        found: Floats = flat.take(index)
        found *= -product * (1.0 + after)
        for weight in (
            after + 3.0 * product * after,
            place + 3.0 * product * place,
            -product * (1.0 + place),
        ):
            index += self.table.shape[1]
            found += weight * flat.take(index)
        return found


def _gamma(shape: float, expected: Floats, log_e: Floats) -> Floats:
    """Densities of log E, (n_expected, n_deviations); of the first the chance of all that is below."""
    from scipy.special import gammainc

    distance = log_e - expected[:, None]
    density = float(log_height(np.array(shape))) - shape * (np.expm1(np.minimum(distance, 600.0)) - distance)
    density = np.exp(density)
    density[:, 0] = gammainc(shape, shape * np.exp(np.minimum(distance[:, 0], 600.0)))
    return density
