r"""Likelihoods of a mean and a variance given what N rows may have been: as they are, or clipped to -1..1.

Model: a slice holds, for one N, the weights w(m, E) of means m and mean square deviations E of N rows that
noisy sums leave (``likelihood``). The question is

.. math:: L(\mu, \lambda) = \sum_{m, E} w(m, E) \, N(m; \mu, e^\lambda / N) \, p(E \mid N, m, \mu, \lambda)
    \qquad (1)

**As they are.** m and E are independent, and :math:`N E e^{-\lambda}` is chi-squared with N - 1 degrees of
freedom: with :math:`\alpha = (N - 1) / 2` and :math:`d = \log (N E / (N - 1)) - \lambda`

.. math:: \log p(\log E) = \alpha \log \alpha - \alpha - \log \Gamma(\alpha) - \alpha (e^d - 1 - d) \qquad (2)

**Clipped.** A record is t = clip(x, -1, 1) with x normal. Of N of them, with :math:`\kappa_2, \kappa_3,
\kappa_4` the cumulants of t, m is taken for normal and E, given m, for gamma, with

.. math::
    E(m) = E\,t, \quad \mathrm{Var}(m) = \kappa_2 / N, \quad
    E(E \mid m) = \frac{N - 1}{N} \left(\kappa_2 + \frac{\kappa_3}{\kappa_2} d\right)
    + \frac{\gamma}{2} (d^2 - \kappa_2 / N), \quad d = m - E\,t \qquad (3)

where :math:`\gamma = (\kappa_4 \kappa_2 - \kappa_3^2) / \kappa_2^3` is the second derivative of the
variance as a function of the mean, as records are tilted; and the variance of E given m such that that of E
is exact.

Any records have :math:`\gamma \ge -2`, which is that of two values, and within bounds :math:`E \le 1 - m^2`:
where next to all are at one bound, rounding would say otherwise. Where all N are there, E is 0.

Error: (2) is exact. (3) rests on the first four moments of t, and is exact where nothing is clipped; E(E |
m) is exact where every record is at a bound; log likelihoods are off by 0.1 at epsilon 0.5 at most
(docs/decisions/0044). Sums over E given m are no product of matrices then; they are smooth in the logarithm
of E(E | m) and in the gamma's shape: worked out once for a ladder of both, and interpolated.

======= ================= ===================================== ========================= ===============
symbol  in the code       meaning                               shape                     unit
======= ================= ===================================== ========================= ===============
m       ``mean``          means of rows                         (n_means,)                half ranges
log E   ``log_e``         log mean square deviations            (n_deviations,)           none
w       ``weight``        weights of both                       (n_deviations, n_means)   none
E t     ``records.mean``  mean of a clipped record              (n,)                      half ranges
======= ================= ===================================== ========================= ===============
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.clipped_records import LEAST_SPREAD, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.mean_variance.clipped_records import ClippedRecords
    from suffice.typing import Cells, Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What N rows may have been.

    Attributes
    ----------
    n : float
    mean, blur : ndarray of shape (n_means,), float64
        Means of rows, and the variance of a point of their grid.
    alpha : float
        (N - 1) / 2, or less where that is far finer than the noise.
    log_e : ndarray of shape (n_deviations,), float64
        Of the first only the upper end is stated: it stands for all below.
    weight : ndarray of shape (n_deviations, n_means), float64
        The noise's, over that of the whole at its highest, times the prior of N and the area.
    is_outer : ndarray of shape (n_deviations, n_means), bool
        Where the noise leaves hardly anything.
    """

    n: float
    mean: Floats
    blur: Floats
    alpha: float
    log_e: Floats
    weight: Floats
    is_outer: NDArray[np.bool_]

    def log_likelihood(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods at positions (n, p) and (n, q): (n, p, q)."""
        along = self.of_deviations(log_variance)
        # A point of the grid is a normal of variance `blur`: both variances add up.
        width = self.blur + np.exp(log_variance)[:, :, None] / self.n
        along -= np.log(2.0 * math.pi * width) / 2.0
        parts = (mean[:, :, None] - self.mean) ** 2
        parts = parts[:, :, None, :] * (-0.5 / width)[:, None, :, :]
        parts += along[:, None]
        top = np.maximum(np.max(parts, axis=-1), -1e300)
        parts -= top[..., None]
        with np.errstate(divide="ignore"):
            log_likelihood: Floats = top + np.log(np.sum(np.exp(parts, out=parts), axis=-1))
        return log_likelihood

    def of_deviations(self, log_variance: Floats) -> Floats:
        """Logs of the sums over deviations, at positions (n, q): (n, q, n_means)."""
        from scipy.special import gammainc

        if self.n < 2.0:
            with np.errstate(divide="ignore"):
                return np.broadcast_to(np.log(self.weight[0]), (*log_variance.shape, len(self.mean))).copy()
        alpha = self.alpha
        level = self.log_e[1:] + math.log(self.n / (self.n - 1.0))
        distance = level - log_variance[:, :, None]
        # (2).
        distribution = float(log_height(np.array(alpha))) - alpha * (np.expm1(distance) - distance)
        below = gammainc(
            # P(E <= e | N): the chi-squared distribution function at N e / sigma^2.
            (self.n - 1.0) / 2.0,
            self.n / 2.0 * np.exp(np.minimum(self.log_e[0] - log_variance, 600.0)),
        )
        if not np.any(self.weight[0]):
            below = np.zeros_like(below)
        with np.errstate(divide="ignore"):
            distribution = np.concatenate([np.log(below)[:, :, None], distribution], axis=2)
            top = np.maximum(np.max(distribution, axis=2, keepdims=True), -1e300)
            return np.asarray(top + np.log(np.exp(distribution - top) @ self.weight), dtype=np.float64)


def log_height(concentration: Floats) -> Floats:
    """Return a log a - a - log gamma(a)."""
    from scipy.special import gammaln

    large = np.maximum(concentration, 100.0)
    # Stirling: a log a - a - log Gamma(a) = log(a / 2 pi) / 2 - 1 / 12a + 1 / 360a^3, to 1e-13 from 100 on.
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(concentration, 100.0)
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(concentration < 100.0, exact, series)


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
    highest : ndarray of shape (n_shapes,), float64
        The largest entry of each shape that is ready.
    by_loops : bool
        Whether compiled loops are used.
    """

    rows: Slice
    shape: Floats
    start: Floats
    step: Floats
    first: Cells
    count: Cells
    table: Floats
    is_ready: Mask
    highest: Floats
    by_loops: bool

    @classmethod
    def of(cls, rows: Slice, *, by_loops: bool = False) -> Self:
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
                highest=none,
                by_loops=False,
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
            highest=np.empty(len(shape)),
            by_loops=by_loops,
        )

    def _prepare(self, levels: Cells) -> None:
        """Work out those parts of the table that are not there yet."""
        for level in np.unique(levels):
            if self.is_ready[level]:
                continue
            shape, first, count = float(self.shape[level]), self.first[level], self.count[level]
            expected = self.start[level] + self.step[level] * np.arange(count)
            # (1) given m: a sum over E for every expectation of the table.
            density = _gamma(shape, expected, self.rows.log_e, by_loops=self.by_loops)
            sums = np.maximum(density @ self.rows.weight, _LEAST)
            part = self.table[first : first + count]
            part[:] = np.log(sums) - math.log(shape) / 2.0
            self.highest[level] = np.max(part)
            self.is_ready[level] = True

    @property
    def n(self) -> float:
        """Number of records."""
        return self.rows.n

    def log_likelihood(self, records: ClippedRecords) -> Floats:
        """Log likelihoods under every mean and variance, (n,)."""
        nodes = np.empty(len(records.mean))
        if self.by_loops:
            self._set_by_loops(records, nodes)
            return nodes
        batch = max(1, _ELEMENTS // len(self.rows.mean))
        for start in range(0, len(nodes), batch):
            part = slice(start, start + batch)
            nodes[part] = self._of(records.take(part))
        return nodes

    def _set_by_loops(self, records: ClippedRecords, log_likelihood: Floats) -> None:
        rows = self.rows
        shape = self._within(records.shape(rows.n))
        level = self._level(shape)
        moments = np.stack([records.mean, records.variance, records.skewed, records.kurtosis])
        of_shapes, layout = np.stack([self.shape, self.start, self.step]), np.stack([self.first, self.count])
        kernel().set_values(
            moments, rows.n, rows.mean, rows.blur, of_shapes, layout, self.table, self.highest, level, shape,
            log_likelihood,
        )  # fmt: skip

    def _of(self, records: ClippedRecords) -> Floats:
        rows = self.rows
        width = rows.blur + records.variance[:, None] / rows.n
        value = (
            -((rows.mean - records.mean[:, None]) ** 2) / (2.0 * width) - np.log(2.0 * math.pi * width) / 2.0
        )
        if rows.n < 2.0:
            value += np.log(np.maximum(rows.weight[0], _LEAST))
        else:
            value += self.of_deviations(*records.deviations(rows.n, rows.mean))
        top = np.max(value, axis=1)
        log_likelihood: Floats = top + np.log(np.sum(np.exp(value - top[:, None]), axis=1))
        return log_likelihood

    def _within(self, shape: Floats) -> Floats:
        """Shapes of gammas as the slice has them, as far as the table does."""
        rows = self.rows
        # The slice may be widened (likelihood): then alpha < (N - 1) / 2, and the variances of log E add up.
        spread = 1.0 / shape + 1.0 / rows.alpha - 2.0 / (rows.n - 1.0)
        return np.clip(1.0 / spread, self.shape[0], self.shape[-1])

    def _level(self, shape: Floats) -> Cells:
        """Which shape of the table is next below; it and the next are worked out."""
        level = np.clip(np.searchsorted(self.shape, shape) - 1, 0, len(self.shape) - 2)
        self._prepare(np.concatenate([level, level + 1]))
        return level

    def of_deviations(self, expected: Floats, shape: Floats) -> Floats:
        """Logs of the sums over deviations given means, (n, n_means)."""
        shape = self._within(shape)
        level = self._level(shape)
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


def _gamma(shape: float, expected: Floats, log_e: Floats, *, by_loops: bool) -> Floats:
    """Densities of log E, (n_expected, n_deviations); of the first the chance of all that is below."""
    from scipy.special import gammainc

    height = float(log_height(np.array(shape)))
    if by_loops:
        density = np.empty((len(expected), len(log_e)))
        kernel().set_gamma(shape, height, expected, log_e, density)
    else:
        distance = log_e - expected[:, None]
        density = np.exp(height - shape * (np.expm1(np.minimum(distance, 600.0)) - distance))
    density[:, 0] = gammainc(shape, shape * np.exp(np.minimum(log_e[0] - expected, 600.0)))
    return density
