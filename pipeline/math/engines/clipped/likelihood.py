r"""The exact chance of one cell's noisy sums under many values of a parameter, clipping and noise included.

The distribution of the sum of N clipped records is the inverse of the N-th power of one record's
characteristic function. Tilted to the saddle point and summed against the noise, exponential between its
kinks,

.. math::
    \sum_A P_t(A) \, \kappa(A) =
    \frac{1}{P} \sum_j \phi_t(w_j)^N \sum_{A = s}^{s + P - 1} \kappa(A) e^{-i w_j A},
    \qquad w_j = 2 \pi j / P

with P positions s, s + 1, ... that hold all of the distribution but e^-36, and the inner sums geometric
series. Only those j are taken at which the power is not negligible: a few dozen where the distribution is
smooth, whatever N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.quadrature import sum_rule
from suffice.pipeline.math.engines.clipped.saddle_point import range_of_n, saddle, tilted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.clipped.saddle_point import ClippedSums, Saddle
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats

    Complexes: TypeAlias = NDArray[np.complex128]

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
            is_own = counts.first <= other
            at_kinks = (
                np.where(is_own, by_position[0][..., 0], by_position[1][..., 0]),
                np.where(is_own, by_position[1][..., 1], by_position[0][..., 1]),
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
