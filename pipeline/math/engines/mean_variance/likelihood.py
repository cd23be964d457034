r"""The likelihood of a mean and a variance behind noisy sums: a sum over what the rows may have been.

With m the mean and E the mean square deviation of N rows, :math:`\lambda = \log \sigma^2` and
:math:`\alpha = (N - 1) / 2`,

.. math::
    p(y \mid \mu, \lambda) = \sum_N \pi(N) \int p(y \mid N, m, E)\,
        N(m; \mu, e^\lambda / N)\, \frac{(N E / 2)^\alpha}{\Gamma(\alpha)}
        e^{-\alpha \lambda - N E e^{-\lambda} / 2} \, dm \, d\log E.

For every N, or the middle of a few where the noise hardly tells them apart, m and log E lie on a grid that
covers all but e^-depth of the noise, and is as fine as it and the distributions of m and E are. It does not
depend on any prior. Below a deviation that the noise does not see, the distribution of E is integrated
exactly. At large variances every part of the sum falls as its number of rows has it fall.

Of clipped records (``clipped_records``): given a mean and a variance, the mean square deviation depends on
the mean m of the records, so that sums over it are no product of matrices as without clipping. They are
smooth in the logarithm of its expectation, and in the gamma's shape: worked out once for some of both, and
interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.clipped_records import (
    LEAST_SPREAD,
    ClippedRecords,
    before_clipping,
)
from suffice.pipeline.math.engines.mean_variance.grids import (
    COARSE,
    FINE,
    OUTER,
    Grid,
    log_height,
    numbers_of_rows,
)
from suffice.pipeline.math.engines.mean_variance.panels import PANELS

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.mean_variance.grids import Slice
    from suffice.pipeline.math.engines.normal.weights import NoisyMoments
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
        nodes = np.empty(len(records.mean))
        batch = max(1, _ELEMENTS // len(self.rows.mean))
        for start in range(0, len(nodes), batch):
            part = slice(start, start + batch)
            nodes[part] = self._of(records.take(part))
        return nodes

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
        interpolated: Floats = flat.take(index)
        interpolated *= -product * (1.0 + after)
        for weight in (
            after + 3.0 * product * after,
            place + 3.0 * product * place,
            -product * (1.0 + place),
        ):
            index += self.table.shape[1]
            interpolated += weight * flat.take(index)
        return interpolated


def _gamma(shape: float, expected: Floats, log_e: Floats) -> Floats:
    """Densities of log E, (n_expected, n_deviations); of the first the chance of all that is below."""
    from scipy.special import gammainc

    distance = log_e - expected[:, None]
    density = float(log_height(np.array(shape))) - shape * (np.expm1(np.minimum(distance, 600.0)) - distance)
    density = np.exp(density)
    density[:, 0] = gammainc(shape, shape * np.exp(np.minimum(distance[:, 0], 600.0)))
    return density


FEW = 8
"""Numbers of rows up to this may leave a variance without moments."""
_NUMBERS = 2**19
_NO_DEVIATION = -4.0
"""Represents log E of a single row where locations are searched."""
_LARGEST_MEAN, _LEAST_LOG = 1e70, -320.0
_FAR = 8.0
"""Where moments of clipped rows say next to nothing of a parameter: the steps in which it is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentRows:
    """The likelihood of one cell.

    Attributes
    ----------
    slices : list of Slice
    log_empty : float
        Log likelihood of no rows at all; minus infinity where there must be some.
    depth : float
        Nats of noise that the grid covers.
    clipped : list of ClippedSlice or None
        The same where records are taken for clipped to -1..1; None where they are not.
    """

    slices: list[Slice]
    log_empty: float
    depth: float
    clipped: list[ClippedSlice] | None = None

    @classmethod
    def of(cls, noisy: NoisyMoments, depth: float, room: float = math.inf, *, clips: bool = False) -> Self:
        """Lay out the grids of the one cell of some noisy moments, with room for so many densities.

        Parameters
        ----------
        clips : bool
            Whether records are taken for clipped to -1..1.

        Raises
        ------
        TooManyError
            Where there would be more.
        """
        grids: list[Grid] = []
        fineness = COARSE if clips else FINE
        for low, high in numbers_of_rows(noisy, depth, fineness):
            grids.append(Grid.of(noisy, low, high, depth, room, fineness))
            room -= grids[-1].taken
        least, _ = noisy.n_prior.support
        empty = -np.inf
        if least == 0:
            empty = float(noisy.n_prior.log_prob(np.zeros(1))[0] - noisy.totals.distance(np.zeros(3))[0])
        top = max([empty, *(float(np.max(grid.log_noise)) for grid in grids)])
        slices = [slice_of_n for grid in grids if (slice_of_n := grid.slice(top, depth)) is not None]
        clipped = [ClippedSlice.of(slice_of_n) for slice_of_n in slices] if clips else None
        return cls(slices=slices, log_empty=empty - top, depth=depth, clipped=clipped)

    def log_likelihood(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods at positions (n, p) and (n, q), but for a constant: (n, p, q)."""
        return self._sum(self.slices, self.clipped, mean, log_variance, self.log_empty)

    def outer(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods of what the noise leaves least of; of no rows at all, where that is beyond it."""
        empty = self.log_empty if self.log_empty < OUTER - self.depth else -np.inf
        slices = []
        for slice_of_n in self.slices:
            columns = np.any(slice_of_n.is_outer, axis=0)
            if np.any(columns):
                slices.append(
                    replace(
                        slice_of_n,
                        mean=slice_of_n.mean[columns],
                        blur=slice_of_n.blur[columns],
                        weight=np.where(slice_of_n.is_outer, slice_of_n.weight, 0.0)[:, columns],
                    )
                )
        clipped = None if self.clipped is None else [ClippedSlice.of(slice_of_n) for slice_of_n in slices]
        return self._sum(slices, clipped, mean, log_variance, empty)

    def few(self, mean: Floats, log_variance: Floats) -> list[tuple[int, Floats]]:
        """Few numbers of rows, and the log likelihoods of each."""
        shape = (len(mean), mean.shape[1], log_variance.shape[1])
        log_parts = [(0, np.full(shape, self.log_empty))]
        for number, slice_of_n in enumerate(self.slices):
            if slice_of_n.n <= FEW:
                clipped = None if self.clipped is None else self.clipped[number : number + 1]
                log_parts.append(
                    (int(slice_of_n.n), self._sum([slice_of_n], clipped, mean, log_variance, -np.inf))
                )
        return log_parts

    @staticmethod
    def _sum(
        slices: list[Slice],
        clipped: list[ClippedSlice] | None,
        mean: Floats,
        log_variance: Floats,
        start: float,
    ) -> Floats:
        log_likelihood = np.full((len(mean), mean.shape[1], log_variance.shape[1]), start)
        # Beyond these, numbers would overflow; nothing is left there.
        mean = np.clip(mean, -_LARGEST_MEAN, _LARGEST_MEAN)
        log_variance = np.maximum(log_variance, _LEAST_LOG)
        if clipped is not None:
            records = ClippedRecords.of(mean[:, :, None], log_variance[:, None, :]).flat()
            for clipped_slice in clipped:
                np.logaddexp(
                    log_likelihood,
                    clipped_slice.log_likelihood(records).reshape(log_likelihood.shape),
                    out=log_likelihood,
                )
            return log_likelihood
        for slice_of_n in slices:
            batch = max(1, _NUMBERS // (mean.shape[1] * log_variance.shape[1] * len(slice_of_n.mean)))
            for first in range(0, len(mean), batch):
                part = slice(first, first + batch)
                of_slice = slice_of_n.log_likelihood(mean[part], log_variance[part])
                log_likelihood[part] = np.logaddexp(log_likelihood[part], of_slice)
        return log_likelihood

    @property
    def ladders(self) -> tuple[list[Floats], list[Floats]]:
        """Positions along both sides about what the rows may have been, wide and narrow."""
        if not self.slices:
            return [PANELS, PANELS], [PANELS, PANELS]
        dense = [slice_of_n for slice_of_n in self.slices if slice_of_n.n >= 2.0] or self.slices
        heaviest = dense[int(np.argmax([np.sum(slice_of_n.weight) for slice_of_n in dense]))]
        starts = []
        level = np.maximum(heaviest.log_e, _NO_DEVIATION)
        for axis, position in enumerate((heaviest.mean, level)):
            share = np.sum(heaviest.weight, axis=axis)
            share = share / np.sum(share)
            middle = float(share @ position)
            starts.append((middle, math.sqrt(float(share @ (position - middle) ** 2))))
        (mean, of_mean), (middle, of_level) = starts
        sampling = math.exp(middle / 2.0) / math.sqrt(heaviest.n)
        width = math.sqrt(2.0 / max(heaviest.n - 1.0, 1.0))
        wide = (math.hypot(of_mean, sampling), math.hypot(of_level, width))
        centre, slopes = np.array([mean, middle]), np.eye(2)
        if self.clipped is not None and heaviest.n >= 2.0:
            # Of clipped rows, moments are not where the parameters are.
            centre, slopes = before_clipping((mean, middle), wide)
        first, second = (
            [
                centre[side] + min(math.hypot(*(slopes[side] * part)), _FAR) * PANELS
                for part in (wide, (sampling, width))
            ]
            for side in (0, 1)
        )
        return first, second
