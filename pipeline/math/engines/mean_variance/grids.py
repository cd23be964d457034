"""Grids of means and deviations of rows, as fine as the noise and the rows require; see ``likelihood``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.normal.weights import NoisyMoments
    from suffice.typing import Floats


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
        along = self._of_deviations(log_variance)
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

    def _of_deviations(self, log_variance: Floats) -> Floats:
        """Logs of the sums over deviations, at positions (n, q): (n, q, n_means)."""
        from scipy.special import gammainc

        if self.n < 2.0:
            with np.errstate(divide="ignore"):
                return np.broadcast_to(np.log(self.weight[0]), (*log_variance.shape, len(self.mean))).copy()
        alpha = self.alpha
        level = self.log_e[1:] + math.log(self.n / (self.n - 1.0))
        distance = level - log_variance[:, :, None]
        distribution = float(log_height(np.array(alpha))) - alpha * (np.expm1(distance) - distance)
        below = gammainc(
            (self.n - 1.0) / 2.0, self.n / 2.0 * np.exp(np.minimum(self.log_e[0] - log_variance, 600.0))
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
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(concentration, 100.0)
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(concentration < 100.0, exact, series)


OUTER = 8.0
"""Nats, of those that a grid covers, in which too little noise is left to rely on it."""
_STEP = 0.45
"""Steps of log E in widths of its distribution."""
_OBSERVED, _LARGEST_STEP = 0.35, 0.12
"""Steps of log E in widths of the noise, where that is wider, and at most."""
_UNSEEN = 0.015
"""Deviations of the sum of squares, in scales of its noise, that do not matter."""
_SMOOTH = 0.5
"""Width of a point of the mean's grid, in steps: narrower ones would leave ripples at small variances."""
_WIDENED = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fineness:
    """How fine grids are.

    Attributes
    ----------
    finest, growth, coarsest : float
        Steps of a sum in scales of its noise: near the released value, by how much more for each away, far.
    of_rows, of_few, wider : float
        Parts of a number of rows that share a grid: always, and at most as far as that is some steps of
        noise.
    beside : float
        Spacing of the numbers of rows at which the noise is evaluated, in its scales.
    depth : float
        Nats of noise that a grid covers, unless more are needed.
    """

    finest: float = 0.18
    growth: float = 0.06
    coarsest: float = 1.2
    of_rows: float = 32.0
    of_few: float = 8.0
    wider: float = 2.0
    beside: float = 0.5
    depth: float = 28.0

    def step(self, away: float) -> float:
        """How far to go on at so many scales from the released value."""
        return min(self.finest + self.growth * away, self.coarsest)


FINE = Fineness()
COARSE = Fineness(
    finest=0.5, growth=0.25, coarsest=2.0, of_rows=24.0, of_few=3.0, wider=4.0, beside=1.0, depth=20.0
)
"""As exact as the distribution of clipped records by their first moments is."""


