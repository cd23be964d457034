r"""The exact chance of one cell's noisy sums under many values of a parameter, clipping and noise included.

Model: N records, each clipped to 0..R steps, have the sum A. A and, where N is private, R N - A are
released as :math:`y_1, y_2` behind Laplace noise. The question is the likelihood, for a row (a cell under
one parameter),

.. math:: w = \sum_N \pi(N) \sum_A P(A \mid N) \, \kappa_N(A),
    \qquad \log \kappa_N(A) = -(|A - y_1| + |R N - y_2 - A|) / b \qquad (1)

    \log w \approx \min_t \max_{N, A} \; N K(t) - t A + \log \kappa_N(A) \qquad (2)

    \sum_A P_t(A) \, \kappa(A) = \frac{1}{P} \sum_j \phi_t(\omega_j)^N
    \sum_{A = s}^{s + P - 1} \kappa(A) e^{-i \omega_j A}, \qquad \omega_j = 2 \pi j / P \qquad (3)

K (``log_moment``) is the log of a record's moment generating function, :math:`\phi_t` the characteristic
function of a record tilted by t. (2) is convex in t and concave in N and A. Its t (``tilt``) is used in (3),
so that no term is above the whole: rounding errors of 1e-16 stay such. The P positions s, s + 1, ... hold
all of the distribution but e^-36 (Chernoff), and inner sums are geometric series. Only those j are taken at
which the power is not negligible: a few dozen where the distribution is smooth, whatever N. Many N are
summed by a rule. Means agree with enumeration to 1e-6 sd (docs/decisions/0020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.quadrature import sum_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Cells, Floats

    Complexes: TypeAlias = NDArray[np.complex128]

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
    # (2): between the kinks kappa is level, and -t A is largest at the lower one for t > 0, else the upper.
    log_weight = n * log_moment - (high - low) / counts.scale - tilt * np.where(tilt > 0.0, low, high)
    return Saddle(tilt=tilt, n=n, log_weight=log_weight, mean=mean, variance=variance, log_moment=log_moment)


def _tilt_given(counts: ClippedSums, probability: Floats, n: Floats) -> Floats:
    """Tilts that bring the mean of the sum between the kinks, or as near as the noise's slope allows."""
    low, high = counts.kinks(n)
    tilt = np.zeros(len(n))
    _, _, mean, variance = tilted(probability, tilt)
    # d/dt of (2) is N K'(t) - A: the tilted mean of the sum is at A.
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
            # Newton: K'' is the variance of a tilted record.
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


_NATS = 22.0
"""How far below the highest weight numbers of records may lie before they are left out."""
_TAIL = 36.0
"""Nats below which the density of a sum, or a power of its characteristic function, is left out."""
_STEPS = np.array([2.0, 5.0, 9.0, 14.0, 24.0])
_LADDER = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
"""Edges of blocks of N, in numbers of records over which the noise's distribution falls by a nat."""
_OCTAVES = np.concatenate([np.arange(8.0), np.exp2(np.arange(3.0, 50.0))])
_BOUNDS = np.exp2(np.arange(-40.0, 6.0, 0.5))
"""Tilts at which tails are bounded, per step of the lattice."""
_MOST_NUMBERS = 256.0
"""Numbers of records up to which each is summed by itself."""
_STARTS = 64
_SMALLEST = 2.0**-12
"""Variance of one record below which its size no longer tells grids apart: they differ much in period."""
_MOST_ELEMENTS = 1 << 16
_SMALL_PRODUCT, _BLOCK = 50_000, 8


