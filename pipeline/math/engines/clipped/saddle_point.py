r"""Where the weight of sums of clipped records is, and how large: saddle points of many rows at once.

A row is a cell under one value of the parameter. Its weight, the chance of its noisy sums, is

.. math:: w = \sum_N \pi(N) \sum_A P(A \mid N) \, \kappa_N(A),
    \qquad \log \kappa_N(A) = -(|A - y_1| + |R N - y_2 - A|) / b

with :math:`P(A \mid N)` the distribution of N clipped records' sum; the second distance is left out where N
is public. With K the log of a record's moment generating function,

.. math:: \log w \approx \min_t \max_{N, A} \; N K(t) - t A + \log \kappa_N(A)

which is convex in t and concave in N and A. At its t, no term of the sum is above the whole, so that what is
added up there with rounding errors of 1e-16 is right to about as much of the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats


_CLOSE = 1e-3
"""Standard deviations by which the tilted mean of the sum may miss its target."""
_MOST_ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSums:
    """Noisy sums of clipped records, and the noise's distribution.

    Attributes
    ----------
    first : ndarray of shape (n_cells,), float64
        Noisy A, whole numbers.
    second : ndarray of shape (n_cells,), float64, or None
        Noisy R N - A; None where N is public.
    reach : int
        R, the bound.
    scale : float, > 0
        b of the noise.
    low, high : float
        Smallest and largest N that its prior allows.
    highest : float
        The frequency, in radians a step, up to which characteristic functions are taken: pi, which is all of
        them, where records are on the lattice; less where the lattice only stands for them.
    """

    first: Floats
    second: Floats | None
    reach: int
    scale: float
    low: float
    high: float
    highest: float = np.pi

    @property
    def slope(self) -> float:
        """The steepest that the noise's distribution is, in nats per unit of A: no tilt goes further."""
        return (1.0 if self.second is None else 2.0) / self.scale

    @property
    def fall(self) -> float:
        """Nats by which the noise's distribution falls per row too many, or too few."""
        return self.reach / self.scale

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        second = None if self.second is None else self.second[cells]
        return replace(self, first=self.first[cells], second=second)

    def kinks(self, n: Floats) -> tuple[Floats, Floats]:
        """Lower and upper A at which the slope of the noise's distribution jumps."""
        if self.second is None:
            return self.first, self.first
        other = self.reach * n - self.second
        return np.minimum(self.first, other), np.maximum(self.first, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saddle:
    """The saddle point of every row; all arrays (n_rows,), float64.

    Attributes
    ----------
    tilt, n : ndarray
        Where it is.
    log_weight : ndarray
        Its height.
    mean, variance : ndarray
        Of one record under the tilted distribution.
    log_moment : ndarray
        K at the tilt.
    """

    tilt: Floats
    n: Floats
    log_weight: Floats
    mean: Floats
    variance: Floats
    log_moment: Floats

    def take(self, rows: Cells) -> Self:
        """The given rows, in the given order."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__slots__})


def tilted(probability: Floats, tilt: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Tilt distributions (n_rows, R + 1): their chances, K, and mean and variance of a record."""
    count = np.arange(float(probability.shape[1]))
    shift = np.maximum(tilt * count[-1], 0.0)
    chance = probability * np.exp(tilt[:, None] * count - shift[:, None])
    total = np.sum(chance, axis=1)
    chance /= total[:, None]
    mean = chance @ count
    variance = np.sum(chance * (count - mean[:, None]) ** 2, axis=1)
    return chance, np.log(total) + shift, mean, variance


def saddle(counts: ClippedSums, probability: Floats) -> Saddle:
    """Find the saddle points of rows, one for every cell of `counts`; probability is (n_rows, R + 1)."""
    if counts.second is None:
        n = np.full(len(counts.first), counts.low)
        return _saddle_at(counts, probability, n, _tilt_given(counts, probability, n))
    start = np.clip((counts.first + counts.second) / counts.reach, counts.low, counts.high)
    tilt = _tilt_given(counts, probability, start)
    n, tilt = _other_n(counts, probability, start, tilt)
    return _saddle_at(counts, probability, n, tilt)


def _saddle_at(counts: ClippedSums, probability: Floats, n: Floats, tilt: Floats) -> Saddle:
    _, log_moment, mean, variance = tilted(probability, tilt)
    low, high = counts.kinks(n)
    log_weight = n * log_moment - (high - low) / counts.scale - tilt * np.where(tilt > 0.0, low, high)
    return Saddle(tilt=tilt, n=n, log_weight=log_weight, mean=mean, variance=variance, log_moment=log_moment)


def _tilt_given(counts: ClippedSums, probability: Floats, n: Floats) -> Floats:
    """Tilts that bring the mean of the sum between the kinks, or as near as the noise's slope allows."""
    low, high = counts.kinks(n)
    tilt = np.zeros(len(n))
    _, _, mean, variance = tilted(probability, tilt)
    target = np.clip(n * mean, low, high)
    left = np.where(target < n * mean, -counts.slope, 0.0)
    right = np.where(target > n * mean, counts.slope, 0.0)
    rows = np.flatnonzero(left < right)
    for _ in range(_MOST_ROUNDS):
        if not rows.size:
            break
        miss = n[rows] * mean[rows] - target[rows]
        over = miss > 0.0
        right[rows], left[rows] = (
            np.where(over, tilt[rows], right[rows]),
            np.where(over, left[rows], tilt[rows]),
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = tilt[rows] - miss / (n[rows] * variance[rows])
        inside = (new > left[rows]) & (new < right[rows])
        # Where the end is not far enough, the search must come to it.
        edge = np.where(over, left[rows], right[rows])
        is_end = np.abs(edge) >= counts.slope
        beyond = ~inside & is_end
        new = np.where(inside, new, np.where(beyond, edge, (left[rows] + right[rows]) / 2.0))
        step = np.abs(new - tilt[rows])
        tilt[rows] = new
        _, _, mean[rows], variance[rows] = tilted(probability[rows], new)
        miss = n[rows] * mean[rows] - target[rows]
        at_end = beyond & np.where(new > 0.0, miss <= 0.0, miss >= 0.0)
        sd = np.sqrt(n[rows] * variance[rows])
        close = (np.abs(miss) <= _CLOSE * sd) | (step <= 1e-14 * counts.slope)
        rows = rows[~(at_end | close)]
    return tilt


def _other_n(counts: ClippedSums, probability: Floats, n: Floats, tilt: Floats) -> tuple[Floats, Floats]:
    """Move to another N where data and distribution disagree so much that N is the likelier error: rare."""
    assert counts.second is not None  # noqa: S101 - for the type checker
    n, tilt = n.copy(), tilt.copy()
    _, log_moment, _, _ = tilted(probability, tilt)
    other = log_moment - tilt * counts.reach
    rise, drop = np.maximum(log_moment, other) - counts.fall, -np.minimum(log_moment, other) - counts.fall
    rows = np.flatnonzero(((rise > 0.0) & (n < counts.high)) | ((drop > 0.0) & (n > counts.low)))
    if not rows.size:
        return n, tilt
    inner, outer = np.zeros(len(rows)), tilt[rows]
    for _ in range(_MOST_ROUNDS):
        middle = (inner + outer) / 2.0
        _, log_moment, _, _ = tilted(probability[rows], middle)
        far = np.maximum(np.abs(log_moment), np.abs(log_moment - middle * counts.reach)) > counts.fall
        inner, outer = np.where(far, inner, middle), np.where(far, middle, outer)
    _, log_moment, mean, _ = tilted(probability[rows], inner)
    by_first = np.abs(log_moment) >= np.abs(log_moment - inner * counts.reach)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        position = np.where(by_first, counts.first[rows] / mean, counts.second[rows] / (counts.reach - mean))
    position = np.where(np.isnan(position), n[rows], np.clip(position, counts.low, counts.high))
    is_end = (position == counts.low) | (position == counts.high)
    tilt[rows], n[rows] = inner, position
    further = rows[is_end]
    if further.size:
        tilt[further] = _tilt_given(counts.take(further), probability[further], n[further])
    return n, tilt


def range_of_n(counts: ClippedSums, at: Saddle, nats: Floats) -> tuple[Floats, Floats]:
    """Ends of the N beyond which a row's weight has fallen by so many nats, but for the prior of N."""
    if counts.second is None:
        return at.n, at.n
    left_end, right_end = at.log_moment, at.log_moment - at.tilt * counts.reach
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        sd = np.sqrt(at.n * at.variance)
        # Where it is the distribution of the records that keeps N from going on, their sums have a normal
        # distribution there.
        spreads = [np.nan_to_num(sd / of_record, nan=0.0) for of_record in (at.mean, counts.reach - at.mean)]
        to_right = np.where(at.tilt > 0.0, spreads[0], spreads[1])
        to_left = np.where(at.tilt > 0.0, spreads[1], spreads[0])
        below, above = (
            np.minimum(
                nats / np.maximum(fall, 1e-300), np.sqrt(8.0 * nats) * spread + 2.0 * nats / counts.fall + 2.0
            )
            for fall, spread in (
                (counts.fall + np.minimum(left_end, right_end), to_left),
                (counts.fall - np.maximum(left_end, right_end), to_right),
            )
        )
    return np.maximum(at.n - below, counts.low), np.minimum(at.n + above, counts.high)