class TooManyError(Exception):
    """A grid that covers so much of the noise has more densities than there is time for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Logs of the noise's density on a grid of means and deviations, or of means alone, of low..high rows."""

    low: float
    high: float
    mean: Floats
    step: Floats
    log_e: Floats
    log_step: float
    log_noise: Floats
    taken: int

    @classmethod
    def of(
        cls,
        noisy: NoisyMoments,
        low: float,
        high: float,
        depth: float,
        room: float,
        fineness: Fineness = FINE,
    ) -> Self:
        """Lay out a grid that covers so many nats of the noise; where there is no room, ``TooManyError``."""
        n = (low + high) / 2.0
        totals = noisy.totals
        rows = np.abs(totals.in_scales().coefficients)
        of_total, of_squares = 1.0 / np.sum(rows, axis=0)[1:]
        _, total, squares = noisy.estimates()[0]
        # All numbers of rows share the grid.
        depth = depth + (high - low) / 2.0 / min(of_total, of_squares)
        mean = _means(n, (total, squares), (of_total, of_squares), depth, fineness)
        edges = np.concatenate([[mean[0]], (mean[1:] + mean[:-1]) / 2.0, [mean[-1]]])
        step = np.diff(edges)
        mean = (edges[1:] + edges[:-1]) / 2.0
        log_e, log_step = np.full(1, -np.inf), 1.0
        if n >= 2.0:
            # Between these at least, where the noise does not reach down to nothing.
            ends = np.array([squares - depth * of_squares, squares + depth * of_squares]) / n
            inner = 0.0 if mean[0] <= 0.0 <= mean[-1] else float(np.min(mean**2))
            unseen = _UNSEEN * of_squares / n
            least = max(ends[0] - float(np.max(mean**2)), unseen)
            most = max(ends[1] - inner, of_squares / n, 2.0 * unseen)
            width = min(math.sqrt(2.0 / (n - 1.0)), 1.0)
            noise = of_squares / max(squares - total * (total / n), of_squares)
            log_step = min(_STEP * width, _OBSERVED * noise)
            if noise > width:
                log_step = max(_STEP * width, min(_OBSERVED * noise, _LARGEST_STEP))
            count = math.ceil(math.log(most / least) / log_step)
            log_e = math.log(least) + log_step * (np.arange(count + 1) - 0.5)
            log_e[0] = math.log(least)
        square = np.exp(log_e)
        square[0] /= 2.0
        second = mean**2 + square[:, None]
        top, mass = np.full(second.shape, -np.inf), np.zeros(second.shape)
        numbers, share = _within(low, high, fineness.beside / float(np.max(np.sum(rows, axis=0))))
        taken = second.size * len(numbers)
        if taken > room:
            raise TooManyError
        for number in numbers:
            log_noise = np.full(second.shape, float(noisy.n_prior.log_prob(np.array([number]))[0]))
            for (a, b, c), rate, value in zip(
                totals.coefficients, totals.rate, totals.values[0], strict=True
            ):
                log_noise -= rate * np.abs(value - number * (a + b * mean + c * second))
            highest = np.maximum(top, log_noise)
            mass = mass * np.exp(top - highest) + np.exp(log_noise - highest)
            top = highest
        log_noise = top + np.log(mass * share)
        return cls(
            low=low,
            high=high,
            mean=mean,
            step=step,
            log_e=log_e,
            log_step=log_step,
            log_noise=log_noise,
            taken=taken,
        )

    def slice(self, top: float, depth: float) -> Slice | None:
        """What lies within so many nats of the highest noise."""
        n = (self.low + self.high) / 2.0
        kept = self.log_noise > top - depth
        columns, lines = np.any(kept, axis=0), np.any(kept, axis=1)
        if not np.any(kept):
            return None
        density = np.exp(self.log_noise - top)
        alpha = (n - 1.0) / 2.0
        if n >= 2.0:
            lines[0] = True
            widened = self.log_step > 1.5 * _STEP * math.sqrt(1.0 / alpha)
            if widened:
                alpha = 1.0 / (1.0 / alpha + (_WIDENED * self.log_step) ** 2)
                # What that adds to the deviations' variance is taken off again.
                flow = _WIDENED**2 / 2.0 * np.diff(density[1:], axis=0)
                density[1:] -= np.diff(flow, axis=0, prepend=0.0, append=0.0)
            density[1:] *= self.log_step
        weight = np.where(kept, self._sharpened(density), 0.0)
        return Slice(
            n=n,
            mean=self.mean[columns],
            blur=(_SMOOTH * self.step[columns]) ** 2,
            alpha=alpha,
            log_e=self.log_e[lines],
            weight=weight[lines][:, columns],
            is_outer=(kept & (self.log_noise < top - depth + OUTER))[lines][:, columns],
        )

    def _sharpened(self, density: Floats) -> Floats:
        """Masses of means, of which the blur of their points, and no more, is taken off again."""
        if len(self.mean) < 3:
            return density * self.step
        blurred = _SMOOTH**2 / 2.0 * self.step**2 * density
        flow = np.diff(blurred, axis=1) / np.diff(self.mean)
        weight = density * self.step - np.diff(flow, axis=1, prepend=0.0, append=0.0)
        return np.maximum(weight, 0.0)