def log_product(counts: ClippedSums, n_prior: NPrior, chance: Floats, log_prior: Floats) -> Floats:
    """Return the log of the prior and the chance of a cell's noisy sums, (n_rows,), but for a constant.

    Parameters
    ----------
    counts : ClippedSums
        Of one cell.
    n_prior : NPrior
        Of the number of records.
    chance : ndarray of shape (n_rows, R + 1), float64
        The distribution of one clipped record under every value of the parameter.
    log_prior : ndarray of shape (n_rows,), float64
        Log prior density of these values.
    """
    repeated = counts.take(np.zeros(len(chance), dtype=np.int64))
    at = saddle(repeated, chance)
    depth = at.log_weight + log_prior
    nats = np.maximum(_NATS - (np.max(depth) - depth), 1.0)
    first, last = range_of_n(repeated, at, nats)
    n, weight = _rule_of_n(counts, at, first, last)
    joined = np.full((len(chance), len(n)), -np.inf)
    if n[0] < 1.0:
        none = -(abs(counts.first[0]) + (0.0 if counts.second is None else abs(counts.second[0])))
        joined[:, 0] = none / counts.scale
    distribution, _, _, _ = tilted(chance, at.tilt)
    # What has about the same spread shares a grid.
    spread = np.floor(np.log2(np.maximum(at.variance, _SMALLEST)))
    size = np.where(n < 1.0, -1.0, np.floor(np.log2(np.maximum(n, 4.0))))
    for variance in np.unique(spread):
        of_spread = spread == variance
        for octave in np.unique(size[n >= 1.0]):
            of_size = size == octave
            least, most = n[of_size][[0, -1]]
            rows = np.flatnonzero(of_spread & (np.floor(first) <= most) & (np.ceil(last) >= least))
            if not rows.size:
                continue
            of_size &= (n >= np.floor(np.min(first[rows]))) & (n <= np.ceil(np.max(last[rows])))
            numbers = np.flatnonzero(of_size)
            grid = Grid.of(counts, at.take(rows), distribution[rows], n[numbers])
            joined[np.ix_(rows, numbers)] = grid.log_chance(counts)
    joined += n_prior.log_prob(n)
    top = np.max(joined, axis=1)
    total: Floats = top + np.log(np.exp(joined - top[:, None]) @ weight)
    return total + log_prior


def _rule_of_n(counts: ClippedSums, at: Saddle, first: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Numbers of records that stand for all that matter under any row, ascending, and their weights."""
    low, high = np.floor(np.min(first)), np.ceil(np.max(last))
    if low == high or counts.second is None:
        return np.array([low]), np.ones(1)
    if high - low < _MOST_NUMBERS:
        return np.arange(low, high + 1.0), np.ones(int(high - low) + 1)
    # Where the noise's distribution has kinks, for rows across all of them.
    order = np.argsort(at.mean)[np.linspace(0, len(at.mean) - 1, 5).astype(np.int64)]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # Not a number where every record is at an end, and so is what was released: no kink is there.
        kinks = [counts.first / at.mean[order], counts.second / (counts.reach - at.mean[order])]
    whole = (counts.first + counts.second) / counts.reach
    centres = np.unique(np.rint(np.quantile(at.n, [0.0, 0.5, 1.0])))
    ladders = (centres[:, None] + _LADDER / counts.fall).ravel()
    edges = np.ceil(np.clip(np.concatenate([*kinks, whole, ladders, _OCTAVES]), low, high + 1.0))
    joined = np.unique(np.append(edges[~np.isnan(edges)], [low, high + 1.0]))
    # Between integers the transform of few different sums is no distribution: it only oscillates.
    nodes, weights = sum_rule(joined[:-1], joined[1:], at_integers=True)
    used = weights != 0.0
    return nodes[used], weights[used]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Rows and numbers of records whose sums have about the same spread, and the frequencies they need.

    Attributes
    ----------
    at : Saddle
        Of the rows.
    n : ndarray of shape (n_n,), float64
        From 1 on.
    start : ndarray of shape (n_rows, n_n), float64
        The first of the positions that hold a sum's distribution, a multiple of ``period / starts``.
    period, starts : float
    frequency : ndarray of shape (n_w,), float64
        Those above 0 at which a power matters.
    log_power : ndarray of shape (n_rows, n_w), complex128
        Log of the tilted characteristic function of one record less its mean.
    """

    at: Saddle
    n: Floats
    start: Floats
    period: float
    starts: float
    frequency: Floats
    log_power: Complexes

    @classmethod
    def of(cls, counts: ClippedSums, at: Saddle, distribution: Floats, n: Floats) -> Self:
        """Find positions and frequencies; `distribution` is that of a tilted record, (n_rows, R + 1)."""
        before = _margin(distribution[:, ::-1], counts.reach - at.mean, float(n[-1]))
        after = _margin(distribution, at.mean, float(n[-1]))
        wide = float(np.max(before + after)) + 3.0
        step = np.ceil(wide / (_STARTS - 2)) if wide > _STARTS else 1.0
        starts = float(_STARTS) if wide > _STARTS else np.ceil(wide) + 1.0
        period = starts * step
        start = np.floor((n * at.mean[:, None] - before - 1.0) / step) * step
        frequency, log_power = _characteristic(at, distribution, float(n[0]), (period, counts.highest))
        return cls(
            at=at,
            n=n,
            start=start,
            period=period,
            starts=starts,
            frequency=frequency,
            log_power=log_power,
        )

    def log_chance(self, counts: ClippedSums) -> Floats:
        """Log chances given N, (n_rows, n_n)."""
        at, n = self.at, self.n
        tilt, base = at.tilt[:, None], n * at.log_moment[:, None] - at.log_weight[:, None]
        low, high = counts.kinks(n)
        ends = (self.start, self.start + self.period)
        edges = (ends[0], np.clip(low, *ends), np.clip(high, *ends), ends[1])
        far = (0.0 if counts.second is None else 1.0) / counts.scale
        levels = [
            base - np.abs(position - low) / counts.scale - np.abs(position - high) * far - tilt * position
            for position in edges
        ]
        # (3): log kappa - t A is linear between start, kinks and end.
        slopes = (counts.slope - tilt, -tilt, -counts.slope - tilt)
        total = np.zeros_like(base)
        for piece, slope in enumerate(slopes):
            largest = np.maximum(levels[piece], levels[piece + 1])
            total += _series(slope, edges[piece + 1] - edges[piece], largest)
        rows = max(1, _MOST_ELEMENTS // (len(n) * max(len(self.frequency), 1)))
        if self.frequency.size:
            heights = np.exp(np.stack(levels))
            inside = np.stack([edges[1] == low, edges[2] == high])
            for row in range(0, len(tilt), rows):
                part = slice(row, row + rows)
                total[part] += self._waves(counts, part, heights[:, part], inside[:, part])
        log_chance: Floats = at.log_weight[:, None] + np.log(np.maximum(total, 1e-300) / self.period)
        return log_chance

    def _waves(self, counts: ClippedSums, part: slice, heights: Floats, inside: NDArray[np.bool_]) -> Floats:
        """What frequencies above 0 add, (n_rows, n_n): geometric series between start, kinks and end."""
        frequency, tilt = self.frequency, self.at.tilt[part, None]
        turn = -1j * frequency
        rising, level, falling = (
            1.0 / _less_one(slope - tilt, frequency) for slope in (counts.slope, 0.0, -counts.slope)
        )
        # A frequency of half a turn is its own mirror image.
        # P is real: frequencies -w and w add up to twice the real part.
        twice = np.where(frequency > np.pi - 1e-9, 1.0, 2.0)
        first, last = (rising - level) * twice, (level - falling) * twice
        of_record = self.log_power[part] - turn * self.at.mean[part, None]
        power = _powers(of_record, self.n)
        position = np.rint(self.start[part] * (self.starts / self.period)) % self.starts
        turns = np.exp(turn * (np.arange(self.starts) * (self.period / self.starts))[:, None])
        at_start = power * turns[position.astype(np.int64)]
        series = np.stack([-rising * twice, falling * twice, first, last], axis=2)
        all_inside = bool(inside.all())
        from_start = _product(at_start, series[..., :2] if all_inside else series).real
        total = heights[0] * from_start[..., 0] + heights[3] * from_start[..., 1]
        kinks = series[..., 2:]
        bent = _product(power, kinks * np.exp(turn * counts.first)[:, None]).real
        by_position = [bent]
        if counts.second is not None:
            other = counts.reach * self.n - counts.second
            by_position.append(_product(power * np.exp(turn * other[:, None]), kinks).real)
            is_first_lower = counts.first <= other
            at_kinks = (
                np.where(is_first_lower, by_position[0][..., 0], by_position[1][..., 0]),
                np.where(is_first_lower, by_position[1][..., 1], by_position[0][..., 1]),
            )
        else:
            at_kinks = (bent[..., 0], bent[..., 1])
        for kink, value in enumerate(at_kinks):
            kept = value if all_inside else np.where(inside[kink], value, from_start[..., kink + 2])
            total += heights[kink + 1] * kept
        result: Floats = total
        return result


def _less_one(log_size: Floats, frequency: Floats) -> Complexes:
    """Return e^(log_size - i frequency) - 1, right where it is small; the product of both shapes."""
    result = np.empty(np.broadcast_shapes(log_size.shape, frequency.shape), dtype=np.complex128)
    result.real = np.expm1(log_size) * np.cos(frequency) - 2.0 * np.sin(frequency / 2.0) ** 2
    result.imag = -np.exp(log_size) * np.sin(frequency)
    return result


def _powers(log_of: Complexes, n: Floats) -> Complexes:
    """Powers (n_rows, n_n, n_w); of numbers one after another by multiplication, which is faster."""
    if n[-1] - n[0] != len(n) - 1.0:
        return np.exp(n[:, None] * log_of[:, None, :])
    powers = np.empty((len(log_of), len(n), log_of.shape[1]), dtype=np.complex128)
    powers[:, 0] = np.exp(n[0] * log_of)
    further, known = np.exp(log_of)[:, None, :], 1
    while known < len(n):
        n_reflected = min(known, len(n) - known)
        np.multiply(powers[:, :n_reflected], further, out=powers[:, known : known + n_reflected])
        further, known = further * further, known + n_reflected
    return powers


def _series(slope: Floats, length: Floats, log_largest: Floats) -> Floats:
    """Sums of so many terms of real geometric series, added up from their larger ends."""
    size = np.abs(slope)
    matters = size > 1e-300
    ratio = np.where(matters, size, 1.0)
    series = np.where(matters, -np.expm1(-ratio * length) / -np.expm1(-ratio), length)
    # The larger end of a rising series is the place behind its last term.
    result: Floats = np.exp(log_largest - np.where(slope > 0.0, size, 0.0)) * series
    return result


def _margin(distribution: Floats, mean: Floats, n: float) -> Floats:
    """Chernoff's distances above the mean that n records or fewer exceed once in e^36, (n_rows, 1)."""
    most = distribution.shape[1] - 1
    tilts = _BOUNDS[_BOUNDS * most < 700.0]
    moment = _product(distribution, np.exp(-np.outer(most - np.arange(most + 1.0), tilts)))
    with np.errstate(divide="ignore"):
        excess = np.maximum(np.log(moment) + tilts * (most - mean[:, None]), 0.0)
    # Chernoff: P(S - N mu > x) <= e^(N (K(t) - t mu) - t x) for every t > 0.
    margin = np.min((_TAIL + n * excess) / tilts, axis=1)
    nearest: Floats = np.minimum(margin, n * (most - mean))[:, None]
    return nearest


def _characteristic(
    at: Saddle, distribution: Floats, least: float, period_and_highest: tuple[float, float]
) -> tuple[Floats, Complexes]:
    """Frequencies at which powers from `least` on matter, and logs of the centred functions there."""
    period, highest = period_and_highest
    reach = distribution.shape[1] - 1
    fine = 2 ** int(np.ceil(np.log2(8 * reach + 8)))
    half = np.floor(period / 2.0)
    with np.errstate(divide="ignore"):
        log_size = np.log(np.abs(np.fft.rfft(distribution, fine, axis=1)))
    last = int(np.flatnonzero(np.any(least * log_size > -_TAIL, axis=0))[-1])
    end = 2.0 * np.pi * (last + 1) / fine
    if last == 0:
        # Within one step of the scan the function falls about as that of a normal distribution.
        end = min(end, float(np.sqrt(2.1 * _TAIL / (least * np.min(at.variance) + 1e-300))))
    half = min(half, np.ceil(min(end, highest) * period / (2.0 * np.pi)))
    frequency = 2.0 * np.pi / period * np.arange(1.0, half + 1.0)
    value = _product(distribution, np.exp(1j * np.outer(np.arange(reach + 1.0), frequency)))
    with np.errstate(divide="ignore"):
        log_power = np.log(value * np.exp(-1j * np.outer(at.mean, frequency)))
    matters = np.flatnonzero(np.any(least * log_power.real > -_TAIL, axis=0))
    kept = int(matters[-1]) + 1 if matters.size else 0
    log_power = log_power[:, :kept]
    return frequency[:kept], np.maximum(log_power.real, -1e4) + 1j * log_power.imag


def _product(left: Any, right: Any) -> Any:
    """Products of matrices in blocks so small that no library starts threads: they take longer to start."""
    columns = max(1, _SMALL_PRODUCT // (_BLOCK * right.shape[-2]))
    rows = max(_BLOCK, _SMALL_PRODUCT // (right.shape[-2] * min(columns, right.shape[-1])))
    product = np.empty((*left.shape[:-1], right.shape[-1]), dtype=np.result_type(left, right))
    for row in range(0, left.shape[-2], rows):
        for column in range(0, right.shape[-1], columns):
            row_slice, column_slice = slice(row, row + rows), slice(column, column + columns)
            product[..., row_slice, column_slice] = left[..., row_slice, :] @ right[..., column_slice]
    return product