def _within(low: float, high: float, apart: float) -> tuple[Floats, float]:
    """Numbers of rows from low to high, not too far apart, and how many each stands for."""
    count = high - low + 1.0
    points = min(math.ceil(count / max(apart, 1e-300)), count)
    share = count / points
    return low - 0.5 + share * (np.arange(points) + 0.5), share


def numbers_of_rows(
    noisy: NoisyMoments, depth: float, fineness: Fineness = FINE
) -> Iterator[tuple[float, float]]:
    """Numbers of rows that the noise may leave, above 0: one by one, or a few where it hardly tells them."""
    least, most = (float(end) for end in noisy.n_prior.support)
    scale = 1.0 / max(float(np.abs(noisy.totals.coefficients[:, 0]) @ noisy.totals.rate), 1e-300)
    n = float(noisy.estimates()[0, 0])
    reach = (depth + _missed(noisy)) * scale
    low, last = max(least, 1.0, math.floor(n - reach)), min(most, max(math.ceil(n + reach), 1.0))
    while low <= last:
        # The distributions of the mean and the deviation hardly depend on a few of many rows.
        noise = fineness.step(abs(low - n) / scale) * scale
        step = max(low / fineness.of_rows, min(fineness.wider * noise, low / fineness.of_few))
        high = min(low + max(math.floor(step), 1.0) - 1.0, last)
        yield low, high
        low = high + 1.0


def _missed(noisy: NoisyMoments) -> float:
    """Nats that the noise takes at about the likeliest sums that are possible."""
    n, total, squares = noisy.estimates()[0]
    least, most = (float(end) for end in noisy.n_prior.support)
    middles = []
    for number in (n, 0.0, 1.0, 2.0, n + abs(n), n / 2.0):
        rows = min(max(round(number), least), most)
        mean = total / max(rows, 1.0)
        for start in (mean, 0.0, mean / 2.0):
            second = max(squares, rows * start**2)
            sums = np.array([rows, rows * start if rows else 0.0, second if rows else 0.0])
            middles.append(float(noisy.totals.distance(sums)[0]))
    return min(middles)


def _means(
    n: float, sums: tuple[float, float], scales: tuple[float, float], depth: float, fineness: Fineness
) -> Floats:
    """Means of n rows, in steps of the noise: where they change that of both sums, those are smaller."""
    (total, squares), (of_total, of_squares) = sums, scales
    least, most = (total - depth * of_total) / n, (total + depth * of_total) / n
    # E is not below 0.
    reach = math.sqrt((max(squares, 0.0) + depth * of_squares) / n)
    least, most = max(min(least, reach), -reach), min(max(most, -reach), reach)
    if most - least <= 1e-12 * reach:
        least, most = least - of_total / n, most + of_total / n

    def to_noise(mean: float) -> float:
        return n * (mean / of_total + mean * abs(mean) / of_squares)

    centre = min(max(total / n, least), most)
    middle = to_noise(centre)
    position = np.concatenate(
        [
            middle - _ladder(middle - to_noise(least), fineness)[:0:-1],
            middle + _ladder(to_noise(most) - middle, fineness),
        ]
    )
    # The larger root of squares / of_squares + roots / of_total = place / n.
    half = of_squares / of_total / 2.0
    part = of_squares * np.abs(position) / n
    mean: Floats = np.sign(position) * part / (half + np.sqrt(half**2 + part))
    return mean


def _ladder(depth: float, fineness: Fineness) -> Floats:
    """Positions from 0 on, fine near it, up to a depth."""
    positions = [0.0]
    while positions[-1] < depth:
        positions.append(positions[-1] + fineness.step(positions[-1]))
    return np.array(positions)
